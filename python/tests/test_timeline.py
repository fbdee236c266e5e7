"""Timelines of `cohkit sim` and `cohkit run`, read by the descriptor of Perfetto's own package."""

from __future__ import annotations

import importlib
import json
import subprocess
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Command

pytestmark = pytest.mark.needs("perfetto")

# Values of Perfetto's `TrackEvent.Type`.
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


@dataclass(frozen=True)
class Slice:
    """A slice of a track. Times are in nanoseconds."""

    track: str
    name: str
    begin: int
    end: int
    depth: int
    """Number of slices around it on the same track."""

    @property
    def duration(self) -> int:
        """Time from begin to end."""
        return self.end - self.begin


@dataclass
class Timeline:
    """Slices of a timeline in order of their ends, and its flows."""

    names: set[str] = field(default_factory=set)
    slices: list[Slice] = field(default_factory=list)
    flow_sources: list[int] = field(default_factory=list)
    """Identifiers of flows, once for each event from which a flow leads."""
    flow_targets: list[int] = field(default_factory=list)
    """Identifiers of flows, once for each event at which a flow ends."""
    end: int = 0
    """Time of the last event, in nanoseconds."""


def parse_trace(file: Path) -> Any:
    """Parse a file, and check that Perfetto's descriptor has all of its fields."""
    trace: Any = importlib.import_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2").Trace()
    size = file.stat().st_size
    assert trace.ParseFromString(file.read_bytes()) == size
    trace.DiscardUnknownFields()
    assert trace.ByteSize() == size
    return trace


def read_timeline(file: Path) -> Timeline:
    """Read a timeline, and check that its slices are nested and closed, on tracks with a name."""
    timeline = Timeline()
    names: dict[int, str] = {}
    tracks: dict[int, str] = {}
    open_slices: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for packet in parse_trace(file).packet:
        names |= {name.iid: name.name for name in packet.interned_data.event_names}
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor.name
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        # Names are interned, for the size of the file.
        assert not event.name
        assert event.track_uuid in tracks
        assert event.type in (BEGIN, END, INSTANT, COUNTER)
        timeline.end = max(timeline.end, packet.timestamp)
        stack = open_slices[event.track_uuid]
        if event.type == BEGIN:
            stack.append((packet.timestamp, names[event.name_iid]))
        elif event.type == END:
            begin, name = stack.pop()
            assert begin <= packet.timestamp
            timeline.slices.append(Slice(tracks[event.track_uuid], name, begin, packet.timestamp, len(stack)))
        timeline.flow_sources.extend(event.flow_ids)
        timeline.flow_targets.extend(event.terminating_flow_ids)
    assert not any(open_slices.values())
    timeline.names = set(names.values())
    return timeline


@pytest.mark.parametrize(
    "machine",
    [
        ["enzian-dc-ddr", "--cores", "6"],
        ["enzian-dc-ddr+enzian-cpu-home", "--protocol", "protocols/eci-both.coh", "--accesses", "3000"],
    ],
)
def test_slices_add_up_to_the_statistics(
    cohkit_command: Command, tmp_path: Path, root: Path, machine: list[str]
) -> None:
    """The outer slices of a simulation are its accesses, and the inner slices are the steps of these accesses."""
    file = tmp_path / "run.pftrace"
    name, *more_arguments = [str(root / argument) if argument.endswith(".coh") else argument for argument in machine]
    arguments = ["sim", name, "random-mixed", "--region", "1MiB", "--outstanding", 3, *more_arguments]
    completed = cohkit_command(*arguments, "--timeline", file, "--json")
    result = json.loads(completed.stdout)
    measured = [machine_result["statistics"] for machine_result in (result, result.get("host")) if machine_result]

    timeline = read_timeline(file)
    accesses = [part.duration for part in timeline.slices if part.depth == 0]
    steps = [part.duration for part in timeline.slices if part.depth > 0]
    assert len(accesses) == sum(statistics["accesses"] for statistics in measured)
    assert sum(accesses) == sum(steps)
    # Timestamps are whole nanoseconds, so durations are exact to one nanosecond.
    latency = sum(statistics["latency_mean_ns"] * statistics["accesses"] for statistics in measured)
    assert sum(accesses) == pytest.approx(latency, abs=len(accesses))
    assert max(accesses) == pytest.approx(max(statistics["latency_max_ns"] for statistics in measured), abs=1)
    assert set(timeline.flow_targets) <= set(timeline.flow_sources)
    assert {"ReadShared", "wire", "load"} <= timeline.names


