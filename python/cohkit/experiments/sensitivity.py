"""Sensitivity of numbers to assumed quantities: those that decide, and the search for published values.

All functions work on an `Evaluator`: numbers by name, as a function of the settings of the quantities.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import combinations, count
from math import comb
from typing import TYPE_CHECKING, NamedTuple

from cohkit.experiments.experiment import BUDGET, Rerun, Span

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

Settings = Mapping[str, str]
"""Quantities that are set, by name."""
Ends = Mapping[str, "Sequence[str]"]
"""Quantities with the ends of their ranges other than their values."""
Compute = Callable[[Settings], Mapping[str, float]]
"""Function that returns the numbers by name. Numbers that do not exist with the settings are absent."""


class Goal(NamedTuple):
    """Published value of a number: the number itself, or its ratio to another number, is to reach the target.

    Attributes:
        name: name of the number.
        target: published number, or the published bound; 1 for an order.
        other: name of the number that the published order relates ours to; empty if there is none.
        is_number: true for a published number. Any value at or beyond a bound or an order meets it, but a number is
            met only at its target.
        is_held: true for a bound or an order that holds without other settings.

    """

    name: str
    target: float
    other: str = ""
    is_number: bool = True
    is_held: bool = False

    def value(self, numbers: Mapping[str, float]) -> float | None:
        """Return the number that is to reach the target, `None` if it does not exist."""
        number = numbers.get(self.name)
        if number is None or not self.other:
            return number
        other = numbers.get(self.other)
        return number / other if other else None


class Reach(NamedTuple):
    """Result of the search for one number."""

    name: str
    target: float
    """Published number, or the published bound that our number violates; 1 for the ratio of an order."""
    is_met: bool
    """True if a setting inside all ranges meets the target."""
    value: float
    """Number with `settings`. If a number is met, the target is within `TOLERANCE` of it, or between it and the number
    without the last setting. A bound or an order that is met is at the target or beyond it."""
    settings: dict[str, str]
    """Quantities at the ends of their ranges, in order of their effect. If a number is met beyond `TOLERANCE`, the last
    quantity is continuous, and needed only in part."""
    other: str = ""
    """Name of the number of a published order; then `value` is the ratio of ours to it. Empty for other targets."""
    held: Mapping[str, str] = {}
    """Quantities that follow from the settings, because fitted sums are held."""


MIN_EFFECT = 1e-4
"""Smallest relative effect of a quantity that takes part in the first sequence."""
DECIDING_SHARE = 0.8
"""Share of all effects that the deciding quantities have together."""
TOLERANCE = 0.005
"""Relative distance to a published number that counts as met: half a unit of the third digit, at most."""


class Evaluator:
    """Numbers with several settings. Each setting is evaluated once."""

    def __init__(
        self, compute: Compute, ends: Ends, budget: int = BUDGET, discrete: Collection[str] = frozenset()
    ) -> None:
        """Set the function, the ranges, and the maximum number of settings of several quantities.

        `discrete` has the names of quantities that cannot have every value between their ends, such as flags and ways.
        """
        self.ends = ends
        self.discrete = frozenset(discrete)
        self._compute = compute
        self._budget = budget
        self._known: dict[frozenset[tuple[str, str]], Mapping[str, float]] = {}

    def single(self, settings: Settings) -> Mapping[str, float]:
        """Return the numbers with at most one quantity set, which the budget does not limit."""
        key = frozenset(settings.items())
        if key not in self._known:
            self._known[key] = self._compute(settings)
        return self._known[key]

    def joint(self, settings: Settings) -> Mapping[str, float] | None:
        """Return the numbers with several quantities set, or `None` if the budget is spent."""
        key = frozenset(settings.items())
        if key not in self._known:
            if not self._budget:
                return None
            self._budget -= 1
        return self.single(settings)

    def share(self, parts: int) -> Callable[[Settings], Mapping[str, float] | None]:
        """Return a function like `joint` that spends at most one of `parts` equal parts of the remaining budget."""
        reserve = self._budget - -(-self._budget // parts)

        def joint(settings: Settings) -> Mapping[str, float] | None:
            is_known = frozenset(settings.items()) in self._known
            return self.joint(settings) if is_known or self._budget > reserve else None

        return joint

    def known(self) -> Iterator[tuple[dict[str, str], Mapping[str, float]]]:
        """Yield all settings that were evaluated with their numbers, in order."""
        for key, numbers in self._known.items():
            yield dict(sorted(key)), numbers


def spans(evaluator: Evaluator) -> list[Span]:
    """Return each number with every quantity at either end of its range, one at a time.

    A number depends only on some parts of a model: quantities of a part without any effect on it are left out.
    """
    baseline = evaluator.single({})
    reruns = [
        (quantity, end, evaluator.single({quantity: end})) for quantity, ends in evaluator.ends.items() for end in ends
    ]
    result = []
    for name, ours in baseline.items():
        values = [Rerun(quantity, end, numbers[name]) for quantity, end, numbers in reruns if name in numbers]
        parts = {_part(rerun.quantity) for rerun in values if rerun.ours != ours}
        result.append(Span(name, ours, [rerun for rerun in values if _part(rerun.quantity) in parts]))
    return result


def _part(quantity: str) -> str:
    """Return the part of the model to which a quantity belongs."""
    return quantity.rpartition(":")[0]


def deciding(span: Span) -> list[str]:
    """Return the fewest quantities that have most of the effect on a number, the most effective one first.

    The effect of a quantity is the distance between the lowest and the highest number over its range.
    """
    numbers: dict[str, list[float]] = {}
    for rerun in span.reruns:
        numbers.setdefault(rerun.quantity, [span.ours]).append(rerun.ours)
    effects = {quantity: max(values) - min(values) for quantity, values in numbers.items()}
    total, share, names = sum(effects.values()), 0.0, []
    for quantity, effect in sorted(effects.items(), key=lambda item: -item[1]):
        if effect == 0 or share >= DECIDING_SHARE * total:
            break
        share += effect
        names.append(quantity)
    return names


def search(evaluator: Evaluator, goals: Sequence[Goal], seed: int) -> list[Reach]:
    """Search for settings inside the ranges with which numbers meet their targets.

    For each number, the search first sets quantities in the order of their effect toward the target, one after the
    other, and finds the shortest such sequence that reaches it. For a number that no such sequence reaches, it looks at
    corners of all ranges in which each pair of ends of two quantities occurs, and changes one quantity at a time from
    the best settings so far. The settings are a function of the seed. A target is not met if no evaluated setting
    reaches it before the budget is spent.

    A bound or an order is met at its target and beyond it. A published number is met by a setting within `TOLERANCE`,
    or between two settings that differ in one continuous quantity: a discrete quantity may jump over the number.

    Numbers that do not exist without settings are left out.
    """
    origin = evaluator.single({})
    reached = {}
    for goal in goals:
        if goal.value(origin) is not None:
            reached[goal] = _sequence(evaluator, goal)
    generator = random.Random(seed)  # noqa: S311 -- no secret
    if not all(reach.is_met for reach in reached.values()):
        for corner in corners(evaluator.ends, generator):
            evaluator.joint(corner)
    for index, (goal, reach) in enumerate(reached.items()):
        if not reach.is_met:
            open_goals = sum(not later.is_met for later in list(reached.values())[index:])
            reached[goal] = _climb(evaluator, goal, generator, open_goals)
    return list(reached.values())


def corners(ends: Ends, generator: random.Random) -> list[dict[str, str]]:
    """Return settings of all quantities such that each pair of ends of two quantities occurs in one of them.

    A quantity with one other end is at this end or unset. The number of settings grows with the logarithm of that of
    quantities (Kleitman and Spencer, Families of k-independent sets, 1973).
    """
    names = list(ends)
    if not names:
        return []
    generator.shuffle(names)
    rows = next(size for size in count(4, 2) if comb(size - 1, size // 2) >= len(names))
    # A column is the set of rows in which a quantity is at its second end; it is at its first end in row 0.
    columns = combinations(range(1, rows), rows // 2)
    settings: list[dict[str, str]] = [{} for _ in range(rows)]
    for name, column in zip(names, columns, strict=False):
        options: list[str | None] = [*ends[name], None][:2]
        generator.shuffle(options)
        for row in range(rows):
            if (end := options[row in column]) is not None:
                settings[row][name] = end
    return settings


def _gap(goal: Goal, origin: float, value: float | None) -> float:
    """Return the distance to the target, 0 or negative if the value is at the target or beyond it."""
    if value is None:
        return float("inf")
    return (goal.target - value) * (1 if goal.target >= origin else -1)


def _sequence(evaluator: Evaluator, goal: Goal) -> Reach:
    """Return the shortest sequence of quantities, ordered by their effect toward the target, that reaches it."""
    origin = goal.value(evaluator.single({}))
    assert origin is not None  # noqa: S101 -- checked before
    is_held = goal.is_held or goal.target == origin
    found = Reach(goal.name, goal.target, is_met=is_held, value=origin, settings={}, other=goal.other)
    if found.is_met:
        return found
    reached = _shortest(evaluator, goal, origin, {}, _toward(evaluator, goal, origin))
    if reached is None:
        return _nearest(evaluator, goal, found)
    settings, value = reached
    if _gap(goal, origin, value) > 0:
        return _nearest(evaluator, goal, found._replace(value=value, settings=settings))
    # Quantities that take effect only together may make earlier ones of the sequence unnecessary.
    settings, value = _reduce(evaluator, goal, origin, settings, value)
    found = found._replace(is_met=not goal.is_number, value=value, settings=settings)
    return found if found.is_met else _meet(evaluator, goal, origin, found)


def _shortest(
    evaluator: Evaluator, goal: Goal, origin: float, base: Settings, sequence: Sequence[tuple[str, str]]
) -> tuple[dict[str, str], float] | None:
    """Return the shortest part of a sequence that reaches the target from a base, with its number.

    If no part reaches the target, return the longest one with a number; `None` if there is none. A simulation may fail
    with all quantities of a sequence: half of them are set then, and so on.
    """

    def evaluate(length: int) -> float | None:
        settings = {**base, **dict(sequence[:length])}
        numbers = evaluator.single(settings) if len(settings) <= 1 else evaluator.joint(settings)
        return None if numbers is None else goal.value(numbers)

    # Lengths of a sequence that is too short, and of one that suffices.
    low, high = 0, len(sequence)
    value = evaluate(high) if high else None
    while value is None and high > 1:
        high //= 2
        value = evaluate(high)
    if value is None:
        return None
    while _gap(goal, origin, value) <= 0 and high - low > 1:
        middle = (low + high) // 2
        shorter = evaluate(middle)
        if shorter is not None and _gap(goal, origin, shorter) <= 0:
            high, value = middle, shorter
        else:
            low = middle
    return {**base, **dict(sequence[:high])}, value


def _meet(evaluator: Evaluator, goal: Goal, origin: float, found: Reach) -> Reach:
    """Decide whether a published number is met by a result at the number or beyond it.

    The number is met if a continuous quantity of the settings crosses it last. If discrete quantities jump over it,
    continuous ones may lead back to it.
    """
    for name in reversed(found.settings):
        if name not in evaluator.discrete:
            fewer = {other: end for other, end in found.settings.items() if other != name}
            numbers = evaluator.single(fewer) if len(fewer) <= 1 else evaluator.joint(fewer)
            value = None if numbers is None else goal.value(numbers)
            if value is not None and _gap(goal, origin, value) > 0:
                return found._replace(is_met=True, settings={**fewer, name: found.settings[name]})
    # Sides are those of the target, as seen from the number that is beyond it.
    sequence = [
        (name, end)
        for name, end in _toward(evaluator, goal, origin, direction=-1)
        if name not in evaluator.discrete and name not in found.settings
    ]
    back = _shortest(evaluator, goal, found.value, found.settings, sequence) if found.value != goal.target else None
    if back is not None and _gap(goal, found.value, back[1]) <= 0:
        settings, value = back
        return found._replace(is_met=True, settings=settings, value=value)
    return _nearest(evaluator, goal, found)


def _nearest(evaluator: Evaluator, goal: Goal, found: Reach) -> Reach:
    """Return the evaluated settings that are nearest to a published number, and met within `TOLERANCE`."""
    if not goal.is_number:
        return found
    results = [(settings, goal.value(numbers)) for settings, numbers in evaluator.known()]
    near = [
        (abs(goal.target - value), len(settings), settings, value) for settings, value in results if value is not None
    ]
    distance, size, settings, value = min(near, key=lambda one: one[:2])
    is_met = distance <= TOLERANCE * abs(goal.target)
    if (distance, size) >= (abs(goal.target - found.value), len(found.settings)):
        return found._replace(is_met=is_met)
    origin = goal.value(evaluator.single({}))
    assert origin is not None  # noqa: S101 -- checked before
    return found._replace(is_met=is_met, value=value, settings=_by_effect(evaluator, goal, settings, origin))


def _toward(evaluator: Evaluator, goal: Goal, origin: float, direction: int = 1) -> list[tuple[str, str]]:
    """Return the quantities with an effect toward the target, each with its more effective end, in that order.

    With direction -1, return those with an effect away from the target.
    """
    direction *= 1 if goal.target > origin else -1
    best: dict[str, tuple[float, str]] = {}
    for quantity, ends in evaluator.ends.items():
        for end in ends:
            value = goal.value(evaluator.single({quantity: end}))
            effect = 0.0 if value is None else (value - origin) * direction
            if effect > MIN_EFFECT * abs(origin) and effect > best.get(quantity, (0.0, ""))[0]:
                best[quantity] = (effect, end)
    ordered = sorted(best.items(), key=lambda item: -item[1][0])
    return [(quantity, end) for quantity, (_, end) in ordered]


def _climb(evaluator: Evaluator, goal: Goal, generator: random.Random, open_goals: int) -> Reach:
    """Change one quantity at a time from the best settings so far, with this goal's share of the remaining budget."""
    origin = goal.value(evaluator.single({}))
    assert origin is not None  # noqa: S101 -- checked before

    def gap(numbers: Mapping[str, float]) -> float:
        return _gap(goal, origin, goal.value(numbers))

    beyond = [item for item in evaluator.known() if goal.is_number and gap(item[1]) <= 0]
    if beyond:
        reach = _end(evaluator, goal, origin, *min(beyond, key=lambda item: len(item[0])))
        if reach.is_met:
            return reach
    # Discrete quantities have jumped over the published number with those settings, so that they are no start.
    start = [item for item in evaluator.known() if not goal.is_number or gap(item[1]) > 0]
    settings, numbers = min(start, key=lambda item: (max(gap(item[1]), 0), len(item[0])))
    share = evaluator.share(open_goals)
    improved = True
    while improved and gap(numbers) > 0:
        improved = False
        for changed in _neighbours(settings, evaluator.ends, generator):
            found = share(changed)
            if found is None or gap(found) >= gap(numbers):
                continue
            if gap(found) <= 0 and goal.is_number:
                reach = _end(evaluator, goal, origin, changed, found)
                if reach.is_met:
                    return reach
                continue
            settings, numbers, improved = changed, found, True
            break
    return _end(evaluator, goal, origin, settings, numbers)


