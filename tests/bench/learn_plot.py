"""A score over the length of training, drawn by hand as SVG: mean of the runs, its band of ± 2 errors, each run faintly."""

from xml.sax.saxutils import escape

import numpy as np

COLOURS = ("#2a78b5", "#d9792b")
DASHES = ("none", "9 9")  # a line that lies on another lets that be seen
GROUND, INK, FAINT = "#f7f5f0", "#333", "#d8d3c8"
WIDE, HIGH = 760, 440
LEFT, RIGHT, TOP, FOOT = 64, 20, 72, 56  # margins
LOW, STEP = 0.4, 0.1  # of the score's axis, which ends at 1


def band(by_run):
    """Mean and error at each mark of scores (runs, marks, seeds): seeds and runs both are chance."""
    runs, _, seeds = by_run.shape
    mean = by_run.mean(axis=0)  # (marks, seeds)
    square = mean.var(axis=1, ddof=1) / seeds
    if runs > 1:
        square = square + by_run.mean(axis=2).var(axis=0, ddof=1) / runs
    return mean.mean(axis=1), np.sqrt(square)


def draw(marks, lines, caption):
    """The picture; `lines` are scores (runs, marks, seeds) by name."""

    def x(mark):
        return LEFT + (WIDE - LEFT - RIGHT) * mark / marks[-1]

    def y(score):
        return HIGH - FOOT - (HIGH - FOOT - TOP) * (score - LOW) / (1 - LOW)

    def points(scores, over=marks):
        return " ".join(f"{x(m):.1f},{y(s):.1f}" for m, s in zip(over, scores, strict=True))

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" height="{HIGH}" '
            'font-family="sans-serif" font-size="14">'
        ),
        f'<rect width="{WIDE}" height="{HIGH}" fill="{GROUND}"/>',
        f'<text x="{LEFT}" y="26" font-size="16" fill="{INK}">Score of a net over the decisions it was trained for</text>',
        f'<text x="{LEFT}" y="48" fill="#666" font-size="13">{escape(caption)}; bands: ± 2 errors</text>',
        *_axes(marks[-1], x, y),
    ]
    for row, ((name, by_run), colour, dash) in enumerate(zip(lines.items(), COLOURS, DASHES, strict=True)):
        mean, error = band(by_run)
        ring = points([*(mean + 2 * error), *(mean - 2 * error)[::-1]], [*marks, *marks[::-1]])
        parts.append(f'<polygon points="{ring}" fill="{colour}" opacity="0.22"/>')
        line = f'fill="none" stroke="{colour}" stroke-width="3" stroke-dasharray="{dash}"'
        thin = f'fill="none" stroke="{colour}" opacity="0.35"'
        parts += [f'<polyline points="{points(run)}" {thin}/>' for run in by_run.mean(axis=2)]
        parts.append(f'<polyline points="{points(mean)}" {line}/>')
        parts += [
            f'<circle cx="{x(m):.1f}" cy="{y(s):.1f}" r="3.5" fill="{colour}"/>'
            for m, s in zip(marks, mean, strict=True)
        ]
        at, said = y(0.62) + 22 * row, f"against {name}: {mean[-1]:.3f} at last"
        parts.append(f'<path d="M{WIDE - 363} {at - 5:.1f}h33" {line}/>')
        parts.append(f'<text x="{WIDE - 322}" y="{at:.1f}" fill="{INK}">{escape(said)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _axes(last, x, y):
    for score in np.arange(LOW, 1 + STEP / 2, STEP):
        dash = ' stroke-dasharray="6 4" stroke="#888"' if abs(score - 0.5) < STEP / 2 else f' stroke="{FAINT}"'
        yield f'<line x1="{x(0)}" x2="{x(last)}" y1="{y(score):.1f}" y2="{y(score):.1f}"{dash}/>'
        yield f'<text x="{x(0) - 10}" y="{y(score) + 5:.1f}" text-anchor="end" fill="{INK}">{score:.1f}</text>'
    for million in range(int(last / 1e6) + 1):
        at = x(million * 1e6)
        yield f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{y(LOW)}" y2="{y(LOW) + 6}" stroke="{INK}"/>'
        yield f'<text x="{at:.1f}" y="{y(LOW) + 22}" text-anchor="middle" fill="{INK}">{million}</text>'
    yield f'<text x="{(x(0) + x(last)) / 2}" y="{HIGH - 12}" text-anchor="middle" fill="{INK}">million decisions</text>'
    yield f'<text x="{x(0) + 8}" y="{y(0.5) + 16:.1f}" fill="#666" font-size="12">0.5: as good as the opponent</text>'
