"""fleet hosts: who works on this spool; and telling one to rest, to go on, or to try again."""

import argparse
import time

from fleetd.cli_common import Talk, columns
from fleetd.cli_state import Beat, read_beats
from fleetd.cli_status import cut_line, host_json, rests
from fleetd.cli_stop import touch
from fleetd.cli_talk import clean, span
from fleetd.errors import NotFound, Usage
from fleetd.lease import host_name
from fleetd.settings import read_settings
from fleetd.spool import Spool, find_spool


def hosts(args: argparse.Namespace, talk: Talk) -> int:
    """The table, or with an action what it asks for."""
    spool = find_spool(args.spool, talk.environ)
    if args.action and not args.host:
        message = f"fleet hosts {args.action} HOST: which host?"
        raise Usage(message)
    if args.action:
        return _act(spool, args.action, args.host, talk)
    beats = read_beats(spool, host_name(talk.environ), time.time())
    if talk.json:
        for beat in beats:
            talk.emit(host_json(beat))
        return 0
    rows = [("HOST", "STATE", "LANES", "BEAT", "TAGS", "RUNS"), *(_cells(beat) for beat in beats)]
    for line in columns(rows) if beats else ():
        talk.data(cut_line(line, talk))
    if not beats:
        talk.say("no daemon has run on this spool yet; start one: fleetd")
    return 0


def _cells(beat: Beat) -> tuple[str, ...]:
    busy, body = [clean(str(id_)) for id_ in beat.body.get("busy") or ()], beat.body
    state = (rests(beat) or "works") if beat.live else "no daemon"
    tags = clean(",".join(map(str, body.get("tags") or ()))) or "-"
    lanes = f"{len(busy)}/{body.get('lanes') or 0}"
    return clean(beat.host), state, lanes, f"{span(beat.age_s)} ago", tags, " ".join(busy)


def _act(spool: Spool, action: str, host: str, talk: Talk) -> int:
    known = {*spool.heartbeats(), *read_settings(spool.settings).hosts}
    if host not in known:
        message = f"{host}: no such host on {spool.root}; known: {', '.join(sorted(known)) or 'none yet'}"
        raise NotFound(message)
    drain = spool.hosts / f"{host}.drain"
    if action == "undrain":
        drain.unlink(missing_ok=True)
        talk.say(f"{host} claims jobs again")
    elif action == "drain":
        touch(drain, "")
        talk.say(f"{host} claims nothing more, what runs there goes on. Undo: fleet hosts undrain {host}")
    else:
        touch(spool.hosts / f"{host}.reset", "")
        talk.say(f"{host}'s daemon closes its breaker and counts anew")
    if talk.json:
        talk.emit({"schema": "fleet.hosts-action/1", "host": host, "action": action})
    return 0
