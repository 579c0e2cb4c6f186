"""fleet-plan feedback: what a person likes or dislikes about a row, as a row of its own."""

import argparse
import getpass
from typing import Any

from fleetd import Ledger, NotFound, Talk, Usage, host_name
from planner.cli_fill import open_filler
from planner.fill import Filler
from planner.opinion import TEXT_MOST
from planner.trial import Key

DIGITS = 20  # of a seq
WORDS = {"+": "liked", "-": "disliked"}


def feedback(args: argparse.Namespace, talk: Talk) -> int:
    """Write the row; exit 66 when there is none of that name."""
    text = " ".join(args.text)
    if len(text) > TEXT_MOST or not text.isprintable():
        raise Usage(f"TEXT is one line of up to {TEXT_MOST} signs")
    filler = open_filler(args, talk)
    filler.look()
    host, seq = _row(filler, args.row)
    if (subject := filler.subject((host, seq))) is None:
        raise NotFound(f"{host}:{seq}: no such row of the plan {filler.plan.name}, or one that was voided")
    here = host_name(talk.environ)
    body = {
        "event": "feedback",
        "by": f"{_person()}@{here}",
        "plan": filler.plan.name,
        "row": {"host": host, "seq": seq},
        "sign": args.sign,
        "text": text,
    }
    (row,) = Ledger(filler.spool.ledger_d).append(here, [body])
    if talk.json:
        talk.emit(
            {"schema": "fleet.feedback/1", "host": row.host, "seq": row.seq, **_told(row.body), "about": subject.id}
        )
    else:
        talk.data(f"{row.host}:{row.seq}  {subject.id} {WORDS[args.sign]}" + (f": {text}" if text else ""))
    return 0


def _told(body: Any) -> dict[str, Any]:
    return {key: body[key] for key in ("row", "sign", "text", "by")}


def _row(filler: Filler, named: str) -> Key:
    """HOST:SEQ, or the verdict of the trial or round of that id or beginning. Raises NotFound."""
    host, colon, seq = named.rpartition(":")
    if colon and host and seq.isascii() and seq.isdigit() and len(seq) < DIGITS:
        return host, int(seq)
    found = {r.trial: r.key for r in filler.history() if named and r.trial.startswith(named)}
    if named in found:
        return found[named]
    if len(found) != 1:
        many = f"; the verdicts of {len(found)} trials begin so" if found else ""
        raise NotFound(
            f"{named!r}: no such row: name it HOST:SEQ, or by its trial or round as `fleet-plan log` does{many}"
        )
    return next(iter(found.values()))


def _person() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
