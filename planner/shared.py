"""Held-out seeds that two trials drew, as those of two fleets do that began from one plan and were merged. Pure.

Each verdict on them is as good as it says: nobody who chose a candidate had seen its seeds. But two verdicts by the same games
share their luck, and whoever has merged has seen both. So what was decided stays, and a trial that is still open gives
way, to one that is decided or was queued before: its reads on those seeds count for nothing, and it draws fresh ones.
"""

from collections.abc import Mapping

from planner.seeds import Draw, meetings
from planner.standing import Standing


def giving_way(standing: Standing) -> Mapping[Draw, str]:
    """The draws of open trials that are to count for nothing → why. Those of a best that is gone are as good as decided."""
    order = {course.trial.id: course.order for course in standing.open if standing.current(course)}
    found: dict[Draw, str] = {}
    for one, two in meetings(standing.draws):
        first, last = sorted((one, two), key=lambda draw: (draw.whose in order, order.get(draw.whose, ("", ""))))
        if last.whose in order:
            found.setdefault(last, last.drawn_twice(first))
    return found
