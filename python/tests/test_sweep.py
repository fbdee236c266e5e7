"""`cohkit sweep`: specifications, results, and resumption after a process ends at any point."""

from __future__ import annotations

import json
import os
import pickle
import random
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from cohkit.__main__ import main
from cohkit.errors import InputError
from cohkit.experiments import EXPERIMENTS
from cohkit.sweeps.cluster import Jobs
from cohkit.sweeps.display import format_table
from cohkit.sweeps.points import Point, Texts, run
from cohkit.sweeps.spec import Spec, from_file
from cohkit.sweeps.values import values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Points that take some hundredths of a second each.
SWEEP_ARGUMENTS = [
    *("sim", "enzian-dc-ddr", "random-read", "--accesses", "20000", "--cores", "1"),
    *("--sweep", "link.latency=60ns..140ns/20ns", "--sweep", "outstanding=1,2"),
    *("--repetitions", "3", "--workers", "2"),
]
# Number of points of the sweep.
POINT_COUNT = 30


def sweep(*arguments: object) -> int:
    """Run `cohkit sweep` in this process and return its exit code."""
    return main(["sweep", *map(str, arguments)])


def start_sweep(*arguments: object) -> subprocess.Popen[str]:
    """Start `cohkit sweep` in another process."""
    command = [sys.executable, "-m", "cohkit", "sweep", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def entries(folder: Path) -> int:
    """Return the number of completed points in a sweep's journal."""
    journal = folder / "journal.jsonl"
    return journal.read_bytes().count(b"\n") - 1 if journal.exists() else 0


def wait_for(folder: Path, points: int, process: subprocess.Popen[str]) -> None:
    """Wait until the journal has this number of points, or the process ends."""
    while process.poll() is None and entries(folder) < points:
        time.sleep(0.005)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the results file of the sweep `SWEEP_ARGUMENTS`, run without interruption."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert sweep(*SWEEP_ARGUMENTS, "--out", folder) == 0
    return (folder / "results.parquet").read_bytes()


def test_axes_multiply_and_each_repetition_has_a_seed_of_its_own(tmp_path: Path, undisturbed: bytes) -> None:
    (tmp_path / "results.parquet").write_bytes(undisturbed)
    table = pl.read_parquet(tmp_path / "results.parquet")
    assert table.height == table["hash"].n_unique() == POINT_COUNT
    assert table["link.latency"].unique(maintain_order=True).to_list() == [60, 80, 100, 120, 140]
    assert table["seed"].to_list() == [0, 1, 2] * 10
    assert table["point"].to_list() == list(range(POINT_COUNT))
    assert table["link.latency.unit"].unique().to_list() == ["ns"]
    means = table.filter(pl.col("outstanding") == 1, pl.col("seed") == 0)["statistics.latency_mean_ns"]
    assert means.is_sorted(), "a longer link makes accesses longer"


def test_table_is_independent_of_workers_and_omits_hosts(tmp_path: Path, undisturbed: bytes) -> None:
    assert sweep(*SWEEP_ARGUMENTS[:-1], 1, "--out", tmp_path, "--csv") == 0
    assert (tmp_path / "results.parquet").read_bytes() == undisturbed
    hosts = pl.read_parquet(tmp_path / "hosts.parquet")
    assert hosts["worker"].n_unique() == 1
    assert hosts.columns == ["point", "hash", "seconds", "worker", "date"]
    assert "seconds" not in pl.read_csv(tmp_path / "results.csv").columns
    parts = [pl.read_parquet(part)["point"].to_list() for part in sorted(tmp_path.glob("parts/*.parquet"))]
    assert sorted(number for part in parts for number in part) == list(range(POINT_COUNT))


def test_killed_sweep_resumes_without_lost_or_repeated_points(tmp_path: Path, undisturbed: bytes) -> None:
    seed = int(os.environ.get("COHKIT_SEED", time.time_ns()))
    print(f"COHKIT_SEED={seed} .venv/bin/pytest {__file__} -k killed_sweep_resumes")  # noqa: T201
    chance = random.Random(seed)  # noqa: S311
    for _ in range(3):
        process = start_sweep(*SWEEP_ARGUMENTS, "--out", tmp_path)
        wait_for(tmp_path, entries(tmp_path) + chance.randint(0, 9), process)
        time.sleep(chance.uniform(0, 0.05))
        process.kill()
        process.communicate()
    process = start_sweep(*SWEEP_ARGUMENTS, "--out", tmp_path)
    assert process.communicate()[1] == ""
    assert process.returncode == 0
    assert (tmp_path / "results.parquet").read_bytes() == undisturbed
    assert entries(tmp_path) == POINT_COUNT


def test_partial_line_is_rerun_and_damaged_line_reported(
    tmp_path: Path, undisturbed: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """A journal may end within a line, as after a crash; any other damage is an error."""
    assert sweep(*SWEEP_ARGUMENTS, "--out", tmp_path) == 0
    journal = tmp_path / "journal.jsonl"
    complete_journal = journal.read_bytes()
    journal.write_bytes(complete_journal[:-5])
    (tmp_path / "results.parquet").unlink()
    assert sweep(*SWEEP_ARGUMENTS, "--out", tmp_path) == 0
    assert (tmp_path / "results.parquet").read_bytes() == undisturbed
    lines = complete_journal.splitlines(keepends=True)
    for damage, expected_message in ((lines[2][:-9] + b"\n", "is damaged"), (lines[1], "is not part of the sweep")):
        journal.write_bytes(b"".join([*lines[:2], damage, *lines[3:]]))
        capsys.readouterr()
        assert sweep(*SWEEP_ARGUMENTS, "--out", tmp_path) == 2
        error = capsys.readouterr().err
        assert f"{journal}:3:1: this" in error
        assert expected_message in error


def test_interrupted_sweep_can_be_resumed(tmp_path: Path, undisturbed: bytes) -> None:
    process = start_sweep(*SWEEP_ARGUMENTS, "--out", tmp_path)
    wait_for(tmp_path, 3, process)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    assert process.returncode == 130
    assert re.fullmatch(
        rf"interrupted: \d+ of {POINT_COUNT} points are done; the same command .* continues from here\n", error
    )
    assert sweep(*SWEEP_ARGUMENTS, "--out", tmp_path) == 0
    assert (tmp_path / "results.parquet").read_bytes() == undisturbed


@pytest.mark.parametrize(("kilobytes", "file"), [(0, "journal.jsonl"), (2, "parts/0000000-0000001.parquet")])
def test_unwritable_file_is_named(kilobytes: int, file: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "cohkit", "sweep", "check", "msi", "--sweep", "remotes=1..2", "--out", str(tmp_path)]
    limited = ["bash", "-c", f'ulimit -f {kilobytes}; exec "$@"', "bash", *words]
    completed = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stderr) == (4, f"error: {tmp_path / file}: File too large\n")
    # The sweep continues from the points that could be written.
    assert sweep(*words[4:]) == 0


def test_killed_worker_loses_no_point(tmp_path: Path, undisturbed: bytes) -> None:
    """Kill one of two worker processes: a third one replaces it, and the table is unchanged."""
    process = start_sweep(*SWEEP_ARGUMENTS, "--out", tmp_path)
    journal = tmp_path / "journal.jsonl"
    # Both workers are active; one may have started long before the other.
    while process.poll() is None and not (
        journal.exists() and len(set(re.findall(r'"worker": "[^"]*"', journal.read_text()))) == 2
    ):
        time.sleep(0.005)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    commands = {child: Path(f"/proc/{child}/cmdline").read_text() for child in children}
    workers = [int(child) for child, command in commands.items() if "spawn_main" in command]
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGKILL)
    _, error = process.communicate()
    assert (process.returncode, error) == (0, "")
    assert (tmp_path / "results.parquet").read_bytes() == undisturbed
    assert pl.read_parquet(tmp_path / "hosts.parquet")["worker"].n_unique() == 3


