"""Plots of experiments: published numbers beside ours, as SVG that is the same bytes each time."""

from __future__ import annotations

import importlib.util
import io
import itertools
import textwrap
from typing import TYPE_CHECKING, Any

from cohkit.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cohkit.experiments.experiment import Span
    from cohkit.published import Ours
    from cohkit.types import Result

_STYLE: dict[Any, Any] = {
    # Names in the file follow from this instead of chance.
    "svg.hashsalt": "cohkit",
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#dddddd",
    "hatch.linewidth": 0.6,
}
# Told apart by lightness too (after Okabe and Ito).
_PUBLISHED = "#b0b0b0"
_OURS = "#0072b2"
_PARTS = {
    "cache": "#56b4e9",
    "link": "#0072b2",
    "home": "#e69f00",
    "dram": "#009e73",
    "bram": "#009e73",
    "waiting": "#cc79a7",
}
_LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
_WORDS = {"dram": "memory", "bram": "memory"}
_WHISKER = "reruns: as it is, and within what is assumed"
_WIDTH = 0.38
# What a legend's key and a letter beside it take.
_KEY_INCHES = 0.7
_LETTER_INCHES = 0.09
# So many times as many of the foot's letters fit.
_SMALL_LETTERS = 1.3
# Panels whose bars differ by more than this have scales of their own, so that the small ones can be seen.
_SCALES = 20
# Below this share of a sum a part cannot be seen.
_VISIBLE = 0.002


def require() -> None:
    """See whether there can be plots.

    Raises:
        UnavailableError: matplotlib is not installed.

    """
    if importlib.util.find_spec("matplotlib") is None:
        raise UnavailableError("plots need matplotlib, which is not installed: `pip install 'cohkit[plots]'` brings it")


def bars(  # noqa: PLR0913 -- the last one is a keyword
    title: str, axis: str, ours: Sequence[Ours], rows: Sequence[Result], spans: Sequence[Span] = (), *, foot: str = ""
) -> str:
    """Draw each of our numbers as a bar, the published one beside it where there is one, as SVG.

    A number's name is `bar, panel`. One of ours that is a sum is drawn as a stack, and a span as a whisker.
    `foot` stands below.

    Raises:
        UnavailableError: matplotlib is not installed.

    """
    require()
    import matplotlib as mpl  # noqa: PLC0415 -- only who wants plots needs it
    from matplotlib.figure import Figure  # noqa: PLC0415

    panels = list(dict.fromkeys(row["name"].partition(", ")[2] for row in rows))
    with mpl.rc_context({**mpl.rcParamsDefault, **_STYLE}):
        figure = Figure(figsize=(2 + 3.4 * len(panels), 5.4), layout="constrained")
        tops = [max(row["ours"] for row in rows if row["name"].partition(", ")[2] == panel) for panel in panels]
        alike = max(tops) < _SCALES * min(tops)
        all_axes = figure.subplots(1, len(panels), sharey=alike, squeeze=False)[0]
        spans_of = {span.name: span for span in spans}
        for axes, panel in zip(all_axes, panels, strict=True):
            here = [(o, r) for o, r in zip(ours, rows, strict=True) if r["name"].partition(", ")[2] == panel]
            _panel(axes, here, spans_of)
            axes.set_title(panel)
        all_axes[0].set_ylabel(axis)
        handles: dict[str, Any] = {}
        for axes in all_axes:
            handles |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
        order = sorted(handles, key=lambda label: (label != "published", label == _WHISKER))
        legend = [handles[label] for label in order]
        _frame(figure, title, foot, min(len(order), 2 * len(panels)), legend, order)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Title": title.partition("\n")[0]})
    return drawn.getvalue()


def lines(  # noqa: PLR0913 -- the last one is a keyword
    title: str, along: str, axis: str, rows: Sequence[Result], logarithmic: str = "", *, foot: str = ""
) -> str:
    """Draw our numbers as lines, the published ones beside them where there are any, as SVG.

    A number's name is `place, line`; the place begins with a number. Axes can be logarithmic: `x`, `y` or both.
    Numbers of each unit have a panel of their own; `axis` then has a text for each of them, separated by `; `.
    `foot` stands below.

    Raises:
        UnavailableError: matplotlib is not installed.

    """
    require()
    import matplotlib as mpl  # noqa: PLC0415 -- only who wants plots needs it
    from matplotlib.figure import Figure  # noqa: PLC0415

    units = list(dict.fromkeys(row["unit"] for row in rows))
    with mpl.rc_context({**mpl.rcParamsDefault, **_STYLE}):
        figure = Figure(figsize=(2 + 6 * len(units), 5.4), layout="constrained")
        panels = figure.subplots(1, len(units), squeeze=False)[0]
        for axes, unit, label in zip(panels, units, axis.split("; "), strict=True):
            _curves(axes, [row for row in rows if row["unit"] == unit])
            axes.set_xlabel(along)
            axes.set_ylabel(label)
            if "x" in logarithmic:
                axes.set_xscale("log")
                axes.xaxis.set_major_formatter(_plain)
            if "y" in logarithmic:
                axes.set_yscale("log")
                axes.yaxis.set_major_formatter(_plain)
            else:
                axes.set_ylim(bottom=0)
        labels = [label for axes in panels for label in axes.get_legend_handles_labels()[1]]
        widest = _KEY_INCHES + _LETTER_INCHES * max(map(len, labels))
        columns = max(1, int(figure.get_figwidth() / widest))
        _frame(figure, title, foot, columns)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Title": title.partition("\n")[0]})
    return drawn.getvalue()


