"""Tables of a sweep, as Parquet and CSV: results, and separately the machine-dependent metadata."""

from __future__ import annotations

import io
import time
from typing import TYPE_CHECKING, Any

from cohkit import files
from cohkit.errors import InputError, UnavailableError
from cohkit.units import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from cohkit.sweeps.points import Outcome, Point

_INT64_LIMIT = 2**63

UNIT = ".unit"
"""Suffix of the column with the unit of an axis."""


def require() -> None:
    """Raise `UnavailableError` if tables cannot be written, to be called before a long run."""
    try:
        import polars  # noqa: F401, ICN001, PLC0415 -- polars is optional
    except ImportError as error:
        raise UnavailableError(
            "tables of sweeps need polars, which is not installed: `pip install 'cohkit[frames]'` adds it"
        ) from error


def results(points: Sequence[Point], hashes: Sequence[str], outcomes: Iterable[Outcome]) -> pl.DataFrame:
    """Return one row per result, in the order of points. A failed point has one row, with the reason."""
    rows = []
    units = axis_units(points)
    for outcome in sorted(outcomes, key=lambda outcome: outcome.number):
        point = points[outcome.number]
        head: dict[str, Any] = {"point": point.number, "hash": hashes[point.number], "run": point.run}
        head |= {"repetition": point.repetition, "seed": point.seed, **_axis_cells(point.axes, units)}
        head |= {"code": outcome.code, "error": outcome.error}
        # Keep the value of an axis as given, even if the result contains it in another form.
        rows += [head | {key: cell for key, cell in row.items() if key not in head} for row in outcome.rows or [{}]]
    return _frame(rows)


def axis_units(points: Sequence[Point]) -> dict[str, str]:
    """Return the unit of each axis with only quantities: the unit of its first value.

    >>> from cohkit.sweeps.points import Point, Texts
    >>> at = [{"link.latency": latency, "cores": 1} for latency in ("60ns", "1us")]
    >>> points = [Point(number, "sim", {}, axes, 0, 0, Texts()) for number, axes in enumerate(at)]
    >>> axis_units(points)
    {'link.latency': 'ns'}

    """
    units: dict[str, str] = {}
    for name in points[0].axes if points else ():
        axis_values = list(dict.fromkeys(point.axes[name] for point in points))
        try:
            quantities = [quantity(value, key=name) for value in axis_values]
            unit = quantities[0].unit
            for value in quantities:
                value.to(unit)
        except InputError:
            # Names, integers, Booleans, or quantities of different dimensions.
            continue
        units[name] = unit
    return units


def _axis_cells(axes: Mapping[str, Any], units: Mapping[str, str]) -> dict[str, Any]:
    """Convert axes with units to numbers, each with its unit in an additional column."""
    cells: dict[str, Any] = {}
    for name, value in axes.items():
        if name not in units:
            cells[name] = value
            continue
        number = round(quantity(value, key=name).to(units[name]), 12)
        cells |= {name: int(number) if number.is_integer() else number, f"{name}{UNIT}": units[name]}
    return cells


def hosts(hashes: Sequence[str], outcomes: Iterable[Outcome]) -> pl.DataFrame:
    """Return the machine-dependent metadata: one row per point."""
    ordered = sorted(outcomes, key=lambda outcome: outcome.number)
    return _frame([{"point": outcome.number, "hash": hashes[outcome.number], **outcome.host} for outcome in ordered])


def _frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415

    names = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame([_column(name, [row.get(name) for row in rows]) for name in names])


def _column(name: str, cells: list[Any]) -> pl.Series:
    """Build a column with the narrowest common type: integers, floats, Booleans, or strings."""
    import polars as pl  # noqa: PLC0415

    kinds = {type(cell) for cell in cells if cell is not None}
    # Counts beyond 64 bits are strings, as in JSON.
    if kinds == {int} and all(cell is None or abs(cell) < _INT64_LIMIT for cell in cells):
        return pl.Series(name, cells, dtype=pl.Int64)
    if kinds and kinds <= {int, float}:
        return pl.Series(name, [None if cell is None else float(cell) for cell in cells], dtype=pl.Float64)
    if kinds == {bool}:
        return pl.Series(name, cells, dtype=pl.Boolean)
    return pl.Series(name, [None if cell is None else str(cell) for cell in cells], dtype=pl.String)


class Parts:
    """Partial tables of finished points, each from some lines of the journal, for readers during the run."""

    _POINTS, _SECONDS = 256, 10.0

    def __init__(self, folder: Path, points: Sequence[Point], hashes: Sequence[str]) -> None:
        """Continue after the existing parts."""
        self._folder, self._points, self._hashes = folder / "parts", points, hashes
        self._folder.mkdir(exist_ok=True)
        ends = [int(part.stem.partition("-")[2]) for part in self._folder.glob("[0-9]*.parquet")]
        self._written = max(ends, default=-1) + 1
        self._last = time.monotonic()

    def write_finished(self, finished: Sequence[Outcome], *, last: bool = False) -> None:
        """Write a part if enough points are finished or enough time has passed, or if it is the last one."""
        unwritten = finished[self._written :]
        is_overdue = time.monotonic() > self._last + self._SECONDS
        if unwritten and (last or is_overdue or len(unwritten) >= self._POINTS):
            name = f"{self._written:07}-{len(finished) - 1:07}.parquet"
            write(results(self._points, self._hashes, unwritten), self._folder / name)
            self._written, self._last = len(finished), time.monotonic()


def write(frame: pl.DataFrame, path: Path) -> None:
    """Write a table atomically, in the format of the file's suffix."""
    # Write through memory: polars does not report a full disk as an operating system error.
    table = io.BytesIO()
    if path.suffix == ".csv":
        frame.write_csv(table)
    else:
        frame.write_parquet(table)
    files.write(path, table.getvalue())