@dataclass
class NearMemoryRun:
    """Options of `cohkit run` for a host program and its channel program `arrays`, and the compiled host program."""

    options: list[str]
    host: Path


@pytest.fixture
def near_memory_run(tmp_path: Path, root: Path) -> NearMemoryRun:
    """Compile both programs of the example `arrays`."""
    host, channel = tmp_path / "host.elf", tmp_path / "arrays.elf"
    for flags, source, program in (("host", "host", host), ("channel", "arrays", channel)):
        compiled = [f"@nearmemory/{flags}.flags", f"docs/riscv/arrays/{source}.c", "-o", str(program)]
        subprocess.run(["riscv64-unknown-elf-gcc", *compiled], cwd=root, check=True)
    return NearMemoryRun(["run", "--counters", "--channel-program", f"arrays={channel}"], host)


@pytest.mark.needs("riscv-gcc")
def test_near_memory_timeline_matches_the_counters(
    cohkit_command: Command, tmp_path: Path, near_memory_run: NearMemoryRun
) -> None:
    """Slices and flows agree with the counters of the same run, and the timeline does not change the run."""
    file = tmp_path / "run.pftrace"
    options, host = near_memory_run.options, near_memory_run.host
    without_timeline = cohkit_command(*options, host)
    with_timeline = cohkit_command(*options, "--timeline", file, host)
    assert (with_timeline.returncode, with_timeline.stdout) == (0, without_timeline.stdout)
    *counter_lines, last_line = with_timeline.stderr.splitlines()
    assert counter_lines == without_timeline.stderr.splitlines()
    counters = {name: int(number) for name, number in (line.rsplit(": ", 1) for line in counter_lines)}

    timeline = read_timeline(file)
    # Tracks of one kind differ by a number at the end of their names.
    slices = Counter((part.track.rstrip(" 0123456789"), part.name) for part in timeline.slices)
    assert slices["core", "arrays"] == slices["host core", "host"] == 1
    assert slices["host core", "waits"] > 0
    requests = sum(count for (track, _), count in slices.items() if track == "request of the host")
    assert requests == counters["link: messages to the device"]
    assert last_line.startswith(f"the timeline shows {requests} requests of the host in {file.stat().st_size} bytes")
    for name, counter in (("fetch line", "lines fetched"), ("store line", "lines stored")):
        assert slices["copies of core 0, line", name] == counters[f"mcc 0: {counter}"]
    # Each flow has one source and at most one target.
    sources, targets = timeline.flow_sources, timeline.flow_targets
    assert len(set(sources)) == len(sources) >= len(targets)
    assert set(targets) <= set(sources)
    assert 1000 * timeline.end <= counters["time in picoseconds"]


@pytest.mark.needs("riscv-gcc")
def test_near_memory_timeline_of_one_agent_has_its_requests_only(
    cohkit_command: Command, tmp_path: Path, near_memory_run: NearMemoryRun
) -> None:
    """All requests belong to the host's core, because lines are evicted only from full sets."""
    file = tmp_path / "run.pftrace"
    options, host = near_memory_run.options, near_memory_run.host
    completed = cohkit_command(*options, host)
    counters = dict(line.rsplit(": ", 1) for line in completed.stderr.splitlines())
    requests = int(counters["link: messages to the device"])
    for agent, request_count in (("host core 0", requests), ("core 0", 0)):
        of_agent = cohkit_command(*options, "--timeline", file, "--timeline-agent", agent, host)
        assert f"the timeline shows {request_count} requests of the host in " in of_agent.stderr