@pytest.fixture
def dask() -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start a Dask scheduler with two workers, and yield its address and the workers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"

    def start_process(*arguments: str) -> subprocess.Popen[bytes]:
        """Start a Python module without output."""
        command = [sys.executable, "-m", *arguments, "--no-dashboard"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    scheduler = start_process("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-show")
    worker = ["distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--death-timeout", "60"]
    workers = [start_process(*worker), start_process(*worker)]
    yield address, workers
    for process in (*workers, scheduler):
        process.kill()
        process.wait()


@pytest.mark.needs("distributed")
def test_table_is_unchanged_after_a_dask_worker_is_killed(
    tmp_path: Path, undisturbed: bytes, dask: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    """The other worker runs the points of the killed one, and none is recorded twice."""
    address, workers = dask
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))).close()
            break
        except OSError:
            time.sleep(0.05)
    process = start_sweep(*SWEEP_ARGUMENTS[:-2], "--out", tmp_path, "--scheduler", address)
    wait_for(tmp_path, 8, process)
    workers[0].kill()
    _, error = process.communicate()
    assert process.returncode == 0, error
    assert (tmp_path / "results.parquet").read_bytes() == undisturbed
    assert entries(tmp_path) == POINT_COUNT


@pytest.mark.needs("distributed")
def test_unreachable_scheduler_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("cohkit.sweeps.cluster._TIMEOUT_S", 0.2)
    check = ["check", "msi", "--remotes", 1, "--out", tmp_path, "--scheduler"]
    assert sweep(*check, "tcp://127.0.0.1:1") == 4
    assert capsys.readouterr().err.startswith("error: no Dask scheduler answers at tcp://127.0.0.1:1: ")
    assert sweep(*check, "nowhere") == 2
    assert capsys.readouterr().err == "error: `--scheduler` expects tcp://HOST:PORT, got nowhere\n"


