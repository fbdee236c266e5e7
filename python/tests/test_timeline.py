"""Timelines of `cohkit sim`, read by the descriptor that comes with Perfetto's own package."""

from __future__ import annotations

import importlib
import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Command

pytestmark = pytest.mark.needs("perfetto")

# The kinds of events.
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def test_slices_are_the_statistics(cohkit_command: Command, tmp_path: Path) -> None:
    file = tmp_path / "run.pftrace"
    arguments = ["sim", "enzian-dc-ddr", "random-mixed", "--region", "1MiB", "--cores", 6, "--outstanding", 3]
    run = cohkit_command(*arguments, "--timeline", file, "--json")
    statistics = json.loads(run.stdout)["statistics"]
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
    assert len(accesses) == statistics["accesses"]
    assert sum(accesses) == steps
    assert sum(accesses) / len(accesses) / 1000 == pytest.approx(statistics["latency_mean_ns"], rel=1e-12)
    assert max(accesses) / 1000 == statistics["latency_max_ns"]
    assert flows[1] <= flows[0]
    assert {"ReadShared", "wire", "load"} <= set(names.values())
