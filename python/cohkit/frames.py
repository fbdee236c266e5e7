"""Results as polars frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cohkit.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

_PLAIN = (str, int, float, bool, type(None))
_INT64_LIMIT = 2**63


def to_frame(results: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Convert results to a frame with one row each: verdicts, simulations, rows of a table, quantities of a platform.

    Columns are the keys with plain values or lists of strings, including those under `run` and `statistics`. Names of
    columns from `workload` and `messages` have these words as a prefix. Names contain the units.

    Raises:
        UnavailableError: polars is not installed.
        InputError: the argument is not a result or a list of results.

    >>> import cohkit
    >>> frame = cohkit.to_frame(cohkit.check(cohkit.shipped("msi-policy")))
    >>> frame.select("system", "outcome", "states").rows()
    [('one_remote', 'verified', 34), ('three_remotes', 'verified', 2328)]
    >>> cohkit.to_frame(cohkit.table(cohkit.shipped("msi"))).columns
    ['state', 'event', 'guard', 'actions', 'next', 'line']

    """
    _polars()
    import polars as pl  # noqa: PLC0415 -- polars is optional

    rows = results.get("rows", results.get("quantities", [results])) if hasattr(results, "get") else results
    if isinstance(rows, str) or not all_mappings(rows):
        raise InputError("cannot make a frame: expected a result or a list of results")
    flat = [_flat(row) for row in rows]
    columns = {key: [row.get(key) for row in flat] for row in flat for key in row}
    frame = {key: values for key, values in columns.items() if all(map(_fits, values))}
    wide = [
        key
        for key, values in frame.items()
        if any(isinstance(value, int) and abs(value) >= _INT64_LIMIT for value in values)
    ]
    return pl.DataFrame(frame, schema_overrides=dict.fromkeys(wide, pl.Int128))


def from_parquet(file: Path) -> pl.DataFrame:
    """Read the table of a sweep.

    Raises:
        UnavailableError: polars is not installed.
        InputError: the file is not a table.

    """
    _polars()
    import polars as pl  # noqa: PLC0415

    try:
        return pl.read_parquet(file)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{file}: this is not a table: {error}") from None


def all_mappings(rows: object) -> bool:
    """Return whether this is a sequence of mappings, as results are."""
    return isinstance(rows, Sequence) and all(isinstance(row, Mapping) for row in rows)


def _polars() -> None:
    try:
        import polars  # noqa: F401, ICN001, PLC0415
    except ImportError as error:
        raise UnavailableError(
            "frames need polars, which is not installed: `pip install 'cohkit[frames]'` adds it"
        ) from error


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    flat = dict(row)
    for key in ("workload", "messages"):
        flat.update((f"{key}_{name}", value) for name, value in (row.get(key) or {}).items())
    for key in ("statistics", "run"):
        flat.update(row.get(key) or {})
    return flat


def _fits(value: object) -> bool:
    return isinstance(value, _PLAIN) or (isinstance(value, list) and all(isinstance(item, str) for item in value))
