"""Definition of experiments, and common code of those that simulate."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from cohkit.errors import Error
from cohkit.experiments.study import run_once, settings_of
from cohkit.published import Measurement
from cohkit.simulator import simulate_many

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cohkit.experiments.study import Study
    from cohkit.player import Request as PlayRequest
    from cohkit.simulator import Request
    from cohkit.types import Simulation

_Request = TypeVar("_Request", "Request", "PlayRequest")


class Conditions(NamedTuple):
    """Execution conditions of experiments. Only `seed`, `accesses` and `settings` affect the numbers."""

    seed: int = 0
    """Seed of all random numbers."""
    accesses: int | None = None
    """Maximum accesses per simulation, or as described by `limited` of the experiment; full size if `None`."""
    threads: int | None = None
    """Maximum number of parallel simulations; the number of processors if `None`."""
    progress: Callable[[int, int], object] | None = None
    """Called occasionally with the amount of work done and the total."""
    settings: Mapping[str, str] = {}
    """Assumed quantities with other values, by machine and name: `{"enzian-dc-ddr:link.latency": "60ns"}`."""
    keys: frozenset[str] | None = None
    """Keys of the numbers that are needed; others may be left out. `None` if all are needed."""
    study: Study | None = None
    """Results of earlier runs, which are not computed again."""


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


BUDGET = 96
"""Maximum number of settings that a search evaluates for one experiment, after those of single quantities."""


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
    has_assumptions: bool = True
    """True if numbers depend on assumed quantities, which `--sensitivity` varies."""
    rerun_accesses: int = 0
    """Maximum accesses per simulation with other values of assumed quantities; full size if 0."""
    rerun_budget: int = BUDGET
    """Maximum number of settings of several quantities that the search evaluates: fewer if a run takes long."""
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
        points = [point for point in self.points if conditions.keys is None or point.key in conditions.keys]
        results = _simulate(points, conditions)
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
            for point, result in zip(points, results, strict=True)
        ]


def _is_cut(request: Request, conditions: Conditions) -> bool:
    """Return true if the conditions reduce the number of accesses of a request."""
    full = request.get("accesses")
    return conditions.accesses is not None and (full is None or conditions.accesses < full)


def vary(request: _Request, conditions: Conditions) -> _Request:
    """Return a request with the settings of its platform that the conditions have and the request has not.

    Registers the assumed quantities of the platform in the study.
    """
    own = request.get("set") or {}
    name = str(request["platform"])
    if conditions.study:
        protocol = request.get("protocol")
        conditions.study.assume_platform(name, protocol if isinstance(protocol, str | None) else "", own)
    if not (changed := settings_of(name, conditions.settings)):
        return request
    varied = request.copy()
    varied["set"] = {**changed, **own}
    return varied


def _simulate(points: Sequence[Point], conditions: Conditions) -> list[Simulation]:
    """Run the points. Points with equal requests share one simulation."""
    requests = []
    for point in points:
        request = vary(point.request, conditions).copy()
        request["seed"] = conditions.seed
        if conditions.accesses is not None:
            accesses = request.get("accesses")
            request["accesses"] = min(conditions.accesses, accesses or conditions.accesses)
        requests.append(request)

    def run(pending: list[Request]) -> Sequence[Simulation]:
        return simulate_many(pending, threads=conditions.threads, progress=conditions.progress)

    results = run_once(requests, run, conditions.study)
    for point, result in zip(points, results, strict=True):
        if failure := result.failure:
            settings = "".join(f" with {name}={value}" for name, value in conditions.settings.items())
            raise Error(f"{point.name}{settings}: {failure.kind}: {failure.message}")
    return results
