"""Simulations from Python: results of the command, independent of parallelism, and rejected input."""

from __future__ import annotations

import json
import pickle
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np
import pytest

import cohkit
from cohkit import types
from cohkit.memory_traces import _ACCESSES as NAMES
from cohkit.memory_traces import _RECORD as RECORD
from cohkit.memory_traces import TraceFile
from cohkit.results import Record, fields
from cohkit.units import Quantity

if TYPE_CHECKING:
    from conftest import Command

    from cohkit.simulator import Request


def required(kind: type[Record]) -> set[str]:
    """Return the keys that all results of a type have."""
    return {key for key, field in fields(kind).items() if field.required}


def without_run(value: Any) -> Any:
    """Return a result without the entry `run`, which depends on the machine."""
    return {key: item for key, item in value.items() if key != "run"}


def test_results_match_the_command(cohkit_command: Command) -> None:
    """A simulation with options gives the command's result, with exactly the keys of its type."""
    options = ["--region", "1MiB", "--accesses", 9000, "--cores", 3, "--outstanding", 2, "--seed", 7]
    arguments = ["sim", "enzian-dc-ddr", "random-write", *options, "--set", "link.latency=100ns", "--json"]
    printed = json.loads(cohkit_command(*arguments).stdout)
    result = cohkit.simulate(
        "enzian-dc-ddr",
        "random-write",
        region="1MiB",
        accesses=9000,
        cores=3,
        outstanding=2,
        seed=7,
        set={"link.latency": "100ns"},
    )
    assert without_run(result) == without_run(printed)
    assert set(result) == required(types.Simulation)
    assert set(result["workload"]) == set(get_type_hints(types.Workload))
    assert result["statistics"]
    assert result["statistics"]["accesses"] == 9000


def test_defaults_match_the_command(cohkit_command: Command) -> None:
    printed = json.loads(cohkit_command("sim", "platforms/thunderx1-2s.toml", "sequential-read", "--json").stdout)
    result = cohkit.simulate(Path("platforms/thunderx1-2s.toml"), "sequential-read")
    assert without_run(result) == without_run(printed)
    assert without_run(result) == without_run(cohkit.simulate("thunderx1-2s", "sequential-read"))


def test_options_match_the_command(cohkit_command: Command, tmp_path: Path) -> None:
    msi = tmp_path / "msi.coh"
    msi.write_text(cohkit.shipped("msi").text)
    options = ["--region", "64KiB", "--prefetch", 4, "--no-oracle", "--protocol", msi, "--json"]
    printed = json.loads(cohkit_command("sim", "enzian-dc-bram", "sequential-read", *options).stdout)
    result = cohkit.simulate(
        "enzian-dc-bram", "sequential-read", region="64KiB", prefetch=4, oracle=False, protocol=cohkit.read(msi)
    )
    assert printed["run"].pop("command").startswith("cohkit sim enzian-dc-bram sequential-read --region 64KiB")
    assert result == {**printed, "run": {**printed["run"], "seconds": result["run"]["seconds"]}}
    assert (result["protocol"], result["oracle"]) == ("msi", False)


def test_each_agent_kind_runs_its_workload() -> None:
    """The device runs its own workload, and the CPU the given one."""
    assert cohkit.platform("enzian-cpu-home")["agents"] == {"device": 1}
    result = cohkit.simulate(
        "enzian-cpu-home",
        "random-read",
        protocol="eci-near",
        region="64KiB",
        accesses=2000,
        cores=2,
        by={"device": "random-write-line"},
        set={"agents.device.cores.max_outstanding": 8},
    )
    assert result["messages"] is not None
    assert result["messages"]["WriteLine"] == 2000
    device = result["agents"]["device"]
    assert device is not None
    assert (device["name"], device["cores"], device["outstanding"]) == ("random-write-line", 1, 8)
    assert result["agents"]["llc"] == result["workload"]
    with pytest.raises(cohkit.InputError, match="has no caching agents `gpu`"):
        cohkit.simulate("enzian-cpu-home", "random-read", protocol="eci-near", by={"gpu": "idle"})


