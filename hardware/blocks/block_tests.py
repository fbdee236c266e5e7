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
        """AXI ID of the burst."""
        return self.unit << 1 | self.entry


@dataclass
class Request:
    """A read that a unit requests."""

    entry: int
    line: int
    event: int


class ReadTraffic:
    """Random traffic around the reader: the units' requests, the memory, and the fetches of the lines read.

    In each cycle, the `drive_` methods set the inputs, and then the other methods check the outputs.
    """

    def __init__(self, dut: Any, chance: Random) -> None:
        """Draw the contents of memory."""
        self.dut = dut
        self.chance = chance
        self.content = [[[chance.getrandbits(128) for _ in range(BEATS)] for _ in range(256)] for _ in range(UNITS)]
        self.cycle = self.overtaken = self.interleaved = 0

    def start(self, latency: int, ready: float, requests: int) -> None:
        """Start a phase with this memory and this number of requests."""
        self.latency, self.ready = latency, ready
        self.left = requests
        self.pending: list[Request | None] = [None] * UNITS
        self.free = [set(range(ENTRIES)) for _ in range(UNITS)]
        self.in_flight: list[Burst] = []
        self.arrived: list[Burst] = []
        self.last: Burst | None = None  # burst of the previous beat
        self.expected: int | None = None  # data of the previous fetch

    def is_busy(self) -> bool:
        """Return whether the phase has not ended."""
        unread = self.left or self.in_flight or any(self.pending)
        return bool(unread or self.arrived or self.expected is not None)

    def drive_units(self) -> None:
        """Start random requests, and offer those that the reader has not accepted."""
        dut, chance = self.dut, self.chance
        for unit, free in enumerate(self.free):
            if self.pending[unit] is None and free and self.left and chance.random() < 0.3:
                entry = chance.choice(sorted(free))
                free.remove(entry)
                self.pending[unit] = Request(entry, chance.randrange(256), chance.choice(list(PERMISSIONS)))
                self.left -= 1
        requests = [request or Request(0, 0, 0) for request in self.pending]
        dut.unit_valid_i.value = packed([int(request is not None) for request in self.pending], 1)
        dut.unit_slot_i.value = packed([request.entry for request in requests], 1)
        dut.unit_line_i.value = packed([request.line for request in requests], 8)
        dut.unit_event_i.value = packed([request.event for request in requests], 6)

    def drive_memory(self) -> Burst | None:
        """Drive memory's answers. Return the burst of the beat that memory sends."""
        dut, chance = self.dut, self.chance
        dut.ar_ready_i.value = int(chance.random() < self.ready)
        due = [burst for burst in self.in_flight if burst.time <= self.cycle]
        burst = chance.choice(due) if due and chance.random() < 0.8 else None
        dut.r_valid_i.value = int(burst is not None)
        if burst:
            dut.r_id_i.value = burst.id
            dut.r_data_i.value = self.content[burst.unit][burst.line][burst.beat]
            dut.r_last_i.value = int(burst.beat == BEATS - 1)
        return burst

    def drive_fetch(self) -> Burst | None:
        """Fetch a beat of the oldest line at random. Return the line."""
        dut = self.dut
        fetched = self.arrived[0] if self.arrived and self.chance.random() < 0.5 else None
        dut.rd_en_i.value = int(fetched is not None)
        if fetched:
            dut.rd_unit_i.value = fetched.unit
            dut.rd_slot_i.value = fetched.entry
            dut.rd_beat_i.value = fetched.beat
        return fetched

    def receive_beat(self, burst: Burst | None) -> None:
        """Check that a beat is accepted, and that the last one of a line completes the read."""
        done = [[0] * ENTRIES for _ in range(UNITS)]
        assert self.dut.r_ready_o.value == 1
        if burst:
            last = self.last
            self.interleaved += last is not None and last is not burst and last.beat == 1
            self.last = burst
            burst.beat += 1
            if burst.beat == BEATS:
                done[burst.unit][burst.entry] = 1
                self.overtaken += self.in_flight[0] is not burst
                self.in_flight.remove(burst)
                self.arrived.append(Burst(burst.unit, burst.entry, burst.line, self.cycle))
        assert int(self.dut.unit_done_o.value) == packed([packed(unit, 1) for unit in done], ENTRIES)

    def accept_request(self) -> None:
        """Check that the reader accepts a request exactly when memory accepts its address."""
        dut = self.dut
        taken = int(dut.unit_ready_o.value)
        if not (dut.ar_valid_o.value and dut.ar_ready_i.value):
            assert taken == 0
            return
        unit = taken.bit_length() - 1
        assert taken == 1 << unit
        request = self.pending[unit]
        assert request is not None
        read = Burst(unit, request.entry, request.line, self.cycle + 1 + self.chance.randrange(self.latency))
        assert int(dut.ar_id_o.value) == read.id
        assert int(dut.ar_addr_o.value) == address(unit, read.line)
        assert int(dut.ar_user_o.value) == PERMISSIONS[request.event] << 6 | request.event
        self.pending[unit] = None
        self.in_flight.append(read)

    def finish_fetch(self, fetched: Burst | None) -> None:
        """Record the data to expect for a fetched beat; the last beat frees the line's entry."""
        if fetched:
            self.expected = self.content[fetched.unit][fetched.line][fetched.beat]
            fetched.beat += 1
            if fetched.beat == BEATS:
                self.arrived.remove(fetched)
                self.free[fetched.unit].add(fetched.entry)
        elif not self.arrived:
            self.expected = None


