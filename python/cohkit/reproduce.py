"""`cohkit reproduce`: runs experiments, prints tables, and writes rows and plots."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cohkit import __version__, plots
from cohkit.assumptions import NOT_STUDIED, reduced, study
from cohkit.errors import Error, InputError, suggestion
from cohkit.experiments import EXPERIMENTS, Conditions
from cohkit.experiments.sensitivity import deciding
from cohkit.experiments.study import SEPARATOR
from cohkit.files import try_folder, write
from cohkit.progress import Bar
from cohkit.published import COUNT, NOT_STEADY, Published, compare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cohkit.assumptions import Sensitivity
    from cohkit.experiments import Experiment, Span
    from cohkit.experiments.sensitivity import Reach
    from cohkit.published import Measurement
    from cohkit.types import Result


class ReproduceRequest(NamedTuple):
    """Request to reproduce experiments.

    Attributes:
        experiments: names of experiments.
        json: print rows as JSON instead of tables.
        sensitivity: also recompute numbers with assumed quantities at the ends of their ranges.
        conditions: seed, limits and progress of all simulations.

    """

    experiments: Sequence[str]
    published: str | None = None
    """File with additional published numbers."""
    out: str | None = None
    """Folder for rows and plots."""
    form: plots.Format = "svg"
    """Format of plots."""
    json: bool = False
    sensitivity: bool = False
    conditions: Conditions = Conditions()
    command: str = ""
    """Command line, for the JSON output."""


class ReproduceResult(NamedTuple):
    """An experiment that was run.

    Attributes:
        ours: the experiment's numbers.
        rows: comparison of each number with the published one.
        sensitivity: numbers with other values of assumed quantities; empty unless requested.

    """

    name: str
    experiment: Experiment
    ours: list[Measurement]
    rows: list[Result]
    sensitivity: Sensitivity
    remarks: list[str]
    """Remarks on the published numbers."""
    comparisons: list[str]
    """Remarks on how our numbers are compared."""


def reproduce(request: ReproduceRequest) -> None:
    """Run the experiments, print their results, and write them if requested.

    Raises:
        Error: the request is invalid, or something that it needs is missing.
        OSError: a file or folder cannot be read or written.

    """
    names = _select(request.experiments)
    _reject_unused_options(names, request)
    published = Published.shipped()
    if request.published:
        published.join(Published.read(request.published))
    # Detect an unusable output folder before a long run.
    if request.out:
        if any(EXPERIMENTS[name].axis for name in names):
            plots.require()
        try_folder(Path(request.out))
    all_values: list[dict[str, Any]] = []
    for name in names:
        result = _run(name, published, request)
        run = {"command": request.command, "version": __version__}
        values = [value | {"run": run} for value in _json(result)]
        if request.json:
            all_values += values
        else:
            sys.stdout.write(("" if name == names[0] else "\n") + _table(result, request.conditions))
            sys.stdout.flush()
        if request.out:
            written = _write_all(Path(request.out), result, values, request)
            stream = sys.stderr if request.json else sys.stdout
            stream.write(
                "".join(f"\n{kind}: {file}" for kind, file in written).lstrip("\n" if request.json else "") + "\n"
            )
    if request.json:
        sys.stdout.write(_dump(all_values))
    if request.published and not published.is_used(request.published):
        sys.stderr.write(f"note: no number of {request.published} belongs to these experiments\n")


def _select(names: Sequence[str]) -> list[str]:
    if "all" in names:
        return [name for name in EXPERIMENTS if _has_requirements(name)]
    for name in names:
        if name not in EXPERIMENTS:
            names_text = ", ".join(EXPERIMENTS)
            raise InputError(f"there is no experiment `{name}`; {suggestion(name, EXPERIMENTS)}there are {names_text}")
    return list(dict.fromkeys(names))


def _has_requirements(name: str) -> bool:
    """Return whether the requirements of an experiment are met, and print what is missing."""
    needs = EXPERIMENTS[name].needs
    missing = needs() if needs else ""
    if missing:
        sys.stderr.write(f"note: {name} is left out: {missing}\n")
    return not missing


def _reject_unused_options(names: Sequence[str], request: ReproduceRequest) -> None:
    """Reject an option that applies to no selected experiment, and warn if it applies only to some."""
    limited = [name for name, experiment in EXPERIMENTS.items() if experiment.limited]
    if request.conditions.accesses is not None and not set(limited) & set(names):
        raise InputError(f"`--accesses` has no meaning for {', '.join(names)}; it has for {', '.join(limited)}")
    if request.sensitivity:
        rerun = [name for name, experiment in EXPERIMENTS.items() if experiment.has_assumptions]
        others = ", ".join(name for name in names if name not in rerun)
        message = f"`--sensitivity` has no meaning for {others}; it has for {', '.join(rerun)}"
        if not set(rerun) & set(names):
            raise InputError(message)
        if others:
            sys.stderr.write(f"note: {message}\n")


def _run(name: str, published: Published, request: ReproduceRequest) -> ReproduceResult:
    """Run one experiment with progress bars, and compare its numbers with the published ones."""
    experiment = EXPERIMENTS[name]
    conditions = request.conditions
    with Bar(name) as bar:
        try:
            ours = experiment.run(conditions._replace(progress=bar))
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    rows = compare(name, ours, published)
    sensitivity = NOT_STUDIED
    if request.sensitivity and experiment.has_assumptions:
        with Bar(f"{name} --sensitivity") as bar:
            # Numbers that are already computed are printed even if a rerun fails.
            try:
                sensitivity = study(name, experiment, ours, published, conditions._replace(progress=bar))
            except Error as error:
                sys.stderr.write(f"note: {name} --sensitivity is incomplete: {error}\n")
    remarks = dict.fromkeys(remark for measurement in ours if (remark := published.remark(measurement.key)))
    comparisons = dict.fromkeys(one for measurement in ours if (one := published.comparison(measurement.key)))
    return ReproduceResult(name, experiment, ours, rows, sensitivity, list(remarks), list(comparisons))


def _json(result: ReproduceResult) -> list[dict[str, Any]]:
    """Return the rows with their sensitivity to the assumptions."""
    spans = {span.name: span for span in result.sensitivity.spans}
    reaches = {reach.name: reach for reach in result.sensitivity.reaches}
    values = []
    for row in result.rows:
        value: dict[str, Any] = dict(row)
        if span := spans.get(row["name"]):
            lowest, highest = span.ends()
            value["sensitivity"] = {
                "ours": span.ours,
                "lowest": lowest.ours,
                "highest": highest.ours,
                "deciding": deciding(span),
                "reruns": [rerun._asdict() for rerun in span.reruns],
                "search": reach._asdict() if (reach := reaches.get(span.name)) else None,
            }
        values.append(value)
    return values


def _dump(values: object) -> str:
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def number(value: float, unit: str) -> str:
    """Format a number with its unit for tables."""
    if unit == COUNT:
        return f"{value:.0f}" if value == round(value) else f"{value:.1f}"
    return f"{value:.4g} {unit}"


def published_cell(row: Result) -> str:
    """Format the published value of a row: its number, a bound or an order in words, or that it is kept separately."""
    if row["published"] is not None:
        return number(row["published"], row["unit"])
    return row["says"] or "kept"


def error_cell(error: float | None, ratio: float | None, holds: bool | None) -> str:  # noqa: FBT001 -- as rows have it
    """Format the deviation of a number: its relative error, or its ratio to the compared number, and the verdict."""
    if error is not None:
        return f"{error:+.1%}"
    if ratio is None:
        return ""
    return f"{ratio:.4g}x" + {True: ", holds", False: ", fails", None: ""}[holds]


def _columns(lines: Sequence[Sequence[str]]) -> str:
    """Align cells in columns, the first to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ""
    for first, *cells in lines:
        right_cells = [f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True)]
        text += "  ".join(["", f"{first:<{widths[0]}}", *right_cells]).rstrip() + "\n"
    return text


