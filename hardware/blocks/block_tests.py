"""Tests of the RTL's blocks with random traffic, run by cocotb inside the simulator.

Each coroutine is for one top of blocks.sv; python/tests/test_blocks.py names it. Inputs change at the
falling clock edge, and outputs are checked before the next rising edge. Random numbers have fixed seeds.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from random import Random
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge


async def reset(dut: Any, inputs: list[str]) -> None:
    """Start the clock and reset the block for three cycles, with these inputs low. Return at a falling edge."""
    for name in inputs:
        getattr(dut, name).value = 0
    dut.rst_ni.value = 0
    cocotb.start_soon(Clock(dut.clk_i, 2, units="ns").start())
    for _ in range(3):
        await RisingEdge(dut.clk_i)
    await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1


@cocotb.test()
async def stream(dut: Any) -> None:
    """A queue or a spill register delivers each element once and in order, at the rate of the receiver."""
    chance = Random(1)
    await reset(dut, ["wr_valid_i", "wr_data_i", "rd_ready_i"])
    sent: deque[int] = deque()
    received = 0
    for ready_rate in (1.0, 0.5, 0.1):
        for _ in range(400):
            # An offered word stays until it is taken.
            if not dut.wr_valid_i.value or dut.wr_ready_o.value:
                dut.wr_valid_i.value = int(chance.random() < 0.7)
                dut.wr_data_i.value = chance.getrandbits(16)
            dut.rd_ready_i.value = int(chance.random() < ready_rate)
            await ReadOnly()
            taken = bool(dut.wr_valid_i.value and dut.wr_ready_o.value)
            if dut.rd_valid_o.value and dut.rd_ready_i.value:
                assert int(dut.rd_data_o.value) == sent.popleft()
                received += 1
            if taken:
                sent.append(int(dut.wr_data_i.value))
            await RisingEdge(dut.clk_i)
            await FallingEdge(dut.clk_i)
            if taken:
                dut.wr_valid_i.value = 0
    assert received > 250
    dut.wr_valid_i.value = 0
    dut.rd_ready_i.value = 1
    while sent:
        await ReadOnly()
        if dut.rd_valid_o.value:
            assert int(dut.rd_data_o.value) == sent.popleft()
        await FallingEdge(dut.clk_i)
    await ReadOnly()
    assert not dut.rd_valid_o.value


@cocotb.test()
async def arbiter(dut: Any) -> None:
    """An arbiter delivers all streams, each in order; a waiting stream is served within one round of the others."""
    chance = Random(2)
    size = len(dut.wr_valid_i)
    await reset(dut, ["wr_valid_i", "wr_data_i", "rd_ready_i"])
    queues = [deque(chance.getrandbits(16) for _ in range(40)) for _ in range(size)]
    offered = [False] * size
    passes = [0] * size
    left = sum(map(len, queues))
    for _ in range(20_000):
        for i, queue in enumerate(queues):
            offered[i] = bool(queue) and (offered[i] or left > 12 * size or chance.random() < 0.3)
        dut.wr_valid_i.value = sum(1 << i for i in range(size) if offered[i])
        dut.wr_data_i.value = sum(queue[0] << 16 * i for i, queue in enumerate(queues) if queue)
        dut.rd_ready_i.value = int(chance.random() < 0.8)
        await ReadOnly()
        ready = int(dut.wr_ready_o.value)
        if dut.rd_valid_o.value and dut.rd_ready_i.value:
            index = int(dut.rd_index_o.value)
            assert ready == 1 << index
            assert offered[index]
            assert int(dut.rd_data_o.value) == queues[index].popleft()
            left -= 1
            for i in range(size):
                passes[i] = passes[i] + 1 if offered[i] and i != index else 0
            # Groups of eight are served in turn, so the second group, of four, counts as eight.
            assert max(passes) <= 16
            offered[index] = False
        else:
            assert ready == 0
        await FallingEdge(dut.clk_i)
        if left == 0:
            return
    raise AssertionError(f"{left} words are left")


UNITS, ENTRIES, BEATS, SLICE = 4, 2, 2, 1
# Permission that a request asks for, by event of the blocks' protocol: none, read, write.
PERMISSIONS = {0: 0, 1: 1, 2: 2}
# Maximum memory latency in cycles, and probability that the memory ports are ready.
MEMORY_CONDITIONS = [(1, 1.0), (30, 0.6), (200, 0.2)]


def address(unit: int, line: int) -> int:
    """Return the byte address of a unit's line. The line number has, from bit 0: slice, unit and line index."""
    return (line << 3 | unit << 1 | SLICE) << 5


