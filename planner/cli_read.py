"""fleet-plan read: what a trial job runs. All it needs is in the job's environment; it writes the job's result."""

import argparse
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from fleetd import (
    BadData,
    Ledger,
    No,
    Talk,
    Terminated,
    Usage,
    count,
    decode_json,
    encode_json,
    find_spool,
    host_name,
    replace_file,
    seconds,
)
from planner.cli_learn import learn
from planner.net_round import LESSON, Judge, decode_judge, stray_judge
from planner.probe import known_probe
from planner.reading import MIXED, Sheet, census_command, known_reads, not_void, play, replaced_by
from planner.screen import SCREEN, Screen, decode_screen, stray_screen
from planner.seeds import Purpose
from planner.trial import READS, Block, decode_block, stray_seeds

TAIL_BYTES = 1 << 20  # every row of a pass has the best's reads in it: the newest few are enough
OTHERS_BYTES = 256 << 10


def read(args: argparse.Namespace, talk: Talk) -> int:
    """Read both players on the job's seeds. Exit 0 with a result, 1 when nothing could be scored."""
    signal.signal(signal.SIGTERM, _stop)
    job, result = (_needed(talk.environ, name) for name in ("FLEET_JOB", "FLEET_RESULT"))
    made, spool = _job(Path(job)), find_spool(args.spool, talk.environ)
    if made["payload"].get("schema") == LESSON:
        learn(made["payload"], spool.root, talk)
    block = _asked(made["payload"], spool.root)

    def write(value: Mapping[str, Any]) -> None:
        replace_file(result, encode_json(value) + b"\n")

    host, build = host_name(talk.environ), talk.environ.get("FLEET_BUILD")
    ledger = Ledger(spool.ledger_d)
    mine = ledger.tail(host, TAIL_BYTES)
    others = [row for other in ledger.hosts() if other != host for row in ledger.tail(other, OTHERS_BYTES)]
    everywhere = [*mine, *others]
    mine = [row for row in not_void(mine, everywhere) if row.seq > _voided(made["payload"], host)]
    if isinstance(block, Block) and (adopted := replaced_by(not_void(everywhere, everywhere), block, _created(made))):
        talk.say(f"{block.change}: its best was replaced by {adopted}; nothing to read")
        write({"schema": READS, "reads": [], "plays": 0, "replaced": adopted})
        return 0
    known = known_reads(mine, block, build, talk.environ.get("FLEET_JOB_ID", ""))
    sheet = Sheet(block, known, build, known_probe(mine, block.census, build))
    talk.say(f"{block.change}: {count(len(block.seeds), 'seed')} ({block.purpose}), {sheet.reused} reads known")
    with Path(_needed(talk.environ, "FLEET_OUT"), "plays.jsonl").open("ab") as record:
        play(sheet, block.play_timeout_s, census_command(block, talk.environ), write, record)
    return _said(sheet, talk)


def _asked(payload: Mapping[str, Any], root: Path) -> Block | Judge | Screen:
    """Raises BadData for seeds that are not the job's to read, and for a net that is not the one named."""
    if payload.get("purpose") == Purpose.JUDGE:
        judge = decode_judge(payload)
        if wrong := stray_judge(judge):
            raise BadData(wrong)
        return judge.found_in(root)
    if payload.get("schema") == SCREEN:
        screen = decode_screen(payload)
        if wrong := stray_screen(screen):
            raise BadData(wrong)
        return screen
    block = decode_block(payload)
    if wrong := stray_seeds(block):
        raise BadData(wrong)
    return block


def _job(path: Path) -> Mapping[str, Any]:
    try:
        job = decode_json(path.read_bytes())
        payload = job["payload"]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadData(f"{path}: no job with a payload can be read there: {error}") from error
    if not isinstance(job, dict) or not isinstance(payload, dict):
        raise BadData(f"{path}: its payload is no object")
    return job


def _voided(payload: Mapping[str, Any], host: str) -> int:
    """The row of this host up to which nothing is used again: the void row itself may be far back in another's segment."""
    voided = payload.get("voided")
    seq = voided.get(host, 0) if isinstance(voided, dict) else 0
    return seq if isinstance(seq, int) else 0


def _created(job: Mapping[str, Any]) -> float:
    """When the job was made, in epoch seconds; 0 for one that does not say."""
    try:
        return seconds(job["created"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return 0.0


def _said(sheet: Sheet, talk: Talk) -> int:
    if sheet.probe and sheet.probe.differs:
        raise No(sheet.probe.sentence)
    if sheet.mixed:
        raise No(f"{MIXED}: its scores cannot be told apart; let it name the same in each answer, or none")
    if not sheet.scored():
        raise No(f"no play was scored: {sheet.errors()}")
    void = ", over 5 %: void" if sheet.void() else ""
    failed = f"; {len(sheet.failed)} pairs failed{void} ({sheet.errors()})" if sheet.failed else ""
    talk.say(f"{count(sheet.played, 'play')} played{failed}")
    return 0


def _needed(environ: Mapping[str, str], name: str) -> str:
    if not environ.get(name):
        raise Usage(
            f"{name} is not set: `fleet-plan read` is what a trial job runs; `fleet-plan fill` queues such jobs"
        )
    return environ[name]


def _stop(*_: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated("ended by SIGTERM; the scores that came are in the result")
