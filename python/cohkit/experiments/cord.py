"""Stores to other hosts' memory, ordered at their source, at directories, by numbers, or point to point."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cohkit.errors import Error
from cohkit.experiments.experiment import Experiment, vary
from cohkit.experiments.study import run_once
from cohkit.player import play_many
from cohkit.protocols import parse, shipped_file
from cohkit.published import PERCENT, Measurement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cohkit._cohkit import Protocol as Text
    from cohkit.experiments.experiment import Conditions
    from cohkit.player import Request
    from cohkit.types import Play

MACHINES = {"CXL": "cxl-8x8", "UPI": "upi-8x8"}
HOMES = 8
LINE = 64
"""Bytes per line, unless a store is larger."""
WIDE = 65535
"""Largest bound that a protocol accepts: larger than the number of stores per epoch here."""
OUTSTANDING = 128
"""Outstanding stores of a core that orders them at their source: `cores.max_posted_stores` of the machines."""
STORES = 16384
"""Approximate number of stores per simulation; at least two releases and at most 256 are simulated."""

Sizes = dict[str, int]
TABLES: Sizes = {"counters": 8, "slots": 8, "notes": 16}
"""Published table sizes apart from unacknowledged epochs. `counters`: homes whose stores a core counts. Per core at
a home: epochs whose stores are counted (`slots`), and releases that notifications are counted for (`notes`). `8*16`
and `16*16` are read as 8 and 16 per core, for 16 cores."""
ORDERINGS: Mapping[str, Sizes] = {
    "so": {"homes": HOMES, "most": OUTSTANDING},
    "mp": {"homes": HOMES, "credits": WIDE},
    "wb": {},
    "cord": {"homes": HOMES, "epochs": 16, "entries": 8, "most": WIDE, **TABLES},
}
"""Protocols with their sizes. `cord` has the published 8 entries, so more than 9 epoch numbers make no difference."""


class PlayRun(Protocol):
    """A run that can be played."""

    def request(self, conditions: Conditions) -> Request:
        """Return the request to play."""


class Work(NamedTuple):
    """Work of the writing thread.

    Attributes:
        fanout: number of hosts that the thread stores to.

    """

    store: int = 64
    """Bytes per store."""
    sync: int = 4096
    """Bytes between two releases."""
    fanout: int = 1


class Run(NamedTuple):
    """One simulation: a protocol with sizes, on a machine, with quantities set.

    Attributes:
        text: name of the ordering's protocol.
        sizes: sizes of the protocol.
        platform: the machine.
        work: work of the writing thread.
        settings: quantities of the platform to set.
        homes: number of homes.

    """

    text: str
    sizes: Sizes
    platform: str
    work: Work
    settings: Mapping[str, int | str] = {}
    homes: int = HOMES

    def request(self, conditions: Conditions) -> Request:
        """Return the request to play."""
        stores = max(1, self.work.sync // self.work.store)
        releases = max(2, min(256, STORES // stores))
        if (max_stores := conditions.accesses) is not None:
            stores = min(stores, max_stores)
            releases = max(1, min(releases, max_stores // stores))
        sizes = dict(self.sizes)
        if self.work.store > LINE:
            sizes["line"] = self.work.store
        return {
            "platform": self.platform,
            "application": "remote-writes",
            "numbers": {
                "homes": self.homes,
                "fanout": self.work.fanout,
                "words": self.work.store // 8,
                "stores": stores,
                "releases": releases,
                "every": 0,
            },
            "protocol": text(self.text),
            "sizes": sizes,
            # One core per host participates.
            "set": {"remotes": HOMES, **self.settings},
            "seed": conditions.seed,
        }


@cache
def text(name: str) -> Text:
    """Return a protocol of the folder `ordering`."""
    file = f"ordering/{name}.coh"
    return parse(shipped_file(file), file=file)


def play_runs(runs: Sequence[PlayRun], conditions: Conditions) -> dict[str, Play]:
    """Play each distinct run once, and return the results by the `repr` of the run."""
    distinct_runs = {repr(run): run for run in runs}
    requests = [vary(run.request(conditions), conditions) for run in distinct_runs.values()]

    def play(pending: list[Request]) -> Sequence[Play]:
        return play_many(pending, threads=conditions.threads, progress=conditions.progress)

    return dict(zip(distinct_runs, run_once(requests, play, conditions.study), strict=True))


def machines(conditions: Conditions) -> dict[str, str]:
    """Return the platforms, by name, of the numbers that are needed."""
    return {
        name: platform
        for name, platform in MACHINES.items()
        if conditions.keys is None or any(f".{name}." in key for key in conditions.keys)
    }


def successful_plays(results: Mapping[str, Play], ignored_failure: str = "") -> dict[str, Play]:
    """Return the results without failure.

    Raises:
        Error: a run failed, and its failure is not of kind `ignored_failure`.

    """
    for run, result in results.items():
        if (failure := result.failure) and failure.kind != ignored_failure:
            raise Error(f"{run}: {failure.kind}: {failure.message}")
    return {run: result for run, result in results.items() if not result.failure}


def _time(result: Play) -> float:
    """Return the mean time in nanoseconds until the last release was acquired."""
    assert result.durations_ns is not None  # noqa: S101 -- it has not failed
    return result.durations_ns["delivered"].mean


def traffic(result: Play) -> float:
    """Return the bytes between hosts, without credits, which the other protocols do not model."""
    assert result.traffic is not None  # noqa: S101 -- there are hosts
    return sum(totals.between_bytes for name, totals in result.traffic.items() if name != "Credit")


MEASURES = {"time": _time, "traffic": traffic}


def ratio(value: float, reference: float) -> float:
    """Return `value` in percent of `reference`, or 0 if `reference` is 0."""
    return 100 * value / reference if reference else 0


class Comparison(NamedTuple):
    """Runs with each ordering: their position in a panel, the panel, the key, and the runs by ordering.

    Attributes:
        place: position in the panel, such as the program.
        panel: title of the panel.
        key: end of the key of the published number.
        runs: run with each ordering, by name.

    """

    place: str
    panel: str
    key: str
    runs: Mapping[str, PlayRun]


def play_comparisons(
    comparisons: Sequence[Comparison], conditions: Conditions, ignored_failure: str = ""
) -> dict[str, Play]:
    """Play all runs, and return the results by the `repr` of the run. Omit runs that fail with `ignored_failure`."""
    return successful_plays(
        play_runs([run for comparison in comparisons for run in comparison.runs.values()], conditions), ignored_failure
    )


def percent_of_cord(
    comparisons: Sequence[Comparison],
    results: Mapping[str, Play],
    measures: Mapping[str, Callable[[Play], float]],
    key: str,
    conditions: Conditions,
) -> list[Measurement]:
    """Return each measure of each other ordering in percent of `cord`, for all runs with results."""
    return [
        Measurement(
            f"{comparison.place} {name}, {comparison.panel}, {measure_name}",
            ratio(measure(results[repr(comparison.runs[name])]), measure(results[repr(comparison.runs["cord"])])),
            PERCENT,
            f"{key}.{measure_name}.{comparison.key}.{name}",
            cut=conditions.accesses is not None,
        )
        for measure_name, measure in measures.items()
        for comparison in comparisons
        for name in ("so", "mp", "wb")
        if repr(comparison.runs[name]) in results
    ]


STORE_SIZES = (8, 64, 256, 1024, 4096)
SYNC_SIZES = (64, 512, 4096, 32768, 262144, 2097152)
FANOUTS = (1, 3, 7)
LATENCIES = (25, 50, 75, 100, 125, 150, 175, 200)
LARGE = 2097152


def _points() -> list[tuple[str, str, Work]]:
    """Return the varied parameter, its value, and the work."""
    points = [(f"{size} B", "sync", Work(sync=size)) for size in SYNC_SIZES]
    for sync, label in ((4096, "4 KiB"), (LARGE, "2 MiB")):
        # Skip sizes with more stores than the protocols' bounds can count.
        stores = [size for size in STORE_SIZES if sync // size <= WIDE]
        points += [(f"{size} B", f"store, sync {label}", Work(store=size, sync=sync)) for size in stores]
        points += [(f"{fanout}", f"fan-out, sync {label}", Work(fanout=fanout, sync=sync)) for fanout in FANOUTS]
    return points


def _fig8(conditions: Conditions) -> list[Measurement]:
    """Return time and traffic of all orderings relative to the directories' (CORD), for varied stores."""
    comparisons = [
        Comparison(
            value,
            f"{varied}, {machine}",
            f"{machine}.{varied}.{value}",
            {name: Run(name, sizes, platform, work) for name, sizes in ORDERINGS.items()},
        )
        for machine, platform in machines(conditions).items()
        for value, varied, work in _points()
        if conditions.keys is None or any(f".{machine}.{varied}.{value}." in key for key in conditions.keys)
    ]
    return percent_of_cord(
        comparisons, play_comparisons(comparisons, conditions), MEASURES, "cord.sensitivity", conditions
    )


