"""Latency of remote procedure calls through pairs of lines, as a distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit.experiments.experiment import Experiment
from cohkit.experiments.plays import Stage, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from cohkit.experiments.experiment import Conditions
    from cohkit.published import Ours
    from cohkit.types import Play

KEY = "enzian.rpc"
SHARES = (1, 10, 25, 50, 75, 90, 99, 100)
CONTEXTS = (1, 16, 48)

NOTE = """\
A call writes one line of arguments and loads the other line of its pair; the device withholds that line until it has
taken the arguments. The share of calls that take no longer, in percent, against the time. With one context nothing
varies but the first call: there is no operating system here, no address translation, and no other traffic.
"""


def _within(share: int) -> Callable[[Play], float]:
    def measure(result: Play) -> float:
        times = (result["times_ns"] or {})["call"]
        wanted = times["count"] * share / 100
        return next(time for time, count in times["distribution"] if count >= wanted)

    return measure


def _stages() -> list[Stage]:
    return [
        Stage(
            f"{share} %, {contexts} contexts" if contexts > 1 else f"{share} %, 1 context",
            f"{KEY}.{contexts}.{share}",
            "enzian-dc-bram",
            "rpc",
            {"contexts": contexts},
            _within(share),
            time_us=2_000,
            warm_up_us=100,
        )
        for contexts in CONTEXTS
        for share in SHARES
    ]


def _run(conditions: Conditions) -> list[Ours]:
    return run(_stages(), "ns", conditions)


EXPERIMENT = Experiment(
    title="latency of calls through pairs of lines",
    run=_run,
    note=NOTE,
    axis="latency of a call (ns)",
    along="share of calls (%)",
)
