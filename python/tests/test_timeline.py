"""Timelines of `cohkit sim`, read by the descriptor of Perfetto's own package; waveforms, read by GTKWave's library."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import cohkit

if TYPE_CHECKING:
    from conftest import Command

pytestmark = pytest.mark.needs("perfetto")

# The kinds of events.
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


@pytest.mark.parametrize(
    "machine",
    [
        ["enzian-dc-ddr", "--cores", "6"],
        ["enzian-dc-ddr+enzian-cpu-home", "--protocol", "protocols/eci-both.coh", "--accesses", "3000"],
    ],
)
def test_slices_are_the_statistics(cohkit_command: Command, tmp_path: Path, root: Path, machine: list[str]) -> None:
    """Slices of a simulation's timeline add up to the latencies and counts of its statistics."""
    file = tmp_path / "run.pftrace"
    name, *more_arguments = [str(root / argument) if argument.endswith(".coh") else argument for argument in machine]
    arguments = ["sim", name, "random-mixed", "--region", "1MiB", "--outstanding", 3, *more_arguments]
    completed = cohkit_command(*arguments, "--timeline", file, "--json")
    result = json.loads(completed.stdout)
    measured = [machine_result["statistics"] for machine_result in (result, result.get("host")) if machine_result]
    trace: Any = importlib.import_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2").Trace()
    assert trace.ParseFromString(file.read_bytes()) == file.stat().st_size
    # All written fields are known to Perfetto.
    trace.DiscardUnknownFields()
    assert trace.ByteSize() == file.stat().st_size
    assert not any(packet.HasField("track_event") and packet.track_event.name for packet in trace.packet)
    names: dict[int, str] = {}
    tracks: dict[int, str] = {}
    open_slices: dict[int, list[int]] = defaultdict(list)
    accesses: list[int] = []
    steps = 0
    flows: tuple[set[int], set[int]] = (set(), set())
    for packet in trace.packet:
        names |= {name.iid: name.name for name in packet.interned_data.event_names}
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor.name
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert event.track_uuid in tracks
        assert event.type in (BEGIN, END, INSTANT, COUNTER)
        if event.type == BEGIN:
            open_slices[event.track_uuid].append(packet.timestamp)
        elif event.type == END:
            begin = open_slices[event.track_uuid].pop()
            if open_slices[event.track_uuid]:
                steps += packet.timestamp - begin
            else:
                accesses.append(packet.timestamp - begin)
        flows[0].update(event.flow_ids)
        flows[1].update(event.terminating_flow_ids)
    assert not any(open_slices.values())
    assert len(accesses) == sum(machine_result["accesses"] for machine_result in measured)
    assert sum(accesses) == steps
    latency = sum(machine_result["latency_mean_ns"] * machine_result["accesses"] for machine_result in measured)
    # Timestamps are whole nanoseconds, so durations are exact to one nanosecond.
    assert sum(accesses) == pytest.approx(latency, abs=len(accesses))
    assert max(accesses) == pytest.approx(max(machine_result["latency_max_ns"] for machine_result in measured), abs=1)
    assert flows[1] <= flows[0]
    assert {"ReadShared", "wire", "load"} <= set(names.values())


@pytest.mark.needs("riscv-gcc")
def test_near_memory_timeline_matches_the_counters(cohkit_command: Command, tmp_path: Path, root: Path) -> None:
    """Slices and flows of the timeline agree with the counters of the same run, which it does not change."""
    file, host, channel = (tmp_path / name for name in ("run.pftrace", "host.elf", "arrays.elf"))
    for flags, source, program in (("host", "host", host), ("channel", "arrays", channel)):
        compiled = [f"@nearmemory/{flags}.flags", f"docs/riscv/arrays/{source}.c", "-o", str(program)]
        subprocess.run(["riscv64-unknown-elf-gcc", *compiled], cwd=root, check=True)
    run_options = ["run", "--counters", "--channel-program", f"arrays={channel}"]
    without_timeline, with_timeline = (
        cohkit_command(*run_options, host),
        cohkit_command(*run_options, "--timeline", file, host),
    )
    assert (with_timeline.returncode, with_timeline.stdout) == (0, without_timeline.stdout)
    *counted, last_line = with_timeline.stderr.splitlines()
    assert counted == without_timeline.stderr.splitlines()
    counts = {name: int(number) for name, number in (line.rsplit(": ", 1) for line in counted)}
    trace: Any = importlib.import_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2").Trace()
    assert trace.ParseFromString(file.read_bytes()) == file.stat().st_size
    names: dict[int, str] = {}
    tracks: dict[int, str] = {}
    open_slices: dict[int, list[tuple[int, str]]] = defaultdict(list)
    slices: Counter[tuple[str, str]] = Counter()
    flows: tuple[list[int], list[int]] = ([], [])
    end = 0
    for packet in trace.packet:
        names |= {name.iid: name.name for name in packet.interned_data.event_names}
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor.name
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        end = max(end, packet.timestamp)
        if event.type == BEGIN:
            open_slices[event.track_uuid].append((packet.timestamp, names[event.name_iid]))
        elif event.type == END:
            begin, name = open_slices[event.track_uuid].pop()
            assert begin <= packet.timestamp
            slices[tracks[event.track_uuid].rstrip(" 0123456789"), name] += 1
        flows[0].extend(event.flow_ids)
        flows[1].extend(event.terminating_flow_ids)
    assert not any(open_slices.values())
    assert slices["core", "arrays"] == slices["host core", "host"] == 1
    assert slices["host core", "waits"] > 0
    requests = sum(count for (track, _), count in slices.items() if track == "request of the host")
    assert last_line.startswith(f"the timeline shows {requests} requests of the host in {file.stat().st_size} bytes")
    assert requests == counts["link: messages to the device"]
    for name, count in (("fetch line", "lines fetched"), ("store line", "lines stored")):
        assert slices["copies of core 0, line", name] == counts[f"mcc 0: {count}"]
    assert len(set(flows[0])) == len(flows[0]) >= len(flows[1])
    assert set(flows[1]) <= set(flows[0])
    assert 1000 * end <= counts["time in picoseconds"]
    # Each request belongs to one core, as lines are evicted only from full sets.
    for agent, request_count in (("host core 0", requests), ("core 0", 0)):
        of_one = cohkit_command(*run_options, "--timeline", file, "--timeline-agent", agent, host)
        assert f"the timeline shows {request_count} requests of the host in " in of_one.stderr


