"""`cohkit reproduce`: runs experiments, prints tables, and writes rows and plots."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cohkit import __version__, plots
from cohkit.errors import InputError, near
from cohkit.experiments import EXPERIMENTS, Conditions
from cohkit.files import try_folder, write
from cohkit.progress import Bar
from cohkit.published import COUNT, NOT_STEADY, Published, compare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cohkit.experiments import Experiment, Span
    from cohkit.published import Ours
    from cohkit.types import Result


class Wanted(NamedTuple):
    """Request to reproduce experiments."""

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


class Done(NamedTuple):
    """An experiment that was run."""

    name: str
    experiment: Experiment
    ours: list[Ours]
    rows: list[Result]
    spans: list[Span]
    remarks: list[str]
    """Remarks on the published numbers."""


def reproduce(wanted: Wanted) -> None:
    """Run the experiments, print their results, and write them if requested.

    Raises:
        Error: the request is invalid, or something that it needs is missing.
        OSError: a file or folder cannot be read or written.

    """
    names = _chosen(wanted.experiments)
    _refuse_what_has_no_meaning(names, wanted)
    published = Published.shipped()
    if wanted.published:
        published.join(Published.read(wanted.published))
    # Detect an unusable output folder before a long run.
    if wanted.out:
        if any(EXPERIMENTS[name].axis for name in names):
            plots.require()
        try_folder(Path(wanted.out))
    listed: list[dict[str, Any]] = []
    for name in names:
        done = _run(name, published, wanted)
        run = {"command": wanted.command, "version": __version__}
        values = [value | {"run": run} for value in _json(done)]
        if wanted.json:
            listed += values
        else:
            sys.stdout.write(("" if name == names[0] else "\n") + _table(done, wanted.conditions))
            sys.stdout.flush()
        if wanted.out:
            written = _write_all(Path(wanted.out), done, values, wanted)
            told = sys.stderr if wanted.json else sys.stdout
            told.write(
                "".join(f"\n{kind}: {file}" for kind, file in written).lstrip("\n" if wanted.json else "") + "\n"
            )
    if wanted.json:
        sys.stdout.write(_dump(listed))
    if wanted.published and not published.asked_of(wanted.published):
        sys.stderr.write(f"note: no number of {wanted.published} is one of these experiments\n")


def _chosen(names: Sequence[str]) -> list[str]:
    if "all" in names:
        return [name for name in EXPERIMENTS if _can_be_run(name)]
    for name in names:
        if name not in EXPERIMENTS:
            there = ", ".join(EXPERIMENTS)
            raise InputError(f"there is no experiment `{name}`; {near(name, EXPERIMENTS)}there are {there}")
    return list(dict.fromkeys(names))


def _can_be_run(name: str) -> bool:
    """Return whether the requirements of an experiment are met, and print what is missing."""
    needs = EXPERIMENTS[name].needs
    lacks = needs() if needs else ""
    if lacks:
        sys.stderr.write(f"note: {name} is left out: {lacks}\n")
    return not lacks


def _refuse_what_has_no_meaning(names: Sequence[str], wanted: Wanted) -> None:
    """Reject an option that applies to no selected experiment, and warn if it applies only to some."""
    limited = [name for name, experiment in EXPERIMENTS.items() if experiment.limited]
    if wanted.conditions.accesses is not None and not set(limited) & set(names):
        raise InputError(f"`--accesses` has no meaning for {', '.join(names)}; it has for {', '.join(limited)}")
    if wanted.sensitivity:
        rerun = [name for name, experiment in EXPERIMENTS.items() if experiment.spans]
        others = ", ".join(name for name in names if name not in rerun)
        told = f"`--sensitivity` has no meaning for {others}; it has for {', '.join(rerun)}"
        if not set(rerun) & set(names):
            raise InputError(told)
        if others:
            sys.stderr.write(f"note: {told}\n")


def _run(name: str, published: Published, wanted: Wanted) -> Done:
    experiment = EXPERIMENTS[name]
    conditions = wanted.conditions
    with Bar(name) as bar:
        try:
            ours = experiment.run(conditions._replace(progress=bar))
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    spans = []
    if wanted.sensitivity and experiment.spans:
        with Bar(f"{name} --sensitivity") as bar:
            spans = experiment.spans(_rerun(experiment, conditions)._replace(progress=bar))
    remarks = dict.fromkeys(remark for one in ours if (remark := published.remark(one.key)))
    return Done(name, experiment, ours, compare(name, ours, published), spans, list(remarks))


def _rerun(experiment: Experiment, conditions: Conditions) -> Conditions:
    """Shorten reruns, because there are many, unless the number of accesses is given."""
    return conditions._replace(accesses=conditions.accesses or experiment.rerun_accesses)


def _json(done: Done) -> list[dict[str, Any]]:
    """Return the rows with their sensitivity to the assumptions."""
    spans = {span.name: span for span in done.spans}
    values = []
    for row in done.rows:
        value: dict[str, Any] = dict(row)
        if span := spans.get(row["name"]):
            lowest, highest = span.ends()
            value["sensitivity"] = {
                "ours": span.ours,
                "lowest": lowest.ours,
                "highest": highest.ours,
                "reruns": [rerun._asdict() for rerun in span.reruns],
            }
        values.append(value)
    return values


def _dump(values: object) -> str:
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def number(value: float, unit: str) -> str:
    """Format a number with its unit for tables."""
    return f"{value:.0f}" if unit == COUNT else f"{value:.4g} {unit}"


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
        right = [f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True)]
        text += "  ".join(["", f"{first:<{widths[0]}}", *right]).rstrip() + "\n"
    return text


def _title(done: Done, conditions: Conditions) -> str:
    """Return the title of an experiment, and whether its size is reduced."""
    return _with_limit(f"{done.name}: {done.experiment.title}", done, conditions)


def _with_limit(title: str, done: Done, conditions: Conditions) -> str:
    if done.experiment.limited and conditions.accesses is not None:
        title += f"\n({done.experiment.limited(conditions.accesses)})"
    return title


def _table(done: Done, conditions: Conditions) -> str:
    text = f"{_title(done, conditions)}\n"
    # Show the column of blind predictions only if there are any.
    was = any(row["blind"] is not None for row in done.rows)
    lines = [["", "published", "ours", "error", *(["blind", "error"] if was else []), "how"]]
    for row in done.rows:
        unit, blind = row["unit"], row["blind"]
        error = error_cell(row["error"], row["ratio"], row["holds"])
        before = [
            "" if blind is None else number(blind, unit),
            error_cell(row["blind_error"], row["blind_ratio"], row["blind_holds"]),
        ]
        lines.append([row["name"], published_cell(row), number(row["ours"], unit), error, *before[: 2 * was], how(row)])
    text += "\n" + _columns(lines)
    if words := _words(done):
        text += "\n" + words
    if any(ours.parts for ours in done.ours):
        text += "\n" + _sums(done.ours)
    if done.spans:
        text += "\n" + _moves(done, conditions)
    if done.experiment.note:
        text += f"\n{done.experiment.note}"
    if done.experiment.left_out:
        text += textwrap.fill(_left_out(done), 120) + "\n"
    return text


def how(row: Result) -> str:
    """Return the provenance of a number, and whether a throughput is not steady."""
    return f"{row['use']}, not steady" if row["steady"] is False and row["use"] != NOT_STEADY else row["use"]


def _words(done: Done) -> str:
    """Explain the terms that appear in a table, and add the remarks on published numbers."""
    rows = done.rows
    told = [f"As published: {remark}" for remark in done.remarks]
    if any(row["blind"] is not None for row in rows):
        told.append("Blind: the prediction made before the published result was seen; it never changes.")
    if any(row["ratio"] is not None for row in rows):
        told.append(
            "x: as a multiple of what it is compared with; whether the order or bound holds, where it can be judged."
        )
    if any(published_cell(row) == "kept" for row in rows):
        told.append(
            "Kept: no published number stands here. Where there is one it is kept apart, so that ours is made without "
            "it; `--published FILE.toml` joins it."
        )
    if any(row["use"] == NOT_STEADY for row in rows):
        told.append(
            "Not steady: the simulation was cut while its throughput still changed or its caches still filled, so that "
            "the number at full size may be another; it predicts nothing."
        )
    elif any(row["steady"] is False for row in rows):
        told.append("Not steady: over the simulation the throughput still changed.")
    return "".join(textwrap.fill(line, 120) + "\n" for line in told)


def _left_out(done: Done) -> str:
    return f"Left out: {done.experiment.left_out}."


def _sums(ours: Sequence[Ours]) -> str:
    """Show the parts of each number that is a sum."""
    parts = list(dict.fromkeys(name for one in ours for name in one.parts))
    # The remainder comes last.
    parts.sort(key=lambda name: "." not in name)
    heads = zip(*(one.name.split(", ") for one in ours), strict=True)
    lines = [["", *head] for head in heads]
    lines += [[name, *(f"{one.parts[name]:.1f}" if name in one.parts else "-" for one in ours)] for name in parts]
    lines.append([f"sum, {ours[0].unit}", *(f"{sum(one.parts.values()):.1f}" for one in ours)])
    return "Each is the sum of:\n\n" + _columns(lines)


def _moves(done: Done, conditions: Conditions) -> str:
    """Show the sensitivity of each number to the assumptions."""
    accesses = _rerun(done.experiment, conditions).accesses
    limit = f" ({done.experiment.limited(accesses)})" if done.experiment.limited and accesses else ""
    lines = [["", "ours", "lowest", "where", "highest", "where"]]
    units = {row["name"]: row["unit"] for row in done.rows}
    for span in done.spans:
        # A shorter run may have a number that the full run lacks.
        unit = units.get(span.name, "")
        cells = [span.name, number(span.ours, unit)]
        for end in span.ends():
            cells += [number(end.ours, unit), f"{end.quantity} = {end.value}" if end.quantity else ""]
        lines.append(cells)
    return f"With each value that is assumed at both ends of its range, one at a time{limit}:\n\n" + _columns(lines)


def _write_all(folder: Path, done: Done, values: object, wanted: Wanted) -> list[tuple[str, Path]]:
    """Write the rows and the plot of an experiment, and return their locations."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [("rows", folder / f"{done.name}.json")]
    write(written[0][1], _dump(values).encode())
    if done.experiment.axis:
        written.append(("plot", folder / f"{done.name}.{wanted.form}"))
        write(written[1][1], _plot(done, wanted))
    return written


def _plot(done: Done, wanted: Wanted) -> bytes:
    about = done.experiment
    title = _with_limit(about.headline or about.title, done, wanted.conditions)
    words = [f"As published: {remark}." for remark in done.remarks]
    foot = " ".join([*words, *([_left_out(done)] if about.left_out else [])])
    if about.along:
        draw = plots.shares if about.shares else plots.lines
        return draw(title, about.along, about.axis, done.rows, about.logarithmic, foot=foot, form=wanted.form)
    return plots.bars(title, about.axis, done.ours, done.rows, done.spans, foot=foot, form=wanted.form)
