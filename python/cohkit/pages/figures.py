"""Plots of an experiment on a page: the same bars, lines and distributions as the plots for print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cohkit.plots import all_series, is_point, x_position

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cohkit.experiments import Experiment
    from cohkit.types import Result


def figures(experiment: Experiment, rows: Sequence[Result]) -> list[dict[str, Any]]:
    """Return the plots of an experiment; each point has the index of its row."""
    plotted_rows = [row for row in rows if is_point(row)] if experiment.along and not experiment.shares else rows
    units = {row["unit"] for row in plotted_rows}
    # Rows of an older version, or of a part of an experiment, may lack data of some axes; tables show these rows.
    if not experiment.axis or len(units) != len(experiment.axis.split("; ")):
        return []
    row_indices = {row["name"]: number for number, row in enumerate(rows)}
    if experiment.shares:
        return [_cumulative_plot(experiment, rows, row_indices)]
    if experiment.along:
        return _line_plots(experiment, rows, row_indices)
    return _bar_charts(experiment, rows)


def _point(row: Result, row_indices: dict[str, int]) -> dict[str, Any]:
    """Return a point: position on the x axis, our value, the published value, and the index of the row."""
    return {"x": x_position(row), "y": row["ours"], "published": row["published"], "row": row_indices[row["name"]]}


def _line_plots(experiment: Experiment, rows: Sequence[Result], row_indices: dict[str, int]) -> list[dict[str, Any]]:
    """Return one line plot per unit, with published constants as horizontal lines."""
    points = [row for row in rows if is_point(row)]
    units = dict.fromkeys(row["unit"] for row in points)
    plots = []
    for unit, label in zip(units, experiment.axis.split("; "), strict=True):
        series = [
            {
                "name": curve.name,
                "points": [_point(row, row_indices) for row in curve.panels[unit]],
            }
            for curve in all_series(points)
            if unit in curve.panels
        ]
        levels = [
            {"y": row["published"], "row": row_indices[row["name"]]}
            for row in rows
            if not is_point(row) and row["unit"] == unit and row["published"] is not None
        ]
        plots.append(_line_plot(experiment, series, experiment.along, label) | {"levels": levels})
    return plots


def _line_plot(experiment: Experiment, series: list[dict[str, Any]], x_label: str, y_label: str) -> dict[str, Any]:
    """Return a line plot without horizontal lines."""
    return {
        "kind": "lines",
        "series": series,
        "x": x_label,
        "y": y_label,
        "logarithmic": experiment.logarithmic,
        "levels": [],
    }


def _cumulative_plot(experiment: Experiment, rows: Sequence[Result], row_indices: dict[str, int]) -> dict[str, Any]:
    """Return quantile curves: for each share on the x axis, the value that this share does not exceed."""
    series = [
        {
            "name": curve.name,
            "points": [_point(row, row_indices) for panel in curve.panels.values() for row in panel],
        }
        for curve in all_series(rows)
    ]
    return _line_plot(experiment, series, experiment.along, experiment.axis)


def _bar_charts(experiment: Experiment, rows: Sequence[Result]) -> list[dict[str, Any]]:
    """Return one bar chart per panel; the panel is the part of a row's name after the first comma."""
    units = dict(zip(dict.fromkeys(row["unit"] for row in rows), experiment.axis.split("; "), strict=True))
    panels: dict[str, list[dict[str, Any]]] = {}
    labels = {}
    for number, row in enumerate(rows):
        name, _, panel = row["name"].partition(", ")
        bar = {"name": name, "y": row["ours"], "published": row["published"], "row": number}
        panels.setdefault(panel, []).append(bar)
        labels[panel] = units[row["unit"]]
    return [{"kind": "bars", "title": panel, "y": labels[panel], "bars": bars} for panel, bars in panels.items()]