def _end(
    evaluator: Evaluator, goal: Goal, origin: float, settings: dict[str, str], numbers: Mapping[str, float]
) -> Reach:
    """Return the result with the settings at which a climb ended."""
    value = goal.value(numbers)
    assert value is not None  # noqa: S101 -- that of the origin is better than none
    is_reached = _gap(goal, origin, value) <= 0
    if is_reached:
        settings, value = _reduce(evaluator, goal, origin, settings, value)
    ordered = _by_effect(evaluator, goal, settings, origin)
    reach = Reach(goal.name, goal.target, is_reached and not goal.is_number, value, ordered, goal.other)
    if goal.is_number:
        return _meet(evaluator, goal, origin, reach) if is_reached else _nearest(evaluator, goal, reach)
    return reach


def _reduce(
    evaluator: Evaluator, goal: Goal, origin: float, settings: dict[str, str], value: float
) -> tuple[dict[str, str], float]:
    """Unset quantities that the target does not need: halves of them, quarters, and so on to single ones."""
    size = len(settings)
    while size > 1:
        size = (size + 1) // 2
        names = list(settings)
        for start in range(0, len(names), size):
            removed = set(names[start : start + size])
            fewer = {name: end for name, end in settings.items() if name not in removed}
            numbers = evaluator.single(fewer) if len(fewer) <= 1 else evaluator.joint(fewer)
            found = None if numbers is None else goal.value(numbers)
            if found is not None and _gap(goal, origin, found) <= 0:
                settings, value = fewer, found
    return settings, value


def _neighbours(settings: Settings, ends: Ends, generator: random.Random) -> Iterator[dict[str, str]]:
    """Yield settings that differ in one quantity, in random order."""
    changes = [(name, end) for name in ends for end in (*ends[name], None) if settings.get(name) != end]
    generator.shuffle(changes)
    for name, end in changes:
        changed = {other: value for other, value in settings.items() if other != name}
        yield changed if end is None else {**changed, name: end}


def _by_effect(evaluator: Evaluator, goal: Goal, settings: Settings, origin: float) -> dict[str, str]:
    """Order settings by their single effects toward the target, the largest one first."""

    def effect(item: tuple[str, str]) -> float:
        return _gap(goal, origin, goal.value(evaluator.single(dict([item]))))

    return dict(sorted(settings.items(), key=effect))
