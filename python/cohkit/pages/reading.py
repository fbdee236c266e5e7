"""Input of a report: reads the output of commands in a folder, and validates it against the result types."""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from cohkit import types
from cohkit.errors import InputError
from cohkit.pages.shapes import misfit
from cohkit.protocols import chart_text, read
from cohkit.results import Record

if TYPE_CHECKING:
    from pathlib import Path

    from cohkit._cohkit import Protocol

_EXPECTED = (
    "expected the output of `cohkit check`, `table`, `reproduce`, `sim`, `play` or `litmus` with `--json`, "
    "a protocol file (`.coh`), or the folder of a sweep"
)
# The journal of a sweep is not shown in a report; its tables are.
_JOURNAL, _TABLE, _PARQUET = "journal.jsonl", "results.csv", "results.parquet"


class Run(Record):
    """Provenance of a result, as far as a page shows it.

    Attributes:
        command: command line.
        version: version of Cohkit.
        threads: number of search threads.
        seconds: duration on the machine that ran the command.

    """

    command: str | None = None
    version: str | None = None
    threads: int | None = None
    seconds: float | None = None


class Part(NamedTuple):
    """A file of the folder, with its contents."""

    kind: str
    """`check`, `table`, `reproduce`, `sim`, `play`, `litmus`, `sweep` or `text`."""
    file: str
    """Path within the folder."""
    value: Any
    """Output of the command; for `text` the protocol; for `sweep` its `columns`, `rows` and `run`."""


def parts(folder: Path) -> list[Part]:
    """Read all supported files of a folder, sorted by name.

    Raises:
        InputError: a file is not the output of a supported command, or the folder contains none.
        TextError: a protocol is invalid.
        OSError: a file cannot be read.

    """
    found: list[Part] = []
    # The folder itself may be a sweep.
    for path in (folder, *sorted(folder.rglob("*"))):
        name = folder.resolve().name if path is folder else str(path.relative_to(folder))
        if path.is_dir() and (path / _JOURNAL).is_file():
            found.append(Part("sweep", name, {**_sweep(path), "run": _first_line(path / _JOURNAL)}))
        elif path.is_dir():
            continue
        elif path.suffix == ".coh" and not _composes(path):
            found.append(Part("text", name, _text(path)))
        elif path.suffix == ".json":
            found += _json(path, name)
    if not found:
        raise InputError(f"{folder}: this folder contains nothing for a report; {_EXPECTED}")
    return found


def omitted_compositions(folder: Path) -> list[str]:
    """Return the compositions in a folder, which have no tables to show."""
    return [
        str(path.relative_to(folder)) for path in sorted(folder.rglob("*.coh")) if path.is_file() and _composes(path)
    ]


def _composes(path: Path) -> bool:
    # A composition has a `use` statement. Files that are not text are rejected when they are parsed.
    statements = re.split("[\n;]", path.read_text(encoding="utf-8", errors="replace"))
    return any(statement.lstrip().startswith("use ") for statement in statements)


def _text(path: Path) -> Protocol:
    return read(path)