# The quantities of `hosts-512x8` are those of `hosts-8x8`.
# A two-level machine needs a two-level protocol, and one with several kinds of agents a protocol with these.
PROTOCOL_KINDS = {
    "enzian-cpu-home": "eci-near",
    "n1sdp-u280": "ccix",
    "n1sdp-vck5000": "ccix",
    "peers-host-memory": "cxl-cache",
}
PLATFORMS = [
    name for name in cohkit.platforms() if name not in {"cxl-512x8", "hosts-512x8", "clusters-4x4", *PROTOCOL_KINDS}
]

# Short and long simulations on many platforms.
REQUESTS: list[Request] = [
    {"platform": name, "workload": workload, "region": "4MiB", "cores": 8, "accesses": accesses}
    for name in PLATFORMS
    for workload in ("random-write", "sequential-read")
    for accesses in (100, 20_000)
]


def test_results_do_not_depend_on_parallelism() -> None:
    sequential_results = [without_run(cohkit.simulate(**request)) for request in REQUESTS]
    for threads in (1, 2, 64, None):
        together = cohkit.simulate_many(REQUESTS, threads=threads)
        assert json.dumps(list(map(without_run, together))) == json.dumps(sequential_results)
    assert cohkit.simulate_many([]) == []
    changed = cohkit.simulate_many([{**request, "seed": 1} for request in REQUESTS])
    assert changed[0]["statistics"] != sequential_results[0]["statistics"]


def test_progress_grows_to_the_number_of_all_accesses() -> None:
    reports: list[tuple[int, int]] = []
    cohkit.simulate_many(REQUESTS, progress=lambda done, total: reports.append((done, total)))
    assert reports == sorted(reports)
    accesses = len(REQUESTS) // 2 * 20_100
    assert reports[-1] == (accesses, accesses)


def test_exception_of_progress_ends_the_run() -> None:
    def stop(done: int, of: int) -> None:
        raise RuntimeError(f"{done < of}")

    begun = time.monotonic()
    with pytest.raises(RuntimeError, match="True"):
        cohkit.simulate("enzian-dc-ddr", "random-read", accesses=10**12, progress=stop)
    assert time.monotonic() - begun < 5


def test_failed_run_has_a_reason_and_a_chart() -> None:
    result = cohkit.simulate("enzian-dc-ddr", "random-read", cores=1, prefetch=0, set={"watchdog_timeout": "100ns"})
    failure = result["failure"]
    assert failure
    assert set(failure) == set(get_type_hints(types.Failure))
    assert (failure["kind"], result["statistics"], result["messages"]) == ("no progress", None, None)
    assert "ReadShared" in cohkit.chart_text(failure["sequence"])


