"""Results are mappings with attributes, and equal the output of the commands."""

from __future__ import annotations

import copy
import inspect
import json
import keyword
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import pytest

import cohkit
from cohkit import types
from cohkit.pages.shapes import misfit
from cohkit.results import Record, Records, fields
from cohkit.units import Quantity

if TYPE_CHECKING:
    from conftest import Command

# All types of results.
RESULT_TYPES = [
    kind for _, kind in inspect.getmembers(types, inspect.isclass) if issubclass(kind, Record) and kind is not Record
]


@pytest.fixture(scope="module")
def results() -> list[Record]:
    """Return results of every fast function."""
    faulty_text = cohkit.shipped("msi").text.replace("remotes 3", "remotes 2")
    return [
        *cohkit.check(cohkit.parse(faulty_text), systems=["three_caches"], coverage=True),
        *cohkit.check("msi", remotes=3, simulate_steps=500, seed=1),
        cohkit.check_model("models/german.m", simulate_steps=500),
        cohkit.table("msi"),
        cohkit.construct("msi-policy"),
        cohkit.platform("enzian-dc-ddr"),
        cohkit.simulate("enzian-dc-bram", "random-read", region=1 << 16, accesses=300, explain=True),
        cohkit.play("enzian-dc-bram", "shared-table", time=2e5),
        cohkit.link("pcie4", dma=4096),
        cohkit.litmus("SB", protocol="mesi", cores="store_buffer", chart=True),
        cohkit.litmus("SB", protocol="mesi", simulate_runs=20),
        *cohkit.mutants("msi", number=3),
    ]


def test_keys_are_identifiers_and_hide_no_mapping_method() -> None:
    methods = set(dir(Record)) - set(get_type_hints(Record))
    for kind in RESULT_TYPES:
        for name in get_type_hints(kind):
            assert name not in methods, f"{kind.__name__}.{name}"
            assert not keyword.iskeyword(name)


def test_attributes_equal_keys_at_every_depth(results: list[Record]) -> None:
    """Visit all results: attributes equal keys, and all types in the list occur."""
    seen: set[type] = set()

    def look(value: Any) -> None:
        """Compare a value and everything in it, and record the types."""
        if isinstance(value, dict):
            for name in get_type_hints(type(value)) if isinstance(value, Record) else ():
                key = name.rstrip("_")
                assert getattr(value, name) == value.get(key), f"{type(value).__name__}.{name}"
            seen.add(type(value))
            list(map(look, value.values()))
        elif isinstance(value, list):
            list(map(look, value))

    for result in results:
        assert misfit(json.loads(json.dumps(result)), type(result)) is None, type(result)
        assert set(result) <= set(fields(type(result))), type(result)
        look(result)
    inner = {
        types.Property,
        types.RowCoverage,
        types.Sizes,
        types.Quantity,
        types.StepLatency,
        types.AccessStep,
        types.Bottleneck,
    }
    assert inner <= seen
    assert {
        types.Times,
        types.Interval,
        types.LinkTransfers,
        types.LitmusOutcome,
        types.RandomWalks,
        types.Sequence,
    } <= seen


def test_results_are_immutable_and_pickle(results: list[Record]) -> None:
    for result in results:
        for copied in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):  # noqa: S301 -- our own
            assert (type(copied), copied, hash(copied)) == (type(result), result, hash(result))
        assert result == json.loads(json.dumps(result))
        with pytest.raises(AttributeError, match="read only"):
            setattr(result, next(iter(get_type_hints(type(result)))), 1)
    with pytest.raises(AttributeError, match="has no attribute 'outcom'"):
        _ = results[0].outcom  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="this Verdict has no `outcome`"):
        _ = types.Verdict().outcome


def test_notebooks_show_results_and_frames_are_made_of_them(results: list[Record]) -> None:
    for result in results:
        html = result._repr_html_()
        assert html == cohkit.show(result).html
        assert result.to_frame().equals(cohkit.to_frame(result))
    verdicts = cohkit.check("msi")
    assert isinstance(verdicts, Records)
    assert verdicts._repr_html_() == cohkit.show(verdicts).html
    assert verdicts.to_frame().equals(cohkit.to_frame(verdicts))
    assert Records([1])._repr_html_() is None
    outcomes = cohkit.show(cohkit.litmus("SB")).text
    assert "0:X2  1:X2" in outcomes
    assert "satisfies" in outcomes


def test_sizes_and_times_are_numbers_too() -> None:
    texts = cohkit.simulate("enzian-dc-bram", "random-read", region="64KiB", accesses=300, set={"link.latency": "60ns"})
    latency = Quantity(60.0, "ns")
    numbers = cohkit.simulate(
        "enzian-dc-bram", "random-read", region=1 << 16, accesses=300, set={"link.latency": latency}
    )
    assert {**texts, "run": None} == {**numbers, "run": None}
    assert texts.workload.region_lines == 512
    result = cohkit.play("enzian-dc-bram", "shared-table", time="200us", warm_up="0.05ms")
    same_result = cohkit.play("enzian-dc-bram", "shared-table", time=2e5, warm_up=50_000)
    assert {**result, "run": None} == {**same_result, "run": None}
    assert result.window_ns == 150_000


