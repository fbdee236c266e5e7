"""Assembly of a page: the contents of a folder, with additional information and plots."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from cohkit._cohkit import __version__
from cohkit.errors import FaultError
from cohkit.experiments import EXPERIMENTS
from cohkit.pages.figures import figures
from cohkit.protocols import construct, table
from cohkit.sweeps.tables import UNIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cohkit._cohkit import Protocol
    from cohkit.pages.reading import Part
    from cohkit.types import Table

# Columns of a sweep's table that enclose its axes.
_BEFORE_AXES, _AFTER_AXES = "seed", "code"


def assemble(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the data of a page; each part has an identifier and a title."""
    checks = [entry for part in parts if part.kind == "check" for entry in part.value]
    texts = {part.value.name: part for part in parts if part.kind == "text"}
    page_parts: list[dict[str, Any]] = []
    initial: dict[str, dict[str, str]] = {}
    for name, part in texts.items():
        page_parts.append(_protocol(part.value, part.file))
        initial[name] = {agent: state for one in page_parts[-1]["tables"] for agent, state in one["initial"].items()}
    for part in parts:
        if part.kind == "table":
            page_parts.append({"kind": "protocol", "title": part.value["protocol"], "text": None, "fault": None})
            page_parts[-1] |= {"file": part.file, "tables": [part.value]}
            initial.setdefault(part.value["protocol"], {}).update(part.value["initial"])
        elif part.kind in ("check", "litmus"):
            page_parts.append({"kind": part.kind, "title": _stem(part), "file": part.file, "entries": part.value})
        elif part.kind in ("sim", "play"):
            page_parts.append({"kind": "run", "title": _stem(part), "file": part.file, "value": part.value})
        elif part.kind == "sweep":
            page_parts.append(
                {"kind": "sweep", "title": _stem(part), "file": part.file, **part.value, "axes": _axes(part)}
            )
    page_parts += _experiments([part for part in parts if part.kind == "reproduce"])
    runs = {part.file: _runs(part) for part in parts}
    for number, one in enumerate(page_parts):
        one.setdefault("id", f"{one['kind']}-{number}")
        one["runs"] = runs.get(one["file"], [])
        for each in one.get("tables", []):
            _add_coverage(each, checks)
    return {"version": __version__, "parts": page_parts, "initial": initial}


def _stem(part: Part) -> str:
    return PurePath(part.file).with_suffix("").as_posix() if part.kind != "sweep" else part.file


def _runs(part: Part) -> list[dict[str, Any]]:
    """Return the distinct commands and versions behind a file, with the total time of their results."""
    if part.kind == "text":
        return []
    results = part.value if isinstance(part.value, list) else [part.value]
    runs: dict[tuple[Any, ...], dict[str, Any]] = {}
    for run in (result["run"] for result in results if result.get("run")):
        provenance = {key: run.get(key) for key in ("command", "version", "threads")}
        entry = runs.setdefault(tuple(provenance.values()), provenance | {"seconds": None})
        if run.get("seconds") is not None:
            entry["seconds"] = (entry["seconds"] or 0) + run["seconds"]
    return list(runs.values())


def _protocol(protocol: Protocol, file: str) -> dict[str, Any]:
    """Tabulate both agents of a protocol."""
    tables: list[Table] = []
    fault = None
    try:
        tables.append(table(protocol, agent="home"))
    except FaultError as error:
        fault = error.fault
    tables.insert(0, table(protocol, agent="remote"))
    if protocol.has_policy and fault is None and construct(protocol)["merged"] != construct(protocol)["home"]:
        tables.append(table(protocol, agent="home", merged=True))
    return {
        "kind": "protocol",
        "title": protocol.name,
        "file": file,
        "text": protocol.text,
        "tables": tables,
        "fault": fault,
    }


def _add_coverage(table: dict[str, Any], checks: Sequence[dict[str, Any]]) -> None:
    """Add to each row how often checks of its protocol took it, if they counted coverage."""
    rows = {(row["state"], row["event"], row["guard"]): row for row in table["rows"]}
    for entry in checks:
        if entry.get("protocol") != table["protocol"] or "coverage" not in entry:
            continue
        by_agent: dict[str, list[dict[str, Any]]] = {}
        for covered_rows in entry["coverage"]["rows"]:
            by_agent.setdefault(covered_rows["agent"], []).append(covered_rows)
        for covered_rows in by_agent.values():
            # Tables for other sizes, or with merged states, have different rows.
            if all((covered["state"], covered["event"], covered["guard"]) in rows for covered in covered_rows):
                for covered in covered_rows:
                    row = rows[covered["state"], covered["event"], covered["guard"]]
                    row["taken"] = row.get("taken", 0) + int(covered["taken"])


def _axes(part: Part) -> list[str]:
    columns: list[str] = part.value["columns"]
    if _BEFORE_AXES not in columns or _AFTER_AXES not in columns:
        return []
    axis_columns = columns[columns.index(_BEFORE_AXES) + 1 : columns.index(_AFTER_AXES)]
    return [name for name in axis_columns if not name.endswith(UNIT)]


def _experiments(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Return a page for each experiment, preceded by a list of all."""
    rows: dict[str, list[Any]] = {}
    files: dict[str, str] = {}
    for part in parts:
        for row in part.value:
            rows.setdefault(row["experiment"], []).append(row)
            files.setdefault(row["experiment"], part.file)
    pages = [_experiment(name, files[name], experiment_rows) for name, experiment_rows in rows.items()]
    if not pages:
        return []
    summaries = [{key: page[key] for key in ("id", "name", "headline", "rows")} for page in pages]
    return [{"kind": "experiments", "title": "All experiments", "file": "", "experiments": summaries}, *pages]


def _experiment(name: str, file: str, rows: list[Any]) -> dict[str, Any]:
    known = EXPERIMENTS.get(name)
    page = {"kind": "experiment", "id": f"experiment-{name}", "title": name, "name": name, "file": file, "rows": rows}
    if known is None:
        return page | {"headline": "", "notes": [], "plots": []}
    notes = [note for note in (known.note, known.omissions and f"Left out: {known.omissions}.") if note]
    return page | {"headline": known.title, "notes": notes, "plots": figures(known, rows)}
