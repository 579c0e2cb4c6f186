"""What fleet-plan says of a host that reads otherwise than the others, and of builds that are one game or are not."""

from typing import Any

from fleetd import Talk, count
from planner.builds import LEAST
from planner.cli_width import say_wrapped
from planner.fill import Filler
from planner.residuals import alarm, residuals
from planner.verdict import signed


def say_hosts(filler: Filler, talk: Talk) -> None:
    """A warning that names the host and the row that takes its reads out; nothing where what sets hosts apart is chance."""
    if (off := alarm(residuals(filler.dealt()))) is None:
        return
    rows = filler.rows_of(off.host)
    say_wrapped(
        f"{off.host} reads otherwise than the others: {signed(off.sd, 2)} standard deviations of a pair over {off.reads:,} "
        f"reads of {count(off.trials, 'trial')} that it shared, {abs(off.z):.1f} standard errors. Where its build, libm or "
        f"memory is at fault, a row takes its {count(len(rows), 'row')} out (fleet results --json has "
        f'their seq): {{"event": "void", "rows": [{{"host": "{off.host}", "seq": {rows[-1][1]}}}, …], "by": …, "reason": …}}',
        talk,
    )


def say_builds(filler: Filler, talk: Talk) -> None:
    """A sentence for each two builds that have made the same plays; nothing where there is one build."""
    for pair in filler.compared():
        apart = pair.one[2] != pair.other[2]
        said = " and ".join(
            (b[1] or "no build") + (f" of {' '.join(b[2])}" if apart else "") for b in (pair.one, pair.other)
        )
        if pair.agree:
            say_wrapped(f"{said} agree on {count(pair.plays, 'play')}: their reads are pooled", talk)
        else:
            why = f"differ: {pair.differs}" if pair.differs else f"share {count(pair.plays, 'play')} of {LEAST}"
            say_wrapped(f"{said} {why}: their reads are not pooled", talk)


def builds_json(filler: Filler) -> list[dict[str, Any]]:
    """Each two builds that have made the same plays."""
    return [
        {"builds": [pair.one[1], pair.other[1]], "plays": pair.plays, "agree": pair.agree, "differs": pair.differs}
        for pair in filler.compared()
    ]


def hosts_json(filler: Filler) -> dict[str, Any]:
    """Each host's residual, and the host that the warning would name, or null."""
    found = residuals(filler.dealt())
    off = alarm(found)
    told = [{"host": r.host, "sd": r.sd, "z": r.z, "reads": r.reads, "trials": r.trials} for r in found]
    return {"alarm": off.host if off else None, "residuals": told}
