"""Reasons for differences between published results and ours, by the first parts of their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_CCIX_DMA = (
    "the lines that the measured card has in flight, and on the side of DMA the transfers in flight and the time of "
    "the engine's driver, which the model leaves out. The card is no reason: both cards have the same number in ours"
)
_PIPES = (
    "no fact is missing: the loop of our program takes {proxics.pipes.clocks_of_line} clocks of the core for a line in "
    "a long transfer, and the start of a transfer adds to them in a short one"
)
REASONS: Mapping[str, str] = {
    "enzian.state_machine": "the constructed home serves more requests than the published one; no quantity changes it",
    "cord.chip": "a bank of CACTI has tags, and wires and drivers to its edge, which the model leaves out",
    "thunderx1_2s_eci_note.throughput": "missing: number of cores, distance of their prefetches, and pattern of the \
measured transfers",
    "eci_link.crossover.reads": "missing: the exact size, of which the note says *about 2 KiB*, and the engine that \
moves the DMA",
    "cord.sensitivity.traffic": "missing: bytes of headers for each kind of message; in ours, all have one size",
    "proxics.pipes.bytes.lines.best": _PIPES,
    "proxics.pipes.clocks_of_line": _PIPES,
}
"""Reasons for values that no setting meets, by the first parts of their keys."""
UNVARIED: Mapping[str, str] = {
    "cord.release_bytes": "messages of the programs are assumed, and have no ranges",
    "cord.acknowledgements": "messages of the programs are assumed, and have no ranges",
    "cord.programs": "messages of the programs are assumed, and have no ranges",
    "proxics.pagerank.lines_of_1000": "a property of the generated graphs, on which no quantity of the machine has an \
effect",
}
"""Values that depend on assumptions without ranges, by the first parts of their keys, with the reason."""
NO_EFFECT = "no quantity with a range has an effect"
UNKNOWN_REASON = "not known yet"

_PROGRAMS = "the programs' sequences of stores and computations: the article prints sizes and fan-outs, and ours are \
programs of our own with these"
_HIDDEN = "the number of threads of a host, whose work hides the latency of stores; and " + _PROGRAMS
_RELEASE = "stores that a release of the measured message passing waits for; in ours, a release waits for nothing"
_LINES = "how often the measured programs read and write a line while a cache holds it; and " + _PROGRAMS
MISSING_FACTS: Mapping[str, str] = {
    "enzian.throughput": "page size and translations of the measured reads; here no access is translated, and random \
lines spread over DRAM's banks as well as sequential ones",
    "enzian.throughput.dc_bram.sequential_read": "whether the width converters, which limit a slice to five \
outstanding reads, lie before the measured BRAM; with them and the fitted 87 ns to memory and back, two slices read at \
most 13.7 GiB/s, and figure 5 has 19.6 GiB/s of an FPGA home",
    "enzian.throughput.dc_bram.random_read": "page size and translations of the measured reads; here no access is \
translated, and BRAM takes the same time for every line",
    "enzian.read_latency": "map of addresses to the measured DRAM's banks and rows, and translations; the order is \
that of two latencies that differ by 1 %, less than the error of the fit",
    "enzian.invalidation.dc_bram.clean": "the share of lines that had been evicted before; ours are of one kind, and \
no part of the path differs between the machines",
    "enzian.invalidation": "how 150 M/s was derived: 150 M x 128 B are 17.9 GiB/s, with headers of 8 B 19.0; ours \
with DC+BRAM reaches the link's 19.6 GiB/s with headers",
    "enzian.shared_table": "cost of an uncontended lock with the FPGA as home and with a second CPU; in ours, all rows \
stay in the CPU's cache, so that the other side has no effect",
    "eci_link.crossover.writes": "whether the published size is of reads or of writes. The engine that moves the DMA \
is not published either, but none of the three engines meets the size for writes",
    "ccix_exp1.crossover": "latencies of the host's links over CCIX and PCIe, and of the interrupt that ends a \
transfer; all are assumed. The article's engine is that of TaPaSCo, which the host starts by registers",
    "ccix_exp1.throughput_over_dma": _CCIX_DMA,
    "cord.acknowledgements.traffic": "bytes of headers for each kind of message; and " + _PROGRAMS,
    "cord.acknowledgements.time": _PROGRAMS,
    "cord.acknowledgements.time.CXL.pad": _HIDDEN,
    "cord.acknowledgements.time.CXL.tqh": _HIDDEN,
    **{f"cord.programs.time.CXL.{name}.mp": _RELEASE for name in ("pr", "sssp", "hsti", "cr", "mean")},
    "cord.programs.time_apart": _RELEASE,
    "cord.programs.time.CXL.pr.wb": _LINES,
    "cord.programs.traffic.CXL.pr.wb": _LINES,
    "cord.programs.traffic.CXL.sssp.wb": _LINES,
    "cord.programs.time": _PROGRAMS,
    "cord.programs.traffic": _PROGRAMS,
    "cord.sensitivity.time.CXL.fan-out, sync 4 KiB.7.mp": "cost of the measured message passing at a fan-out of 7; in \
ours, stores are posted and a release waits for none, so that it is not slower than CORD",
    "cord.chip.energy": "none: the model omits tags, and wires and drivers to the edge of a bank, which CACTI counts",
    "proxics.bulk.crossover": "fixed times of a small operation, which are not published one by one: the message with \
addresses, the core's start, and the CPU's flush and last read",
    "proxics.sum.core_over_host": "cause of the measured host's rate at 128 B: 57 M/s over 1.39 are 41 million rows, \
or 5.2 GB/s, and the same host reads 9.1 GB/s in table 1; ours reads {proxics.host.external_bandwidth}",
    "proxics.bulk.core_over_host.set": "whether the host's `memset` reads a line before it overwrites it, as ours does",
    "proxics.pipes.lines_over_largest": "number of lines at the published maximum, and the share that *nearly* means",
    "proxics.uts.local_over_far_memory": "instructions of the measured search for each node; ours are those of our \
program",
}
"""Facts that are not published, by the first parts of the keys of orders and bounds that do not hold without them."""

_UTS_HOST = "the prefetch distance, pages and cache hits of the measured host. Ours searches trees that are scaled \
down with the caches"
DEVIATIONS: Mapping[str, str] = {
    **{key: f"missing: {fact}" for key, fact in MISSING_FACTS.items()},
    **REASONS,
    "enzian.prefetcher": "missing: the number of lines that each client has in flight. Ours prefetch 8 lines ahead \
(assumed)",
    "proxics.sum.core": "missing: the measured core's loop. 57 M/s are 5.3 clocks of 300 MHz for a row of any size. \
Ours also spends about 60 clocks for each transfer of 64 lines, so that it takes 4.55 clocks for a row of 8 B \
and 5.43 for one of 128 B",
    "enzian.rpc_payload": "not known: a line takes 610 ns as published (128 B at 200 MiB/s), and less in ours, \
whose throughput is {enzian.rpc_payload.throughput.lines.best}",
    "ccix_exp1.latency_over_dma": "missing: latencies of the host's links over CCIX and PCIe. Both are assumed, and \
other ones inside their ranges meet the ratio",
    "cord.release_bytes": "the programs are our own: they release after the published bytes, and also for barriers and \
flags, whose number is not published",
    "proxics.pipes.bytes.registers": "missing: times of a register's access, and whether accesses of several cores are \
served one at a time; both are assumed",
    "proxics.uts.hints_over_none": f"not known in full; missing: {_UTS_HOST}",
    "proxics.uts.four_host_cores_over_one_core_beside": f"missing: whether the four measured host cores prefetch; and \
{_UTS_HOST}",
    "proxics.uts.four_host_cores_without_prefetches_over_one_core_beside": "missing: whether the four measured host \
cores prefetch; and the instructions of the measured search for each node, on the host and on the core",
    "proxics.uts.local_over_one_core_beside": "missing: instructions of the measured search for each node, on the host \
and on the core; ours are those of our program",
    "proxics.uts.four_cores_beside_over_one": "missing: instructions of the measured search for each node and for each \
message between cores, and how soon a core takes the messages that it has received",
}
"""Reasons for numbers that are off by more than the largest limit of `WITHIN`, by the first parts of their keys."""
ALL_REASONS: Mapping[str, str] = {**DEVIATIONS, **UNVARIED}
"""Reasons for values that no setting meets, by the first parts of their keys: a longer key is more specific."""
