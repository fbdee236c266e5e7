"""Clean-invalidates by the device: latency, and throughput in lines per second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit.experiments.experiment import Experiment
from cohkit.experiments.plays import MACHINES, Stage, run, times

if TYPE_CHECKING:
    from cohkit.experiments.experiment import Conditions
    from cohkit.published import Measurement
    from cohkit.types import Play

KEY = "enzian.clean_invalidate"
INVALIDATION_KEY = "enzian.invalidation"
LINES = 16384
BURST = 1024
"""Maximum number of outstanding operations."""

NOTE = f"""\
One at a time: the time from the request to its completion at the device, for lines that the CPU holds clean. The path
of local operations was fitted to it. As many as accepted: up to {BURST} operations at a time; the number is the rate of
the second and the third quarter of them. (The blind prediction was the number of operations divided by their mean
latency, which includes the first operations, at an idle device.)
"""
OMISSIONS = "other activity of the CPU's cores: they wait, so the link carries nothing else"

# State of the CPU's lines, and numbers of the application.
_LINE_STATES = {
    "clean": {"dirty": 0, "held": 1},
    "dirty": {"dirty": 1, "held": 1},
    "not held": {"held": 0},
}


def _mean(result: Play) -> float:
    """Return the mean latency of a clean-invalidate in nanoseconds."""
    return times(result, "clean-invalidate").mean


def _rate(result: Play) -> float:
    """Return the rate in millions of lines per second with the maximum number of outstanding operations.

    The first and last operations are excluded, because fewer are outstanding. If too few remain, the rate follows from
    the latency and the number of outstanding operations.
    """
    middle = ((result.quarters_by_counter or {}).get("invalidated") or [])[1:3]
    duration_ns = sum(quarter.ns for quarter in middle)
    if not duration_ns:
        return result.parameters["outstanding"] * 1e3 / _mean(result)
    return sum(quarter.count for quarter in middle) * 1e3 / duration_ns


def _limited(accesses: int) -> str:
    return f"no more than {accesses} line{'' if accesses == 1 else 's'} each"


def _stages(conditions: Conditions) -> list[Stage]:
    """Return a play for each home and state of the lines: the latency of single operations, and the rate of many."""
    lines = min(LINES, conditions.accesses or LINES)
    stages = []
    for name, (key, platform) in MACHINES.items():
        for state, numbers in _LINE_STATES.items():
            for outstanding, label in ((1, "one at a time"), (BURST, "as many as accepted")):
                is_published = outstanding == 1 and state == "clean"
                stages.append(
                    Stage(
                        f"{state}, {name}, {label}",
                        f"{KEY}.latency.{key}"
                        if is_published
                        else f"{INVALIDATION_KEY}.{key}.{state.replace(' ', '_')}.{outstanding}",
                        platform,
                        "invalidation",
                        {**numbers, "lines": lines, "outstanding": min(outstanding, lines)},
                        _mean if outstanding == 1 else _rate,
                        unit="ns" if outstanding == 1 else "M/s",
                        cut=lines < LINES,
                        counted="" if outstanding == 1 else "invalidated",
                        per_s=1e6,
                    )
                )
    return stages


def _run(conditions: Conditions) -> list[Measurement]:
    return run(_stages(conditions), "", conditions)


EXPERIMENT = Experiment(
    run=_run,
    note=NOTE,
    omissions=OMISSIONS,
    headline="A device takes lines back that the CPU may have cached: latency of one, and rate of many.",
    axis="time of one (ns); million lines/s",
    rerun_accesses=2**12,
    limited=_limited,
)
