"""Whether one host reads otherwise than the others: first all hosts together, then the worst. Pure.

Hosts share a trial: its seeds are dealt to them in jobs. What a host read of a trial is set beside what the others read of
the same trial, by means and their errors; a trial's own worth, whatever it is, cancels out. A host's such differences,
standardised, are one z. A first test asks whether the hosts' z together are beyond chance (chi-square); only then
is the worst host named, and only when it is beyond chance on its own, for as many hosts as there are (Bonferroni).

Mirrored pairs of screens go as one trial: which side is which is drawn for each pair, so that they differ by nothing on average.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from planner.builds import Names, pooled, renamed
from planner.facts import Facts
from planner.screen import Shake
from planner.shelf import Shelf
from planner.stats import Paired, normal_cdf, paired, together, told
from planner.trial import Key, Reads

LEAST = 5  # reads of a trial, by the host and by the others
LEVEL = 0.01  # of an alarm where all hosts read alike, for each of the two tests

HostReads = Mapping[str, Paired]  # host → its differences of one trial


def dealt(facts: Facts) -> list[HostReads]:
    """What several hosts read of one trial, by trial, purpose, build and rules."""
    attempts, screens, names = pooled(facts)
    read = [(a.key, (a.trial.id, str(a.purpose)), a.reads) for a in attempts]
    read += [(row.key, ("mirrored", ""), row.reads) for row in screens if row.screen.shake is Shake.MIRRORED]
    found: dict[tuple[str, ...], list[tuple[str, Reads]]] = {}
    for key, about, reads in read:
        under = str(reads.rules), str(reads.build), str(reads.census)
        found.setdefault((*about, *under), []).append((key[0], reads))
    mirrored = {about[2:]: by_host(found.pop(about)) for about in [about for about in found if about[0] == "mirrored"]}
    several = [by_host(rows) for rows in found.values() if len({host for host, _ in rows}) > 1]
    return [*several, *facts.shelf.by_host(), *_with_shelved(mirrored, facts.shelf, names)]


def _with_shelved(mirrored: Mapping[tuple[str, ...], HostReads], shelf: Shelf, names: Names) -> list[HostReads]:
    """What hosts read of mirrored pairs, by rules, where several did."""
    found: dict[tuple[str, ...], dict[str, list[Paired]]] = {}
    for rules, hosts in mirrored.items():
        found[rules] = {host: [read] for host, read in hosts.items()}
    common = renamed(names)
    for filed in sorted(shelf.screens.values()):
        of = found.setdefault(common.get(filed.told.rules, filed.told.rules), {})
        for host, n, mean, se in filed.hosts:
            of.setdefault(host, []).append(told(n, mean, se))
    return [{host: together(reads) for host, reads in of.items()} for of in found.values() if len(of) > 1]


def rows_of(facts: Facts, host: str) -> list[Key]:
    """Its rows with reads, in order."""
    own = [row.key for rows in (facts.attempts(), facts.screens()) for row in rows if row.key[0] == host]
    return sorted([*own, *(key for key in facts.shelf.read_rows() if key[0] == host)])


def by_host(rows: Iterable[tuple[str, Reads]]) -> dict[str, Paired]:
    """What each host read of one trial; a seed counts once."""
    found: dict[str, dict[int, float]] = {}
    for host, reads in rows:
        found.setdefault(host, {}).update((seed, c - b) for seed, (c, b) in reads.pairs().items())
    return {host: paired([*of.values()]) for host, of in found.items() if of}


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual:
    """How far a host's reads lie from the others', over all trials that it shared: in standard errors, and in sd of a pair."""

    host: str
    z: float
    sd: float
    reads: int
    trials: int


def residuals(trials: Iterable[HostReads]) -> list[Residual]:
    """Of each host that shared a trial; the farthest off first."""
    found: dict[str, list[tuple[float, float, int]]] = {}
    for trial in (trial for trial in trials if len(trial) > 1):
        for host, reads in trial.items():
            others = together([read for other, read in trial.items() if other != host])
            if reads.n >= LEAST and others.n >= LEAST and (apart := _apart(reads, others)):
                found.setdefault(host, []).append((*apart, reads.n))
    told = [_together(host, parts) for host, parts in found.items()]
    return sorted(told, key=lambda residual: (-abs(residual.z), residual.host))


def _apart(own: Paired, others: Paired) -> tuple[float, float] | None:
    """The difference in sd of a pair and its standard error, in the same; None where no seed changed."""
    df = own.n + others.n - 2
    variance = ((own.n - 1) * own.sd**2 + (others.n - 1) * others.sd**2) / df
    if variance == 0.0:
        return None
    error = math.sqrt(1.0 / own.n + 1.0 / others.n) * math.sqrt(df / (df - 2))
    return (own.mean - others.mean) / math.sqrt(variance), error


def _together(host: str, parts: Sequence[tuple[float, float, int]]) -> Residual:
    weight = math.fsum(error**-2 for _, error, _ in parts)
    mean = math.fsum(apart / error**2 for apart, error, _ in parts) / weight
    reads = sum(n for *_, n in parts)
    return Residual(host=host, z=mean * math.sqrt(weight), sd=mean, reads=reads, trials=len(parts))


def alarm(found: Sequence[Residual]) -> Residual | None:
    """The host that reads otherwise; None where what sets hosts apart is chance."""
    hosts = len(found)
    if hosts < 2 or not _beyond(math.fsum(residual.z**2 for residual in found) * (hosts - 1) / hosts, hosts - 1):
        return None
    worst = found[0]
    return worst if 2.0 * normal_cdf(-abs(worst.z)) * hosts < LEVEL else None


def _beyond(square: float, df: int) -> bool:
    """Whether a chi-square with df degrees is over its quantile of 1 - LEVEL (Wilson and Hilferty 1931)."""
    third = 2.0 / (9.0 * df)
    return normal_cdf(((square / df) ** (1 / 3) - (1.0 - third)) / math.sqrt(third)) > 1.0 - LEVEL
