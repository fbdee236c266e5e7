"""`cohkit sweep`, and the option `--sweep` of the other commands."""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from cohkit.errors import InputError, suggestion
from cohkit.sweeps import cluster, tables
from cohkit.sweeps.display import format_table
from cohkit.sweeps.execution import execute
from cohkit.sweeps.journal import Journal
from cohkit.sweeps.kinds import FORMER_NAMES, KINDS, current_option, worst_code
from cohkit.sweeps.spec import Spec, convert_booleans, from_file, parse_option, split_setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cohkit.sweeps.points import Outcome, Point

_MAX_ERRORS = 5
_INTERRUPTED = 130

_DESCRIPTION = f"""\
Runs a command at every point of a product of axes, on all cores, and writes one
table of the results: results.parquet in the folder --out. Machine-dependent
values are in hosts.parquet.

  cohkit sweep FILE.toml
  cohkit sim PLATFORM WORKLOAD --sweep link.latency=60ns..140ns/20ns
  cohkit check PROTOCOL --sweep remotes=1..3
  cohkit sweep litmus --sweep test=SB,MP --sweep protocol=msi,mesi

{", ".join(KINDS)} can be swept,
over each of their options, the numbers of an application, and the quantities
of a platform.
After a kill or an interrupt, the same command continues the sweep.
docs/sweeps.md describes the format of FILE.toml.
"""

_EXAMPLE = """\
Example:
  $ cohkit check protocols/msi.coh --sweep remotes=1..2 --out out/msi
"""


