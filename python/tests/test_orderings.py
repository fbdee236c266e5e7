"""Experiments on store ordering between hosts: searches, table sizes, and use of the published tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cohkit.assumptions import study
from cohkit.experiments import EXPERIMENTS, Conditions, cord_programs, cord_tables
from cohkit.experiments.cord_programs import ProgramRun, duration
from cohkit.experiments.small_rams import Ram, Technology, cell_cost, ram_cost
from cohkit.experiments.study import Study
from cohkit.published import Published, compare
from cohkit.types import Play

if TYPE_CHECKING:
    from collections.abc import Sequence

# Entries of each table below which the stub's runs are slow.
MINIMUM_SIZES = {"entries": 5, "counters": 3, "slots": 2, "notes": 4}


def test_smallest_tables_without_time_cost_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for table sizes finds the known minimum sizes with few runs, which are replaced by a stub."""
    requested_runs: list[ProgramRun] = []

    def play_runs_stub(runs: Sequence[ProgramRun], _: Conditions) -> dict[str, Play]:
        """Return runs that are slow unless each table has at least its minimum number of entries."""
        requested_runs.extend(runs)
        times = {}
        for run in runs:
            assert run.sizes is not None
            is_slow = any(run.sizes[table] < minimum for table, minimum in MINIMUM_SIZES.items())
            mean = 1002.0 if is_slow else 1000.0
            times[repr(run)] = Play.of({"durations_ns": {"done": {"mean": mean}}, "failure": None})
        return times

    monkeypatch.setattr(cord_tables, "play_runs", play_runs_stub)
    run = ProgramRun("pr", "cxl-8x8", "cord")
    [smallest] = cord_tables._smallest_tables([run], Conditions()).values()  # noqa: SLF001
    assert (smallest.sizes, smallest.largest_ns, duration(smallest.play)) == (MINIMUM_SIZES, 1000, 1000)
    assert len(requested_runs) < 20


# Area in mm2 and static power in mW of the published tables.
PUBLISHED_TABLES = {"8": (0.033, 4.621), "8x16": (0.045, 7.776), "16x16": (0.058, 11.057)}


def test_small_rams_grow_like_the_published_tables() -> None:
    measurements = {measurement.name: measurement.value for measurement in EXPERIMENTS["cord-table3"].run(Conditions())}
    for table, (area, power) in PUBLISHED_TABLES.items():
        # The model leaves out the wiring of a bank around its array.
        assert 0.04 < measurements[f"{table} entries, area"] / area < 0.25
        assert 0.25 < measurements[f"{table} entries, power"] / power < 0.7
        assert 0.4 < measurements[f"{table} entries, energy"] / 0.02 < 1
    # Additional entries take no further periphery but rows.
    for table, larger_table in (("8", "8x16"), ("8x16", "16x16")):
        added = measurements[f"{larger_table} entries, power"] - measurements[f"{table} entries, power"]
        assert added == pytest.approx(PUBLISHED_TABLES[larger_table][1] - PUBLISHED_TABLES[table][1], rel=0.1)
    for quantity in ("area", "power"):
        small, *others = [measurements[f"{table} entries, {quantity}"] for table in PUBLISHED_TABLES]
        assert measurements[f"core, {quantity}"] == pytest.approx(2 * small)
        assert measurements[f"directory, {quantity}"] == pytest.approx(small + sum(others))
        host = measurements[f"core, {quantity}"] + measurements[f"directory, {quantity}"]
        assert measurements[f"host, {quantity}"] == pytest.approx(8 * host)


def test_periphery_dominates_a_small_ram() -> None:
    technology = Technology()
    cell = cell_cost(technology)
    # A cell: 146 F2, and three of its six transistors are off.
    assert cell.square_um == pytest.approx(146 * 0.022**2)
    assert cell.leakage_w == pytest.approx((1.31 + 1.23 + 2.08) * 0.022 * 4.256e-7 * 0.8)
    for ram in (Ram(8, 40), Ram(8, 512)):
        cost = ram_cost(ram)
        assert cost.square_um > 2 * ram.entries * ram.bits * cell.square_um
        assert cost.leakage_w > 2 * ram.entries * ram.bits * cell.leakage_w
    # In a large RAM, an entry adds its cells, its decoder and its driver, and no further column.
    added = ram_cost(Ram(257, 512)).leakage_w - ram_cost(Ram(256, 512)).leakage_w
    assert added < 1.6 * 512 * cell.leakage_w
    assert ram_cost(Ram(64, 40)).access_j < ram_cost(Ram(64, 80)).access_j


