"""Values of an axis: ranges and lists, with their units."""

from __future__ import annotations

import re
from decimal import Decimal

from cohkit.errors import InputError
from cohkit.units import quantity

Value = str | int | bool

_MAX_VALUES = 100_000
_NUMBER = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([A-Za-z/]*)", re.ASCII)


def values(name: str, text: str) -> list[Value]:
    """Parse the values of an axis: a list of values and of ranges `low..high/step` or `low..high*factor`.

    A range uses the unit of its lower bound; its default step is 1 of this unit.

    Raises:
        InputError: a range is malformed, or a value is repeated.

    >>> from cohkit.sweeps.values import values
    >>> values("link.latency", "60ns..140ns/40ns, 1us")
    ['60ns', '100ns', '140ns', '1us']
    >>> values("cores", "1..3, 4..32*2")
    [1, 2, 3, 4, 8, 16, 32]

    """
    parsed: list[Value] = []
    for part in text.split(","):
        parsed += _range(name, part.strip()) if ".." in part else [parse_value(part.strip())]
    return validate_unique(name, parsed)


def validate_unique(name: str, axis_values: list[Value]) -> list[Value]:
    """Reject an axis without values, or with repeated values, whose points would be identical."""
    value_texts = [str(value) for value in axis_values]
    for value in value_texts:
        if not value:
            raise InputError(f"`{name}` has an empty value; values look like `60ns..140ns/20ns` or `1,2,4`")
    if len(set(value_texts)) < len(value_texts):
        repeated = next(value for value in value_texts if value_texts.count(value) > 1)
        raise InputError(f"`{name}` has the value {repeated} twice")
    if not axis_values:
        raise InputError(f"`{name}` has no values; values look like `60ns..140ns/20ns` or `1,2,4`")
    return axis_values


def parse_value(text: str) -> Value:
    """Convert an integer, and leave every other string unchanged."""
    return int(text) if re.fullmatch(r"\d+", text, re.ASCII) else text


def _range(name: str, text: str) -> list[Value]:
    """Return the values of a range such as `60ns..140ns/20ns` (step 1 by default), or `1..64*2` with a factor."""
    ends, operator, step_text = _split_range(text)
    low_text, _, high_text = ends.partition("..")
    low, unit = _number(name, low_text, text)
    high = _convert(name, _number(name, high_text, text), unit)
    step, step_unit = _number(name, step_text, text) if step_text else (Decimal(1), "" if operator == "*" else unit)
    if operator == "*":
        if step_unit or step <= 1 or low <= 0:
            raise InputError(f"`{name}`: `{text}` needs a factor above 1 without a unit, and ends above 0")
    else:
        step = _convert(name, (step, step_unit), unit)
        if step <= 0:
            raise InputError(f"`{name}`: the step of `{text}` has to be above 0")
    if high < low:
        raise InputError(f"`{name}`: `{text}` ends before it begins")
    parsed: list[Value] = []
    value = low
    while value <= high:
        if len(parsed) == _MAX_VALUES:
            raise InputError(f"`{name}`: `{text}` has more than {_MAX_VALUES} values")
        parsed.append(parse_value(f"{value.normalize():f}{unit}"))
        value = value * step if operator == "*" else value + step
    return parsed


def _split_range(text: str) -> tuple[str, str, str]:
    """Split a range into bounds, operator and step; the `/` of a unit such as `GiB/s` is not an operator."""
    match = re.fullmatch(r"(.*?)(?:([/*])\s*([+-]?\d.*))?", text, re.DOTALL)
    ends, operator, step = match.groups() if match else (text, None, None)
    return ends, operator or "/", step or ""


def _number(name: str, text: str, range_text: str) -> tuple[Decimal, str]:
    match = _NUMBER.fullmatch(text.strip())
    if not match:
        raise InputError(
            f"`{name}`: `{range_text}` is no range such as `60ns..140ns/20ns`: `{text.strip()}` is no number"
        )
    return Decimal(match[1]), match[2]


def _convert(name: str, number: tuple[Decimal, str], unit: str) -> Decimal:
    value, own_unit = number
    if own_unit == unit:
        return value
    if not own_unit or not unit:
        raise InputError(f"`{name}`: use a unit on all numbers of a range or none: {value:f}{own_unit} beside `{unit}`")
    try:
        factor = quantity(f"1{own_unit}", key=name).to(unit)
    except InputError as error:
        raise InputError(f"`{name}`: {error}") from None
    return (value * Decimal(repr(factor))).normalize()
