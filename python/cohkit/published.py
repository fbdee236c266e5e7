"""Published numbers, and their comparison with ours.

The key of a number is its location in `experiments/published.toml`: `enzian.read_latency.dc_ddr.random`.
"""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from cohkit.errors import InputError, suggestion
from cohkit.old_names import resolver
from cohkit.protocols import shipped_file
from cohkit.results import records
from cohkit.types import Result
from cohkit.units import quantity

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping


Use = Literal["calibration", "prediction"]
"""Purpose of a published number."""
Provenance = Literal["fitted", "predicted blind", "known", "not steady"]
"""Provenance of one of our numbers: a parameter was fitted to reproduce the published number; the published
number is still kept separately; it could be seen; or the simulation was too short to predict anything."""
NOT_STEADY: Provenance = "not steady"
_FILE = "experiments/published.toml"

COUNT = "count"
"""Unit of counts."""
PERCENT = "percent"
"""Unit of percentages."""


class Measurement(NamedTuple):
    """One of our numbers: its name in the experiment, value and unit, and the `key` of the published number.

    If `parts` is not empty, the value is their sum.
    """

    name: str
    value: float
    unit: str
    key: str
    parts: Mapping[str, float] = MappingProxyType({})
    steady: bool | None = None
    """For a throughput: true if it would stay the same if the simulation continued. `None` for other numbers."""
    cut: bool = False
    """True if the simulation was reduced."""


Relation = Literal["above", "below", "like"]


class Claim(NamedTuple):
    """A published statement in words, and its relation to another number.

    Attributes:
        words: the statement as published.
        relation: relation of our number to `to`; `None` if the statement is only shown.

    """

    words: str
    relation: Relation | None = None
    to: str = ""
    """Key of the other number."""


class Bounds(NamedTuple):
    """Published bounds of a number, in its unit; `None` for a bound that is not published."""

    lower: float | None = None
    upper: float | None = None

    def hold(self, value: float) -> bool:
        """Return whether a number is within the bounds."""
        return (self.lower is None or value >= self.lower) and (self.upper is None or value <= self.upper)

    def compared(self, value: float) -> float | None:
        """Return the bound to compare a number with: the one that it violates, otherwise the lower one if any."""
        violates_upper = self.upper is not None and value > self.upper
        return self.upper if violates_upper or self.lower is None else self.lower


_RELATIONS: tuple[Relation, ...] = get_args(Relation)
_ABSENT = "none"
"""Blind value of a number that was predicted not to exist."""
_LOWER, _UPPER = "at_least", "at_most"
_BOUNDS = {_LOWER, _UPPER}
_RESULT = {"published", "says", "blind", "use", *_BOUNDS, *_RELATIONS}