@pytest.mark.parametrize(
    ("options", "expected_message"),
    [
        (
            {"platform": "enzian"},
            "no platform is named `enzian`; the shipped platforms are clusters-4x4, cxl-512x8, cxl-8x8, ",
        ),
        ({"workload": "read"}, "no workload is named `read`; the workloads are sequential-read, random-read, "),
        ({"region": "64GiB"}, "a region of 64GiB is larger than the memory of enzian-dc-ddr, 32GiB; "),
        ({"region": "4096"}, "the region `4096` has no unit: write it like `128KiB`"),
        ({"region": "0B"}, "a region of 0B is not a whole number of lines; a line has 128 bytes"),
        ({"region": "-1MiB"}, "the region `-1MiB` is not a number with a unit"),
        ({"accesses": 0}, "`accesses` is at least 1, not 0"),
        ({"cores": -1}, "`cores` is 1 to 4096, not -1"),
        ({"cores": "3"}, "`cores` is 1 to 4096, and a whole number, not '3'"),
        ({"accesses": 10.0}, "`accesses` is at least 1, and a whole number, not 10.0"),
        ({"accesses": True}, "`accesses` is at least 1, and a whole number, not True"),
        ({"accesses": 2**64}, "`accesses` is at most 18446744073709551615, not 18446744073709551616"),
        ({"workload": [64, 128]}, "a workload is a name or a `MemoryTrace`, not list: `cohkit.memory_trace` makes one"),
        ({"outstanding": 0}, "`outstanding` is 1 to 4096, not 0"),
        ({"prefetch": 4097}, "`prefetch` is 0 to 4096, not 4097"),
        ({"prefetch": 1}, "`--prefetch` does not apply to random-write; only reads are prefetched"),
        ({"seed": -1}, "`seed` is at least 0, not -1"),
        ({"set": {"link.latency": 5}}, "the setting `link.latency=5`: `link.latency` has no unit: "),
        ({"set": {"link.latency": "-5ns"}}, "the setting `link.latency=-5ns`: `link.latency` is not a number with a "),
        ({"set": {"bram.ports": 1}}, "the setting `bram.ports=1`: there is no `bram.ports` in this platform; there "),
        ({"set": {"cache.ways": 0}}, "the setting `cache.ways=0`: cache.ways must be 1 to 16, not 0"),
        ({"core": 1}, "a simulation has no `core`; did you mean `cores`? it has platform, workload, "),
    ],
)
def test_invalid_simulations_are_rejected_before_the_run(options: dict[str, Any], expected_message: str) -> None:
    endless: Request = {"platform": "enzian-dc-ddr", "workload": "random-read", "accesses": 10**12}
    wrong: Any = {"platform": "enzian-dc-ddr", "workload": "random-write", **options}
    with pytest.raises(cohkit.InputError) as error_info:
        cohkit.simulate_many([endless, wrong])
    assert str(error_info.value).startswith(expected_message)
    assert "\n" not in str(error_info.value)


def test_numpy_numbers_are_accepted() -> None:
    runs = [
        cohkit.simulate("enzian-dc-ddr", "random-read", accesses=of(100), cores=of(3), seed=of(7))["statistics"]  # type: ignore[arg-type]
        for of in (int, np.int64, np.uint8)
    ]
    assert runs[0] == runs[1] == runs[2]


def test_simulation_needs_a_platform_and_a_workload() -> None:
    with pytest.raises(cohkit.InputError, match="a simulation needs a `workload`"):
        cohkit.simulate_many([{"platform": "enzian-dc-ddr"}])  # type: ignore[typeddict-item]
    with pytest.raises(cohkit.InputError, match="`threads` is a positive number, not 0"):
        cohkit.simulate_many([], threads=0)


def test_all_errors_of_a_platform_are_listed_with_their_places(tmp_path: Path) -> None:
    """Two errors of one file are reported together, by each function that reads a platform."""
    file = tmp_path / "mine.toml"
    valid_text = Path("platforms/enzian-dc-bram.toml").read_text()
    file.write_text(valid_text.replace("remotes = 1", "remotes = 0").replace('"3.1ns"', "3"))
    for read_platform in (cohkit.platform, lambda name: cohkit.simulate(name, "random-read")):
        with pytest.raises(cohkit.TextError) as error_info:
            read_platform(file)
        error = error_info.value
        assert (error.file, error.line, error.column) == (str(file), 8, 11)
        messages = [diagnostic["message"] for diagnostic in error.diagnostics]
        assert messages[0] == "remotes must be 1 to 4096, not 0"
        assert messages[1].startswith("`bram.latency` has no unit")
        assert str(error).count(f"--> {file}:") == 2
        assert all(set(diagnostic) == set(get_type_hints(types.Diagnostic)) for diagnostic in error.diagnostics)
    file.write_bytes(b"name = \xff")
    with pytest.raises(cohkit.TextError, match="byte 7 is not UTF-8"):
        cohkit.platform(file)
    with pytest.raises(FileNotFoundError):
        cohkit.platform(tmp_path / "none.toml")
    with pytest.raises(cohkit.InputError, match="no platform is named `none`"):
        cohkit.platform("none")


