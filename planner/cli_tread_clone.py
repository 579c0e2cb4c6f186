"""treadcore clone: a first net, which chooses what the scripted brain does."""

import argparse
import time

from fleetd import Talk
from planner.cli_tread_out import open_out, tell

NAME = "clone.net"


def make_clone(args: argparse.Namespace, talk: Talk) -> None:
    """Make the net; it is the same each time on one machine."""
    from planner.brain.net import save_net
    from planner.train.clone import Cloning, agreement, clone
    from planner.train.threads import one_blas_thread

    out, began = open_out(args, talk.environ), time.monotonic()
    one_blas_thread()
    how = Cloning()
    talk.say(f"treadcore: watching {how.plays} plays of {how.seconds:g} s and learning from them: a minute or two")
    net = clone(how)
    sha256 = save_net(out / NAME, net)
    agrees = agreement(net, how.seed + 1)
    seconds = round(time.monotonic() - began, 1)
    talk.say(f"treadcore: it chooses as the scripted brain does in {100 * agrees:.1f} % of what that sees")
    tell({"net": str(out / NAME), "sha256": sha256, "agreement": round(agrees, 4), "seconds": seconds}, talk)
