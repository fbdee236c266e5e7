"""Repeated runs of an experiment with other values of its assumed quantities, and the results that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from cohkit import units
from cohkit.simulator import platform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cohkit.types import Quantity

_T = TypeVar("_T")
_R = TypeVar("_R")

_DISCRETE_UNITS = ("count", "B")
"""Units of discrete quantities. Times and rates are continuous."""
SEPARATOR = ":"
"""Character between the name of a machine, or of another part of a model, and that of its quantity."""


class Range(NamedTuple):
    """Value of an assumed quantity, and the ends of its range, as texts with units."""

    value: str
    low: str
    high: str


class Study:
    """Results of an experiment's simulations by request, and the assumed quantities on which these depend.

    An experiment registers its quantities while it runs. `assumptions` has, by name such as
    `enzian-dc-ddr:link.latency`, the ends of the range that differ from the quantity's value. `discrete` has the names
    of those that cannot have every value between the ends: flags, choices, counts and bytes. `ranges` has the values
    of continuous quantities and the ends of their ranges, as far as they were given. `platforms` and `protocols` have
    the names of those that were simulated.
    """

    def __init__(self) -> None:
        """Start without results."""
        self.assumptions: dict[str, tuple[str, ...]] = {}
        self.discrete: set[str] = set()
        self.ranges: dict[str, Range] = {}
        self.platforms: set[str] = set()
        self.protocols: set[str] = set()
        self._results: dict[str, Any] = {}
        self._registered: set[tuple[str, str | None, frozenset[str]]] = set()

    def assume(
        self, part: str, name: str, ends: Iterable[str], *, is_discrete: bool, whole: Range | None = None
    ) -> None:
        """Register an assumed quantity of a part of the model with the ends of its range other than its value.

        `whole` has the value and both ends, for a quantity that may be part of a fitted sum.
        """
        if ends := tuple(ends):
            if whole and not is_discrete:
                self.ranges[f"{part}{SEPARATOR}{name}"] = whole
            self.assumptions[f"{part}{SEPARATOR}{name}"] = ends
            if is_discrete:
                self.discrete.add(f"{part}{SEPARATOR}{name}")

    def assume_platform(self, name: str, protocol: str | None, own: Iterable[str]) -> None:
        """Register the quantities of a platform that have a range, except those that a request sets itself.

        `protocol` is the name of a shipped protocol, that of the platform if `None`; empty for another protocol.
        """
        own = frozenset(own)
        if (name, protocol, own) in self._registered:
            return
        self._registered.add((name, protocol, own))
        machine = platform(name)
        self.platforms.add(name)
        self.protocols |= {machine["protocol"] if protocol is None else protocol} - {""}
        for quantity in machine["quantities"]:
            if quantity.name not in own:
                low, high = (quantity.value if end is None else end for end in (quantity.low, quantity.high))
                whole = Range(*(_text(value, quantity) for value in (quantity.value, low, high)))
                is_discrete = quantity.unit in _DISCRETE_UNITS
                self.assume(name, quantity.name, _ends(quantity), is_discrete=is_discrete, whole=whole)

    def once(self, key: str, compute: Callable[[], _T]) -> _T:
        """Return the result of this key; compute it the first time."""
        if key not in self._results:
            self._results[key] = compute()
        result: _T = self._results[key]
        return result


def run_once(
    requests: Sequence[_T], run: Callable[[list[_T]], Sequence[_R]], study: Study | None, kind: str = ""
) -> list[_R]:
    """Run each distinct request once, in the study if there is one, and return the results in order.

    `kind` distinguishes equal requests to different functions.
    """
    known: dict[str, Any] = {} if study is None else study._results  # noqa: SLF001 -- of this module
    keys = [f"{kind}{request!r}" for request in requests]
    pending = {key: request for key, request in zip(keys, requests, strict=True) if key not in known}
    known.update(zip(pending, run(list(pending.values())) if pending else (), strict=True))
    return [known[key] for key in keys]


def settings_of(part: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of one part of a model, by the names of its quantities.

    >>> settings_of("cxl-8x8", {"cxl-8x8:link.latency": "75ns", "upi-8x8:link.latency": "25ns"})
    {'link.latency': '75ns'}

    """
    prefix = f"{part}{SEPARATOR}"
    return {name.removeprefix(prefix): value for name, value in settings.items() if name.startswith(prefix)}


def value_of(name: str, quantity: str, settings: Mapping[str, str]) -> float:
    """Return the value of a platform's quantity, in its unit, with these settings."""
    [own] = [one for one in platform(name)["quantities"] if one.name == quantity]
    text = settings_of(name, settings).get(quantity)
    if text is None:
        return float(own.value)
    return float(text) if own.unit == "count" else units.quantity(text, key=quantity).to(own.unit)


def _ends(quantity: Quantity) -> list[str]:
    """Return the ends of a quantity's range, except its value."""
    ends = (end for end in (quantity.low, quantity.high) if end is not None and end != quantity.value)
    return [_text(end, quantity) for end in ends]


# For each unit: the larger unit to print, and its size.
_LARGER = {"ps": ("ns", 1e3), "B/s": ("GB/s", 1e9)}


def _text(value: int, quantity: Quantity) -> str:
    """Format a value with a readable unit: `90ns`."""
    unit, scale = _LARGER.get(quantity.unit, (quantity.unit, 1))
    return f"{value / scale:.15g}{'' if unit == 'count' else unit}"
