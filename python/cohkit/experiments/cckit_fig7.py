"""Increments of a shared table by a CPU thread, while the device increments some of its rows as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit.experiments.experiment import Experiment
from cohkit.experiments.plays import Stage, limited_time, rate, run

if TYPE_CHECKING:
    from cohkit.experiments.experiment import Conditions
    from cohkit.published import Measurement
    from cohkit.types import Play

KEY = "enzian.shared_table"
ROWS = 65536
CONTENTION = range(0, 101, 10)
MACHINES = {
    "FPGA": ("fpga", "enzian-dc-bram"),
    "second CPU": ("cpu", "thunderx1-2s"),
}

NOTE = """\
One thread increments all rows of a warm table of 8 MiB, one after the other. The other side increments the given share
of the rows, one at a time and without a pause: it takes a row under a lock, increments it and releases it. A number is
the mean of three runs of 20 ms, after 40 ms of warm-up. Their seeds change only the initial values of the rows, so the
runs take the same times. Each run checks at its end that no increment is lost. An increment changes one word of a line,
and takes the thread 1.5 ns beside its access (assumed, when the published rates were known).
The second CPU is at the home of the table, and takes rows as the device does.
"""
OMISSIONS = "the operating system, address translation, and the cache of the second CPU"


def _rate(result: Play) -> float:
    """Return increments in millions per second."""
    return rate(result, "increments") / 1e6


def _stages() -> list[Stage]:
    """Return a play for each home and percentage of contended rows."""
    return [
        Stage(
            f"{percent} %, {name}",
            f"{KEY}.{key}.{percent}",
            platform,
            "shared-table",
            {"rows": ROWS, "contended": 10 * percent},
            _rate,
            time_us=20_000,
            warm_up_us=40_000,
            seeds=3,
            counted="increments",
            per_s=1e6,
            words=True,
        )
        for name, (key, platform) in MACHINES.items()
        for percent in CONTENTION
    ]


def _run(conditions: Conditions) -> list[Measurement]:
    return run(_stages(), "M/s", conditions)


EXPERIMENT = Experiment(
    run=_run,
    note=NOTE,
    omissions=OMISSIONS,
    headline="The increment rate of a CPU thread falls with the share of rows that the other side increments too.",
    axis="million increments/s",
    along="contended rows (%)",
    rerun_accesses=2**13,
    limited=limited_time,
)
