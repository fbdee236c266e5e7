"""Hardware of a protocol: `cohkit rtl`.

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
from cohkit.protocols import load_protocol
from cohkit.results import Records, records

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from cohkit._cohkit import Protocol

__all__ = ["emit", "lockstep", "measure", "measure_system", "synth"]


def emit(protocol: Protocol | str | os.PathLike[str], *, out: str | os.PathLike[str]) -> types.EmittedHome:
    """Write the home as SystemVerilog into a folder: package, ROM image and RTL.

    Raises:
        InputError: the hardware has no unit for a feature of this home.
        OSError: the folder cannot be written.

    """
    [emitted], _ = run_json(["rtl", "emit", load_protocol(protocol), "--out", Path(out).absolute()])
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
    """Run the RTL, built by Verilator, in lockstep with the checked controllers.

    Args:
        protocol: a protocol, the path of its file, or the name of a shipped one.
        seed: first seed.
        seeds: number of consecutive seeds.
        messages: messages per seed.
        shape: shape of the home for all seeds; if not given, each seed uses the next shape.
        spoil: number of mutated ROM rows, each of which must be detected.
        build: folder for the built RTL; a folder of this user if not given.

    Raises:
        InputError: the shape does not exist, or the hardware does not support this home.
        UnavailableError: Verilator is not installed.

    """
    words: list[object] = ["--seed", seed, "--seeds", seeds, "--messages", messages, "--mutate-rows", spoil]
    words += [] if shape is None else ["--shape", shape]
    [result], _ = run_json(["rtl", "test", load_protocol(protocol), *words, *_folder("--build-cache", build)])
    return types.Lockstep.of(result)


def synth(  # noqa: PLR0913 -- each is a keyword
    protocol: Protocol | str | os.PathLike[str],
    *,
    units: Sequence[int] | None = None,
    system: Sequence[int] = (),
    directory: Literal["full", "set-associative"] = "full",
    parameters: Mapping[str, int] | None = None,
    build: str | os.PathLike[str] | None = None,
) -> Records[types.Synthesis]:
    """Map the home, or a memory system, to an UltraScale+ FPGA with Yosys, and return its size.

    Args:
        protocol: a protocol, the path of its file, or the name of a shipped one.
        units: numbers of units of the home, one configuration each; 1, 8, 32 and 64 if not given.
        system: maps a coherent memory system with this number of caches of each kind instead of the home.
        directory: directory of the system's home.
        parameters: parameters of the system's top, such as `{"SetWidth": 6, "Ways": 8}`.
        build: folder for the input and output of Yosys; removed if not given.

    Raises:
        InputError: the hardware does not support this home or system, or the system has no such parameter.
        UnavailableError: Yosys is not installed.

    """
    words: list[object] = [*_folder("--build-folder", build)]
    words += ["--system", ",".join(map(str, system))] if system else []
    words += [] if units is None else ["--units", ",".join(map(str, units))]
    words += [] if directory == "full" else ["--directory", directory]
    words += [word for name, value in (parameters or {}).items() for word in ("--parameter", f"{name}={value}")]
    results, _ = run_json(["rtl", "synth", load_protocol(protocol), *words])
    return records(types.Synthesis.of, results)


def measure(
    protocol: Protocol | str | os.PathLike[str],
    *,
    units: int | None = None,
    outstanding: int | None = None,
    lines: int | None = None,
    build: str | os.PathLike[str] | None = None,
) -> types.HomeMeasurements:
    """Measure the RTL: latencies in cycles, and throughput.

    Args:
        protocol: a protocol, the path of its file, or the name of a shipped one.
        units: units of the home, in two slices.
        outstanding: maximum outstanding lines of the remote or the device, per unit.
        lines: lines per traffic stream.
        build: folder for the built RTL; a folder of this user if not given.

    Raises:
        InputError: the hardware does not support this home.
        UnavailableError: Verilator is not installed.

    """
    options = {"--units": units, "--outstanding": outstanding, "--lines": lines}
    words = [word for name, value in options.items() if value is not None for word in (name, value)]
    [result], _ = run_json(["rtl", "measure", load_protocol(protocol), *words, *_folder("--build-cache", build)])
    return types.HomeMeasurements.of(result)


def measure_system(
    protocol: Protocol | str | os.PathLike[str],
    *,
    system: Sequence[int],
    build: str | os.PathLike[str] | None = None,
) -> types.SystemMeasurements:
    """Measure accesses at the processor ports of a coherent memory system in cycles.

    Args:
        protocol: a protocol, the path of its file, or the name of a shipped one.
        system: number of caches of each kind.
        build: folder for the built RTL; a folder of this user if not given.

    Raises:
        InputError: the protocol has no memory system in hardware.
        UnavailableError: Verilator is not installed.

    """
    words = ["--system", ",".join(map(str, system)), *_folder("--build-cache", build)]
    [result], _ = run_json(["rtl", "measure", load_protocol(protocol), *words])
    return types.SystemMeasurements.of(result)


def _folder(flag: str, folder: str | os.PathLike[str] | None) -> list[object]:
    return [] if folder is None else [flag, Path(folder).absolute()]
