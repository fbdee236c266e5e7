"""Sensitivity of numbers to assumed quantities: those that decide, and the search for published values.

All functions work on an `Evaluator`: numbers by name, as a function of the settings of the quantities.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import combinations, count
from math import comb
from typing import TYPE_CHECKING, NamedTuple

from cohkit.experiments.experiment import Rerun, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
        target: published number, or the bound that ours violates; 1 for an order.
        other: name of the number that the published order relates ours to; empty if there is none.

    """

    name: str
    target: float
    other: str = ""

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
    """Number with `settings`; if the target is met, at the target or beyond it."""
    settings: dict[str, str]
    """Quantities at the ends of their ranges, in order of their effect. If the target is met, the last one is needed
    only in part."""
    other: str = ""
    """Name of the number of a published order; then `value` is the ratio of ours to it. Empty for other targets."""


MIN_EFFECT = 1e-4
"""Smallest relative effect of a quantity that takes part in the first sequence."""
DECIDING_SHARE = 0.8
"""Share of all effects that the deciding quantities have together."""
BUDGET = 96
"""Maximum number of settings that the search evaluates for one experiment, after those of single quantities."""


class Evaluator:
    """Numbers with several settings. Each setting is evaluated once."""

    def __init__(self, compute: Compute, ends: Ends, budget: int = BUDGET) -> None:
        """Set the function, the ranges, and the maximum number of settings of several quantities."""
        self.ends = ends
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
    sequence = _toward(evaluator, goal, origin)

    def evaluate(length: int) -> float | None:
        settings = dict(sequence[:length])
        numbers = evaluator.single(settings) if length <= 1 else evaluator.joint(settings)
        return None if numbers is None else goal.value(numbers)

    found = Reach(goal.name, goal.target, is_met=goal.target == origin, value=origin, settings={}, other=goal.other)
    if found.is_met or not sequence:
        return found
    # Lengths of a sequence that is too short, and of one that suffices.
    low, high = 0, len(sequence)
    value = evaluate(high)
    if value is None:
        return found
    found = found._replace(is_met=_gap(goal, origin, value) <= 0, value=value, settings=dict(sequence))
    while found.is_met and high - low > 1:
        middle = (low + high) // 2
        value = evaluate(middle)
        if value is not None and _gap(goal, origin, value) <= 0:
            high, found = middle, found._replace(value=value, settings=dict(sequence[:middle]))
        else:
            low = middle
    if found.is_met:
        # Quantities that take effect only together may make earlier ones of the sequence unnecessary.
        settings, value = _reduce(evaluator, goal, origin, found.settings, found.value)
        found = found._replace(settings=settings, value=value)
    return found


def _toward(evaluator: Evaluator, goal: Goal, origin: float) -> list[tuple[str, str]]:
    """Return the quantities with an effect toward the target, each with its more effective end, in that order."""
    direction = 1 if goal.target > origin else -1
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

    settings, numbers = min(evaluator.known(), key=lambda item: (max(gap(item[1]), 0), len(item[0])))
    share = evaluator.share(open_goals)
    improved = True
    while improved and gap(numbers) > 0:
        improved = False
        for changed in _neighbours(settings, evaluator.ends, generator):
            found = share(changed)
            if found is not None and gap(found) < gap(numbers):
                settings, numbers, improved = changed, found, True
                if gap(found) <= 0:
                    break
    value = goal.value(numbers)
    assert value is not None  # noqa: S101 -- that of the origin is better than none
    if gap(numbers) <= 0:
        settings, value = _reduce(evaluator, goal, origin, settings, value)
    ordered = _by_effect(evaluator, goal, settings, origin)
    return Reach(goal.name, goal.target, gap(numbers) <= 0, value, ordered, goal.other)


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
