"""Area, leakage and energy of small static RAMs at 22 nm, with their periphery, by the formulas of CACTI.

A RAM is one array with one port: cells, a decoder and a driver for each row, and precharge, sense amplifier, write
driver and output driver for each bit of an entry. CACTI also divides an array and routes between its parts; RAMs of a
few KiB are one part. Constants are those of CACTI 7: its technology file for 22 nm (from the ITRS) and the transistor
widths of its sense amplifiers and gates, which it scales with the feature size. None is fitted to a published cost.
"""

from __future__ import annotations

from math import ceil, log, log2
from typing import NamedTuple

FEATURE = 0.022
"""Feature size F, in micrometres. Widths and lengths below are multiples of F, areas of its square."""
CELL_WIDTH, CELL_HEIGHT = 14.6, 10.0
"""A cell of six transistors: 146 F2, with an aspect ratio of 1.46."""
CELL_ACCESS, CELL_PULL_UP, CELL_PULL_DOWN = 1.31, 1.23, 2.08
"""Transistor widths of a cell."""
MIN_WIDTH = 1.5
"""Smallest width of a transistor for electrons (n)."""
P_TO_N = 2.0
"""Width of a transistor for holes (p) over that of one for electrons with the same current."""
GATE_HEIGHT = 50.0
"""Height of a gate, between the middles of its power rails of 2 F."""
FINGER_HEIGHT = GATE_HEIGHT - 2 * 2 - 5
"""Height for the transistors of a gate, p and n together: without the rails and the gap of 5 F between p and n."""
CONTACTED = 3.0
"""Width of a contact with its distance from the gates at both sides; a gate is 1 F wide."""
ISOLATION, SENSE_N, SENSE_P, SENSE_ENABLE = 12.5, 3.75, 7.5, 5.0
"""Transistor widths of a sense amplifier: two each, and one that enables it."""
PRECHARGE, EQUALISER = 6 * P_TO_N * MIN_WIDTH, P_TO_N * MIN_WIDTH
"""Transistor widths of a column's precharge: two of the former, one of the latter."""
WRITE_PASS = 6 * MIN_WIDTH
"""Width of each of two transistors that pass new data to the bit lines: that of CACTI's column multiplexer."""
STAGE_EFFORT = 4.0
"""Fan-out of each inverter of a driver."""
SUPPLY = 0.8
"""Volts."""
GATE_CAPACITANCE = 3.27e-16 * 1.2 + 2 * 6e-17
"""Farad per micrometre of transistor width: channel, overlap (a fifth of it), and fringes at two sides."""
JUNCTION_CAPACITANCE = 2.5e-16
"""Farad per micrometre of transistor width."""
SENSE_ENERGY = 2.16e-15
"""Joule per sense amplifier and read."""
GATE_LEAKAGE = 1.81e-9
"""Ampere per micrometre of width of a transistor that conducts."""
STACK_LEAKAGE = 0.43
"""Leakage of two transistors in series that are both off, over that of one."""
OFF_CURRENT = {300: 1.216e-7, 320: 1.272e-7, 340: 1.52e-7, 360: 4.256e-7, 380: 1.296e-6, 400: 4.88e-6}
"""Ampere per micrometre of width of a transistor that is off, by kelvin: high-performance devices."""


class Ram(NamedTuple):
    """Shape of a RAM: number of entries, and bits per entry."""

    entries: int
    bits: int


class Technology(NamedTuple):
    """Assumptions that the published estimate does not state."""

    kelvin: int = 360
    """Temperature: that of CACTI's sample configuration."""
    layout_overhead: float = 1.1
    """Area of a macro over the sum of its parts: CACTI's value at 22 nm."""
    wire_capacitance: float = 2e-16
    """Farad per micrometre of wire: about the value of the ITRS for all layers."""
    swing: float = 0.1
    """Difference of the bit lines that a sense amplifier needs, over the supply."""


class Cost(NamedTuple):
    """Cost of a RAM, or of a part of it."""

    square_um: float = 0
    leakage_w: float = 0
    access_j: float = 0

    def plus(self, other: Cost, count: float = 1) -> Cost:
        """Return the sum with `count` times the other cost."""
        return Cost(*(mine + count * theirs for mine, theirs in zip(self, other, strict=True)))


def _transistors(width: float, leaking: float, technology: Technology) -> Cost:
    """Return area and leakage of transistors of this total width, of which the width `leaking` is off.

    Each finger takes the pitch of a contacted gate.
    """
    square_um = width * (1 + CONTACTED) * GATE_HEIGHT / FINGER_HEIGHT * FEATURE**2
    current = (leaking * OFF_CURRENT[technology.kelvin] + (width - leaking) * GATE_LEAKAGE) * FEATURE
    return Cost(square_um, current * SUPPLY)