def _frame(figure: Figure, title: str, foot: str, columns: int, *keys: Any) -> None:  # noqa: ANN401 -- of matplotlib
    """Write what stands above a plot, and below it: the foot, and the legend, of which it is the title."""
    letters = int(figure.get_figwidth() / _LETTER_INCHES)
    figure.suptitle("\n".join(textwrap.fill(line, letters) for line in title.splitlines()), fontsize=12)
    text = textwrap.fill(foot, int(letters * _SMALL_LETTERS))
    figure.legend(*keys, loc="outside lower center", ncols=columns, frameon=False, title=text or None, title_fontsize=9)


def _plain(value: float, _: object) -> str:
    return f"{value:g}"


def _curves(axes: Axes, rows: Sequence[Result]) -> None:
    names = list(dict.fromkeys(row["name"].partition(", ")[2] for row in rows))
    # When the colours are used up, lines are dashed.
    for name, (style, colour) in zip(names, itertools.cycle(itertools.product(("-", "--"), _LINES)), strict=False):
        here = [row for row in rows if row["name"].partition(", ")[2] == name]
        places = [float(row["name"].split()[0].rstrip(",")) for row in here]
        ours = [row["ours"] for row in here]
        axes.plot(places, ours, style, color=colour, marker="o", markersize=4, label=name)
        known = [(at, row["published"]) for at, row in zip(places, here, strict=True) if row["published"] is not None]
        if known:
            at, theirs = zip(*known, strict=True)
            label = f"{name}, published"
            axes.plot(at, theirs, color=colour, linestyle="none", marker="x", markersize=7, label=label)


def _panel(axes: Axes, here: Sequence[tuple[Ours, Result]], spans: Mapping[str, Span]) -> None:
    for place, (ours, row) in enumerate(here):
        theirs = row["published"]
        at = place if theirs is None else place + _WIDTH / 2 + 0.02
        label = f"{_short(ours.value)}"
        if theirs is not None:
            left = place - _WIDTH / 2 - 0.02
            axes.bar(left, theirs, _WIDTH, color=_PUBLISHED, label="published")
            _write(axes, left, theirs, _short(theirs))
        if row["error"] is not None:
            label += f"\n{row['error']:+.1%}"
        if ours.parts:
            _stack(axes, at, ours.parts)
        else:
            axes.bar(at, ours.value, _WIDTH, color=_OURS, label="ours")
        if span := spans.get(ours.name):
            beside = at + _WIDTH / 2 + 0.06
            low, high = (end.ours for end in span.ends())
            axes.plot([beside, beside], [low, high], color="black", linewidth=1, marker="_")
            axes.plot(beside, span.ours, color="black", linewidth=1, marker="o", markersize=4, label=_WHISKER)
        _write(axes, at, ours.value, label)
    axes.set_xticks(range(len(here)), [row["name"].partition(", ")[0] for _, row in here])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.6, len(here) - 0.4)
    axes.margins(y=0.12)


def _stack(axes: Axes, at: float, parts: Mapping[str, float]) -> None:
    """Draw a sum as a stack of its parts, those of one component as one."""
    sums: dict[str, float] = {}
    for name, value in parts.items():
        component = name.partition(".")[0]
        sums[component] = sums.get(component, 0) + value
    bottom = 0.0
    for component, value in sums.items():
        if value < _VISIBLE * sum(sums.values()):
            continue
        label = f"ours: {_WORDS.get(component, component)}"
        axes.bar(at, value, _WIDTH, bottom=bottom, color=_PARTS[component], label=label)
        bottom += value


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _write(axes: Axes, at: float, top: float, text: str) -> None:
    axes.annotate(text, (at, top), (0, 2), textcoords="offset points", ha="center", va="bottom", fontsize=9)
