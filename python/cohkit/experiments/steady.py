"""Whether a throughput is steady: whether it would be the same if the simulation went on.

A simulation that is too short gives a rate of its beginning. Two things show that. The rate still changes from one part
of the run to the next, as when the first accesses fill an empty pipeline; or caches still fill, so that lines have not
begun to leave them: then the rate may be even and is still that of a machine that has nothing to write back. The first
is asked of every throughput, the second of simulations that were cut short: how far caches fill at full size is part of
what an experiment measures.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cohkit.types import Quarter, Stretch

OFF = 0.02
"""How far a rate may be from that of the third quarter of what happened, besides what chance does to so few."""
TAIL = 0.1
"""How far that of the last quarter may be, in which some cores have come to their end."""
FEWEST = 50
"""Fewer things in a quarter tell nothing."""
FILLED = 0.01
"""Lines that caches may gain for each access of the second half."""
HELD = 0.25
"""Lines that caches may hold in the end for each access of the run: if they hold more, most of the run has filled them.
That they gain none any more does not tell alone, as a line is counted from when it is asked for."""


def even(rate: float, quarters: Sequence[Stretch] | None) -> bool:
    """Tell whether things happened at this rate, in a second, from the second quarter of them on.

    >>> from cohkit.experiments.steady import even
    >>> from cohkit.types import Stretch
    >>> even(1e6, [Stretch(count=500, ns=ns) for ns in (5.1e5, 5e5, 5e5, 5e5)])
    True
    >>> even(1e6, [Stretch(count=500, ns=ns) for ns in (4e5, 4e5, 6e5, 6e5)])
    False

    """
    if quarters is None or quarters[0].count < FEWEST:
        return False
    _, second, third, last = (quarter.count / quarter.ns * 1e9 if quarter.ns else 0 for quarter in quarters)
    if not third:
        return False
    off = OFF + 1 / math.sqrt(quarters[0].count)
    return abs(rate / third - 1) <= off and abs(second / third - 1) <= off and abs(last / third - 1) <= max(off, TAIL)


def filling(quarters: Sequence[Quarter] | None) -> bool:
    """Tell whether caches still gained lines in the second half of the accesses.

    >>> from cohkit.experiments.steady import filling
    >>> from cohkit.types import Quarter
    >>> filling([Quarter(count=500, ns=5e5, lines_cached=lines) for lines in (500, 1000, 1020, 1024)])
    True
    >>> filling([Quarter(count=5000, ns=5e6, lines_cached=lines) for lines in (1024, 1024, 1024, 1024)])
    False
    >>> filling([Quarter(count=500, ns=5e5, lines_cached=lines) for lines in (1600, 2000, 2000, 2000)])
    True

    """
    if quarters is None:
        # Without accesses nothing fills.
        return False
    _, half, third, last = quarters
    gained = last.lines_cached - half.lines_cached
    accesses = sum(quarter.count for quarter in quarters)
    return gained > FILLED * (third.count + last.count) or last.lines_cached > HELD * accesses
