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
