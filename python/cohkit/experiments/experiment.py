"""What an experiment is, and what those that simulate have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cohkit.errors import Error
from cohkit.published import Ours
from cohkit.simulator import platform, simulate_many

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cohkit.simulator import Request
    from cohkit.types import Quantity, Simulation


class Conditions(NamedTuple):
    """How experiments are run. The numbers depend on `seed` and `accesses` only."""

    seed: int = 0
    """What everything random follows from."""
    accesses: int | None = None
    """Most accesses of a simulation, or what `limited` of its experiment says; full size if not given."""
    threads: int | None = None
    """Most simulations at a time; as many as there are processors if not given."""
    progress: Callable[[int, int], object] | None = None
    """Told now and then how much is done, and how much there is to do."""


class Rerun(NamedTuple):
    """What one number becomes when one assumed value is at an end of its range."""

    quantity: str
    value: str
    ours: float


class Span(NamedTuple):
    """How far one number moves within what is assumed: itself at this size, and all reruns."""

    name: str
    ours: float
    reruns: list[Rerun]

    def ends(self) -> tuple[Rerun, Rerun]:
        """Give the lowest and the highest."""
        all_of_them = [Rerun("", "", self.ours), *self.reruns]
        return min(all_of_them, key=lambda rerun: rerun.ours), max(all_of_them, key=lambda rerun: rerun.ours)


class Experiment(NamedTuple):
    """A published table or figure: what it shows, the work that gives our numbers, and what to know of them."""

    title: str
    run: Callable[[Conditions], list[Ours]]
    note: str = ""
    left_out: str = ""
    """What matters in reality and is not modelled; it is told beside the numbers and in the plot."""
    axis: str = ""
    """The quantity to plot, with its unit; nothing is plotted without it."""
    along: str = ""
    """What it is plotted against, with its unit: names of numbers then begin with it. Bars are drawn otherwise."""
    logarithmic: str = ""
    """The axes that are logarithmic: `x`, `y` or both."""
    shares: bool = False
    """Whether a number is what a share does not exceed, which its name begins with: distributions are then drawn."""
    headline: str = ""
    """The title of the plot: a sentence that can be read without the rest."""
    spans: Callable[[Conditions], list[Span]] | None = None
    """How far the numbers move within what is assumed; the work that finds it out."""
    rerun_accesses: int = 0
    """Most accesses of each simulation then."""
    limited: Callable[[int], str] | None = None
    """What each simulation is cut to where so many accesses are asked for; nothing is simulated without it."""
    needs: Callable[[], str] | None = None
    """What is to be installed before it can be run, in words; nothing if all is there."""


def accesses_each(accesses: int) -> str:
    """Say what simulations are cut to that are given so many accesses."""
    return f"no more than {accesses} access{'' if accesses == 1 else 'es'} each"


class Point(NamedTuple):
    """A number that one simulation gives, and the key of the published one."""

    name: str
    key: str
    request: Request


class Measured:
    """Numbers that simulations give, one each.

    `measure` takes the number from a result, and `parts`, if given, tells what it is the sum of. `steady`, if given,
    judges it as a throughput, and is told whether the simulation was cut short.
    """

    def __init__(
        self,
        points: Sequence[Point],
        unit: str,
        measure: Callable[[Simulation], float],
        parts: Callable[[Simulation], Mapping[str, float]] = lambda _: {},
        steady: Callable[[Simulation, bool], bool] | None = None,
    ) -> None:
        """Keep what is measured where, and how."""
        self.points = points
        self.unit = unit
        self.measure = measure
        self.parts = parts
        self.steady = steady

    def run(self, conditions: Conditions) -> list[Ours]:
        """Run all simulations."""
        results = _simulate([(point, {}) for point in self.points], conditions)
        return [
            Ours(
                at.name,
                self.measure(got),
                self.unit,
                at.key,
                self.parts(got),
                steady=self.steady(got, _is_cut(at.request, conditions)) if self.steady else None,
                cut=_is_cut(at.request, conditions),
            )
            for at, got in zip(self.points, results, strict=True)
        ]

    def spans(self, conditions: Conditions) -> list[Span]:
        """Run each simulation again with each value that is assumed at either end of its range, one at a time."""
        as_it_is: list[tuple[str, str]] = [("", "")]
        tried = [(at, name, value) for at in self.points for name, value in [*as_it_is, *_ends(at.request)]]
        variants = [(at, {name: value} if name else {}) for at, name, value in tried]
        results = _simulate(variants, conditions)
        spans: list[Span] = []
        for (at, name, value), result in zip(tried, results, strict=True):
            ours = self.measure(result)
            if name:
                spans[-1].reruns.append(Rerun(name, value, ours))
            else:
                spans.append(Span(at.name, ours, []))
        return spans


def _is_cut(request: Request, conditions: Conditions) -> bool:
    full = request.get("accesses")
    return conditions.accesses is not None and (full is None or conditions.accesses < full)


def _ends(request: Request) -> Iterator[tuple[str, str]]:
    """Give the assumed quantities of a platform with the ends of their ranges, but for those that are set anyway."""
    for quantity in platform(request["platform"])["quantities"]:
        if quantity.name not in (request.get("set") or {}):
            for end in (quantity.low, quantity.high):
                if end is not None and end != quantity.value:
                    yield quantity.name, _text(end, quantity)


# Of each unit the larger one that people use, and how many it is.
_LARGER = {"ps": ("ns", 1e3), "B/s": ("GB/s", 1e9)}


def _text(value: int, quantity: Quantity) -> str:
    """Write a value as people do: `90ns`."""
    unit, scale = _LARGER.get(quantity.unit, (quantity.unit, 1))
    return f"{value / scale:.15g}{'' if unit == 'count' else unit}"


def _simulate(variants: Sequence[tuple[Point, Mapping[str, str]]], conditions: Conditions) -> list[Simulation]:
    """Run points, each with quantities set besides."""
    requests = []
    for point, settings in variants:
        request = point.request.copy()
        request["set"] = {**(request.get("set") or {}), **settings}
        request["seed"] = conditions.seed
        if conditions.accesses is not None:
            accesses = request.get("accesses")
            request["accesses"] = min(conditions.accesses, accesses or conditions.accesses)
        requests.append(request)
    results = simulate_many(requests, threads=conditions.threads, progress=conditions.progress)
    for (point, settings), result in zip(variants, results, strict=True):
        if failure := result.failure:
            where = "".join(f" with {name}={value}" for name, value in settings.items())
            raise Error(f"{point.name}{where}: {failure.kind}: {failure.message}")
    return results
