"""What one gets of a link."""

from __future__ import annotations

from cohkit import _cohkit, types
from cohkit.errors import InputError, call
from cohkit.results import load


def link(  # noqa: PLR0913 -- each is a keyword
    name: str,
    *,
    lanes: int | None = None,
    payload: int | None = None,
    delay_ns: int = 50,
    bit_errors: float = 0.0,
    seed: int = 0,
    dma: int | None = None,
) -> types.LinkRates:
    """Tell what each layer of a link leaves of its rate, and its data by formula and by driving two ends.

    Args:
        name: `eci`, `pcie3`, `pcie4`, `pcie5`, `ccix`, `cxl68` or `cxl256`.
        lanes: those that work; all if not given.
        payload: most bytes of data in a message or packet; the usual size if not given.
        delay_ns: nanoseconds of one way.
        bit_errors: wrong bits per bit, at random.
        seed: what these follow from.
        dma: bytes of transfers by DMA over PCIe that are to be told of, too.

    Raises:
        InputError: the link does not have what is asked.

    >>> import cohkit
    >>> eci = cohkit.link("eci")
    >>> [round(step["bytes_per_second"] / 2**30, 2) for step in eci["steps"]]
    [14.41, 13.76, 13.73, 12.02]
    >>> round(eci["data"][0]["driven_bytes_per_second"] / 2**30, 2)
    11.31

    """
    for what, value in {"lanes": lanes, "payload": payload, "delay_ns": delay_ns, "seed": seed, "dma": dma}.items():
        if value is not None and not 0 <= value < 2**64:
            raise InputError(f"`{what}` is a number from 0 to 2**64 - 1, not {value}")
    rates = call(
        "",
        _cohkit.link,
        name,
        lanes=lanes,
        payload=payload,
        delay_ns=delay_ns,
        bit_errors=bit_errors,
        seed=seed,
        dma=dma,
    )
    return types.LinkRates.of(load(rates))