class Published:
    """Published numbers by key.

    >>> from cohkit.published import Published
    >>> published = Published.shipped()
    >>> published.value("enzian.read_latency.dc_ddr.random", unit="us")
    0.601
    >>> published.use("enzian.read_latency.dc_ddr.random")
    'calibration'
    >>> published.value("enzian.throughput.dc_ddr", unit="GiB/s") is None
    True
    """

    def __init__(self, text: str, *, file: str) -> None:
        """Parse TOML; `file` is the name to show in messages.

        Raises:
            InputError: this is not TOML.

        """
        try:
            tree = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{file}: {error}") from None
        self._leaves: dict[str, tuple[object, str]] = {}
        # Entries that are not numbers: published statements, and predictions made before the result was seen.
        self._entries: dict[str, tuple[dict[str, Any], str]] = {}
        for key, value in _leaves(tree, ""):
            if isinstance(value, dict):
                entries = _validate_entries(key, value, file)
                if "published" in value:
                    self._leaves[key] = (value["published"], file)
                self._entries[key] = (entries, file)
            else:
                self._leaves[key] = (value, file)
        self._used_files: set[str] = set()
        # Published values known to our experiments. Those joined later were kept separately.
        self._seen = frozenset(self._leaves) | frozenset(self._entries)

    @classmethod
    def shipped(cls) -> Published:
        """Return the numbers that come with the package."""
        return cls(shipped_file(_FILE), file=_FILE)

    @classmethod
    def read(cls, file: str | os.PathLike[str]) -> Published:
        """Read numbers from a file.

        Raises:
            InputError: the file is not TOML in UTF-8.
            OSError: the file cannot be read.

        """
        try:
            text = Path(file).read_bytes().decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{file}: is not text: byte {error.start} is not UTF-8") from None
        return cls(text, file=str(file))

    def join(self, other: Published) -> None:
        """Merge the numbers of another file.

        Raises:
            InputError: a number contradicts an existing one.

        """
        for target, source in ((self._leaves, other._leaves), (self._entries, other._entries)):
            _merge(target, source)
        keys = {*self._leaves, *self._entries}
        for key, (_, file) in (*other._leaves.items(), *other._entries.items()):
            outer = next((outer for outer in _enclosing_tables(key) if outer in keys), None)
            inner = next((inner for inner in keys if inner.startswith(f"{key}.")), None)
            if outer or inner:
                raise InputError(f"{file}: {key} is a value in one place and a table in another")

    def value(self, key: str, *, unit: str) -> float | None:
        """Return a number in this unit; `None` if nothing is published under the key.

        Raises:
            InputError: the value is not such a number; the message names the key and the missing unit.

        """
        if key not in self._leaves:
            if any(leaf.startswith(f"{key}.") for leaf in self._leaves):
                raise InputError(f"{key} is a table, but must be a number")
            return None
        value, file = self._leaves[key]
        self._used_files.add(file)
        return _number(value, unit, key, file)

    def blind(self, key: str, *, unit: str) -> float | None:
        """Return, in this unit, the prediction made before the number was seen; `None` if there is none.

        Raises:
            InputError: the value is not such a number.

        """
        entries, file = self._entries.get(key, ({}, ""))
        if "blind" not in entries or self.is_blind_absence(key):
            return None
        return _number(entries["blind"], unit, f"{key}.blind", file)

    def is_blind_absence(self, key: str) -> bool:
        """Return true if the prediction made before the number was seen is that there is no such number.

        >>> from cohkit.published import Published
        >>> Published.shipped().is_blind_absence("proxics.bulk.crossover.copy")
        False

        """
        entries, _ = self._entries.get(key, ({}, ""))
        return entries.get("blind") == _ABSENT

    def claim(self, key: str) -> Claim | None:
        """Return the published statement about a number, if any."""
        entries, file = self._entries.get(key, ({}, ""))
        relation = next((relation for relation in _RELATIONS if relation in entries), None)
        if not entries.keys() & {"says", *_BOUNDS, *_RELATIONS}:
            return None
        self._used_files.add(file)
        words = entries.get("says") or " and ".join(
            f"{name.replace('_', ' ')} {entries[name]}" for name in (_LOWER, _UPPER) if name in entries
        )
        return Claim(words, relation, entries[relation] if relation else "")

    def bounds(self, key: str, *, unit: str) -> Bounds:
        """Return, in this unit, the published bounds of a number.

        Raises:
            InputError: a bound is not such a number, or the lower one is above the upper one.

        """
        entries, file = self._entries.get(key, ({}, ""))
        lower, upper = (
            _number(entries[name], unit, f"{key}.{name}", file) if name in entries else None
            for name in (_LOWER, _UPPER)
        )
        if lower is not None and upper is not None and lower > upper:
            raise InputError(f"{file}: {key}: {_LOWER} is {entries[_LOWER]!r}, above {_UPPER}, {entries[_UPPER]!r}")
        return Bounds(lower, upper)

    def keys(self) -> frozenset[str]:
        """Return the keys of all published values, and of the numbers that orders relate them to."""
        tables = [entries for entries, _ in self._entries.values()]
        related = {entries[relation] for entries in tables for relation in _RELATIONS if relation in entries}
        return frozenset(self._leaves) | frozenset(self._entries) | related

    def remark(self, key: str) -> str | None:
        """Return the remark on published numbers from the nearest enclosing table that has one."""
        return self._nearest(key, "remark")

    def comparison(self, key: str) -> str | None:
        """Return how our numbers are compared, from the nearest enclosing table that says so."""
        return self._nearest(key, "comparison")

    def provenance(self, key: str) -> Provenance:
        """Return the provenance of our number relative to the published one.

        A number that a platform was fitted to is `fitted`. A number whose published value is still kept separately is
        `predicted blind`. All others are `known`, also those for which a blind value is recorded: that value is the
        prediction, and ours is computed by a program that could use the published one.

        Raises:
            InputError: the `use` of a table is invalid.

        """
        if self.use(key) == "calibration":
            return "fitted"
        return "known" if key in self._seen else "predicted blind"

    def is_used(self, file: str) -> bool:
        """Return whether any number of this file has been read."""
        return file in self._used_files

    def use(self, key: str) -> Use:
        """Return the use of a number, its own or that of the nearest enclosing table; otherwise `prediction`.

        Raises:
            InputError: the `use` of a number or table is invalid.

        """
        entries, file = self._entries.get(key, ({}, ""))
        if "use" in entries:
            return _use(entries["use"], key, file)
        for table in _enclosing_tables(key):
            if f"{table}.use" in self._leaves:
                use, file = self._leaves[f"{table}.use"]
                return _use(use, table, file)
        return "prediction"

    def source(self, key: str) -> str | None:
        """Return the source of a published number, if its tables state it."""
        return self._nearest(key, "source")

    def sources(self) -> dict[str, str]:
        """Return the titles of the sources by their short names."""
        leaves = self._leaves.items()
        return {key.removeprefix("sources."): str(value) for key, (value, _) in leaves if key.startswith("sources.")}

    def _nearest(self, key: str, name: str) -> str | None:
        candidates = (f"{table}.{name}" for table in _enclosing_tables(key))
        return next((str(self._leaves[candidate][0]) for candidate in candidates if candidate in self._leaves), None)


def _use(use: object, key: str, file: str) -> Use:
    """Return a valid use of a number or table."""
    if use == "calibration" or use == "prediction":  # noqa: PLR1714 -- this form narrows the type
        return use
    raise InputError(f"{file}: {key}.use: {use!r} is neither calibration nor prediction")


