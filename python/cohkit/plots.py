"""Plots of experiments for one column of print: published numbers beside ours, as reproducible files."""

from __future__ import annotations

import importlib.util
import io
import itertools
import math
import textwrap
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from cohkit.errors import UnavailableError
from cohkit.published import NOT_STEADY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cohkit.experiments.experiment import Span
    from cohkit.published import Measurement
    from cohkit.types import Result

Format = Literal["svg", "pdf", "png"]
FORMATS: tuple[Format, ...] = get_args(Format)

_STYLE: dict[Any, Any] = {
    # Makes identifiers in the file reproducible.
    "svg.hashsalt": "cohkit",
    "font.family": "DejaVu Sans",
    "font.size": 7,
    "axes.titlesize": 7,
    "axes.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1,
    "lines.markersize": 3,
    "legend.fontsize": 6.5,
    "legend.handlelength": 1.6,
    "legend.columnspacing": 1.2,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "hatch.linewidth": 0.5,
    "savefig.dpi": 300,
}
# Metadata that would differ between days or machines.
_UNNAMED: dict[Format, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}

# Column width of the usual two-column layout of journals, in inches.
_WIDE = 3.4
_LETTERS = 58
_SMALL_LETTERS = 68
_LEGEND_LETTERS = 56
_SMALL = 5.5

# Distinguishable also by lightness (after Okabe and Ito).
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
_LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
_WORDS = {"dram": "memory", "bram": "memory"}
_WHISKER = "reruns: nominal, and range of assumed quantities"
_BOUND = "published bound"
_AT_BEST = "published, without a position on the axis"
_WIDTH = 0.38
# Maximum number of bars with horizontal names and numbers; more bars have vertical ones. Panels with more bars than
# _HALF use the whole width.
_BESIDE = 6
_HALF = 14
# Panels whose bars differ by more than this factor have separate scales, so that small bars remain visible.
_SCALES = 20
# Smallest visible share of a sum.
_VISIBLE = 0.002
# Series that differ by at most this share everywhere are indistinguishable.
_ALIKE = 0.01


def require() -> None:
    """Check that plots can be drawn.

    Raises:
        UnavailableError: matplotlib is not installed.

    """
    if importlib.util.find_spec("matplotlib") is None:
        raise UnavailableError("plots need matplotlib, which is not installed: `pip install 'cohkit[plots]'` adds it")