def _fig9(conditions: Conditions) -> list[Measurement]:
    """Return the time with source ordering relative to CORD, for varied latencies between hosts."""
    # Links that a latency crosses.
    parts = {"round trip": 4, "one way": 2}
    works = [("fan-out 1", Work()), ("fan-out 3", Work(fanout=3)), ("fan-out 7", Work(fanout=7))]
    works += [("8 B stores", Work(store=8)), ("sync 512 B", Work(sync=512))]
    comparisons = [
        (
            f"{latency}, {label}, {reading}",
            f"{reading}.{label}.{latency}",
            [
                Run(name, ORDERINGS[name], "cxl-8x8", work, {"link.latency": f"{1000 * latency // part}ps"})
                for name in ("so", "cord")
            ],
        )
        for reading, part in parts.items()
        for label, work in works
        for latency in LATENCIES
    ]
    results = successful_plays(play_runs([run for *_, runs in comparisons for run in runs], conditions))
    times = {key: _time(result) for key, result in results.items()}
    return [
        Measurement(
            name,
            ratio(times[repr(so)], times[repr(cord)]),
            PERCENT,
            f"cord.latency.{key}",
            cut=conditions.accesses is not None,
        )
        for name, key, (so, cord) in comparisons
    ]


EPOCH_BITS = (2, 3, 4, 6, 8)
COUNTER_BITS = (2, 4, 6, 8, 16, 32)


