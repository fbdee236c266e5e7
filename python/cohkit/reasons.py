"""Reasons for differences between published results and ours, by the first parts of their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_ECI_ENGINE = "the engine that moves the DMA, and whether the published size is of reads or of writes"
_CCIX_DMA = (
    "missing: DMA transfers in flight, and the time of the DMA engine's driver, which the model leaves out. The card "
    "is no reason: in the model, both cards have the same number"
)
REASONS: Mapping[str, str] = {
    "enzian.state_machine": "the constructed home serves more requests than the published one; no quantity changes it",
    "cord.chip": "a bank of CACTI has tags, and wires and drivers to its edge, which the model leaves out",
    "thunderx1_2s_eci_note.throughput": "missing: number of cores, distance of their hints, and pattern of the \
measured transfers",
    "eci_link.crossover": f"missing: {_ECI_ENGINE}",
    "ccix_exp1.throughput_over_dma": _CCIX_DMA,
    "cord.sensitivity.time": "missing: cost of the measured message passing at a fan-out of 7; in ours, a release \
waits for no store",
    "cord.sensitivity.traffic": "missing: bytes of headers for each kind of message; in ours, all have one size",
    "proxics.pipes": "a fault of our program, and no missing fact: a trial program on the unchanged machine reached \
22.5 clocks of the core for a line, and ours takes {proxics.pipes.clocks_of_line} in a long transfer, and more in the \
short ones of the search",
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
_LINES = "how often the measured programs read and write a line while a cache holds it; and " + _PROGRAMS
MISSING_FACTS: Mapping[str, str] = {
    "enzian.throughput": "page size and translations of the measured reads; here no access is translated, and random \
lines spread over DRAM's banks as well as sequential ones",
    "enzian.throughput.dc_bram.sequential_read": "whether the width converters, which limit a slice to five \
outstanding reads, lie before the measured BRAM; with them, two slices read at most 13.7 GiB/s, and figure 5 has \
19.6 GiB/s of an FPGA home",
    "enzian.read_latency": "map of addresses to the measured DRAM's banks and rows, and translations; the order is \
that of two latencies that differ by 1 %, less than the error of the fit",
    "enzian.invalidation.dc_bram.clean": "the share of lines that had been evicted before; ours are of one kind, and \
no part of the path differs between the machines",
    "enzian.invalidation": "whether the link's bandwidth of CCKit, figure 5 (19.6 GiB/s), counts headers",
    "enzian.shared_table": "cost of an uncontended lock with the FPGA as home and with a second CPU; in ours, all rows \
stay in the CPU's cache, so that the other side has no effect",
    "eci_link.crossover": _ECI_ENGINE,
    "ccix_exp1.crossover": "latencies of the host's links over CCIX and PCIe, which are assumed; with an engine that \
the device starts itself, the curves cross between 1 and 4 KiB",
    "cord.acknowledgements.traffic": "bytes of headers for each kind of message; and " + _PROGRAMS,
    "cord.acknowledgements.time": _HIDDEN,
    "cord.programs.time.CXL.pr.wb": _LINES,
    "cord.programs.traffic.CXL.pr.wb": _LINES,
    "cord.programs.traffic.CXL.sssp.wb": _LINES,
    "cord.programs.time": _HIDDEN,
    "cord.programs.traffic": _PROGRAMS,
    "cord.sensitivity.time": "cost of the measured message passing at a fan-out of 7; in ours, stores are posted and \
a release waits for none, so that it is not slower than CORD",
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

_UTS_HOST = "not known in full; missing: the prefetch distance, pages and cache hits of the measured host. Ours \
searches trees that are scaled down with the caches"
DEVIATIONS: Mapping[str, str] = {
    **{key: f"missing: {fact}" for key, fact in MISSING_FACTS.items()},
    **REASONS,
    "enzian.prefetcher": "missing: the number of lines that each client has in flight. Ours prefetch 8 lines ahead \
(assumed)",
    "proxics.sum.core": "missing: the measured core's loop. 57 M/s are 5.3 clocks of 300 MHz for a row of any size, so \
the loop limits it, and not memory; ours is a loop of our own, which takes fewer clocks for narrow rows, and waits for \
memory for wide ones",
    "enzian.rpc_payload": "not known: a line takes 610 ns as published (128 B at 200 MiB/s), and less in ours, \
whose throughput is {enzian.rpc_payload.throughput.lines.best}",
    "ccix_exp1.latency_over_dma": "missing: latencies of the host's links over CCIX and PCIe. Both are assumed, and \
other ones inside their ranges meet the ratio",
    "cord.release_bytes": "the programs are our own: they release after the published bytes, and also for barriers and \
flags, whose number is not published",
    "proxics.pipes.bytes.registers": "missing: times of a register's access, and whether accesses of several cores are \
served one at a time; both are assumed",
    "proxics.uts.hints_over_none": _UTS_HOST,
    "proxics.uts.four_host_cores_over_one_core_beside": _UTS_HOST,
    "proxics.uts.local_over_one_core_beside": "missing: instructions of the measured search for each node, on the host \
and on the core; ours are those of our program",
    "proxics.uts.four_cores_beside_over_one": "missing: instructions of the measured search for each node and for each \
message between cores, and how soon a core takes the messages that it has received",
}
"""Reasons for numbers that are off by more than the largest limit of `WITHIN`, by the first parts of their keys."""
