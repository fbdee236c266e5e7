"""The feature matrix in `docs/features.md` agrees with the commands, and its evidence exists."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import cohkit

if TYPE_CHECKING:
    from conftest import Command

# End of a generated table in the page.
END = "<!-- end -->"


def texts(root: Path, *, composed: bool) -> list[Path]:
    """Return the shipped protocol files: compositions, or the others."""
    return [file for file in sorted(root.glob("protocols/*.coh")) if ("\nuse " in file.read_text()) == composed]


def compare(root: Path, name: str, table: str) -> None:
    """Compare the page's table of this name with the expected one; with `UPDATE_EXPECT`, write it."""
    page = root / "docs/features.md"
    begin = f"<!-- {name} -->\n"
    head, _, rest = page.read_text().partition(begin)
    shown, _, tail = rest.partition(END)
    if os.environ.get("UPDATE_EXPECT"):
        page.write_text(head + begin + table + END + tail)
    else:
        assert shown == table, "UPDATE_EXPECT=1 writes the page anew"


def machines(text: Path) -> str:
    """Return the number of shipped platforms on which a protocol runs, as text."""
    runs = 0
    for platform in cohkit.platforms():
        try:
            runs += cohkit.simulate(platform, "random-read", protocol=text, accesses=100)["failure"] is None
        except cohkit.InputError:
            continue
    return f"{runs} of {len(cohkit.platforms())}"


def hardware(text: Path, command: Command, out: Path) -> str:
    """Return whether RTL can be generated for a protocol's home, with the reason if not."""
    emitted = command("rtl", "emit", text, "--out", out)
    if emitted.returncode == 0:
        return "yes"
    match = re.match(r"error: no RTL for this home: (.*)", emitted.stderr)
    assert match, emitted.stderr
    return f"no: {match[1]}"


def step_functions(text: Path, command: Command, out: Path) -> str:
    """Return whether the step functions of all agents can be printed, with the reason if not."""
    kinds = re.findall(r"^remote (.*?) *{", text.read_text(), re.MULTILINE)
    agents = ",".join(["home", *" ".join(kinds).split()])
    emitted = command("rtl", "emit", text, "--agent", agents, "--out", out)
    if emitted.returncode == 0:
        return "yes"
    match = re.match(r"error: no step function: (.*)", emitted.stderr)
    assert match, emitted.stderr
    return f"no: {match[1]}"


def row(root: Path, text: Path, command: Command, out: Path) -> str:
    """Return a protocol's row of the table."""
    source = text.read_text()
    promises = re.search(r"^guarantee (.*?) *(?:#.*)?$", source, re.MULTILINE)
    try:
        sizes = cohkit.construct(cohkit.read(text))["home"]
        home = f"a policy: {sizes['states']} states, {sizes['transitions']} transitions"
    except cohkit.InputError:
        home = "rows"
    cells = [
        f"[`{text.name}`](../{text.relative_to(root)})",
        title(source),
        promises[1] if promises else "single writer, data value",
        home,
        machines(text),
        step_functions(text, command, out),
        hardware(text, command, out),
    ]
    return f"| {' | '.join(cells)} |\n"


def title(text: str) -> str:
    """Return the title of a protocol text; empty if it has none."""
    match = re.search(r'^protocol \w+ "(.*)"', text, re.MULTILINE)
    return match[1] if match else ""


def test_shipped_protocols_match_the_feature_matrix(root: Path, tmp_path: Path, cohkit_command: Command) -> None:
    columns = ["Protocol", "Description", "Guarantees", "Home", "Machines", "Step functions", "Hardware"]
    table = f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
    for text in texts(root, composed=False):
        table += row(root, text, cohkit_command, tmp_path / text.stem)
    compare(root, "protocols", table)


def test_compositions_that_ship_are_listed(root: Path) -> None:
    table = "| Composition | Description | Composed protocols |\n|---|---|---|\n"
    for file in texts(root, composed=True):
        text = file.read_text()
        uses = re.findall(r'^use "(.*)" as (\w+)$', text, re.MULTILINE)
        link = f"[`{file.name}`](../{file.relative_to(root)})"
        table += f"| {link} | {title(text)} | {', '.join(f'`{used}` as `{name}`' for used, name in uses)} |\n"
    compare(root, "compositions", table)


def test_readme_names_the_protocols_with_rtl(root: Path) -> None:
    rows = re.findall(r"^\| \[`(.*)\.coh`\].*\| yes \|$", (root / "docs/features.md").read_text(), re.MULTILINE)
    [sentence] = re.findall(r"^(.*) qualify; .*features\.md", (root / "README.md").read_text(), re.MULTILINE)
    assert sorted(re.findall(r"`(.*?)`", sentence)) == rows


def test_evidence_for_each_standard_exists(root: Path) -> None:
    standards = (root / "docs/features.md").read_text().partition("## Standards")[2]
    evidence_files = re.findall(r"`((?:crates|python)/[^`]+)`", standards)
    assert len(evidence_files) > 10
    assert [file for file in evidence_files if not (root / file).is_file()] == []
    # The header of each table ends with the column that names tests.
    rows = [line for line in standards.splitlines() if line.startswith("| ") and not line.endswith("| Test |")]
    assert [line for line in rows if not re.search(r"`(?:crates|python)/", line)] == []