def _title(result: ReproduceResult, conditions: Conditions) -> str:
    """Return the title of an experiment, and whether its size is reduced."""
    return _limited_title(f"{result.name}: {result.experiment.title}", result, conditions)


def _limited_title(title: str, result: ReproduceResult, conditions: Conditions) -> str:
    if result.experiment.limited and conditions.accesses is not None:
        title += f"\n({result.experiment.limited(conditions.accesses)})"
    return title


def _table(result: ReproduceResult, conditions: Conditions) -> str:
    """Return an experiment's numbers as text, with legend, parts and sensitivity."""
    text = f"{_title(result, conditions)}\n"
    # Show the column of blind predictions only if there are any.
    has_blind = any(row["blind"] is not None for row in result.rows)
    lines = [["", "published", "ours", "error", *(["blind", "error"] if has_blind else []), "how"]]
    for row in result.rows:
        unit, blind = row["unit"], row["blind"]
        error = error_cell(row["error"], row["ratio"], row["holds"])
        blind_cells = [
            "" if blind is None else number(blind, unit),
            error_cell(row["blind_error"], row["blind_ratio"], row["blind_holds"]),
        ]
        lines.append(
            [
                row["name"],
                published_cell(row),
                number(row["ours"], unit),
                error,
                *blind_cells[: 2 * has_blind],
                provenance_cell(row),
            ]
        )
    text += "\n" + _columns(lines)
    if words := _legend(result):
        text += "\n" + words
    if any(ours.parts for ours in result.ours):
        text += "\n" + _parts_table(result.ours)
    if result.sensitivity.spans:
        text += "\n" + _sensitivity_table(result, conditions)
    if result.experiment.note:
        text += f"\n{result.experiment.note}"
    if result.experiment.omissions:
        text += textwrap.fill(_omissions(result), 120) + "\n"
    return text


