"""Compiled programs for both sides of a machine with near-memory cores: compilation, execution and results."""

from __future__ import annotations

import math
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
from cohkit.experiments.study import Range, run_once, settings_of
from cohkit.native import binary
from cohkit.protocols import shipped_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cohkit.experiments.experiment import Conditions
    from cohkit.experiments.study import Study

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
_OPTIONAL_PARTS = {"prefetcher": "streams", "memory_cache": "size"}
"""Tables of the machine that describe an optional part, with the quantity of its size."""
PART = "near-memory"
"""Name of the machine in names of assumed quantities."""
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


class Capacity(NamedTuple):
    """A capacity of the host that an experiment with less data scales."""

    quantity: str
    label: str
    full: int
    """Bytes of the unscaled machine."""
    least: int
    """Minimum in bytes."""


CAPACITIES = (
    # One set.
    Capacity("host.l1", "first-level cache", 32 << 10, 32 * LINE_BYTES),
    # Twice the lines in flight (`host.llc_misses`): a smaller cache evicts lines before cores have used them.
    Capacity("host.llc", "last cache", 16 << 20, 2 * 64 * LINE_BYTES),
    # One line. The translation buffer has as many entries as before: its reach scales like a page.
    Capacity("host.page", "reach of translations", 2 << 20, LINE_BYTES),
)

SCALE_NOTE = (
    "caches and pages of the host shrink as much, the first-level cache to one set at least, the last one to 128 lines"
)
"""Remark on experiments that scale the capacities of the host along with the data."""


def scaled_capacities(part: int, whole: int) -> dict[str, str]:
    """Return the settings of a host whose capacities are smaller by the ratio of `part` to `whole`.

    Capacities are powers of two: the nearest ones are used, but none below its minimum.

    >>> scaled_capacities(1, 4)
    {'host.l1': '8192B', 'host.llc': '4194304B', 'host.page': '524288B'}
    >>> scaled_capacities(1, 1000)
    {'host.l1': '4096B', 'host.llc': '16384B', 'host.page': '2048B'}
    >>> scaled_capacities(2, 1)
    {'host.l1': '32768B', 'host.llc': '16777216B', 'host.page': '2097152B'}

    """
    factor = 2.0 ** -round(math.log2(max(whole / part, 1)))
    return {one.quantity: f"{max(one.least, int(one.full * factor))}B" for one in CAPACITIES}


def scales(settings: Mapping[str, str]) -> Iterator[tuple[str, str, float]]:
    """Yield label, name and scale of each capacity: the unscaled capacity divided by the set one.

    >>> list(scales(scaled_capacities(1, 16)))[0]
    ('first-level cache', 'l1', 8.0)

    """
    for one in CAPACITIES:
        size = int(settings[one.quantity].removesuffix("B"))
        yield one.label, one.quantity.removeprefix("host."), one.full / size


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
    changed = settings_of(PART, conditions.settings)
    varied_runs = [run._replace(settings={**changed, **run.settings}) for run in runs]
    if conditions.study:
        own = set.intersection(*(set(run.settings) for run in runs)) if runs else set()
        for name, whole in assumptions().items():
            if name not in own:
                ends = [end for end in (whole.low, whole.high) if end != whole.value]
                # Times and rates are continuous, counts and bytes are not.
                is_discrete = not any(map(_is_time_or_rate, ends))
                conditions.study.assume(PART, name, ends, is_discrete=is_discrete, whole=whole)
    return run_once(varied_runs, lambda pending: _run_all(pending, conditions), conditions.study)


def _run_all(runs: Sequence[Run], conditions: Conditions) -> list[dict[str, float]]:
    """Compile and run programs in parallel, and return their results."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _copy_sources(folder)
        for program in dict.fromkeys(run.name for run in runs):
            ram = f"-Wl,--defsym=__ram_size={_HOST_RAM:#x}"
            _compile_once(folder, conditions.study, "host", f"{program}-host", [ram], f"{program}-host.elf")
        for run in {run.channel: run for run in runs}.values():
            options = [f"-D{definition}" for definition in run.definitions]
            _compile_once(folder, conditions.study, "channel", run.name, options, run.channel)
        results: list[dict[str, float]] = [{} for _ in runs]
        with ThreadPoolExecutor(conditions.threads or os.cpu_count()) as pool:
            # Start long runs first, so that no long run remains alone at the end.
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


def _compile_once(  # noqa: PLR0913, PLR0917 -- those of `_compile`
    folder: Path, study: Study | None, kind: str, program: str, options: Sequence[str], output: str
) -> None:
    """Compile a program, or take it from an earlier run of the study."""

    def compiled() -> bytes:
        _compile(folder, kind, program, options, output)
        return (folder / output).read_bytes()

    file = folder / output
    contents = study.once(f"compiled {output}", compiled) if study else compiled()
    if not file.exists():
        file.write_bytes(contents)


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


def _is_time_or_rate(text: str) -> bool:
    """Return true for a time or a rate, such as `90ns`; false for a count or bytes.

    >>> [_is_time_or_rate(text) for text in ("90ns", "12.9GB/s", "4KiB", "16")]
    [True, True, False, False]

    """
    return text.endswith(("s", "Hz"))


def _is_absent(part: str, quantities: dict[str, Any]) -> bool:
    """Return true if the machine lacks an optional part: the quantity of its size is 0."""
    size = _OPTIONAL_PARTS.get(part)
    return size is not None and not any(map(int, re.findall(r"\d", str(quantities[size]["value"]))))


def assumptions() -> dict[str, Range]:
    """Return the quantities of the machine that have a range, each with its value and both ends.

    Quantities of a part that the machine lacks have no effect, and are omitted.
    """
    ranges: dict[str, Range] = {}
    for part, quantities in tomllib.loads(shipped_file(_MACHINE)).items():
        if not isinstance(quantities, dict) or _is_absent(part, quantities):
            continue
        for name, quantity in quantities.items():
            fields: dict[str, Any] = quantity
            if bounds := fields.get("range"):
                ranges[f"{part}.{name}"] = Range(*map(str, (fields["value"], *bounds)))
    return ranges
