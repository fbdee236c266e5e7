"""Programs on eight hosts that write to each other's memory, by the agent that orders their stores."""

from __future__ import annotations

import math
from statistics import geometric_mean
from typing import TYPE_CHECKING, NamedTuple

from cohkit import units
from cohkit.experiments.cord import (
    HOMES,
    MACHINES,
    ORDERINGS,
    Comparison,
    machines,
    percent_of_cord,
    play_comparisons,
    play_runs,
    ratio,
    successful_plays,
    text,
    traffic,
)
from cohkit.experiments.experiment import Experiment
from cohkit.experiments.study import settings_of, value_of
from cohkit.published import PERCENT, Measurement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cohkit.experiments.cord import Sizes
    from cohkit.experiments.experiment import Conditions
    from cohkit.player import Request
    from cohkit.shipped_types import Application
    from cohkit.types import Play


class Program(NamedTuple):
    """A program with its numbers. `by` is the number that is reduced: one unit of it causes about `stores` stores.

    Attributes:
        application: name of the shipped application.
        numbers: its numbers.
        by: name of the number that a limit on accesses reduces.
        stores: approximate number of stores per unit of that number.
        least: minimum of that number.

    """

    application: Application
    numbers: Mapping[str, int]
    by: str
    stores: int
    least: int


MATRIX = 1024
"""Rows, and columns, of the published matrices of `pad` and `trns`, in elements."""
ELEMENT = 8
"""Bytes of an element of a matrix: assumed, a word of the programs; the range is 4 to 8. A store covers a line of
elements, as published."""
LINE = 64
"""Bytes of a line."""