def test_unimplementable_policy_is_a_fault() -> None:
    protocol = cohkit.read("tests/construction/ambiguous-answer-proven.coh")
    with pytest.raises(cohkit.FaultError, match="unbounded") as error_info:
        cohkit.simulate("enzian-dc-ddr", "random-read", protocol=protocol)
    assert error_info.value.file == "tests/construction/ambiguous-answer-proven.coh"


def test_two_level_platform_has_the_quantities_of_both_levels() -> None:
    two = cohkit.platform("clusters-4x4")
    assert (two["remotes"], two["lower_level_caches"]) == (4, 4)
    assert {"cache.sets", "lower.cache.sets"} < {quantity["name"] for quantity in two["quantities"]}


@pytest.mark.parametrize("name", PLATFORMS)
def test_quantities_accept_their_bounds(name: str) -> None:
    platform = cohkit.platform(name)
    assert set(platform) == required(types.Platform)
    _each_end(platform, {"platform": name, "workload": "random-read", "region": "64KiB"})


@pytest.mark.parametrize(("name", "protocol"), PROTOCOL_KINDS.items())
def test_quantities_of_agent_kinds_accept_their_bounds(name: str, protocol: str) -> None:
    platform = cohkit.platform(name)
    assert platform["agents"] == {"device": 1}
    request: Request = {"platform": name, "protocol": protocol, "workload": "random-read", "region": "64KiB"}
    _each_end(platform, {**request, "by": {"device": "random-read"}})


def _each_end(platform: types.Platform, request: Request) -> None:
    """Simulate with each assumed quantity at both ends of its range."""
    assumed = 0
    for quantity in platform["quantities"]:
        assert set(quantity) == set(get_type_hints(types.Quantity))
        assert quantity["origin"]
        low, high = quantity["low"], quantity["high"]
        if low is None or high is None:
            continue
        assumed += 1
        assert low <= quantity["value"] <= high
        unit = "" if quantity["unit"] == "count" else quantity["unit"]
        ends = [{quantity["name"]: f"{end}{unit}"} for end in (low, high)]
        for result in cohkit.simulate_many([{**request, "set": end} for end in ends]):
            assert result["failure"] is None
    assert assumed > 5


# Program with simulations that do not end within the test.
ENDLESS_RUN = """\
import cohkit
print('ready', flush=True)
cohkit.simulate_many(2 * [{'platform': 'enzian-dc-ddr', 'workload': 'random-read', 'accesses': 10**12}])
"""


def test_interrupt_ends_simulations_soon() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS_RUN], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_simulation_accepts_paths_and_names_of_protocols() -> None:
    results = [
        cohkit.simulate("enzian-dc-bram", "random-read", region="64KiB", protocol=protocol)
        for protocol in ("msi", "protocols/msi.coh", cohkit.shipped("msi"))
    ]
    assert {result["protocol"] for result in results} == {"msi"}
    assert results[0]["statistics"] == results[1]["statistics"] == results[2]["statistics"]


def test_latency_breakdown_is_present_on_request() -> None:
    """Parts and steps each add up to the latency, and statistics do not change."""
    explained = cohkit.simulate("enzian-dc-ddr", "random-mixed", region="1MiB", explain=True)
    unexplained = cohkit.simulate("enzian-dc-ddr", "random-mixed", region="1MiB")
    assert "explanation" not in unexplained
    assert explained["statistics"] == unexplained["statistics"]
    explanation = explained["explanation"]
    for breakdown in (explanation["parts"], explanation["steps"]):
        assert sum(part["total_ps"] for part in breakdown) == explanation["latency"]["total_ps"]
    slowest = explanation["slowest"]
    assert slowest is not None
    assert sum(moment["ns"] for moment in slowest["steps"]) == pytest.approx(slowest["latency_ns"])
    assert 0 < explanation["limit"]["utilisation"] <= 1


