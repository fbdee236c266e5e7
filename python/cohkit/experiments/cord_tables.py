"""Tables of directory-ordered stores: their minimum sizes, and their cost on a chip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cohkit.experiments.cord import MACHINES, TABLES, play_runs, ratio, successful_plays
from cohkit.experiments.cord_programs import ALL_TO_ALL, ProgramRun, duration
from cohkit.experiments.experiment import Experiment
from cohkit.experiments.small_rams import Cost, Ram, Technology, ram_cost
from cohkit.experiments.study import settings_of
from cohkit.published import PERCENT, Measurement, Published

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from cohkit.experiments.cord import Sizes
    from cohkit.experiments.experiment import Conditions
    from cohkit.types import Play

HOSTS = (2, 4, 8)
WORKLOADS: Mapping[str, Mapping[str, int]] = {
    "sssp": {"vertices": 4096},
    "pad": {"rows": 64},
    "pr": {"vertices": 4096},
    ALL_TO_ALL: {},
}
"""Programs at a part of their usual size: the number of outstanding stores does not depend on their length."""
FREE_RATIO = 1.001
"""Tables count as free if a program takes at most this multiple of its time with the largest tables."""
LARGEST = 32
"""Entries of a table that is large enough for all programs."""

CORES = 8
"""Cores per host, which has as many directories, one per slice of its shared cache."""
EPOCH_BITS = 8
COUNTER_BITS = 32
CHIP_HOSTS = 8
"""Hosts of the published machine."""
PUBLISHED: Sizes = {"entries": 8, **TABLES}
POOLS = {"slots": 8 * 16, "notes": 16 * 16}
"""Published entries of a directory, if they are shared by all cores."""


def _bits(numbers: int) -> int:
    """Return the number of bits that distinguish `numbers` values."""
    return max(1, (numbers - 1).bit_length())


def core_bits(sizes: Sizes, hosts: int) -> dict[str, int]:
    """Return the bits of a core's tables. Each entry names its directory."""
    directory = _bits(CORES * hosts)
    return {
        "counts of stores, core": sizes["counters"] * (directory + COUNTER_BITS),
        "epochs, core": sizes["entries"] * (directory + EPOCH_BITS),
    }


def directory_bits(sizes: Sizes, hosts: int) -> dict[str, int]:
    """Return the bits of a directory's tables per issuing core. An entry's position identifies the core."""
    # Notifications may arrive from all other directories.
    notifications = _bits(CORES * hosts)
    return {
        "counts of stores, directory": sizes["slots"] * (EPOCH_BITS + COUNTER_BITS),
        "notifications, directory": sizes["notes"] * (EPOCH_BITS + notifications),
        "epochs, directory": EPOCH_BITS,
    }


class SmallestTables(NamedTuple):
    """The smallest tables without a time cost, the time with the largest tables, and the play with the smallest.

    Attributes:
        sizes: sizes of the tables.
        largest_ns: time with the largest tables, in nanoseconds.
        play: the play with the smallest tables.

    """

    sizes: Sizes
    largest_ns: float
    play: Play


def _with_sizes(run: ProgramRun, sizes: Sizes) -> ProgramRun:
    """Return a run with these sizes of tables; other sizes are large enough to have no effect."""
    # More epoch numbers than a core has entries make no difference.
    return run._replace(sizes={"homes": run.hosts, "epochs": 2 * LARGEST, "most": 65535, **sizes})


