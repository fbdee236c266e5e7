"""Record locks for transactions of CPU and device, in coherent memory and by messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit.experiments.experiment import Experiment
from cohkit.experiments.plays import Stage, limited_time, rate, run, times

if TYPE_CHECKING:
    from collections.abc import Callable

    from cohkit.experiments.experiment import Conditions
    from cohkit.published import Measurement
    from cohkit.types import Play

KEY = "ccix.lock_table"
PARALLELISM = (1, 2, 4, 8, 16, 32, 64)
TABLES = {"coherent": 0, "messages": 1}

NOTE = """\
A row has the given number of concurrent transactions on each side: threads on the CPU, contexts in the device. Each
takes the lock of one of 1024 records, drawn at random, holds it for 500 ns and releases it. Coherent: a lock is a word
of a line homed at the device; threads use compare-and-swap, the device a locking clean-invalidate. Messages: the device
has the table; threads send requests by a register over PCIe and poll their own memory. Latency is the time from the
request to the acquisition. A run takes 1 ms after 100 us of warm-up. The machine is Enzian with an assumed PCIe bus
(`bus.*` of the platform).
"""
OMISSIONS = "the operating system, address translation, and that a machine with 48 cores runs 64 threads in turns"


def _latency(side: str) -> Callable[[Play], float]:
    """Return a function that returns the mean time to take a lock, in microseconds."""
    return lambda result: times(result, f"{side} lock")["mean"] / 1000


def _rate(side: str) -> Callable[[Play], float]:
    """Return a function that returns locks taken in millions per second."""
    return lambda result: rate(result, f"{side} locks") / 1e6


def _stages(
    measure: Callable[[str], Callable[[Play], float]], quantity: str, unit: str, per_s: float = 0
) -> list[Stage]:
    """Return a play on Enzian for each table, side and number of concurrent transactions."""
    return [
        Stage(
            f"{parallelism}, {table}, {side} {quantity}",
            f"{KEY}.{quantity}.{table}.{side}.{parallelism}",
            "enzian-dc-bram",
            "locks",
            {"threads": parallelism, "device": parallelism, "messages": messages},
            measure(side),
            time_us=1_000,
            warm_up_us=100,
            unit=unit,
            counted=f"{side} locks" if per_s else "",
            per_s=per_s,
            words=True,
        )
        for table, messages in TABLES.items()
        for side in ("host", "device")
        for parallelism in PARALLELISM
    ]


CARD = "ccix_locktable"
HOST_THREADS = 4

CARD_NOTE = f"""\
A database on the host, and storage on the card that takes locks itself: {HOST_THREADS} threads, one on each core of a
Neoverse N1 system, and the given number of concurrent requests of the card. Each takes the lock of one of 1024 records,
drawn at random, holds it for 500 ns and releases it. A lock is a word of a line of the host's memory; both sides change
it by compare-and-swap in the copies that they cache by ccix. Latency is the time from the request to the acquisition. A
run takes 1 ms after 100 us of warm-up. Records, times and the host's threads are assumed.
"""
CARD_OMISSIONS = "the operating system, address translation, and other work of database and storage"


def _card_stages(
    measure: Callable[[str], Callable[[Play], float]], quantity: str, unit: str, per_s: float = 0
) -> list[Stage]:
    """Return a play on a CCIX card, which caches the table, for each side and number of concurrent transactions."""
    return [
        Stage(
            f"{parallelism}, {side} {quantity}",
            f"{CARD}.{quantity}.{side}.{parallelism}",
            "n1sdp-u280",
            "locks",
            {"threads": HOST_THREADS, "device": parallelism, "cached": 1},
            measure(side),
            time_us=1_000,
            warm_up_us=100,
            unit=unit,
            counted=f"{side} locks" if per_s else "",
            per_s=per_s,
            protocol="ccix",
        )
        for side in ("host", "device")
        for parallelism in PARALLELISM
    ]


def _run_card(conditions: Conditions) -> list[Measurement]:
    stages = [*_card_stages(_latency, "latency", "us"), *_card_stages(_rate, "rate", "M/s", 1e6)]
    return run(stages, "", conditions)


def _run(conditions: Conditions) -> list[Measurement]:
    stages = [*_stages(_latency, "latency", "us"), *_stages(_rate, "rate", "M/s", 1e6)]
    return run(stages, "", conditions)


EXPERIMENT = Experiment(
    run=_run,
    note=NOTE,
    omissions=OMISSIONS,
    headline="A CPU and a device lock records of one table, in coherent memory or by messages over a bus.",
    axis="latency of a lock (us); million locks/s",
    along="transactions at a time, on each side",
    logarithmic="xy",
    rerun_accesses=2**11,
    limited=limited_time,
)

CARD_EXPERIMENT = Experiment(
    run=_run_card,
    note=CARD_NOTE,
    omissions=CARD_OMISSIONS,
    headline="A host and a card lock records of one table in the host's memory, which both cache.",
    axis="latency of a lock (us); million locks/s",
    along="requests of the card at a time",
    logarithmic="xy",
    rerun_accesses=2**11,
    limited=limited_time,
)
