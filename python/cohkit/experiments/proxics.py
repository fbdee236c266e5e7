"""Near-memory programs, compared with the host alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit.experiments.experiment import Experiment
from cohkit.experiments.programs import (
    CYCLE_S,
    LINE_BYTES,
    MCC_CYCLE_S,
    SCALE_NOTE,
    Run,
    missing_tools,
    run_programs,
    scaled_capacities,
    scales,
)
from cohkit.published import COUNT, PERCENT, Measurement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cohkit.experiments.experiment import Conditions

OMISSIONS = (
    "cache hits of page walks, write-backs of lines of the host's own memory, instructions that "
    "are not in a cache, and the operating system"
)


def _limit(full: int, conditions: Conditions) -> int:
    """Return a number of operations, limited by the conditions."""
    return full if conditions.accesses is None else min(full, conditions.accesses)


_BYTES_PER_ACCESS = 16


def _max_bytes(conditions: Conditions) -> int:
    """Return the maximum number of bytes that a program may access under these conditions."""
    return _limit(1 << 40, conditions) * _BYTES_PER_ACCESS


def _bytes(accesses: int) -> str:
    return f"no more than {_BYTES_PER_ACCESS * accesses} bytes each, or the fewest that a program takes"


def _words(accesses: int) -> str:
    return f"no more than {accesses} word{'' if accesses == 1 else 's'} each, or {_CORES}"


def _times(accesses: int) -> str:
    return f"no more than {accesses} start{'' if accesses == 1 else 's'} each"


def _rounds(accesses: int) -> str:
    return f"no more than {accesses} round{'' if accesses == 1 else 's'} each"


_MEASURED_LINES = 16384
_BATCH = 128
# Label, unit, key, name in the program's output, and factor from the program's unit.
_TABLE_1 = [
    ("external bandwidth", "GB/s", "host.external_bandwidth", "external bandwidth", 1e-6),
    ("internal bandwidth", "GB/s", "measured.internal_bandwidth", "internal bandwidth", 1e-6),
    (
        "latency, external over internal",
        PERCENT,
        "measured.latency_external_over_internal_percent",
        "latency ratio",
        100,
    ),
    ("external latency", "ns", "measured.external_latency", "external latency", 1e-3),
    ("internal latency", "ns", "measured.internal_latency", "internal latency", 1e-3),
]


def _table1(conditions: Conditions) -> list[Measurement]:
    """Return latencies and bandwidths of far memory."""
    lines = max(_BATCH, min(_MEASURED_LINES, _max_bytes(conditions) // LINE_BYTES))
    [results] = run_programs([Run("measure", (lines,))], conditions)
    return [
        Measurement(name, results[output_name] * scale, unit, f"proxics.{key}", cut=conditions.accesses is not None)
        for name, unit, key, output_name, scale in _TABLE_1
    ]


def _points(
    key: str, runs: Mapping[int, Run], conditions: Conditions, unit: str, value: Callable[[int, float], float]
) -> list[Measurement]:
    """Run the programs by size, and convert each of their results with `value`."""
    results = run_programs(list(runs.values()), conditions)
    return [
        Measurement(
            f"{size}, {name.replace('with hints', 'with prefetches')}",
            value(size, measured),
            unit,
            f"proxics.{key}.{name.replace(', ', '.').replace(' ', '_')}.{size}",
            cut=conditions.accesses is not None,
        )
        for size, result in zip(runs, results, strict=True)
        for name, measured in result.items()
    ]


def _sizes(sizes: Sequence[int], conditions: Conditions) -> list[int]:
    """Return the sizes within the limit."""
    max_size = max(sizes[0], _max_bytes(conditions))
    return [size for size in sizes if size <= max_size]


_CORES = 4
"""Cores of the host; some of the baselines use all of them."""
_MULTI_CORE = {"host.cores": str(_CORES)}

BULK_SIZES = tuple(1 << power for power in range(11, 26, 2))


def _bulk(conditions: Conditions) -> list[Measurement]:
    """Return the bandwidth of setting, clearing and copying ranges of several sizes."""
    runs = {size: Run("bulk", (size,), _MULTI_CORE) for size in _sizes(BULK_SIZES, conditions)}
    return _points("bulk", runs, conditions, "GB/s", lambda size, cycles: size / (cycles * CYCLE_S) / 1e9)


_TABLES = tuple(1 << power for power in (16, 18, 20, 22, *range(23, 28)))
_UPDATES = 10_000


def _gups(conditions: Conditions) -> list[Measurement]:
    """Return the rate of random updates of tables of several sizes."""
    # The same number of updates for each core.
    updates = -(-_limit(_UPDATES, conditions) // _CORES) * _CORES
    runs = {size: Run("gups", (size, updates), _MULTI_CORE) for size in _sizes(_TABLES, conditions)}
    return _points("gups", runs, conditions, "M/s", lambda _, cycles: updates / (cycles * CYCLE_S) / 1e6)


WIDTHS = (8, 16, 32, 64, 128)
_TABLE = 1 << 25
_PART = 64 * LINE_BYTES


def _table_bytes(full: int, conditions: Conditions) -> int:
    """Return the bytes of a table: whole parts, limited by the conditions."""
    return max(_PART, min(full, _max_bytes(conditions)) // _PART * _PART)


def _sum(conditions: Conditions) -> list[Measurement]:
    """Return the rate of summed rows, for rows of several sizes."""
    table = _table_bytes(_TABLE, conditions)
    runs = {width: Run("rows", (table, width), _MULTI_CORE) for width in WIDTHS}
    return _points("sum", runs, conditions, "M/s", lambda width, cycles: table / width / (cycles * CYCLE_S) / 1e6)


_SCALE = 4
_SELECTED = (1, 10, 50, 100, 250, 500, 750, 1000)


def _filter(conditions: Conditions) -> list[Measurement]:
    """Return the rate of filtered rows, for several shares of selected rows."""
    table = _table_bytes(_TABLE // _SCALE, conditions)
    capacities = scaled_capacities(table, _TABLE)
    settings = {**_MULTI_CORE, **capacities}
    runs = {selected: Run("rows", (table, LINE_BYTES, selected), settings) for selected in _SELECTED}
    cut = conditions.accesses is not None
    return [
        *_points("filter", runs, conditions, "M/s", lambda _, cycles: table / LINE_BYTES / (cycles * CYCLE_S) / 1e6),
        Measurement("scale of the table", _TABLE / table, COUNT, "proxics.filter.scale.data", cut=cut),
        *(
            Measurement(f"scale of the {label}", scale, COUNT, f"proxics.filter.scale.{name}", cut=cut)
            for label, name, scale in scales(capacities)
        ),
    ]


LINES = (1, 2, 4, 8, 16, 32, 64)
_WORDS = 30_000


def _pipes(conditions: Conditions) -> list[Measurement]:
    """Return rates and round trips of words by line pipes and register pipes."""
    # The same number of words for each thread.
    words = -(-_limit(_WORDS, conditions) // _CORES) * _CORES
    runs = [Run("pipes", (lines, words, threads), _MULTI_CORE) for threads in (1, _CORES) for lines in LINES]
    results = run_programs(runs, conditions)
    return [
        Measurement(
            f"{lines}, {name}",
            *((cycles * CYCLE_S * 1e9, "ns") if "back" in name else (words / (cycles * CYCLE_S) / 1e6, "M/s")),
            f"proxics.pipes.{name.replace(', ', '.').replace(' ', '_')}.{lines}",
            cut=conditions.accesses is not None,
        )
        for lines, result in zip(LINES * 2, results, strict=True)
        for name, cycles in result.items()
    ]


_LENGTHS = tuple(1 << power for power in range(10, 16))
_STUB = 513
"""Bytes of a binary without padding."""
_SPAWNS = 50


def _spawn(conditions: Conditions) -> list[Measurement]:
    """Return the time to start programs of several lengths."""
    times = _limit(_SPAWNS, conditions)
    names = None if conditions.keys is None else [key for key in conditions.keys if key.startswith("proxics.spawn.")]
    lengths = [length for length in _LENGTHS if names is None or any(key.endswith(f".{length}") for key in names)]
    runs = [Run("spawn", (times,), definitions=(f"PAD={length - _STUB}",)) for length in lengths]
    return [
        Measurement(
            f"{result['length']:.0f}, {name}",
            result[name] * CYCLE_S * 1e6,
            "us",
            f"proxics.spawn.{name.replace(' ', '_')}.{result['length']:.0f}",
            cut=conditions.accesses is not None,
        )
        for result in run_programs(runs, conditions)
        for name in ("verified", "as trusted")
    ]


_ROUNDS = 200_000
_CLOCKS = {"host": CYCLE_S, "core": MCC_CYCLE_S}


def _compute(conditions: Conditions) -> list[Measurement]:
    """Return the rate of an instruction mix on host and near-memory core, per second and per 1000 clocks."""
    rounds = _limit(_ROUNDS, conditions)
    [result] = run_programs([Run("compute", (rounds,))], conditions)
    cut = conditions.accesses is not None
    seconds = {core: cycles * CYCLE_S for core, cycles in result.items()}
    rates = [
        Measurement(core, rounds / s / 1e6, "M/s", f"proxics.compute.{core}", cut=cut) for core, s in seconds.items()
    ]
    rate_per_1000_clocks = {core: rounds / (s / _CLOCKS[core]) * 1e3 for core, s in seconds.items()}
    clocks = [
        Measurement(f"{core}, of a clock", core_rate, "per 1000", f"proxics.compute.{core}.clock", cut=cut)
        for core, core_rate in rate_per_1000_clocks.items()
    ]
    return [*rates, *clocks]


EXPERIMENTS = {
    "proxics-table1": Experiment(
        run=_table1,
        note="""\
