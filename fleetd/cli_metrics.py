"""fleet metrics: numbers for Prometheus in its text format, on stdout or as a file for node_exporter's textfile collector."""

import argparse
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fleetd.cli_state import Beat, read_beats
from fleetd.cli_talk import Talk
from fleetd.cli_text import count
from fleetd.errors import CannotCreate
from fleetd.files import replace_file
from fleetd.job import Outcome
from fleetd.lease import host_name
from fleetd.ledger import Ledger
from fleetd.spool import STOPS, Spool, find_spool

ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True, slots=True)
class Sample:
    """One number."""

    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Family:
    """The samples of one name, with what they are: a `gauge` goes up and down, a `counter` only up."""

    name: str
    kind: str
    about: str
    samples: tuple[Sample, ...]


def metrics(args: argparse.Namespace, talk: Talk) -> int:
    """Print them, or put them at --textfile. Raises CannotCreate."""
    spool = find_spool(args.spool, talk.environ)
    families = gather(spool, host_name(talk.environ), time.time())
    if args.textfile:
        _write(Path(args.textfile), as_text(families))
        talk.say(f"{count(sum(len(family.samples) for family in families), 'number')} in {args.textfile}")
    if talk.json:
        for family in families:
            talk.emit({"schema": "fleet.metrics/1", "name": family.name, "kind": family.kind, **_as_json(family)})
    elif not args.textfile:
        talk.out.write(as_text(families))
    return 0


def _as_json(family: Family) -> dict[str, object]:
    samples = [{"labels": dict(sample.labels), "value": sample.value} for sample in family.samples]
    return {"about": family.about, "samples": samples}


def _write(path: Path, text: str) -> None:
    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise CannotCreate(
            f"{path}: not written: {error.strerror}; its directory must be there, and yours to write to"
        ) from error


def gather(spool: Spool, me: str, now: float) -> list[Family]:
    """Every family, also those without a sample. `now`: seconds since the epoch."""
    stops, waiting, running = spool.stops(), len(spool.waiting()), len(spool.attempts())
    ledger, ended = Ledger(spool.ledger_d), Counter(dict.fromkeys(map(str, Outcome), 0))
    ended.update(str(row.body["outcome"]) for row in ledger.heads())
    return [
        _gauge("jobs_waiting", "jobs in queue/", waiting),
        _gauge("jobs_running", "attempts that are claimed or run, on all hosts", running),
        Family(
            "fleet_attempts_ended_total",
            "counter",
            "attempts that have ended, by outcome",
            tuple(Sample(number, {"outcome": outcome}) for outcome, number in sorted(ended.items())),
        ),
        *_hosts(read_beats(spool, me, now)),
        Family(
            "fleet_stop",
            "gauge",
            "1 while this stop file stands",
            tuple(Sample(name in stops, {"stop": name}) for name in STOPS),
        ),
        _gauge("ledger_skipped_lines", "damaged lines of the ledger that readers skip", ledger.skipped),
        _gauge("last_update_timestamp_seconds", "when this was gathered, seconds since the epoch", now),
    ]


def _gauge(name: str, about: str, value: float) -> Family:
    return Family(f"fleet_{name}", "gauge", about, (Sample(value),))


def _hosts(beats: Iterable[Beat]) -> list[Family]:
    every = list(beats)
    known = [beat for beat in every if beat.body]  # the others' heartbeats cannot be read
    return [
        _by_host("up", "1 while a daemon lives on the host", {b.host: b.live for b in every}),
        _by_host("lanes", "how many jobs the host runs at a time", {b.host: b.body["lanes"] for b in known}),
        _by_host("busy", "how many jobs run on the host", {b.host: len(b.body["busy"]) for b in known}),
        _by_host("drained", "1 while the host is told to claim nothing", {b.host: b.drained for b in every}),
        _by_host(
            "breaker_open",
            "1 while the host claims nothing because its jobs kept failing",
            {b.host: bool(b.body["breaker"].get("open")) for b in known},
        ),
        _by_host("heartbeat_age_seconds", "seconds since its last heartbeat", {b.host: b.age_s for b in every}),
    ]


def _by_host(name: str, about: str, values: Mapping[str, float]) -> Family:
    samples = tuple(Sample(value, {"host": host}) for host, value in values.items() if value < float("inf"))
    return Family(f"fleet_host_{name}", "gauge", about, samples)


def as_text(families: Iterable[Family]) -> str:
    """The text format 0.0.4 of Prometheus."""
    lines = []
    for family in families:
        lines += [f"# HELP {family.name} {family.about}", f"# TYPE {family.name} {family.kind}"]
        lines += [f"{family.name}{_labels(sample.labels)} {_number(sample.value)}" for sample in family.samples]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    pairs = (f'{key}="{value.translate(ESCAPES)}"' for key, value in labels.items())
    return f"{{{','.join(pairs)}}}" if labels else ""


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.3f}"