def packed(values: list[int], width: int) -> int:
    """Return the values as fields of this width, the first in the lowest bits."""
    return sum(value << width * i for i, value in enumerate(values))


@dataclass
class Burst:
    """A read or a write at memory.

    `unit` and `entry` are those of the request, `line` is the index of the line within the unit, `time` the first
    cycle of memory's answer, and `beat` the number of beats transferred.
    """

    unit: int
    entry: int
    line: int
    time: int
    beat: int = 0

    @property
    def id(self) -> int:
        return self.unit << 1 | self.entry


@cocotb.test()
async def reader(dut: Any) -> None:
    """Lines are read for all units, for any order of memory's answers, with interleaved beats of several reads."""
    chance = Random(3)
    inputs = ["unit_valid_i", "unit_line_i", "unit_slot_i", "unit_event_i", "rd_en_i", "rd_unit_i", "rd_slot_i"]
    await reset(dut, [*inputs, "rd_beat_i", "ar_ready_i", "r_valid_i", "r_id_i", "r_data_i", "r_last_i"])
    content = [[[chance.getrandbits(128) for _ in range(BEATS)] for _ in range(256)] for _ in range(UNITS)]
    cycle = overtaken = interleaved = 0
    for latency, ready in MEMORY_CONDITIONS:
        pending: list[tuple[int, int, int] | None] = [None] * UNITS  # entry, line, event
        free = [set(range(ENTRIES)) for _ in range(UNITS)]
        in_flight: list[Burst] = []
        arrived: list[Burst] = []
        expected: int | None = None
        left, last = 400, None
        while left or in_flight or arrived or any(pending) or expected is not None:
            cycle += 1
            assert cycle < 200_000, "reads do not come to an end"
            for unit in range(UNITS):
                if pending[unit] is None and free[unit] and left and chance.random() < 0.3:
                    entry = chance.choice(sorted(free[unit]))
                    free[unit].remove(entry)
                    pending[unit] = entry, chance.randrange(256), chance.choice(list(PERMISSIONS))
                    left -= 1
            jobs = [job or (0, 0, 0) for job in pending]
            dut.unit_valid_i.value = packed([int(job is not None) for job in pending], 1)
            dut.unit_slot_i.value = packed([job[0] for job in jobs], 1)
            dut.unit_line_i.value = packed([job[1] for job in jobs], 8)
            dut.unit_event_i.value = packed([job[2] for job in jobs], 6)
            dut.ar_ready_i.value = int(chance.random() < ready)
            due = [burst for burst in in_flight if burst.time <= cycle]
            burst = chance.choice(due) if due and chance.random() < 0.8 else None
            dut.r_valid_i.value = int(burst is not None)
            if burst:
                dut.r_id_i.value = burst.id
                dut.r_data_i.value = content[burst.unit][burst.line][burst.beat]
                dut.r_last_i.value = int(burst.beat == BEATS - 1)
            fetched = arrived[0] if arrived and chance.random() < 0.5 else None
            dut.rd_en_i.value = int(fetched is not None)
            if fetched:
                dut.rd_unit_i.value, dut.rd_slot_i.value, dut.rd_beat_i.value = (
                    fetched.unit,
                    fetched.entry,
                    fetched.beat,
                )
            await ReadOnly()
            # The requested bytes stay until the next request.
            if expected is not None:
                assert int(dut.rd_data_o.value) == expected
            done = [[0] * ENTRIES for _ in range(UNITS)]
            assert dut.r_ready_o.value == 1
            if burst:
                interleaved += last is not None and last is not burst and last.beat == 1
                last = burst
                burst.beat += 1
                if burst.beat == BEATS:
                    done[burst.unit][burst.entry] = 1
                    overtaken += in_flight[0] is not burst
                    in_flight.remove(burst)
            assert int(dut.unit_done_o.value) == packed([packed(unit, 1) for unit in done], ENTRIES)
            taken = int(dut.unit_ready_o.value)
            if dut.ar_valid_o.value and dut.ar_ready_i.value:
                unit = taken.bit_length() - 1
                assert taken == 1 << unit
                job = pending[unit]
                assert job is not None
                read = Burst(unit, job[0], job[1], cycle + 1 + chance.randrange(latency))
                assert int(dut.ar_id_o.value) == read.id
                assert int(dut.ar_addr_o.value) == address(unit, read.line)
                assert int(dut.ar_user_o.value) == PERMISSIONS[job[2]] << 6 | job[2]
                pending[unit] = None
                in_flight.append(read)
            else:
                assert taken == 0
            if burst and burst.beat == BEATS:
                arrived.append(Burst(burst.unit, burst.entry, burst.line, cycle))
            if fetched:
                expected = content[fetched.unit][fetched.line][fetched.beat]
                fetched.beat += 1
                if fetched.beat == BEATS:
                    arrived.remove(fetched)
                    free[fetched.unit].add(fetched.entry)
            elif not arrived:
                expected = None
            await FallingEdge(dut.clk_i)
    assert overtaken > 100
    assert interleaved > 100


