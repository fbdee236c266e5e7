"""Reading, checking, tabulating and drawing protocols: results of the command, and rejected input."""

from __future__ import annotations

import copy
import json
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cohkit
from cohkit import types
from cohkit.published import Measurement, Published, compare

if TYPE_CHECKING:
    from conftest import Command

# ECI with a policy that leaves shared copies where none may remain.
FAULTY_ECI = cohkit.shipped("eci").text.replace("{ ensure others(r) == I;", "{ ensure others(r) <= S;")


def without_run(value: Any) -> Any:
    """Return a result without the entry `run`, which depends on the machine."""
    return {key: item for key, item in value.items() if key != "run"}


def test_all_errors_of_a_text_are_listed_with_their_places() -> None:
    text = "protocol p {\n  line 64\n  chanels { }\n}\nsystem one { remotes 900; lines 1 }\n"
    with pytest.raises(cohkit.TextError) as error_info:
        cohkit.parse(text, file="some/p.coh")
    error = error_info.value
    assert (error.file, error.line, error.column) == ("some/p.coh", 1, 12)
    assert len(error.diagnostics) > 1
    assert "--> some/p.coh:1:12" in str(error)
    assert str(error).count("error[") == len(error.diagnostics)
    for diagnostic in error.diagnostics:
        assert set(diagnostic) == set(get_type_hints(types.Diagnostic))
        assert (diagnostic["line"], diagnostic["column"]) <= (diagnostic["end_line"], diagnostic["end_column"])


# Regression: 3,500 of them overflowed the stack of the interpreter, and 20,000 that of the command.
@pytest.mark.parametrize("count", [1000, 3500, 20_000])
def test_first_excess_row_of_a_state_and_event_is_an_error(count: int) -> None:
    msi = cohkit.shipped("msi").text
    row = "  IM_AD SM_AD    | InvAck  "
    before, _ = msi.split(row)
    guarded = "  IM_AD SM_AD | InvAck if early > 200 | early += 1 | stay\n"
    with pytest.raises(cohkit.TextError) as error_info:
        cohkit.check(cohkit.parse(msi.replace(row, guarded * count + row), file="rows.coh"), remotes=2, lines=1)
    error = error_info.value
    assert error.diagnostics[0]["message"] == "more than 1000 rows for one state and event"
    assert (error.file, error.line, error.column) == ("rows.coh", before.count("\n") + 1001, 3)


@settings(deadline=None, max_examples=200)
@given(st.text(max_size=80), st.integers(0, len(FAULTY_ECI)), st.integers(0, 30))
def test_any_text_is_a_protocol_or_a_text_error(noise: str, place: int, cut: int) -> None:
    text = FAULTY_ECI[:place] + noise + FAULTY_ECI[place + cut :]
    lines = text.count("\n") + 1
    try:
        protocol = cohkit.parse(text, file="noise.coh")
    except cohkit.TextError as error:
        assert all(1 <= diagnostic["line"] <= lines and diagnostic["column"] >= 1 for diagnostic in error.diagnostics)
    else:
        assert protocol.text == text


def test_file_that_is_not_utf8_is_reported_with_its_location(tmp_path: Path) -> None:
    """Files with other encodings, missing files, and compositions in place of protocols, each with its advice."""
    file = tmp_path / "binary.coh"
    file.write_bytes("protocol\n é".encode() + b"\xff")
    with pytest.raises(cohkit.TextError, match="byte 12 is not UTF-8") as error_info:
        cohkit.read(file)
    assert (error_info.value.line, error_info.value.column) == (2, 3)
    file.write_text("protocol p", encoding="utf-16")
    with pytest.raises(cohkit.TextError, match="this is encoded in UTF-16; save it in UTF-8"):
        cohkit.read(file)
    file.write_bytes(b"protocol p\rline 64 bytes\r")
    with pytest.raises(cohkit.TextError, match="1:11: its lines end in carriage returns only; save it with"):
        cohkit.read(file)
    with pytest.raises(FileNotFoundError, match="no such file or shipped protocol; there are back-invalidate"):
        cohkit.read(tmp_path / "none.coh")
    with pytest.raises(FileNotFoundError, match=r"did you mean `mesi`\? "):
        cohkit.check("mesl")
    with pytest.raises(
        FileNotFoundError, match=r"did you mean `two-level`\? there are .*eci-both, eci-near.*, two-level,"
    ):
        cohkit.check("two-levl")
    with pytest.raises(cohkit.InputError, match=r"`cohkit.check_model`"):
        cohkit.check("tests/murphi/peterson.m")
    with pytest.raises(FileNotFoundError, match=r"`cohkit.shipped\('msi'\)` gives the shipped protocol"):
        cohkit.read("msi")
    with pytest.raises(FileNotFoundError, match=r"`cohkit.composition\('two-level'\)` gives the shipped composition"):
        cohkit.read("two-level")
    with pytest.raises(cohkit.InputError, match=r"composes others: `cohkit.composition\('two-level'\)` gives it"):
        cohkit.shipped("two-level")


