"""Write `docs/fidelity.md`: all published results beside ours and the blind predictions, with errors.

    tools/record fidelity --seed 0 -- .venv/bin/python -m cohkit.fidelity --run
    .venv/bin/python -m cohkit.fidelity records/fidelity.jsonl > docs/fidelity.md

The first command runs every experiment with a published result at full size, in half an hour of one core, and records
our numbers with their commit. The second command compares the last record with `experiments/published.toml`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Any

from cohkit.experiments import EXPERIMENTS, Conditions
from cohkit.published import Measurement, Published, compare
from cohkit.reproduce import error_cell, number, provenance_cell, published_cell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cohkit.types import Result

HEAD = """\
# Accuracy relative to published results

This page compares simulated results with published measurements.
Use it to estimate the error of a prediction for your own machine.

Most measurements are of Enzian, a computer whose CPU (48 ThunderX-1 cores) and FPGA share memory over the coherent \
link ECI.
Others are of Enzian's link (*eci*), cards on CCIX (*ccix*), cores beside far memory (*proxics*), and directory \
ordering over CXL (*cord*).
The sources are:

{sources}

| Configuration | Memory that the CPU accesses | Platform |
|---|---|---|
| LLC+DDR | DRAM of the other socket in a server with two CPUs | `thunderx1-2s` |
| DC+DDR | DRAM at the FPGA | `enzian-dc-ddr` |
| DC+BRAM | on-chip memory of the FPGA | `enzian-dc-bram` |

Each section has one table, with these columns:

| Column | Meaning |
|---|---|
| Published | published value, or an order or a bound in words |
| Blind | prediction made before anyone on the project had seen the published result, by commit 608afff for results of \
*cckit* and by commit d868299 for the other systems; it never changes |
| Ours | result at full size, recorded by commit {commit} |
| Error | deviation from the published value, in percent of it. For an order or a bound: our value as a multiple of \
the compared value, and the verdict *holds* or *fails*, if one is possible |
| Origin | *fitted*, *predicted blind* or *known*, as below |

M/s are millions per second.
`python -m cohkit.fidelity` writes this page from a record and from \
[`experiments/published.toml`](../experiments/published.toml).
`cohkit reproduce` runs a single experiment.

## Summary by origin

The origin decides what an error says about the model:

- *fitted*: quantities of a platform were chosen to match the published value, so a small error says nothing about \
other machines;
- *predicted blind*: nobody on the project knew the published value, so this row measures the accuracy of predictions;
- *known*: the published value was known, but no quantity was tuned to it.

The median and the middle half of the errors are of their absolute values.
For *predicted blind*, the first row counts the blind predictions, and the second one the results of today's program.
"""

VIOLATED_BOUNDS = """\
## Violated bounds

These results exceed a published upper bound:

{broken}

The published device requests at most 322 million lines per second, one per clock.
This limit is a property of the machine, so 662 million is no mere error of a prediction: the model lacked the limit.
In the model of commit 608afff, each of the two slices of the home accepted a local operation in each clock.
Now the device issues at most one operation per clock to both slices together (`device.issue_interval`).
With this limit, `cohkit reproduce cckit-table3` prints 322 million.
The blind value does not change.
"""

SECTIONS: dict[str, tuple[str, str]] = {
    "eci-home": (
        "Size of ECI's home controller",
        """\
The constructed home has more states and transitions than the published one, and about as many events.
Cohkit constructs the controller of ECI's home agent from a [policy](construction.md); the published one was written \
by hand.
The constructed home is larger, because it also serves non-caching accesses, and offers each local operation \
with and without a lock.
The rows `merged` count indistinguishable states as one.
The rows `base` are for [a smaller protocol](../tests/construction/base.coh) without those accesses and locks.
Our events include operations of the device and of memory; the published number counts messages alone.
""",
    ),
    "cckit-table2": (
        "Read latency",
        """\
