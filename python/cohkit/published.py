"""Published numbers, and how ours stand beside them.

A number is named by its place in `experiments/published.toml`: `enzian.read_latency.dc_ddr.random`.
"""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from cohkit.errors import InputError
from cohkit.protocols import shipped_file
from cohkit.units import quantity

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from cohkit.types import Result

Use = Literal["calibration", "prediction"]
_FILE = "experiments/published.toml"

COUNT = "count"
"""The unit of what is counted."""
PERCENT = "percent"
"""The unit of shares of a hundred."""


class Ours(NamedTuple):
    """A number of ours: its name in the experiment, value and unit, and the `key` of the published one.

    With `parts` it is their sum.
    """

    name: str
    value: float
    unit: str
    key: str
    parts: Mapping[str, float] = MappingProxyType({})


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
        """Read TOML; `file` is the name to show in messages.

        Raises:
            InputError: this is no TOML.

        """
        try:
            tree = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{file}: {error}") from None
        self._leaves = {key: (value, file) for key, value in _leaves(tree, "")}
        self._asked: set[str] = set()

    @classmethod
    def shipped(cls) -> Published:
        """Give the numbers that come with the package."""
        return cls(shipped_file(_FILE), file=_FILE)

    @classmethod
    def read(cls, file: str | os.PathLike[str]) -> Published:
        """Read numbers from a file.

        Raises:
            InputError: this is no TOML in UTF-8.
            OSError: the file cannot be read.

        """
        try:
            text = Path(file).read_bytes().decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{file}: is not text: byte {error.start} is not UTF-8") from None
        return cls(text, file=str(file))

    def join(self, other: Published) -> None:
        """Take in the numbers of another file.

        Raises:
            InputError: it contradicts what is there.

        """
        for key, (value, file) in other._leaves.items():
            known, source = self._leaves.setdefault(key, (value, file))
            if known != value:
                raise InputError(f"{file}: {key} is {value!r}, but {source} says {known!r}")
            above = next((above for above in _above(key) if above in self._leaves), None)
            below = next((below for below in self._leaves if below.startswith(f"{key}.")), None)
            if above or below:
                raise InputError(f"{file}: {key} is a value here and a table in another place, or the other way round")

    def value(self, key: str, *, unit: str) -> float | None:
        """Give a number in this unit; `None` where nothing is published under the key.

        Raises:
            InputError: what stands there is no such number; the message names the key and the missing unit.

        """
        if key not in self._leaves:
            if any(leaf.startswith(f"{key}.") for leaf in self._leaves):
                raise InputError(f"{key} is a table, where a number is needed")
            return None
        value, file = self._leaves[key]
        self._asked.add(file)
        if unit in (COUNT, PERCENT):
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise InputError(f"{file}: {key}: {value!r} is no bare number, which a {unit} is")
            return value
        try:
            return quantity(value, key=key).to(unit)
        except InputError as error:
            message = str(error)
            raise InputError(f"{file}: {message if message.startswith(key) else f'{key}: {message}'}") from None

    def asked_of(self, file: str) -> bool:
        """Tell whether any number of this file has been asked for."""
        return file in self._asked

    def use(self, key: str) -> Use:
        """Tell what a number is used for: what the nearest table around it says, `prediction` where none does.

        Raises:
            InputError: a table says something else.

        """
        for table in _above(key):
            if f"{table}.use" in self._leaves:
                use, file = self._leaves[f"{table}.use"]
                if use not in ("calibration", "prediction"):
                    raise InputError(f"{file}: {table}.use: {use!r} is no use of a result: calibration or prediction")
                return cast("Use", use)
        return "prediction"

    def source(self, key: str) -> str | None:
        """Tell where a number was published, if its tables say so."""
        places = (f"{table}.source" for table in _above(key))
        return next((str(self._leaves[place][0]) for place in places if place in self._leaves), None)


def _leaves(tree: dict[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _above(key: str) -> Iterable[str]:
    """Give the tables around a key, the nearest first."""
    while "." in key:
        key = key.rpartition(".")[0]
        yield key


def compare(experiment: str, ours: Iterable[Ours], published: Published) -> list[Result]:
    r"""Put ours beside the published numbers.

    >>> from cohkit.published import Ours, Published, compare
    >>> published = Published('[a]\nlatency = "200ns"', file="a.toml")
    >>> compare("mine", [Ours("latency", 0.21, "us", "a.latency")], published)[0]["error"]
    0.05

    """
    rows: list[Result] = []
    for name, value, unit, key, _ in ours:
        theirs = published.value(key, unit=unit)
        # Rounded so that the last bits of a division do not show.
        error = None if not theirs else round((value - theirs) / theirs, 9)
        rows.append(
            {
                "experiment": experiment,
                "name": name,
                "published": theirs,
                "ours": value,
                "unit": unit,
                "error": error,
                "use": published.use(key),
            }
        )
    return rows