# Start of a Dask worker in a job script.
WORKER = (
    "python3 -m distributed.cli.dask_worker tcp://SCHEDULER --name NAME --nthreads 1 "
    "--memory-limit 3.73GiB --nanny --death-timeout 60\n"
)


@pytest.mark.needs("dask-jobqueue")
@pytest.mark.parametrize(
    ("system", "heads"),
    [
        (
            "slurm",
            [
                *("#SBATCH -J cohkit-sweep", "#SBATCH -p long", "#SBATCH -n 1", "#SBATCH --cpus-per-task=1"),
                *("#SBATCH --mem=4G", "#SBATCH -t 02:30:00"),
            ],
        ),
        (
            "pbs",
            [
                *("#PBS -N cohkit-sweep", "#PBS -q long", "#PBS -l select=1:ncpus=1:mem=3815MB"),
                "#PBS -l walltime=02:30:00",
            ],
        ),
        ("lsf", ["#BSUB -J cohkit-sweep", "#BSUB -q long", "#BSUB -n 1", "#BSUB -M 4000", "#BSUB -W 02:30"]),
    ],
)
def test_jobs_of_batch_systems_are_as_expected(system: str, heads: list[str]) -> None:
    script = Jobs(system, walltime="02:30", queue="long").script()
    assert script == "\n".join(["#!/usr/bin/env bash", "", *heads, "", WORKER])


def test_failed_points_keep_their_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["reproduce", "--accesses", 1, "--sweep", "experiment=cckit-table2,cckit-fig10", "--out", tmp_path]
    for _ in range(2):
        assert sweep(*arguments) == 2
        output = capsys.readouterr().out
        assert f"\n2 points, 1 failed: {tmp_path}/results.parquet\n  point 1 (experiment=cckit-fig10): " in output
    table = pl.read_parquet(tmp_path / "results.parquet")
    failed = table.filter(pl.col("error").is_not_null())
    assert failed["error"].to_list() == ["1 %, lines, 1 context: no `call` in 100 ns; more accesses are needed"]
    assert table.filter(pl.col("code") == 0)["ours"].null_count() == 0
    assert entries(tmp_path) == 2


def test_sweep_reports_the_bottleneck_at_each_point(tmp_path: Path) -> None:
    machine = ["hosts-8x8", "random-read", "--accesses", "2000", "--explain"]
    assert (
        sweep("sim", *machine, "--sweep", "link.latency=1ns,5us", "--set", "switch.latency=1ns", "--out", tmp_path) == 0
    )
    table = pl.read_parquet(tmp_path / "results.parquet")
    assert table["explanation.limit.name"][1] == "latency of links"
    assert table["explanation.limit.name"][0] != "latency of links"
    parts = table.select(pl.col("^explanation\\.parts\\..*\\.mean_ns$"))
    means = table["statistics.latency_mean_ns"].to_list()
    assert parts.sum_horizontal().to_list() == pytest.approx(means)


