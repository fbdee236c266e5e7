"""Experiments on store ordering between hosts: searches, table sizes, and use of the published tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cohkit.experiments import EXPERIMENTS, Conditions, cord_programs, cord_tables
from cohkit.experiments.cord_programs import ProgramRun, duration
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


def test_published_tables_take_the_bits_of_their_entries() -> None:
    bits = cord_tables._published_bits()  # noqa: SLF001
    assert bits["core"] == 8 * (6 + 32) + 8 * (6 + 8)
    assert bits["directory for each core"] == 64 * (8 * (8 + 32) + 16 * (8 + 6) + 8)
    assert bits["directory for all cores"] == 128 * (6 + 8 + 32) + 256 * (6 + 8 + 6) + 8 * (6 + 8)
    measurements = {measurement.name: measurement for measurement in EXPERIMENTS["cord-table3"].run(Conditions())}
    # 8 cores and 8 directories, over the published area and the bits of 16 MB.
    of_host = 8 * (bits["core"] + bits["directory for all cores"])
    assert measurements["host for all cores, area"].value == pytest.approx(82.642 * of_host / 2**27)
    assert measurements["host for all cores, power"].value == pytest.approx(1761.256 * of_host / 2**27)


def test_chip_model_is_evaluated_at_both_bounds() -> None:
    spans = EXPERIMENTS["cord-table3"].spans
    assert spans is not None
    for span in spans(Conditions()):
        low, high = span.ends()
        assert [low.ours, high.ours] == pytest.approx([span.ours / 2, span.ours * 4])


def test_bytes_per_release_include_all_unpublished_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores within a host count too, although only those between hosts have their bytes counted."""
    # Lines with a header of 16 bytes; 50 more stay in a host.
    traffic = {"Relaxed": {"between": 100, "between_bytes": 100 * (64 + 16)}}
    play = Play.of({"traffic": traffic, "messages": {"Relaxed": 150, "Release": 5}})
    assert cord_programs._bytes_per_release(play, "cxl-8x8") == 150 * 64 / 5  # noqa: SLF001
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
    """Each span has a rerun with more threads and one with another latency, which changes times only."""
    spans = EXPERIMENTS["cord-fig2"].spans
    assert spans is not None
    # One program represents all.
    monkeypatch.setattr(cord_programs, "PROGRAMS", {"pad": cord_programs.PROGRAMS["pad"]})
    spans_by_name = {span.name: span for span in spans(Conditions(accesses=240))}
    assert len(spans_by_name) == 4
    for name, span in spans_by_name.items():
        threads, latency = span.reruns
        assert (threads.quantity, threads.value) == ("threads of a host", "8")
        assert threads.ours != span.ours, name
        # Traffic between hosts does not depend on their distance.
        assert (latency.quantity, latency.ours != span.ours) == ("link.latency", name.endswith("time")), name
    request = ProgramRun("pad", "upi-8x8", "so", threads=8).request(Conditions())
    numbers, quantities = request["numbers"], request["set"]
    assert numbers is not None
    assert quantities is not None
    assert (numbers["homes"], numbers["threads"]) == (8, 64)
    assert (quantities["remotes"], quantities["cores.count"], quantities["hosts.count"]) == (64, 64, 8)
