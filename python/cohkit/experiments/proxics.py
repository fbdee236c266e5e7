"""Programs beside far memory, and what a host does without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit.experiments.experiment import Experiment, Rerun, Span
from cohkit.experiments.programs import CYCLE_S, LINE_BYTES, Run, assumed, missing, ran
from cohkit.published import PERCENT, Ours

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cohkit.experiments.experiment import Conditions

LEFT_OUT = (
    "address translation, write-backs of lines of the host's own memory, instructions that are not in a cache, and "
    "the operating system"
)


def _limit(full: int, conditions: Conditions) -> int:
    return full if conditions.accesses is None else min(full, conditions.accesses)


_BYTES_PER_ACCESS = 16


def _most_bytes(conditions: Conditions) -> int:
    return _limit(1 << 40, conditions) * _BYTES_PER_ACCESS


def _bytes(accesses: int) -> str:
    return f"no more than {_BYTES_PER_ACCESS * accesses} bytes each, or the fewest that a program takes"


_MEASURED_LINES = 16384
_BATCH = 128
# The number, its unit, its key, and what the program calls it and in which unit, as a multiple.
_TABLE_1 = [
    ("external bandwidth", "GB/s", "external_bandwidth", "external bandwidth", 1e-6),
    ("internal bandwidth", "GB/s", "internal_bandwidth", "internal bandwidth", 1e-6),
    ("latency, external over internal", PERCENT, "latency_external_over_internal_percent", "latency ratio", 100),
    ("external latency", "ns", "external_latency", "external latency", 1e-3),
    ("internal latency", "ns", "internal_latency", "internal latency", 1e-3),
]


def _measure(conditions: Conditions, settings: Mapping[str, str]) -> Run:
    lines = max(_BATCH, min(_MEASURED_LINES, _most_bytes(conditions) // LINE_BYTES))
    return Run("measure", (lines,), settings)


def _table1(conditions: Conditions) -> list[Ours]:
    [found] = ran([_measure(conditions, {})], conditions)
    return [
        Ours(name, found[called] * scale, unit, f"proxics.measured.{key}", cut=conditions.accesses is not None)
        for name, unit, key, called, scale in _TABLE_1
    ]


def _table1_spans(conditions: Conditions) -> list[Span]:
    ends = list(assumed())
    variants: list[Mapping[str, str]] = [{}, *({name: end} for name, end in ends)]
    as_it_is, *others = ran([_measure(conditions, settings) for settings in variants], conditions)
    return [
        Span(
            name,
            as_it_is[called] * scale,
            [Rerun(*end, found[called] * scale) for end, found in zip(ends, others, strict=True)],
        )
        for name, _, _, called, scale in _TABLE_1
    ]


def _points(
    key: str, runs: Mapping[int, Run], conditions: Conditions, unit: str, value: Callable[[int, float], float]
) -> list[Ours]:
    """Give of each run, which is of a size, what becomes of each of its results."""
    results = ran(list(runs.values()), conditions)
    return [
        Ours(
            f"{size}, {name}",
            value(size, found),
            unit,
            f"proxics.{key}.{name.replace(', ', '.').replace(' ', '_')}.{size}",
            cut=conditions.accesses is not None,
        )
        for size, result in zip(runs, results, strict=True)
        for name, found in result.items()
    ]


def _sizes(sizes: Sequence[int], conditions: Conditions) -> list[int]:
    """Give the sizes that are not too large."""
    most = max(sizes[0], _most_bytes(conditions))
    return [size for size in sizes if size <= most]


_BULK_SIZES = tuple(1 << power for power in range(11, 26, 2))


def _bulk(conditions: Conditions) -> list[Ours]:
    runs = {size: Run("bulk", (size,)) for size in _sizes(_BULK_SIZES, conditions)}
    return _points("bulk", runs, conditions, "GB/s", lambda size, cycles: size / (cycles * CYCLE_S) / 1e9)


_TABLES = tuple(1 << power for power in (16, 18, 20, 22, *range(23, 28)))
_UPDATES = 10_000


def _gups(conditions: Conditions) -> list[Ours]:
    updates = _limit(_UPDATES, conditions)
    runs = {size: Run("gups", (size, updates)) for size in _sizes(_TABLES, conditions)}
    return _points("gups", runs, conditions, "M/s", lambda _, cycles: updates / (cycles * CYCLE_S) / 1e6)


EXPERIMENTS = {
    "proxics-table1": Experiment(
        title="latency and bandwidth of far memory, to the host and to a core beside it",
        run=_table1,
        note="""\
All of it is measured by programs. External latency: uncached reads of the host, one after the other. Internal: from
the command of a core to the stamp of the line. External bandwidth: the host reads in order, a word of each line, with
the distance and level of hints that are best. Internal: transfers of a copy engine. The machine is fitted to the
first three; both latencies are not published, the external one is held near Enzian's (591 ns, DC+DDR).
""",
        left_out=LEFT_OUT,
        headline="Far memory is nearer to a core beside it than to the host, and gives it more.",
        axis="GB/s; of one another (%); ns",
        spans=_table1_spans,
        rerun_accesses=16384,
        limited=_bytes,
        needs=missing,
    ),
    "proxics-bulk": Experiment(
        title="memory set, cleared and copied by the host and by a core beside far memory, by size",
        run=_bulk,
        note="""\
By the host: local in its own memory, far in far memory, with hints so many lines ahead as are best for 256 KiB of it;
far ones end with a flush of what was written, all of them with a read of the last word. Sources in far memory are in no
cache before; what is local was accessed before. By a core: from the host's request through a pipe, which brings
operation and addresses, to the answer, for which the core has read the last line; what the host does for its caches is
not counted. Copies are synchronous, 384 lines at a time, or two interleaved transfers of 192. The second of two runs
counts (published are medians of 100; here each is the same). Each word that was written is compared.
""",
        left_out=LEFT_OUT,
        headline="A core beside far memory sets, clears and copies it, and so does the host, by size.",
        axis="throughput (GB/s)",
        along="bytes",
        logarithmic="xy",
        limited=_bytes,
        needs=missing,
    ),
    "proxics-gups": Experiment(
        title="random updates of a table in local and in far memory, by its size",
        run=_gups,
        note=f"""\
{_UPDATES} updates of one worker, of 8 bytes each. The host has read all of the table, or as much of it as its last
cache has room for, before; it needs no barriers. Hints are for updates so many ahead as is best. The core fetches the
line, changes the word and stores the line, one after the other; the registers that ask and answer are counted. A second
time the updates undo the first, and all of the table is compared.
""",
        left_out=LEFT_OUT,
        headline="One worker updates random entries of a table, which the last cache holds or does not.",
        axis="updates (M/s)",
        along="bytes of the table",
        logarithmic="xy",
        limited=_bytes,
        needs=missing,
    ),
}
