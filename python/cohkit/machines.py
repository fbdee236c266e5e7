"""Machines: platforms with access to their quantities, and variants with other values."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohkit import _cohkit
from cohkit.errors import InputError, call, suggestion
from cohkit.old_names import old_method
from cohkit.protocols import decode
from cohkit.results import load
from cohkit.types import Platform
from cohkit.units import Quantity, format_quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


Text = str | tuple["Text", "Text"] | None
"""Contents of the platform file; `None` for a shipped platform; a pair for a device and a host."""


class Machine:
    """A platform that can run: its quantities by name, and variants with some of them changed.

    >>> import cohkit
    >>> machine = cohkit.Machine("enzian-dc-ddr")
    >>> machine["link.latency"].to("ns"), machine["cores.count"]
    (100.0, 48)
    >>> slower = machine.with_settings({"link.latency": "200ns"})
    >>> slower
    Machine('enzian-dc-ddr', {'link.latency': '200ns'})
    >>> results = [cohkit.simulate(one, "random-read", accesses=100) for one in (machine, slower)]
    >>> results[0]["statistics"]["latency_mean_ns"] < results[1]["statistics"]["latency_mean_ns"]
    True

    """

    def __init__(self, name: str | os.PathLike[str]) -> None:
        """Load a shipped platform, a file whose name ends in `.toml`, or a device and a host: `A+B`.

        Raises:
            InputError: there is no platform with this name.
            TextError: the file is invalid; all its errors are listed.
            OSError: the file cannot be read.

        """
        if not isinstance(name, str | os.PathLike):
            explanation = "`cohkit.platform` describes a platform, `cohkit.Machine` creates a machine from it"
            raise InputError(f"a platform is a name, a file or a `Machine`, not {type(name).__name__}: {explanation}")
        self._load(os.fspath(name), None, {})

    def _load(self, name: str, text: Text, settings: dict[str, str]) -> None:
        text = _read(name) if text is None else text
        self._name, self._text, self._settings = name, text, settings
        assignments = [f"{name}={value}" for name, value in settings.items()]
        self._native = call(name, _native(name, text).set, assignments)
        self._platform = Platform.of(load(self._native.json()))
        self._quantities = {quantity["name"]: quantity for quantity in self._platform.quantities}

    @property
    def native(self) -> _cohkit.Machine:
        """Compiled machine that runs."""
        return self._native

    @property
    def platform(self) -> Platform:
        """Description of the machine, as returned by `cohkit.platform`."""
        return self._platform

    def with_settings(self, settings: Mapping[str, str | int | Quantity]) -> Machine:
        """Return a copy of this machine with other values, with units, for some quantities.

        Raises:
            InputError: the quantity does not exist, or does not accept the value.

        """
        formatted = {name: format_quantity(value) for name, value in settings.items()}
        machine = object.__new__(Machine)
        machine._load(self._name, self._text, self._settings | formatted)
        return machine

    changed = old_method("changed", with_settings)

    def __getitem__(self, name: str) -> Quantity | int:
        """Return the value of a quantity: with its unit, or as an integer for counts."""
        quantity = self._quantities.get(_cohkit.current_name(name))
        if quantity is None:
            names = ", ".join(sorted(self._quantities))
            raise InputError(
                f"{self._name} has no quantity `{name}`; {suggestion(name, self._quantities)}it has {names}"
            )
        return quantity["value"] if quantity["unit"] == "count" else Quantity(quantity["value"], quantity["unit"])

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the quantities."""
        return iter(self._quantities)

    def __len__(self) -> int:
        """Return the number of quantities."""
        return len(self._quantities)

    def __eq__(self, other: object) -> bool:
        """Compare the resulting machines, not their construction."""
        return isinstance(other, Machine) and self._platform == other._platform

    def __hash__(self) -> int:
        """Return a hash that agrees with the comparison."""
        return hash((self._platform["name"], *(quantity["value"] for quantity in self._platform["quantities"])))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the constructor's arguments, including the text of the file."""
        return _rebuild, (self._name, self._text, self._settings)

    def __repr__(self) -> str:
        """Return the name, and the changed quantities."""
        return f"Machine({self._name!r}{f', {self._settings}' if self._settings else ''})"

    def _repr_html_(self) -> str:
        from cohkit.display import show  # noqa: PLC0415 -- it shows machines and simulations alike

        return show(self._platform).html


def _read(name: str) -> Text:
    """Read the file of a platform, or the files of a device and a host."""
    device, separator, host = name.partition("+")
    if separator and not Path(name).exists():
        return _read(device), _read(host)
    return decode(name, Path(name).read_bytes()) if name.endswith(".toml") else None


def _native(name: str, text: Text) -> _cohkit.Machine:
    if isinstance(text, tuple):
        device, host = (_native(*part) for part in zip(name.split("+", 1), text, strict=True))
        return call(name, device.with_host, host)
    return call(name, _cohkit.Machine, name, text)


def _rebuild(name: str, text: Text, settings: dict[str, str]) -> Machine:
    machine = object.__new__(Machine)
    machine._load(name, text, settings)
    return machine