Programs measure all numbers. External latency: uncached reads of the host, one after the other. Internal latency: from
the command of a core to the timestamp of the line. External bandwidth: the host reads in order, one word of each line,
with the best distance and level of prefetches. Internal bandwidth: transfers of a copy engine. The machine is fitted to
the internal bandwidth and to the ratio of latencies; the external bandwidth follows from the reads that the directory
has in flight. Neither latency is published; the external one is held near Enzian's (591 ns, DC+DDR).
""",
        omissions=OMISSIONS,
        headline="A near-memory core has lower latency and more bandwidth to far memory than the host.",
        axis="GB/s; of one another (%); ns",
        rerun_accesses=2**15,
        limited=_bytes,
        needs=missing_tools,
    ),
    "proxics-bulk": Experiment(
        run=_bulk,
        note="""\
By the host: `local` in its own memory; `far` in far memory, with the prefetch distance that is best for 256 KiB, also
by four cores that each have a part of the bytes and of the prefetches. Far operations end with a flush of the written
lines; all operations end with a read of the last word. Sources in far memory are in no cache before; local data has
been accessed before. By a core: from the host's request through a pipe, with operation and addresses, to the answer,
before which the core has read the last line; cache management of the host is not counted. Copies are synchronous, 384
lines at a time, or two interleaved transfers of 192 lines, of which one is fetched while the other is stored. The
second of two runs counts (published numbers are medians of 100 runs; here all runs are equal). Each written word is
compared.
""",
        omissions=OMISSIONS,
        headline="A near-memory core sets, clears and copies far memory, and so does the host, by size.",
        axis="throughput (GB/s)",
        along="bytes",
        logarithmic="xy",
        rerun_accesses=2**13,
        limited=_bytes,
        needs=missing_tools,
    ),
    "proxics-gups": Experiment(
        run=_gups,
        note=f"""\
{_UPDATES} updates of 8 bytes by one worker. The host has read the table before, or as much of it as its last-level
cache holds; it needs no barriers. Its prefetches have the best distance. Each of four host cores has a quarter of the
updates, of the prefetches and of the table. The core fetches the line, changes the word and stores the line, one after
the other; the registers for request and answer are counted. A second pass undoes the updates, and the whole table is
compared.
""",
        omissions=OMISSIONS,
        headline="One worker updates random entries of a table that fits into the last cache or does not.",
        axis="updates (M/s)",
        along="bytes of the table",
        logarithmic="xy",
        rerun_accesses=2**13,
        limited=_bytes,
        needs=missing_tools,
    ),
    "proxics-pipes": Experiment(
        run=_pipes,
        note=f"""\
{_WORDS} words of 64 bits of one thread, or of four threads together on as many host cores, to one core. The core adds
up the first word of each line, and each word of registers. Each thread has the given number of lines or registers of
its own. Lines hold 15 words and a tag; the core takes a notice of each line, reads it in place and releases it. A
register pipe holds one word; several of them take turns. Round trip: a line with one word and a line back, or the same
by registers. The core's sums are compared, and each word that returns.
""",
        omissions=OMISSIONS,
        headline="A host sends words to a near-memory core, by lines of a scratchpad or by registers.",
        axis="words (M/s); round trip (ns)",
        along="lines, or registers, of a thread",
        logarithmic="xy",
        rerun_accesses=400,
        limited=_words,
        needs=missing_tools,
    ),
    "proxics-spawn": Experiment(
        run=_spawn,
        note=f"""\
