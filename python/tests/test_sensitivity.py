"""Search for published values inside the ranges of assumed quantities.

Most tests search sums, whose best settings follow on paper or from all combinations. The last ones test numbers that
the search uses: crossovers between sizes, and simulations that are selected by keys.
"""

from __future__ import annotations

import itertools
import os
import random
import tomllib
from typing import TYPE_CHECKING

import pytest

from cohkit.assumptions import goals_of, study
from cohkit.errors import Error
from cohkit.experiments import EXPERIMENTS, Conditions, Experiment
from cohkit.experiments.ccix import CARDS
from cohkit.experiments.derived import derive
from cohkit.experiments.experiment import Rerun, Span
from cohkit.experiments.fitted_sums import HeldSums
from cohkit.experiments.proxics import BULK_SIZES
from cohkit.experiments.sensitivity import TOLERANCE, Evaluator, Goal, _climb, corners, deciding, search, spans
from cohkit.experiments.study import Range, Study
from cohkit.published import Measurement, Published

if TYPE_CHECKING:
    from pathlib import Path

    from cohkit.experiments.sensitivity import Settings


def seeded() -> tuple[int, random.Random, str]:
    """Return the seed of a random test, its generator, and the command that repeats it."""
    seed = int(os.environ.get("COHKIT_SEED", "1"))
    generator = random.Random(seed)  # noqa: S311 -- no secret
    return seed, generator, f"COHKIT_SEED={seed} pytest python/tests/test_sensitivity.py"


class SumModel:
    """Model whose numbers are sums: a constant, and one term for each quantity at each end of its range."""

    def __init__(self, constants: dict[str, float], terms: dict[tuple[str, str], float]) -> None:
        self.constants = constants
        self.terms = terms

    def __call__(self, settings: Settings) -> dict[str, float]:
        added = sum(self.terms[setting] for setting in settings.items())
        return {name: constant + added for name, constant in self.constants.items()}

    def evaluator(self) -> Evaluator:
        ends: dict[str, list[str]] = {}
        for quantity, end in self.terms:
            ends.setdefault(quantity, []).append(end)
        return Evaluator(self, ends)


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
    sums = SumModel({"x": 100.0}, TERMS)
    [reach] = search(sums.evaluator(), [Goal("x", target)], seed=0)
    assert ("met" if reach.is_met else "not met", reach.value, reach.settings) == (verdict, value, settings)
    assert list(reach.settings) == list(settings)


def test_search_agrees_with_every_combination() -> None:
    seed, generator, command = seeded()
    for _ in range(200):
        quantities = [f"q{index}" for index in range(generator.randrange(1, 6))]
        terms = {
            (quantity, end): generator.uniform(-50, 50)
            for quantity in quantities
            for end in ("low", "high")
            if generator.random() < 0.8
        }
        sums = SumModel({"a": 100.0, "b": 200.0}, terms)
        targets = {name: constant + generator.uniform(-120, 120) for name, constant in sums.constants.items()}
        ends = [[None, *(end for end in ("low", "high") if (quantity, end) in terms)] for quantity in quantities]
        for reach in search(sums.evaluator(), list(itertools.starmap(Goal, targets.items())), seed):
            constant = sums.constants[reach.name]
            totals = [
                constant + sum(terms[quantity, end] for quantity, end in zip(quantities, choice, strict=True) if end)
                for choice in itertools.product(*ends)
            ]
            tolerance = TOLERANCE * abs(reach.target)
            assert reach.is_met == (min(totals) - tolerance <= reach.target <= max(totals) + tolerance), command
            reached = constant + sum(terms[setting] for setting in reach.settings.items())
            assert reach.value == pytest.approx(reached), command
            if reach.is_met and len(reach.settings) > 1:
                shorter = constant + sum(terms[setting] for setting in list(reach.settings.items())[:-1])
                assert (shorter < reach.target) == (constant < reach.target), command


def two_stages(settings: Settings) -> dict[str, float]:
    """Return the rate of two stages in a row, each of width 10 or 20, and the latency of both.

    The slower stage limits the rate, so that one wider stage alone changes nothing.
    """
    widths = [20 if settings.get(name) == "high" else 10 for name in ("fetch", "drain")]
    return {"rate": min(widths), "latency": 100 / widths[0] + 100 / widths[1]}


TWO_STAGE_ENDS = {"clock": ["low", "high"], "fetch": ["high"], "colour": ["low"], "drain": ["high"]}