@cocotb.test()
async def reader(dut: Any) -> None:
    """Lines are read for all units, for any order of memory's answers, with interleaved beats of several reads."""
    inputs = ["unit_valid_i", "unit_line_i", "unit_slot_i", "unit_event_i", "rd_en_i", "rd_unit_i", "rd_slot_i"]
    await reset(dut, [*inputs, "rd_beat_i", "ar_ready_i", "r_valid_i", "r_id_i", "r_data_i", "r_last_i"])
    traffic = ReadTraffic(dut, Random(3))
    for latency, ready in MEMORY_CONDITIONS:
        traffic.start(latency, ready, 400)
        while traffic.is_busy():
            traffic.cycle += 1
            assert traffic.cycle < 200_000, "reads do not come to an end"
            traffic.drive_units()
            burst = traffic.drive_memory()
            fetched = traffic.drive_fetch()
            await ReadOnly()
            # The requested bytes stay until the next request.
            if traffic.expected is not None:
                assert int(dut.rd_data_o.value) == traffic.expected
            traffic.receive_beat(burst)
            traffic.accept_request()
            traffic.finish_fetch(fetched)
            await FallingEdge(dut.clk_i)
    assert traffic.overtaken > 100
    assert traffic.interleaved > 100


@dataclass
class Write:
    """A write requested by a unit: its request, its event, and the location and values of its bytes."""

    burst: Burst
    event: int
    circuit: int
    slot: int
    beats: list[tuple[int, int]]  # data, and a mask with one bit per two bytes
    parts: int = 0  # of address and data, the number that memory has received

    def word(self, beat: int) -> int:
        """Return the number of the payload word of a beat."""
        return self.circuit << 5 | self.burst.unit << 3 | self.slot << 1 | beat