@pytest.mark.parametrize(
    ("options", "expected_message"),
    [
        ({"systems": ["nowhere"]}, "no system is named `nowhere`; the systems are `one_line`, `two_lines`, `two_cpus`"),
        ({"remotes": 9}, "`remotes` is 1 to 8"),
        ({"lines": 0}, "`lines` is 1 to 4"),
        ({"lines": 1, "systems": ["one_line"]}, "not both"),
        ({"capacity": 256}, "`capacity` is 1 to 255, not 256"),
        ({"threads": 0}, "`threads` is a positive number, not 0"),
        ({"max_states": -1}, "`max_states` is a positive number, not -1"),
        ({"max_memory_bytes": 2**70}, "`max_memory_bytes` is a positive number"),
        ({"max_state": 5}, "there is no option `max_state`; did you mean `max_states`?"),
        ({"seed": 1}, "`seed` applies to random walks: give `simulate_steps`"),
        ({"simulate_steps": 5, "seed": -1}, "`seed` is a number below"),
        ({"simulate_steps": 5, "coverage": True}, "random walks have no `coverage`"),
        ({"checkpoint": "a", "resume": "a"}, "not both"),
        ({"hash_compaction": True, "coverage": True}, "`coverage` needs the expanded states"),
        ({"hash_compaction": True, "simulate_steps": 5}, "random walks keep no states"),
        ({"disk": True}, "`disk` keeps states in a folder: give `checkpoint` or `resume` with it"),
        ({"disk": True, "checkpoint": "nowhere", "coverage": True}, "`coverage` excludes `disk`"),
        ({"checkpoint_every_seconds": 0}, "`checkpoint_every_seconds` is a positive number, not 0"),
        ({"resume": "no/such/folder"}, "contains no checkpoints"),
    ],
)
def test_invalid_check_arguments_are_rejected_by_name(options: dict[str, Any], expected_message: str) -> None:
    with pytest.raises(cohkit.InputError, match=expected_message):
        cohkit.check(cohkit.shipped("eci"), **options)


@pytest.mark.parametrize("name", ["msi", "msi-policy"])
def test_verdicts_match_the_command(name: str, cohkit_command: Command) -> None:
    printed = json.loads(cohkit_command("check", f"protocols/{name}.coh", "--max-states", 1999, "--json").stdout)
    verdicts = cohkit.check(cohkit.shipped(name), max_states=1999)
    assert list(map(without_run, verdicts)) == list(map(without_run, printed))
    assert {"undecided"} <= {verdict["outcome"] for verdict in verdicts}
    left_out = {"bounds", "coverage", "omission_probability", "programs", "undecided_progress", "walks"}
    for verdict in verdicts:
        assert set(verdict) == set(get_type_hints(types.Verdict)) - left_out
        assert set(verdict["properties"][0]) == set(get_type_hints(types.Property))


@pytest.mark.parametrize("agent", ["home", "remote"])
def test_tables_match_the_command(agent: Any, cohkit_command: Command) -> None:
    arguments = ["table", "protocols/eci.coh", "--agent", agent, "--merged", "--json"]
    printed = json.loads(cohkit_command(*arguments).stdout)
    table = cohkit.table(cohkit.shipped("eci"), agent=agent, merged=True)
    assert without_run(table) == without_run(printed)
    assert set(table) == set(get_type_hints(types.Table))
    assert set(table["rows"][0]) == set(get_type_hints(types.Row))
    with pytest.raises(cohkit.InputError, match="'home' or 'remote'"):
        cohkit.table(cohkit.shipped("eci"), agent="mine")  # type: ignore[arg-type]