def test_array_trace_equals_its_file(tmp_path: Path) -> None:
    """A trace of arrays gives the results of the files that it writes and of an equal text."""
    random = np.random.default_rng(7)
    trace = cohkit.memory_trace(
        random.integers(0, 2**20, 500),
        access=random.choice(["load", "store", "read_once", "write_line"], 500),
        core=random.integers(0, 3, 500),
        gap_ps=random.integers(0, 100_000, 500),
    )
    assert len(trace) == 500
    assert repr(trace) == "MemoryTrace('trace', 500 accesses)"
    of_arrays = cohkit.simulate("enzian-dc-ddr", trace, outstanding=4)
    assert of_arrays["workload"]["name"] == "trace"
    for name in ("records", "records.gz"):
        trace.write(tmp_path / name)
        of_file = cohkit.simulate("enzian-dc-ddr", f"trace:{tmp_path / name}", outstanding=4)
        assert of_file["statistics"] == of_arrays["statistics"]
        assert of_file["messages"] == of_arrays["messages"]
    lines = [
        f"{record['core']} {NAMES[record['access']]} {record['address']:#x} {record['gap']}ps\n"
        for record in np.frombuffer(trace.records, RECORD)
    ]
    (tmp_path / "text").write_text("".join(lines))
    of_text = cohkit.simulate("enzian-dc-ddr", f"trace:{tmp_path / 'text'}", outstanding=4)
    assert of_text["statistics"] == of_arrays["statistics"]


@pytest.mark.parametrize(
    ("arrays", "expected_message"),
    [
        ({"addresses": [[1]]}, "addresses have one dimension, not 2"),
        ({"addresses": [1, 2], "core": [0]}, "`core` has the shape (1,); there are 2 addresses"),
        ({"addresses": [0.5]}, "`addresses` holds whole numbers, not float64"),
        ({"addresses": [-8]}, "`addresses` is 0 to 18446744073709551615, not -8"),
        ({"addresses": [1], "core": 5000}, "`core` is 0 to 4095, not 5000"),
        ({"addresses": [1], "gap_ps": 2**32}, "`gap_ps` is 0 to 4294967295, not 4294967296"),
        ({"addresses": [1], "access": "lod"}, "`lod` is no access of a trace; there are load, store, read_once"),
        ({"addresses": [1], "access": [8]}, "`access` is 0 to 7, not 8"),
    ],
)
def test_invalid_trace_arrays_are_rejected(arrays: dict[str, Any], expected_message: str) -> None:
    with pytest.raises(cohkit.InputError, match=re.escape(expected_message)):
        cohkit.memory_trace(**arrays)


def test_invalid_trace_is_rejected_with_its_location(tmp_path: Path) -> None:
    with pytest.raises(cohkit.InputError, match="trace: it contains no access"):
        cohkit.simulate("enzian-dc-ddr", cohkit.memory_trace([]))
    with pytest.raises(cohkit.InputError, match="nothing: no such file; a trace has one access per line"):
        cohkit.simulate("enzian-dc-ddr", "trace:nothing")
    far = cohkit.memory_trace([0, 2**60], name="far")
    with pytest.raises(cohkit.InputError, match=r"far: record 2: address 0x1000000000000000 is beyond the memory"):
        cohkit.simulate("enzian-dc-ddr", far)
    (tmp_path / "bad").write_text("load 0\n0 lod 8\n")
    with pytest.raises(cohkit.InputError, match=r"bad: line 2, column 3: `lod` is no access"):
        cohkit.simulate("enzian-dc-ddr", f"trace:{tmp_path / 'bad'}")
    packed = cohkit.memory_trace([0, 2**60], packed=True)
    assert cohkit.simulate("enzian-dc-ddr", packed)["workload"]["region_lines"] == 33