class WriteTraffic:
    """Random traffic around the writer: payload and requests of the units, and the memory.

    In each cycle, the `drive_` methods set the inputs, and then the other methods check the outputs.
    """

    def __init__(self, dut: Any, chance: Random) -> None:
        """Set the results of all phases to 0."""
        self.dut = dut
        self.chance = chance
        self.cycle = self.overtaken = 0

    def start(self, latency: int, ready: float, requests: int) -> None:
        """Start a phase with this memory and this number of writes."""
        self.latency, self.ready = latency, ready
        self.left = requests
        self.pending: list[Write | None] = [None] * UNITS
        self.loading: list[tuple[Write, int]] = []  # writes whose payload is incomplete, with their next beat
        self.free = [set(range(ENTRIES)) for _ in range(UNITS)]
        self.slots = {(circuit, unit, slot) for circuit in range(2) for unit in range(UNITS) for slot in range(4)}
        self.unfreed: list[Write] = []
        self.overwrites: list[int] = []
        self.addresses: deque[Write] = deque()  # taken from their units, not yet seen on AW
        self.data: deque[Write] = deque()  # the same for W
        self.in_flight: list[Write] = []
        self.beat = 0

    def is_busy(self) -> bool:
        """Return whether the phase has not ended."""
        unaccepted = self.left or self.loading or any(self.pending)
        return bool(unaccepted or self.unfreed or self.addresses or self.data or self.in_flight)

    def drive_load(self) -> None:
        """Load a beat into a payload slot; a freed slot is overwritten at once. Without a beat, start a write."""
        dut, chance = self.dut, self.chance
        dut.load_i.value = 0
        if self.overwrites:
            dut.load_i.value, dut.load_addr_i.value = 1, self.overwrites.pop()
            dut.load_data_i.value, dut.load_mask_i.value = chance.getrandbits(128), chance.getrandbits(8)
        elif self.loading:
            write, beat = self.loading.pop()
            dut.load_i.value, dut.load_addr_i.value = 1, write.word(beat)
            dut.load_data_i.value, dut.load_mask_i.value = write.beats[beat]
            if beat + 1 < BEATS:
                self.loading.append((write, beat + 1))
            else:
                self.pending[write.burst.unit] = write
        else:
            self.start_write()

    def start_write(self) -> None:
        """Start a write of a random unit, if the unit has no pending one and has a free entry and payload slot."""
        chance = self.chance
        unit = chance.randrange(UNITS)
        slots = sorted(slot for slot in self.slots if slot[1] == unit)
        if self.pending[unit] is None and self.free[unit] and self.left and slots:
            entry, slot = chance.choice(sorted(self.free[unit])), chance.choice(slots)
            self.free[unit].remove(entry)
            self.slots.remove(slot)
            beats = [(chance.getrandbits(128), chance.getrandbits(8)) for _ in range(BEATS)]
            burst = Burst(unit, entry, chance.randrange(256), 0)
            self.loading.append((Write(burst, chance.randrange(64), slot[0], slot[2], beats), 0))
            self.left -= 1

    def drive_units(self) -> list[Write | None]:
        """Offer the pending writes, each from the cycle after its last beat was loaded. Return them by unit."""
        dut = self.dut
        offered = [write if write and write.burst.time else None for write in self.pending]
        for write in self.pending:
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
        return offered

    def drive_memory(self) -> Write | None:
        """Drive memory's answers. Return the write that memory completes."""
        dut, chance = self.dut, self.chance
        dut.aw_ready_i.value = int(chance.random() < self.ready)
        dut.w_ready_i.value = int(chance.random() < self.ready)
        due = [write for write in self.in_flight if write.burst.time <= self.cycle]
        completed = chance.choice(due) if due and chance.random() < 0.8 else None
        dut.b_valid_i.value = int(completed is not None)
        dut.b_id_i.value = completed.burst.id if completed else 0
        return completed

    def complete_write(self, completed: Write | None) -> None:
        """Check that exactly the unit of a completed write is notified."""
        done = [[0] * ENTRIES for _ in range(UNITS)]
        assert self.dut.b_ready_o.value == 1
        if completed:
            burst = completed.burst
            done[burst.unit][burst.entry] = 1
            self.overtaken += self.in_flight[0] is not completed
            self.in_flight.remove(completed)
            self.free[burst.unit].add(burst.entry)
        assert int(self.dut.unit_done_o.value) == packed([packed(unit, 1) for unit in done], ENTRIES)

    def free_payload_slots(self) -> None:
        """Check that a freed payload slot was in use, and let it be overwritten."""
        dut = self.dut
        for circuit in range(2):
            if int(dut.free_valid_o.value) >> circuit & 1:
                freed_slot = (circuit, int(dut.free_unit_o.value), int(dut.free_slot_o.value))
                freed = [w for w in self.unfreed if (w.circuit, w.burst.unit, w.slot) == freed_slot]
                assert len(freed) == 1
                self.unfreed.remove(freed[0])
                self.overwrites.extend(freed[0].word(beat) for beat in range(BEATS))
                self.slots.add(freed_slot)

    def receive_address(self) -> None:
        """Check an address that memory accepts: addresses have the order in which the writer accepted the writes."""
        dut = self.dut
        if dut.aw_valid_o.value and dut.aw_ready_i.value:
            write = self.addresses.popleft()
            assert int(dut.aw_id_o.value) == write.burst.id
            assert int(dut.aw_addr_o.value) == address(write.burst.unit, write.burst.line)
            assert int(dut.aw_user_o.value) == write.event % 3 << 6 | write.event
            self.receive_part(write)

    def receive_data(self) -> None:
        """Check a beat that memory accepts."""
        dut = self.dut
        if dut.w_valid_o.value and dut.w_ready_i.value:
            data, mask = self.data[0].beats[self.beat]
            assert int(dut.w_data_o.value) == data
            assert int(dut.w_strb_o.value) == packed([3 * (mask >> i & 1) for i in range(8)], 2)
            self.beat += 1
            assert bool(dut.w_last_o.value) == (self.beat == BEATS)
            if self.beat == BEATS:
                self.beat = 0
                self.receive_part(self.data.popleft())

    def receive_part(self, write: Write) -> None:
        """Record that memory has the address or all data of a write; with both, memory will answer."""
        write.parts += 1
        if write.parts == 2:
            write.burst.time = self.cycle + 1 + self.chance.randrange(self.latency)
            self.in_flight.append(write)

    def accept_write(self, offered: list[Write | None]) -> None:
        """Check that the writer accepts at most one of the offered writes."""
        taken = int(self.dut.unit_ready_o.value)
        if taken:
            unit = taken.bit_length() - 1
            assert taken == 1 << unit
            write = offered[unit]
            assert write is not None
            self.addresses.append(write)
            self.data.append(write)
            self.unfreed.append(write)
            self.pending[unit] = None


@cocotb.test()
async def writer(dut: Any) -> None:
    """Addresses and bytes of all units reach memory independently; units are notified in memory's order."""
    inputs = ["unit_valid_i", "unit_line_i", "unit_slot_i", "unit_event_i", "unit_permission_i", "unit_circuit_i"]
    await reset(dut, [*inputs, "unit_payload_slot_i", "load_i", "aw_ready_i", "w_ready_i", "b_valid_i", "b_id_i"])
    traffic = WriteTraffic(dut, Random(4))
    for latency, ready in MEMORY_CONDITIONS:
        traffic.start(latency, ready, 300)
        while traffic.is_busy():
            traffic.cycle += 1
            assert traffic.cycle < 200_000, "writes do not come to an end"
            traffic.drive_load()
            offered = traffic.drive_units()
            completed = traffic.drive_memory()
            await ReadOnly()
            traffic.complete_write(completed)
            traffic.free_payload_slots()
            traffic.receive_address()
            traffic.receive_data()
            traffic.accept_write(offered)
            await FallingEdge(dut.clk_i)
    assert traffic.overtaken > 100
