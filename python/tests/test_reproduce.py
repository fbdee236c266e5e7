"""`cohkit reproduce`, started by the native command."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import pytest

from cohkit import __version__, platform, types
from cohkit.__main__ import main
from cohkit.experiments import EXPERIMENTS, Experiment, programs
from cohkit.experiments.programs import CYCLE_S, MCC_CYCLE_S, assumptions
from cohkit.protocols import shipped_file
from cohkit.published import COUNT, Measurement

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conftest import Command


def test_published_numbers_are_printed_beside_ours(cohkit_command: Command) -> None:
    completed = cohkit_command("reproduce", "eci-home")
    assert (completed.returncode, completed.stderr) == (0, "")
    title, _, heads, first, *_ = completed.stdout.splitlines()
    assert title.startswith("eci-home: ")
    assert heads.split() == ["published", "ours", "error", "how"]
    name, published, ours, error, how = first.split()
    assert (name, published, how) == ("states", "79", "known")
    assert float(error.rstrip("%")) == pytest.approx((int(ours) / 79 - 1) * 100, abs=0.06)


def test_write_medians_are_those_of_stores(cohkit_command: Command) -> None:
    """Regression: writes used the median of loads, of which there are none, and a hit took 0 ns."""
    completed = cohkit_command("reproduce", "ccix-exp3", "--json", "--accesses", 1000)
    medians = {row["name"]: row["ours"] for row in json.loads(completed.stdout)}
    for card in ("u280", "vck5000"):
        values = {quantity.name: quantity.value for quantity in platform(f"n1sdp-{card}").quantities}
        load, store = (values[f"agents.device.cache.{name}"] for name in ("hit_latency", "store_hit_latency"))
        assert medians[f"hit, write, {card}"] > 50
        difference = medians[f"hit, read, {card}"] - medians[f"hit, write, {card}"]
        # Times are on the clock of the card.
        assert difference == pytest.approx((load - store) / 1000, abs=2)


@pytest.mark.needs("riscv-gcc")
def test_rows_as_json_do_not_depend_on_threads(cohkit_command: Command) -> None:
    options = ["--json", "--accesses", 1000, "--threads"]
    multi_threaded = json.loads(cohkit_command("reproduce", "all", *options, 64).stdout)
    assert {row["experiment"] for row in multi_threaded} == set(EXPERIMENTS)
    for row in multi_threaded:
        assert list(row) == list(get_type_hints(types.Result))
    assert [row["published"] for row in multi_threaded[:3]] == [79, 304, 25]
    # One of each module of experiments, each with several simulations.
    names = ["eci-home", "cckit-fig6", "cckit-fig7", "cckit-table3", "ccix-exp3", "cord-fig2", "cord-scale"]
    names += ["locktable", "proxics-table1", "proxics-compute"]
    single_threaded = cohkit_command("reproduce", *names, *options, 1).stdout
    # Only the command line differs.
    command = " ".join(names)
    rows = json.loads(single_threaded.replace(command, "all").replace("--threads 1", "--threads 64"))
    assert rows == [row for name in names for row in multi_threaded if row["experiment"] == name]


@pytest.mark.parametrize("name", [name for name, experiment in EXPERIMENTS.items() if experiment.limited])
def test_single_access_gives_a_result_or_a_message(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An experiment of limited simulated time may record no event, and then names the missing count or duration."""
    timed = {
        "cckit-fig7": "0 %, FPGA: no `increments` in",
        "cckit-fig8": "1, with prefetcher: no `lines read` in",
        "cckit-fig10": "1 %, lines, 1 context: no `call` in",
        "locktable": "1, coherent, host latency: no `host lock` in",
        "ccix-locktable": "1, host latency: no `host lock` in",
        "symmetric-vs-asymmetric": "64, table 10 %, ECI, time: no `increments` in",
    }
    code = main(["reproduce", name, "--accesses", "1"])
    out, err = capsys.readouterr()
    if name in timed:
        assert (code, out, err) == (2, "", f"error: {name}: {timed[name]} 100 ns; more accesses are needed\n")
    else:
        assert (code, err) == (0, "")
        assert out.splitlines()[1].startswith("(no more than ")