Time from the first word of the binary that the host writes to the core's word that it runs: mean of {_SPAWNS} starts.
The binary is a stub, padded with data to its length. Verified: the core verifies the binary before it starts it. The
fixed steps of a start, and the times per line, per byte and per cleared line, are assumed (`loader.*`).
""",
        omissions=OMISSIONS,
        headline="A host starts a program on a near-memory core, which verifies or trusts it.",
        axis="time (us)",
        along="bytes of the binary",
        logarithmic="xy",
        rerun_accesses=1,
        limited=_times,
        needs=missing_tools,
    ),
    "proxics-sum": Experiment(
        run=_sum,
        note=f"""\
A table of {_TABLE >> 20} MiB, twice the last-level cache. A row has a number and a balance of 32 bits each, and
padding; the unit is million rows per second. The host prefetches as many lines ahead as its last-level cache may have
in flight (64 of `host.llc_misses`); each of four host cores has a part of the rows, and a quarter of this distance. The
core receives its request by a register pipe and answers by one; it fetches 64 lines at a time, three such transfers
ahead. Sums are compared with those of the generated balances.
""",
        omissions=OMISSIONS,
        headline="A near-memory core adds up a column of a table in far memory, and so does the host.",
        axis="rows (M/s)",
        along="bytes of a row",
        logarithmic="xy",
        rerun_accesses=2**13,
        limited=_bytes,
        needs=missing_tools,
    ),
    "proxics-filter": Experiment(
        run=_filter,
        note=f"""\
