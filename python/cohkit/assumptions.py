"""Sensitivity of an experiment's numbers to its assumed quantities, and the search for its published values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cohkit.errors import Error
from cohkit.experiments.fitted_sums import HeldSums
from cohkit.experiments.sensitivity import Evaluator, Goal, search, spans
from cohkit.experiments.study import Study
from cohkit.published import Bounds, compare

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from cohkit.experiments import Conditions, Experiment, Span
    from cohkit.experiments.sensitivity import Reach
    from cohkit.published import Measurement, Published


class Sensitivity(NamedTuple):
    """Numbers of an experiment with other values of assumed quantities.

    Attributes:
        spans: each number with single quantities at the ends of their ranges.
        reaches: result of the search for each published value.
        seed: seed of the search.
        budget: maximum number of settings of several quantities that the search evaluates.
        evaluated: number of settings that were evaluated.
        failed: number of them with which a simulation failed, so that there are no numbers.
        sums: fitted sums that are held, each in words.
        held: names of the numbers whose published values these sums hold, so that no search is made for them.

    """

    spans: list[Span]
    reaches: list[Reach]
    seed: int
    budget: int
    evaluated: int
    failed: int
    sums: list[str]
    held: Collection[str] = ()


ORDER_MARGIN = 1e-9
"""Relative difference of two numbers that are in an order."""
NOT_STUDIED = Sensitivity([], [], 0, 0, 0, 0, [])
"""Empty result."""


def reduced(experiment: Experiment, conditions: Conditions) -> Conditions:
    """Shorten simulations, because there are many, unless the number of accesses is given."""
    return conditions._replace(accesses=conditions.accesses or experiment.rerun_accesses or None)


def study(
    name: str, experiment: Experiment, ours: Sequence[Measurement], published: Published, conditions: Conditions
) -> Sensitivity:
    """Vary the assumed quantities of an experiment, and search for the published values.

    If any of `ours` has a published value, only such numbers are computed. Sums of quantities that are fitted to a fact
    are held: one quantity of each follows from the others, and no search is made for the values that the sums hold.

    Raises:
        Error: a simulation failed without other values of quantities.

    """
    keys = _keys(ours, published)
    progress = conditions.progress
    shared = Study()
    inner = reduced(experiment, conditions)._replace(progress=None, keys=keys or None, study=shared)
    baseline = experiment.run(inner)
    sums = HeldSums(shared)
    ends = sums.ends()
    total = 1 + sum(map(len, ends.values())) + experiment.rerun_budget
    evaluated, failed = 0, 0

    def compute(settings: Mapping[str, str]) -> dict[str, float]:
        nonlocal evaluated, failed
        evaluated += 1
        if progress:
            progress(min(evaluated, total), total)
        try:
            rows = experiment.run(inner._replace(settings=sums.resolve(settings))) if settings else baseline
        except Error:
            failed += 1
            return {}
        return {row.name: row.value for row in rows if not keys or row.key in keys}

    evaluator = Evaluator(compute, ends, experiment.rerun_budget, discrete=shared.discrete)
    found_spans = spans(evaluator)
    held = {row.name for row in baseline if sums.holds(row.key)}
    all_goals = goals_of(name, baseline, published)
    goals = [goal for goal in all_goals if goal.name not in held]
    reaches = [_with_rests(reach, sums) for reach in search(evaluator, goals, conditions.seed)]
    if progress:
        progress(total, total)
    return Sensitivity(
        found_spans,
        reaches,
        conditions.seed,
        experiment.rerun_budget,
        evaluated,
        failed,
        sums.descriptions(),
        [goal.name for goal in all_goals if goal.name in held],
    )


def _with_rests(reach: Reach, sums: HeldSums) -> Reach:
    """Return the result of a search with the values that the fitted sums allow, and those that follow."""
    resolved = sums.resolve(reach.settings)
    settings = {quantity: resolved.pop(quantity) for quantity in reach.settings}
    return reach._replace(settings=settings, held=resolved)


def _keys(ours: Sequence[Measurement], published: Published) -> frozenset[str]:
    """Return the keys of numbers with a published value, and of those that orders relate them to.

    A number that is published as like another one is compared by eye only, so that no search is made for it.
    """
    keys = set()
    for row in ours:
        claim = published.claim(row.key)
        if claim and claim.relation == "like":
            continue
        if claim or published.value(row.key, unit=row.unit) is not None:
            keys |= {row.key} | ({claim.to} if claim and claim.to else set())
    return frozenset(keys)


def goals_of(experiment: str, ours: Sequence[Measurement], published: Published) -> list[Goal]:
    """Return the published values, bounds and orders of our numbers, with those that hold marked."""
    names = {row.key: row.name for row in ours}
    values = {row.key: row.value for row in ours}
    goals = []
    for row in compare(experiment, ours, published):
        claim = published.claim(row["key"])
        bounds = Bounds(row["at_least"], row["at_most"])
        if row["published"] is not None:
            goals.append(Goal(row["name"], row["published"]))
        elif bounds != Bounds():
            compared = bounds.compared(row["ours"])
            assert compared is not None  # noqa: S101 -- there is a bound
            goals.append(Goal(row["name"], compared, is_number=False, is_held=bounds.hold(row["ours"]) is True))
        elif claim and claim.relation in ("above", "below") and claim.to in names:
            # The ratio of a row is rounded, so that it decides nothing. An equal number is neither above nor below.
            is_above = claim.relation == "above"
            value, other = values[row["key"]], values[claim.to]
            holds = value > other if is_above else value < other
            order = 1 + ORDER_MARGIN if is_above else 1 - ORDER_MARGIN
            goals.append(Goal(row["name"], order, names[claim.to], is_number=False, is_held=holds))
    return goals