def test_traces_of_other_tools_are_workloads(tmp_path: Path) -> None:
    trace = tmp_path / "lackey.out"
    trace.write_text(" L 1ffeffe7e0,8\n M 0421c7cc,4\n")
    name = f"lackey-trace:{trace}"
    trace_file = TraceFile.of(name)
    assert trace_file == TraceFile(name, "lackey-trace", trace.read_bytes())
    for workload in (name, trace_file):
        statistics = cohkit.simulate("enzian-dc-ddr", workload)["statistics"]
        assert statistics is not None
        assert statistics["accesses"] == 3
    trace.write_text(" L 1ffeffe7e0\n")
    with pytest.raises(
        cohkit.InputError, match=r"line 1, column 14: a size is missing: read as a trace of Valgrind's lackey"
    ):
        cohkit.simulate("enzian-dc-ddr", name)


def test_machine_reflects_its_settings(tmp_path: Path) -> None:
    """A changed machine equals the settings that are passed to a run, and the original is unchanged."""
    machine = cohkit.Machine("enzian-dc-ddr")
    assert machine.platform == cohkit.platform("enzian-dc-ddr") == cohkit.platform(machine)
    assert set(machine) == {quantity["name"] for quantity in machine.platform["quantities"]}
    assert len(machine) == len(machine.platform["quantities"])
    slower = machine.with_settings({"link.latency": Quantity(0.2, "us"), "cores.count": 4})
    assert slower["link.latency"] == Quantity(200_000, "ps")
    assert slower["cores.count"] == slower["cores.used"] == machine.with_settings({"cores.used": 4})["cores.count"] == 4
    assert machine["link.latency"] == Quantity(100_000, "ps")
    changed_settings: dict[str, str | int] = {"link.latency": "200ns", "cores.count": 4}
    of_machine = cohkit.simulate(slower, "random-read", accesses=500)
    of_name = cohkit.simulate("enzian-dc-ddr", "random-read", accesses=500, set=changed_settings)
    assert of_machine["statistics"] == of_name["statistics"]
    played = [
        cohkit.play(platform, "rpc", numbers={"calls": 20}, set=settings)
        for platform, settings in ((slower, None), ("enzian-dc-ddr", changed_settings))
    ]
    assert played[0]["durations_ns"] == played[1]["durations_ns"]
    assert pickle.loads(pickle.dumps(slower)) == slower != machine  # noqa: S301 -- our own
    assert len({machine, cohkit.Machine("enzian-dc-ddr"), slower}) == 2
    file = tmp_path / "mine.toml"
    file.write_text((Path("platforms") / "enzian-dc-ddr.toml").read_text())
    own_machine = cohkit.Machine(file)
    file.unlink()
    with pytest.raises(
        cohkit.InputError, match=r"not Platform: `cohkit\.platform` describes a platform, `cohkit\.Machine` creates"
    ):
        cohkit.simulate(cohkit.platform("enzian-dc-ddr"), "random-read")  # type: ignore[arg-type]
    # The content of the file is kept.
    assert pickle.loads(pickle.dumps(own_machine)).with_settings({"cores.count": 4})["cores.count"] == 4  # noqa: S301
    assert "<td>link.latency</td>" in machine._repr_html_()


@pytest.mark.parametrize(
    ("settings", "expected_message"),
    [
        ({"link.latenc": "1ns"}, "link.latenc"),
        ({"link.latency": 100}, "has no unit"),
        ({"cores.count": "many"}, "many"),
    ],
)
def test_invalid_machine_settings_are_rejected(settings: dict[str, Any], expected_message: str) -> None:
    with pytest.raises(cohkit.InputError, match=expected_message):
        cohkit.Machine("enzian-dc-ddr").with_settings(settings)
    with pytest.raises(cohkit.InputError, match=r"no quantity `nothing`; it has bus\.bandwidth, "):
        cohkit.Machine("enzian-dc-ddr")["nothing"]
