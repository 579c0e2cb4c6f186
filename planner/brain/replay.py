"""A recorded play as text, or as a picture."""

from collections import Counter
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from planner.arena.rules import CELL, CELLS, SHELL_RADIUS, TICKS_PER_S
from planner.brain.decide import Brain
from planner.brain.record import Duel, Recording, Shot, duels, record, shots
from planner.brain.weights import BEHAVIOURS, DEFAULT, whole_weights

SCRIPTED = whole_weights(DEFAULT)  # the reference
NAMES = ("player", "reference")
COLOURS = ("#2a78b5", "#d9792b")
HEALTH, POWER = "#3f9b57", "#8a5fb0"
PX = 40  # a cell
HEAD = 64  # of the picture, above the map


def replay_text(seed: int, seconds: float, player: Brain = SCRIPTED) -> str:
    """The player's play against the reference on `seed`, told."""
    r = record(player, SCRIPTED, seed, seconds)
    lines = [_headline(r), "", *(f"    {row}" for row in r.map.rows), ""]
    lines += ["    # wall   A one side's starts (the other's lie opposite)   h health pack   p power-up", ""]
    lines.append(f"{'duel':>4} {'begins':>7} {'lasts':>7}  {'won by':<10}{'health':>9}  {'hits/shots':>13}  did most")
    lines += [_duel_line(r, i, duel) for i, duel in enumerate(duels(r), 1)]
    return "\n".join(lines)


def replay_json(seed: int, seconds: float, player: Brain = SCRIPTED) -> dict[str, Any]:
    """The same play for a program: times in seconds, the player's number first in each pair."""
    r = record(player, SCRIPTED, seed, seconds)
    result = r.result
    return {
        "schema": "treadcore.replay/1",
        "seed": seed,
        "seconds": seconds,
        "map": r.map.name,
        "score": result.score,
        "won": result.won,
        "lost": result.lost,
        "drawn": result.drawn,
        "duels": [_duel_json(r, duel) for duel in duels(r)],
    }


def _duel_json(r: Recording, duel: Duel) -> dict[str, Any]:
    fired = shots(r, duel)
    return {
        "begins_s": duel.first / TICKS_PER_S,
        "lasts_s": (duel.last - duel.first + 1) / TICKS_PER_S,
        "won_by": _won_by(duel),
        "health": _health(r, duel),
        "shots": [sum(s.by == tank for s in fired) for tank in (0, 1)],
        "hits": [sum(s.hit for s in fired if s.by == tank) for tank in (0, 1)],
    }


def _won_by(duel: Duel) -> str:
    """player, reference, drawn or not over."""
    return NAMES[duel.winner] if duel.winner is not None else "drawn" if duel.over else "not over"


def _health(r: Recording, duel: Duel) -> list[int]:
    return [max(0, int(h)) for h in r.ticks["health"][duel.last]]


def replay_svg(seed: int, seconds: float, player: Brain = SCRIPTED) -> str:
    """The same play drawn: walls, both tanks' ways, every shot, hits as dots."""
    r = record(player, SCRIPTED, seed, seconds)
    size = CELLS * PX
    fought = duels(r)
    faint = max(0.12, 0.9 / max(len(fought), 1) ** 0.5)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size + HEAD}" width="{size}" '
            f'height="{size + HEAD}" font-family="sans-serif" font-size="15">'
        ),
        f'<rect width="{size}" height="{size + HEAD}" fill="#f7f5f0"/>',
        f'<text x="8" y="22">{escape(_headline(r))}</text>',
        (
            f'<text x="8" y="46" fill="{COLOURS[0]}">player</text>'
            f'<text x="70" y="46" fill="{COLOURS[1]}">reference</text>'
            '<text x="156" y="46" font-size="12" fill="#666">lines: ways · dashes: shells · dots: hits · rings: starts'
            f' · <tspan fill="{HEALTH}">+</tspan> health · <tspan fill="{POWER}">p</tspan> power-up</text>'
        ),
        f'<svg y="{HEAD}" width="{size}" height="{size}">',
        *_ground(r),
        *(part for duel in fought for part in _drawn(r, duel, faint)),
        "</svg></svg>",
    ]
    return "\n".join(parts)


