"""What blocks of the RTL have to do, with traffic by chance: run by cocotb inside the simulator.

Each coroutine is for one top of blocks.sv; python/tests/test_blocks.py says which.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge
from cocotbext.axi import AxiRamRead, AxiRamWrite, AxiReadBus, AxiWriteBus

LINE = 128
BEAT = 64
UNITS = 4


async def reset(dut: Any, inputs: list[str]) -> None:
    """Starts the clock and resets the block, with all inputs low."""
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
    """A queue or a spill register hands on everything once and in order, as fast as it is taken."""
    chance = Random(1)
    await reset(dut, ["wr_valid_i", "wr_data_i", "rd_ready_i"])
    sent: deque[int] = deque()
    received = 0
    for often in (1.0, 0.5, 0.1):
        for _ in range(400):
            # A word that was offered and not taken stays.
            if not dut.wr_valid_i.value or dut.wr_ready_o.value:
                dut.wr_valid_i.value = int(chance.random() < 0.7)
                dut.wr_data_i.value = chance.getrandbits(16)
            dut.rd_ready_i.value = int(chance.random() < often)
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
    """An arbiter hands on all streams, each in order; while all are full none waits for more than all others."""
    chance = Random(2)
    size = len(dut.wr_valid_i)
    await reset(dut, ["wr_valid_i", "wr_data_i", "rd_ready_i"])
    queues = [deque(chance.getrandbits(16) for _ in range(40)) for _ in range(size)]
    offered = [False] * size
    waited = [0] * size
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
                waited[i] = waited[i] + 1 if offered[i] and i != index else 0
            # Groups of eight take turns, so that the second, of four, has places for eight.
            assert max(waited) <= 16
            offered[index] = False
        else:
            assert ready == 0
        await FallingEdge(dut.clk_i)
        if left == 0:
            return
    raise AssertionError(f"{left} words are left")


def address(unit: int, line: int) -> int:
    """Where a unit's line stands: the slice, here the odd one, in the lowest bit of its number, then the unit."""
    return (line * 2 * UNITS + unit * 2 + 1) * LINE


def pauses(chance: Random, often: float) -> Any:
    while True:
        yield chance.random() < often


@cocotb.test()
async def reader(dut: Any) -> None:
    """Lines come as they stand in memory, to the place that asked, and stay there until it asks again."""
    chance = Random(3)
    inputs = ["unit_valid_i", "unit_line_i", "unit_slot_i", "rd_en_i", "rd_unit_i", "rd_slot_i", "rd_beat_i"]
    await reset(dut, inputs)
    bus = AxiReadBus.from_prefix(dut, "axi")
    ram = AxiRamRead(bus, dut.clk_i, dut.rst_ni, reset_active_level=False, size=1 << 16)
    ram.write(0, chance.randbytes(1 << 16))
    ram.ar_channel.set_pause_generator(pauses(chance, 0.3))
    ram.r_channel.set_pause_generator(pauses(chance, 0.5))
    asks: dict[int, tuple[int, int]] = {}  # by unit: the slot and line that it asks for
    reading: dict[tuple[int, int], int] = {}
    done: deque[tuple[int, int, int]] = deque()
    checked = 0
    for _ in range(20_000):
        for unit in range(UNITS):
            free = [slot for slot in (0, 1) if (unit, slot) not in reading]
            if unit not in asks and free and chance.random() < 0.4:
                asks[unit] = (chance.choice(free), chance.randrange(64))
                reading[unit, asks[unit][0]] = asks[unit][1]
        dut.unit_valid_i.value = sum(1 << unit for unit in asks)
        dut.unit_slot_i.value = sum(slot << unit for unit, (slot, _) in asks.items())
        dut.unit_line_i.value = sum(line << 6 * unit for unit, (_, line) in asks.items())
        await ReadOnly()
        ready, ends = int(dut.unit_ready_o.value), int(dut.unit_done_o.value)
        for unit in range(UNITS):
            if ready >> unit & 1:
                del asks[unit]
            for slot in (0, 1):
                if ends >> (2 * unit + slot) & 1:
                    done.append((unit, slot, reading[unit, slot]))
        await FallingEdge(dut.clk_i)
        if done and chance.random() < 0.5:
            unit, slot, line = done.popleft()
            for beat in (0, 1):
                dut.rd_en_i.value = 1
                dut.rd_unit_i.value = unit
                dut.rd_slot_i.value = slot
                dut.rd_beat_i.value = beat
                # Others go on meanwhile; none begins.
                await ReadOnly()
                ready, ends = int(dut.unit_ready_o.value), int(dut.unit_done_o.value)
                for other in range(UNITS):
                    if ready >> other & 1:
                        del asks[other]
                    for place in (0, 1):
                        if ends >> (2 * other + place) & 1:
                            done.append((other, place, reading[other, place]))
                await FallingEdge(dut.clk_i)
                dut.rd_en_i.value = 0
                dut.unit_valid_i.value = sum(1 << other for other in asks)
                found = int(dut.rd_data_o.value).to_bytes(BEAT, "little")
                assert found == ram.read(address(unit, line) + beat * BEAT, BEAT)
            del reading[unit, slot]
            checked += 1
            if checked == 300:
                return
    raise AssertionError(f"only {checked} lines came")


