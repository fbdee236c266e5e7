"""Response time of a materialised view against the number of rows that a transaction appends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit.experiments.experiment import Experiment
from cohkit.experiments.plays import Stage, run

if TYPE_CHECKING:
    from cohkit.experiments.experiment import Conditions
    from cohkit.published import Ours
    from cohkit.types import Play

KEY = "enzian.view"
UPDATES = (1, 10, 100, 1_000, 10_000, 100_000)
TRANSACTIONS = 3
# Thousandths of TPC-H's scale factor, and rows of ORDERS in each.
SCALES = {"SF 0.5": 500, "SF 1": 1000}
ROWS = 1500
MODES = {"recomputed": 0, "incremental": 1}

NOTE = f"""\
A thread appends rows to TPC-H's ORDERS and reads a synchronisation address; from then to the answer is the response
time, the mean of {TRANSACTIONS} transactions. Meanwhile the device takes the lines that were written, reads the base
table, all of it or what is new, and writes the view, all of it or what has changed, each line under its lock. The
thread compares the view that it then reads with its own sums. The last rows of the table are those that are appended.
"""
LEFT_OUT = (
    "the time that summing takes (memory is slower), the device's own store of sums (it has room for all, on chip), "
    "the operating system and address translation"
)


def _response(result: Play) -> float:
    return (result["times_ns"] or {})["response"]["mean"] / 1000


def _stages(conditions: Conditions) -> list[Stage]:
    stages = []
    for size, scale in SCALES.items():
        # A quick look at a part of the table.
        most = conditions.accesses
        thousandths = scale if most is None else min(scale, max(1, most // ROWS))
        for mode, incremental in MODES.items():
            for updates in UPDATES:
                appended = min(updates, thousandths * ROWS // (TRANSACTIONS + 1))
                stages.append(
                    Stage(
                        f"{updates}, {mode}, {size}",
                        f"{KEY}.{mode}.{scale}.{updates}",
                        "enzian-dc-ddr",
                        "view",
                        {
                            "scale": thousandths,
                            "updates": appended,
                            "transactions": TRANSACTIONS,
                            "incremental": incremental,
                        },
                        _response,
                    )
                )
    return stages


def _run(conditions: Conditions) -> list[Ours]:
    return run(_stages(conditions), "us", conditions)


EXPERIMENT = Experiment(
    title="response time of a materialised view, against rows that a transaction appends",
    run=_run,
    note=NOTE,
    left_out=LEFT_OUT,
    axis="response time (us)",
    along="rows appended by a transaction",
    logarithmic="xy",
)
