"""Throughput of reads and writes, with the maximum number of outstanding accesses per core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit.experiments.enzian import ACCESSES, CONFIGURATIONS, REGION
from cohkit.experiments.experiment import Experiment, Point, PointExperiment, accesses_each
from cohkit.experiments.steady import is_even, is_filling

if TYPE_CHECKING:
    from cohkit.shipped_types import Workload
    from cohkit.simulator import Request
    from cohkit.types import Simulation

KEY = "enzian.throughput"
WORKLOADS: dict[str, Workload] = {
    "sequential read": "sequential-read",
    "random read": "random-read",
    "sequential write": "sequential-write",
    "random write": "random-write",
}

NOTE = f"""\
No value was fitted to throughputs. Platforms set the number of cores and the prefetch distance of reads.
`--published FILE.toml` joins published numbers by keys such as {KEY}.dc_ddr.sequential_read.
"""


def _points() -> list[Point]:
    """Return a simulation for each configuration and workload."""
    points = []
    for name, (key, machine) in CONFIGURATIONS.items():
        for label, workload in WORKLOADS.items():
            request: Request = {
                "platform": machine,
                "workload": workload,
                "region": REGION,
                "accesses": ACCESSES,
            }
            points.append(Point(f"{name}, {label}", f"{KEY}.{key}.{label.replace(' ', '_')}", request))
    return points


def _throughput(result: Simulation) -> float:
    """Return the throughput in GiB/s."""
    return (result.statistics or {})["bandwidth_bytes_per_s"] / 2**30


def _steady(result: Simulation, cut: bool) -> bool:  # noqa: FBT001 -- as `PointExperiment` calls it
    """Return true if the rate is constant from the second quarter on, and no reduced run ends while caches fill."""
    statistics, quarters = result.statistics or {}, result.quarters
    rate = statistics["accesses"] / (statistics["time_ns"] * 1e-9)
    return is_even(rate, quarters) and not (cut and is_filling(quarters))


_SERIES = PointExperiment(_points(), "GiB/s", _throughput, steady=_steady)
EXPERIMENT = Experiment(
    run=_SERIES.run,
    note=NOTE,
    omissions="the operating system and address translation",
    headline="All 48 cores of a CPU read or write memory on the other side of the link at these rates.",
    axis="throughput (GiB/s)",
    rerun_accesses=2**18,
    limited=accesses_each,
)
