"""What fleet-plan says of a host that reads otherwise than the others."""

from typing import Any

from fleetd import Talk, count
from planner.cli_width import say_wrapped
from planner.fill import Filler
from planner.residuals import alarm, residuals
from planner.verdict import signed


def say_hosts(filler: Filler, talk: Talk) -> None:
    """A warning that names the host and the row that takes its reads out; nothing where what sets hosts apart is chance."""
    dealt = filler.dealt()
    if (off := alarm(residuals(dealt.trials))) is None:
        return
    last = dealt.rows[off.host][-1][1]
    say_wrapped(
        f"{off.host} reads otherwise than the others: {signed(off.sd, 2)} standard deviations of a pair over {off.reads:,} "
        f"reads of {count(off.trials, 'trial')} that it shared, {abs(off.z):.1f} standard errors. Where its build, libm or "
        f"memory is at fault, a row takes its {count(len(dealt.rows[off.host]), 'row')} out (fleet results --json has "
        f'their seq): {{"event": "void", "rows": [{{"host": "{off.host}", "seq": {last}}}, …], "by": …, "reason": …}}',
        talk,
    )


def hosts_json(filler: Filler) -> dict[str, Any]:
    """Each host's residual, and the host that the warning would name, or null."""
    found = residuals(filler.dealt().trials)
    off = alarm(found)
    told = [{"host": r.host, "sd": r.sd, "z": r.z, "reads": r.reads, "trials": r.trials} for r in found]
    return {"alarm": off.host if off else None, "residuals": told}