def test_mutants_and_traces_match_the_command(cohkit_command: Command, tmp_path: Path) -> None:
    printed = json.loads(cohkit_command("mutants", "msi", "--first", 2, "--stride", 100, "--json").stdout)
    assert cohkit.mutants("msi", first=2, every=100) == printed
    with pytest.raises(cohkit.InputError, match="cannot be used with"):
        cohkit.mutants("msi", number=1, every=2)
    file = tmp_path / "run.json"
    command = ["sim", "enzian-dc-bram", "random-mixed", "--accesses", 200, "--region", "16KiB", "--trace", file]
    assert cohkit_command(*command).returncode == 0
    [judged] = cohkit.trace(file, "eci")
    assert [judged] == json.loads(cohkit_command("trace", file, "--protocol", "eci", "--json").stdout)
    assert (judged.outcome, judged.reason, misfit(judged, types.TraceVerdict)) == ("accepted", None, None)
    with pytest.raises(FileNotFoundError):
        cohkit.trace("nowhere.json", "eci")
    with pytest.raises(cohkit.InputError, match="trace"):
        cohkit.trace({"agents": []}, "eci")


def test_hardware_is_emitted_to_the_requested_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    emitted = cohkit.rtl.emit("eci", out="rtl")
    assert misfit(emitted, types.EmittedHome) is None
    assert (tmp_path / "rtl" / "eci_pkg.sv").is_file()


@pytest.mark.needs("verilator")
def test_hardware_runs_in_lockstep() -> None:
    result = cohkit.rtl.lockstep("eci", seeds=1, shape="small", messages=500)
    assert misfit(result, types.Lockstep) is None
    assert result.mismatches == 0


@pytest.mark.needs("verilator")
def test_accesses_to_a_system_in_hardware_are_measured() -> None:
    result = cohkit.rtl.measure_system("msi", system=[2])
    assert misfit(result, types.SystemMeasurements) is None
    cycles = {latency["access"]: latency["cycles"] for latency in result.latencies}
    assert cycles["load, in this cache"] == 1
    assert cycles["load, not in a cache"] > cycles["load, in this cache"]
    numbers = [(rate["requesters"], rate["outstanding"]) for rate in result.rates]
    assert numbers == [(1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (2, 4)]


@pytest.mark.parametrize("options", [{"parameters": {"Ways": 2}}, {"directory": "set-associative"}])
def test_options_of_systems_need_a_system(options: dict[str, object]) -> None:
    with pytest.raises(cohkit.InputError, match="--system"):
        cohkit.rtl.synth("msi", **options)  # type: ignore[arg-type]


def test_sweep_frame_matches_the_file_of_the_command(
    cohkit_command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The function and the command write equal files, and neither repeats completed points."""
    module_folder, command_folder = tmp_path / "here", tmp_path / "there"
    frame = cohkit.sweep("check", {"remotes": range(1, 4)}, options={"protocol": "msi"}, out=module_folder)
    completed = cohkit_command("check", "msi", "--sweep", "remotes=1..3", "--out", command_folder)
    assert completed.returncode == 0
    assert (module_folder / "results.parquet").read_bytes() == (command_folder / "results.parquet").read_bytes()
    assert frame["states"].to_list() == [15, 403, 4348]
    # Completed points are not repeated, also with workers.
    journal = (module_folder / "journal.jsonl").read_bytes()
    second_frame = cohkit.sweep(
        "check", {"remotes": [1, 2, 3]}, options={"protocol": "msi"}, out=module_folder, workers=2
    )
    assert second_frame.equals(frame)
    assert (module_folder / "journal.jsonl").read_bytes() == journal
    assert capfd.readouterr().err == ""
    invalid_sweeps: list[tuple[str, dict[str, list[int]], str]] = [
        ("chek", {"remotes": [1]}, "did you mean `check`?"),
        ("check", {"remote": [1]}, "did you mean `remotes`?"),
        ("check", {"remotes": []}, "no values"),
    ]
    for command, axes, expected_message in invalid_sweeps:
        with pytest.raises(cohkit.InputError, match=r"cannot be swept|no axis|no values") as error_info:
            cohkit.sweep(command, axes, options={"protocol": "msi"})
        assert expected_message in str(error_info.value)


def test_litmus_test_uses_sizes_of_a_system_and_expected_result() -> None:
    """The sizes of a system change the states; the expectation of the file decides `expected`."""
    test = "litmus/SB.litmus"
    result = cohkit.litmus(test, protocol="mesi")
    assert (result.outcome, result.expected) == ("not_satisfied", None)
    judged = cohkit.litmus(test, protocol="mesi", expect="file")
    assert (judged.outcome, judged.expected) == ("not_satisfied", True)
    text = Path(test).read_text() + "(* Result: Sometimes *)\n"
    assert cohkit.litmus("SB.litmus", text=text.replace("Sometimes", "Never"), model="sc", expect="file").expected
    assert cohkit.litmus("SB.litmus", text=text, model="sc", expect="file").expected is False
    assert cohkit.litmus("SB", protocol="mesi", expect="file", simulate_runs=5).expected is None
    cord = "ordering/cord.coh"
    states = [cohkit.litmus("MP+popl+poap", protocol=cord, system=system).states for system in (None, "pair")]
    assert states[0] != states[1]
    with pytest.raises(cohkit.InputError, match="no system is named `pear`"):
        cohkit.litmus("SB", protocol=cord, system="pear")
    with pytest.raises(cohkit.InputError, match="no sizes of their own"):
        cohkit.litmus("SB", protocol="two-level", system="both")
    with pytest.raises(cohkit.InputError, match="`system` applies to the caches"):
        cohkit.litmus("SB", system="three_caches")
    with pytest.raises(cohkit.InputError, match="`fiel` is not one of condition, file"):
        cohkit.litmus("SB", protocol="mesi", expect="fiel")  # type: ignore[arg-type]