def test_chip_model_is_evaluated_at_both_bounds() -> None:
    figure = EXPERIMENTS["cord-table3"]
    result = study("cord-table3", figure, figure.run(Conditions()), Published.shipped(), Conditions())
    by_name = {span.name: span for span in result.spans}
    area, power, energy = (by_name[f"8 entries, {quantity}"] for quantity in ("area", "power", "energy"))
    low, high = area.ends()
    assert low.value == "0.1 fF/um"
    assert high.ours == pytest.approx(area.ours / 1.1 * 2)
    assert [end.value for end in power.ends()] == ["300 K", "400 K"]
    assert [end.value for end in energy.ends()] == ["0.1 fF/um", "0.4 fF/um"]


def test_means_are_geometric_over_programs_with_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cord_programs, "PROGRAMS", {name: cord_programs.PROGRAMS[name] for name in ("trns", "cr")})
    measurements = EXPERIMENTS["cord-fig7"].run(Conditions(accesses=800))
    values = {measurement.key: measurement.value for measurement in measurements}
    for measure in ("time", "traffic"):
        for machine in ("CXL", "UPI"):
            for ordering in ("so", "mp", "wb"):
                key = f"cord.programs.{measure}.{machine}"
                programs = [values[f"{key}.{name}.{ordering}"] for name in ("trns", "cr")]
                assert values[f"{key}.mean.{ordering}"] == pytest.approx((programs[0] * programs[1]) ** 0.5)


def test_bytes_per_release_include_all_unpublished_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores within a host count too, although only those between hosts have their bytes counted."""
    # Lines with a header of 16 bytes; 50 more stay in a host.
    traffic = {"Relaxed": {"between": 100, "between_bytes": 100 * (64 + 16)}}
    play = Play.of({"traffic": traffic, "messages": {"Relaxed": 150, "Release": 5}})
    assert cord_programs._bytes_per_release(play, "cxl-8x8", Conditions()) == 150 * 64 / 5  # noqa: SLF001
    monkeypatch.setattr(cord_programs, "PROGRAMS", {name: cord_programs.PROGRAMS[name] for name in ("trns", "cr")})
    measurements = [
        measurement
        for measurement in EXPERIMENTS["cord-fig7"].run(Conditions(accesses=12800))
        if measurement.unit == "B"
    ]
    trns, cr = compare("cord-fig7", measurements, Published.shipped())
    assert (trns["name"], trns["published"], cr["says"]) == (
        "trns, CXL, stored for each release",
        512,
        "8 B to 2 KB",
    )
    # For each matrix, a barrier of each thread with seven others also releases.
    assert 400 < trns["ours"] < 512
    assert cr["holds"]


def test_sensitivity_varies_threads_and_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are assumed quantities; another latency changes times only, other threads also traffic."""
    # One program represents all.
    monkeypatch.setattr(cord_programs, "PROGRAMS", {"pad": cord_programs.PROGRAMS["pad"]})
    figure, shared = EXPERIMENTS["cord-fig2"], Study()

    def numbers(**settings: str) -> dict[str, float]:
        names = {"threads": "programs:threads of a host", "latency": "cxl-8x8:link.latency"}
        changed = {names[name]: value for name, value in settings.items()}
        rows = figure.run(Conditions(accesses=240, settings=changed, study=shared))
        return {row.name: row.value for row in rows}

    baseline = numbers()
    assert len(baseline) == 4
    assert shared.assumptions["programs:threads of a host"] == ("8",)
    assert shared.assumptions["cxl-8x8:link.latency"] == ("75ns",)
    threads, latency = numbers(threads="8"), numbers(latency="75ns")
    for name, value in baseline.items():
        assert threads[name] != value, name
        # Traffic between hosts does not depend on their distance, and UPI is another machine.
        assert (latency[name] != value) == (name == "pad, CXL, time"), name
    request = ProgramRun("pad", "upi-8x8", "so", threads=8).request(Conditions())
    parameters, quantities = request["numbers"], request["set"]
    assert parameters is not None
    assert quantities is not None
    assert (parameters["homes"], parameters["threads"]) == (8, 64)
    assert (quantities["remotes"], quantities["cores.count"], quantities["hosts.count"]) == (64, 64, 8)