def test_axes_are_numbers_with_units_in_the_order_of_the_file(tmp_path: Path) -> None:
    """Regression: axes were texts such as `60ns`, and the order of the file was lost."""
    file = tmp_path / "spec.toml"
    file.write_text(
        'run = "sim"\n[options]\nplatform = "enzian-dc-ddr"\nworkload = "random-read"\naccesses = 100\n'
        '[sweep]\nlink.latency = "0.5us,600ns"\nregion = "64KiB,1MiB"\nlink.credits = [4, 8]\nprotocol = ["eci"]\n'
    )
    assert sweep(file, "--out", tmp_path / "out", "--csv") == 0
    for table in (pl.read_parquet(tmp_path / "out/results.parquet"), pl.read_csv(tmp_path / "out/results.csv")):
        first = table.columns.index("seed") + 1
        axes = ["link.latency", "link.latency.unit", "region", "region.unit", "link.credits", "protocol"]
        assert table.columns[first : table.columns.index("code")] == axes
        assert table["link.latency"].to_list() == [0.5] * 4 + [0.6] * 4
        assert table["link.latency.unit"].unique().to_list() == ["us"]
        assert table["region"].to_list() == [64, 64, 1024, 1024] * 2
        assert table["link.credits"].to_list() == [4, 8] * 4


def test_terminal_table_shows_the_columns_that_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], root: Path
) -> None:
    """Columns without values are omitted, and those beyond the width are cut off."""
    text = (root / "protocols/msi.coh").read_text()
    (tmp_path / "broken.coh").write_text(re.sub(r"(?m)^(.* S  .*\| Inv  .*)\| I$", r"\1| S", text))
    axes = ["--sweep", f"protocol=msi,{tmp_path / 'broken.coh'}", "--remotes", 2, "--out", tmp_path / "out"]
    assert sweep("check", *axes) == 1
    head, good, bad, *_ = capsys.readouterr().out.splitlines()
    assert head.split() == ["protocol", "system", "outcome", "violated", "states", "transitions", "depth"]
    assert good.split() == ["msi", "remotes_2_lines_1", "verified", "403", "959", "17"]
    assert " violated  single writer " in bad
    points = [Point(n, "sim", {}, {"link.latency": "60ns"}, n, n, Texts()) for n in range(40)]
    rows = [
        {"link.latency": 60, "link.latency.unit": "ns", "seed": n, "statistics.latency_mean_ns": n + 0.25}
        for n in range(40)
    ]
    frame = pl.DataFrame(rows).with_columns(pl.lit(None).alias("explanation.limit.name"))
    lines = format_table(points, frame, None).splitlines()
    assert lines[:2] == ["link.latency (ns)  seed  latency_mean_ns", "               60     0             0.25"]
    assert lines[-2:] == ["and 8 rows more", ""]
    assert format_table(points, frame, 24).splitlines()[0] == "link.latency (ns)  seed"


def test_checks_have_a_row_per_system_and_the_worst_code(tmp_path: Path, root: Path) -> None:
    text = (root / "protocols/msi.coh").read_text()
    faulty_text = re.sub(r"(?m)^(.* S  .*\| Inv  .*)\| I$", r"\1| S", text)
    assert faulty_text != text
    (tmp_path / "broken.coh").write_text(faulty_text)
    axes = ["--sweep", f"protocol=msi,{tmp_path / 'broken.coh'}", "--remotes", 2, "--out", tmp_path / "out"]
    assert sweep("check", *axes) == 1
    table = pl.read_parquet(tmp_path / "out/results.parquet")
    assert table["outcome"].to_list() == ["verified", "violated"]
    assert table["violated"].to_list() == [None, "single writer"]
    # The undecided point has the larger exit code.
    limits = ["--sweep", f"protocol=msi,{tmp_path / 'broken.coh'}", "--remotes", 2, "--max-states", 200]
    assert sweep("check", *limits, "--out", tmp_path / "limited") == 1
    assert pl.read_parquet(tmp_path / "limited/results.parquet")["code"].to_list() == [3, 1]