def provenance_cell(row: Result) -> str:
    """Return the provenance of a number, and whether a throughput is not steady."""
    return f"{row['use']}, not steady" if row["steady"] is False and row["use"] != NOT_STEADY else row["use"]


def _legend(result: ReproduceResult) -> str:
    """Explain the terms that appear in a table, and add the remarks on published numbers."""
    rows = result.rows
    lines = [f"As published: {remark}" for remark in result.remarks]
    lines += [f"Comparison: {comparison}" for comparison in result.comparisons]
    if any(row["blind"] is not None for row in rows):
        lines.append("Blind: the prediction made before the published result was seen; it never changes.")
    if any(row["ratio"] is not None for row in rows):
        lines.append("x: multiple of the compared value, and the verdict on the order or bound, if one is given.")
    if any(published_cell(row) == "kept" for row in rows):
        lines.append(
            "Kept: the published number, if there is one, is in a separate file, so that ours is made without "
            "it; `--published FILE.toml` adds it."
        )
    if any(row["use"] == NOT_STEADY for row in rows):
        lines.append(
            "Not steady: the simulation was cut while its throughput still changed or its caches still filled, so that "
            "the number at full size may differ; it predicts nothing."
        )
    elif any(row["steady"] is False for row in rows):
        lines.append("Not steady: over the simulation the throughput still changed.")
    return "".join(textwrap.fill(line, 120) + "\n" for line in lines)


def _omissions(result: ReproduceResult) -> str:
    return f"Left out: {result.experiment.omissions}."


def _parts_table(ours: Sequence[Measurement]) -> str:
    """Show the parts of each number that is a sum."""
    parts = list(dict.fromkeys(name for measurement in ours for name in measurement.parts))
    # The remainder comes last.
    parts.sort(key=lambda name: "." not in name)
    heads = zip(*(measurement.name.split(", ") for measurement in ours), strict=True)
    lines = [["", *head] for head in heads]
    lines += [
        [name, *(f"{measurement.parts[name]:.1f}" if name in measurement.parts else "-" for measurement in ours)]
        for name in parts
    ]
    lines.append([f"sum, {ours[0].unit}", *(f"{sum(measurement.parts.values()):.1f}" for measurement in ours)])
    return "Each is the sum of:\n\n" + _columns(lines)