def test_corner_of_two_quantities_together_is_found() -> None:
    """No single quantity has an effect on the rate, but two of them together double it."""
    evaluator = Evaluator(two_stages, TWO_STAGE_ENDS)
    rate, _ = spans(evaluator)
    assert {rerun.ours for rerun in rate.reruns} <= {10}
    reached, missed = search(evaluator, [Goal("rate", 15), Goal("rate", 25)], seed=0)
    assert (reached.is_met, reached.value, set(reached.settings)) == (True, 20, {"fetch", "drain"})
    # On paper: two stages of width 20 pass no more than 20.
    assert (missed.is_met, missed.value) == (False, 20)


def test_climb_adds_one_quantity_after_the_other() -> None:
    """Twelve quantities of +1 each: every change that improves the number is kept."""
    terms = {(f"q{index}", "high"): 1.0 for index in range(12)}
    for is_number in (False, True):
        evaluator = SumModel({"x": 0.0}, terms).evaluator()
        evaluator.single({})
        _, generator, command = seeded()
        reach = _climb(evaluator, Goal("x", 12, is_number=is_number), generator, 1)
        assert (reach.is_met, reach.value, reach.settings) == (True, 12, dict(terms.keys())), command


def test_sequence_is_halved_if_all_its_quantities_together_fail() -> None:
    """A simulation with more than four of eight quantities fails; four of them reach the target."""

    def compute(settings: Settings) -> dict[str, float]:
        return {"x": float(len(settings))} if len(settings) <= 4 else {}

    evaluator = Evaluator(compute, {f"q{index}": ["high"] for index in range(8)}, budget=5)
    [reach] = search(evaluator, [Goal("x", 4)], seed=0)
    assert (reach.is_met, reach.value) == (True, 4)
    assert list(reach.settings) == ["q0", "q1", "q2", "q3"]


@pytest.mark.parametrize(
    ("goal", "discrete", "verdict", "value", "settings"),
    [
        # On paper: the number is 10 or 30.
        (Goal("x", 19), {"closed"}, "not met", 10, {}),
        (Goal("x", 21), {"closed"}, "not met", 30, {"closed": "1"}),
        (Goal("x", 29.9), {"closed"}, "met", 30, {"closed": "1"}),
        # If the quantity is continuous, it is 19 at some value between the ends.
        (Goal("x", 19), set(), "met", 30, {"closed": "1"}),
        # An order or a bound is also met beyond the target.
        (Goal("x", 19, is_number=False), {"closed"}, "met", 30, {"closed": "1"}),
    ],
)
def test_discrete_quantity_jumps_over_a_number(
    goal: Goal, discrete: set[str], verdict: str, value: float, settings: dict[str, str]
) -> None:
    terms = {("closed", "1"): 20.0}
    evaluator = Evaluator(SumModel({"x": 10.0}, terms), {"closed": ["1"]}, discrete=discrete)
    [reach] = search(evaluator, [goal], seed=0)
    assert ("met" if reach.is_met else "not met", reach.value, reach.settings) == (verdict, value, settings)


def test_continuous_quantity_leads_back_to_a_number() -> None:
    """A discrete quantity jumps from 10 to 30; with it, a latency covers 15 to 30."""
    ends = {"closed": ["1"], "latency": ["low"]}
    terms = {("closed", "1"): 20.0, ("latency", "low"): -15.0}
    evaluator = Evaluator(SumModel({"x": 10.0}, terms), ends, discrete={"closed"})
    back, gap = search(evaluator, [Goal("x", 19), Goal("x", 13)], seed=0)
    assert (back.is_met, back.value, back.settings) == (True, 15, {"closed": "1", "latency": "low"})
    assert not gap.is_met


def test_quantities_are_discrete_by_unit() -> None:
    shared = Study()
    EXPERIMENTS["ccix-exp1"].run(Conditions(accesses=2, keys=frozenset(), study=shared))
    shared.assume_platform("enzian-dc-ddr", None, [])
    names = shared.assumptions.keys()
    assert (
        {"enzian-dc-ddr:cores.count", "enzian-dc-ddr:dram.queue_entries", "dma:payload", "dma:tags"}
        <= shared.discrete
        <= names
    )
    assert {
        "enzian-dc-ddr:link.latency",
        "enzian-dc-ddr:link.bandwidth",
        "dma:delay",
        "dma:start",
    } <= names - shared.discrete


