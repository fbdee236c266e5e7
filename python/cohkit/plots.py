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
_METADATA: dict[Format, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}

# Column width of the usual two-column layout of journals, in inches.
_COLUMN_WIDTH_INCHES = 3.4
_TITLE_COLUMNS = 58
_FOOT_COLUMNS = 68
_LEGEND_COLUMNS = 56
_SMALL_FONT = 5.5

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
_WHISKER_LABEL = "reruns: nominal, and range of assumed quantities"
_BOUND_LABEL = "published bound"
_BEST_LABEL = "published, without a position on the axis"
_BAR_WIDTH = 0.38
# Maximum number of bars with horizontal names and numbers; more bars have vertical ones. Panels with more bars than
# _HALF use the whole width.
_MAX_HORIZONTAL_BARS = 6
_MAX_HALF_WIDTH_BARS = 14
# Panels whose bars differ by more than this factor have separate scales, so that small bars remain visible.
_MAX_SCALE_RATIO = 20
# Smallest visible share of a sum.
_MIN_VISIBLE_SHARE = 0.002
# Series that differ by at most this share everywhere are indistinguishable.
_MAX_SERIES_DEVIATION = 0.01


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

    def panels(self, count: int, columns: int, row_height: float, **subplot_options: Any) -> list[Axes]:  # noqa: ANN401 -- of matplotlib
        from matplotlib.figure import Figure  # noqa: PLC0415 -- matplotlib is optional

        rows = math.ceil(count / columns)
        self.high = row_height * rows
        self.figure: Figure = Figure(figsize=(_COLUMN_WIDTH_INCHES, self.high), layout="constrained")
        axes: list[Axes] = list(self.figure.subplots(rows, columns, squeeze=False, **subplot_options).flat)
        for empty in axes[count:]:
            empty.remove()
        return axes[:count]

    def render(self, last: Sequence[str] = ()) -> bytes:
        """Add title, footer and legend, and return the file; the legend entries `last` come last."""
        for axes in self.figure.axes:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                self.handles.setdefault(label, handle)
        labels = sorted(self.handles, key=lambda label: last.index(label) + 1 if label in last else 0)
        title = "\n".join(textwrap.fill(line, _TITLE_COLUMNS) for line in self.title.splitlines())
        self.figure.suptitle(title, fontsize=8)
        label_width = max((len(label) for label in labels), default=0)
        columns = max(1, min(len(labels), _LEGEND_COLUMNS // (label_width + 8)))
        wrapped_labels = [textwrap.fill(label, _LEGEND_COLUMNS) for label in labels]
        foot = textwrap.fill(self.foot, _FOOT_COLUMNS)
        handles = [self.handles[label] for label in labels]
        self.figure.legend(
            handles, wrapped_labels, loc="outside lower center", ncols=columns, frameon=False, title=foot or None,
            title_fontsize=_SMALL_FONT,
        )  # fmt: skip
        # Reserve space for title, footer and legend.
        legend_rows = sum(label.count("\n") + 1 for label in wrapped_labels) / columns
        margin_height = 0.16 * _rows(title) + 0.14 * math.ceil(legend_rows) + 0.1 * _rows(foot) + 0.3
        self.figure.set_figheight(self.high + margin_height)
        image = io.BytesIO()
        metadata = {"Title": self.title.partition("\n")[0], **_METADATA[self.form]}
        self.figure.savefig(image, format=self.form, metadata=metadata)
        return image.getvalue()


def _rows(text: str) -> int:
    return text.count("\n") + 1 if text else 0


def _style_context() -> Any:  # noqa: ANN401 -- of matplotlib
    require()
    import matplotlib as mpl  # noqa: PLC0415 -- matplotlib is optional

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
        maxima = [max(row["ours"] for row in rows if row["name"].partition(", ")[2] == name) for name in names]
        shared_scale = len(units) == 1 and max(maxima) < _MAX_SCALE_RATIO * min(maxima)
        max_bars = max(sum(row["name"].partition(", ")[2] == name for row in rows) for name in names)
        columns = 2 if len(names) > 2 and max_bars <= _MAX_HALF_WIDTH_BARS else 1
        panels = canvas.panels(len(names), columns, 1.45, sharey=shared_scale)
        spans_of = {span.name: span for span in spans}
        for place, (axes, name) in enumerate(zip(panels, names, strict=True)):
            in_panel = [(o, r) for o, r in zip(ours, rows, strict=True) if r["name"].partition(", ")[2] == name]
            _panel(axes, in_panel, spans_of)
            axes.set_title(textwrap.fill(name, 24))
            if not shared_scale or place % columns == 0:
                axes.set_ylabel(units[in_panel[0][1]["unit"]])
        return canvas.render(("published", _BOUND_LABEL, "ours", NOT_STEADY, _WHISKER_LABEL))


class _Series(NamedTuple):
    """Numbers drawn as one line: its name, and its numbers in each panel.

    Attributes:
        name: name in the legend.
        panels: numbers by the title of their panel.

    """

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
            for curve, (style, colour) in zip(series, _styles(), strict=False):
                _curve(axes, curve.panels.get(unit, []), curve.name, style, colour)
            for row in rows:
                if not is_point(row) and row["unit"] == unit and row["published"] is not None:
                    axes.axhline(row["published"], color="#555555", linestyle=":", label=_BEST_LABEL)
                    text = f"{_short(row['published'])}: {row['name']}"
                    axes.annotate(
                        text, (1, row["published"]), (0, 1), xycoords=("axes fraction", "data"),
                        textcoords="offset points", ha="right", va="bottom", fontsize=_SMALL_FONT,
                    )  # fmt: skip
            drawn_values = [
                value for row in rows if row["unit"] == unit for value in (row["ours"], row["published"]) if value
            ]
            # A linear axis from zero is clearer for less than a decade.
            if "y" in logarithmic and max(drawn_values) > 10 * min(drawn_values):
                axes.set_yscale("log")
                axes.yaxis.set_major_formatter(_plain)
            else:
                axes.set_ylim(bottom=0)
            if "x" in logarithmic:
                axes.set_xscale("log")
                axes.xaxis.set_major_formatter(_plain)
        panels[-1].set_xlabel(along)
        return canvas.render(("published", _BEST_LABEL, NOT_STEADY))


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
        for curve, (style, colour) in zip(_distinguish(all_series(rows), logarithmic), _styles(), strict=False):
            [in_panel] = curve.panels.values()
            # A constant value is a single step.
            positions, values = (
                [0.0, *map(x_position, in_panel)],
                [in_panel[0]["ours"], *(row["ours"] for row in in_panel)],
            )
            axes.plot(values, positions, style, color=colour, drawstyle="steps-post", label=curve.name)
            for row in in_panel:
                if row["published"] is not None:
                    axes.plot(row["published"], x_position(row), "x", color="black", markersize=5, label="published")
        axes.set_xlabel(axis)
        axes.set_ylabel(along)
        axes.set_ylim(0, 103)
        if "y" in logarithmic:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(_plain)
        return canvas.render(("published",))


def is_point(row: Result) -> bool:
    """Return whether a number is a point of a line: its name starts with its place."""
    # Rows from a file have keys, but no attributes.
    name: str = row["name"]
    return name[0].isdigit()


def x_position(row: Result) -> float:
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
    values = [row["ours"] for curve in series for rows in curve.panels.values() for row in rows]
    reference = 0 if "y" in logarithmic else max(values, default=0)
    groups: list[tuple[_Series, list[str]]] = []
    for curve in series:
        for other, names in groups:
            if _overlap(curve, other, reference):
                names.append(curve.name)
                break
        else:
            groups.append((curve, [curve.name]))
    return [curve._replace(name=_join_names(names)) for curve, names in groups]


def _join_names(names: Sequence[str]) -> str:
    """Join the names of a line; a common beginning appears only once."""
    words = [name.split(", ") for name in names]
    common_words = sum(
        1 for _ in itertools.takewhile(lambda position: len(set(position)) == 1, zip(*words, strict=False))
    )
    return " = ".join(
        [names[0], *(", ".join(name_words[common_words:]) or ", ".join(name_words) for name_words in words[1:])]
    )


def _overlap(curve: _Series, other: _Series, reference: float) -> bool:
    """Return true if two series would be drawn at the same place. `reference` is the largest number of the plot."""
    if curve.panels.keys() != other.panels.keys():
        return False
    pairs = [(curve.panels[unit], other.panels[unit]) for unit in curve.panels]
    return all(
        len(own_points) == len(other_points)
        and all(
            x_position(a) == x_position(b)
            and abs(a["ours"] - b["ours"]) <= _MAX_SERIES_DEVIATION * max(a["ours"], reference)
            and a["published"] in (None, b["published"])
            for a, b in zip(own_points, other_points, strict=True)
        )
        for own_points, other_points in pairs
    )


def _plain(value: float, _: object) -> str:
    return f"{value:g}"


def _curve(axes: Axes, in_panel: Sequence[Result], name: str, style: str, colour: str) -> None:
    """Draw one series in one panel."""
    if not in_panel:
        return
    positions = [x_position(row) for row in in_panel]
    axes.plot(positions, [row["ours"] for row in in_panel], style, color=colour, marker="o", label=name)
    for place, row in zip(positions, in_panel, strict=True):
        if row["published"] is not None:
            axes.plot(place, row["published"], "x", color=colour, markersize=5, clip_on=False, label="published")
        if row["use"] == NOT_STEADY:
            axes.plot(place, row["ours"], "o", color="black", markersize=5, fillstyle="none", label=NOT_STEADY)


def _panel(axes: Axes, in_panel: Sequence[tuple[Measurement, Result]], spans: Mapping[str, Span]) -> None:
    """Draw the bars of one panel: published numbers, ours with their parts, and whiskers for the sensitivity."""
    vertical_labels = len(in_panel) > _MAX_HORIZONTAL_BARS
    for place, (ours, row) in enumerate(in_panel):
        published = row["published"]
        position = place if published is None else place + _BAR_WIDTH / 2 + 0.02
        label = _short(ours.value)
        if published is not None:
            left = place - _BAR_WIDTH / 2 - 0.02
            axes.bar(left, published, _BAR_WIDTH, color=_PUBLISHED, label="published")
            axes.annotate(
                _short(published), (left, published), (0, -1), textcoords="offset points", ha="center", va="top",
                fontsize=_SMALL_FONT,
            )  # fmt: skip
        if row["error"] is not None:
            label += f"\n{row['error']:+.1%}"
        not_steady = row["use"] == NOT_STEADY
        if ours.parts:
            _stack(axes, position, ours.parts)
        else:
            [bar] = axes.bar(position, ours.value, _BAR_WIDTH, color=_OURS, label=NOT_STEADY if not_steady else "ours")
            if not_steady:
                bar.set(hatch="////", edgecolor="white")
        if span := spans.get(ours.name):
            whisker_position = position + _BAR_WIDTH / 2 + 0.06
            low, high = (end.ours for end in span.ends())
            axes.plot([whisker_position, whisker_position], [low, high], color="black", linewidth=0.7, marker="_")
            axes.plot(
                whisker_position,
                span.ours,
                color="black",
                linewidth=0.7,
                marker="o",
                markersize=2,
                label=_WHISKER_LABEL,
            )
        for bound in (row["at_least"], row["at_most"]):
            if bound is not None:
                axes.plot(
                    [position - _BAR_WIDTH, position + _BAR_WIDTH],
                    [bound] * 2,
                    color="black",
                    linewidth=1,
                    label=_BOUND_LABEL,
                )
        _write(axes, position, ours.value, label, upright=vertical_labels)
    names = [row["name"].partition(", ")[0].replace("+", "+\n") for _, row in in_panel]
    axes.set_xticks(range(len(in_panel)), names)
    axes.tick_params(
        axis="x", length=0, labelrotation=90 if vertical_labels else 0, labelsize=_SMALL_FONT if vertical_labels else 7
    )
    axes.set_xlim(-0.6, len(in_panel) - 0.4)
    axes.margins(y=0.4 if vertical_labels else 0.22)


def _stack(axes: Axes, position: float, parts: Mapping[str, float]) -> None:
    """Draw a sum as a stack of its parts, merged by component."""
    sums: dict[str, float] = {}
    for name, value in parts.items():
        component = name.partition(".")[0]
        sums[component] = sums.get(component, 0) + value
    bottom = 0.0
    for component, value in sums.items():
        if value < _MIN_VISIBLE_SHARE * sum(sums.values()):
            continue
        label = f"ours: {_WORDS.get(component, component)}"
        axes.bar(position, value, _BAR_WIDTH, bottom=bottom, color=_PARTS[component], label=label)
        bottom += value


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _write(axes: Axes, position: float, top: float, text: str, *, upright: bool = False) -> None:
    axes.annotate(
        text, (position, top), (0, 1), textcoords="offset points", ha="center", va="bottom", fontsize=_SMALL_FONT,
        rotation=90 if upright else 0,
    )  # fmt: skip
