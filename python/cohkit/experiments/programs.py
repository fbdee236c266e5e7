"""Compiled programs for both sides of a machine with near-memory cores: compilation, execution and results."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cohkit import _cohkit
from cohkit.errors import Error, UnavailableError
from cohkit.native import binary
from cohkit.protocols import shipped_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cohkit.experiments.experiment import Conditions

COMPILER = "riscv64-unknown-elf-gcc"
COMPILER_NOTE = (
    f"programs for RISC-V are compiled by `{COMPILER}`: the Debian packages `gcc-riscv64-unknown-elf` and "
    "`picolibc-riscv64-unknown-elf` bring it and its C library"
)
LINE_BYTES = 128
CYCLE_S = 0.5e-9
"""Cycle time of the host in seconds, at 2 GHz."""
MCC_CYCLE_S = 3.333e-9
"""Cycle time of a near-memory core in seconds, at 300 MHz."""
_FOLDER = "nearmemory/"
_MACHINE = "nearmemory/enzian.toml"
_HOST_MIB = 512
# The first MiB of the host's memory contains code.
_HOST_RAM = (_HOST_MIB - 2) << 20


class Run(NamedTuple):
    """A run of a program, `nearmemory/programs/NAME-host.c`, which starts near-memory programs.

    Attributes:
        name: name of the program.
        arguments: arguments of the host program.

    """

    name: str
    arguments: Sequence[int] = ()
    settings: Mapping[str, str] = {}
    """Quantities of the machine to set."""
    definitions: tuple[str, ...] = ()
    """Compiler definitions of the near-memory program, such as `PAD=64`."""

    @property
    def channel(self) -> str:
        """File name of the near-memory program."""
        return "-".join([self.name, *self.definitions]) + ".elf"


SMALLEST_CACHE = 1 << 10
"""Minimum size in bytes of the last cache of a machine."""

CACHE_NOTE = f"the host's last cache shrinks as much, to {SMALLEST_CACHE >> 10} KiB at least"
"""Remark on experiments that reduce the last cache along with the data."""


def last_cache(size: int, part: int, whole: int) -> dict[str, str]:
    """Return the setting of a last cache that is smaller than `size` bytes by the ratio of `part` to `whole`.

    Cache sizes are powers of two: the next lower one is used.

    >>> last_cache(16 << 10, 250, 1000)
    {'host.llc': '4096B'}
    >>> last_cache(16 << 10, 2000, 1000)
    {'host.llc': '16384B'}
    >>> last_cache(16 << 10, 1, 1000)
    {'host.llc': '1024B'}

    """
    scaled = max(SMALLEST_CACHE, size * min(part, whole) // whole)
    return {"host.llc": f"{1 << scaled.bit_length() - 1}B"}


def missing_tools() -> str:
    """Describe what must be installed to run programs; return an empty text if nothing is missing."""
    return "" if shutil.which(COMPILER) else COMPILER_NOTE


def run_programs(runs: Sequence[Run], conditions: Conditions) -> list[dict[str, float]]:
    """Run programs in parallel, and return the results of each by name, in the units that the programs print.

    Raises:
        UnavailableError: the compiler is missing or failed.
        Error: a program failed, or found a wrong result.

    """
    if missing := missing_tools():
        raise UnavailableError(missing)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _copy_sources(folder)
        for program in dict.fromkeys(run.name for run in runs):
            ram = f"-Wl,--defsym=__ram_size={_HOST_RAM:#x}"
            _compile(folder, "host", f"{program}-host", [ram], f"{program}-host.elf")
        for run in {run.channel: run for run in runs}.values():
            _compile(folder, "channel", run.name, [f"-D{definition}" for definition in run.definitions], run.channel)
        results: list[dict[str, float]] = [{} for _ in runs]
        with ThreadPoolExecutor(conditions.threads or os.cpu_count()) as pool:
            # Start long runs first, so that none is left alone at the end.
            order = sorted(range(len(runs)), key=lambda index: sum(runs[index].arguments), reverse=True)
            futures = {pool.submit(_run, folder, runs[index]): index for index in order}
            try:
                for completed, future in enumerate(as_completed(futures), 1):
                    results[futures[future]] = future.result()
                    if conditions.progress:
                        conditions.progress(completed, len(runs))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return results


def _copy_sources(folder: Path) -> None:
    """Copy the sources to the compiler's folder."""
    for name, text in _cohkit.shipped():
        if name.startswith(_FOLDER):
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


def _compile(folder: Path, kind: str, program: str, options: Sequence[str], output: str) -> None:
    """Compile a program with the flags of `host` or `channel`. Raise `UnavailableError` if that fails."""
    source = f"{_FOLDER}programs/{program}.c"
    command = [COMPILER, f"@{_FOLDER}{kind}.flags", *options, source, "-o", output]
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if process.returncode:
        errors = process.stderr.strip()
        raise UnavailableError(f"`{COMPILER}` makes no program of {source}; {COMPILER_NOTE}\n{errors}")


def _run(folder: Path, run: Run) -> dict[str, float]:
    """Run a compiled program, and return the numbers that it prints, by name."""
    settings = [word for name, value in run.settings.items() for word in ("--set", f"{name}={value}")]
    limits = ["--memory", _HOST_MIB, "--max-instructions", 10**12]
    words = ["run", *limits, *settings, "--channel-program", f"{run.name}={run.channel}"]
    command = [*map(str, [binary(), *words, f"{run.name}-host.elf", *run.arguments])]
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if process.returncode:
        command_text = " ".join(map(str, [run.name, *run.arguments, *settings]))
        raise Error(f"{command_text}: {(process.stdout.strip().splitlines() or [''])[-1]}\n{process.stderr.strip()}")
    return dict(_results(process.stdout))


def _results(text: str) -> Iterator[tuple[str, float]]:
    """Parse lines such as `copy, core: 1200 cycles`."""
    for line in text.splitlines():
        if match := re.fullmatch(r"(.+?):? ([0-9.]+)(?: (?:cycles|ps|kB/s|bytes|edges|lines|nodes))?(?:, .*)?", line):
            yield match[1], float(match[2])


def assumptions() -> Iterator[tuple[str, str]]:
    """Yield each quantity of the machine that has a range, with each bound that differs from its value."""
    for part, quantities in tomllib.loads(shipped_file(_MACHINE)).items():
        if isinstance(quantities, dict):
            for name, quantity in quantities.items():
                fields: dict[str, Any] = quantity
                yield from ((f"{part}.{name}", str(end)) for end in fields.get("range", []) if end != fields["value"])
