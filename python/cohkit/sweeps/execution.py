"""Execution of the points of a sweep, from the command or from Python."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cohkit.errors import InputError, suggestion
from cohkit.progress import Bar
from cohkit.sweeps import cluster, local, tables
from cohkit.sweeps.journal import Journal
from cohkit.sweeps.kinds import KINDS
from cohkit.sweeps.points import run
from cohkit.sweeps.spec import Spec
from cohkit.units import Quantity, format_quantity

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from cohkit.sweeps.points import Outcome, Point
    from cohkit.sweeps.values import Value


def sweep(  # noqa: PLR0913 -- each is a keyword
    command: str,
    axes: Mapping[str, str | Sequence[Value | Quantity]],
    *,
    options: Mapping[str, Value | Quantity] | None = None,
    repetitions: int = 1,
    seed: int = 0,
    workers: int | None = None,
    out: str | os.PathLike[str] | None = None,
) -> pl.DataFrame:
    """Run a command at every point of a product of axes, and return a frame with the rows of all results.

    With several workers, each process imports the calling script, which must therefore call this function under
    `if __name__ == "__main__":`.

    Args:
        command: command to run at each point: `sim`, `play`, `check`, `reproduce`, `litmus`, `lockstep` or `mutants`.
        axes: values of each axis, of which the last one varies fastest: a list, a `range`, or a string such as
            `"60ns..140ns/20ns"`.
        options: options of the command that are the same at every point.
        repetitions: number of runs of each point, with consecutive seeds.
        seed: first seed.
        workers: number of parallel points; one, in this process, if not given.
        out: folder of journal and tables, from which an interrupted sweep continues; a temporary one if not given.

    Raises:
        InputError: an argument is invalid.
        TextError: a protocol or platform is invalid.
        UnavailableError: polars is not installed.
        OSError: a file cannot be read, or the folder cannot be written.

    >>> import cohkit
    >>> frame = cohkit.sweep("check", {"remotes": range(1, 4)}, options={"protocol": "msi"})
    >>> frame.select("remotes", "outcome", "states").rows()
    [(1, 'verified', 15), (2, 'verified', 403), (3, 'verified', 4348)]

    """
    tables.require()
    if command not in KINDS:
        raise InputError(f"`{command}` cannot be swept; {suggestion(command, KINDS)}choose from {', '.join(KINDS)}")
    if workers is not None and workers < 1:
        raise InputError(f"`workers` is at least 1, not {workers}")
    spec = Spec(command, seed=seed, repetitions=repetitions)
    spec.options = {name: _value(value) for name, value in (options or {}).items()}
    for name, values in axes.items():
        spec.add(name, values if isinstance(values, str) else [_value(value) for value in values])
    points = spec.points()
    if out is not None:
        return _run_in_folder(points, Path(out), workers)
    with tempfile.TemporaryDirectory() as folder:
        return _run_in_folder(points, Path(folder), workers)


def _value(value: Value | Quantity) -> Value:
    return format_quantity(value) if isinstance(value, Quantity) else value


def _run_in_folder(points: Sequence[Point], folder: Path, workers: int | None) -> pl.DataFrame:
    hashes = [point.hash() for point in points]
    with Journal(folder, hashes) as journal:
        execute(points, journal, tables.Parts(folder, points, hashes), workers)
        results = tables.results(points, hashes, journal.done)
        tables.write(tables.hosts(hashes, journal.done), folder / "hosts.parquet")
        tables.write(results, folder / "results.parquet")
    return results


def execute(
    points: Sequence[Point], journal: Journal, parts: tables.Parts, executor: int | str | cluster.Jobs | None
) -> None:
    """Run the remaining points, and record each outcome as it completes.

    `executor` is a number of local processes, a scheduler address, jobs, or `None` for this process.
    """
    done = {outcome.number for outcome in journal.done}
    remaining = [point for point in points if point.number not in done]
    if not remaining:
        return
    batches: Iterator[list[Outcome]]
    if executor is None:
        batches = ([run(point)] for point in remaining)
    else:
        batches = (
            local.outcomes(remaining, executor) if isinstance(executor, int) else cluster.outcomes(remaining, executor)
        )
    try:
        # The estimate uses only points of this run, because their duration depends on the machine.
        with Bar(f"{len(remaining)} points") as bar:
            for batch in batches:
                journal.add(batch)
                parts.write_finished(journal.done)
                bar(len(journal.done) - len(done), len(remaining))
        parts.write_finished(journal.done, last=True)
    finally:
        batches.close()  # type: ignore[attr-defined]  # both are generators
