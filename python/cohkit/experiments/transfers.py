"""Transfers by DMA over PCIe, and throughputs of transfers that follow one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from cohkit import units
from cohkit.experiments.study import Range, run_once, settings_of
from cohkit.links import link
from cohkit.published import Measurement

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cohkit.experiments.experiment import Conditions
    from cohkit.experiments.study import Study
    from cohkit.types import DmaEngine, LinkDmaQuantity, LinkRates

DMA_NS = 150
"""One-way delay of PCIe in nanoseconds, with which the latency of host memory was fitted."""
ENGINES: dict[DmaEngine, str] = {
    "registers": "DMA by registers",
    "descriptors": "DMA by descriptors",
    "device": "DMA from the device",
}
"""DMA engines of `cohkit link`, and their labels in names of rows."""
PART = "dma"
"""Name of the DMA engine and its link in names of assumed quantities."""
DELAY, PAYLOAD, ENGINE = "delay", "payload", "engine"
DELAYS = ("100ns", "200ns")
"""Range of the one-way delay: a third less and more, assumed."""
PAYLOADS = ("128B", "512B")
"""Range of the bytes of data in a packet, which the devices of a bus agree on; 256 if not set. The bounds are the
neighbouring sizes of PCIe."""
SINGLE = "throughput, one at a time"
"""Measure of transfers that follow one another: bytes of a transfer over its latency."""
NOTE = f"""\
DMA: 16 lanes of PCIe Gen3, {DMA_NS} ns one way. The host starts a transfer by writes to four registers and is notified
of its end by an interrupt; or it starts it by a doorbell and a descriptor and polls a status word; or logic on the
device starts it, and its last byte ends it (`cohkit link pcie3 --dma --dma-engine`). Throughput of DMA: 32 outstanding
transfers (`dma.queue`).
"""
"""Description of DMA transfers in notes of experiments."""


def dma_rows(
    key: str,
    directions: Iterable[str],
    sizes: Sequence[int],
    conditions: Conditions,
    assumed_engine: DmaEngine | None = None,
) -> list[Measurement]:
    """Return latency (ns) and throughput (GiB/s) of DMA transfers of these sizes in bytes, for each engine.

    Directions are those seen from the device: `reads` moves data to the device. If no source names the engine,
    `assumed_engine` is the one whose rows are compared; it is an assumption, with the other engines as its range.
    """
    settings = settings_of(PART, conditions.settings)
    quantities = {f"{PART}.{name}": value for name, value in settings.items() if name not in (DELAY, PAYLOAD, ENGINE)}
    if conditions.study:
        for quantity in _quantities(conditions.study):
            ends = [end for end in (quantity.low, quantity.high) if end != quantity.value]
            whole = Range(quantity.value, quantity.low, quantity.high)
            name = quantity.name.removeprefix(f"{PART}.")
            conditions.study.assume(PART, name, ends, is_discrete=not quantity.continuous, whole=whole)
        conditions.study.assume(PART, DELAY, DELAYS, is_discrete=False, whole=Range(f"{DMA_NS}ns", *DELAYS))
        conditions.study.assume(PART, PAYLOAD, PAYLOADS, is_discrete=True)
        if assumed_engine:
            others = [engine for engine in ENGINES if engine != assumed_engine]
            conditions.study.assume(PART, ENGINE, others, is_discrete=True)
    delay_ns = round(units.quantity(settings.get(DELAY, f"{DMA_NS}ns"), key=DELAY).to("ns"))
    payload = int(settings[PAYLOAD].removesuffix("B")) if PAYLOAD in settings else None

    def run(pending: list[tuple[int, int | None, int, DmaEngine]]) -> list[LinkRates]:
        return [
            link("pcie3", delay_ns=delay, payload=packet, dma=size, dma_engine=engine, dma_settings=quantities)
            for delay, packet, size, engine in pending
        ]

    ours = []
    for engine, label in ENGINES.items():
        used_engine = cast("DmaEngine", settings.get(ENGINE, engine)) if engine == assumed_engine else engine
        requests = [(delay_ns, payload, size, used_engine) for size in sizes]
        rates = run_once(requests, run, conditions.study, f"dma {sorted(quantities.items())}")
        for direction in directions:
            for size, rate in zip(sizes, rates, strict=True):
                both_directions = rate["dma"]
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


def _quantities(study: Study) -> Sequence[LinkDmaQuantity]:
    """Return the quantities of DMA transfers, which do not depend on the transfer."""

    def read() -> Sequence[LinkDmaQuantity]:
        transfers = link("pcie3", dma=1)["dma"]
        assert transfers is not None  # noqa: S101 -- it was requested
        quantities: Sequence[LinkDmaQuantity] = transfers["quantities"]
        return quantities

    return study.once("quantities of DMA", read)


def with_latencies(key: str, conditions: Conditions) -> Conditions:
    """Return conditions that also need the latencies from which needed throughputs of `single_rows` follow."""
    if conditions.keys is None:
        return conditions
    single = f"{key}.single."
    latencies = {f"{key}.latency.{one.removeprefix(single)}" for one in conditions.keys if one.startswith(single)}
    return conditions._replace(keys=conditions.keys | latencies)


def single_rows(key: str, latencies: Iterable[Measurement]) -> list[Measurement]:
    """Return the throughputs in GiB/s of transfers one at a time, from rows `SIZE, ..., latency` in ns."""
    ours = []
    for row in latencies:
        size = int(row.name.partition(", ")[0])
        name = f"{row.name.removesuffix('latency')}{SINGLE}"
        row_key = row.key.replace(f"{key}.latency.", f"{key}.single.", 1)
        ours.append(Measurement(name, size / row.value * 1e9 / 2**30, "GiB/s", row_key, steady=True, cut=row.cut))
    return ours
