"""Learning curves of two trainers on several worlds, drawn by hand as SVG: mean of the runs, ± 2 errors, each run faintly."""

import numpy as np
from learn_plot import COLOURS, DASHES, FAINT, GROUND, INK

WIDE, HIGH, LEFT, RIGHT, TOP, FOOT = 420, 340, 56, 20, 72, 56  # of one world's panel, and its margins
TICKS = 5  # lines across


def draw(worlds, ticks):
    """The picture; `worlds` are scores (runs, parts) by trainer by world, NaN where no play ended."""
    wide = WIDE * len(worlds)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {HIGH}" width="{wide}" height="{HIGH}" '
    parts = [
        f'{head}font-family="sans-serif" font-size="13">',
        f'<rect width="{wide}" height="{HIGH}" fill="{GROUND}"/>',
    ]
    for column, (name, runs) in enumerate(worlds.items()):
        parts.append(f'<g transform="translate({column * WIDE} 0)">')
        parts += [*_panel(name, runs, ticks), "</g>"]
    return "\n".join([*parts, "</svg>\n"])


def _panel(name, runs, ticks):
    values = np.concatenate([table[np.isfinite(table)] for table in runs.values()])
    low, high = np.floor(values.min() / 100) * 100, np.ceil(values.max() / 100) * 100 + 0.0  # no -0
    count = next(iter(runs.values())).shape[1]
    at = (np.arange(count) + 0.5) / count

    def x(part):
        return LEFT + (WIDE - LEFT - RIGHT) * part

    def y(score):
        return HIGH - FOOT - (HIGH - FOOT - TOP) * (score - low) / (high - low)

    def points(scores, over=at):
        return " ".join(f"{x(p):.1f},{y(s):.1f}" for p, s in zip(over, scores, strict=True) if np.isfinite(s))

    number = len(next(iter(runs.values())))
    yield f'<text x="{LEFT}" y="24" font-size="15" fill="{INK}">{name}: mean score ± 2 errors, {number} seeds</text>'
    for score in np.linspace(low, high, TICKS + 1):
        yield f'<line x1="{x(0)}" x2="{x(1)}" y1="{y(score):.1f}" y2="{y(score):.1f}" stroke="{FAINT}"/>'
        yield f'<text x="{x(0) - 8}" y="{y(score) + 5:.1f}" text-anchor="end" fill="{INK}">{score:.0f}</text>'
    for tick in range(0, ticks + 1, 100_000):
        where = f'x="{x(tick / ticks):.1f}" y="{HIGH - FOOT + 20}"'
        yield f'<text {where} text-anchor="middle" fill="{INK}">{tick // 1000}</text>'
    yield f'<text x="{x(0.5)}" y="{HIGH - 12}" text-anchor="middle" fill="{INK}">thousand ticks</text>'
    for row, ((who, table), colour, dash) in enumerate(zip(runs.items(), COLOURS, DASHES, strict=True)):
        mean, error = np.nanmean(table, axis=0), np.nanstd(table, axis=0, ddof=1) / np.sqrt(len(table))
        seen = np.isfinite(mean + error)
        up, down = (mean + 2 * error)[seen], (mean - 2 * error)[seen]
        ring = points([*np.clip(up, low, high), *np.clip(down, low, high)[::-1]], [*at[seen], *at[seen][::-1]])
        line = f'fill="none" stroke="{colour}" stroke-width="3" stroke-dasharray="{dash}"'
        yield f'<polygon points="{ring}" fill="{colour}" opacity="0.22"/>'
        thin = f'fill="none" stroke="{colour}" opacity="0.2"'
        yield from (f'<polyline points="{points(run)}" {thin}/>' for run in table)
        yield f'<polyline points="{points(mean)}" {line}/>'
        left = LEFT + 130 * row
        yield f'<path d="M{left} {TOP - 22}h33" {line}/>'
        yield f'<text x="{left + 40}" y="{TOP - 17}" fill="{INK}">{who}</text>'
