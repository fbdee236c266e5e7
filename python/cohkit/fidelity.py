"""Write `docs/fidelity.md`: all published results beside ours and the blind predictions, with errors.

    tools/record fidelity --seed 0 -- .venv/bin/python -m cohkit.fidelity --run
    .venv/bin/python -m cohkit.fidelity records/fidelity.jsonl > docs/fidelity.md

The first command runs every experiment with a published result at full size, two at a time, and records our numbers
and the fingerprint of the model with their commit. The second command compares the last record with
`experiments/published.toml`. If a change affects a part of the experiments, `--only NAME... --update
records/fidelity.jsonl` in the first command runs these alone and takes the other rows from the last record.

    tools/record sensitivity --seed 0 -- .venv/bin/python -m cohkit.fidelity --search

This command searches for settings inside the ranges of assumed quantities that meet each published value. It takes one
to two hours of two cores. If `records/sensitivity.jsonl` exists, the page has the last search of each experiment in it;
with `--only`, a record has a part of the experiments.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

from cohkit.assumptions import reduced, study
from cohkit.directions import (
    CROSSOVER_FACTOR,
    LEAST_DIFFERENCE,
    directions,
    is_crossover,
    without_numbers_of_missing_crossovers,
)
from cohkit.experiments import EXPERIMENTS, Conditions
from cohkit.experiments.derived import DERIVED
from cohkit.experiments.fitted_sums import SUMS
from cohkit.experiments.sensitivity import TOLERANCE, deciding
from cohkit.fingerprint import affected, fingerprint, is_older
from cohkit.published import Bounds, Measurement, Published, compare
from cohkit.reasons import ALL_REASONS, DEVIATIONS, MISSING_FACTS, NO_EFFECT, REASONS, UNKNOWN_REASON, UNVARIED
from cohkit.reproduce import error_cell, number, provenance_cell, published_cell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cohkit.directions import Direction
    from cohkit.types import Result

UNKNOWN_AGE = "The record has no fingerprint of the model: the model may have changed since, and our values with it."
"""Statement of a page from a record that cannot be compared with the model."""
AS_NEW_AS_THE_MODEL = "A test compares the record's fingerprint with the model, so the page is as new as the model."
"""Statement of a page from a record with a fingerprint."""
HEAD = """\
# Accuracy relative to published results

This page compares simulated results with published measurements.
Use it to estimate the error of a prediction for your own machine.

