"""Terminal output of a sweep's table: its axes, and the most important columns."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from cohkit.sweeps.kinds import KINDS
from cohkit.sweeps.tables import UNIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from cohkit.sweeps.points import Point

_MAX_ROWS = 32
_COLUMN_GAP = "  "


def format_table(points: Sequence[Point], results: pl.DataFrame, width: int | None) -> str:
    """Format the first rows of a sweep's results, with as many columns as fit in `width` (all if `None`)."""
    first = results.head(_MAX_ROWS)
    columns = [_column(_head(name, results), first[name].to_list()) for name in _names(points, results)]
    axes = len(points[0].axes)
    while width and len(columns) > axes + 1 and len(_COLUMN_GAP.join(cells[0] for cells in columns)) > width:
        columns.pop()
    lines = [_COLUMN_GAP.join(cells).rstrip() for cells in zip(*columns, strict=True)]
    if len(results) > _MAX_ROWS:
        lines.append(f"and {len(results) - _MAX_ROWS} rows more")
    return "\n".join(lines) + "\n\n"


def _names(points: Sequence[Point], results: pl.DataFrame) -> list[str]:
    """Return the columns to show: axes, seeds if repeated, and the important columns that are not empty."""
    filled_columns = [name for name in results.columns if results[name].null_count() < len(results)]
    patterns = [*points[0].axes, *(["seed"] if points[-1].repetition else []), *KINDS[points[0].run].columns]
    return list(dict.fromkeys(name for pattern in patterns for name in filled_columns if fnmatchcase(name, pattern)))


def _head(name: str, results: pl.DataFrame) -> str:
    """Return the heading of a column, with its unit if there is a unit column."""
    head = name.removeprefix("statistics.").removeprefix("explanation.")
    unit = name + UNIT
    return f"{head} ({results[unit][0]})" if unit in results.columns else head


def _column(head: str, values: list[object]) -> list[str]:
    """Format the cells of a column to the same width, with numbers aligned to the right."""
    decimals = max((_decimals(value) for value in values if isinstance(value, float)), default=0)
    cells = [head, *(_cell(value, decimals) for value in values)]
    width = max(map(len, cells))
    is_numeric = any(isinstance(value, int | float) for value in values)
    return [cell.rjust(width) if is_numeric else cell.ljust(width) for cell in cells]


def _decimals(value: float) -> int:
    """Return the number of significant decimals, at most three."""
    return len(f"{value:.3f}".rstrip("0").partition(".")[2])


def _cell(value: object, decimals: int) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.{decimals}f}" if isinstance(value, float) else str(value)