def test_plays_are_swept_over_parameters_and_quantities(tmp_path: Path) -> None:
    axes = ["--param", "calls=5", "--sweep", "payload=1,4", "--sweep", "link.latency=60ns,120ns", "--out", tmp_path]
    assert sweep("play", "enzian-dc-bram", "rpc", *axes) == 0
    table = pl.read_parquet(tmp_path / "results.parquet")
    assert table["parameters.payload"].to_list() == table["payload"].to_list() == [1, 1, 4, 4]
    short, long, *_ = table["durations_ns.call.mean"].to_list()
    assert short < long


def test_quantities_added_by_a_setting_can_be_swept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Regression: quantities that another setting adds, such as `translation.enabled`, could not be swept."""
    framed = ["sim", "enzian-dc-ddr", "random-read", "--accesses", 500, "--set", "link.layer=eci"]
    out = tmp_path / "framed"
    assert sweep(*framed, "--sweep", "link.lanes=6,12", "--out", out) == 0
    few, all_lanes = pl.read_parquet(out / "results.parquet").to_dicts()
    assert few["statistics.bandwidth_bytes_per_s"] < all_lanes["statistics.bandwidth_bytes_per_s"]
    machine = ["enzian-dc-bram+enzian-cpu-home", "gather", "--protocol", "eci-both", "--param", "queries=5"]
    used = ["--set", "host.agents.device.translation.enabled=1"]
    out = tmp_path / "refused"
    assert (
        sweep("play", *machine, *used, "--sweep", "host.agents.device.translation.absent_one_in=0,1", "--out", out) == 1
    )
    first, second = pl.read_parquet(out / "results.parquet").to_dicts()
    assert first["failure.message"] is None
    assert second["failure.message"].startswith("gather cannot read: the page is not mapped")
    capsys.readouterr()
    invalid_options = ["--set", "host.agents.devices.translation.enabled=1", "--sweep", "remotes=1"]
    assert sweep("play", *machine, *invalid_options, "--out", tmp_path / "wrong") == 2
    assert "there is no `agents.devices.translation.enabled` in this platform" in capsys.readouterr().err


def test_quantities_are_swept_by_their_former_names(tmp_path: Path) -> None:
    run = ["sim", "enzian-dc-ddr", "random-read", "--accesses", 500]
    assert sweep(*run, "--sweep", "cores.used=1,2", "--out", tmp_path) == 0
    assert pl.read_parquet(tmp_path / "results.parquet")["cores.used"].to_list() == [1, 2]


@pytest.mark.parametrize("told", [{"options": {"experiment": "all"}}, {"axes": {"experiment": ["all"]}}])
def test_all_experiments_are_points_of_a_sweep(told: dict[str, Any]) -> None:
    points = Spec("reproduce", repetitions=2, **told).points()
    assert [(point.axes["experiment"], point.seed) for point in points] == [
        (name, seed) for name in EXPERIMENTS for seed in (0, 1)
    ]


def test_litmus_tests_are_points_with_their_texts(tmp_path: Path, root: Path) -> None:
    """Points need neither the test's file nor the protocol's once they are created."""
    test, protocol = tmp_path / "own.litmus", tmp_path / "own.coh"
    test.write_text((root / "litmus/MP.litmus").read_text())
    protocol.write_text((root / "protocols/msi.coh").read_text())
    points = Spec("litmus", {"protocol": str(protocol)}, {"test": ["SB", str(test)]}).points()
    assert points[1].hash() != Spec("litmus", {"protocol": "msi"}, {"test": ["SB", "MP"]}).points()[1].hash()
    test.unlink()
    protocol.unlink()
    outcomes = [run(point) for point in points]
    # As for the command, `exists` of SB is not observed, and `~exists` of our MP holds.
    assert [(outcome.code, outcome.error) for outcome in outcomes] == [(1, None), (0, None)]
    [[store_buffering], [message_passing]] = [outcome.rows for outcome in outcomes]
    assert (store_buffering["test"], store_buffering["protocol"]) == ("SB", "msi")
    assert store_buffering["outcome"] == "not_satisfied"
    assert (message_passing["test"], message_passing["outcome"]) == ("MP", "satisfied")
    with pytest.raises(InputError, match="SBB"):
        Spec("litmus", {"test": "SBB"}).points()


@pytest.mark.needs("verilator")
def test_lockstep_seeds_are_points() -> None:
    """Each seed is a point. The hardware does not support the home of `msi`, which the outcome of a point reports."""
    points = Spec("lockstep", {"protocol": "msi", "messages": 10}, repetitions=2).points()
    assert [point.seed for point in points] == [0, 1]
    outcome = run(points[0])
    assert outcome.code == 2
    assert outcome.error is not None
    assert "no RTL for this home" in outcome.error


def test_mutants_of_a_text_are_points() -> None:
    # Mutant 80 of `msi` survives the check, and mutant 120 is refuted.
    points = Spec("mutants", {"protocol": "msi"}, {"index": [80, 120]}).points()
    outcomes = [run(point) for point in points]
    assert [[row["verdict"] for row in outcome.rows] for outcome in outcomes] == [["survived"], ["refuted"]]
    assert [outcome.code for outcome in outcomes] == [1, 0]


def test_former_names_of_options_are_accepted(tmp_path: Path) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text('run = "mutants"\n[options]\nprotocol = "msi"\n[sweep]\nnumber = "80,120"\n')
    assert [point.axes for point in from_file(spec).points()] == [{"index": 80}, {"index": 120}]
    walks = ["check", "msi", "--simulate", 100, "--sweep", "remotes=1..2", "--out", tmp_path / "walks"]
    assert sweep(*walks) == 3


def test_points_pickle_and_their_hash_is_of_their_content(tmp_path: Path, root: Path) -> None:
    """Equal texts of different files give equal hashes; another text or option does not."""
    text = (root / "protocols/msi.coh").read_text()
    for name in ("a", "b"):
        (tmp_path / f"{name}.coh").write_text(text)
    (tmp_path / "c.coh").write_text(text + "# more\n")

    def point(name: str, remotes: int = 1) -> Spec:
        """Return a sweep with one point."""
        return Spec("check", {"protocol": str(tmp_path / f"{name}.coh"), "remotes": remotes})

    [original] = point("a").points()
    restored = pickle.loads(pickle.dumps(original))  # noqa: S301 -- our own
    assert (restored, restored.hash()) == (original, original.hash())
    (tmp_path / "a.coh").unlink()
    outcome = run(restored)
    assert [row["outcome"] for row in outcome.rows] == ["verified"], "a point needs no file"
    other_specs = [point("b"), point("c"), point("b", 2)]
    assert [spec.points()[0].hash() == original.hash() for spec in other_specs] == [True, False, False]


def test_trace_points_are_identified_by_content(tmp_path: Path) -> None:
    """A point contains its trace, whose changes change the hash."""
    trace = tmp_path / "my.trace"
    trace.write_text("0 store 0x1000\n1 load 0x1008\n")

    def points() -> list[Point]:
        """Return two points with the current contents of the trace."""
        options: dict[str, Any] = {"platform": "enzian-dc-ddr", "workload": f"trace:{trace}"}
        return Spec("sim", options, {"link.latency": ["60ns", "200ns"]}).points()

    quick, slow = points()
    trace.write_text("0 store 0x1000\n1 load 0x2000\n")
    changed, _ = points()
    assert quick.hash() != changed.hash()
    trace.unlink()
    # Execution of a point needs no file.
    [row], [slow_row] = run(pickle.loads(pickle.dumps(quick))).rows, run(slow).rows  # noqa: S301 -- our own
    assert row["workload.name"] == f"trace:{trace}"
    assert row["statistics.time_ns"] < slow_row["statistics.time_ns"]


@pytest.mark.parametrize(
    ("text", "expected_values"),
    [
        ("1..3", [1, 2, 3]),
        ("1..64*4,5", [1, 4, 16, 64, 5]),
        ("0.5us..600ns/50ns", ["0.5us", "0.55us", "0.6us"]),
        ("1GiB/s..2GiB/s/512MiB/s", ["1GiB/s", "1.5GiB/s", "2GiB/s"]),
        ("1e3", ["1e3"]),
        ("10..30/10", [10, 20, 30]),
    ],
)
def test_ranges_and_lists_keep_their_units(text: str, expected_values: list[object]) -> None:
    assert values("x", text) == expected_values


@pytest.mark.parametrize(
    ("arguments", "expected_message"),
    [
        (["link.latenzy=1ns"], "there is no axis `link.latenzy`; did you mean `link.latency`? there are platform, "),
        (["link.latency=60ns..1GiB/20ns"], "`link.latency`: 1 GiB is a size, where a time such as 1 ns is needed"),
        (["link.latency=60ns..90ns/20"], "use a unit on all numbers of a range or none: 20 beside `ns`"),
        (["link.latency=90ns..60ns/1ns"], "`90ns..60ns/1ns` ends before it begins"),
        (["link.latency=1GiB"], "`link.latency` has the unknown unit `GiB`"),
        (["cores=1..64*1"], "needs a factor above 1"),
        (["cores=1..64/0"], "has to be above 0"),
        (["cores=1..x"], "`x` is no number"),
        (["cores=1,1"], "`cores` has the value 1 twice"),
        (["cores=many"], "`cores` is a whole number, not many"),
        (["cores=0"], "`cores` is 1 to 4096, not 0"),
        (["cores"], "`cores` is not NAME=VALUE"),
        (["cores=1", "cores=2"], "`cores` is swept twice"),
        (["accesses=1,2"], "`accesses` is swept, but also has a value for all points"),
        (["oracle=perhaps"], "`oracle` is true or false, not perhaps"),
        (["region=1parsec"], "1parsec"),
        (["cores=1..4000", "outstanding=1..251"], "1004000 points are more than 1000000"),
        (["seed=1..3"], "`seed` is no axis: `--repetitions N`, or `repetitions` at the top of a file, runs each point"),
    ],
)
def test_invalid_sweeps_are_rejected_before_the_run(
    tmp_path: Path, arguments: list[str], expected_message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    axes = [word for axis in arguments for word in ("--sweep", axis)]
    out = tmp_path / "out"
    assert sweep("sim", "enzian-dc-ddr", "random-read", "--accesses", 10, *axes, "--out", out) == 2
    assert expected_message in capsys.readouterr().err
    assert not out.exists()


# Beginning of a specification of simulations.
RANDOM_READS = 'run = "sim"\n[options]\nplatform = "enzian-dc-ddr"\nworkload = "random-read"\n'


@pytest.mark.parametrize(
    ("text", "place", "expected_message"),
    [
        (
            'run = "sim"\nruns = 2\n',
            "2:1",
            "a sweep has no `runs`; did you mean `run`? it has run, seed, repetitions, options, sweep",
        ),
        (
            'run = "table"\n',
            "1:1",
            "`run` must name the swept command: sim, play, check, reproduce, litmus, lockstep, mutants, and no `table`",
        ),
        ("run = sim\n", "1:7", "invalid value"),
        (
            'run = "check"\n[options]\nprotocol = "msi"\n[sweep]\n  caches = "1..2"\n',
            "5:3",
            "there is no axis `caches`",
        ),
        ('run = "check"\n[options]\nprotocol = "msi"\n[sweep]\nremotes = "1..x"\n', "5:1", "`x` is no number"),
        ('run = "check"\n[options]\nprotocol = "msi"\nsystem = "no"\n', "4:1", "no system is named `no`"),
        (
            'run = "check"\n[options]\nprotocol = "msi"\n[sweep]\nlines = 1\nremotes = "1..9"\n',
            "6:1",
            "`remotes` is 1 to 8, not 9",
        ),
        ('seed = -1\nrun = "check"\n[options]\nprotocol = "msi"\n', "1:1", "`seed` is at least 0, not -1"),
        ('run = "check"\nrepetitions = 0\n[options]\nprotocol = "msi"\n', "2:1", "`repetitions` is at least 1, not 0"),
        (
            RANDOM_READS + 'link.latency = "7"\n',
            "5:1",
            "`link.latency` has no unit",
        ),
        (
            RANDOM_READS + "[sweep]\nlink = { count = 0 }\n",
            "6:1",
            "link.count",
        ),
        (
            RANDOM_READS + '[sweep]\n[sweep.dram]\n"bank_groups" = [1, 3]\n',
            "7:1",
            "dram.bank_groups must be a power of two, not 3",
        ),
        (
            RANDOM_READS + "[sweep]\n cores = -1\n",
            "6:2",
            "`cores` is 1 to 4096, not -1",
        ),
        ('run = "check"\nrepetitions = 2\n[options]\nprotocol = "msi"\n', "2:1", "`check` has no seed here"),
        ('run = "sim"\n[options]\nplatform = "enzian-dc-ddr"\n', "2:1", "`sim` needs a `workload`"),
        ('run = "check"\n[options]\nprotocol = "msi"\n[sweep]\nremotes = 1.5\n', "5:1", "needs a string such as"),
    ],
)
def test_invalid_sweep_file_is_reported_with_its_location(
    tmp_path: Path, text: str, place: str, expected_message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(text)
    assert sweep(spec, "--out", tmp_path / "out") == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {spec}:{place}: ")
    assert expected_message in error


def test_positional_arguments_are_the_unswept_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Regression: with a swept PLATFORM, the single remaining argument was taken for it."""
    spec = tmp_path / "spec.toml"
    spec.write_text('run = "sim"\n[options]\nworkload = "random-read"\naccesses = 10\nlink.latency = "70ns"\n')
    axes = ["--sweep", "platform=enzian-dc-ddr,enzian-dc-bram", "--sweep", "oracle=true,false"]
    single_options = ["sim", "random-read", "--accesses", 10, "--set", "link.latency=70ns"]
    exit_codes = [sweep(*words, *axes, "--out", tmp_path / "out") for words in (single_options, [spec])]
    output = capsys.readouterr().out
    assert exit_codes == [0, 0]
    assert re.findall(r"^enzian-dc-bram +(\w+) ", output, re.MULTILINE) == ["true", "false"] * 2