Most measurements are of Enzian, a computer whose CPU (48 ThunderX-1 cores) and FPGA share memory over the coherent \
link ECI.
Others are of Enzian's link (*eci*), cards on CCIX (*ccix*), near-memory cores (*proxics*), and directory \
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
the compared value. For blind values also *holds* or *fails*, if a verdict is possible |
| Verdict | of our value: error at most 5 %, 15 % or 25 %, or more; and whether the published order, bound, \
[direction or crossover](#directions-and-crossovers) holds. \
*Met in range*: a [search](#search-inside-the-ranges) found settings that meet the published value. *Met at the size \
of the search only*: without other settings, the smaller simulation of the search meets it, and ours does not. \
*Structure*: the search found no settings. *Not varied*: it found none, and an assumption without a range remains. \
*Not searched*: the experiment has a search that does not apply to the value. Either our number at the smaller size of \
the search differs by more than {size_change:g} % from the one at full size, or it is not steady there, or it does not \
exist there, or a fitted sum holds it. A value that is met without other settings has no word |
| Origin | of our value: *fitted* or *known*, as below |

M/s are millions per second.
`python -m cohkit.fidelity` writes this page from a record and from \
[`experiments/published.toml`](../experiments/published.toml).
{age}
`cohkit reproduce ID` runs a single experiment ([Published results](reproduce.md)).

## Summary by origin

The origin decides what an error says about the model:

- *fitted*: quantities of a platform or of an experiment were chosen to match the published value, or taken from it, \
so a small error says nothing about other machines;
- *predicted blind*: nobody on the project knew the published value, so this row measures the accuracy of predictions; \
it counts the blind values;
- *known*: the published value was known when today's program was written, but no quantity was tuned to it.

The median and the middle half of the errors are of their absolute values.
Some published values are compared with several of our numbers, such as those of CCIX with two cards.
Over distinct values, the numbers of an experiment with the same published value count once, with their median error.
Relations are orders, upper and lower bounds, directions and crossovers.
The last row does not depend on origins.
"""

DIRECTIONS = """\
### Directions and crossovers

An error does not say that our ratio is on the other side of 1 than the published one.
So these published numbers have a direction too, which is right or wrong:

- ratios: both are above 100 %, or both are below;
- two numbers of one program under two conditions, such as with and without a prefetcher: their order, if ours differ \
by more than {difference:g} %.

A crossover is right if the size is at most {factor} times the published one or at least 1/{factor} of it.
If one side is ahead at every size that is measured, or the first one still at the largest size, the curves do not \
cross, and there is no size to compare.
Such a crossover is a wrong relation, and not a number with an error.
"""

ABSENT = """\
## Published values without a number of ours

The record has no number for these published values.
A crossover has none if one side is ahead at the largest size; [the table above](#relations-that-do-not-hold) has the \
missing facts.

{absent}
"""

SEARCH = """\
## Search inside the ranges

Assumed quantities of a machine have ranges.
For each published value, `cohkit reproduce ID --sensitivity` varies them and searches for settings inside all ranges \
that meet the value.
An order or a bound is met at its limit and beyond it.
A published number is met within {tolerance}, or if two settings that differ in one continuous quantity, such as a \
time or a rate, have numbers on both sides of it.

These values have no search, or one that says nothing about the full size:

- values whose number at the size of the search differs by more than {size_change} from that at full size;
- values for which the smaller simulation does not reach a steady state, such as one that ends before the caches are \
full, or has no number, such as a crossover of curves that do not cross;
- values that a fitted sum holds: sums of quantities that are fitted to a measured time are held, so that if their \
parts vary, one of them follows.

{record}
"""

SEARCH_RECORDED = """\
These experiments have {studied} published values: {met} are met, without other settings or with some, {smaller} at \
the size of the search only, and {unmet} are not met.
The search says nothing about the other ones: for {resized} values, the size changes the number, and {omitted} have no \
search.
All searches have the seed {seed}.
{age}

| Experiment | Size of its simulations | Recorded by | Evaluated settings of several quantities, at most \
| Values searched | Values not searched |
|---|---|---|---|---|---|
{searches}
"""
NO_SEARCH = """\
No search is recorded yet; `tools/record sensitivity --seed 0 -- .venv/bin/python -m cohkit.fidelity --search` records \
them.
"""

STRUCTURE = """\
### Values that no setting meets

A value that nothing inside the ranges meets is a fault of the model's structure, not of a quantity, unless an \
assumption without a range remains (*not varied*).
The column *Nearest* has the result with the best settings at the size of the search.

| Experiment | Quantity | Published | Nearest | Deciding quantities | Verdict | Reason |
|---|---|---|---|---|---|---|
"""

FAILED_RELATIONS = """\
## Relations that do not hold

Our values contradict these published orders, bounds, directions and crossovers.
The column *Ours* has our value, or its multiple of the compared one or of the bound.
The last column names a fact that is not published and that the model would need, or says that none is missing.

| Experiment | Quantity | Published | Ours | Missing fact |
|---|---|---|---|---|
"""

LARGE_ERRORS = """\
## Numbers off by more than {limit} %

These numbers deviate from the published value by more than {limit} %.
The last column has the reason, as far as it is known.

| Experiment | Quantity | Published | Error | Reason |
|---|---|---|---|---|
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

FITTED = """\
### Fitted quantities of the near-memory machine

The experiments of *proxics* use quantities that are fitted to other rows:

| Quantities of `nearmemory/enzian.toml` | Fitted to |
|---|---|
| the host's path to the device (`device.path`), latency of the link (`link.latency`) and of the DRAM's controller \
(`dram.controller_latency`) | read latencies of table 2 of CCKit |
| path and rate of a copy engine (`copy.path`, `copy.line`), the host's pages (`host.page`) | Proxics' table 1 |
| number of a copy engine's channels (`copy.channels`) | chosen when the published order of interleaved and \
synchronous copies was known |
"""
_FAR_MEMORY = """\
Some quantities are [fitted to other rows](#fitted-quantities-of-the-near-memory-machine).
"""
_SIMPLE_DRAM = """\
DRAM is the [simple model](models.md#memory): the cycle time of a bank (tRC), refresh and a data bus that serves banks \
out of order are not modelled.
"""
_DC_BRAM = """\
Fitted to other rows are the latencies of the link, of the home and to memory (`link.latency`, `home.latency`, \
`home.memory_round_trip`; table 2), and between home and device (`home.device_round_trip`; table 3).
"""
_DC_DDR = _DC_BRAM.replace("`home.memory_round_trip`;", "`home.memory_round_trip`, `dram.controller_latency`;")
_CPU_HOME = """\
Fitted to other rows are the CPU's home and its memory (`home.latency`, `home.memory_round_trip`, `dram.closed_page` \
to table 2 of CCKit; `dram.controller_latency` to figure 5), and the latency of the link to the FPGA \
(`agents.device.link.latency`; table 2).
"""
_DMA = """\
The latency of the host's memory behind PCIe is fitted to a read of 64 bytes in pcie-bench.
"""
"""Fitted quantities and omissions of several experiments."""

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
Each slice of the FPGA's home has 5 reads in flight to either memory (`home.memory_in_flight`).
This number has a source for DRAM, and is assumed for BRAM; it was not chosen to meet the figure.
The bandwidths of the links are those measured for reads (figure 5 of the article), so rows at the limit of a link \
follow from it.
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
"""
        + _DC_BRAM,
    ),
    "cckit-fig8": (
        "Prefetcher behind the home",
        """\
The blind predictions are a tenth (with prefetcher) and a fifth (without) of the published throughputs.
One to eight threads read memory at the FPGA in order, one line at a time per thread, on `enzian-dc-ddr`.
A prefetcher with eight blocks of 8 KiB between home and memory is used or not.
The rows give the throughput of the best number of threads up to four, the published number of clients.
The blind predictions are those of the best of one to eight threads, so that their direction is not judged.
The rows *at best of all threads* have no published value.
Reads that an application answers do not count for `home.memory_in_flight`, and the prefetcher is an application, with \
or without blocks.
So the row without it is not limited to five reads of a slice, as `cckit-fig6` is.
The facts contradict each other here: five reads of each of two slices are 1280 B in 218 ns, or 5.5 GiB/s, and the \
published throughput without a prefetcher is 7.8 GiB/s.
"""
        + _DC_DDR,
    ),
    "cckit-fig9": (
        "Reading the base table of a materialised view",
        """\
The blind prediction is 1.7 times the published throughput.
The FPGA keeps a materialised view of TPC-H's table ORDERS, at scale factor 1 (SF 1).
A CPU thread appends rows to the table; the FPGA then reads the whole table and recomputes the view.
The row gives the throughput of these reads, for the best number of appended rows.
"""
        + _DC_DDR
        + _CPU_HOME.replace("Fitted to other rows are", "So are"),
    ),
    "cckit-fig10": (
        "Latency of remote procedure calls",
        """\
The blind prediction is 8 % above the published latency.
A CPU thread calls a procedure on the FPGA through a pair of lines.
It writes the arguments to one line and loads the result from the other one; the FPGA withholds the result until it \
has read the arguments.
The row gives the latency that 50 % of the calls do not exceed, with one calling thread (*1 context*).
"""
        + _DC_BRAM,
    ),
    "rpc-payload": (
        "Throughput of remote procedure calls",
        """\
A CPU thread passes arguments of 1 to 200 lines to a procedure on the FPGA.
The FPGA fetches the lines of arguments one after the other.
The row gives the throughput of the arguments, at the number of lines with the highest throughput.
The blind prediction is 30 % above the published throughput.
"""
        + _DC_BRAM,
    ),
    "eci-link": (
        "Transfers over ECI compared with DMA over PCIe",
        """\
The blind comparison was unequal: line requests of one transfer at a time, and 32 DMA transfers at a time.
An engine on the FPGA reads or writes lines of the CPU's memory, or a DMA engine moves as many bytes over PCIe.
The crossover is the transfer size from which DMA has more throughput, with as many requests as each side sustains.
Ratios of latency are those of one transfer alone.
That the latency is lower at every size holds with the assumed DMA engine only, which fetches descriptors.
With an engine that the CPU starts by registers, writes over one link take longer than DMA at 16 KiB.
With one that the device starts itself, reads over one link do so at 16 KiB, and writes over one or two links at 128 B.
"""
        + _CPU_HOME
        + _DMA,
    ),
    "ccix-exp1": (
        "Transfers over CCIX compared with DMA over PCIe",
        """\
The blind comparison was unequal: line requests of one transfer at a time, and 32 DMA transfers at a time.
A card reads or writes its host's memory line by line over CCIX, or a DMA engine moves as many bytes over PCIe.
Ratios of throughput are those with as many requests as each side has in flight: 32 transfers of the DMA engine, and \
the card's `agents.device.cores.max_outstanding` lines.
Ratios of latency are those of one transfer alone.
Fitted to other rows are the latencies of loads and stores that hit in the card's cache \
(`agents.device.cache.hit_latency`, `agents.device.cache.store_hit_latency`).
"""
        + _DMA
        + _SIMPLE_DRAM,
    ),
    "ccix-exp3": (
        "Hit in the system cache of a card on CCIX",
        """\
A card reads or writes random lines that its system cache holds, one at a time.
The latencies of a load and of a store that hit (`agents.device.cache.hit_latency`, \
`agents.device.cache.store_hit_latency`) are fitted to these four values, so the errors show only the quality of \
the fit.
"""
        + _SIMPLE_DRAM,
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
The programs release after the published bytes, and for barriers and flags of consumed bytes, so that the bytes \
between two releases are fewer.
Inputs have the published sizes; their graphs are generated.
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
The size of an entry, 64 B, is inferred from the published table, so all rows are fitted.
The model omits tags, and wires and drivers to the edge of a bank, which CACTI counts.
""",
    ),
    "proxics-table1": (
        "Latency and bandwidth of far memory",
        """\
The host and a near-memory core read far memory.
All rows are fitted: the path and the rate of a copy engine (`copy.path`, `copy.line`) and the host's pages \
(`host.page`).
Each slice of the directory has five reads in flight (`device.slice_reads`), as `home.memory_in_flight` in \
`cckit-fig6`, but of another path: here the limit holds for DRAM alone, and there from a unit to memory and back, with \
`home.memory_round_trip`.
The facts do not say which of the two the width converters limit.
"""
        + _FAR_MEMORY
        + _SIMPLE_DRAM,
    ),
    "proxics-pagerank": (
        "Lines of PageRank's scores",
        """\
The rows count, of 1,000 scores, those in another line than the previous one.
Graphs are generated with the published shares, so that all rows are fitted, and no quantity of the machine has an \
effect.
""",
    ),
    "proxics-pipes": (
        "Pipes to a near-memory core",
        """\
A host sends words to a near-memory core, by lines of a scratchpad or by registers.
"""
        + _FAR_MEMORY
        + _SIMPLE_DRAM,
    ),
    "proxics-spawn": (
        "Start of a program on a near-memory core",
        """\
The time from the host's first word of a binary until the core reports that it runs, with and without verification.
"""
        + _FAR_MEMORY
        + _SIMPLE_DRAM,
    ),
    "proxics-bulk": (
        "Copies and fills of far memory",
        """\
One near-memory core sets, clears or copies it, or the host does so with prefetches.
"""
        + _FAR_MEMORY
        + _SIMPLE_DRAM,
    ),
    "proxics-sum": (
        "Sum over a column of a table in far memory",
        """\
One near-memory core adds up a column of a table with rows of 8 to 128 B, or the host does so with prefetches.
"""
        + _FAR_MEMORY
        + _SIMPLE_DRAM,
    ),
    "proxics-uts": (
        "Traversal of unbalanced trees in far memory",
        """\
Hosts and near-memory cores traverse trees T1L, T2L and T3L of the benchmark UTS; each row is a ratio of rates.
Near-memory cores deal children equally to themselves and their peers, as the article's do.
The article does not say whether its four host cores prefetch, so ours are compared with prefetches and without.
"""
        + _FAR_MEMORY
        + _SIMPLE_DRAM,
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


def page(record: dict[str, Any], published: Published, searches: dict[str, Any] | None = None) -> str:
    """Write the page from a record of `--run`, and one of `--search` if there is any."""
    result = record["result"]
    # Records before the fingerprint have the rows only.
    recorded = result if isinstance(result, list) else result["rows"]
    sources = "\n".join(f"- *{name}*: {title}" for name, title in published.sources().items())
    age = UNKNOWN_AGE if isinstance(result, list) else AS_NEW_AS_THE_MODEL
    parts = [HEAD.format(commit=_recorded_by(record), sources=sources, age=age, size_change=100 * SIZE_CHANGE)]
    compared = {name: _compare(name, recorded, published) for name in EXPERIMENTS}
    judged = directions([row for rows in compared.values() for row in rows], published)
    compared = {name: without_numbers_of_missing_crossovers(rows, judged) for name, rows in compared.items()}
    everything = [row for rows in compared.values() for row in rows]
    found: dict[str, Any] = searches["result"] if searches else {}
    parts += [_summary(everything, judged), FITTED]
    parts.append(DIRECTIONS.format(difference=100 * LEAST_DIFFERENCE, factor=CROSSOVER_FACTOR))
    parts += [_section(name, rows, published, found.get(name), judged) for name, rows in compared.items() if rows]
    if failed := _failed_relations(everything, judged):
        parts.append(FAILED_RELATIONS + "".join(failed))
    if large := _large_errors(everything):
        parts.append(LARGE_ERRORS.format(limit=WITHIN[-1]) + "".join(large))
    lines = [
        f"- {row['experiment']}, {row['name']}: {number(row['ours'], row['unit'])}, published: {row['says']}"
        for row in everything
        if row["at_most"] is not None and row["holds"] is False and row["experiment"] == "cckit-table3"
    ]
    if lines:
        parts.append(VIOLATED_BOUNDS.format(broken="\n".join(lines)))
    if absent := _absent(everything, published):
        parts.append(ABSENT.format(absent="\n".join(absent)))
    parts.append(
        _search_section(searches, everything, None if isinstance(result, list) else result["fingerprint"])
        if searches and found
        else _search_text(NO_SEARCH)
    )
    return "\n".join(parts)


_OWN_NUMBER = re.compile(r"\{([^}]+)\}")
"""Place of one of our numbers in a reason: its key. The number is that of the record, so that no reason is older."""


def _with_numbers(reason: str, rows: Sequence[Result]) -> str:
    """Return a reason with our numbers in it.

    Raises:
        ValueError: the record lacks one of the numbers.

    """
    by_key = {row["key"]: row for row in rows}

    def text(match: re.Match[str]) -> str:
        if (row := by_key.get(match[1])) is None:
            raise ValueError(f"a reason of `cohkit.fidelity` names {match[1]}, which the record lacks")
        return number(row["ours"], row["unit"])

    return _OWN_NUMBER.sub(text, reason)


def unused_reasons(record: dict[str, Any], published: Published, searches: dict[str, Any] | None = None) -> list[str]:
    """Return the keys of reasons that the page of a record does not need: their rows hold by now, or have none."""
    result = record["result"]
    recorded = result if isinstance(result, list) else result["rows"]
    rows = [row for name in EXPERIMENTS for row in _compare(name, recorded, published)]
    judged = directions(rows, published)
    rows = without_numbers_of_missing_crossovers(rows, judged)
    failed = {row["key"] for row in rows if row["holds"] is False} | {
        key for key, one in judged.items() if not one.holds
    }
    large = {row["key"] for row in rows if row["error"] is not None and abs(row["error"]) > WITHIN[-1] / 100}
    found: dict[str, Any] = searches["result"] if searches else {}
    words = {row["key"]: _search_words(row, found.get(row["experiment"])) for row in rows}
    unmet = {key for key, one in words.items() if one in (STRUCTURE_WORD, NOT_VARIED)}
    # A value without a search may need its reason in the next one.
    reached = {key for search in found.values() for key in search["reaches"]}
    unsearched = {key for key, one in words.items() if key not in reached or one.startswith(NOT_SEARCHED)}
    uses: tuple[tuple[Mapping[str, str], set[str]], ...] = (
        (MISSING_FACTS, failed),
        (DEVIATIONS, large),
        (ALL_REASONS, unmet),
        (UNVARIED, unmet),
        ({**UNVARIED, **REASONS}, unsearched),
    )
    needed = {_longest_prefix(reasons, key) for reasons, keys in uses for key in keys}
    return sorted(ALL_REASONS.keys() - needed)


def _failed_relations(rows: Sequence[Result], judged: Mapping[str, Direction]) -> list[str]:
    """Return a line for each relation that does not hold, with the fact that is missing."""
    lines = []
    for row in rows:
        if row["holds"] is False:
            ratio = "" if row["ratio"] is None else f"{row['ratio']:.4g}x"
            lines.append((row["experiment"], row["name"], published_cell(row), ratio, row["key"]))
    lines += [(one.experiment, one.name, one.says, one.ours, key) for key, one in judged.items() if not one.holds]
    order = list(EXPERIMENTS)
    lines.sort(key=lambda line: order.index(line[0]))
    return [
        f"| {' | '.join(cells)} | {_with_numbers(_of_prefix(MISSING_FACTS, key) or UNKNOWN_REASON, rows)} |\n".replace(
            "|  |", "| |"
        )
        for *cells, key in lines
    ]


def _large_errors(rows: Sequence[Result]) -> list[str]:
    """Return a line for each number with an error above the largest limit, with the reason."""
    return [
        f"| {row['experiment']} | {row['name']} | {published_cell(row)} | {row['error']:+.1%} "
        f"| {_with_numbers(_of_prefix(DEVIATIONS, row['key']) or UNKNOWN_REASON, rows)} |\n"
        for row in rows
        if row["error"] is not None and abs(row["error"]) > WITHIN[-1] / 100
    ]


def _absent(rows: Sequence[Result], published: Published) -> list[str]:
    """Return the derived numbers that are published and not among the rows, such as missing crossovers."""
    present = {row["key"] for row in rows}
    return [
        f"- {name}, {one.name}"
        for name, numbers in DERIVED.items()
        for one in numbers
        if one.key not in present and (published.claim(one.key) or published.value(one.key, unit=one.unit) is not None)
    ]


def _short_commit(commit: str) -> str:
    return f"{commit[:7]}{commit[40:]}"


def _recorded_by(record: dict[str, Any]) -> str:
    """Return the commit of a record, and the earlier ones whose rows it has taken over."""
    result = record["result"]
    earlier: dict[str, str] = {} if isinstance(result, list) else result.get("earlier", {})
    text = _short_commit(record["commit"])
    for commit in dict.fromkeys(earlier.values()):
        names = ", ".join(f"`{name}`" for name, one in earlier.items() if one == commit)
        text += f"; for {names} by commit {_short_commit(commit)}, as their inputs and small runs are unchanged"
    return text


def _age_of_searches(found: Mapping[str, Any], present: dict[str, Any] | None) -> str:
    """Return, in words, which searches may be older than the model."""
    marked = {name: search["fingerprint"] for name, search in found.items() if "fingerprint" in search}
    older = [name for name, earlier in marked.items() if present is None or is_older(name, earlier, present)]
    unmarked = [name for name in found if name not in marked]
    ages = [
        (older, "A later change may affect the searches of"),
        (unmarked, "Searches without a fingerprint"),
    ]
    texts = [f"{text}: {', '.join(f'`{name}`' for name in names)}." for names, text in ages if names]
    return "\n".join(texts) or "No later change affects these searches."


def _search_section(searches: dict[str, Any], rows: Sequence[Result], present: dict[str, Any] | None) -> str:
    """Return the section on the searches, with the values that no setting meets."""
    found = searches["result"]
    # Rows without a published value that a search could meet are not counted.
    goals = [row for row in rows if row["experiment"] in found and _has_goal(row)]
    studied = {(row["experiment"], row["key"]): _search_words(row, found[row["experiment"]]) for row in goals}
    lines = []
    for row in goals:
        word = studied[row["experiment"], row["key"]]
        if word not in (STRUCTURE_WORD, NOT_VARIED):
            continue
        reach = found[row["experiment"]]["reaches"][row["key"]]
        nearest = f"{reach['value']:.4g}x" if reach["other"] else number(reach["value"], row["unit"])
        cells = [row["experiment"], row["name"], published_cell(row), nearest, ", ".join(reach["deciding"]), word]
        cells += [_with_numbers(_reason(row["key"], reach), rows)]
        lines.append(f"| {' | '.join(cells)} |\n".replace("|  |", "| |"))
    counts = Counter(studied.values())
    resized = counts[SIZE_CHANGES]
    omitted = sum(one.startswith(NOT_SEARCHED) for one in studied.values()) - resized
    record = SEARCH_RECORDED.format(
        seed=next(iter(found.values()))["seed"],
        studied=len(studied),
        met=len(studied) - len(lines) - counts[SMALLER_ONLY] - resized - omitted,
        smaller=counts[SMALLER_ONLY],
        unmet=len(lines),
        resized=resized,
        omitted=omitted,
        age=_age_of_searches(found, present),
        searches="\n".join(_search_line(name, searches, studied) for name in found),
    )
    return _search_text(record) + ("\n" + STRUCTURE + "".join(lines) if lines else "")


def _search_text(record: str) -> str:
    """Return the introduction of the section on searches, with the text on their records."""
    limits = {"tolerance": f"{100 * TOLERANCE:g} %", "size_change": f"{100 * SIZE_CHANGE:g} %"}
    return SEARCH.format(record=record.strip(), **limits)


def _search_line(name: str, searches: dict[str, Any], studied: Mapping[tuple[str, str], str]) -> str:
    """Return the line of an experiment in the table of searches."""
    search = searches["result"][name]
    words = [word for (experiment, _), word in studied.items() if experiment == name]
    omitted = sum(word.startswith(NOT_SEARCHED) for word in words)
    size = search["size"] or "full size"
    commit = _short_commit(searches["commits"][name])
    cells = [f"`{name}`", size, commit, str(search["budget"]), str(len(words) - omitted), str(omitted)]
    return f"| {' | '.join(cells)} |"


def _longest_prefix(reasons: Mapping[str, str], key: str) -> str | None:
    """Return the most first parts of a key that have a reason, if there is one."""
    starts = [start for start in reasons if key == start or key.startswith(f"{start}.")]
    return max(starts, key=len) if starts else None


def _of_prefix(reasons: Mapping[str, str], key: str) -> str | None:
    """Return the reason of the most first parts of a key, if there is one."""
    start = _longest_prefix(reasons, key)
    return None if start is None else reasons[start]


def _reason(key: str, reach: dict[str, Any]) -> str:
    """Return the reason for a value that no setting meets: that of the most first parts of its key, over all maps."""
    return _of_prefix(ALL_REASONS, key) or (UNKNOWN_REASON if reach["deciding"] else NO_EFFECT)


def _is_varied(key: str, reach: dict[str, Any]) -> bool:
    """Return false if no quantity has an effect on a number, or if an assumption without a range decides it."""
    return bool(reach["deciding"]) and _of_prefix(UNVARIED, key) is None


def _is_met_at_smaller_size_only(row: Result, reach: dict[str, Any]) -> bool:
    """Return true if a value is met without other settings at the size of the search, and not at full size."""
    if not reach["is_met"] or reach["settings"]:
        return False
    error = row["error"]
    return row["holds"] is False if error is None else abs(error) > TOLERANCE


SIZE_CHANGE = 0.1
"""Largest difference between our number at the size of a search and that at full size, as a share of the latter, with
which the search says something about the full size."""
NOT_SEARCHED = "not searched"
SIZE_CHANGES = f"{NOT_SEARCHED}: the size changes the number"
OMITTED = {
    "held": f"{NOT_SEARCHED}: held by a fitted sum",
    "not steady": f"{NOT_SEARCHED}: not steady at the smaller size",
}
"""Words of the reasons why a search has omitted a value."""
SMALLER_ONLY = "met at the size of the search only"
STRUCTURE_WORD = "structure"
NOT_VARIED = "not varied"


def _has_goal(row: Result) -> bool:
    """Return true if a search could meet what is published of a row: a number, a bound, or an order that is judged."""
    return row["published"] is not None or row["holds"] is not None


def _search_words(row: Result, search: dict[str, Any] | None) -> str:
    """Return the result of the search for a row in words; empty if there is none, or no other settings are needed."""
    if search is None or not _has_goal(row):
        return ""
    reach = search["reaches"].get(row["key"])
    return _omission(row, search) if reach is None else _reached(row, reach)


def _reached(row: Result, reach: dict[str, Any]) -> str:
    """Return the result of a search in words; empty if no other settings are needed."""
    bounds = Bounds(row["at_least"], row["at_most"])
    target = bounds.compared(reach["ours"]) if row["published"] is None else row["published"]
    if not reach["other"] and reach["target"] != target:
        # The published statement was corrected after the search.
        return NOT_SEARCHED
    is_smaller_only = _is_met_at_smaller_size_only(row, reach)
    if reach["is_met"] and not reach["settings"] and not is_smaller_only:
        return ""
    if abs(reach["ours"] - row["ours"]) > SIZE_CHANGE * abs(row["ours"]):
        return SIZE_CHANGES
    if not reach["is_met"]:
        return STRUCTURE_WORD if _is_varied(row["key"], reach) else NOT_VARIED
    return SMALLER_ONLY if is_smaller_only else "met in range"


def _omission(row: Result, search: dict[str, Any]) -> str:
    """Return in words why a search has omitted a value, as far as its record and that of our numbers say.

    A search that recorded no reasons omitted a throughput because it was not steady: other numbers are not judged so.
    """
    if "omitted" in search:
        return OMITTED.get(search["omitted"].get(row["key"]), NOT_SEARCHED)
    key = row["key"]
    if any(key == start or key.startswith(f"{start}.") for one in SUMS for start in one.keys):
        return OMITTED["held"]
    return OMITTED["not steady"] if row["steady"] is not None and not is_crossover(key) else NOT_SEARCHED


def _compare(name: str, recorded: Sequence[dict[str, Any]], published: Published) -> list[Result]:
    """Return the rows of an experiment with a published value."""
    ours = [
        Measurement(row["name"], row["ours"], row["unit"], row["key"], steady=row["steady"])
        for row in recorded
        if row["experiment"] == name
    ]
    return [row for row in compare(name, ours, published) if published_cell(row) != "kept"]


def _summary(rows: Sequence[Result], judged: Mapping[str, Direction]) -> str:
    """Return the table that counts numbers within error limits, and relations that hold, by their origin."""
    lines = [
        (
            "| Origin | Published numbers | Error at most 5 % | Error at most 25 % | Median error | Middle half "
            "| Distinct published values | Median error over these | Published relations | Relations reproduced |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    groups: tuple[tuple[str, bool, Callable[[str, bool], bool]], ...] = (
        ("fitted", False, lambda use, _: use == "fitted"),
        ("predicted blind", True, lambda _, has_blind: has_blind),
        ("known, rows with a blind value", False, lambda use, has_blind: use != "fitted" and has_blind),
        ("known, other rows", False, lambda use, has_blind: use != "fitted" and not has_blind),
        ("all but fitted", False, lambda use, _: use != "fitted"),
        ("all", False, lambda *_: True),
    )
    blinds = {row["key"] for row in rows if row["blind"] is not None}
    # A crossover that we do not have, and did not predict, has no row.
    blinds |= {key for key, one in judged.items() if one.blind_holds is not None}
    for origin, blind, belongs in groups:
        selected = [row for row in rows if belongs(row["use"], row["key"] in blinds)]
        prefix = "blind_" if blind else ""
        with_error = [row for row in selected if row[f"{prefix}error"] is not None]
        errors = sorted(abs(row[f"{prefix}error"]) for row in with_error)
        holds = [holds for row in selected if (holds := row[f"{prefix}holds"]) is not None]
        relations = [one for key, one in judged.items() if belongs(one.provenance, key in blinds)]
        holds += [one.blind_holds if blind else one.holds for one in relations]
        holds = [one for one in holds if one is not None]
        counts = [sum(error <= limit for error in errors) for limit in (0.05, 0.25)]
        # Quartiles need two values.
        middle_error, spread = "", ""
        if len(errors) > 1:
            lower, middle, upper = quantiles(errors, n=4, method="inclusive")
            middle_error, spread = f"{middle:.1%}", f"{lower:.1%} to {upper:.1%}"
        distinct = _distinct_errors(with_error, f"{prefix}error")
        cells = [origin, len(errors), *counts, middle_error, spread]
        cells += [len(distinct), f"{median(distinct):.1%}" if distinct else "", len(holds), sum(holds)]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def _distinct_errors(rows: Sequence[Result], error: str) -> list[float]:
    """Return the median absolute error of the rows of each published value of an experiment."""
    errors: dict[tuple[str, str, float | None], list[float]] = {}
    for row in rows:
        errors.setdefault((row["experiment"], row["unit"], row["published"]), []).append(abs(row[error]))
    return [median(values) for values in errors.values()]


WITHIN = (5, 15, 25)
"""Limits of errors in verdicts, in percent."""


def verdict(row: Result, search: dict[str, Any] | None, direction: Direction | None = None) -> str:
    """Return the verdict on our number: its error, whether its relation holds, and the result of the search."""
    words = []
    error = row["error"]
    if error is not None:
        limit = next((limit for limit in WITHIN if abs(error) <= limit / 100), None)
        words.append(f"within {limit} %" if limit else f"off by more than {WITHIN[-1]} %")
    elif row["holds"] is not None:
        is_bound = row["at_least"] is not None or row["at_most"] is not None
        word = "bound" if is_bound else "order"
        words.append(f"{word} {'right' if row['holds'] else 'wrong'}")
    if direction is not None:
        words.append(direction.verdict)
    words.append(_search_words(row, search))
    return "; ".join(filter(None, words))


def _section(
    name: str,
    rows: Sequence[Result],
    published: Published,
    search: dict[str, Any] | None,
    judged: Mapping[str, Direction],
) -> str:
    """Return the section of an experiment: introduction, remarks, and one table row for each number."""
    keys = {row["key"] for row in rows}
    missing = [one for key, one in judged.items() if one.experiment == name and key not in keys]
    sources = dict.fromkeys(published.source(row["key"]) for row in rows)
    experiment = EXPERIMENTS[name]
    heading, introduction = SECTIONS.get(name, (experiment.title[:1].upper() + experiment.title[1:], ""))
    text = f"## {heading}\n\n{introduction}The experiment is `{name}`, after {'; '.join(filter(None, sources))}.\n"
    for remark in dict.fromkeys(published.remark(row["key"]) for row in rows):
        if remark:
            text += f"As published: {remark}.\n".replace(". ", ".\n")
    for comparison in dict.fromkeys(published.comparison(row["key"]) for row in rows):
        if comparison:
            text += f"Comparison: {comparison}.\n".replace(". ", ".\n")
    if experiment.omissions:
        text += f"Not modelled: {experiment.omissions}.\n"
    text += "\n| Quantity | Published | Blind | Error | Ours | Error | Verdict | Origin |\n|" + 8 * "---|" + "\n"
    for row in rows:
        unit, blind = row["unit"], row["blind"]
        direction = judged.get(row["key"])
        blind_error = error_cell(row["blind_error"], row["blind_ratio"], row["blind_holds"])
        if direction and direction.blind_holds is not None:
            words = [blind_error, "holds" if direction.blind_holds else "fails"]
            blind_error = ", ".join(filter(None, words))
        cells = [
            row["name"],
            published_cell(row),
            "" if blind is None else _size(blind, unit, ahead=direction.blind_ahead if direction else None),
            blind_error,
            _size(row["ours"], unit, ahead=direction.ahead if direction else None),
            error_cell(row["error"], row["ratio"], None),
            verdict(row, search, direction),
            provenance_cell(row),
        ]
        text += _line(cells)
    for one in missing:
        words = [one.verdict, NOT_SEARCHED if search else ""]
        blind_text = f"none: {one.blind_ahead} ahead at the largest size" if one.blind_ahead else ""
        fails = {True: "holds", False: "fails", None: ""}[one.blind_holds]
        found = "; ".join(filter(None, words))
        text += _line([one.name, one.says, blind_text, fails, one.ours, "", found, one.provenance])
    return text


def _line(cells: Sequence[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |\n".replace("|  |", "| |").replace("|  |", "| |")


def _size(value: float, unit: str, *, ahead: str | None) -> str:
    """Return a number, or the side that is ahead at every size if there is no crossover."""
    return f"none: {ahead} ahead from {number(value, unit)} on" if ahead else number(value, unit)


SLOWEST = ("cckit-fig6", "cckit-table2", "proxics-bulk", "proxics-uts", "proxics-sum", "cord-fig7", "cckit-fig9")
"""Experiments that start first, because they take longest: otherwise one would remain alone at the end."""
PROCESSES = 2
"""Experiments that run at the same time, each on one thread."""


def _names() -> list[str]:
    """Return the experiments with published results, the slowest ones first."""
    names = [name for name in EXPERIMENTS if name not in UNPUBLISHED]
    return sorted(names, key=lambda name: SLOWEST.index(name) if name in SLOWEST else len(SLOWEST))


def run(conditions: Conditions, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Run every experiment with a published value, and return our numbers that have one, with their keys."""
    published = Published.shipped()
    conditions = conditions._replace(keys=published.keys())
    results = _in_processes(_run_experiment, _names() if names is None else names, conditions)
    rows = [row for name in EXPERIMENTS if name in results for row in results[name]]
    keys = {row["key"] for name in results for row in _compare(name, rows, published)}
    return [row for row in rows if row["key"] in keys]


def updated(earlier: dict[str, Any], present: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the result `present` of these experiments, with the other experiments' rows of an earlier record.

    Raises:
        ValueError: the model has changed for another experiment since.

    """
    before = earlier["result"]
    if isinstance(before, list):
        raise ValueError(f"the record of commit {_short_commit(earlier['commit'])} has no fingerprint")  # noqa: TRY004
    stale = [name for name in affected(before["fingerprint"], present["fingerprint"]) if name not in names]
    if stale:
        text = f"a change since commit {_short_commit(earlier['commit'])} affects these experiments too: "
        raise ValueError(text + ", ".join(stale))
    recorded = {row["experiment"] for row in before["rows"]}
    if missing := [name for name in _names() if name not in {*names, *recorded}]:
        text = f"the record of commit {_short_commit(earlier['commit'])} lacks these experiments: "
        raise ValueError(text + ", ".join(missing))
    rows = [row for row in before["rows"] if row["experiment"] not in names] + present.get("rows", [])
    kept = dict.fromkeys(recorded, earlier["commit"]) | before.get("earlier", {})
    return {
        "rows": [row for name in EXPERIMENTS for row in rows if row["experiment"] == name],
        "fingerprint": present["fingerprint"],
        "earlier": {name: kept[name] for name in EXPERIMENTS if name in kept and name not in names},
    }


def _run_experiment(name: str, conditions: Conditions) -> list[dict[str, Any]]:
    """Return the numbers of an experiment, as they are recorded."""
    return [
        {
            "experiment": name,
            "name": ours.name,
            "key": ours.key,
            "ours": ours.value,
            "unit": ours.unit,
            "steady": ours.steady,
        }
        for ours in EXPERIMENTS[name].run(conditions)
    ]


def search(conditions: Conditions, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Search for settings that meet the published values, and return the results by experiment and key."""
    selected = [name for name in (_names() if names is None else names) if EXPERIMENTS[name].has_assumptions]
    results = _in_processes(_search_experiment, selected, conditions)
    return {name: results[name] for name in EXPERIMENTS if name in results}


def _search_experiment(name: str, conditions: Conditions) -> dict[str, Any]:
    """Return the results of the searches of an experiment, as they are recorded."""
    experiment = EXPERIMENTS[name]
    published = Published.shipped()
    smaller = reduced(experiment, conditions)
    ours = experiment.run(smaller._replace(keys=published.keys()))
    result = study(name, experiment, ours, published, conditions)
    # A smaller simulation that is not steady predicts nothing.
    keys = {row.name: row.key for row in ours if row.steady is not False}
    spans = {span.name: span for span in result.spans}
    return {
        "fingerprint": fingerprint([name]),
        "size": experiment.limited(smaller.accesses) if experiment.limited and smaller.accesses else "",
        "seed": result.seed,
        "budget": result.budget,
        "evaluated": result.evaluated,
        "failed": result.failed,
        "omitted": {row.key: "not steady" for row in ours if row.steady is False}
        | {row.key: "held" for row in ours if row.name in result.held},
        "reaches": {
            keys[reach.name]: {
                "is_met": reach.is_met,
                "target": reach.target,
                "ours": spans[reach.name].ours,
                "value": reach.value,
                "settings": {**reach.settings, **reach.held},
                "other": reach.other,
                "deciding": deciding(spans[reach.name]),
            }
            for reach in result.reaches
            if reach.name in keys
        },
    }


def _in_processes(
    function: Callable[[str, Conditions], Any], names: Sequence[str], conditions: Conditions
) -> dict[str, Any]:
    """Apply a function to each experiment, in as many processes as `PROCESSES`, and print the progress.

    Results do not depend on the order in which experiments end.
    """
    results = {}
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(function, name, conditions._replace(threads=1)): name for name in names}
        for completed, future in enumerate(as_completed(futures), 1):
            name = futures[future]
            results[name] = future.result()
            sys.stderr.write(f"{completed} of {len(names)}: {name}\n")
            sys.stderr.flush()
    return results


SEARCH_RECORD = "sensitivity.jsonl"
"""File beside the records of `--run` with those of `--search`."""


def last_record(file: Path) -> dict[str, Any]:
    """Return the last record of a file."""
    record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8").splitlines()[-1])
    return record


def last_searches(file: Path) -> dict[str, Any]:
    """Return the last search of each experiment in a file of records, and the commit that recorded it."""
    records: list[dict[str, Any]] = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    last = {name: record for record in records for name in record["result"]}
    names = [name for name in EXPERIMENTS if name in last]
    return {
        "commits": {name: last[name]["commit"] for name in names},
        "result": {name: last[name]["result"][name] for name in names},
    }


def page_of(file: Path, published: Published) -> str:
    """Write the page from the last record of a file, and the last searches beside it."""
    searches = file.with_name(SEARCH_RECORD)
    return page(last_record(file), published, last_searches(searches) if searches.exists() else None)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command line."""
    parser = argparse.ArgumentParser(prog="python -m cohkit.fidelity", description=(__doc__ or "").splitlines()[0])
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument(
        "--run", action="store_true", help="run every experiment at full size; print our numbers and the fingerprint"
    )
    mode.add_argument(
        "--search", action="store_true", help="search for settings inside the ranges that meet the published values"
    )
    mode.add_argument("--fingerprint", action="store_true", help="print the fingerprint of the model")
    mode.add_argument("records", nargs="?", help="print the page from the last record of this file")
    parser.add_argument("--only", nargs="+", choices=_names(), help="with `--run` or `--search`: these experiments")
    parser.add_argument(
        "--update", metavar="RECORDS", help="with `--run --only`: take the other rows from the last record of this file"
    )
    options = parser.parse_args(arguments)
    if options.update and not (options.run and options.only):
        parser.error("--update needs --run and --only")
    if options.run:
        result: dict[str, Any] = {"fingerprint": fingerprint()}
        earlier = last_record(Path(options.update)) if options.update else None
        try:
            # Reject an update before the long runs.
            if earlier:
                updated(earlier, result, options.only)
        except ValueError as error:
            sys.exit(f"error: {error}")
        result["rows"] = run(Conditions(), options.only)
        _print(updated(earlier, result, options.only) if earlier else result)
    elif options.search:
        _print(search(Conditions(), options.only))
    elif options.fingerprint:
        _print(fingerprint())
    else:
        sys.stdout.write(page_of(Path(options.records), Published.shipped()))


def _print(value: object) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
