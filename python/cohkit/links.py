"""Rates of links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit import _cohkit, types
from cohkit.errors import InputError, call
from cohkit.results import load

if TYPE_CHECKING:
    from collections.abc import Mapping


def link(  # noqa: PLR0913 -- each is a keyword
    name: str,
    *,
    lanes: int | None = None,
    payload: int | None = None,
    delay_ns: int = 50,
    bit_errors: float = 0.0,
    seed: int = 0,
    dma: int | None = None,
    dma_engine: types.DmaEngine | None = None,
    dma_settings: Mapping[str, str | int] | None = None,
) -> types.LinkRates:
    """Return the rate after each layer of a link, and its data rate by formula and by driving two ends.

    Args:
        name: `eci`, `pcie3`, `pcie4`, `pcie5`, `ccix`, `cxl68` or `cxl256`.
        lanes: number of active lanes; all if not given.
        payload: maximum bytes of data in a message or packet; the usual size if not given.
        delay_ns: one-way delay in nanoseconds.
        bit_errors: bit error rate, per bit.
        seed: seed of the bit errors.
        dma: bytes per DMA transfer over PCIe, to measure these as well.
        dma_engine: start and end of DMA transfers: `descriptors` if not given, `registers` or `device`.
        dma_settings: quantities of DMA transfers to set, such as `{"dma.start": "200ns"}`.

    Raises:
        InputError: the link does not support the configuration.

    >>> import cohkit
    >>> eci = cohkit.link("eci")
    >>> [round(step["bytes_per_second"] / 2**30, 2) for step in eci["steps"]]
    [14.41, 13.76, 13.73, 12.02]
    >>> round(eci["data"][0]["simulated_bytes_per_second"] / 2**30, 2)
    11.31

    """
    for option, value in {"lanes": lanes, "payload": payload, "delay_ns": delay_ns, "seed": seed, "dma": dma}.items():
        if value is not None and not 0 <= value < 2**64:
            raise InputError(f"`{option}` is a number from 0 to 2**64 - 1, not {value}")
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
        dma_engine=dma_engine,
        dma_settings=[f"{key}={value}" for key, value in (dma_settings or {}).items()],
    )
    return types.LinkRates.of(load(rates))