def _matrices(element: int) -> dict[str, dict[str, int]]:
    """Return the numbers of programs that depend on the bytes of an element.

    A row of `pad` has the lines of a row of elements. `trns` transposes lines: its square matrix has as many lines as
    the elements fill.

    >>> _matrices(8)
    {'pad': {'columns': 128}, 'trns': {'size': 362}}

    """
    return {
        "pad": {"columns": MATRIX * element // LINE},
        "trns": {"size": math.isqrt(MATRIX * MATRIX * element // LINE)},
    }


PROGRAMS: Mapping[str, Program] = {
    # olesnik0: 88,263 vertices, 341,593 edges; ours have 4 edges for each vertex, but for coinciding ones.
    "pr": Program("pagerank", {"vertices": 88263, "near": 2, "far": 2, "release": 5120}, "vertices", 12, 64),
    # wing: 62,032 vertices, 121,544 edges; ours have 2 edges for each vertex.
    "sssp": Program("sssp", {"vertices": 62032, "near": 1, "far": 1, "release": 704}, "vertices", 6, 64),
    "pad": Program(
        "padding", {"rows": MATRIX, **_matrices(ELEMENT)["pad"], "pad": 4, "part": 16, "block": 8}, "rows", 256, 2
    ),
    "tqh": Program("task-queue", {"tasks": 512, "most": 32}, "tasks", 70, 1),
    "hsti": Program("histogram", {"bins": 256, "fanout": 3, "rounds": 32, "release": 1024}, "rounds", 2000, 1),
    "trns": Program("transpose", {**_matrices(ELEMENT)["trns"], "rounds": 2, "release": 512}, "size", 100, 8),
    "mocfe": Program("mocfe", {"steps": 32}, "steps", 700, 1),
    "cmc2d": Program("cmc2d", {"steps": 8}, "steps", 6600, 1),
    "bigfft": Program("bigfft", {"steps": 16}, "steps", 6600, 1),
    "cr": Program("crystal-router", {"steps": 64}, "steps", 420, 1),
}
"""The ten programs of the published table: its inputs and fan-outs, as far as it states them, and its bytes between two
releases."""

ALL_TO_ALL = "ata"
"""Program that needs the largest tables: each thread stores a word and releases a flag at every other host."""
ALL: Mapping[str, Program] = {**PROGRAMS, ALL_TO_ALL: Program("broadcast", {"rounds": 16}, "rounds", 112, 1)}

TSO = {
    "so": {},
    "mp": ORDERINGS["mp"],
    "wb": {},
    "cord": {"homes": HOMES, "epochs": 16, "entries": 8, "notes": 16},
}
"""Protocols for total store order, and their sizes."""


CORES = 8
"""Cores per host. The number of threads per host is not published. Each published directory table has 8 last
committed epochs, so one per host is assumed for eight hosts; the range is 1 to 8."""
WORK = "1ns"
"""Time in which a thread computes a value: assumed, two clocks of 2 GHz."""
WORKS = ("250ps", "4ns")
"""Range of `WORK`: from one clock of 4 GHz to four of 1 GHz."""
_PART, _THREADS, _WORK, _ELEMENT = "programs", "threads of a host", "time of a value", "bytes of an element"
"""Assumptions that no platform has: part of the model, and names."""


class ProgramRun(NamedTuple):
    """A program on a machine, with an ordering.

    Attributes:
        program: key of `ALL`.
        platform: the machine.
        ordering: key of `ORDERINGS`, or of `TSO` if `order` is given.
        order: prefix of the protocol's name: `tso/` for total store order, otherwise empty.
        hosts: number of hosts, each with a home.

    """

    program: str
    platform: str
    ordering: str
    order: str = ""
    hosts: int = HOMES
    sizes: Sizes | None = None
    """Sizes of the protocol; the defaults if `None`."""
    numbers: Mapping[str, int] = {}
    """Numbers of the program that replace the defaults."""
    threads: int = 1
    """Threads per host."""
    settings: Mapping[str, str] = {}
    """Quantities of the platform to set."""

    def request(self, conditions: Conditions) -> Request:
        """Return the request to play."""
        program = ALL[self.program]
        threads = self.threads * self.hosts
        numbers = {"homes": self.hosts, "threads": threads, **program.numbers, **self.numbers}
        if (max_stores := conditions.accesses) is not None:
            numbers[program.by] = min(numbers[program.by], max(program.least, max_stores // program.stores))
        default_sizes = (TSO if self.order else ORDERINGS)[self.ordering]
        return {
            "platform": self.platform,
            "application": program.application,
            "numbers": numbers,
            "protocol": text(self.order + self.ordering),
            "sizes": default_sizes if self.sizes is None else self.sizes,
            "set": {
                "remotes": threads,
                "cores.count": threads,
                "hosts.count": self.hosts,
                "home.count": self.hosts,
                **self.settings,
            },
            "seed": conditions.seed,
        }


def duration(result: Play) -> float:
    """Return the duration of a program in nanoseconds, as the mean over its threads."""
    times = result.durations_ns
    assert times is not None  # noqa: S101 -- it has not failed
    return times["broadcasts" if "broadcasts" in times else "done"].mean


def _waiting_share(result: Play, threads: int) -> float:
    """Return the percentage of `threads` threads' time spent waiting for outstanding stores."""
    assert result.statistics is not None  # noqa: S101 -- it has not failed
    assert result.end_ns is not None  # noqa: S101 -- it has not failed
    return ratio(result.statistics["posted_wait_ns"], threads * result.end_ns)


def _acknowledgement_share(result: Play, _: int) -> float:
    """Return the percentage of the bytes between hosts used by acknowledgements."""
    assert result.traffic is not None  # noqa: S101 -- there are hosts
    # Both stores and releases are acknowledged.
    acknowledgements = sum(result.traffic[name]["between_bytes"] for name in ("StoreAck", "ReleaseAck"))
    return ratio(acknowledgements, traffic(result))


def _threads(conditions: Conditions) -> int:
    """Return the assumed threads per host."""
    if conditions.study:
        conditions.study.assume(_PART, _THREADS, [str(CORES)], is_discrete=True)
    return int(settings_of(_PART, conditions.settings).get(_THREADS, 1))


def _numbers(program: str, conditions: Conditions) -> dict[str, int]:
    """Return the numbers of a program that are assumed."""
    if conditions.study:
        conditions.study.assume(_PART, _WORK, WORKS, is_discrete=False)
        conditions.study.assume(_PART, _ELEMENT, ["4B"], is_discrete=True)
    settings = settings_of(_PART, conditions.settings)
    work = units.quantity(settings.get(_WORK, WORK), key=_WORK).to("ps")
    element = int(settings.get(_ELEMENT, f"{ELEMENT}B").removesuffix("B"))
    return {"work": round(work), **_matrices(element).get(program, {})}


def _fig2(conditions: Conditions) -> list[Measurement]:
    """Return the shares of acknowledgements in the time and in the traffic of programs with source ordering."""
    comparisons = [
        (
            machine,
            program,
            ProgramRun(program, platform, "so", numbers=_numbers(program, conditions), threads=_threads(conditions)),
        )
        for machine, platform in machines(conditions).items()
        for program in PROGRAMS
    ]
    results = successful_plays(play_runs([run for *_, run in comparisons], conditions))
    return [
        Measurement(
            f"{program}, {machine}, {share_name}",
            share(results[repr(run)], HOMES * run.threads),
            PERCENT,
            f"cord.acknowledgements.{share_name}.{machine}.{program}",
            cut=conditions.accesses is not None,
        )
        for share_name, share in {"time": _waiting_share, "traffic": _acknowledgement_share}.items()
        for machine, program, run in comparisons
    ]


def _comparisons(order: str, conditions: Conditions) -> list[Comparison]:
    """Return each program on each machine, with each ordering."""
    threads = _threads(conditions)
    return [
        Comparison(
            program,
            machine,
            f"{machine}.{program}",
            {
                name: ProgramRun(program, platform, name, order, numbers=_numbers(program, conditions), threads=threads)
                for name in ORDERINGS
            },
        )
        for machine, platform in machines(conditions).items()
        for program in PROGRAMS
    ]


WRONG_RESULT = "result of a scenario"
"""Failure kind of a run with wrong data, which yields no number."""


def _initial_stores(numbers: Mapping[str, int]) -> int:
    """Return the stores of data that a program has when its time begins: `pad` works in place on a whole matrix."""
    return numbers["rows"] * numbers["columns"] if "rows" in numbers else 0


def _bytes_per_release(result: Play, platform: str, conditions: Conditions, initial_stores: int = 0) -> float:
    """Return the bytes of write-through stores per release, without the stores before the time begins.

    Stores to other hosts determine the bytes per store.
    """
    assert result.traffic is not None  # noqa: S101 -- there are hosts
    assert result.messages is not None  # noqa: S101 -- it has not failed
    header = value_of(platform, "link.header_bytes", conditions.settings)
    relaxed_stores, messages = result.traffic["Relaxed"], result.messages
    # The header of a store has space for its epoch.
    bytes_per_store = relaxed_stores.between_bytes / max(relaxed_stores.between, 1) - header
    return bytes_per_store * (messages["Relaxed"] - initial_stores) / messages["Release"]


def _means(ratios: Sequence[Measurement], key: str, conditions: Conditions) -> list[Measurement]:
    """Return the geometric mean over the programs, for each measure, machine and ordering."""
    values: dict[tuple[str, str, str], list[float]] = {}
    for measurement in ratios:
        measure, machine, _, ordering = measurement.key.removeprefix(f"{key}.").split(".")
        values.setdefault((measure, machine, ordering), []).append(measurement.value)
    return [
        Measurement(
            f"mean {ordering}, {machine}, {measure}",
            geometric_mean(ratios_of_programs),
            PERCENT,
            f"{key}.{measure}.{machine}.mean.{ordering}",
            cut=conditions.accesses is not None,
        )
        for (measure, machine, ordering), ratios_of_programs in values.items()
    ]


def _fig7(conditions: Conditions) -> list[Measurement]:
    """Return time and traffic of all programs and orderings relative to CORD, and the bytes stored for each release."""
    comparisons = _comparisons("", conditions)
    results = play_comparisons(comparisons, conditions, WRONG_RESULT)
    ours = percent_of_cord(comparisons, results, {"time": duration, "traffic": traffic}, "cord.programs", conditions)
    ours += _means(ours, "cord.programs", conditions)
    return ours + [
        Measurement(
            f"{comparison.place}, {comparison.panel}, stored for each release",
            _bytes_per_release(
                results[repr(comparison.runs["cord"])],
                MACHINES[comparison.panel],
                conditions,
                _initial_stores(results[repr(comparison.runs["cord"])].parameters),
            ),
            "B",
            f"cord.release_bytes.{comparison.place}",
            cut=conditions.accesses is not None,
        )
        # The addresses that programs store to do not depend on the distance between hosts.
        for comparison in comparisons
        if comparison.panel == next(iter(MACHINES))
    ]


def _fig13(conditions: Conditions) -> list[Measurement]:
    """Return time and traffic with total store order, relative to CORD."""
    comparisons = _comparisons("tso/", conditions)
    results = play_comparisons(comparisons, conditions, WRONG_RESULT)
    return percent_of_cord(comparisons, results, {"time": duration, "traffic": traffic}, "cord.tso", conditions)


RERUN_STORES = 2048
"""Approximate number of stores per program in the sensitivity runs."""


def _limited(accesses: int) -> str:
    return f"no more than {accesses} stores each, or the least that a program makes"


NOTE = """\
Ten programs compute on real data and check their results; a program whose check fails has no number. One thread runs on
each of eight hosts. `--sensitivity` varies four assumptions: up to eight threads per host, the time of a value, the
bytes of an element, and the published latency between hosts as that of one way. Inputs and caches are not scaled.
Graphs are generated, with the vertices and about the edges of the published ones: 88,263 and 4 for each (pr, olesnik0),
62,032 and 2 for each (sssp, wing). Matrices have 1024 by 1024 elements of 8 bytes (assumed), in lines: 1024 by 128
(pad) and 362 by 362 (trns). Fan-outs are those of the published table, and programs release after its bytes; they also
release at barriers and for flags of consumed bytes. The kinds and numbers of messages of the mini-applications are
assumed (`cohkit play cxl-8x8 mocfe --param help`). Time begins when all threads have their data, and ends with the last
check. The traffic of `pad` includes the stores of its initial matrix. Private data of a thread are not in simulated
memory: each value takes 1 ns to compute. A thread has up to 128 unacknowledged stores, also to one line. Credits of
posted stores do not count. Means are geometric, over the programs with a number.
"""
OMISSIONS = "waiting inside meshes, room in buffers, misses in the shared cache, seven cores of each host"

EXPERIMENTS = {
    "cord-fig2": Experiment(
        run=_fig2,
        rerun_accesses=RERUN_STORES,
        rerun_budget=48,
        note=NOTE + "The share of time is the time that threads wait for their outstanding stores.\n",
        omissions=OMISSIONS,
        headline="Threads wait for acknowledgements, which are a part of the traffic between hosts.",
        axis="share (%)",
        limited=_limited,
    ),
    "cord-fig7": Experiment(
        run=_fig7,
        rerun_accesses=RERUN_STORES,
        # All programs with 64 threads take half a minute.
        rerun_budget=24,
        note=NOTE
        + "Bytes per release: those of all relaxed stores under `cord`, divided by the number of all releases, which\n"
        "include those of barriers and of flags that announce consumed bytes.\n",
        omissions=OMISSIONS,
        headline="Programs with stores ordered at their source, between two points or written back.",
        axis="of cord (%); stored for each release (B)",
        limited=_limited,
    ),
    "cord-fig13": Experiment(
        run=_fig13,
        rerun_accesses=RERUN_STORES,
        note=NOTE,
        omissions=OMISSIONS,
        headline="Under total store order each store to a directory is a release.",
        axis="of cord (%)",
        limited=_limited,
    ),
}
