"""Hardware of a protocol's home: `cohkit rtl`.

>>> import tempfile
>>> from cohkit import rtl
>>> with tempfile.TemporaryDirectory() as folder:
...     home = rtl.emit("eci", out=folder)
>>> home.states, home.events
(128, 26)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cohkit import types
from cohkit.native import run_json
from cohkit.protocols import given
from cohkit.results import Records, records

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from typing import Literal

    from cohkit._cohkit import Protocol

__all__ = ["emit", "lockstep", "measure", "synth"]


def emit(protocol: Protocol | str | os.PathLike[str], *, out: str | os.PathLike[str]) -> types.EmittedHome:
    """Write the home as SystemVerilog into a folder: its package, the image of its ROM, and the RTL.

    Raises:
        InputError: the hardware has no unit for what this home does.
        OSError: the folder cannot be written.

    """
    [emitted], _ = run_json(["rtl", "emit", given(protocol), "--out", Path(out).absolute()])
    return types.EmittedHome.of(emitted)


def lockstep(  # noqa: PLR0913 -- each is a keyword
    protocol: Protocol | str | os.PathLike[str],
    *,
    seed: int = 0,
    seeds: int = 20,
    messages: int = 2000,
    shape: str | None = None,
    spoil: int | Literal["all"] = 0,
    build: str | os.PathLike[str] | None = None,
) -> types.Lockstep:
    """Run the RTL in lockstep with the controllers that are checked; Verilator builds it.

    Args:
        protocol: a protocol, the path of a text, or the name of one that ships.
        seed: the first seed.
        seeds: how many there are, one after the other.
        messages: those of each seed's run.
        shape: a shape of the home for all seeds; each takes the next one if not given.
        spoil: mutated rows of the ROM, each of which has to be noticed.
        build: the folder in which the built RTL is kept; one of this user's if not given.

    Raises:
        InputError: there is no such shape, or no hardware of this home.
        UnavailableError: Verilator is not installed.

    """
    words: list[object] = ["--seed", seed, "--seeds", seeds, "--messages", messages, "--spoil", spoil]
    words += [] if shape is None else ["--shape", shape]
    [ran], _ = run_json(["rtl", "test", given(protocol), *words, *_build(build)])
    return types.Lockstep.of(ran)


def synth(
    protocol: Protocol | str | os.PathLike[str],
    *,
    units: Sequence[int] = (1, 8, 32, 64),
    build: str | os.PathLike[str] | None = None,
) -> Records[types.Synthesis]:
    """Map the home to an UltraScale+ FPGA with Yosys, and return its size with each number of units.

    Raises:
        InputError: there is no hardware of this home.
        UnavailableError: Yosys is not installed.

    """
    numbers = ",".join(map(str, units))
    found, _ = run_json(["rtl", "synth", given(protocol), "--units", numbers, *_build(build)])
    return records(types.Synthesis.of, found)


def measure(
    protocol: Protocol | str | os.PathLike[str],
    *,
    units: int | None = None,
    outstanding: int | None = None,
    lines: int | None = None,
    build: str | os.PathLike[str] | None = None,
) -> types.HomeMeasurements:
    """Measure the RTL: latencies in cycles, and how much traffic it bears.

    Args:
        protocol: a protocol, the path of a text, or the name of one that ships.
        units: units of the home in two slices.
        outstanding: most lines of the remote or the device in flight, for each unit.
        lines: lines of each stream of traffic.
        build: the folder in which the built RTL is kept; one of this user's if not given.

    Raises:
        InputError: there is no hardware of this home.
        UnavailableError: Verilator is not installed.

    """
    numbers = {"--units": units, "--outstanding": outstanding, "--lines": lines}
    words = [word for name, value in numbers.items() if value is not None for word in (name, value)]
    [measured], _ = run_json(["rtl", "measure", given(protocol), *words, *_build(build)])
    return types.HomeMeasurements.of(measured)


def _build(folder: str | os.PathLike[str] | None) -> list[object]:
    return [] if folder is None else ["--build", Path(folder).absolute()]
