"""Transfers by DMA over PCIe, and throughputs of transfers that follow one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit.links import link
from cohkit.published import Measurement

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cohkit.types import DmaEngine

DMA_NS = 150
"""One-way delay of PCIe in nanoseconds, with which the latency of host memory was fitted."""
ENGINES: dict[DmaEngine, str] = {
    "registers": "DMA by registers",
    "descriptors": "DMA by descriptors",
    "device": "DMA from the device",
}
"""DMA engines of `cohkit link`, and their labels in names of rows."""
SINGLE = "throughput, one at a time"
"""Measure of transfers that follow one another: bytes of a transfer over its latency."""
NOTE = f"""\
DMA: 16 lanes of PCIe Gen3, {DMA_NS} ns one way. The host starts a transfer by writes to four registers, or by a
doorbell and a descriptor, and learns its end by an interrupt or a status word; or logic on the device starts it, and
its last byte ends it (`cohkit link pcie3 --dma --dma-engine`). Throughput of DMA: 32 transfers outstanding.
"""
"""Description of DMA transfers in notes of experiments."""


def dma_rows(key: str, directions: Iterable[str], sizes: Sequence[int]) -> list[Measurement]:
    """Return latency (ns) and throughput (GiB/s) of DMA transfers of these sizes in bytes, for each engine.

    Directions are those seen from the device: `reads` moves data to the device.
    """
    ours = []
    for engine, label in ENGINES.items():
        rates = {size: link("pcie3", delay_ns=DMA_NS, dma=size, dma_engine=engine)["dma"] for size in sizes}
        for direction in directions:
            for size, both_directions in rates.items():
                assert both_directions is not None  # noqa: S101 -- it was requested
                transfers = both_directions["to_device"] if direction == "reads" else both_directions["to_host"]
                for measure, value, unit, steady in (
                    ("latency", transfers["latency_ns"], "ns", None),
                    ("throughput", transfers["bytes_per_second"] / 2**30, "GiB/s", True),
                ):
                    name = f"{size}, {direction}, {label}, {measure}"
                    row_key = f"{key}.{measure}.{direction}.dma_{engine}.{size}"
                    ours.append(Measurement(name, value, unit, row_key, steady=steady))
    return ours


def single_rows(key: str, latencies: Iterable[Measurement]) -> list[Measurement]:
    """Return the throughputs in GiB/s of transfers one at a time, from rows `SIZE, ..., latency` in ns."""
    ours = []
    for row in latencies:
        size = int(row.name.partition(", ")[0])
        name = f"{row.name.removesuffix('latency')}{SINGLE}"
        row_key = row.key.replace(f"{key}.latency.", f"{key}.single.", 1)
        ours.append(Measurement(name, size / row.value * 1e9 / 2**30, "GiB/s", row_key, steady=True, cut=row.cut))
    return ours
