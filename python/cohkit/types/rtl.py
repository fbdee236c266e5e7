"""Hardware: emission, tests in lockstep, synthesis and measurements."""

from typing import Any

from cohkit.results import Record


class EmittedHome(Record):
    """Sizes of a home in hardware. `run` lists the files written.

    Attributes:
        states, events: numbers of states and events of the home for one remote, with equivalent states merged.
        rows: number of valid rows of the ROM, including rows that stall or reject their event.
        row_bits, address_bits: widths of a row and of its address, in bits.

    """

    protocol: str
    states: int
    events: int
    rows: int
    row_bits: int
    address_bits: int
    run: dict[str, Any]


class Lockstep(Record):
    """Result of lockstep runs of the RTL and the controllers.

    Attributes:
        messages: number of messages that entered and left the home, each compared with the controllers.
        mismatches: 0 or 1: the first mismatch ends the test.
        rows_covered: number of rows of the ROM that were used.
        rows_reachable: number of rows that some order of events reaches.
        seeds, first_seed: number of runs and seed of the first, as given.
        shapes: configurations of the home's parameters that these seeds used.
        cycles: clock cycles of all runs together.
        local_responses: number of local operations and unlocks of the device that were answered.
        evictions: number of lines that the directory took from the remote to make room.
        illegal_inputs: number of illegal or unsolicited inputs that the home refused, or dropped and counted.
        uncovered_rows: reachable rows that were not used, each with its `state` and `event`.
        mutated_rows: number of ROM rows that were changed, one at a time.
        undetected_mutations: changed rows that no check detected in any of 20 runs that used them.
        mismatch: the mismatch with its seed, shape, cycle, description and last steps; `None` if there is none.
        run: values that depend on the machine: file, version and the RTL as built.

    """

    protocol: str
    messages: int
    mismatches: int
    rows_covered: int
    rows_reachable: int
    seeds: int
    first_seed: int
    shapes: list[dict[str, Any]]
    cycles: int
    local_responses: int
    evictions: int
    illegal_inputs: int
    uncovered_rows: list[dict[str, str]] | None
    mutated_rows: int
    undetected_mutations: list[dict[str, Any]]
    mismatch: dict[str, Any] | None
    run: dict[str, Any]


class Synthesis(Record):
    """Size of a home or a memory system on an FPGA, and its longest paths.

    Attributes:
        configuration: number of units, or of caches with the given parameters.
        slices: number of slices of the home; none for a system.
        lut: number of LUTs, including those of distributed memories; an upper bound, counted before placement.
        ff: number of flip-flops.
        bram36: number of memory blocks of 36 Kbit; a half counts as 0.5.
        uram: number of memory blocks of 288 Kbit.
        depth: levels of logic on the longest path that begins at a register.
        depth_after_memory: levels of logic on the longest path that begins at a memory block without an output
            register.
        paths, paths_after_memory: the five longest paths of each kind.
        modules: size and depth by module of the RTL.

    """

    protocol: str
    configuration: str
    slices: int | None
    lut: int
    ff: int
    bram36: float
    uram: int
    depth: int
    depth_after_memory: int
    paths: list[dict[str, Any]]
    paths_after_memory: list[dict[str, Any]]
    modules: list[dict[str, Any]]
    run: dict[str, Any]


class HomeMeasurements(Record):
    """Latencies of the RTL in cycles, and its throughput.

    Attributes:
        units: number of units in two slices.
        clock_mhz: clock frequency that converts cycles to times, in MHz.
        latencies: `cycles` of each `operation`, from the header of the request to the header of the answer.
        traffic: throughput of streams of requests.

    """

    protocol: str
    units: int
    clock_mhz: float
    latencies: list[dict[str, Any]]
    traffic: list[dict[str, Any]]
    run: dict[str, Any]


class SystemMeasurements(Record):
    """Times of accesses at the processor ports of a coherent memory system, in cycles.

    Attributes:
        caches: number of caches.
        latencies: `cycles` of each `access` in an idle system, from the request to the answer.
        rates: `loads_per_cycle` and `stores_per_cycle` of all ports together, by the number of `requesters`
            and of the `outstanding` accesses of each.

    """

    protocol: str
    caches: int
    latencies: list[dict[str, Any]]
    rates: list[dict[str, Any]]
    run: dict[str, Any]