def _json(path: Path, name: str) -> list[Part]:
    """Return a JSON file as a part, after validation against the result type of its command."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: this is not a text file: byte {error.start} is not UTF-8; {_EXPECTED}") from None
    except ValueError as error:
        raise InputError(f"{path}: this is not JSON: {error}; {_EXPECTED}") from None
    except RecursionError:
        raise InputError(f"{path}: this is nested too deeply; {_EXPECTED}") from None
    kind = _kind(value)
    if kind is None:
        raise InputError(f"{path}: reports do not support this file; {_EXPECTED}")
    value = _whole(value)
    if mismatch := misfit(value, _HINTS[kind]):
        raise InputError(f"{path}: expected the output of `cohkit {kind}` with `--json`, but {mismatch}")
    results = value if isinstance(value, list) else [value]
    if mismatch := misfit([result.get("run") or {} for result in results], list[Run]):
        raise InputError(f"{path}: expected the `run` of each result of `cohkit {kind}`, but {mismatch}")
    for sequence in _sequences(value):
        _validate_chart(path, sequence)
    return [Part(kind, name, value)]


_HINTS: dict[str, Any] = {
    "check": list[types.Verdict | types.ModelVerdict],
    "table": types.Table,
    "reproduce": list[types.Result],
    "sim": types.Simulation,
    "play": types.Play,
    "litmus": list[types.Litmus],
}
# Keys that identify a kind of result: all results of this kind have them, and no others.
_MARKS = {
    "check": {"outcome", "properties"},
    "reproduce": {"experiment", "published", "ours"},
    "litmus": {"test", "outcomes"},
    "table": {"agent", "rows"},
    "play": {"application", "platform"},
    "sim": {"workload", "platform"},
}


def _kind(value: object) -> str | None:
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, dict):
        return None
    is_list = isinstance(value, list)
    lists = {"check", "reproduce", "litmus"}
    return next((kind for kind, keys in _MARKS.items() if keys <= first.keys() and is_list == (kind in lists)), None)


# Counts beyond 64 bits are strings in JSON.
_COUNTS = {"states", "transitions", "taken", "fired"}


def _whole(value: object) -> Any:  # noqa: ANN401 -- as JSON has it
    """Convert counts from strings to integers, at any depth."""
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if not isinstance(value, dict):
        return value
    decimal_keys = {key for key, item in value.items() if key in _COUNTS and isinstance(item, str) and item.isdecimal()}
    return {key: int(item) if key in decimal_keys else _whole(item) for key, item in value.items()}


def _sequences(value: object) -> list[dict[str, Any]]:
    """Return all message sequences, at any depth."""
    if isinstance(value, list):
        return [sequence for item in value for sequence in _sequences(item)]
    if not isinstance(value, dict):
        return []
    if {"agents", "steps"} <= value.keys() and isinstance(value["agents"], list):
        return [value]
    return [sequence for item in value.values() for sequence in _sequences(item)]


def _validate_chart(path: Path, sequence: dict[str, Any]) -> None:
    """Reject a sequence that cannot be drawn as a chart."""
    count = len(sequence["agents"])
    for number, step in enumerate(sequence["steps"]):
        action = step["action"]
        ends = [step["agent"], *(action[key] for key in ("to", "from") if key in action)]
        if not all(isinstance(end, int) and 0 <= end < count for end in ends):
            raise InputError(f"{path}: step {number} of a message sequence names an agent outside its {count}")
    try:
        chart_text(sequence)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


def _sweep(folder: Path) -> dict[str, Any]:
    """Return the table of a sweep, from its CSV file if there is one."""
    if (folder / _TABLE).is_file():
        with (folder / _TABLE).open(encoding="utf-8", newline="") as file:
            columns, *rows = list(csv.reader(file)) or [[]]
        return {"columns": columns, "rows": [[_cell(cell) for cell in row] for row in rows]}
    if not (folder / _PARQUET).is_file():
        raise InputError(
            f"{folder}: this sweep has no `{_PARQUET}` yet; `cohkit sweep` with `--out {folder}` completes it"
        )
    from cohkit.frames import from_parquet  # noqa: PLC0415 -- polars is an extra

    frame = from_parquet(folder / _PARQUET)
    return {"columns": frame.columns, "rows": [list(row) for row in frame.rows()]}


def _first_line(journal: Path) -> dict[str, Any]:
    """Return the version and the command from the first line of a sweep's journal."""
    with journal.open(encoding="utf-8", errors="replace") as file:
        try:
            head = json.loads(file.readline())
        except ValueError:
            raise InputError(f"{journal}:1:1: this line of the journal is damaged") from None
    if mismatch := misfit(head, Run):
        raise InputError(f"{journal}:1:1: this line of the journal is damaged: {mismatch}")
    return {key: head[key] for key in ("version", "command") if key in head}


def _cell(text: str) -> str | float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return text
