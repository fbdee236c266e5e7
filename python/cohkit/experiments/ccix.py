"""Properties of CCIX for a card that caches host lines: transfers, translation, locality, and sharing with the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit.experiments.experiment import (
    Experiment,
    Point,
    PointExperiment,
    accesses_each,
)
from cohkit.experiments.steady import is_even
from cohkit.experiments.transfers import NOTE as TRANSFERS_NOTE
from cohkit.experiments.transfers import dma_rows, single_rows, with_latencies

if TYPE_CHECKING:
    from cohkit.experiments.experiment import Conditions
    from cohkit.published import Measurement
    from cohkit.shipped_types import Workload
    from cohkit.simulator import Request
    from cohkit.types import Simulation

LINE_BYTES = 64
CARDS = ("u280", "vck5000")
SIZES = (64, 256, 1024, 4096, 16384, 32768)
"""Bytes per transfer."""
THROUGHPUT_LINES = 5_000
"""Number of lines transferred for a throughput, and of random lines for a mean latency."""

WORKLOADS: dict[str, Workload] = {"reads": "sequential-read-once", "writes": "sequential-write-line"}

_HOST = """\
The home is a Neoverse N1 system. The card is a caching agent of its lines by the protocol ccix, with CCIX's packets
over 8 lanes of 16 GT/s (n1sdp-u280, n1sdp-vck5000). Two values of each card are fitted, the latencies of a load and of
a store that hit in its system cache; the others are assumed.
"""
_OMISSIONS = "the operating system and its driver, and details of the mesh's home nodes"


def _request(card: str, workload: Workload, accesses: int, **settings: int | str) -> Request:
    """Return a request with an idle host and a card that runs a workload; `__` in a setting's name is a dot."""
    return {
        "platform": f"n1sdp-{card}",
        "protocol": "ccix",
        "workload": workload,
        "accesses": accesses,
        "region": "4MiB",
        "by": {"host": "idle"},
        "set": {f"agents.device.{name.replace('__', '.')}": value for name, value in settings.items()},
    }


def _time(result: Simulation) -> float:
    """Return the simulated time in nanoseconds."""
    return (result.statistics or {})["time_ns"]


def _mean(result: Simulation) -> float:
    """Return the mean latency in nanoseconds."""
    return (result.statistics or {})["latency_mean_ns"]


def _median(result: Simulation) -> float:
    """Return the median latency of the loads, or of the stores if there are none, in nanoseconds."""
    statistics = result.statistics or {}
    kind = "load" if statistics["loads"] else "store"
    return statistics[f"{kind}_latency_p50_ns"]


def _throughput(result: Simulation) -> float:
    """Return the throughput in GiB/s."""
    return (result.statistics or {})["bandwidth_bytes_per_s"] / 2**30


def _steady(result: Simulation, cut: bool) -> bool:  # noqa: ARG001, FBT001 -- as `PointExperiment` calls it
    """Return true if the access rate is constant from the second quarter of the run on."""
    statistics, quarters = result.statistics or {}, result.quarters
    return is_even(statistics["accesses"] / (statistics["time_ns"] * 1e-9), quarters)