def test_invalid_sweep_arguments_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each case has arguments and the start of the message."""
    file = tmp_path / "file"
    file.write_text("")
    broken = tmp_path / "broken.coh"
    broken.write_text("protocol p { }")
    check = ["check", "msi", "--sweep", "remotes=1..2"]
    for words, expected_message in (
        (["sym"], "error: there is no file `sym` and no such command; did you mean `sim`? choose from sim, "),
        ([*check, "--out", file], f"error: {file} is not a folder; name one with `--out`"),
        ([*check, "--seed", -1], "error: `seed` is at least 0, not -1"),
        ([*check, "--sweep", "capacity=0"], "error: `capacity` is 1 to 255, not 0"),
        (["check", "two-level", "--sweep", "lines=1"], "error: `lines` is for one protocol, and protocols/two-level"),
        (["check", broken], "error[syntax]: "),
        ([*check, "--cluster", "slurm", "--jobs", 0], "error: `--jobs` is at least 1"),
        (["--cluster", "slurm", "--memory", "some"], "error: `--memory` is a size such as 4GB, not some"),
        (["--cluster", "slurm", "--walltime", "1h"], "error: `--walltime` is hours and minutes such as 01:30, not 1h"),
    ):
        assert sweep(*words) == 2, words
        assert capsys.readouterr().err.startswith(expected_message)


@pytest.mark.needs("dask-jobqueue")
def test_rejected_batch_jobs_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Regression: the sweep waited for them without end."""
    arguments = ["check", "msi", "--remotes", 1, "--out", tmp_path / "out", "--cluster", "slurm", "--jobs", 2]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sweep(*arguments) == 4
    assert capsys.readouterr().err == "error: `--cluster slurm` needs the command `sbatch`, which is not installed\n"
    submits = tmp_path / "sbatch"
    submits.write_text("#!/bin/sh\necho 'sbatch: error: invalid partition' >&2\nexit 1\n")
    submits.chmod(0o755)
    assert sweep(*arguments) == 4
    assert capsys.readouterr().err == "error: `sbatch` rejected the job: sbatch: error: invalid partition\n"


def test_documented_commands_print_the_shown_output(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_documented_commands: Callable[[str], int]
) -> None:
    text = (root / "docs/sweeps.md").read_text()
    monkeypatch.chdir(tmp_path)
    [spec] = re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "latency.toml").write_text(spec)
    assert run_documented_commands(text) > 5


def test_journal_records_the_command(tmp_path: Path) -> None:
    assert sweep("check", "msi", "--remotes", 1, "--out", tmp_path) == 0
    head, entry = map(json.loads, (tmp_path / "journal.jsonl").read_text().splitlines())
    assert head["command"] == f"cohkit sweep check msi --remotes 1 --out {tmp_path}"
    # A different number of workers continues the same sweep.
    assert sweep("check", "msi", "--remotes", 1, "--workers", 1, "--out", tmp_path) == 0
    assert head["points"] == [entry["hash"]]