def _search(run: ProgramRun) -> Generator[ProgramRun, Play, SmallestTables]:
    """Yield runs to play, and return the smallest tables that cost no time.

    Tables are minimised one after the other, those of the core first. No table of the result can therefore be smaller
    with the others unchanged. The search assumes that more entries never cost time.
    """
    sizes = {"counters": run.hosts, "entries": LARGEST, "slots": LARGEST, "notes": LARGEST}
    play = yield _with_sizes(run, sizes)
    time = duration(play)
    for table in ("entries", "counters", "slots", "notes"):
        # The other tables hold at most the unacknowledged epochs and the current one.
        low, high = 1, min(sizes[table], sizes["entries"] + (table == "slots"))
        # This is usually a small number, so start with small guesses.
        guess = 1
        while low < high:
            smaller = yield _with_sizes(run, {**sizes, table: guess})
            if duration(smaller) <= FREE_RATIO * time:
                high, play = guess, smaller
                guess = (low + high) // 2
            else:
                low = guess + 1
                guess = min(2 * guess, (low + high) // 2)
                guess = max(guess, low)
        sizes[table] = high
    return SmallestTables(sizes, time, play)


def _smallest_tables(runs: Iterable[ProgramRun], conditions: Conditions) -> dict[str, SmallestTables]:
    """Search for the smallest tables of all runs in parallel, and return them by the `repr` of the run."""
    searches = {repr(run): _search(run) for run in runs}
    pending = {name: next(search) for name, search in searches.items()}
    tables: dict[str, SmallestTables] = {}
    # The last three searches need few guesses.
    expected_plays = 16 * len(searches)
    progress = conditions.progress
    silent_conditions = conditions._replace(progress=None)
    plays = 0
    while pending:
        results = successful_plays(play_runs(list(pending.values()), silent_conditions))
        plays += len(pending)
        if progress:
            progress(min(plays, expected_plays), expected_plays)
        for name, run in dict(pending).items():
            try:
                pending[name] = searches[name].send(results[repr(run)])
            except StopIteration as end:
                tables[name] = end.value
                del pending[name]
    return tables


def _runs(workloads: Iterable[str]) -> list[tuple[str, str, ProgramRun]]:
    """Return the programs for all numbers of hosts: name of the machine, program and run."""
    return [
        (machine, program, ProgramRun(program, platform, "cord", hosts=hosts, numbers=WORKLOADS[program]))
        for machine, platform in MACHINES.items()
        for program in workloads
        for hosts in HOSTS
    ]


READINGS = ("for each core", "for all cores")


def _published(hosts: int, reading: str) -> Sizes:
    """Return the published tables, read as per issuing core, or as shared equally by all cores."""
    if reading == READINGS[0]:
        return PUBLISHED
    return {**PUBLISHED, **{table: entries // (CORES * hosts) for table, entries in POOLS.items()}}


def _fig11(conditions: Conditions) -> list[Measurement]:
    """Return the bytes of the smallest tables without a time cost, and the time with the published sizes."""
    runs = _runs(WORKLOADS)
    tables = _smallest_tables((run for *_, run in runs), conditions)
    published_runs = {
        (repr(run), reading): _with_sizes(run, _published(run.hosts, reading))
        for *_, run in runs
        for reading in READINGS
    }
    results = successful_plays(play_runs(list(published_runs.values()), conditions._replace(progress=None)))
    ours = []
    for machine, program, run in runs:
        sizes, time, _ = tables[repr(run)]
        bytes_per_core = sum(directory_bits(sizes, run.hosts).values()) / 8
        numbers = {
            "core": (sum(core_bits(sizes, run.hosts).values()) / 8, "B"),
            "directory, for each core": (bytes_per_core, "B"),
            "directory, for all cores": (bytes_per_core * CORES * run.hosts, "B"),
        }
        for reading in READINGS:
            published_time = duration(results[repr(published_runs[repr(run), reading])])
            numbers[f"time, published {reading}"] = (ratio(published_time, time), PERCENT)
        ours += [
            Measurement(
                f"{program} {run.hosts}, {quantity}, {machine}",
                value,
                unit,
                f"cord.storage.{quantity}.{machine}.{program}.{run.hosts}",
                cut=conditions.accesses is not None,
            )
            for quantity, (value, unit) in numbers.items()
        ]
    return _by_panel(ours)


def _by_panel(ours: list[Measurement]) -> list[Measurement]:
    """Group the numbers by panel, keeping their order."""
    panels = list(dict.fromkeys(measurement.name.partition(", ")[2] for measurement in ours))
    return sorted(ours, key=lambda measurement: panels.index(measurement.name.partition(", ")[2]))


def _fig12(conditions: Conditions) -> list[Measurement]:
    """Return the bytes of each table of the all-to-all program."""
    runs = _runs([ALL_TO_ALL])
    tables = _smallest_tables((run for *_, run in runs), conditions)
    ours = []
    for machine, _, run in runs:
        sizes, _, play = tables[repr(run)]
        issuing = CORES * run.hosts
        assert play["traffic"] is not None  # noqa: S101 -- there are hosts
        release = play["traffic"]["Release"]
        bits = {
            **core_bits(sizes, run.hosts),
            **{name: bits_per_core * issuing for name, bits_per_core in directory_bits(sizes, run.hosts).items()},
            # As many ends of epochs may wait at a directory as a core has unacknowledged epochs.
            "network buffers, directory": sizes["entries"]
            * issuing
            * 8
            * release["between_bytes"]
            // release["between"],
        }
        ours += [
            Measurement(
                f"{run.hosts}, {table_name}, {machine}",
                value / 8,
                "B",
                f"cord.storage_by_table.{machine}.{table_name}.{run.hosts}",
                cut=conditions.accesses is not None,
            )
            for table_name, value in bits.items()
        ]
    return ours


LINE_BITS = 8 * 64
MESSAGE_BITS = LINE_BITS + 8 * 16
"""Bits of a stored line with its header (assumed)."""
BLOCK_BITS = 8 * 64
"""Bits per entry in the published estimate: inferred from it, so no prediction. It gives tables of 8 entries the same
area and power whether an entry has a counter, an epoch or a committed epoch, so its entries are blocks of one size, and
CACTI's sample configuration has 64 B. Rows of own bits do not use it."""
CHIP_TABLES: Mapping[str, int] = {"8": 8, "8x16": 8 * 16, "16x16": 16 * 16}
"""Published tables, and their numbers of entries."""
CHIP_PARTS: Mapping[str, tuple[str, ...]] = {"core": ("8", "8"), "directory": ("8x16", "16x16", "8")}
"""Tables of a core, and of a directory."""
OWN_BITS: Mapping[str, int] = {
    "8": _bits(CORES * CHIP_HOSTS) + COUNTER_BITS,
    "8x16": _bits(CORES * CHIP_HOSTS) + EPOCH_BITS + COUNTER_BITS,
    "16x16": _bits(CORES * CHIP_HOSTS) + EPOCH_BITS + _bits(CORES * CHIP_HOSTS),
}
"""Bits per entry that the tables need: number of a directory or core, epoch, count, number of a directory."""


class ChipCost(NamedTuple):
    """Area, leakage and energy of a read of a table, or the sums of several."""

    area: float
    """In mm2."""
    power: float
    """In mW."""
    energy: float
    """In nJ."""


def _chip_cost(tables: Iterable[str], technology: Technology, bits: Mapping[str, int] | None = None) -> ChipCost:
    """Return the cost of tables, with these bits per entry; those of the published estimate if `None`."""
    cost = Cost()
    for table in tables:
        cost = cost.plus(ram_cost(Ram(CHIP_TABLES[table], bits[table] if bits else BLOCK_BITS), technology))
    return ChipCost(cost.square_um / 1e6, cost.leakage_w * 1e3, cost.access_j * 1e9)


def _baseline(key: str, unit: str) -> float:
    """Return a published number of the chip without tables."""
    value = Published.shipped().value(f"cord.baseline.{key}", unit=unit)
    assert value is not None, key  # noqa: S101 -- it ships
    return value


def _chip_costs(technology: Technology) -> list[Measurement]:
    """Return the cost of the published tables, of core, directory and host, and of counting a store at both ends."""
    costs = {f"{table} entries": _chip_cost([table], technology) for table in CHIP_TABLES}
    costs |= {part: _chip_cost(tables, technology) for part, tables in CHIP_PARTS.items()}
    costs["host"] = _chip_cost([table for tables in CHIP_PARTS.values() for table in CORES * tables], technology)
    own = {f"{table} entries": _chip_cost([table], technology, OWN_BITS) for table in CHIP_TABLES}
    units = {"area": "mm2", "power": "mW", "energy": "nJ"}
    ours = [
        Measurement(f"{part}, {quantity}", getattr(cost, quantity), unit, f"cord.chip.{quantity}.{part}")
        for quantity, unit in units.items()
        for part, cost in costs.items()
        if quantity != "energy" or part.endswith("entries")
    ]
    ours += [
        Measurement(
            f"{part} of their own bits, {quantity}",
            getattr(cost, quantity),
            unit,
            f"cord.chip.own_bits.{quantity}.{part}",
        )
        for quantity, unit in units.items()
        for part, cost in own.items()
    ]
    shares = (("area", "mm2", "llc_and_directory_area"), ("power", "mW", "static_power"))
    ours += [
        Measurement(
            f"host, {quantity} over the shared cache's",
            ratio(getattr(costs["host"], quantity), _baseline(key, unit)),
            PERCENT,
            f"cord.chip.{quantity}_share.host",
        )
        for quantity, unit, key in shares
    ]
    line = _baseline("llc_write_64B", "pJ")
    ends = {"low": "link_energy_low", "high": "link_energy_high"}
    links = sum(_baseline(key, "pJ") for key in ends.values()) / len(ends) * MESSAGE_BITS
    # The counts of a store at its core and at its directory.
    counts = 1000 * (costs["8 entries"].energy + costs["8x16 entries"].energy)
    return [
        *ours,
        Measurement(
            "energy of a store's counts, of that of its line's way and write",
            ratio(counts, line + links),
            PERCENT,
            "cord.chip.energy_share",
        ),
    ]


_PART = "technology"
RANGES: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "temperature": ("kelvin", {"300 K": 300, "400 K": 400}),
    "area over that of the parts": ("layout_overhead", {"1": 1, "2": 2}),
    "capacitance of a wire": ("wire_capacitance", {"0.1 fF/um": 1e-16, "0.4 fF/um": 4e-16}),
    "swing of a bit line": ("swing", {"0.05 of the supply": 0.05, "1 of the supply": 1}),
}
"""Assumptions: name, field of `Technology`, and the values at the bounds of the range."""


def _table3(conditions: Conditions) -> list[Measurement]:
    if conditions.study:
        for name, (_, bounds) in RANGES.items():
            conditions.study.assume(_PART, name, bounds, is_discrete=False)
    values: dict[str, Any] = {
        RANGES[name][0]: RANGES[name][1][value] for name, value in settings_of(_PART, conditions.settings).items()
    }
    return _chip_costs(Technology()._replace(**values))


NOTE = """\
SSSP, padding, page rank, and a broadcast of a word from every host to every other, with one thread on each host. Tables
have their minimum sizes: the time until all threads have checked their results is within 0.1 % of the time with tables
of 32 entries. Tables are minimised one after the other: a core's unacknowledged epochs, its counts of stores, a
directory's counts of stores, and its counts of notifications. An entry of a core has the number of a directory (one at
each slice), and a counter of 32 bits or an epoch of 8 bits. An entry of a directory has the epoch, and a counter or the
number of a directory. A thread stores to one directory of each host. Graphs have 4096 vertices, matrices 64 rows.
"""
_OF_TABLES = """\
Entries of a directory's tables are per issuing core. The size for all cores multiplies them by the number of cores,
eight per host. The published entries of a directory, 8*16 and 16*16, are read in two ways: as 8 and 16 per core, and as
128 and 256 for all cores, in equal parts.
"""
_OF_BUFFERS = """\
A directory's tables are those for all cores, eight per host. Buffers hold as many releases, or other ends of epochs, of
each core as it may have unacknowledged, each with the bytes that it takes on a link.
"""
_OF_CHIP = """\
Tables of a core (two of 8 entries) and of a directory (128, 256 and 8 entries), as RAMs of one port at 22 nm and 360 K,
by the formulas and constants of CACTI 7 (`python/cohkit/experiments/small_rams.py`): cells, decoder, word-line drivers,
precharge, sense amplifiers, write and output drivers. An entry is a block of 64 B, because the published tables of 8
entries have equal cost, whatever an entry contains. Further rows use the bits that the tables need. Tags, wires from
the edge of a bank, and more than one bank or port are left out. A host has eight cores and eight directories; its share
is relative to the published area and static power of its shared cache and directory. A line is assumed to have 16 B of
header.
"""
OMISSIONS = "waiting inside meshes, room in buffers, memory behind the shared cache, seven cores of each host"


def _limited(accesses: int) -> str:
    return f"no more than {accesses} stores each, or the least that a program makes"


EXPERIMENTS = {
    "cord-fig11": Experiment(
        run=_fig11,
        note=NOTE + _OF_TABLES,
        omissions=OMISSIONS,
        headline="Bytes of the smallest tables that cost no time, and the cost of the published ones.",
        axis="bytes; of the largest (%)",
        rerun_accesses=2**11,
        limited=_limited,
    ),
    "cord-fig12": Experiment(
        run=_fig12,
        note=NOTE + _OF_BUFFERS,
        omissions=OMISSIONS,
        headline="The tables and buffers of a directory grow with the cores that store to it.",
        axis="bytes",
        along="hosts",
        logarithmic="y",
        rerun_accesses=2**11,
        limited=_limited,
    ),
    "cord-table3": Experiment(
        run=_table3,
        note=_OF_CHIP,
    ),
}