def test_configurations_of_ccix_have_no_ranges(root: Path) -> None:
    """An experiment selects translation and the size of pages; they are no uncertain quantities."""
    for card in CARDS:
        platform = tomllib.loads((root / f"platforms/n1sdp-{card}.toml").read_text())
        translation = platform["agents"]["device"]["translation"]
        assert not any("range" in translation[name] for name in ("enabled", "page_size"))
        assert "range" in translation["atc_entries"]


def test_orders_that_hold_are_met_without_settings() -> None:
    """A ratio of 10 to 17 has more digits than a row prints; the comparison uses the numbers."""
    published = Published(
        """
[x]
low = { says = "below high", below = "x.high" }
high = { says = "above low", above = "x.low" }
equal = { says = "above high", above = "x.high" }
bounded = { at_most = "17ns" }
""",
        file="x.toml",
    )
    values = {"low": 10.0, "high": 17.0, "equal": 17.0, "bounded": 10 / 17}
    rows = [Measurement(name, value, "ns", f"x.{name}") for name, value in values.items()]
    goals = goals_of("mine", rows, published)
    assert {goal.name: goal.is_held for goal in goals} == {"low": True, "high": True, "equal": False, "bounded": True}
    sums = SumModel(values, {("q", "high"): -1.0, ("p", "high"): 1.0})
    reaches = {reach.name: reach for reach in search(sums.evaluator(), goals, seed=0)}
    for name in ("low", "high", "bounded"):
        assert (reaches[name].is_met, reaches[name].settings) == (True, {}), name
    assert reaches["low"].value == 10 / 17
    assert not reaches["equal"].is_met
    # A difference below the digits of a row.
    near = [Measurement("low", 1.0, "ns", "x.low"), Measurement("high", 1 + 1e-12, "ns", "x.high")]
    assert [goal.is_held for goal in goals_of("mine", near, published)] == [True, True]


def test_search_ends_with_its_budget() -> None:
    computed: list[dict[str, str]] = []

    def compute(settings: Settings) -> dict[str, float]:
        computed.append(dict(settings))
        return two_stages(settings)

    evaluator = Evaluator(compute, TWO_STAGE_ENDS, budget=3)
    spans(evaluator)
    singles = len(computed)
    search(evaluator, [Goal("rate", 25), Goal("latency", 1)], seed=0)
    assert len(computed) == singles + 3


def test_every_pair_of_ends_occurs_in_a_corner() -> None:
    for size in (1, 2, 3, 4, 10, 11, 40, 130):
        ends = {f"q{index}": ["low", "high"] if index % 3 else ["high"] for index in range(size)}
        settings = corners(ends, random.Random(size))  # noqa: S311 -- no secret
        assert len(settings) <= 12
        options = {name: [*own, None][:2] for name, own in ends.items()}
        for first, second in itertools.combinations(ends, 2):
            occurring = {(one.get(first), one.get(second)) for one in settings}
            assert occurring == set(itertools.product(options[first], options[second])), (size, first, second)


def test_pair_among_many_quantities_is_found_without_the_others() -> None:
    seed, generator, command = seeded()
    for _ in range(100):
        ends = {f"q{index}": ["low", "high"] for index in range(generator.randrange(2, 31))}
        pair = {name: generator.choice(ends[name]) for name in generator.sample(list(ends), 2)}
        small = {name: generator.uniform(-0.1, 0.1) for name in ends}

        def compute(
            settings: Settings, pair: dict[str, str] = pair, small: dict[str, float] = small
        ) -> dict[str, float]:
            both = 50 if pair.items() <= settings.items() else 0
            return {"x": 100 + both + sum(small[name] for name in settings)}

        [reach] = search(Evaluator(compute, ends), [Goal("x", 130)], seed)
        assert reach.is_met, command
        assert reach.settings == pair, command


