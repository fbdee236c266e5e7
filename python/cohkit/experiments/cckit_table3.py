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
REST = "enzian.invalidation"
LINES = 16384
MANY = 1024

NOTE = f"""\
One at a time: the time from asking to completion at the device, of lines that the CPU holds clean; the way of local
operations was fitted to it. As many as accepted: up to {MANY} at a time; how fast the second and third quarter of them
are done. (Blind, their number was divided by their mean time, in which the first find the device idle.)
"""
OMISSIONS = "other activity of the CPU's cores: they wait, so the link carries nothing else"

# State of the CPU's lines, and numbers of the application.
_HELD = {
    "clean": {"dirty": 0, "held": 1},
    "dirty": {"dirty": 1, "held": 1},
    "not held": {"held": 0},
}


def _mean(result: Play) -> float:
    return times(result, "clean-invalidate").mean


def _rate(result: Play) -> float:
    """Return the rate in millions of lines per second with the maximum number of outstanding operations.

    The first and last operations are excluded, because fewer are outstanding. If too few remain, the rate follows from
    the latency and the number of outstanding operations.
    """
    middle = ((result.courses or {}).get("invalidated") or [])[1:3]
    taken_ns = sum(quarter.ns for quarter in middle)
    if not taken_ns:
        return result.numbers["outstanding"] * 1e3 / _mean(result)
    return sum(quarter.count for quarter in middle) * 1e3 / taken_ns


def _limited(accesses: int) -> str:
    return f"no more than {accesses} line{'' if accesses == 1 else 's'} each"


def _stages(conditions: Conditions) -> list[Stage]:
    lines = min(LINES, conditions.accesses or LINES)
    stages = []
    for name, (key, platform) in MACHINES.items():
        for held, numbers in _HELD.items():
            for most, how in ((1, "one at a time"), (MANY, "as many as accepted")):
                alone = most == 1 and held == "clean"
                stages.append(
                    Stage(
                        f"{held}, {name}, {how}",
                        f"{KEY}.latency.{key}" if alone else f"{REST}.{key}.{held.replace(' ', '_')}.{most}",
                        platform,
                        "invalidation",
                        {**numbers, "lines": lines, "outstanding": min(most, lines)},
                        _mean if most == 1 else _rate,
                        unit="ns" if most == 1 else "M/s",
                        cut=lines < LINES,
                        counted="" if most == 1 else "invalidated",
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
    limited=_limited,
)
