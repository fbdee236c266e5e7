"""How long the device takes to take lines from the CPU by clean-invalidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit.experiments.experiment import Experiment
from cohkit.experiments.plays import MACHINES, Stage, run, times

if TYPE_CHECKING:
    from cohkit.experiments.experiment import Conditions
    from cohkit.published import Ours
    from cohkit.types import Play

KEY = "enzian.clean_invalidate"
REST = "enzian.invalidation"
LINES = 16384
MANY = 1024

NOTE = f"""\
One at a time: the time from asking to completion at the device, of lines that the CPU holds clean; the way of local
operations was fitted to it. As many as accepted: up to {MANY} at a time; their mean time divided by their number.
"""
LEFT_OUT = "what the CPU's cores do meanwhile: they wait, so that nothing else is on the link"

# What the CPU has, and the numbers of the application.
_HELD = {
    "clean": {"dirty": 0, "held": 1},
    "dirty": {"dirty": 1, "held": 1},
    "not held": {"held": 0},
}


def _mean(result: Play) -> float:
    mean = times(result, "clean-invalidate")["mean"]
    return mean / result["numbers"]["outstanding"]


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
                        _mean,
                    )
                )
    return stages


def _run(conditions: Conditions) -> list[Ours]:
    return run(_stages(conditions), "ns", conditions)


EXPERIMENT = Experiment(
    title="clean-invalidates by the device, time of each",
    run=_run,
    note=NOTE,
    left_out=LEFT_OUT,
    axis="time per line (ns)",
    limited=_limited,
)
