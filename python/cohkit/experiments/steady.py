"""Steadiness of a throughput: whether it would stay the same if the simulation continued.

A simulation that is too short measures its warm-up. There are two symptoms. The rate still changes from one part
of the run to the next, for example while the first accesses fill an empty pipeline. Or caches still fill, so that
evictions have not started: the rate may then be even, but is that of a machine without write-backs. The first test
applies to every throughput. The second applies only to reduced simulations, because at full size the filling of
caches is part of the experiment.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cohkit.types import Interval, Quarter

MAX_DEVIATION = 0.02
"""Maximum relative deviation of a rate from that of the third quarter of the events, in addition to sampling error."""
MAX_TAIL_DEVIATION = 0.1
"""Maximum relative deviation of the last quarter's rate, in which some cores have already finished."""
MIN_EVENTS = 50
"""Minimum events per quarter for a decision."""
MAX_GAINED = 0.01
"""Maximum lines gained by caches per access, in the second half of the accesses."""
MAX_HELD = 0.25
"""Maximum lines held by caches at the end per access of the run: with more, most of the run has filled the caches.
The number of lines gained is not sufficient, because a line is counted from its request on."""


def is_even(rate: float, quarters: Sequence[Interval] | None) -> bool:
    """Return whether events occurred at this rate, per second, from the second quarter of them on.

    >>> from cohkit.experiments.steady import is_even
    >>> from cohkit.types import Interval
    >>> is_even(1e6, [Interval(count=500, ns=ns) for ns in (5.1e5, 5e5, 5e5, 5e5)])
    True
    >>> is_even(1e6, [Interval(count=500, ns=ns) for ns in (4e5, 4e5, 6e5, 6e5)])
    False

    """
    if quarters is None or quarters[0].count < MIN_EVENTS:
        return False
    _, second, third, last = (quarter.count / quarter.ns * 1e9 if quarter.ns else 0 for quarter in quarters)
    if not third:
        return False
    tolerance = MAX_DEVIATION + 1 / math.sqrt(quarters[0].count)
    return (
        abs(rate / third - 1) <= tolerance
        and abs(second / third - 1) <= tolerance
        and abs(last / third - 1) <= max(tolerance, MAX_TAIL_DEVIATION)
    )


def is_filling(quarters: Sequence[Quarter] | None) -> bool:
    """Return whether caches still gained lines in the second half of the accesses.

    >>> from cohkit.experiments.steady import is_filling
    >>> from cohkit.types import Quarter
    >>> is_filling([Quarter(count=500, ns=5e5, lines_cached=lines) for lines in (500, 1000, 1020, 1024)])
    True
    >>> is_filling([Quarter(count=5000, ns=5e6, lines_cached=lines) for lines in (1024, 1024, 1024, 1024)])
    False
    >>> is_filling([Quarter(count=500, ns=5e5, lines_cached=lines) for lines in (1600, 2000, 2000, 2000)])
    True

    """
    if quarters is None:
        # Without accesses, no cache is filled.
        return False
    _, half, third, last = quarters
    gained = last.lines_cached - half.lines_cached
    accesses = sum(quarter.count for quarter in quarters)
    return gained > MAX_GAINED * (third.count + last.count) or last.lines_cached > MAX_HELD * accesses
