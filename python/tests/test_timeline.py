"""Timelines of `cohkit sim`, read by the descriptor that comes with Perfetto's own package."""

from __future__ import annotations

import importlib
import json
import subprocess
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

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
    file = tmp_path / "run.pftrace"
    name, *more = [str(root / argument) if argument.endswith(".coh") else argument for argument in machine]
    arguments = ["sim", name, "random-mixed", "--region", "1MiB", "--outstanding", 3, *more]
    run = cohkit_command(*arguments, "--timeline", file, "--json")
    told = json.loads(run.stdout)
    measured = [of["statistics"] for of in (told, told.get("host")) if of]
    trace: Any = importlib.import_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2").Trace()
    assert trace.ParseFromString(file.read_bytes()) == file.stat().st_size
    # All that is written has a meaning there.
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
    assert len(accesses) == sum(of["accesses"] for of in measured)
    assert sum(accesses) == steps
    latency = sum(of["latency_mean_ns"] * of["accesses"] for of in measured)
    assert sum(accesses) / 1000 == pytest.approx(latency, rel=1e-12)
    assert max(accesses) / 1000 == max(of["latency_max_ns"] for of in measured)
    assert flows[1] <= flows[0]
    assert {"ReadShared", "wire", "load"} <= set(names.values())


@pytest.mark.needs("riscv-gcc")
def test_programs_beside_far_memory_are_drawn_with_all_that_is_counted(
    cohkit_command: Command, tmp_path: Path, root: Path
) -> None:
    file, host, channel = (tmp_path / name for name in ("run.pftrace", "host.elf", "arrays.elf"))
    for flags, source, program in (("host", "host", host), ("channel", "arrays", channel)):
        compiled = [f"@nearmemory/{flags}.flags", f"docs/riscv/arrays/{source}.c", "-o", str(program)]
        subprocess.run(["riscv64-unknown-elf-gcc", *compiled], cwd=root, check=True)
    run = ["run", "--counters", "--cp", f"arrays={channel}"]
    plain, drawn = cohkit_command(*run, host), cohkit_command(*run, "--timeline", file, host)
    assert (drawn.returncode, drawn.stdout) == (0, plain.stdout)
    *counted, told = drawn.stderr.splitlines()
    assert counted == plain.stderr.splitlines()
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
    assert told.startswith(f"the timeline shows {requests} requests of the host in {file.stat().st_size} bytes")
    assert requests == counts["link: messages to the device"]
    for name, count in (("fetch line", "lines fetched"), ("store line", "lines stored")):
        assert slices["copies of core 0, line", name] == counts[f"mcc 0: {count}"]
    assert len(set(flows[0])) == len(flows[0]) >= len(flows[1])
    assert set(flows[1]) <= set(flows[0])
    assert end <= counts["time in picoseconds"]
    # Each request is for one core, as lines are evicted only where there is no room.
    for agent, shown in (("host core 0", requests), ("core 0", 0)):
        of_one = cohkit_command(*run, "--timeline", file, "--timeline-agent", agent, host)
        assert f"the timeline shows {shown} requests of the host in " in of_one.stderr