def _sensitivity_table(result: ReproduceResult, conditions: Conditions) -> str:
    """Show the sensitivity of each number to the assumptions."""
    accesses = reduced(result.experiment, conditions).accesses
    limit = f" ({result.experiment.limited(accesses)})" if result.experiment.limited and accesses else ""
    lines = [["", "ours", "lowest", "where", "highest", "where"]]
    units = {row["name"]: row["unit"] for row in result.rows}
    sensitivity = result.sensitivity
    for span in sensitivity.spans:
        # A shorter run may have a number that the full run lacks.
        unit = units.get(span.name, "")
        cells = [span.name, number(span.ours, unit)]
        for end in span.ends():
            cells += [number(end.ours, unit), f"{_short(end.quantity, span)} = {end.value}" if end.quantity else ""]
        lines.append(cells)
    text = f"With each assumed value at both ends of its range, one at a time{limit}:\n\n" + _columns(lines)
    text += "\nQuantities that decide most of a number:\n\n"
    for span in sensitivity.spans:
        if names := deciding(span):
            text += _wrapped(f"{span.name}: {', '.join(_short(name, span) for name in names)}")
    if sensitivity.reaches:
        text += "\nPublished values, with several quantities at ends of their ranges at once:\n\n"
    spans = {span.name: span for span in sensitivity.spans}
    for reach in sensitivity.reaches:
        text += _wrapped(_reach_text(reach, units.get(reach.name, ""), spans[reach.name]))
    if sensitivity.sums:
        text += "\nFitted sums are held while their parts vary:\n\n" + "".join(map(_wrapped, sensitivity.sums))
    text += (
        f"\nSettings evaluated: {sensitivity.evaluated}, of which {sensitivity.failed} failed. The search evaluates at "
        f"most {sensitivity.budget}\nsettings of several quantities; its seed is {sensitivity.seed}.\n"
    )
    return text


def _short(quantity: str, span: Span) -> str:
    """Return a quantity without its part of the model if the number depends on this part only."""
    parts = {rerun.quantity.rpartition(SEPARATOR)[0] for rerun in span.reruns}
    return quantity.rpartition(SEPARATOR)[2] if len(parts) == 1 else quantity


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, initial_indent="  ", subsequent_indent="    ") + "\n"


def _reach_text(reach: Reach, unit: str, span: Span) -> str:
    """Describe whether settings inside the ranges meet a published value."""
    settings = ", ".join(f"{_short(name, span)} = {value}" for name, value in reach.settings.items())
    if reach.held:
        settings += "; then " + ", ".join(f"{_short(name, span)} = {value}" for name, value in reach.held.items())
    if reach.other:
        target, value = f"the order with {reach.other}", f"{reach.value:.4g}x"
    else:
        target, value = number(reach.target, unit), number(reach.value, unit)
    if reach.is_met and not settings:
        return f"{reach.name}: met without other values"
    if reach.is_met:
        return f"{reach.name}: {target} is met, up to {value} with {settings}"
    return f"{reach.name}: {target} is not met by this search, only {value}" + (f" with {settings}" if settings else "")


def _write_all(
    folder: Path, result: ReproduceResult, values: object, request: ReproduceRequest
) -> list[tuple[str, Path]]:
    """Write the rows and the plot of an experiment, and return their locations."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [("rows", folder / f"{result.name}.json")]
    write(written[0][1], _dump(values).encode())
    if result.experiment.axis:
        written.append(("plot", folder / f"{result.name}.{request.form}"))
        write(written[1][1], _plot(result, request))
    return written


def _plot(result: ReproduceResult, request: ReproduceRequest) -> bytes:
    experiment = result.experiment
    title = _limited_title(experiment.headline or experiment.title, result, request.conditions)
    words = [f"As published: {remark}." for remark in result.remarks]
    words += [f"Comparison: {comparison}." for comparison in result.comparisons]
    foot = " ".join([*words, *([_omissions(result)] if experiment.omissions else [])])
    if experiment.along:
        draw = plots.shares if experiment.shares else plots.lines
        return draw(
            title, experiment.along, experiment.axis, result.rows, experiment.logarithmic, foot=foot, form=request.form
        )
    return plots.bars(
        title, experiment.axis, result.ours, result.rows, result.sensitivity.spans, foot=foot, form=request.form
    )
