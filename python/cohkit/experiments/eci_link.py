"""Uncached coherent transfers of an FPGA over ECI by their size, compared with two sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit.experiments.enzian import LINE_BYTES
from cohkit.experiments.experiment import Experiment, Point, PointExperiment, accesses_each
from cohkit.experiments.steady import is_even
from cohkit.links import link
from cohkit.published import Measurement

if TYPE_CHECKING:
    from cohkit.experiments.experiment import Conditions, Span
    from cohkit.shipped_types import Workload
    from cohkit.simulator import Request
    from cohkit.types import Simulation

KEY = "eci_link"
SOCKETS = "thunderx1_2s_eci_note"
SIZES = tuple(128 << doubled for doubled in range(8))
"""Bytes per transfer, from a line to 16 KiB."""
THROUGHPUT_LINES = 20_000
"""Number of lines transferred for a throughput."""

DIRECTIONS: dict[str, Workload] = {"reads": "sequential-read-once", "writes": "sequential-write-line"}
DMA_NS = 150
"""One-way delay of PCIe in nanoseconds, with which the latency of host memory was fitted."""
LINKS = {"one link": 1, "two links": 2}

NOTE = f"""\
An engine on the FPGA, clocked at 300 MHz, reads or writes lines of the CPU's memory without caching them: eci-near on
enzian-cpu-home, the CPU's cores idle and its cache empty. A transfer is so many bytes, each line a request of its own.
Latency: of one transfer alone, from its first request to its last answer. Throughput: with as many lines in flight as
a transfer has. The two sockets: one reads what lies in the last-level cache of the other (thunderx1-2s-eci); of it a
latency is fitted, and what gets through follows from lanes, framing, credits and what the cores have in flight.
Links are framed: blocks, credits and the receivers' clocks are there, and no bandwidth is set.
DMA: a card with 16 lanes of PCIe Gen3, {DMA_NS} ns one way, moves as many bytes by a descriptor each; latency from the
doorbell to the word that says it is done, throughput with 32 transfers asked for at a time (`cohkit link pcie3 --dma`).
`--published FILE.toml` joins published numbers by keys such as {KEY}.latency.reads.one_link.128.
"""
OMISSIONS = (
    "operating system, driver and interrupts of a DMA transfer; the CPU's directory in "
    "detail, which is not published; and address translation"
)


def _request(direction: str, links: int, lines: int, accesses: int) -> Request:
    """Return a request in which the device transfers `lines` lines at a time over `links` links."""
    return {
        "platform": "enzian-cpu-home",
        "protocol": "eci-near",
        "workload": DIRECTIONS[direction],
        "region": "4MiB",
        "accesses": accesses,
        "by": {"llc": "idle"},
        "set": {"agents.device.link.count": links, "agents.device.cores.max_outstanding": lines},
    }


def _points(measure: str) -> list[Point]:
    """Return the transfers of every size and direction; `measure` is `latency` or `throughput`."""
    return [
        Point(
            f"{size}, {direction}, {label}, {measure}",
            f"{KEY}.{measure}.{direction}.{label.replace(' ', '_')}.{size}",
            _request(
                direction,
                links,
                size // LINE_BYTES,
                THROUGHPUT_LINES if measure == "throughput" else size // LINE_BYTES,
            ),
        )
        for direction in DIRECTIONS
        for label, links in LINKS.items()
        for size in SIZES
    ]


def _sockets(measure: str, label: str, options: Request) -> Point:
    """Return a simulation of transfers between the caches of two sockets."""
    request: Request = {"platform": "thunderx1-2s-eci", "workload": "sequential-read", "region": "64MiB", **options}
    return Point(f"two sockets, cache to cache, {label}", f"{SOCKETS}.{measure}", request)


def _time(result: Simulation) -> float:
    """Return the simulated time in nanoseconds."""
    return (result.statistics or {})["time_ns"]


def _mean(result: Simulation) -> float:
    """Return the mean latency in nanoseconds."""
    return (result.statistics or {})["latency_mean_ns"]


def _throughput(result: Simulation) -> float:
    """Return the throughput in GiB/s."""
    return (result.statistics or {})["bandwidth_bytes_per_s"] / 2**30


def _steady(result: Simulation, cut: bool) -> bool:  # noqa: ARG001, FBT001 -- as `PointExperiment` calls it
    """Return true if the access rate is constant from the second quarter of the run on."""
    statistics, quarters = result.statistics or {}, result.quarters
    return is_even(statistics["accesses"] / (statistics["time_ns"] * 1e-9), quarters)


_SINGLE_CORE_REQUEST: Request = {
    "platform": "",
    "workload": "sequential-read",
    "accesses": 1000,
    "cores": 1,
    "prefetch": 0,
}
_ALL_CORES_REQUEST: Request = {"platform": "", "workload": "sequential-read", "accesses": 200_000}


def _workload_options(request: Request) -> Request:
    """Return the fields of a request other than machine and workload."""
    return {key: value for key, value in request.items() if key not in ("platform", "workload")}  # type: ignore[return-value]


_SERIES = [
    PointExperiment(_points("latency"), "ns", _time),
    PointExperiment([_sockets("latency", "latency", _workload_options(_SINGLE_CORE_REQUEST))], "ns", _mean),
    PointExperiment(_points("throughput"), "GiB/s", _throughput, steady=_steady),
    PointExperiment(
        [_sockets("throughput.cache_to_cache", "throughput", _workload_options(_ALL_CORES_REQUEST))],
        "GiB/s",
        _throughput,
        steady=_steady,
    ),
]


def _dma() -> list[Measurement]:
    """Return the latency and throughput of DMA transfers."""
    rates = {size: link("pcie3", delay_ns=DMA_NS, dma=size)["dma"] for size in SIZES}
    ours = []
    for measure, unit in (("latency", "ns"), ("throughput", "GiB/s")):
        for direction in DIRECTIONS:
            for size, directions in rates.items():
                if directions is None:
                    continue
                transfers = directions["to_device"] if direction == "reads" else directions["to_host"]
                value = transfers["latency_ns"] if measure == "latency" else transfers["bytes_per_second"] / 2**30
                steady = None if measure == "latency" else True
                key = f"{KEY}.{measure}.{direction}.dma.{size}"
                ours.append(Measurement(f"{size}, {direction}, DMA, {measure}", value, unit, key, steady=steady))
    return ours


def _run(conditions: Conditions) -> list[Measurement]:
    """Run all series, and sort their numbers by unit."""
    measurements = [measurement for experiment in _SERIES for measurement in experiment.run(conditions)]
    return sorted([*measurements, *_dma()], key=lambda measurement: measurement.unit, reverse=True)


def _spans(conditions: Conditions) -> list[Span]:
    return [span for experiment in _SERIES for span in experiment.spans(conditions)]


EXPERIMENT = Experiment(
    run=_run,
    note=NOTE,
    omissions=OMISSIONS,
    headline="An FPGA reads and writes the CPU's memory line by line over ECI, or a card by DMA over PCIe.",
    axis="latency of a transfer (ns); throughput (GiB/s)",
    along="bytes of a transfer",
    logarithmic="xy",
    spans=_spans,
    rerun_accesses=2**12,
    limited=accesses_each,
)
