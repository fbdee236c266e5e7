"""Sequential reads by one to eight threads, with and without a prefetcher behind the home."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit.experiments.enzian import LINE_BYTES
from cohkit.experiments.experiment import Experiment
from cohkit.experiments.plays import BEST, Stage, largest, limited_time, rate, run
from cohkit.experiments.study import value_of

if TYPE_CHECKING:
    from cohkit.experiments.experiment import Conditions
    from cohkit.published import Measurement
    from cohkit.types import Play

KEY = "enzian.prefetcher"
PLATFORM = "enzian-dc-ddr"
THREADS = range(1, 9)
CLIENTS = 4
"""Number of clients up to which the published throughputs are sustained."""
BLOCKS = {"with": 8, "without": 0}

NOTE = """\
Each thread reads its own part of 64 MiB in address order, one line at a time. The prefetcher has eight blocks of 8 KiB.
It reads the requested line first, then the block in bursts of 64 beats, and claims the next block when the second half
of a block is read. Each thread prefetches as many lines ahead as the platform's cores do. The rows `at best` are those
of up to four threads, since the published throughputs are of up to four clients. The rows `at best of all threads` have
no published value. Eight threads occupy all blocks, so that
none is free for a next block, and threads evict each other's blocks; `--param blocks=16` of `cohkit play` avoids that.
A run takes 5 ms after 1 ms of warm-up.
"""
OMISSIONS = "the operating system and address translation"


def _throughput(result: Play) -> float:
    """Return the throughput of reads in GiB/s."""
    return rate(result, "lines read") * LINE_BYTES / 2**30


def _stages(conditions: Conditions) -> list[Stage]:
    """Return a play for each number of threads, with and without prefetching."""
    hints = int(value_of(PLATFORM, "cores.prefetch_distance", conditions.settings))
    return [
        Stage(
            f"{threads}, {name} prefetcher",
            f"{KEY}.{name}.{threads}",
            PLATFORM,
            "prefetcher",
            {"blocks": blocks, "threads": threads, "hints": hints},
            _throughput,
            time_us=5_000,
            warm_up_us=1_000,
            counted="lines read",
            per_s=2**30 / LINE_BYTES,
        )
        for name, blocks in BLOCKS.items()
        for threads in THREADS
    ]


def _run(conditions: Conditions) -> list[Measurement]:
    """Run the plays, and add the largest numbers: of at most as many threads as clients, and of all threads."""
    ours = run(_stages(conditions), "GiB/s", conditions)
    compared = [row for row in ours if int(row.key.rpartition(".")[2]) <= CLIENTS]
    best = [row for name in BLOCKS for row in largest(compared, f"{KEY}.{name}.", f"at best, {name} prefetcher")]
    of_all = [
        row._replace(key=f"{KEY}.{name}.of_all.{BEST}")
        for name in BLOCKS
        for row in largest(ours, f"{KEY}.{name}.", f"at best of all threads, {name} prefetcher")
    ]
    return [*ours, *best, *of_all]


EXPERIMENT = Experiment(
    run=_run,
    note=NOTE,
    omissions=OMISSIONS,
    headline="CPU threads read FPGA memory in address order, with a prefetcher behind its home and without.",
    axis="throughput (GiB/s)",
    along="threads",
    rerun_accesses=2**10,
    limited=limited_time,
)
