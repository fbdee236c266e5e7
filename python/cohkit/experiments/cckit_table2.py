"""Latencies of single reads, each as the sum of the platform's quantities along its path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit.experiments.enzian import ACCESSES, CONFIGURATIONS, LINE_BYTES, REGION
from cohkit.experiments.experiment import Experiment, Point, PointExperiment, accesses_each
from cohkit.simulator import platform

if TYPE_CHECKING:
    from cohkit.shipped_types import Workload
    from cohkit.simulator import Request
    from cohkit.types import Simulation

KEY = "enzian.read_latency"
PATTERNS: dict[str, Workload] = {"sequential": "sequential-read", "random": "random-read"}
# One core that waits for each line before it reads the next.
SINGLE_CORE = {"cores.count": 1, "cores.max_outstanding": 1, "cores.prefetch_distance": 0}

NOTE = f"""\
A read crosses the link twice: first a header, then a header with the line. Its unit of the home handles it twice: the
request, then the line from memory. No value of a platform affects only one row.
The platforms are fitted to {KEY}, and to no other number here.
"""


def _points() -> list[Point]:
    """Return a simulation of a single core for each configuration and access pattern."""
    points = []
    for name, (key, machine) in CONFIGURATIONS.items():
        for pattern, workload in PATTERNS.items():
            request: Request = {
                "platform": machine,
                "workload": workload,
                "region": REGION,
                "accesses": ACCESSES,
                "set": SINGLE_CORE,
            }
            points.append(Point(f"{name}, {pattern}", f"{KEY}.{key}.{pattern}", request))
    return points


def _latency(result: Simulation) -> float:
    """Return the mean latency in nanoseconds."""
    return (result.statistics or {})["latency_mean_ns"]


def _parts(result: Simulation) -> dict[str, float]:
    """Add up the path of an average read, in ns, from the platform's quantities; the remainder is waiting."""
    statistics = result.statistics or {}
    values = {quantity.name: quantity.value for quantity in platform(result.platform).quantities}
    misses = 1 - statistics["hits"] / statistics["accesses"]
    row_misses = statistics["memory_row_misses"] / statistics["accesses"]
    clock_s = values.get("dram.clock_period", 0) * 1e-12

    def transfer(name: str, size: int) -> float:
        return size / values[name] * 1e9

    times = {
        "cache.request_latency": 1.0,
        "cache.hit_latency": 1 - misses,
        "cache.fill_latency": misses,
        "link.latency": 2 * misses,
        "home.latency": 2 * misses,
        "home.memory_round_trip": misses,
        "home.llc_latency": misses,
        "dram.controller_latency": misses,
        "dram.t_rcd": row_misses,
        "dram.t_cl": misses,
    }
    parts = {name: values[name] / 1000 * number for name, number in times.items() if name in values}
    parts["link.bandwidth"] = misses * transfer("link.bandwidth", 2 * values["link.header_bytes"] + LINE_BYTES)
    if clock_s:
        bursts = LINE_BYTES / values["dram.burst_bytes"]
        parts["dram.burst_clocks"] = misses * bursts * values["dram.burst_clocks"] * clock_s * 1e9
    elif "dram.bandwidth" in values:
        parts["dram.bandwidth"] = misses * transfer("dram.bandwidth", LINE_BYTES)
    else:
        # The transfer of a line overlaps with waiting for its first bytes.
        name, longer = max(
            ("bram.bandwidth", transfer("bram.bandwidth", LINE_BYTES)),
            ("bram.latency", values["bram.latency"] / 1000),
            key=lambda part: part[1],
        )
        parts[name] = misses * longer
    order = [name for name in values if name in parts]
    return {name: parts[name] for name in order} | {"waiting": _latency(result) - sum(parts.values())}


_SERIES = PointExperiment(_points(), "ns", _latency, _parts)
EXPERIMENT = Experiment(
    run=_SERIES.run,
    note=NOTE,
    omissions="the operating system and address translation",
    headline="Time for a CPU core to read one line of memory on the other side of the link.",
    axis="read latency (ns)",
    rerun_accesses=2**15,
    limited=accesses_each,
)