@dataclass
class Write:
    """A write requested by a unit: its request, its event, and the location and values of its bytes."""

    burst: Burst
    event: int
    circuit: int
    slot: int
    beats: list[tuple[int, int]]  # data, and a mask with one bit per two bytes

    def word(self, beat: int) -> int:
        return self.circuit << 5 | self.burst.unit << 3 | self.slot << 1 | beat


@cocotb.test()
async def writer(dut: Any) -> None:
    """Addresses and bytes of all units reach memory independently; units are notified in memory's order."""
    chance = Random(4)
    inputs = ["unit_valid_i", "unit_line_i", "unit_slot_i", "unit_event_i", "unit_permission_i", "unit_circuit_i"]
    await reset(dut, [*inputs, "unit_payload_slot_i", "load_i", "aw_ready_i", "w_ready_i", "b_valid_i", "b_id_i"])
    cycle = overtaken = 0
    for latency, ready in MEMORY_CONDITIONS:
        pending: list[Write | None] = [None] * UNITS
        loading: list[tuple[Write, int]] = []
        free = [set(range(ENTRIES)) for _ in range(UNITS)]
        slots = {(circuit, unit, slot) for circuit in range(2) for unit in range(UNITS) for slot in range(4)}
        unfreed: list[Write] = []
        overwrites: list[int] = []
        addresses: deque[Write] = deque()  # taken from their units, not yet seen on AW
        data: deque[Write] = deque()  # the same for W
        seen: dict[int, int] = {}  # parts of a write that memory has seen: address and bytes
        in_flight: list[Write] = []
        left, beat = 300, 0
        while left or loading or any(pending) or unfreed or addresses or data or in_flight:
            cycle += 1
            assert cycle < 200_000, "writes do not come to an end"
            # A slot receives one beat per cycle; a freed slot is overwritten at once.
            dut.load_i.value = 0
            if overwrites:
                dut.load_i.value, dut.load_addr_i.value = 1, overwrites.pop()
                dut.load_data_i.value, dut.load_mask_i.value = chance.getrandbits(128), chance.getrandbits(8)
            elif loading:
                write, at = loading.pop()
                dut.load_i.value, dut.load_addr_i.value = 1, write.word(at)
                dut.load_data_i.value, dut.load_mask_i.value = write.beats[at]
                if at + 1 < BEATS:
                    loading.append((write, at + 1))
                else:
                    pending[write.burst.unit] = write
            else:
                unit = chance.randrange(UNITS)
                choice = sorted(slot for slot in slots if slot[1] == unit)
                if pending[unit] is None and free[unit] and left and choice:
                    entry, slot = chance.choice(sorted(free[unit])), chance.choice(choice)
                    free[unit].remove(entry)
                    slots.remove(slot)
                    beats = [(chance.getrandbits(128), chance.getrandbits(8)) for _ in range(BEATS)]
                    burst = Burst(unit, entry, chance.randrange(256), 0)
                    loading.append((Write(burst, chance.randrange(64), slot[0], slot[2], beats), 0))
                    left -= 1
            # A write is offered in the cycle after its last bytes were put.
            offered = [write if write and write.burst.time else None for write in pending]
            for write in pending:
                if write:
                    write.burst.time = 1
            dut.unit_valid_i.value = packed([int(write is not None) for write in offered], 1)
            dut.unit_slot_i.value = packed([write.burst.entry if write else 0 for write in offered], 1)
            dut.unit_line_i.value = packed([write.burst.line if write else 0 for write in offered], 8)
            dut.unit_event_i.value = packed([write.event if write else 0 for write in offered], 6)
            # The permission that the remote keeps follows from the event.
            dut.unit_permission_i.value = packed([write.event % 3 if write else 0 for write in offered], 2)
            dut.unit_circuit_i.value = packed([write.circuit if write else 0 for write in offered], 2)
            dut.unit_payload_slot_i.value = packed([write.slot if write else 0 for write in offered], 2)
            dut.aw_ready_i.value = int(chance.random() < ready)
            dut.w_ready_i.value = int(chance.random() < ready)
            due = [write for write in in_flight if write.burst.time <= cycle]
            completed = chance.choice(due) if due and chance.random() < 0.8 else None
            dut.b_valid_i.value = int(completed is not None)
            dut.b_id_i.value = completed.burst.id if completed else 0
            await ReadOnly()
            done = [[0] * ENTRIES for _ in range(UNITS)]
            assert dut.b_ready_o.value == 1
            if completed:
                done[completed.burst.unit][completed.burst.entry] = 1
                overtaken += in_flight[0] is not completed
                in_flight.remove(completed)
                free[completed.burst.unit].add(completed.burst.entry)
            assert int(dut.unit_done_o.value) == packed([packed(unit, 1) for unit in done], ENTRIES)
            for circuit in range(2):
                if int(dut.free_valid_o.value) >> circuit & 1:
                    entry = (circuit, int(dut.free_unit_o.value), int(dut.free_slot_o.value))
                    freed = [w for w in unfreed if (w.circuit, w.burst.unit, w.slot) == entry]
                    assert len(freed) == 1
                    unfreed.remove(freed[0])
                    overwrites.extend(freed[0].word(at) for at in range(BEATS))
                    slots.add(entry)
            complete = []
            if dut.aw_valid_o.value and dut.aw_ready_i.value:
                write = addresses.popleft()
                assert int(dut.aw_id_o.value) == write.burst.id
                assert int(dut.aw_addr_o.value) == address(write.burst.unit, write.burst.line)
                assert int(dut.aw_user_o.value) == write.event % 3 << 6 | write.event
                complete.append(write)
            if dut.w_valid_o.value and dut.w_ready_i.value:
                write = data[0]
                bytes_, mask = write.beats[beat]
                assert int(dut.w_data_o.value) == bytes_
                assert int(dut.w_strb_o.value) == packed([3 * (mask >> i & 1) for i in range(8)], 2)
                beat += 1
                assert bool(dut.w_last_o.value) == (beat == BEATS)
                if beat == BEATS:
                    beat = 0
                    complete.append(data.popleft())
            for write in complete:
                seen[write.burst.id] = seen.get(write.burst.id, 0) + 1
                if seen[write.burst.id] == 2:
                    del seen[write.burst.id]
                    write.burst.time = cycle + 1 + chance.randrange(latency)
                    in_flight.append(write)
            taken = int(dut.unit_ready_o.value)
            if taken:
                unit = taken.bit_length() - 1
                assert taken == 1 << unit
                write = offered[unit]
                assert write is not None
                addresses.append(write)
                data.append(write)
                unfreed.append(write)
                pending[unit] = None
            await FallingEdge(dut.clk_i)
    assert overtaken > 100