def test_study_covers_derived_numbers_bounds_and_orders() -> None:
    """An experiment registers its quantities; settings that fail are counted and skipped."""

    def run(conditions: Conditions) -> list[Measurement]:
        if conditions.study:
            conditions.study.assume("card", "latency", ["1ns", "4ns"], is_discrete=False)
            conditions.study.assume("dma", "start", ["1ns"], is_discrete=False)
        latency = float(conditions.settings.get("card:latency", "2ns").removesuffix("ns"))
        start = float(conditions.settings.get("dma:start", "8ns").removesuffix("ns"))
        if (latency, start) == (4, 1):
            raise Error("no progress")
        names = {"card": latency, "dma": start, "card over dma": latency / start}
        rows = [Measurement(name, value, "ns", f"x.{name.replace(' ', '_')}") for name, value in names.items()]
        return [row for row in rows if conditions.keys is None or row.key in conditions.keys]

    published = Published(
        """
[x]
card = { says = "above DMA", above = "x.dma" }
card_over_dma = { published = "0.4ns" }
""",
        file="x.toml",
    )
    experiment = Experiment(run)
    result = study("mine", experiment, run(Conditions()), published, Conditions(seed=3))
    assert [span.name for span in result.spans] == ["card", "dma", "card over dma"]
    assert {rerun.quantity for rerun in result.spans[0].reruns} == {"card:latency"}
    assert {rerun.quantity for rerun in result.spans[2].reruns} == {"card:latency", "dma:start"}
    order, ratio = result.reaches
    assert order.target == pytest.approx(1)
    assert (order.other, order.is_met, order.value) == ("dma", True, 2)
    assert order.settings == {"dma:start": "1ns"}
    # Both together fail, and the first one alone suffices.
    assert (ratio.is_met, ratio.value, ratio.settings) == (True, 2, {"dma:start": "1ns"})
    assert (result.seed, result.failed) == (3, 1)
    assert [goal.name for goal in goals_of("mine", run(Conditions()), published)] == ["card", "card over dma"]


def test_deciding_quantities_have_most_of_the_effect() -> None:
    [span] = spans(SumModel({"x": 100.0}, TERMS).evaluator())
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


def test_crossover_of_smaller_runs_needs_two_sizes() -> None:
    """Smaller runs of proxics-bulk omit large sizes; a crossover before these is the same without them."""

    def crossover(sizes: int) -> float | None:
        # The core is half as fast as the host at 8 KiB, and twice as fast from 32 KiB on.
        core = {size: 0.5 if size <= 8192 else 2.0 for size in BULK_SIZES[:sizes]}
        rows = [Measurement("", 1.0, "GB/s", f"proxics.bulk.copy.host.far_with_hints.{size}") for size in core]
        rows += [Measurement("", value, "GB/s", f"proxics.bulk.copy.core.{size}") for size, value in core.items()]
        return {row.key: row.value for row in derive("proxics-bulk", rows)}.get("proxics.bulk.crossover.copy")

    assert crossover(len(BULK_SIZES)) == crossover(3) == pytest.approx(16384)
    # The core never leads, or there is one size only.
    assert crossover(2) is None
    assert crossover(1) is None


def test_needed_keys_select_simulations_and_keep_numbers() -> None:
    """With keys, an experiment leaves out other numbers, and the needed ones are the same."""
    needed = {
        "rpc-payload": ["enzian.rpc_payload.throughput.lines.best"],
        "ccix-exp1": ["ccix_exp1.single_over_dma.reads.u280.1024", "ccix_exp1.single.writes.u280.64"],
        "cord-fig2": ["cord.acknowledgements.time.CXL.cr"],
    }
    for name, keys in needed.items():
        conditions = Conditions(accesses=2)
        everything = {row.key: row.value for row in EXPERIMENTS[name].run(conditions)}
        selected = {row.key: row.value for row in EXPERIMENTS[name].run(conditions._replace(keys=frozenset(keys)))}
        assert {key: selected[key] for key in keys} == {key: everything[key] for key in keys}
        assert len(selected) < len(everything)


def held_sums(part: str, ranges: dict[str, tuple[str, str, str]]) -> HeldSums:
    """Return the fitted sums of a study of these quantities, each with its value and both ends."""
    shared = Study()
    for name, whole in ranges.items():
        ends = [end for end in whole[1:] if end != whole[0]]
        shared.assume(part, name, ends, is_discrete=False, whole=Range(*whole))
    return HeldSums(shared)


def test_rest_of_a_fitted_sum_follows_its_parts() -> None:
    """The rest of a sum is also a part of the next one: a longer request leaves both sums as they are."""
    sums = held_sums(
        "near-memory",
        {
            "host.request": ("6ns", "2ns", "9ns"),
            "host.fill": ("7ns", "1ns", "20ns"),
            "link.latency": ("100ns", "60ns", "140ns"),
            "device.path": ("200ns", "50ns", "400ns"),
            "dram.controller_latency": ("110ns", "49ns", "232ns"),
            "dram.t_cl": ("14ns", "10ns", "20ns"),
        },
    )
    assert sums.rests == {"near-memory:host.fill", "near-memory:device.path"}
    assert sums.resolve({"near-memory:host.request": "9ns"}) == {
        "near-memory:host.request": "9ns",
        "near-memory:host.fill": "4ns",
    }
    # The path contains the link twice.
    assert sums.resolve({"near-memory:link.latency": "120ns"})["near-memory:device.path"] == "160ns"
    # A quantity outside the sums changes nothing.
    assert sums.resolve({"near-memory:dram.t_cl": "20ns"}) == {"near-memory:dram.t_cl": "20ns"}
    assert sums.ends().keys() == {f"near-memory:{name}" for name in ("host.request", "link.latency", "dram.t_cl")} | {
        "near-memory:dram.controller_latency"
    }


