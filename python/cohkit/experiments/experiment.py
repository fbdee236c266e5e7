"""Definition of experiments, and common code of those that simulate."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cohkit.errors import Error
from cohkit.published import Measurement
from cohkit.simulator import platform, simulate_many

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cohkit.experiments.sensitivity import Case, Evaluator
    from cohkit.simulator import Request
    from cohkit.types import Quantity, Simulation


class Conditions(NamedTuple):
    """Execution conditions of experiments. Only `seed` and `accesses` affect the numbers."""

    seed: int = 0
    """Seed of all random numbers."""
    accesses: int | None = None
    """Maximum accesses per simulation, or as described by `limited` of the experiment; full size if `None`."""
    threads: int | None = None
    """Maximum number of parallel simulations; the number of processors if `None`."""
    progress: Callable[[int, int], object] | None = None
    """Called occasionally with the amount of work done and the total."""


class Rerun(NamedTuple):
    """One number, recomputed with one assumed quantity at a bound of its range.

    Attributes:
        quantity: name of the quantity of the platform.
        value: its value, with unit.
        ours: the recomputed number.

    """

    quantity: str
    value: str
    ours: float


class Span(NamedTuple):
    """Sensitivity of one number to the assumptions: its value at this size, and all reruns.

    Attributes:
        name: name of the number.
        ours: the number with all quantities at their values.

    """

    name: str
    ours: float
    reruns: list[Rerun]

    def ends(self) -> tuple[Rerun, Rerun]:
        """Return the reruns with the lowest and the highest number."""
        reruns = [Rerun("", "", self.ours), *self.reruns]
        return min(reruns, key=lambda rerun: rerun.ours), max(reruns, key=lambda rerun: rerun.ours)


class Experiment(NamedTuple):
    """A published table or figure: the function that computes our numbers, and remarks.

    Attributes:
        run: function that computes our numbers.
        note: remark below the table.

    """

    run: Callable[[Conditions], list[Measurement]]
    note: str = ""
    omissions: str = ""
    """Effects that matter in reality but are not modelled. Shown beside the numbers and in the plot."""
    axis: str = ""
    """Plotted quantity with its unit. Without it, nothing is plotted."""
    along: str = ""
    """Horizontal axis with its unit; names of numbers then start with its value. Without it, bars are drawn."""
    logarithmic: str = ""
    """Logarithmic axes: `x`, `y` or both."""
    shares: bool = False
    """True for distributions: a number is the value not exceeded by the share with which its name starts."""
    headline: str = ""
    """Title of the plot: a sentence that is understandable on its own."""
    spans: Callable[[Conditions], list[Span]] | None = None
    """Function that computes the sensitivity of the numbers to the assumptions."""
    evaluator: Evaluator | None = None
    """Computes these numbers with several quantities set at once, to search for published values."""
    rerun_accesses: int = 0
    """Maximum accesses per simulation of these reruns."""
    limited: Callable[[int], str] | None = None
    """Describes the reduction of each simulation for a given number of accesses. `None` if nothing is simulated."""
    needs: Callable[[], str] | None = None
    """Describes what must be installed before the run; an empty text if nothing is missing."""
    title: str = ""
    """Title in lists of experiments. `EXPERIMENTS` has it from the list that the native command prints."""


def accesses_each(accesses: int) -> str:
    """Describe the reduction of simulations to `accesses` accesses."""
    return f"no more than {accesses} access{'' if accesses == 1 else 'es'} each"


class Point(NamedTuple):
    """A number computed by one simulation, and the key of the published one.

    Attributes:
        name: name of the number in the table.
        key: key of the published number.
        request: the simulation.

    """

    name: str
    key: str
    request: Request


class PointExperiment:
    """Numbers computed by simulations, one each.

    `measure` extracts the number from a result. `parts`, if given, returns the terms of which it is the sum. `steady`,
    if given, decides whether a throughput is steady; its second argument is true if the simulation was reduced.
    """

    def __init__(
        self,
        points: Sequence[Point],
        unit: str,
        measure: Callable[[Simulation], float],
        parts: Callable[[Simulation], Mapping[str, float]] = lambda _: {},
        steady: Callable[[Simulation, bool], bool] | None = None,
    ) -> None:
        """Set the points, and the functions that measure them."""
        self.points = points
        self.unit = unit
        self.measure = measure
        self.parts = parts
        self.steady = steady

    def run(self, conditions: Conditions) -> list[Measurement]:
        """Run all simulations, and return our numbers."""
        results = _simulate([(point, {}) for point in self.points], conditions)
        return [
            Measurement(
                point.name,
                self.measure(result),
                self.unit,
                point.key,
                self.parts(result),
                steady=self.steady(result, _is_cut(point.request, conditions)) if self.steady else None,
                cut=_is_cut(point.request, conditions),
            )
            for point, result in zip(self.points, results, strict=True)
        ]

    def spans(self, conditions: Conditions) -> list[Span]:
        """Rerun each simulation with each assumed quantity at either bound of its range, one at a time."""
        unchanged: list[tuple[str, str]] = [("", "")]
        reruns = [(point, name, value) for point in self.points for name, value in [*unchanged, *_ends(point.request)]]
        variants = [(point, {name: value} if name else {}) for point, name, value in reruns]
        results = _simulate(variants, conditions)
        spans: list[Span] = []
        for (point, name, value), result in zip(reruns, results, strict=True):
            ours = self.measure(result)
            if name:
                spans[-1].reruns.append(Rerun(name, value, ours))
            else:
                spans.append(Span(point.name, ours, []))
        return spans

    def evaluate(self, cases: Sequence[Case], conditions: Conditions) -> list[float]:
        """Return the number of each case: the name of a point, and the quantities that are set."""
        points = {point.name: point for point in self.points}
        results = _simulate([(points[name], settings) for name, settings in cases], conditions)
        return [self.measure(result) for result in results]


class JoinedExperiments:
    """Numbers of several experiments whose names differ."""

    def __init__(self, experiments: Sequence[PointExperiment]) -> None:
        """Set the experiments."""
        self.experiments = experiments

    def spans(self, conditions: Conditions) -> list[Span]:
        """Return the sensitivity of all numbers."""
        return [span for experiment in self.experiments for span in experiment.spans(conditions)]

    def evaluate(self, cases: Sequence[Case], conditions: Conditions) -> list[float]:
        """Return the number of each case."""
        values: dict[int, float] = {}
        for experiment in self.experiments:
            names = {point.name for point in experiment.points}
            indices = [index for index, (name, _) in enumerate(cases) if name in names]
            values |= zip(indices, experiment.evaluate([cases[index] for index in indices], conditions), strict=True)
        return [values[index] for index in range(len(cases))]


def _is_cut(request: Request, conditions: Conditions) -> bool:
    """Return true if the conditions reduce the number of accesses of a request."""
    full = request.get("accesses")
    return conditions.accesses is not None and (full is None or conditions.accesses < full)


def _ends(request: Request) -> Iterator[tuple[str, str]]:
    """Yield the assumed quantities of a platform with the bounds of their ranges, except those set by the request."""
    for quantity in platform(request["platform"])["quantities"]:
        if quantity.name not in (request.get("set") or {}):
            for end in (quantity.low, quantity.high):
                if end is not None and end != quantity.value:
                    yield quantity.name, _text(end, quantity)


# For each unit: the larger unit to print, and its size.
_LARGER = {"ps": ("ns", 1e3), "B/s": ("GB/s", 1e9)}


def _text(value: int, quantity: Quantity) -> str:
    """Format a value with a readable unit: `90ns`."""
    unit, scale = _LARGER.get(quantity.unit, (quantity.unit, 1))
    return f"{value / scale:.15g}{'' if unit == 'count' else unit}"


def _simulate(variants: Sequence[tuple[Point, Mapping[str, str]]], conditions: Conditions) -> list[Simulation]:
    """Run the points, each with additional quantities set."""
    requests = []
    for point, settings in variants:
        request = point.request.copy()
        request["set"] = {**(request.get("set") or {}), **settings}
        request["seed"] = conditions.seed
        if conditions.accesses is not None:
            accesses = request.get("accesses")
            request["accesses"] = min(conditions.accesses, accesses or conditions.accesses)
        requests.append(request)
    # Points with equal requests share one simulation.
    distinct = {repr(request): request for request in requests}
    distinct_results = simulate_many(list(distinct.values()), threads=conditions.threads, progress=conditions.progress)
    results_by_request = dict(zip(distinct, distinct_results, strict=True))
    results = [results_by_request[repr(request)] for request in requests]
    for (point, settings), result in zip(variants, results, strict=True):
        if failure := result.failure:
            settings_text = "".join(f" with {name}={value}" for name, value in settings.items())
            raise Error(f"{point.name}{settings_text}: {failure.kind}: {failure.message}")
    return results
