"""Response time of a materialised view as a function of the number of rows that a transaction appends."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cohkit.experiments.enzian import LINE_BYTES
from cohkit.experiments.experiment import Experiment
from cohkit.experiments.plays import Stage, largest, run, times

if TYPE_CHECKING:
    from cohkit.experiments.experiment import Conditions
    from cohkit.published import Measurement
    from cohkit.types import Play

KEY = "enzian.view"
UPDATES = (1, 10, 100, 1_000, 10_000, 100_000)
# The first response includes the time in which the device writes the initial rows and computes their view; it is not
# measured.
TRANSACTIONS = 4
# Scale factor of TPC-H in thousandths; ROWS is the number of rows of ORDERS per thousandth.
SCALES = {"SF 0.5": 500, "SF 1": 1000}
ROWS = 1500
ROWS_OF_A_LINE = 8
MODES = {"recomputed": 0, "incremental": 1}
# The base table is in the host's memory, a space of its own, which the device reads over the link.
PLATFORM = "enzian-dc-ddr+enzian-cpu-home"
PROTOCOL = "eci-both"

NOTE = f"""\
A thread appends rows to TPC-H's table ORDERS and reads a synchronisation address. The response time is the time from
this read to its answer, as the mean of {TRANSACTIONS - 1} transactions after a first one. Meanwhile the device reads
the base table (all of it, or the new rows) and writes the view (all of it, or the changed lines), each line under its
lock. The base table is in the host's memory: the device reads it over the link, by uncached reads of whole lines. The
thread compares the view with its own sums. The appended rows are the last ones of the table.
"""
OMISSIONS = (
    "the time that summing takes (the link is slower), the device's own store of sums (it has room for all, on chip), "
    "the operating system and address translation"
)


def _response(result: Play) -> float:
    """Return the mean latency of a synchronisation in microseconds."""
    return times(result, "response").mean / 1000


def _base_read(result: Play) -> float:
    """Return the read rate of the base table, which is read whole at the start and in each transaction."""
    response, numbers = times(result, "response"), result.parameters
    rows = ROWS * numbers["scale"] - numbers["transactions"] * numbers["updates"]
    unmeasured = sum(math.ceil((rows + updates) / ROWS_OF_A_LINE) for updates in (0, numbers["updates"]))
    scanned = (result.counts or {})["lines scanned"] - unmeasured
    return scanned * LINE_BYTES / (response.count * response.mean * 1e-9) / 2**30


def _read_rate_stage(stage: Stage) -> Stage:
    """Measure the read rate instead of the response time."""
    key = stage.key.replace(f"{KEY}.recomputed.", f"{KEY}.read.")
    return stage._replace(name=f"{stage.name}, read", key=key, measure=_base_read, unit="GiB/s")


def _thousandths(accesses: int) -> int:
    """Return the largest scale of a table with at most this many rows, at least the smallest scale."""
    return max(1, accesses // ROWS)


def _limited(accesses: int) -> str:
    rows = _thousandths(accesses) * ROWS
    return f"no more than {rows} rows in a table, of which a transaction appends no more than {_max_updates(rows)}"


def _max_updates(rows: int) -> int:
    """Return the largest number of rows per transaction that leaves as many before the first transaction."""
    return rows // (TRANSACTIONS + 1)


def _stages(conditions: Conditions) -> list[Stage]:
    """Return a play for each mode, number of updates and scale of the table, and the read rates of recomputed views."""
    stages = []
    for size, scale in SCALES.items():
        # A quick run uses a part of the table, without transactions that are too large for it.
        max_rows = conditions.accesses
        thousandths = scale if max_rows is None else min(scale, _thousandths(max_rows))
        fitting = [updates for updates in UPDATES if updates <= _max_updates(thousandths * ROWS)]
        stages += [
            Stage(
                f"{updates}, {mode}, {size}",
                f"{KEY}.{mode}.{scale}.{updates}",
                PLATFORM,
                "view",
                {
                    "scale": thousandths,
                    "updates": updates,
                    "transactions": TRANSACTIONS,
                    "incremental": incremental,
                    "host": 1,
                },
                _response,
                cut=thousandths < scale,
                protocol=PROTOCOL,
            )
            for mode, incremental in MODES.items()
            for updates in fitting
        ]
    return [*stages, *(_read_rate_stage(stage) for stage in stages if stage.key.startswith(f"{KEY}.recomputed."))]


def _run(conditions: Conditions) -> list[Measurement]:
    """Run the plays, and add the largest read rate."""
    ours = run(_stages(conditions), "us", conditions)
    # A smaller table has a different read rate, because the remainder of a response has more weight.
    ours = [
        measurement._replace(steady=not measurement.cut) if measurement.unit == "GiB/s" else measurement
        for measurement in ours
    ]
    size, scale = list(SCALES.items())[-1]
    return [*ours, *largest(ours, f"{KEY}.read.{scale}.", f"at best, recomputed, {size}, read")]


EXPERIMENT = Experiment(
    run=_run,
    note=NOTE,
    omissions=OMISSIONS,
    headline="A device answers once its view of a table is up to date, recomputed or updated from the new rows.",
    axis="response time (us); base table read (GiB/s)",
    along="rows appended by a transaction",
    logarithmic="xy",
    rerun_accesses=2**14,
    limited=_limited,
)