def _headline(r: Recording) -> str:
    won, lost, drawn = r.result.won, r.result.lost, r.result.drawn
    return (
        f"seed {r.seed}, map {r.map.name}, {r.seconds:g} s: "
        f"{won} won, {lost} lost, {drawn} drawn: score {r.result.score:.3f}"
    )


def _clock(ticks: int) -> str:
    seconds = ticks / TICKS_PER_S
    return f"{int(seconds // 60)}:{seconds % 60:04.1f}"


def _duel_line(r: Recording, number: int, duel: Duel) -> str:
    fired = shots(r, duel)
    aim = " : ".join(f"{sum(s.hit for s in fired if s.by == t)}/{sum(s.by == t for s in fired)}" for t in (0, 1))
    left, right = _health(r, duel)
    did = "; ".join(_did_most(r, duel, tank) for tank in (0, 1))
    return (
        f"{number:>4} {_clock(duel.first):>7} {_clock(duel.last - duel.first + 1):>7}  {_won_by(duel):<10}"
        f"{f'{left} : {right}':>9}  {aim:>13}  {did}"
    )


def _did_most(r: Recording, duel: Duel, tank: int) -> str:
    names = list(BEHAVIOURS)
    done = Counter(r.behaviour[duel.first : duel.last + 1, tank].tolist()).most_common(2)
    return ", ".join(f"{names[b]} {100 * n // (duel.last - duel.first + 1)} %" for b, n in done)


def _ground(r: Recording) -> list[str]:
    parts = []
    for cell, mark in enumerate("".join(r.map.rows)):
        y, x = divmod(cell, CELLS)
        if mark == "#":
            parts.append(f'<rect x="{x * PX}" y="{y * PX}" width="{PX}" height="{PX}" fill="#5b5750"/>')
        elif mark in "hp":
            colour, sign = (HEALTH, "+") if mark == "h" else (POWER, "p")
            middle = f'x="{x * PX + PX // 2}" y="{y * PX + PX // 2 + 7}"'
            parts.append(f'<text {middle} text-anchor="middle" font-size="22" fill="{colour}">{sign}</text>')
    return parts


def _drawn(r: Recording, duel: Duel, faint: float) -> list[str]:
    parts = []
    for tank in (0, 1):
        rows = slice(duel.first, duel.last + 1)
        way = np.stack([r.ticks["x"][rows, tank], r.ticks["y"][rows, tank]], axis=1) * (PX / CELL)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in way)
        style = f'fill="none" stroke="{COLOURS[tank]}"'
        parts.append(f'<polyline points="{points}" {style} stroke-width="2.5" opacity="{faint:.2f}"/>')
        parts.append(f'<circle cx="{way[0, 0]:.1f}" cy="{way[0, 1]:.1f}" r="7" {style}/>')
    for shot in shots(r, duel):
        (x1, y1), (x2, y2) = ((PX * x, PX * y) for x, y in (shot.start, impact(r, shot)))
        colour = COLOURS[shot.by]
        parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
            f'stroke-width="0.8" stroke-dasharray="5 3" opacity="{faint:.2f}"/>'
        )
        if shot.hit:
            parts.append(f'<circle cx="{x2:.1f}" cy="{y2:.1f}" r="4" fill="{colour}" opacity="{max(faint, 0.5):.2f}"/>')
    return parts


def impact(r: Recording, shot: Shot) -> tuple[float, float]:
    """Where a shell's way ends, in cells: at the edge of the tank it hits, or at the wall; its record goes on a little."""
    start, end = np.array(shot.start), np.array(shot.end)
    far = float(np.hypot(*(end - start)))
    if shot.hit:
        share = max(far - SHELL_RADIUS / 4096, 0.0) / max(far, 1e-9)
    else:
        steps = np.linspace(0.0, 1.0, int(far * 64) + 2)
        cells = np.clip((start + np.outer(steps, end - start)).astype(int), 0, CELLS - 1)
        walls = np.flatnonzero([r.map.rows[y][x] == "#" for x, y in cells])
        share = float(steps[walls[0]]) if walls.size else 1.0
    x, y = start + share * (end - start)
    return float(x), float(y)