def _parser(kind: str | None) -> argparse.ArgumentParser:
    """Return the parser of `cohkit sweep`, or of the command `kind` with sweep options."""
    parser = argparse.ArgumentParser(
        prog=f"cohkit {kind or 'sweep'}",
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if kind is None:
        parser.add_argument("spec", nargs="?", metavar="FILE.toml", help="what to sweep")
    else:
        for name in KINDS[kind].takes:
            parser.add_argument(name, nargs="?", metavar=name.upper())
        for name, expected in KINDS[kind].options.items():
            flag = name.replace("_", "-")
            if expected is not bool:
                parser.add_argument(f"--{flag}", metavar="VALUE")
            elif name in ("hash_compaction", "explain"):
                parser.add_argument(f"--{flag}", action="store_const", const="true")
            else:
                parser.add_argument(f"--no-{flag}", dest=name, action="store_const", const="false")
        for flag in ("--set", "--param"):
            parser.add_argument(flag, dest="set", action="append", default=[], metavar="NAME=VALUE")
        _add_former_options(parser, kind)
    add = parser.add_argument
    add(
        "--sweep", action="append", default=[], metavar="NAME=VALUES", help="an axis: `a,b,c`, `1..8`, `60ns..90ns/5ns`"
    )
    add("--repetitions", type=int, metavar="N", help="run each point N times, with consecutive seeds")
    add("--seed", type=int, metavar="N", help="the first seed; 0 if not given")
    add("--out", metavar="DIR", help="the folder of journal and tables; named after the sweep if not given")
    add("--workers", type=int, metavar="N", help="points at a time; as many as there are processors if not given")
    add("--csv", action="store_true", help="write the tables as CSV, too")
    add("--scheduler", metavar="tcp://HOST:PORT", help="run the points on this Dask cluster")
    add("--cluster", choices=cluster.SYSTEMS, help="run the points on jobs of a batch system, by dask-jobqueue")
    add("--jobs", type=int, default=1, metavar="N", help="with --cluster: number of jobs, of one processor each")
    add("--memory", default="4GB", metavar="SIZE", help="with --cluster: memory of a job")
    add("--walltime", default="01:00", metavar="HH:MM", help="with --cluster: the longest that a job lasts")
    add("--queue", metavar="NAME", help="with --cluster: the queue of jobs")
    add("--job-script", action="store_true", help="with --cluster: print the job script, and run nothing")
    return parser


def _add_former_options(parser: argparse.ArgumentParser, kind: str) -> None:
    """Add the former names of options, which the help does not show."""
    for (command, former_name), name in FORMER_NAMES.items():
        if command == kind:
            parser.add_argument(f"--{former_name.replace('_', '-')}", dest=name, help=argparse.SUPPRESS)
    parser.add_argument("--with", dest="set", action="append", default=[], help=argparse.SUPPRESS)


def _sweep_spec(kind: str | None, options: argparse.Namespace) -> Spec:
    """Return the specification of the sweep that the command line requests."""
    if kind is None:
        if options.spec is None:
            raise InputError(f"a sweep needs a FILE.toml, or a command: {', '.join(KINDS)}")
        spec = _spec_of_file(options.spec)
    else:
        fixed_options = _fixed_options(kind, options)
        spec = Spec(kind)
        spec.options = {
            name: parse_option(kind, name, value) for name, value in [*fixed_options, *map(split_setting, options.set)]
        }
    for text in options.sweep:
        name, value = split_setting(text)
        name = current_option(spec.run, name)
        if name in spec.axes:
            raise InputError(f"`{name}` is swept twice")
        spec.add(name, value)
        spec.command_line_names.add(name)
    spec.command_line_names |= {name for name in ("seed", "repetitions") if getattr(options, name) is not None}
    spec.axes = {name: convert_booleans(spec.run, name, axis_values) for name, axis_values in spec.axes.items()}
    spec.seed = spec.seed if options.seed is None else options.seed
    spec.repetitions = spec.repetitions if options.repetitions is None else options.repetitions
    return spec


def _spec_of_file(path: str) -> Spec:
    try:
        return from_file(Path(path))
    except FileNotFoundError:
        if Path(path).suffix:
            raise
        commands = ", ".join(KINDS)
        raise InputError(
            f"there is no file `{path}` and no such command; {suggestion(path, KINDS)}choose from {commands}"
        ) from None


def _fixed_options(kind: str, options: argparse.Namespace) -> list[tuple[str, str]]:
    """Return the fixed options; swept positional arguments may be omitted on the command line."""
    positional_names = KINDS[kind].takes
    positional_values = [value for name in positional_names if (value := getattr(options, name)) is not None]
    swept_names = [text.partition("=")[0] for text in options.sweep]
    unswept_names = [name for name in positional_names if name not in swept_names]
    names = unswept_names if len(positional_values) == len(unswept_names) else positional_names
    option_values = [(name, value) for name in KINDS[kind].options if (value := getattr(options, name)) is not None]
    return [*zip(names, positional_values, strict=False), *option_values]


def run(arguments: Sequence[str]) -> int:
    """Run one sweep, and return its exit code: the worst of its points."""
    kind = arguments[0] if arguments and arguments[0] in KINDS else None
    options = _parser(kind).parse_args(arguments[1:] if kind else arguments)
    executor = _executor(options)
    if options.job_script:
        if not isinstance(executor, cluster.Jobs):
            raise InputError("`--job-script` needs `--cluster`")
        sys.stdout.write(executor.script())
        return 0
    tables.require()
    points = _sweep_spec(kind, options).points()
    hashes = [point.hash() for point in points]
    folder = Path(options.out or f"sweep-{hashlib.sha256(''.join(hashes).encode()).hexdigest()[:12]}")
    with Journal(folder, hashes, shlex.join(["cohkit", "sweep", *arguments])) as journal:
        try:
            execute(points, journal, tables.Parts(folder, points, hashes), executor)
        except KeyboardInterrupt:
            progress_text = f"{len(journal.done)} of {len(points)} points are done"
            sys.stderr.write(
                f"interrupted: {progress_text}; the same command with `--out {folder}` continues from here\n"
            )
            return _INTERRUPTED
        outcomes = journal.done
        results = tables.results(points, hashes, outcomes)
        for suffix in (".parquet", *([".csv"] if options.csv else [])):
            tables.write(tables.hosts(hashes, outcomes), folder / f"hosts{suffix}")
            tables.write(results, folder / f"results{suffix}")
    sys.stdout.write(format_table(points, results, shutil.get_terminal_size().columns if sys.stdout.isatty() else None))
    return _print_summary(points, outcomes, folder)


def _executor(options: argparse.Namespace) -> int | str | cluster.Jobs:
    """Return where points run: a number of local processes, a scheduler address, or jobs."""
    named = [name for name in ("workers", "scheduler", "cluster") if getattr(options, name) is not None]
    if len(named) > 1:
        raise InputError(f"choose one: `--{named[0]}` or `--{named[1]}`")
    if options.workers is not None and options.workers < 1:
        raise InputError("`--workers` is at least 1")
    if options.jobs < 1:
        raise InputError("`--jobs` is at least 1")
    if not re.fullmatch(r"\d+(\.\d+)?\s*[kKMGT]i?B", options.memory):
        raise InputError(f"`--memory` is a size such as 4GB, not {options.memory}")
    if not re.fullmatch(r"\d+:[0-5]\d", options.walltime):
        raise InputError(f"`--walltime` is hours and minutes such as 01:30, not {options.walltime}")
    if options.cluster:
        return cluster.Jobs(options.cluster, options.jobs, options.memory, options.walltime, options.queue)
    if options.scheduler:
        if not re.fullmatch(r"(tcp|tls|ws|wss|ucx)://.+:\d+", options.scheduler):
            raise InputError(f"`--scheduler` expects tcp://HOST:PORT, got {options.scheduler}")
        return str(options.scheduler)
    return options.workers or len(os.sched_getaffinity(0))


def _print_summary(points: Sequence[Point], outcomes: Sequence[Outcome], folder: Path) -> int:
    """Print the number of points and the first errors. Return the exit code of the sweep."""
    failed = sorted((outcome for outcome in outcomes if outcome.error is not None), key=lambda outcome: outcome.number)
    count = f"{len(points)} point{'' if len(points) == 1 else 's'}"
    # A completed point may have found a violation, or be undecided.
    codes = Counter(outcome.code for outcome in outcomes if outcome.error is None and outcome.code)
    exit_codes_text = "".join(f", {number} ended with exit code {code}" for code, number in sorted(codes.items()))
    sys.stdout.write(f"{count}, {len(failed) or 'none'} failed{exit_codes_text}: {folder / 'results.parquet'}\n")
    for outcome in failed[:_MAX_ERRORS]:
        axes_text = " ".join(f"{name}={value}" for name, value in points[outcome.number].axes.items())
        sys.stdout.write(f"  point {outcome.number} ({axes_text}): {outcome.error}\n")
    if len(failed) > _MAX_ERRORS:
        sys.stdout.write(f"  and {len(failed) - _MAX_ERRORS} more, in the column `error`\n")
    sys.stdout.flush()
    return worst_code(outcome.code for outcome in outcomes)