def _gate(width: float, inputs: int, technology: Technology) -> Cost:
    """Return area and leakage of an inverter, or a NAND gate of several inputs, whose n transistors have this width.

    Either the n transistors are off, which are in series, or the p transistors are.
    """
    fingers = max(ceil(width / (FINGER_HEIGHT / 3)), ceil(P_TO_N * width / (2 * FINGER_HEIGHT / 3)))
    square_um = GATE_HEIGHT * (inputs * fingers * (1 + CONTACTED) + CONTACTED) * FEATURE**2
    off_n = width * (STACK_LEAKAGE if inputs > 1 else 1)
    off = (off_n + P_TO_N * width * inputs) / 2
    current = (off * OFF_CURRENT[technology.kelvin] + width * (1 + P_TO_N) / 2 * inputs * GATE_LEAKAGE) * FEATURE
    return Cost(square_um, current * SUPPLY)


def _switched(capacitance: float, swing: float = SUPPLY) -> Cost:
    return Cost(access_j=capacitance * SUPPLY * swing)


def _driver(load: float, technology: Technology, *, switches: bool) -> Cost:
    """Return the cost of a chain of inverters from the smallest size to a load in farad."""
    inverter = MIN_WIDTH * (1 + P_TO_N) * FEATURE
    stages = max(1, round(log(max(load / (inverter * GATE_CAPACITANCE), 1), STAGE_EFFORT)))
    effort = max(load / (inverter * GATE_CAPACITANCE), 1) ** (1 / stages)
    cost = Cost()
    for stage in range(stages):
        size = effort**stage
        cost = cost.plus(_gate(MIN_WIDTH * size, 1, technology))
        if switches:
            cost = cost.plus(_switched(size * inverter * (GATE_CAPACITANCE + JUNCTION_CAPACITANCE)))
    return cost.plus(_switched(load)) if switches else cost


def cell_cost(technology: Technology) -> Cost:
    """Return area and leakage of a cell: one transistor of each kind is off."""
    current = (CELL_ACCESS + CELL_PULL_UP + CELL_PULL_DOWN) * FEATURE * OFF_CURRENT[technology.kelvin]
    return Cost(CELL_WIDTH * CELL_HEIGHT * FEATURE**2, current * SUPPLY)


def _row_cost(ram: Ram, technology: Technology, *, selected: bool) -> Cost:
    """Return the cost of a row's decoder gate and the driver of its word line."""
    length = ram.bits * CELL_WIDTH * FEATURE
    load = ram.bits * 2 * CELL_ACCESS * FEATURE * GATE_CAPACITANCE + length * technology.wire_capacitance
    address = max(2, ceil(log2(max(ram.entries, 2))))
    return _gate(MIN_WIDTH, address, technology).plus(_driver(load, technology, switches=selected))


def _column_cost(ram: Ram, technology: Technology) -> Cost:
    """Return the cost of the circuits of one bit of an entry, apart from its cells."""
    height, width = ram.entries * CELL_HEIGHT * FEATURE, ram.bits * CELL_WIDTH * FEATURE
    bit_line = ram.entries * CELL_ACCESS * FEATURE * JUNCTION_CAPACITANCE + height * technology.wire_capacitance
    precharge = _transistors(2 * PRECHARGE + EQUALISER, 0, technology)
    # Between reads the amplifier is off, and its enabling transistor in series with the others.
    amplifier = 2 * (SENSE_N + SENSE_P) + SENSE_ENABLE
    sense = _transistors(amplifier + 2 * ISOLATION, STACK_LEAKAGE * amplifier + 2 * ISOLATION, technology)
    write = _transistors(2 * WRITE_PASS, 2 * WRITE_PASS, technology)
    # A bit crosses half of the array on average, in each direction, on its way to the edge.
    output = _driver((width + height) / 2 * technology.wire_capacitance, technology, switches=True)
    cost = precharge.plus(sense).plus(write).plus(output)
    return cost.plus(_switched(bit_line, technology.swing * SUPPLY)).plus(Cost(access_j=SENSE_ENERGY))


def ram_cost(ram: Ram, technology: Technology | None = None) -> Cost:
    """Return the area, the leakage and the energy of a read of a RAM."""
    technology = technology or Technology()
    cost = Cost().plus(cell_cost(technology), ram.entries * ram.bits)
    cost = cost.plus(_row_cost(ram, technology, selected=False), ram.entries - 1)
    cost = cost.plus(_row_cost(ram, technology, selected=True))
    cost = cost.plus(_column_cost(ram, technology), ram.bits)
    return cost._replace(square_um=cost.square_um * technology.layout_overhead)
