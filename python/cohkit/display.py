"""Presentation of results in notebooks: charts, verdicts, tables and plots."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cohkit._cohkit import Protocol
from cohkit.errors import InputError
from cohkit.frames import all_mappings
from cohkit.protocols import chart_svg, chart_text, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Literal

_PLAIN = (str, int, float, bool, type(None))
# Keys of results that contain rows.
_ROWS = ("rows", "quantities")


@dataclass(frozen=True)
class Display:
    """A presentation of a result: `html` for notebooks, `text` for terminals.

    >>> import cohkit
    >>> print(cohkit.show([{"states": 403, "outcome": "verified"}]).html)
    <table><thead><tr><th>states</th><th>outcome</th></tr></thead><tbody><tr><td>403</td><td>verified</td></tr></tbody></table>

    """

    html: str
    text: str

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        """Return the text, for terminals."""
        return self.text

    __str__ = __repr__


def show(result: Mapping[str, Any] | Sequence[Mapping[str, Any]] | Protocol | str | bytes) -> Display:
    """Show a result in a notebook, or as text elsewhere.

    Args:
        result: a message sequence, a verdict of `check` or a list of them, a protocol (as its tables), a table, a
            platform, a simulation, a list of any results, or the SVG of a chart or plot.

    Raises:
        InputError: the argument cannot be shown.

    >>> import cohkit
    >>> verdicts = cohkit.check("msi", remotes=2)
    >>> cohkit.show(verdicts)
    msi remotes_2_lines_1: verified, 403 states, 959 transitions
    >>> print(cohkit.show(cohkit.table(cohkit.shipped("msi"))).text.splitlines()[0].split())
    ['state', 'event', 'guard', 'actions', 'next', 'line']

    """
    if isinstance(result, bytes):
        result = result.decode()
    if isinstance(result, str):
        if "<svg" not in result[:2000]:
            raise InputError("this text is not an SVG")
        return Display(result, f"an SVG of {len(result)} bytes")
    parts = list(_protocol(result) if isinstance(result, Protocol) else _parts(result))
    return Display("\n".join(part.html for part in parts), "\n".join(part.text for part in parts))


def _parts(result: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Iterator[Display]:
    """Yield the parts of a result, chosen by its keys."""
    if not isinstance(result, Mapping):
        if not all_mappings(result):
            raise InputError(
                f"{result!r} cannot be displayed; expected a result, a list of results, a protocol or an SVG"
            )
        results = result
        if results and all("counterexample" in item for item in results):
            for verdict in results:
                yield from _verdict(verdict)
        else:
            yield _table(results)
        return
    item = result
    if "agents" in item and "steps" in item:
        yield _chart(item)
    elif "counterexample" in item:
        yield from _verdict(item)
    elif "outcomes" in item:
        yield from _litmus(item)
    elif "application" in item:
        yield from _play(item)
    elif "statistics" in item:
        yield from _simulation(item)
    else:
        rows = next((item[name] for name in _ROWS if name in item), [item])
        yield _table(rows)


def _protocol(protocol: Protocol) -> Iterator[Display]:
    agents: dict[Literal["remote", "home"], str] = {"remote": "caching agents", "home": "the home"}
    for agent, description in agents.items():
        yield _line(f"{protocol.name}, {description}")
        yield from _parts(table(protocol, agent=agent))


def _chart(sequence: Mapping[str, Any], title: str = "") -> Display:
    return Display(chart_svg(sequence, title=title), chart_text(sequence))


def _line(text: str) -> Display:
    return Display(f"<p>{html.escape(text)}</p>", text)


def _verdict(verdict: Mapping[str, Any]) -> Iterator[Display]:
    """Yield the summary of a verdict, and the charts of its counterexample."""
    name = verdict["model"] if "model" in verdict else f"{verdict['protocol']} {verdict['system']}"
    summary = f"{name}: {verdict['outcome']}"
    if verdict["reason"]:
        summary += f" ({verdict['reason']})"
    if verdict["states"] is not None:
        summary += f", {verdict['states']} states, {verdict['transitions']} transitions"
    yield _line(summary)
    counterexample = verdict["counterexample"]
    if counterexample:
        yield _line(f"{counterexample['name']}: {counterexample['message']}")
        for sequence in counterexample["sequences"]:
            yield _chart(sequence, counterexample["name"])


def _litmus(test: Mapping[str, Any]) -> Iterator[Display]:
    """Yield the summary of a litmus test, the table of its outcomes, and its chart."""
    memory = test["protocol"] or "sequentially consistent memory"
    summary = f"{test['test']} on {memory}: {test['outcome']}"
    yield _line(summary + (f" ({test['reason']})" if test["reason"] else ""))
    if test["outcomes"]:
        marks = ("satisfies", "allowed", "count")
        rows = [
            {**outcome["values"]} | {mark: outcome[mark] for mark in marks if mark in outcome}
            for outcome in test["outcomes"]
        ]
        yield _table(rows)
    if "sequence" in test:
        yield _chart(test["sequence"], test["test"])


def _play(result: Mapping[str, Any]) -> Iterator[Display]:
    """Yield the table of a play, or its failure."""
    if result["failure"]:
        yield from _simulation(result)
        return
    rows: list[Mapping[str, Any]] = [
        *({"name": name, "value": count} for name, count in result["counts"].items()),
        *({"name": f"{name} per second", "value": rate} for name, rate in result["rates_per_s"].items()),
        *({"name": f"{name}, mean (ns)", "value": times["mean"]} for name, times in result["durations_ns"].items()),
    ]
    yield _table(rows or [result])


def _simulation(result: Mapping[str, Any]) -> Iterator[Display]:
    failure = result["failure"]
    if failure:
        yield _line(f"{failure['kind']}: {failure['message']}")
        yield _chart(failure["sequence"], failure["kind"])
        return
    values = result["statistics"] | {name: count for name, count in result["messages"].items() if count}
    yield _table([{"name": name, "value": value} for name, value in values.items()])


def _table(rows: Sequence[Mapping[str, Any]]) -> Display:
    """Return rows as a table in HTML and in text; a column is a key with plain values."""
    columns = list(dict.fromkeys(name for row in rows for name, value in row.items() if _fits(value)))
    if not columns:
        raise InputError("it contains nothing to display")
    cells = [[_cell(row.get(name)) for name in columns] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(columns, *cells, strict=True)]
    text = "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (columns, *cells)
    )

    def line(kind: str, line: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in line) + "</tr>"

    body = "".join(line("td", row) for row in cells)
    return Display(f"<table><thead>{line('th', columns)}</thead><tbody>{body}</tbody></table>", text)


def _fits(value: object) -> bool:
    """Return whether a cell can show the value: a plain value, or a list of strings."""
    return isinstance(value, _PLAIN) or (isinstance(value, list) and all(isinstance(each, str) for each in value))


def _cell(value: object) -> str:
    if value is None or not _fits(value):
        return ""
    if isinstance(value, list):
        return "; ".join(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