def test_experiments_with_missing_requirements_are_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    two = {name: EXPERIMENTS[name] for name in ("eci-home", "proxics-gups")}
    monkeypatch.setattr("cohkit.reproduce.EXPERIMENTS", two)
    monkeypatch.setenv("PATH", "/nonexistent")
    lacks = (
        "programs for RISC-V are compiled by `riscv64-unknown-elf-gcc`: the Debian packages `gcc-riscv64-unknown-elf` "
        "and `picolibc-riscv64-unknown-elf` bring it and its C library\n"
    )
    assert main(["reproduce", "proxics-gups"]) == 4
    assert capsys.readouterr() == ("", f"error: {lacks}")
    assert main(["reproduce", "all"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("eci-home: ")
    assert "proxics-gups" not in out
    assert err == f"note: proxics-gups is left out: {lacks}"


def test_access_limit_is_respected_and_printed_with_its_unit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The limit reduces the size of each run but does not enlarge it, and is stated in words."""
    seen: list[Any] = []

    def look(plays: Iterable[Any], **_: object) -> list[Any]:
        """Record the requested runs, and end the experiment."""
        seen.extend(plays)
        raise KeyboardInterrupt

    def plays(name: str, accesses: int) -> list[Any]:
        """Return the runs that an experiment requests with this limit."""
        seen.clear()
        main(["reproduce", name, "--accesses", str(accesses)])
        return list(seen)

    monkeypatch.setattr("cohkit.experiments.plays.play_many", look)
    for name, number, full in [("cckit-table3", "lines", 16384), ("rpc-payload", "calls", 20)]:
        assert {play["numbers"][number] for play in plays(name, 10)} == {10}
        assert {play["numbers"][number] for play in plays(name, 10**6)} == {full}
    assert {play["numbers"]["outstanding"] for play in plays("cckit-table3", 10)} == {1, 10}
    for name in ("cckit-fig7", "cckit-fig8", "cckit-fig10", "locktable", "ccix-locktable"):
        assert {(play["time"], play["warm_up"]) for play in plays(name, 10)} == {("2000ns", "1000ns")}
    # A transaction appends the number of rows in its name, or is omitted.
    views = [play["numbers"] for play in plays("cckit-fig9", 1)]
    assert {view["scale"] for view in views} == {1}
    assert {view["updates"] for view in views} == {1, 10, 100}
    views = [play["numbers"] for play in plays("cckit-fig9", 10**9)]
    assert {(view["scale"], view["updates"]) for view in views} == {
        (scale, 10**power) for scale in (500, 1000) for power in range(6)
    }
    assert capsys.readouterr().out == ""
    limits = {name: item.limited(10) for name, item in EXPERIMENTS.items() if item.limited}
    assert limits["cckit-table2"] == limits["cckit-fig6"] == "no more than 10 accesses each"
    assert limits["cckit-table3"] == "no more than 10 lines each"
    assert limits["rpc-payload"] == "no more than 10 calls of each thread"
    assert limits["cckit-fig7"] == "no more than 1 us each, after no more than 1 us of warm-up"
    rows = "no more than 1500 rows in a table, of which a transaction appends no more than 300"
    assert limits["cckit-fig9"] == rows


def test_reproduce_without_arguments_lists_experiments(cohkit_command: Command) -> None:
    listed = cohkit_command("reproduce").stdout
    assert [line.split()[0] for line in listed.splitlines()] == list(EXPERIMENTS)


def test_experiment_list_is_json_with_the_json_option(cohkit_command: Command) -> None:
    listed = json.loads(cohkit_command("reproduce", "--json").stdout)
    assert listed == [{"name": name, "title": experiment.title} for name, experiment in EXPERIMENTS.items()]


def test_number_without_published_value_is_marked_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measurements = [
        Measurement("speed", 12.345678, "GiB/s", "kept.speed"),
        Measurement("messages", 8388608, COUNT, "kept.messages"),
    ]
    monkeypatch.setitem(EXPERIMENTS, "mine", Experiment(lambda _: measurements, title="Mine"))
    assert main(["reproduce", "mine"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[3:]]
    blind = ["predicted", "blind"]
    assert rows[:2] == [["speed", "kept", "12.35", "GiB/s", *blind], ["messages", "kept", "8388608", *blind]]
    assert " ".join(rows[3]).startswith("Kept: the published number, if there is one,")


@pytest.mark.parametrize(
    ("text", "code", "expected_message"),
    [
        ("[enzian.state_machine]\nstates = 80\n", 2, "enzian.state_machine.states is 80, but"),
        ("[enzian\n", 2, "Expected ']'"),
        (None, 2, "No such file"),
    ],
)
def test_invalid_file_of_published_numbers_is_reported(
    text: str | None, code: int, expected_message: str, tmp_path: Path, cohkit_command: Command
) -> None:
    file = tmp_path / "kept.toml"
    if text is not None:
        file.write_text(text)
    completed = cohkit_command("reproduce", "eci-home", "--published", file)
    assert (completed.returncode, completed.stdout) == (code, "")
    assert completed.stderr.startswith(f"error: {file}: ")
    assert expected_message in completed.stderr
    assert completed.stderr.count("\n") == 1


def test_unknown_experiment_is_rejected_with_the_known_ones(cohkit_command: Command) -> None:
    completed = cohkit_command("reproduce", "table9")
    assert (completed.returncode, completed.stdout) == (2, "")
    assert completed.stderr == f"error: there is no experiment `table9`; there are {', '.join(EXPERIMENTS)}\n"
    assert cohkit_command("reproduce", "--jsn").returncode == 2
    assert cohkit_command("reproduce", "--help").returncode == 0


def test_rows_and_plots_go_to_a_folder(tmp_path: Path, cohkit_command: Command) -> None:
    """Files are complete, the same in a second run, and equal to the printed rows."""
    folder = tmp_path / "new" / "out"
    names = ["eci-home", "cckit-table2", "cckit-fig6"]
    command = ["reproduce", *names, "--accesses", 500, "--out", folder]
    completed = cohkit_command(*command)
    assert (completed.returncode, completed.stderr) == (0, "")
    plots = ["cckit-fig6.svg", "cckit-table2.svg"]
    assert sorted(file.name for file in folder.iterdir()) == sorted([f"{name}.json" for name in names] + plots)
    for plot in plots:
        assert f"\nplot: {folder / plot}\n" in completed.stdout
    written = {file.name: file.read_bytes() for file in folder.iterdir()}
    cohkit_command(*command)
    assert written == {file.name: file.read_bytes() for file in folder.iterdir()}
    printed = cohkit_command(*command, "--json")
    rows = [row for name in names for row in json.loads(written[f"{name}.json"])]
    line = shlex.join(["cohkit", *map(str, command)])
    assert [row.pop("run") for row in rows] == [{"command": line, "version": __version__}] * len(rows)
    assert rows == [{key: row[key] for key in row if key != "run"} for row in json.loads(printed.stdout)]
    assert f"plot: {folder / 'cckit-fig6.svg'}\n" in printed.stderr
    assert not [name for name in written if name.startswith(".")]


def test_unwritable_folder_is_reported_before_the_run(tmp_path: Path, cohkit_command: Command) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    says_file = f"error: {file}: Not a directory\n"
    for folder, expected_message in [(file, says_file), (file / "below", says_file), ("/proc/none", "")]:
        # At full size this would take long.
        completed = cohkit_command("reproduce", "cckit-fig6", "--out", folder)
        assert (completed.returncode, completed.stdout) == (4, ""), folder
        assert completed.stderr.startswith("error: ")
        assert expected_message in completed.stderr
        assert completed.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == [file]


def test_closed_output_pipe_is_not_an_error() -> None:
    command = f"{sys.executable} -m cohkit reproduce eci-home"
    completed = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{command} | true"], capture_output=True, text=True, check=False
    )
    assert (completed.returncode, completed.stderr) == (0, "")


def test_interrupt_ends_with_its_code_and_writes_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cohkit", "reproduce", "cckit-table2", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # Simulations run in separate threads.
    while len(list(Path(f"/proc/{process.pid}/task").iterdir())) == 1:
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=120)
    assert (process.returncode, printed, errors) == (130, "", "interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_command_without_the_package_reports_it(tmp_path: Path) -> None:
    """A copy of the command in another folder finds no Python, one without the package, or one that fails."""
    command_copy = tmp_path / "cohkit"
    shutil.copy2(Path(sys.executable).parent / "cohkit", command_copy)
    environment = {"PATH": str(tmp_path)}
    completed = subprocess.run(
        [command_copy, "reproduce", "eci-home"], env=environment, capture_output=True, text=True, check=False
    )
    assert (completed.returncode, completed.stdout) == (4, "")
    needs = "error: `cohkit reproduce` needs the Python package cohkit\n"
    assert completed.stderr.startswith(needs + "  `python3` is not installed\n  `python` is not installed\n")
    # A Python without the package and one that does not run are distinguished.
    for name, text in [("python3", "exit 1"), ("python", "exit 2")]:
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    completed = subprocess.run(
        [command_copy, "reproduce", "eci-home"], env=environment, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 4
    assert "python3` does not have it\n" in completed.stderr
    assert "python` cannot be queried: it ends with exit status: 2\n" in completed.stderr
    assert "pip install" in completed.stderr


def test_module_is_a_command_of_the_same_version(cohkit_command: Command) -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "cohkit", "--version"], capture_output=True, text=True, check=False
    )
    assert completed.stdout == cohkit_command("--version").stdout == f"cohkit {__version__}\n"


def test_notes_of_an_experiment_follow_its_table(cohkit_command: Command) -> None:
    assert cohkit_command("reproduce", "eci-home").stdout.endswith(f"known\n\n{EXPERIMENTS['eci-home'].note}")


def test_program_cycle_time_matches_the_machine() -> None:
    machine = tomllib.loads(shipped_file("nearmemory/enzian.toml"))
    assert machine["host"]["cycle"]["value"] == f"{CYCLE_S * 1e12:.0f}ps"
    of_a_core = machine["device"]["cycle"]["value"]
    assert of_a_core == "1 cycle at 300MHz"
    assert f"{MCC_CYCLE_S * 1e12:.0f}" == f"{1e12 / 300e6:.0f}"
    # With a range, they would differ in sensitivity runs.
    assert not {"host.cycle", "device.cycle"} & assumptions().keys()


def test_quantities_of_absent_parts_are_not_varied(monkeypatch: pytest.MonkeyPatch) -> None:
    def parts() -> set[str]:
        return {name.split(".")[0] for name in assumptions()}

    assert parts() == {"host", "link", "device", "copy", "loader", "dram"}
    machine = shipped_file("nearmemory/enzian.toml").replace('size = { value = "0B"', 'size = { value = "1MiB"')
    monkeypatch.setattr(programs, "shipped_file", lambda _name: machine)
    assert "memory_cache" in parts()
    assert assumptions()["memory_cache.line"] == ("128B", "128B", "4KiB")