def _number_run(bits: int, platform: str) -> Run:
    """Return a run that orders stores by numbers of this many bits."""
    numbers = min(2**bits, WIDE)
    settings = {"home.count": 1, "hosts.number_bits": bits}
    return Run("seq", {"numbers": numbers, "most": numbers - 1}, platform, Work(), settings, homes=1)


def _epochs(epoch: int, counter: int, platform: str) -> Run:
    """Return a run of CORD with this many bits of an epoch number and of a store counter."""
    sizes = {
        "homes": 1,
        "epochs": 2**epoch,
        "entries": min(8, 2**epoch - 2),
        "most": min(2**counter - 1, WIDE),
        **TABLES,
    }
    settings = {"home.count": 1, "hosts.number_bits": epoch, "hosts.counter_bits": counter}
    return Run("cord", sizes, platform, Work(), settings, homes=1)


def _fig10(conditions: Conditions) -> list[Measurement]:
    """Return time and traffic of CORD with varied bits, relative to numbers of 40 and 8 bits."""
    varied = [(counter, "bits of a counter", 8, counter) for counter in COUNTER_BITS]
    varied += [(epoch, "bits of an epoch", epoch, 32) for epoch in EPOCH_BITS]
    comparisons: list[tuple[int, str, str, Run, Run, Run]] = []
    for machine, platform in MACHINES.items():
        seq8, seq40 = _number_run(8, platform), _number_run(40, platform)
        for bits, label, epoch, counter in varied:
            comparisons.append((bits, label, machine, _epochs(epoch, counter, platform), seq40, seq8))
    results = successful_plays(
        play_runs(
            [
                run
                for *_, cord_run, long_numbers_run, short_numbers_run in comparisons
                for run in (cord_run, long_numbers_run, short_numbers_run)
            ],
            conditions,
        )
    )
    ours = []
    for measure_name, measure in MEASURES.items():
        for bits, label, machine, run, seq40, seq8 in comparisons:
            reference = seq40 if measure_name == "time" else seq8
            value = ratio(measure(results[repr(run)]), measure(results[repr(reference)]))
            key = f"cord.numbers.{measure_name}.{machine}.{label}.{bits}"
            name = f"{bits}, {label}, {machine}, {measure_name}"
            ours.append(Measurement(name, value, PERCENT, key, cut=conditions.accesses is not None))
    return ours


def _limited(accesses: int) -> str:
    return f"no more than {accesses} store{'' if accesses == 1 else 's'} each"


NOTE = """\
A thread stores to lines of other hosts, one host after the other, and releases a flag of the first host after the given
number of bytes. Time ends when the last release has been acquired there; traffic is the bytes between hosts, headers
included. At the end, the thread that acquires the flag checks the bytes, and lets the threads of the other hosts check
theirs. Each store is to a separate line; a store of more bytes than a line is a store to a larger line. Credits of
posted stores do not count. Message sizes, the core's clock and its limit of outstanding stores are assumed (`cohkit
platform cxl-8x8`): 128 stores under `so`; no limit under `mp` and `cord`, whose stores need no acknowledgement.
"""
OMISSIONS = "waiting inside meshes, room in buffers, misses in the shared cache"

EXPERIMENTS = {
    "cord-fig8": Experiment(
        run=_fig8,
        note=NOTE,
        omissions=OMISSIONS,
        headline="Stores ordered at their source, point to point or written back, relative to those at directories.",
        axis="of cord (%)",
        rerun_accesses=2**11,
        limited=_limited,
    ),
    "cord-fig9": Experiment(
        run=_fig9,
        note=NOTE + "The published latency is read as that of the round trip, and as that of one way.\n",
        omissions=OMISSIONS,
        headline="Waiting for acknowledgements before a release costs more at a higher latency between hosts.",
        axis="time of so (% of cord)",
        along="latency between hosts (ns)",
        rerun_accesses=2**11,
        limited=_limited,
    ),
    "cord-fig10": Experiment(
        run=_fig10,
        note=NOTE + "Time is relative to numbers of 40 bits, traffic to numbers of 8 bits. Fan-out 1, one directory.\n",
        omissions=OMISSIONS,
        headline="Counters of four bits and fewer cost time; others cost none relative to sequence numbers of 40 bits.",
        axis="of numbers with each store (%)",
        along="bits",
        rerun_accesses=2**11,
        limited=_limited,
    ),
}
