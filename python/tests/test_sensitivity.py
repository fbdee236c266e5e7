"""Search for published values inside the ranges of assumed quantities, on sums whose answer is known."""

from __future__ import annotations

import itertools
import os
import random
from typing import TYPE_CHECKING

import pytest

from cohkit.experiments import Conditions
from cohkit.experiments.derived import derive
from cohkit.experiments.experiment import Rerun, Span
from cohkit.experiments.sensitivity import deciding, search
from cohkit.published import Measurement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cohkit.experiments.sensitivity import Case


class Sums:
    """Numbers that are sums: a constant, and one term for each quantity at each end of its range."""

    def __init__(self, constants: dict[str, float], terms: dict[tuple[str, str], float]) -> None:
        self.constants = constants
        self.terms = terms
        self.cases: list[Case] = []

    def evaluate(self, cases: Sequence[Case], conditions: Conditions) -> list[float]:  # noqa: ARG002 -- the interface
        self.cases += cases
        return [
            self.constants[name] + sum(self.terms[setting] for setting in settings.items()) for name, settings in cases
        ]

    def spans(self) -> list[Span]:
        return [
            Span(
                name,
                constant,
                [Rerun(quantity, end, constant + term) for (quantity, end), term in self.terms.items()],
            )
            for name, constant in self.constants.items()
        ]


# Ends of the ranges of three quantities.
TERMS = {
    ("latency", "low"): -30.0,
    ("latency", "high"): 60.0,
    ("width", "low"): 10.0,
    ("width", "high"): -20.0,
    ("depth", "high"): 1.0,
}


@pytest.mark.parametrize(
    ("target", "verdict", "value", "settings"),
    [
        (100.0, "met", 100, {}),
        (130.0, "met", 160, {"latency": "high"}),
        (165.0, "met", 170, {"latency": "high", "width": "low"}),
        (172.0, "not met", 171, {"latency": "high", "width": "low", "depth": "high"}),
        (49.0, "not met", 50, {"latency": "low", "width": "high"}),
        (60.0, "met", 50, {"latency": "low", "width": "high"}),
    ],
)
def test_search_finds_the_shortest_sequence(
    target: float,
    verdict: str,
    value: float,
    settings: dict[str, str],
) -> None:
    sums = Sums({"x": 100.0}, TERMS)
    [reach] = search(sums, sums.spans(), {"x": target}, Conditions())
    assert ("met" if reach.is_met else "not met", reach.value, reach.settings) == (verdict, value, settings)
    assert list(reach.settings) == list(settings)


def test_search_agrees_with_every_combination() -> None:
    seed = int(os.environ.get("COHKIT_SEED", "1"))
    generator = random.Random(seed)  # noqa: S311 -- no secret
    command = f"COHKIT_SEED={seed} pytest python/tests/test_sensitivity.py"
    for _ in range(200):
        quantities = [f"q{index}" for index in range(generator.randrange(1, 6))]
        terms = {
            (quantity, end): generator.uniform(-50, 50)
            for quantity in quantities
            for end in ("low", "high")
            if generator.random() < 0.8
        }
        sums = Sums({"a": 100.0, "b": 200.0}, terms)
        targets = {name: constant + generator.uniform(-120, 120) for name, constant in sums.constants.items()}
        ends = [[None, *(end for end in ("low", "high") if (quantity, end) in terms)] for quantity in quantities]
        for reach in search(sums, sums.spans(), targets, Conditions()):
            constant = sums.constants[reach.name]
            totals = [
                constant + sum(terms[quantity, end] for quantity, end in zip(quantities, choice, strict=True) if end)
                for choice in itertools.product(*ends)
            ]
            assert reach.is_met == (min(totals) <= reach.target <= max(totals)), command
            reached = constant + sum(terms[setting] for setting in reach.settings.items())
            assert reach.value == pytest.approx(reached), command
            if reach.is_met and len(reach.settings) > 1:
                shorter = constant + sum(terms[setting] for setting in list(reach.settings.items())[:-1])
                assert (shorter < reach.target) == (constant < reach.target), command


def test_deciding_quantities_have_most_of_the_effect() -> None:
    [span] = Sums({"x": 100.0}, TERMS).spans()
    # Effects: 90 of latency, 30 of width, 1 of depth.
    assert deciding(span) == ["latency", "width"]
    assert deciding(Span("x", 1.0, [Rerun("q", "high", 1.0)])) == []


def test_crossover_is_interpolated_between_sizes() -> None:
    def rows(lead_at_1024: float) -> list[Measurement]:
        card = {64: 1.0, 256: 1.0, 1024: lead_at_1024, 4096: 4.0, 16384: 4.0, 32768: 4.0}
        return [
            *(Measurement("", 2.0, "ns", f"ccix_exp1.latency.reads.dma_registers.{size}") for size in card),
            *(Measurement("", value, "ns", f"ccix_exp1.latency.reads.u280.{size}") for size, value in card.items()),
        ]

    def crossover(measurements: list[Measurement]) -> float | None:
        derived = {row.key: row.value for row in derive("ccix-exp1", measurements)}
        return derived.get("ccix_exp1.crossover.latency.reads.u280")

    # Half of DMA's latency at 1 KiB and twice at 4 KiB: equal in the geometric middle.
    assert crossover(rows(1.0)) == pytest.approx(2048)
    assert crossover(rows(2.0)) == pytest.approx(1024)
    # Without one of the rows, or without a crossover, there is no number.
    assert crossover(rows(1.0)[1:]) is None
    slow = [row._replace(value=1.0) for row in rows(1.0)]
    assert crossover(slow) is None
