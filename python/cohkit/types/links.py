"""Rates of links."""

from typing import Literal

from cohkit.results import Record, Records


class LinkStep(Record):
    """Rate that remains after one layer of a link, per direction.

    Attributes:
        name: name of the layer.

    """

    name: str
    bytes_per_second: float


class LinkData(Record):
    """Data rate of one kind of traffic over a link, per direction.

    Attributes:
        name: kind of traffic.
        both_directions: true if the traffic goes in both directions at a time.
        formula_bytes_per_second: rate of one direction by the formula.
        simulated_bytes_per_second: rate between the two simulated ends.
        replayed_percent: units (flits, packets or blocks) that were replayed after an error, in percent of all units.

    """

    name: str
    both_directions: bool
    formula_bytes_per_second: float
    simulated_bytes_per_second: float
    replayed_percent: float


class LinkTransfers(Record):
    """DMA transfers of one size in one direction: latency of a single transfer, and throughput of many.

    Attributes:
        latency_ns: latency of a single transfer.
        bytes_per_second: throughput with `dma.queue` transfers at a time, 32 by default.

    """

    latency_ns: float
    bytes_per_second: float


DmaEngine = Literal["descriptors", "registers", "device"]
"""Start and end of DMA transfers."""


class LinkDmaQuantity(Record):
    """Quantity of DMA transfers, with its plausible range.

    Attributes:
        name: name of the quantity, such as `dma.start`.
        value, low, high: value in use and ends of the range, with their unit.
        continuous: true for a time, false for a count or a number of bytes.
        origin: source of the value.

    """

    name: str
    value: str
    low: str
    high: str
    continuous: bool
    origin: str


class LinkDma(Record):
    """DMA transfers of one size by one engine, in both directions."""

    engine: DmaEngine
    to_device: LinkTransfers
    to_host: LinkTransfers
    quantities: Records[LinkDmaQuantity]


class LinkRates(Record):
    """Rates of a link, from :func:`cohkit.link`. `dma` is `None` unless requested.

    Attributes:
        lanes, payload, delay_ns, bit_errors, seed: the arguments, including defaults.
        steps: remaining rate after each layer, from the wires upward.
        data: one entry for each kind of traffic, first in one direction and then in both.

    """

    link: str
    lanes: int
    payload: int
    delay_ns: int
    bit_errors: float
    seed: int
    steps: Records[LinkStep]
    data: Records[LinkData]
    dma: LinkDma | None