def _merge(target: dict[str, tuple[Any, str]], source: dict[str, tuple[Any, str]]) -> None:
    for key, (value, file) in source.items():
        existing, existing_file = target.setdefault(key, (value, file))
        if existing != value:
            raise InputError(f"{file}: {key} is {value!r}, but {existing_file} says {existing!r}")


def _number(value: object, unit: str, key: str, file: str) -> float:
    """Convert a published value to a unit."""
    if unit in (COUNT, PERCENT):
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InputError(f"{file}: {key}: {value!r} is not a plain number, as needed for a {unit} is")
        return value
    try:
        return quantity(value, key=key).to(unit)
    except InputError as error:
        message = str(error)
        raise InputError(f"{file}: {message if message.startswith(key) else f'{key}: {message}'}") from None


def _validate_entries(key: str, table: dict[str, Any], file: str) -> dict[str, Any]:
    """Validate the entries of a result other than its number, and return them."""
    if unknown := sorted(table.keys() - _RESULT):
        known = sorted(_RESULT)
        raise InputError(
            f"{file}: {key}: a result has no `{unknown[0]}`; {suggestion(unknown[0], known)}it has {', '.join(known)}"
        )
    relations: list[str] = [relation for relation in _RELATIONS if relation in table]
    relations += [" and ".join(name for name in (_LOWER, _UPPER) if name in table)] if table.keys() & _BOUNDS else []
    if len(relations) > 1:
        raise InputError(f"{file}: {key} is in two relations, {' and '.join(relations)}, but must be in one")
    for name in ("says", *_RELATIONS):
        if not isinstance(table.get(name, ""), str):
            raise InputError(f"{file}: {key}.{name}: {table[name]!r} is no text")
    if "use" in table:
        _use(table["use"], key, file)
    return {name: value for name, value in table.items() if name != "published"}


def _leaves(tree: dict[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    for name, value in tree.items():
        # A table with a blind value, or with words or bounds instead of a number, is one result.
        if isinstance(value, dict) and not value.keys() & {"blind", "says", "published", *_BOUNDS}:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _enclosing_tables(key: str) -> Iterable[str]:
    """Yield the tables that enclose a key, innermost first."""
    while "." in key:
        key = key.rpartition(".")[0]
        yield key


def compare(experiment: str, ours: Iterable[Measurement], published: Published) -> list[Result]:
    r"""Compare our numbers with the published ones.

    >>> from cohkit.published import Measurement, Published, compare
    >>> published = Published('[a]\nlatency = "200ns"', file="a.toml")
    >>> compare("mine", [Measurement("latency", 0.21, "us", "a.latency")], published)[0]["error"]
    0.05

    """
    ours = list(ours)
    values = {measurement.key: measurement.value for measurement in ours}
    rows = []
    for measurement in ours:
        key, unit = measurement.key, measurement.unit
        published_value, blind, claim = (
            published.value(key, unit=unit),
            published.blind(key, unit=unit),
            published.claim(key),
        )
        bounds = published.bounds(key, unit=unit)
        reference, holds = _judge(measurement.value, values.get(claim.to) if claim else None, claim, bounds)
        blind_reference, blind_holds = None, None
        if blind is not None:
            other_blind = published.blind(claim.to, unit=unit) if claim and claim.to else None
            blind_reference, blind_holds = _judge(blind, other_blind, claim, bounds)
        # A reduced simulation that is not steady predicts nothing about the published number.
        not_steady = measurement.steady is False and measurement.cut
        rows.append(
            {
                "experiment": experiment,
                "name": measurement.name,
                "key": key,
                "published": published_value,
                "says": claim.words if claim else None,
                "at_least": bounds.lower,
                "at_most": bounds.upper,
                "ours": measurement.value,
                "unit": unit,
                "error": _error(measurement.value, published_value),
                "holds": None if not_steady else holds,
                "ratio": _ratio(measurement.value, reference),
                "blind": blind,
                "blind_error": None if blind is None else _error(blind, published_value),
                "blind_holds": blind_holds,
                "blind_ratio": None if blind is None else _ratio(blind, blind_reference),
                "use": NOT_STEADY if not_steady else published.provenance(key),
                "steady": measurement.steady,
            }
        )
    return records(Result.of, rows)


# Rounded to hide the last bits of a division.
def _error(value: float, published: float | None) -> float | None:
    return None if not published else round((value - published) / published, 9)


def _ratio(value: float, other: float | None) -> float | None:
    return None if not other else round(value / other, 9)


def _judge(value: float, other: float | None, claim: Claim | None, bounds: Bounds) -> tuple[float | None, bool | None]:
    """Return the number that a value is compared with, and whether the value satisfies bounds and relation.

    `other` is the number that `claim` relates the value to. The verdict is `None` if nothing can be decided.
    """
    if bounds != Bounds():
        return bounds.compared(value), bounds.hold(value)
    if claim is None or other is None or claim.relation in (None, "like"):
        return other, None
    return other, value > other if claim.relation == "above" else value < other


if not TYPE_CHECKING:
    __getattr__ = resolver(__name__)