def test_construction_sizes_match_its_tables() -> None:
    eci = cohkit.shipped("eci")
    construction = cohkit.construct(eci)
    assert set(construction) == set(get_type_hints(types.Construction))
    for merged, sizes in ((False, construction["home"]), (True, construction["merged"])):
        table = cohkit.table(eci, merged=merged)
        assert sizes == {key: table[key] for key in get_type_hints(types.Sizes)}
    assert construction["fault"] is None
    with pytest.raises(cohkit.InputError, match="hand-written"):
        cohkit.construct(cohkit.shipped("msi"))


def test_violation_has_a_sequence_that_can_be_drawn(tmp_path: Path, cohkit_command: Command) -> None:
    [verdict] = cohkit.check(cohkit.parse(FAULTY_ECI), systems=["two_cpus"])
    assert verdict["outcome"] == "violated"
    counterexample = verdict["counterexample"]
    assert counterexample is not None
    # Steps as texts belong to sequences of levels, and to paths under fairness.
    assert set(counterexample) == set(get_type_hints(types.Counterexample)) - {"steps", "repeats_from"}
    [sequence] = counterexample["sequences"]
    file = tmp_path / "broken.coh"
    file.write_text(FAULTY_ECI)
    assert cohkit.chart_text(sequence) in cohkit_command("check", file, "--system", "two_cpus").stdout
    assert cohkit.chart_text(sequence, ascii_only=True).isascii()
    assert "<title>broken" in cohkit.chart_svg(sequence, title="broken")


def test_fault_names_and_shows_its_location() -> None:
    protocol = cohkit.read("tests/construction/ambiguous-answer.coh")
    with pytest.raises(cohkit.FaultError, match=r"ambiguous-answer.coh:\d+:\d+: dead end: ") as error_info:
        cohkit.table(protocol)
    fault = error_info.value.fault
    assert set(fault) == set(get_type_hints(types.Fault))
    assert cohkit.construct(protocol)["fault"] == fault
    assert cohkit.chart_text(fault["sequences"][0])


@pytest.mark.parametrize("invalid_sequence", [{}, {"agents": [], "steps": [{}]}, {"agents": "cpu", "steps": []}])
def test_invalid_sequences_are_rejected(invalid_sequence: Any) -> None:
    with pytest.raises(ValueError, match="this is not a message sequence"):
        cohkit.chart_text(invalid_sequence)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 3), st.text(max_size=5)), max_size=8))
def test_any_sequence_is_drawn(steps: list[tuple[int, int, int, str]]) -> None:
    sequence: dict[str, Any] = {"agents": ["cpu", "home"], "steps": []}
    for agent, to, flight, message in steps:
        action = {"kind": "send", "message": message, "to": to, "flight": flight}
        sequence["steps"].append({"agent": agent, "action": action, "visible": True})
    assert cohkit.chart_text(sequence, width=40)
    assert cohkit.chart_svg(sequence).endswith("</svg>\n")


# Program with a search that does not end within the test.
LONG_SEARCH = (
    "import cohkit; print('ready', flush=True); cohkit.check(cohkit.shipped('moesi'), remotes=4, lines=4, threads=1)"
)


def test_interrupt_ends_a_long_search_soon() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", LONG_SEARCH], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    # The search would take hours.
    _, errors = process.communicate(timeout=120)
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_other_threads_run_during_a_search() -> None:
    counted = 0
    search_ended = threading.Event()

    def count() -> None:
        nonlocal counted
        while not search_ended.wait(0.001):
            counted += 1

    counter = threading.Thread(target=count)
    counter.start()
    cohkit.check(cohkit.shipped("msi"), systems=["three_caches"], threads=1)
    search_ended.set()
    counter.join()
    assert counted > 10


def test_check_accepts_paths_names_and_one_system(tmp_path: Path) -> None:
    """Regression: the letters of a single name were taken as names of systems, and a path was not accepted."""
    file = tmp_path / "own.coh"
    file.write_bytes(Path("protocols/msi.coh").read_bytes())
    for protocol in ("msi", file, str(file), cohkit.shipped("msi")):
        [verdict] = cohkit.check(protocol, systems="three_caches")
        assert (verdict["outcome"], verdict["states"]) == ("verified", 4348)
    with pytest.raises(OSError, match=r"nowhere\.coh"):
        cohkit.check("nowhere.coh")
    with pytest.raises(
        FileNotFoundError,
        match="there are back-invalidate, ccix, chi, clusters, cxl-bias, cxl-cache, cxl-mem, cxl-type2, eci, eci-both",
    ):
        cohkit.check("mse")
    with pytest.raises(cohkit.InputError, match=r"use `cohkit\.parse` for it"):
        cohkit.check(cohkit.shipped("msi").text)