One core reads 1 GiB, and waits for each line before it reads the next one.
It reads each line once in order (sequential), or as many lines drawn at random.
The latencies of the platforms are fitted to these six values, so the errors show only the quality of the fit.
""",
    ),
    "cckit-fig6": (
        "Read and write throughput",
        """\
Four of the five published orders that can be judged are not what was predicted blind.
In the predictions, random reads are slightly faster than sequential ones, and reads of DC+DDR than those of LLC+DDR.
All 48 cores read or write 1 GiB across the link: each line once in order (sequential), or as many lines drawn at \
random.
No quantity was tuned to a throughput.
""",
    ),
    "cckit-table3": (
        "Clean-invalidate latency and rate",
        """\
The blind rates for clean lines are 9 % and 39 % too high, and four rates exceed [published bounds](#violated-bounds).
The FPGA requests clean-invalidates: the CPU writes a line back if it is dirty, and gives up its copy.
The CPU holds all lines clean, holds all lines dirty, or holds none (*not held*).
The requests are made one at a time, or up to 1024 at a time (*as many as accepted*).
The latency of one request is fitted; the rates are not.
""",
    ),
    "cckit-fig7": (
        "Increments of a shared table",
        """\
The blind predictions are about half of the published rates, except under full contention with the FPGA (-13 %).
The table gives the increments per second of one CPU thread.
The thread increments all rows of a table of 8 MiB, one after the other.
Meanwhile the other side, the FPGA or a second CPU, increments 0 % or 100 % of the rows too, each under a lock.
""",
    ),
    "cckit-fig8": (
        "Prefetcher behind the home",
        """\
The blind predictions are a tenth (with prefetcher) and a fifth (without) of the published throughputs.
One to eight threads read memory at the FPGA in order, one line at a time per thread, on `enzian-dc-ddr`.
A prefetcher with eight blocks of 8 KiB between home and memory is used or not.
The rows give the throughput of the best number of threads.
""",
    ),
    "cckit-fig9": (
        "Reading the base table of a materialised view",
        """\
The blind prediction is 1.7 times the published throughput.
The FPGA keeps a materialised view of TPC-H's table ORDERS, at scale factor 1 (SF 1).
A CPU thread appends rows to the table; the FPGA then reads the whole table and recomputes the view.
The row gives the throughput of these reads, for the best number of appended rows.
""",
    ),
    "cckit-fig10": (
        "Latency of remote procedure calls",
        """\
The blind prediction is 8 % above the published latency.
A CPU thread calls a procedure on the FPGA through a pair of lines.
It writes the arguments to one line and loads the result from the other one; the FPGA withholds the result until it \
has read the arguments.
The row gives the latency that 50 % of the calls do not exceed, with one calling thread (*1 context*).
""",
    ),
    "rpc-payload": (
        "Throughput of remote procedure calls",
        """\
The blind prediction is 30 % above the published throughput.
A CPU thread passes arguments of 1 to 200 lines to a procedure on the FPGA.
The FPGA fetches the lines of arguments one after the other.
The row gives the throughput of the arguments, for the best number of lines.
""",
    ),
    "eci-link": (
        "Transfers over ECI compared with DMA over PCIe",
        """\
The blind comparison was unequal: line requests of one transfer at a time, and 32 DMA transfers at a time.
An engine on the FPGA reads or writes lines of the CPU's memory, or a DMA engine moves as many bytes over PCIe.
The crossover is the transfer size from which DMA has more throughput, with as many requests as each side sustains.
Ratios of latency are those of one transfer alone.
""",
    ),
    "ccix-exp1": (
        "Transfers over CCIX compared with DMA over PCIe",
        """\
The blind comparison was unequal: line requests of one transfer at a time, and 32 DMA transfers at a time.
A card reads or writes its host's memory line by line over CCIX, or a DMA engine moves as many bytes over PCIe.
Ratios of throughput are those with as many requests as each side sustains; ratios of latency are those of one \
transfer alone.
""",
    ),
    "cord-fig2": (
        "Cost of acknowledgements under source ordering",
        """\
Ten programs on eight hosts store to each other's memory, and each store is acknowledged.
The rows give the share of time that threads wait for acknowledgements, and the share of acknowledgements in the \
traffic between hosts.
""",
    ),
    "cord-fig7": (
        "Programs under three orderings, relative to directory ordering",
        """\
Time and traffic of the ten programs with source ordering (`so`), message passing (`mp`) and write-back caches (`wb`), \
in percent of those with directory ordering (CORD).
""",
    ),
    "cord-fig8": (
        "Orderings by store size, release size and fan-out",
        """\
One thread stores to other hosts' memory; time and traffic in percent of those with directory ordering (CORD).
""",
    ),
    "cord-table3": (
        "Area and power of CORD's tables",
        """\
The rows give the area and static power of the tables in each core and each directory.
""",
    ),
    "proxics-pipes": (
        "Pipes to a core beside far memory",
        """\
A host sends words to a core beside far memory, by lines of a scratchpad or by registers.
""",
    ),
    "proxics-spawn": (
        "Start of a program on a core beside far memory",
        """\
The time from the host's first word of a binary until the core reports that it runs, with and without verification.
""",
    ),
    "proxics-bulk": (
        "Copies and fills of far memory",
        """\
One core beside far memory sets, clears or copies it, or the host does so with prefetches.
""",
    ),
    "proxics-sum": (
        "Sum over a column of a table in far memory",
        """\
One core beside far memory adds up a column of a table with rows of 8 to 128 B, or the host does so with prefetches.
""",
    ),
    "proxics-uts": (
        "Traversal of unbalanced trees in far memory",
        """\
Hosts and cores beside far memory traverse trees T1L, T2L and T3L of the benchmark UTS; each row is a ratio of rates.
""",
    ),
}
"""Heading and introduction of the section of an experiment."""


UNPUBLISHED = (
    "locktable",
    "ccix-exp2",
    "ccix-exp4",
    "ccix-locktable",
    "cord-fig9",
    "cord-fig10",
    "cord-fig11",
    "cord-fig12",
    "cord-fig13",
    "cord-scale",
    "symmetric-vs-asymmetric",
    "symmetric-vs-asymmetric-64",
    "proxics-gups",
    "proxics-filter",
    "proxics-compute",
)
"""Experiments whose published results are kept separately, so that they are not run."""


def page(record: dict[str, Any], published: Published) -> str:
    """Write the page from a record of `--run`."""
    commit = record["commit"]
    sources = "\n".join(f"- *{name}*: {title}" for name, title in published.sources().items())
    parts = [HEAD.format(commit=f"{commit[:7]}{commit[40:]}", sources=sources)]
    compared = {name: _compare(name, record["result"], published) for name in EXPERIMENTS}
    everything = [row for rows in compared.values() for row in rows]
    parts.append(_summary(everything))
    parts += [_section(name, rows, published) for name, rows in compared.items() if rows]
    lines = [
        f"- {row['experiment']}, {row['name']}: {number(row['ours'], row['unit'])}, published: {row['says']}"
        for row in everything
        if row["at_most"] is not None and row["holds"] is False
    ]
    if lines:
        parts.append(VIOLATED_BOUNDS.format(broken="\n".join(lines)))
    return "\n".join(parts)


def _compare(name: str, recorded: Sequence[dict[str, Any]], published: Published) -> list[Result]:
    """Return the rows of an experiment with a published value."""
    ours = [
        Measurement(row["name"], row["ours"], row["unit"], row["key"], steady=row["steady"])
        for row in recorded
        if row["experiment"] == name
    ]
    return [row for row in compare(name, ours, published) if published_cell(row) != "kept"]


def _summary(rows: Sequence[Result]) -> str:
    """Return the table that counts numbers within error limits, and relations that hold, by their origin."""
    lines = [
        (
            "| Origin | Published numbers | Error at most 5 % | Error at most 25 % | Median error | Middle half "
            "| Published relations (orders, upper and lower bounds) | Relations reproduced |"
        ),
        "|---|---|---|---|---|---|---|---|",
    ]
    for use, blind in (("fitted", False), ("predicted blind", True), ("predicted blind", False), ("known", False)):
        selected = [row for row in rows if row["use"] == use]
        prefix = "blind_" if blind else ""
        errors = sorted(abs(error) for row in selected if (error := row[f"{prefix}error"]) is not None)
        holds = [holds for row in selected if (holds := row[f"{prefix}holds"]) is not None]
        counts = [sum(error <= limit for error in errors) for limit in (0.05, 0.25)]
        # Quartiles need two values.
        median, spread = "", ""
        if len(errors) > 1:
            lower, middle, upper = quantiles(errors, n=4, method="inclusive")
            median, spread = f"{middle:.1%}", f"{lower:.1%} to {upper:.1%}"
        origin = "predicted blind, now" if use == "predicted blind" and not blind else use
        cells = [origin, len(errors), *counts, median, spread, len(holds), sum(holds)]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def _section(name: str, rows: Sequence[Result], published: Published) -> str:
    """Return the section of an experiment: introduction, remarks, and one table row for each number."""
    sources = dict.fromkeys(published.source(row["key"]) for row in rows)
    experiment = EXPERIMENTS[name]
    heading, introduction = SECTIONS.get(name, (experiment.title[:1].upper() + experiment.title[1:], ""))
    text = f"## {heading}\n\n{introduction}The experiment is `{name}`, after {'; '.join(filter(None, sources))}.\n"
    for remark in dict.fromkeys(published.remark(row["key"]) for row in rows):
        if remark:
            text += f"As published: {remark}.\n".replace(". ", ".\n")
    if experiment.omissions:
        text += f"Not modelled: {experiment.omissions}.\n"
    text += "\n| Quantity | Published | Blind | Error | Ours | Error | Origin |\n|---|---|---|---|---|---|---|\n"
    for row in rows:
        unit, blind = row["unit"], row["blind"]
        cells = [
            row["name"],
            published_cell(row),
            "" if blind is None else number(blind, unit),
            error_cell(row["blind_error"], row["blind_ratio"], row["blind_holds"]),
            number(row["ours"], unit),
            error_cell(row["error"], row["ratio"], row["holds"]),
            provenance_cell(row),
        ]
        text += f"| {' | '.join(cells)} |\n".replace("|  |", "| |").replace("|  |", "| |")
    return text


def run(conditions: Conditions) -> list[dict[str, Any]]:
    """Run every experiment with a published value, and return our numbers that have one, with their keys."""
    published = Published.shipped()
    rows = [
        {
            "experiment": name,
            "name": ours.name,
            "key": ours.key,
            "ours": ours.value,
            "unit": ours.unit,
            "steady": ours.steady,
        }
        for name, experiment in EXPERIMENTS.items()
        if name not in UNPUBLISHED
        for ours in experiment.run(conditions)
    ]
    keys = {row["key"] for name in EXPERIMENTS for row in _compare(name, rows, published)}
    return [row for row in rows if row["key"] in keys]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command line."""
    parser = argparse.ArgumentParser(prog="python -m cohkit.fidelity", description=(__doc__ or "").splitlines()[0])
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--run", action="store_true", help="run every experiment at full size; print our numbers as JSON")
    mode.add_argument("records", nargs="?", help="print the page from the last record of this file")
    options = parser.parse_args(arguments)
    if options.run:
        sys.stdout.write(json.dumps(run(Conditions(threads=1)), ensure_ascii=False) + "\n")
    else:
        last = Path(options.records).read_text(encoding="utf-8").splitlines()[-1]
        sys.stdout.write(page(json.loads(last), Published.shipped()))


if __name__ == "__main__":
    main()