def _transfers(measure: str) -> list[Point]:
    """Return the transfers of every size and direction with each card; `measure` is `latency` or `throughput`.

    All lines of a transfer alone are in flight. For a throughput, as many are in flight as the card's platform states.
    """
    return [
        Point(
            f"{size}, {direction}, {card}, {measure}",
            f"ccix_exp1.{measure}.{direction}.{card}.{size}",
            _request(
                card,
                workload,
                THROUGHPUT_LINES if measure == "throughput" else size // LINE_BYTES,
                **({} if measure == "throughput" else {"cores__max_outstanding": size // LINE_BYTES}),
            ),
        )
        for direction, workload in WORKLOADS.items()
        for card in CARDS
        for size in SIZES
    ]


TRANSLATED: dict[str, dict[str, int | str]] = {
    "physical": {},
    "ATC hit, 2 MiB pages": {"translation__enabled": 1, "translation__page_size": "2MiB"},
    "ATC miss, host hit, 4 KiB pages": {
        "translation__enabled": 1,
        "translation__atc_entries": 1,
        "translation__iommu_tlb_entries": 4096,
    },
    "ATC miss, walk, 4 KiB pages": {
        "translation__enabled": 1,
        "translation__atc_entries": 1,
        "translation__iommu_tlb_entries": 1,
    },
}
"""Settings of the device for the translation of the addresses of random lines."""


def _key(label: str) -> str:
    """Return a label as part of a key of the published numbers."""
    return label.lower().replace(",", "").replace(" ", "_")


def _random_lines() -> list[Point]:
    """Return random reads of single lines, with and without translation of addresses."""
    return [
        Point(
            f"one line, {label}, {card}",
            f"ccix_exp2.latency.{_key(label)}.{card}",
            _request(card, "random-read-once", THROUGHPUT_LINES, cores__max_outstanding=1, **settings),
        )
        for label, settings in TRANSLATED.items()
        for card in CARDS
    ]


def _translated_transfers() -> list[Point]:
    """Return transfers with physical addresses, and with pages of either size."""
    pages: dict[str, dict[str, int | str]] = {
        "physical": {},
        "4 KiB pages": {"translation__enabled": 1},
        "2 MiB pages": {"translation__enabled": 1, "translation__page_size": "2MiB"},
    }
    return [
        Point(
            f"transfer of {size}, {label}, {card}",
            f"ccix_exp2.transfer.{_key(label)}.{card}.{size}",
            _request(
                card, WORKLOADS["reads"], size // LINE_BYTES, cores__max_outstanding=size // LINE_BYTES, **settings
            ),
        )
        for label, settings in pages.items()
        for card in CARDS
        for size in SIZES
    ]


LOCAL_WORKLOADS: dict[str, Workload] = {"write": "random-write", "read": "random-read"}


def _locality(where: str) -> list[Point]:
    """Return accesses to memory that fits the card's cache (`hit`), or that does not (`miss`)."""
    points = []
    for card in CARDS:
        for direction, workload in LOCAL_WORKLOADS.items():
            request = _request(card, workload, THROUGHPUT_LINES, cores__max_outstanding=1)
            request["region"] = "16KiB" if where == "hit" else "64MiB"
            key = f"ccix.local_hit.{card}.{direction}" if where == "hit" else f"ccix_exp3.miss.{card}.{direction}"
            points.append(Point(f"{where}, {direction}, {card}", key, request))
    return points


SHARED_REGIONS = ("1MiB", "64KiB", "4KiB", "256B", "64B")
"""Sizes of the region that host and device share, from almost no conflicts to a single line."""
SHARERS: dict[str, dict[str, Workload | str]] = {
    "both": {},
    "host alone": {"device": "idle"},
    "device alone": {"host": "idle"},
}


def _sharing() -> list[Point]:
    """Return accesses by host and device to shared regions of several sizes."""
    points = []
    for card in CARDS:
        for sharer, workloads in SHARERS.items():
            for region in SHARED_REGIONS:
                request = _request(card, "random-mixed", 1024, cores__max_outstanding=1)
                request["by"] = {"host": "random-mixed", "device": "random-mixed", **workloads}
                request["region"] = region
                request["cores"] = 1
                points.append(
                    Point(f"{region}, {sharer}, {card}", f"ccix_exp4.{_key(sharer)}.{card}.{region}", request)
                )
    return points


def _figure(*experiments: PointExperiment) -> dict[str, object]:
    """Return the fields of an experiment that runs these measurements."""

    def run(conditions: Conditions) -> list[Measurement]:
        return [measurement for experiment in experiments for measurement in experiment.run(conditions)]

    return {"run": run, "rerun_accesses": 2**10, "limited": accesses_each}


_LATENCY = PointExperiment(_transfers("latency"), "ns", _time)
_THROUGHPUT = PointExperiment(_transfers("throughput"), "GiB/s", _throughput, steady=_steady)


def _exp1(conditions: Conditions) -> list[Measurement]:
    """Run the transfers, and sort their numbers by unit."""
    conditions = with_latencies("ccix_exp1", conditions)
    transfers = dma_rows("ccix_exp1", WORKLOADS, SIZES, conditions)
    measurements = [*_LATENCY.run(conditions), *_THROUGHPUT.run(conditions), *transfers]
    latencies = [measurement for measurement in measurements if measurement.unit == "ns"]
    measurements += single_rows("ccix_exp1", latencies)
    return sorted(measurements, key=lambda measurement: measurement.unit, reverse=True)


EXPERIMENTS: dict[str, Experiment] = {
    "ccix-exp1": Experiment(
        **{**_figure(_LATENCY, _THROUGHPUT), "run": _exp1},  # type: ignore[arg-type]
        note=_HOST
        + f"""\
Latency: a single transfer with physical addresses, in which each line is a separate request. One at a time: each
transfer starts when the previous one has ended. Throughput: as many lines in flight as the platform's quantity
`agents.device.cores.max_outstanding`, for every size of transfer.
{TRANSFERS_NOTE}""",
        omissions=_OMISSIONS,
        headline="A card reads and writes its host's memory line by line over CCIX, or by DMA over PCIe.",
        axis="latency of a transfer (ns); throughput (GiB/s)",
        along="bytes of a transfer",
        logarithmic="xy",
    ),
    "ccix-exp2": Experiment(
        **_figure(PointExperiment(_random_lines(), "ns", _mean), PointExperiment(_translated_transfers(), "ns", _time)),  # type: ignore[arg-type]
        note=_HOST
        + """\
One line: the mean latency of uncached reads of random lines in 4 MiB, one at a time. A transfer: from its first request
to its last response, with its pages in no translation cache.
""",
        omissions=_OMISSIONS + "; the bytes of requests for translations on the link",
        headline="A card whose addresses are virtual waits for its translation.",
        axis="latency (ns)",
    ),
    "ccix-exp3": Experiment(
        **_figure(
            PointExperiment(_locality("hit"), "ns", _median),
            PointExperiment(_locality("miss"), "ns", _mean),
        ),  # type: ignore[arg-type]
        note=_HOST
        + """\
One line at a time, with physical addresses. A hit is the median latency of random lines that the system cache holds, a
miss the mean latency of random lines of 64 MiB. The latencies of hits of loads and
of stores are two fitted values.
""",
        omissions=_OMISSIONS,
        headline="A card finds a line in its system cache, or gets it from its host.",
        axis="latency (ns)",
    ),
    "ccix-exp4": Experiment(
        **_figure(PointExperiment(_sharing(), "ns", _mean)),  # type: ignore[arg-type]
        note=_HOST
        + """\
A core of the host and an engine of the card make 1,024 random accesses each, half of them stores, one at a time. The
number is the mean latency of all accesses. The smaller the region of the lines, the more often one side takes a line
from the other.
""",
        omissions=_OMISSIONS,
        headline="Lines that host and card both modify bounce between them over CCIX.",
        axis="latency (ns)",
    ),
}
"""Experiments by name, in order."""
