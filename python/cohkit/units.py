"""Quantities: a number with its unit, as texts write them (`"268ns"`, `"19.6GiB/s"`)."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from cohkit.errors import InputError, suggestion

_PREFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_SIZES = {f"{prefix}B": scale * 8 for prefix, scale in (_PREFIXES | _BINARY).items()}
_BITS = {f"{prefix}{bit}": scale for prefix, scale in _PREFIXES.items() for bit in ("b", "bit")}

# Dimension of each unit, and its size in the dimension's smallest unit.
_UNITS: dict[str, tuple[str, float]] = {
    **{
        unit: ("time", scale) for unit, scale in (("ps", 1), ("ns", 10**3), ("us", 10**6), ("ms", 10**9), ("s", 10**12))
    },
    **{f"{prefix}Hz": ("frequency", scale) for prefix, scale in _PREFIXES.items()},
    **{unit: ("size", scale) for unit, scale in (_SIZES | _BITS).items()},
    **{f"{unit}/s": ("bandwidth", scale) for unit, scale in (_SIZES | _BITS).items()},
    **{f"{prefix}m2": ("area", scale) for prefix, scale in (("u", 1), ("m", 10**6))},
    **{f"{prefix}W": ("power", scale) for prefix, scale in (("n", 1), ("u", 10**3), ("m", 10**6), ("", 10**9))},
    **{f"{prefix}J": ("energy", scale) for prefix, scale in (("p", 1), ("n", 10**3), ("u", 10**6))},
    # Events per second.
    **{f"{prefix}/s": ("rate", scale) for prefix, scale in _PREFIXES.items()},
}
_TEXT = re.compile(r"\s*([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(\S*)\s*", re.ASCII)
_USUAL = {
    "time": "ns",
    "frequency": "MHz",
    "size": "MiB",
    "bandwidth": "GiB/s",
    "rate": "M/s",
    "area": "mm2",
    "power": "mW",
    "energy": "pJ",
}


class Quantity(NamedTuple):
    """A number with its unit."""

    value: float
    unit: str

    def to(self, unit: str) -> float:
        """Convert the number to another unit of the same dimension.

        Raises:
            InputError: the unit does not exist, or has another dimension.

        >>> from cohkit.units import Quantity
        >>> Quantity(1.5, "us").to("ns")
        1500.0

        """
        (dimension, scale), (other, other_scale) = _lookup(self.unit), _lookup(unit)
        if dimension != other:
            raise InputError(f"{self.value:g} {self.unit} is a {dimension}, where a {other} such as 1 {unit} is needed")
        return self.value * scale / other_scale


def format_quantity(value: float | str | Quantity, *, unit: str = "") -> str:
    """Format a value as an option; a number without a unit gets this one.

    >>> from cohkit.units import Quantity, format_quantity
    >>> format_quantity(1 << 20, unit="B"), format_quantity("1MiB", unit="B"), format_quantity(Quantity(2.0, "ms"))
    ('1048576B', '1MiB', '2ms')

    """
    if isinstance(value, str):
        return value
    value, unit = value if isinstance(value, Quantity) else (value, unit)
    # Integral values are written without a decimal point, because some quantities have no fractions.
    return f"{int(value) if float(value).is_integer() else value}{unit}"


def _lookup(unit: str) -> tuple[str, float]:
    try:
        return _UNITS[unit]
    except KeyError:
        raise InputError(
            f"there is no unit `{unit}`; {suggestion(unit, _UNITS)}there are {', '.join(_UNITS)}"
        ) from None


def quantity(text: object, *, key: str) -> Quantity:
    """Parse the quantity of `key`.

    Raises:
        InputError: the value is not a number with a unit; the message names the key.

    >>> from cohkit.units import quantity
    >>> quantity("268ns", key="latency")
    Quantity(value=268.0, unit='ns')
    >>> quantity(268, key="latency")
    Traceback (most recent call last):
    ...
    cohkit.errors.InputError: latency: 268 has no unit: write it as a string such as "268ns"

    """
    if isinstance(text, int | float) and not isinstance(text, bool):
        raise InputError(f'{key}: {text} has no unit: write it as a string such as "{text}{_USUAL["time"]}"')
    match = _TEXT.fullmatch(text) if isinstance(text, str) else None
    number, unit = match.groups() if match else ("inf", "")
    if not math.isfinite(float(number)):
        raise InputError(f'{key}: {text!r} is not a number with a unit, such as "268ns"')
    if not unit:
        examples = ", ".join(f'"{number}{usual}"' for usual in _USUAL.values())
        raise InputError(f"{key}: {text!r} has no unit: write it as {examples}, ...")
    try:
        _lookup(unit)
    except InputError as error:
        raise InputError(f"{key}: {error}") from None
    return Quantity(float(number), unit)
