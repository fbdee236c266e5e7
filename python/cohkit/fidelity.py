"""Makes `docs/fidelity.md`: all published results beside ours, those predicted blind among them, with errors.

    tools/record fidelity --seed 0 -- .venv/bin/python -m cohkit.fidelity --run
    .venv/bin/python -m cohkit.fidelity records/fidelity.jsonl > docs/fidelity.md

The first runs every experiment at full size, a few minutes of one core, and records our numbers with their commit. The
second puts what is recorded last beside `experiments/published.toml`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohkit.experiments import EXPERIMENTS, Conditions
from cohkit.published import Measurement, Published, compare
from cohkit.reproduce import error_cell, number, provenance_cell, published_cell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cohkit.types import Result

HEAD = """\
# Accuracy relative to published results

`cohkit reproduce` prints published numbers beside ours; here are all of them at once.
This page is made by `python -m cohkit.fidelity`: *published* and *blind* are in \
[`experiments/published.toml`](../experiments/published.toml), and *ours* was recorded at full size by commit \
{commit}.

Each of our numbers has one of three origins:

- *fitted*: quantities of a platform were chosen so that it comes out;
- *predicted blind*: it was made, by commit 608afff, before anyone on the project had seen the published result; \
this *blind* value never changes, even if ours does;
- *known*: the published result could be seen when ours was made, but nothing was tuned to it.

Errors are relative to the published value.
A published order or bound is given in words, and the factor is ours divided by the value compared with; \
*holds* and *fails* are the verdict on it, if one is possible.
"""

BROKEN = """\
## Bounds that ours break

{broken}

That the device asks for no more than 322 million lines in a second, one in each clock, is itself a published \
definition of the machine, so 662 million is a fault of the model, not only an error of a prediction.
Each of its two slices accepted a local operation in each clock, and nothing in front of the slices was limited.
Now one port of the device issues them to both slices, one in each clock (`device.issue`), and \
`cohkit reproduce cckit-table3` shows 322 million; the blind value stays as it is.
"""


def page(record: dict[str, Any], published: Published) -> str:
    """Write the page from a record of `--run`."""
    commit = record["commit"]
    parts = [HEAD.format(commit=f"{commit[:7]}{commit[40:]}")]
    compared = {name: _compare(name, record["result"], published) for name in EXPERIMENTS}
    everything = [row for rows in compared.values() for row in rows]
    parts.append(_summary(everything))
    parts += [_section(name, rows, published) for name, rows in compared.items() if rows]
    lines = [
        f"- {row['experiment']}, {row['name']}: {number(row['ours'], row['unit'])} where it is {row['says']}"
        for row in everything
        if row["bound"] is not None and row["holds"] is False
    ]
    if lines:
        parts.append(BROKEN.format(broken="\n".join(lines)))
    return "\n".join(parts)


def _compare(name: str, recorded: Sequence[dict[str, Any]], published: Published) -> list[Result]:
    """Return the rows of an experiment with a published value."""
    ours = [
        Measurement(row["name"], row["ours"], row["unit"], row["key"], steady=row["steady"])
        for row in recorded
        if row["experiment"] == name
    ]
    return [row for row in compare(name, ours, published) if published_cell(row) != "kept"]


def _summary(rows: Sequence[Result]) -> str:
    lines = ["| | numbers | within 5 % | within 25 % | orders and bounds | hold |", "|---|---|---|---|---|---|"]
    for use in ("fitted", "predicted blind", "known"):
        # For blind predictions, count the predicted values.
        blind = use == "predicted blind"
        here = [row for row in rows if row["use"] == use]
        errors = [abs(error) for row in here if (error := row["blind_error" if blind else "error"]) is not None]
        holds = [holds for row in here if (holds := row["blind_holds" if blind else "holds"]) is not None]
        within = [sum(error <= most for error in errors) for most in (0.05, 0.25)]
        cells = [use, len(errors), *within, len(holds), sum(holds)]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def _section(name: str, rows: Sequence[Result], published: Published) -> str:
    about = dict.fromkeys(published.source(row["key"]) for row in rows)
    text = f"## {name}: {EXPERIMENTS[name].title}\n\nPublished in {'; '.join(filter(None, about))}.\n"
    for remark in dict.fromkeys(published.remark(row["key"]) for row in rows):
        if remark:
            text += f"As published: {remark}.\n"
    text += "\n| | published | blind | error | ours | error | how |\n|---|---|---|---|---|---|---|\n"
    for row in rows:
        unit, blind = row["unit"], row["blind"]
        cells = [
            row["name"],
            published_cell(row),
            "" if blind is None else number(blind, unit),
            error_cell(row["blind_error"], row["blind_ratio"], row["blind_holds"]),
            number(row["ours"], unit),
            error_cell(row["error"], row["ratio"], row["holds"]),
            provenance_cell(row),
        ]
        text += f"| {' | '.join(cells)} |\n".replace("|  |", "| |").replace("|  |", "| |")
    return text


def run(conditions: Conditions) -> list[dict[str, Any]]:
    """Run every experiment, and return our numbers with their keys."""
    return [
        {
            "experiment": name,
            "name": ours.name,
            "key": ours.key,
            "ours": ours.value,
            "unit": ours.unit,
            "steady": ours.steady,
        }
        for name, experiment in EXPERIMENTS.items()
        for ours in experiment.run(conditions)
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command line."""
    parser = argparse.ArgumentParser(prog="python -m cohkit.fidelity", description=(__doc__ or "").splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--run", action="store_true", help="run every experiment at full size; print our numbers as JSON")
    what.add_argument("records", nargs="?", help="print the page from the last record of this file")
    options = parser.parse_args(arguments)
    if options.run:
        sys.stdout.write(json.dumps(run(Conditions(threads=1)), ensure_ascii=False) + "\n")
    else:
        last = Path(options.records).read_text(encoding="utf-8").splitlines()[-1]
        sys.stdout.write(page(json.loads(last), Published.shipped()))


if __name__ == "__main__":
    main()