def test_parts_of_a_fitted_sum_go_as_far_as_the_rest_may() -> None:
    sums = held_sums(
        "enzian-dc-bram", {"link.latency": ("100ns", "60ns", "140ns"), "home.latency": ("60ns", "0ns", "160ns")}
    )
    # The path has both twice: 40 ns less of one are 40 ns more of the other.
    assert sums.ends() == {"enzian-dc-bram:home.latency": ("20ns", "100ns")}
    together = held_sums(
        "n1sdp-u280",
        {
            "agents.device.cache.request_latency": ("40ns", "10ns", "60ns"),
            "agents.device.cache.hit_latency": ("60ns", "40ns", "80ns"),
            "agents.device.cache.store_hit_latency": ("40ns", "30ns", "60ns"),
        },
    )
    # Both sums have the request: the narrower one bounds it.
    assert together.ends() == {"n1sdp-u280:agents.device.cache.request_latency": ("20ns", "50ns")}
    assert together.holds("ccix.local_hit.u280.read")
    assert not together.holds("ccix.local_hit.vck5000.read")


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("cckit-table2", "enzian.read_latency.dc_ddr.random"),
        ("cckit-table2", "enzian.read_latency.dc_bram.random"),
        ("cckit-table2", "enzian.read_latency.llc_ddr.random"),
        ("eci-link", "thunderx1_2s_eci_note.latency"),
        ("ccix-exp3", "ccix.local_hit.u280.read"),
        ("ccix-exp3", "ccix.local_hit.vck5000.write"),
    ],
)
def test_simulated_path_has_the_parts_of_its_fitted_sum(name: str, key: str) -> None:
    """Each part of a sum, at an end that the sum allows, leaves the simulated time within 1 %.

    Framed links take messages at clocks, so that their path may take one of 4.35 ns (230 MHz) more or less.
    """
    shared = Study()
    conditions = Conditions(accesses=512, keys=frozenset([key]), study=shared)

    def value(settings: Settings) -> float:
        [found] = [row.value for row in EXPERIMENTS[name].run(conditions._replace(settings=settings)) if row.key == key]
        return found

    before = value({})
    sums = HeldSums(shared)
    assert sums.holds(key)
    [held] = [(part, one) for part, one in sums.sums if any(key.startswith(start) for start in one.keys)]
    part, one = held
    ends = sums.ends()
    parts = [f"{part}:{term}" for term in one.terms if f"{part}:{term}" in ends]
    assert parts
    for quantity in parts:
        for end in ends[quantity]:
            settings = sums.resolve({quantity: end})
            assert len(settings) > 1
            assert value(settings) == pytest.approx(before, rel=0.01, abs=4.4 if name == "eci-link" else None), settings


def test_search_holds_fitted_sums_and_omits_their_values() -> None:
    def run(conditions: Conditions) -> list[Measurement]:
        settings = conditions.settings
        if conditions.study:
            for name, whole in (
                ("delay", ("150ns", "100ns", "200ns")),
                ("memory_latency", ("232ns", "132ns", "332ns")),
            ):
                conditions.study.assume("dma", name, whole[1:], is_discrete=False, whole=Range(*whole))
        delay, memory = (
            float(settings.get(f"dma:{name}", value).removesuffix("ns"))
            for name, value in (("delay", "150ns"), ("memory_latency", "232ns"))
        )
        return [Measurement("write", delay, "ns", "x.write"), Measurement("read", 2 * delay + memory, "ns", "x.read")]

    published = Published(
        '[x]\nsource = "a"\nwrite = "190ns"\nread = "600ns"\n[sources]\na = "an article"\n', file="mine.toml"
    )
    figure = Experiment(run=run)
    result = study("mine", figure, run(Conditions()), published, Conditions())
    write, read = result.reaches
    assert (write.is_met, write.settings, write.held) == (True, {"dma:delay": "200ns"}, {"dma:memory_latency": "132ns"})
    # The sum is 532 ns, whatever its parts.
    assert (read.is_met, read.value) == (False, 532)
    assert result.sums == ["dma:memory_latency follows from 550 ns of a read of 64 bytes (pcie-bench)"]