def test_protocols_and_results_go_through_pickle_and_compare(tmp_path: Path) -> None:
    """Regression: protocols could not be sent to a pool of processes."""
    msi = cohkit.shipped("msi")
    for copied in (pickle.loads(pickle.dumps(msi)), copy.deepcopy(msi)):  # noqa: S301 -- what was dumped here
        assert copied == msi
        assert hash(copied) == hash(msi)
        assert (copied.text, copied.file, copied.systems) == (msi.text, msi.file, msi.systems)
    assert msi != cohkit.shipped("mesi")
    assert msi != "msi"
    assert len({msi, cohkit.shipped("msi"), cohkit.shipped("mesi")}) == 2
    file = tmp_path / "msi.coh"
    file.write_text(msi.text)
    assert cohkit.read(file) != msi, "it came from elsewhere, which messages say"
    [verdict] = cohkit.check("msi", systems="three_caches")
    assert pickle.loads(pickle.dumps(verdict)) == verdict  # noqa: S301 -- what was dumped here


def test_worker_processes_accept_requests_and_return_results() -> None:
    """Regression: an error of a worker that could not be unpickled stopped the pool."""
    msi, machine = cohkit.shipped("msi"), cohkit.Machine("enzian-dc-ddr").with_settings({"link.latency": "200ns"})
    trace = cohkit.memory_trace([0x80, 0x100], name="two")
    invalid_text = "protocol p { line 64; channels { up } }"
    fault = cohkit.read("tests/construction/ambiguous-answer-proven.coh")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        verdicts = pool.submit(cohkit.check, msi, remotes=2)
        simulated = pool.submit(cohkit.simulate, machine, trace)
        refused: list[Future[Any]] = [
            pool.submit(cohkit.parse, invalid_text, file="p.coh"),
            pool.submit(cohkit.table, fault),
            pool.submit(cohkit.Machine, "nowhere"),
        ]
        assert [without_run(v) for v in verdicts.result(60)] == [without_run(v) for v in cohkit.check(msi, remotes=2)]
        assert simulated.result(60)["statistics"] == cohkit.simulate(machine, trace)["statistics"]
        text, policy, name = (future.exception(60) for future in refused)
    assert isinstance(text, cohkit.TextError)
    assert (text.file, text.line, text.column, text.diagnostics[0]["code"]) == ("p.coh", 1, 12, "syntax")
    assert isinstance(policy, cohkit.FaultError)
    assert (policy.fault["kind"], policy.fault["line"]) == ("unbounded", 58)
    assert isinstance(name, cohkit.InputError)
    for error in (text, policy, name):
        for copied in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):  # noqa: S301 -- what was dumped here
            assert (type(copied), str(copied)) == (type(error), str(error))


def test_every_result_is_compared_pickled_and_hashed() -> None:
    """Regression: dictionaries cannot be elements of a set or keys of a cache."""
    threads = {"threads": 2, "device": 5, "thread": 5, "rows": 8, "contended": 1000}

    def results() -> dict[str, Any]:
        msi = cohkit.shipped("msi")
        published = Published('[a]\nlatency = "200ns"', file="a.toml")
        return {
            "Verdict": cohkit.check(msi, remotes=2)[0],
            "ModelVerdict": cohkit.check_model("models/german.m"),
            "Table": cohkit.table(msi),
            "Construction": cohkit.construct(cohkit.shipped("eci")),
            "System": cohkit.systems(msi)[0],
            "Platform": cohkit.platform("enzian-dc-ddr"),
            "Simulation": cohkit.simulate("enzian-dc-ddr", "random-read", region="1MiB", accesses=100),
            "Play": cohkit.play("enzian-dc-ddr", "shared-table", numbers=threads),
            "Result": compare("mine", [Measurement("latency", 0.21, "us", "a.latency")], published)[0],
        }

    first_results, second_results = results(), results()
    for name, result in first_results.items():
        assert isinstance(result, dict)
        second_result = second_results[name]
        # Machine-dependent values differ between runs.
        assert without_run(result) == without_run(second_result), name
        for copied in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):  # noqa: S301 -- what was dumped here
            assert copied == result, name
            assert hash(copied) == hash(result), name
            assert len({copied, result}) == 1, name
    assert hash(first_results["Table"]) == hash(second_results["Table"])
    assert len(set(first_results.values())) == len(first_results)
