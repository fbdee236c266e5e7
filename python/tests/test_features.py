"""The matrix of features says what the commands do, and what it names is there."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import cohkit

if TYPE_CHECKING:
    from conftest import Command

BEGIN, END = "<!-- protocols -->\n", "<!-- end -->"


def machines(text: Path) -> str:
    runs = 0
    for platform in cohkit.platforms():
        try:
            runs += cohkit.simulate(platform, "random-read", protocol=text, accesses=100)["failure"] is None
        except cohkit.InputError:
            continue
    return f"{runs} of {len(cohkit.platforms())}"


def hardware(text: Path, command: Command, out: Path) -> str:
    emitted = command("rtl", "emit", text, "--out", out)
    if emitted.returncode == 0:
        return "yes"
    said = re.match(r"error: the hardware cannot hold this home: (.*)", emitted.stderr)
    assert said, emitted.stderr
    return f"no: {said[1]}"


def row(root: Path, text: Path, command: Command, out: Path) -> str:
    source = text.read_text()
    title = re.search(r'^protocol \w+ "(.*)"', source, re.MULTILINE)
    promises = re.search(r"^guarantee (.*?) *(?:#.*)?$", source, re.MULTILINE)
    try:
        sizes = cohkit.construct(cohkit.read(text))["home"]
        home = f"a policy: {sizes['states']} states, {sizes['transitions']} transitions"
    except cohkit.InputError:
        home = "rows"
    cells = [
        f"[`{text.name}`](../{text.relative_to(root)})",
        title[1] if title else "",
        promises[1] if promises else "single writer, data value",
        home,
        machines(text),
        hardware(text, command, out),
    ]
    return f"| {' | '.join(cells)} |\n"


def test_protocols_that_ship_do_what_the_matrix_says(root: Path, tmp_path: Path, cohkit_command: Command) -> None:
    page = root / "docs/features.md"
    head, _, rest = page.read_text().partition(BEGIN)
    shown, _, tail = rest.partition(END)
    texts = [text for text in sorted(root.glob("protocols/*.coh")) if "\nuse " not in text.read_text()]
    table = "| Text | What it is | Promises | Home | Machines | Hardware |\n|---|---|---|---|---|---|\n"
    for text in texts:
        table += row(root, text, cohkit_command, tmp_path / text.stem)
    if os.environ.get("UPDATE_EXPECT"):
        page.write_text(head + BEGIN + table + END + tail)
    else:
        assert shown == table, "UPDATE_EXPECT=1 writes the page anew"


def test_what_holds_a_standard_is_there(root: Path) -> None:
    standards = (root / "docs/features.md").read_text().partition("## Standards")[2]
    named = re.findall(r"`((?:crates|python)/[^`]+)`", standards)
    assert len(named) > 10
    assert [file for file in named if not (root / file).is_file()] == []
    # The header of each table ends with the column that names tests.
    rows = [line for line in standards.splitlines() if line.startswith("| ") and not line.endswith("| Held by |")]
    assert [line for line in rows if not re.search(r"`(?:crates|python)/", line)] == []