Table, caches and pages are {_SCALE} times smaller than in proxics-sum ("scale"): {_TABLE // _SCALE >> 20} MiB of rows
of {LINE_BYTES} bytes. The unit is million rows of the table per second. The host counts the selected rows and adds up
their balances, with prefetches as in proxics-sum; it copies no row. The core copies whole rows to far memory, adjacent
ones at once (their way to the host is not counted), or streams them: each row is a line that the host has requested
before, and the scratchpad holds the request until the row is there. All copied or streamed rows are compared.
""",
        omissions=OMISSIONS,
        headline="A near-memory core selects rows of a table, and copies them or streams them to the host.",
        axis="rows of the table (M/s); how many times smaller",
        along="rows that are selected, of a thousand",
        logarithmic="xy",
        rerun_accesses=2**13,
        limited=lambda accesses: f"{_bytes(accesses)}; {SCALE_NOTE}",
        needs=missing_tools,
    ),
    "proxics-compute": Experiment(
        run=_compute,
        note=f"""\
{_ROUNDS} rounds of calls, branches, records, strings and arrays, from the same source on both sides, in local memory:
rounds per second, and rounds per 1000 clocks of each side. The mixture is ours, because the licence of Dhrystone is not
known; its rounds are not comparable with Dhrystone's. Results are compared.
""",
        omissions=OMISSIONS,
        headline="A near-memory core computes slower than a host core, in proportion to its clock.",
        axis="rounds (M/s; per 1000 clocks)",
        rerun_accesses=2**10,
        limited=_rounds,
        needs=missing_tools,
    ),
}
