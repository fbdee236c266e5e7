"""Plots of an experiment on a page: the same bars, lines and distributions as the plots for print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cohkit.plots import all_series, is_point, place_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cohkit.experiments import Experiment
    from cohkit.types import Result


def figures(experiment: Experiment, rows: Sequence[Result]) -> list[dict[str, Any]]:
    """Return plots as series of points, each with the index of its row."""
    drawn = [row for row in rows if is_point(row)] if experiment.along and not experiment.shares else rows
    units = {row["unit"] for row in drawn}
    # Rows of an older version, or of a part of an experiment, may lack data of some axes; tables show these rows.
    if not experiment.axis or len(units) != len(experiment.axis.split("; ")):
        return []
    numbers = {row["name"]: number for number, row in enumerate(rows)}
    if experiment.shares:
        return [_shares(experiment, rows, numbers)]
    if experiment.along:
        return _lines(experiment, rows, numbers)
    return _bars(experiment, rows)


def _point(row: Result, numbers: dict[str, int]) -> dict[str, Any]:
    return {"x": place_of(row), "y": row["ours"], "published": row["published"], "row": numbers[row["name"]]}


def _lines(experiment: Experiment, rows: Sequence[Result], numbers: dict[str, int]) -> list[dict[str, Any]]:
    points = [row for row in rows if is_point(row)]
    units = dict.fromkeys(row["unit"] for row in points)
    plots = []
    for unit, label in zip(units, experiment.axis.split("; "), strict=True):
        series = [
            {
                "name": one.name,
                "points": [_point(row, numbers) for row in one.panels[unit]],
            }
            for one in all_series(points)
            if unit in one.panels
        ]
        levels = [
            {"y": row["published"], "row": numbers[row["name"]]}
            for row in rows
            if not is_point(row) and row["unit"] == unit and row["published"] is not None
        ]
        plots.append(_line_points(experiment, series, experiment.along, label) | {"levels": levels})
    return plots


def _line_points(experiment: Experiment, series: list[dict[str, Any]], along: str, axis: str) -> dict[str, Any]:
    return {
        "kind": "lines",
        "series": series,
        "x": along,
        "y": axis,
        "logarithmic": experiment.logarithmic,
        "levels": [],
    }


def _shares(experiment: Experiment, rows: Sequence[Result], numbers: dict[str, int]) -> dict[str, Any]:
    """Plot distributions with shares on the horizontal axis: the value not exceeded by each share."""
    series = [
        {
            "name": one.name,
            "points": [_point(row, numbers) for here in one.panels.values() for row in here],
        }
        for one in all_series(rows)
    ]
    return _line_points(experiment, series, experiment.along, experiment.axis)


def _bars(experiment: Experiment, rows: Sequence[Result]) -> list[dict[str, Any]]:
    units = dict(zip(dict.fromkeys(row["unit"] for row in rows), experiment.axis.split("; "), strict=True))
    panels: dict[str, list[dict[str, Any]]] = {}
    labels = {}
    for number, row in enumerate(rows):
        name, _, panel = row["name"].partition(", ")
        bar = {"name": name, "y": row["ours"], "published": row["published"], "row": number}
        panels.setdefault(panel, []).append(bar)
        labels[panel] = units[row["unit"]]
    return [{"kind": "bars", "title": panel, "y": labels[panel], "bars": bars} for panel, bars in panels.items()]
