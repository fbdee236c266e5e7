"""Latency of remote procedure calls through pairs of lines, as a distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit.experiments.experiment import Experiment
from cohkit.experiments.plays import Stage, limited_time, run, times

if TYPE_CHECKING:
    from collections.abc import Callable

    from cohkit.experiments.experiment import Conditions
    from cohkit.published import Measurement
    from cohkit.shipped_types import Application
    from cohkit.types import Play

KEY = "enzian.rpc"
SHARES = (1, 10, 25, 50, 75, 90, 99, 100)

# Label, name in keys, application, and its numbers.
METHODS: list[tuple[str, str, Application, dict[str, int]]] = [
    ("lines, 1 context", "1", "rpc", {"contexts": 1}),
    ("lines, 16 contexts", "16", "rpc", {"contexts": 16}),
    ("lines, 48 contexts", "48", "rpc", {"contexts": 48}),
    ("registers, one word, 1 context", "registers.1.1", "rpc-registers", {"contexts": 1}),
    ("registers, one word, 48 contexts", "registers.1.48", "rpc-registers", {"contexts": 48}),
    ("registers, 16 words, 1 context", "registers.16.1", "rpc-registers", {"contexts": 1, "words": 16}),
    ("descriptors, one word, 1 context", "descriptors.1.1", "rpc-descriptors", {"contexts": 1}),
    ("descriptors, one word, 48 contexts", "descriptors.1.48", "rpc-descriptors", {"contexts": 48}),
    ("descriptors, 16 words, 1 context", "descriptors.16.1", "rpc-descriptors", {"contexts": 1, "words": 16}),
]

NOTE = """\
Cumulative distribution: the share of calls, in percent, that take at most the given time.
Lines: a call writes one line of arguments and loads the other line of its pair. The device withholds that line until it
has taken the arguments. The thread writes and reads one word of a line.
Registers: a call writes its arguments into registers and reads as many results: one word, or the 16 words of a line.
Descriptors: a call writes arguments and a descriptor into memory, and then a register. The device fetches the
descriptor and then the arguments. It writes the results and the call's number into memory, where the thread polls. The
thread writes and reads all words one by one. The thread takes 1.5 ns beside each access to a word (assumed).
The bus is PCIe Gen3 with 16 lanes. No source here gives its latency: 400 ns each way is assumed, like the other `bus.*`
of the platform, each with its range. The rows of registers and descriptors are therefore baselines of this model, not
published ones.
A run takes 2 ms after 100 us of warm-up. Nothing in it is random, so each call takes as long as the previous one.
"""
OMISSIONS = (
    "the operating system, address translation and all other traffic, which make most of the tail of a measured "
    "distribution"
)


def _quantile(share: int) -> Callable[[Play], float]:
    """Return a function that returns the latency, in nanoseconds, not exceeded by this percentage of calls."""

    def measure(result: Play) -> float:
        calls = times(result, "call")
        rank = calls.count * share / 100
        return next(time for time, count in calls.distribution if count >= rank)

    return measure


def _stages() -> list[Stage]:
    """Return a play for each method of calls and each percentage."""
    return [
        Stage(
            f"{share} %, {name}",
            f"{KEY}.{key}.{share}",
            "enzian-dc-bram",
            application,
            numbers,
            _quantile(share),
            time_us=2_000,
            warm_up_us=100,
            words=True,
        )
        for name, key, application, numbers in METHODS
        for share in SHARES
    ]


def _run(conditions: Conditions) -> list[Measurement]:
    return run(_stages(), "ns", conditions)


EXPERIMENT = Experiment(
    run=_run,
    note=NOTE,
    omissions=OMISSIONS,
    headline="CPU threads call a function of a device through cache lines or over a bus: latency distribution.",
    axis="latency of a call (ns)",
    along="share of calls (%)",
    logarithmic="y",
    shares=True,
    rerun_accesses=2**10,
    limited=limited_time,
)