class Waveform:
    """Enumerated types of a waveform, and the values of their variables in order of time."""

    def __init__(self, file: Path) -> None:
        """Read all variables with an enumerated type."""
        module: Any = importlib.import_module("pylibfst")
        lib, string = module.lib, module.string
        self.types: dict[str, dict[str, str]] = {}
        self.values: dict[str, list[str]] = defaultdict(list)
        reader = lib.fstReaderOpen(bytes(file))
        assert reader != module.ffi.NULL
        scopes: list[str] = []
        tables: dict[int, dict[str, str]] = {}
        table_of_handle: dict[int, dict[str, str]] = {}
        names: dict[int, list[str]] = defaultdict(list)
        table = None
        while (entry := lib.fstReaderIterateHier(reader)) != module.ffi.NULL:
            if entry.htyp == lib.FST_HT_SCOPE:
                scopes.append(string(entry.u.scope.name))
            elif entry.htyp == lib.FST_HT_UPSCOPE:
                scopes.pop()
            elif entry.htyp == lib.FST_HT_VAR:
                handle = entry.u.var.handle
                names[handle].append(".".join([*scopes, string(entry.u.var.name).split(" ")[0]]))
                if table is not None:
                    table_of_handle[handle] = tables[table]
                table = None
            elif entry.htyp == lib.FST_HT_ATTRBEGIN and entry.u.attr.subtype == lib.FST_MT_ENUMTABLE:
                attribute = entry.u.attr
                if attribute.name_length:
                    enum_table = lib.fstUtilityExtractEnumTableFromString(attribute.name)
                    pairs = [
                        (string(enum_table.val_arr[i]), string(enum_table.literal_arr[i]))
                        for i in range(enum_table.elem_count)
                    ]
                    tables[attribute.arg] = self.types[string(enum_table.name)] = dict(pairs)
                else:
                    table = attribute.arg

        def store_change(_reader: object, _time: int, handle: int, value: object) -> None:
            for name in names[handle] if handle in table_of_handle else []:
                self.values[name].append(table_of_handle[handle].get(string(value), "none of them"))

        lib.fstReaderSetFacProcessMaskAll(reader)
        module.fstReaderIterBlocks(reader, store_change)
        lib.fstReaderClose(reader)


@pytest.mark.needs("verilator", "pylibfst")
def test_waveforms_have_the_names_of_the_states(tmp_path: Path, root: Path) -> None:
    """The home loses a write to its directory; one build, with waveforms, serves both requested builds."""
    built_library, verilator_script = tmp_path / "lockstep.so", tmp_path / "verilator"
    real = shutil.which("verilator")
    verilator_script.write_text(
        f"""#!/bin/sh
[ "$1" = --version ] && exec {real} --version
[ -e {built_library} ] && exec cp {built_library} lockstep.so
sed -i 's/takes && (hit || row_stays_q)/takes \\&\\& row_stays_q/' dcu.sv
{real} "$@" --trace-fst --trace-structs -MAKEFLAGS "OPT_FAST=-O0 OPT_GLOBAL=-O0" && cp lockstep.so {built_library}
"""
    )
    verilator_script.chmod(0o755)
    file = tmp_path / "run.fst"
    folders = ["--build-cache", tmp_path / "built", "--waveform", file]
    options = ["--shape", "narrow", "--messages", "200", *folders, "--json"]
    command = map(
        str, [Path(sys.executable).parent / "cohkit", "rtl", "test", "protocols/back-invalidate.coh", *options]
    )
    path = f"{tmp_path}:{os.environ['PATH']}"
    completed = subprocess.run(
        [*command], cwd=root, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert (completed.returncode, completed.stderr) == (1, "")
    match = re.search(r"the home looks up the state (\S+)$", json.loads(completed.stdout)["mismatch"]["description"])
    assert match, completed.stdout
    waveform = Waveform(file)
    states = waveform.types["back_invalidate_pkg::state_e"]
    table = cohkit.table("protocols/back-invalidate.coh", merged=True)
    assert {*states.values()} == {row["state"] for row in table["rows"]}
    assert len(states) == table["states"]
    assert {"MemRdCur", "BIRspI"} <= {*waveform.types["back_invalidate_pkg::event_e"].values()}
    in_units = [[*name.split("."), values] for name, values in waveform.values.items() if ".u_dcu." in name]
    looked_up = [values for *_, name, values in in_units if name == "found_state"]
    assert match[1] in [values[-1] for values in looked_up]
    left = [values for *_, name, values in in_units if name == "step_state_o"]
    assert len(left) == 2
    # A unit takes a step from an existing state.
    assert 5 < len({*left[0], *left[1]} & {*states.values()}) == len({*left[0], *left[1]})