@cocotb.test()
async def writer(dut: Any) -> None:
    """The bytes of a slot that its mask covers get to memory, no others do, and the slot is given back once."""
    chance = Random(4)
    inputs = ["unit_valid_i", "unit_line_i", "unit_circuit_i", "unit_bytes_i", "rd_data_i", "rd_mask_i"]
    await reset(dut, inputs)
    bus = AxiWriteBus.from_prefix(dut, "axi")
    ram = AxiRamWrite(bus, dut.clk_i, dut.rst_ni, reset_active_level=False, size=1 << 16)
    memory = bytearray(chance.randbytes(1 << 16))
    ram.write(0, bytes(memory))
    ram.aw_channel.set_pause_generator(pauses(chance, 0.3))
    ram.w_channel.set_pause_generator(pauses(chance, 0.3))
    ram.b_channel.set_pause_generator(pauses(chance, 0.5))
    # By circuit, unit and slot: a line and a mask of its sixteenths.
    slots = {
        (circuit, unit, slot): (chance.randbytes(LINE), chance.getrandbits(16))
        for circuit in (0, 1)
        for unit in range(UNITS)
        for slot in (0, 1)
    }
    asks: dict[int, tuple[int, int, int]] = {}  # by unit: circuit, slot, line
    writing: dict[int, tuple[int, int, int]] = {}
    freed: list[tuple[int, int, int]] = []
    used: list[tuple[int, int, int]] = []
    for _ in range(20_000):
        for unit in range(UNITS):
            if unit not in writing and chance.random() < 0.3 and len(used) < 300:
                asks[unit] = writing[unit] = (chance.randrange(2), chance.randrange(2), chance.randrange(64))
                used.append((asks[unit][0], unit, asks[unit][1]))
        dut.unit_valid_i.value = sum(1 << unit for unit in asks)
        dut.unit_circuit_i.value = sum(circuit << 2 * unit for unit, (circuit, _, _) in asks.items())
        dut.unit_bytes_i.value = sum(slot << unit for unit, (_, slot, _) in asks.items())
        dut.unit_line_i.value = sum(line << 6 * unit for unit, (_, _, line) in asks.items())
        unit, slot, beat = int(dut.rd_unit_o.value), int(dut.rd_slot_o.value), int(dut.rd_beat_o.value)
        data = mask = 0
        for circuit in (0, 1):
            line, sixteenths = slots[circuit, unit, slot]
            data |= int.from_bytes(line[beat * BEAT :][:BEAT], "little") << 512 * circuit
            mask |= (sixteenths >> 8 * beat & 0xFF) << 8 * circuit
        dut.rd_data_i.value = data
        dut.rd_mask_i.value = mask
        await ReadOnly()
        ready, ends = int(dut.unit_ready_o.value), int(dut.unit_done_o.value)
        for circuit in (0, 1):
            if int(dut.free_valid_o.value) >> circuit & 1:
                freed.append((circuit, int(dut.free_unit_o.value), int(dut.free_slot_o.value)))
        for unit in range(UNITS):
            if ready >> unit & 1:
                del asks[unit]
            if ends >> unit & 1:
                circuit, slot, number = writing.pop(unit)
                line, sixteenths = slots[circuit, unit, slot]
                at = address(unit, number)
                for i in range(LINE):
                    if sixteenths >> i // 8 & 1:
                        memory[at + i] = line[i]
                assert ram.read(at, LINE) == memory[at : at + LINE]
        await FallingEdge(dut.clk_i)
        if len(used) == 300 and not writing:
            break
    assert len(used) == 300
    assert not writing
    assert sorted(freed) == sorted(used)
    assert ram.read(0, 1 << 16) == memory