class _Canvas:
    """A figure with rows of panels, title and footer, and one common legend."""

    def __init__(self, title: str, foot: str, form: Format) -> None:
        self.title, self.foot, self.form = title, foot, form
        self.handles: dict[str, Any] = {}

    def panels(self, count: int, columns: int, high: float, **how: Any) -> list[Axes]:  # noqa: ANN401 -- of matplotlib
        from matplotlib.figure import Figure  # noqa: PLC0415 -- only who wants plots needs it

        rows = math.ceil(count / columns)
        self.high = high * rows
        self.figure: Figure = Figure(figsize=(_WIDE, self.high), layout="constrained")
        axes: list[Axes] = list(self.figure.subplots(rows, columns, squeeze=False, **how).flat)
        for empty in axes[count:]:
            empty.remove()
        return axes[:count]

    def drawn(self, last: Sequence[str] = ()) -> bytes:
        """Add title, footer and legend, and return the file; the legend entries `last` come last."""
        for axes in self.figure.axes:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                self.handles.setdefault(label, handle)
        labels = sorted(self.handles, key=lambda label: last.index(label) + 1 if label in last else 0)
        title = "\n".join(textwrap.fill(line, _LETTERS) for line in self.title.splitlines())
        self.figure.suptitle(title, fontsize=8)
        wide = max((len(label) for label in labels), default=0)
        columns = max(1, min(len(labels), _LEGEND_LETTERS // (wide + 8)))
        shown = [textwrap.fill(label, _LEGEND_LETTERS) for label in labels]
        foot = textwrap.fill(self.foot, _SMALL_LETTERS)
        handles = [self.handles[label] for label in labels]
        self.figure.legend(
            handles, shown, loc="outside lower center", ncols=columns, frameon=False, title=foot or None,
            title_fontsize=_SMALL,
        )  # fmt: skip
        # Reserve space for title, footer and legend.
        in_legend = sum(label.count("\n") + 1 for label in shown) / columns
        around = 0.16 * _rows(title) + 0.14 * math.ceil(in_legend) + 0.1 * _rows(foot) + 0.3
        self.figure.set_figheight(self.high + around)
        drawn = io.BytesIO()
        metadata = {"Title": self.title.partition("\n")[0], **_UNNAMED[self.form]}
        self.figure.savefig(drawn, format=self.form, metadata=metadata)
        return drawn.getvalue()


def _rows(text: str) -> int:
    return text.count("\n") + 1 if text else 0


def _style_context() -> Any:  # noqa: ANN401 -- of matplotlib
    require()
    import matplotlib as mpl  # noqa: PLC0415 -- only who wants plots needs it

    return mpl.rc_context({**mpl.rcParamsDefault, **_STYLE})


def bars(  # noqa: PLR0913 -- the last ones are keywords
    title: str,
    axis: str,
    ours: Sequence[Measurement],
    rows: Sequence[Result],
    spans: Sequence[Span] = (),
    *,
    foot: str = "",
    form: Format = "svg",
) -> bytes:
    """Draw each of our numbers as a bar, beside the published number if there is one.

    A number's name is `bar, panel`. A sum is drawn as a stack, and a span as a whisker. If panels have different
    units, `axis` has a label for each, separated by `; `. `foot` is the footer.

    Raises:
        UnavailableError: matplotlib is not installed.

    """
    with _style_context():
        canvas = _Canvas(title, foot, form)
        names = list(dict.fromkeys(row["name"].partition(", ")[2] for row in rows))
        units = dict(zip(dict.fromkeys(row["unit"] for row in rows), axis.split("; "), strict=True))
        tops = [max(row["ours"] for row in rows if row["name"].partition(", ")[2] == name) for name in names]
        alike = len(units) == 1 and max(tops) < _SCALES * min(tops)
        most = max(sum(row["name"].partition(", ")[2] == name for row in rows) for name in names)
        columns = 2 if len(names) > 2 and most <= _HALF else 1
        panels = canvas.panels(len(names), columns, 1.45, sharey=alike)
        spans_of = {span.name: span for span in spans}
        for place, (axes, name) in enumerate(zip(panels, names, strict=True)):
            in_panel = [(o, r) for o, r in zip(ours, rows, strict=True) if r["name"].partition(", ")[2] == name]
            _panel(axes, in_panel, spans_of)
            axes.set_title(textwrap.fill(name, 24))
            if not alike or place % columns == 0:
                axes.set_ylabel(units[in_panel[0][1]["unit"]])
        return canvas.drawn(("published", _BOUND, "ours", NOT_STEADY, _WHISKER))


class _Series(NamedTuple):
    """Numbers drawn as one line: its name, and its numbers in each panel."""

    name: str
    panels: dict[str, list[Result]]


def lines(  # noqa: PLR0913 -- the last ones are keywords
    title: str,
    along: str,
    axis: str,
    rows: Sequence[Result],
    logarithmic: str = "",
    *,
    foot: str = "",
    form: Format = "svg",
) -> bytes:
    """Draw our numbers as lines, beside the published numbers if there are any.

    A number's name is `place, line`, where the place starts with a number. For any other name, the published number is
    drawn as a level. Axes can be logarithmic: `x`, `y` or both. Numbers of each unit have a separate panel. `axis` then
    has a label for each, separated by `; `, and the last word of the names identifies the panel. Indistinguishable
    lines are drawn as one with all their names. `foot` is the footer.

    Raises:
        UnavailableError: matplotlib is not installed.

    """
    with _style_context():
        canvas = _Canvas(title, foot, form)
        points = [row for row in rows if is_point(row)]
        units = list(dict.fromkeys(row["unit"] for row in points))
        panels = canvas.panels(len(units), 1, 1.7, sharex=True)
        series = _distinguish(all_series(points), logarithmic)
        for axes, unit, label in zip(panels, units, axis.split("; "), strict=True):
            axes.set_ylabel(label)
            for one, (style, colour) in zip(series, _styles(), strict=False):
                _curve(axes, one.panels.get(unit, []), one.name, style, colour)
            for row in rows:
                if not is_point(row) and row["unit"] == unit and row["published"] is not None:
                    axes.axhline(row["published"], color="#555555", linestyle=":", label=_AT_BEST)
                    text = f"{_short(row['published'])}: {row['name']}"
                    axes.annotate(
                        text, (1, row["published"]), (0, 1), xycoords=("axes fraction", "data"),
                        textcoords="offset points", ha="right", va="bottom", fontsize=_SMALL,
                    )  # fmt: skip
            drawn = [value for row in rows if row["unit"] == unit for value in (row["ours"], row["published"]) if value]
            # A linear axis from zero is clearer for less than a decade.
            if "y" in logarithmic and max(drawn) > 10 * min(drawn):
                axes.set_yscale("log")
                axes.yaxis.set_major_formatter(_plain)
            else:
                axes.set_ylim(bottom=0)
            if "x" in logarithmic:
                axes.set_xscale("log")
                axes.xaxis.set_major_formatter(_plain)
        panels[-1].set_xlabel(along)
        return canvas.drawn(("published", _AT_BEST, NOT_STEADY))


def shares(  # noqa: PLR0913 -- the last ones are keywords
    title: str,
    along: str,
    axis: str,
    rows: Sequence[Result],
    logarithmic: str = "",
    *,
    foot: str = "",
    form: Format = "svg",
) -> bytes:
    """Draw cumulative distributions: the share of numbers up to a value, beside the published ones.

    A number's name is `share, line`; the share is in percent. The arguments are those of `lines`, but `axis` is
    horizontal and logarithmic with `y`.

    Raises:
        UnavailableError: matplotlib is not installed.

    """
    with _style_context():
        canvas = _Canvas(title, foot, form)
        [axes] = canvas.panels(1, 1, 2.1)
        for one, (style, colour) in zip(_distinguish(all_series(rows), logarithmic), _styles(), strict=False):
            [in_panel] = one.panels.values()
            # A constant value is a single step.
            places, values = [0.0, *map(place_of, in_panel)], [in_panel[0]["ours"], *(row["ours"] for row in in_panel)]
            axes.plot(values, places, style, color=colour, drawstyle="steps-post", label=one.name)
            for row in in_panel:
                if row["published"] is not None:
                    axes.plot(row["published"], place_of(row), "x", color="black", markersize=5, label="published")
        axes.set_xlabel(axis)
        axes.set_ylabel(along)
        axes.set_ylim(0, 103)
        if "y" in logarithmic:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(_plain)
        return canvas.drawn(("published",))


def is_point(row: Result) -> bool:
    """Return whether a number is a point of a line: its name starts with its place."""
    # Rows from a file have keys, but no attributes.
    name: str = row["name"]
    return name[0].isdigit()


def place_of(row: Result) -> float:
    """Return the position of a point on its line."""
    return float(row["name"].split()[0].rstrip(","))


def _styles() -> Iterator[tuple[str, str]]:
    """Yield styles and colours: solid lines in all colours, then dashed, then dotted."""
    return itertools.product(("-", "--", ":"), _LINES)


def all_series(rows: Sequence[Result]) -> list[_Series]:
    """Group numbers by series and panel."""
    series: dict[str, dict[str, list[Result]]] = {}
    units = list(dict.fromkeys(row["unit"] for row in rows))
    for unit in units:
        in_panel = [row for row in rows if row["unit"] == unit]
        last = {row["name"].split()[-1] for row in in_panel}
        for row in in_panel:
            name = row["name"].partition(", ")[2]
            # The common last word of a panel's names identifies the panel.
            if len(units) > 1 and len(last) == 1 and " " in name:
                name = name.rpartition(" ")[0].rstrip(",")
            series.setdefault(name, {}).setdefault(unit, []).append(row)
    return [_Series(name, panels) for name, panels in series.items()]


def _distinguish(series: Sequence[_Series], logarithmic: str) -> list[_Series]:
    """Merge series that would cover each other, and join their names."""
    values = [row["ours"] for one in series for rows in one.panels.values() for row in rows]
    least = 0 if "y" in logarithmic else max(values, default=0)
    apart: list[tuple[_Series, list[str]]] = []
    for one in series:
        for other, names in apart:
            if _overlap(one, other, least):
                names.append(one.name)
                break
        else:
            apart.append((one, [one.name]))
    return [one._replace(name=_join_names(names)) for one, names in apart]


def _join_names(names: Sequence[str]) -> str:
    """Join the names of a line; a common beginning appears only once."""
    words = [name.split(", ") for name in names]
    alike = sum(1 for _ in itertools.takewhile(lambda position: len(set(position)) == 1, zip(*words, strict=False)))
    return " = ".join([names[0], *(", ".join(of_one[alike:]) or ", ".join(of_one) for of_one in words[1:])])


def _overlap(one: _Series, other: _Series, least: float) -> bool:
    if one.panels.keys() != other.panels.keys():
        return False
    pairs = [(one.panels[unit], other.panels[unit]) for unit in one.panels]
    return all(
        len(mine) == len(theirs)
        and all(
            place_of(a) == place_of(b)
            and abs(a["ours"] - b["ours"]) <= _ALIKE * max(a["ours"], least)
            and a["published"] in (None, b["published"])
            for a, b in zip(mine, theirs, strict=True)
        )
        for mine, theirs in pairs
    )


def _plain(value: float, _: object) -> str:
    return f"{value:g}"


def _curve(axes: Axes, in_panel: Sequence[Result], name: str, style: str, colour: str) -> None:
    if not in_panel:
        return
    places = [place_of(row) for row in in_panel]
    axes.plot(places, [row["ours"] for row in in_panel], style, color=colour, marker="o", label=name)
    for place, row in zip(places, in_panel, strict=True):
        if row["published"] is not None:
            axes.plot(place, row["published"], "x", color=colour, markersize=5, clip_on=False, label="published")
        if row["use"] == NOT_STEADY:
            axes.plot(place, row["ours"], "o", color="black", markersize=5, fillstyle="none", label=NOT_STEADY)


def _panel(axes: Axes, in_panel: Sequence[tuple[Measurement, Result]], spans: Mapping[str, Span]) -> None:
    upright = len(in_panel) > _BESIDE
    for place, (ours, row) in enumerate(in_panel):
        theirs = row["published"]
        position = place if theirs is None else place + _WIDTH / 2 + 0.02
        label = _short(ours.value)
        if theirs is not None:
            left = place - _WIDTH / 2 - 0.02
            axes.bar(left, theirs, _WIDTH, color=_PUBLISHED, label="published")
            axes.annotate(
                _short(theirs), (left, theirs), (0, -1), textcoords="offset points", ha="center", va="top",
                fontsize=_SMALL,
            )  # fmt: skip
        if row["error"] is not None:
            label += f"\n{row['error']:+.1%}"
        not_steady = row["use"] == NOT_STEADY
        if ours.parts:
            _stack(axes, position, ours.parts)
        else:
            [bar] = axes.bar(position, ours.value, _WIDTH, color=_OURS, label=NOT_STEADY if not_steady else "ours")
            if not_steady:
                bar.set(hatch="////", edgecolor="white")
        if span := spans.get(ours.name):
            beside = position + _WIDTH / 2 + 0.06
            low, high = (end.ours for end in span.ends())
            axes.plot([beside, beside], [low, high], color="black", linewidth=0.7, marker="_")
            axes.plot(beside, span.ours, color="black", linewidth=0.7, marker="o", markersize=2, label=_WHISKER)
        if row["bound"] is not None:
            axes.plot(
                [position - _WIDTH, position + _WIDTH], [row["bound"]] * 2, color="black", linewidth=1, label=_BOUND
            )
        _write(axes, position, ours.value, label, upright=upright)
    names = [row["name"].partition(", ")[0].replace("+", "+\n") for _, row in in_panel]
    axes.set_xticks(range(len(in_panel)), names)
    axes.tick_params(axis="x", length=0, labelrotation=90 if upright else 0, labelsize=_SMALL if upright else 7)
    axes.set_xlim(-0.6, len(in_panel) - 0.4)
    axes.margins(y=0.4 if upright else 0.22)


def _stack(axes: Axes, position: float, parts: Mapping[str, float]) -> None:
    """Draw a sum as a stack of its parts, merged by component."""
    sums: dict[str, float] = {}
    for name, value in parts.items():
        component = name.partition(".")[0]
        sums[component] = sums.get(component, 0) + value
    bottom = 0.0
    for component, value in sums.items():
        if value < _VISIBLE * sum(sums.values()):
            continue
        label = f"ours: {_WORDS.get(component, component)}"
        axes.bar(position, value, _WIDTH, bottom=bottom, color=_PARTS[component], label=label)
        bottom += value


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _write(axes: Axes, position: float, top: float, text: str, *, upright: bool = False) -> None:
    axes.annotate(
        text, (position, top), (0, 1), textcoords="offset points", ha="center", va="bottom", fontsize=_SMALL,
        rotation=90 if upright else 0,
    )  # fmt: skip
