"""Uncached coherent transfers of an FPGA over ECI by their size, compared with two sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit.experiments.enzian import LINE_BYTES
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

KEY = "eci_link"
SOCKETS = "thunderx1_2s_eci_note"
SIZES = tuple(128 << doubled for doubled in range(8))
"""Bytes per transfer, from a line to 16 KiB."""
THROUGHPUT_LINES = 20_000
"""Number of lines transferred for a throughput."""

DIRECTIONS: dict[str, Workload] = {"reads": "sequential-read-once", "writes": "sequential-write-line"}
SUSTAINED_LINES = SIZES[-1] // LINE_BYTES
"""Lines in flight for a throughput: those of the largest transfer, as many as the link's request credits allow."""
LINKS = {"one link": 1, "two links": 2}

NOTE = f"""\
An engine on the FPGA, clocked at 300 MHz, reads or writes lines of the CPU's memory without caching them (eci-near on
enzian-cpu-home). The CPU's cores are idle, and its cache is empty. Each line of a transfer is a separate request.
Latency: a single transfer, from its first request to its last response. One at a time: each transfer starts when the
previous one has ended. Throughput: {SUSTAINED_LINES} lines in flight, for every size of transfer.
The two sockets: one reads lines that the last-level cache of the other holds (thunderx1-2s-eci). A latency is fitted;
the throughput follows from lanes, framing, credits, and the outstanding accesses of the cores.
Links are framed: blocks, credits and the receivers' clocks are modelled, and no bandwidth is set.
{TRANSFERS_NOTE}`--published FILE.toml` joins published numbers by keys such as {KEY}.latency.reads.one_link.128.
"""
OMISSIONS = (
    "operating system and driver of a DMA transfer; the CPU's directory in "
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
            _request(direction, links, SUSTAINED_LINES, THROUGHPUT_LINES)
            if measure == "throughput"
            else _request(direction, links, size // LINE_BYTES, size // LINE_BYTES),
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


def _run(conditions: Conditions) -> list[Measurement]:
    """Run all series, and sort their numbers by unit."""
    conditions = with_latencies(KEY, conditions)
    measurements = [measurement for experiment in _SERIES for measurement in experiment.run(conditions)]
    measurements += dma_rows(KEY, DIRECTIONS, SIZES, conditions, assumed_engine="descriptors")
    latencies = [measurement for measurement in measurements if measurement.key.startswith(f"{KEY}.latency.")]
    measurements += single_rows(KEY, latencies)
    return sorted(measurements, key=lambda measurement: measurement.unit, reverse=True)


EXPERIMENT = Experiment(
    run=_run,
    note=NOTE,
    omissions=OMISSIONS,
    headline="An FPGA reads and writes the CPU's memory line by line over ECI, or a card by DMA over PCIe.",
    axis="latency of a transfer (ns); throughput (GiB/s)",
    along="bytes of a transfer",
    logarithmic="xy",
    rerun_accesses=2**11,
    limited=accesses_each,
)
