"""The recipes of CONTRIBUTING.md and ARCHITECTURE.md name places that exist, and their lists are complete."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Command

# The L2 above it is abstract in its own systems, and the comparison with Rumur has no such systems.
NOT_COMPARED_WITH_RUMUR = {"mesi-l1"}


def section(page: Path, heading: str) -> str:
    """Return the text of a section, up to the next heading of its level or above."""
    level = heading.partition(" ")[0]
    match = re.search(rf"^{heading}\n(.*?)(?=^#{{1,{len(level)}}} |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    assert match, f"{page.name} has no section `{heading}`"
    return match[1]


def missing_places(root: Path, text: str) -> list[str]:
    """Return the files and folders that a text names in backticks and that do not exist.

    A name is a path from the root or from `crates`, or the name of something in a folder that is named before it in its
    line, or in the folder of a file that is.
    """
    missing = []
    for line in text.splitlines():
        folders = [root, root / "crates"]
        for name in re.findall(r"`([a-z.][\w.-]*(?:/[\w.-]+)*)`", line):
            if not re.search(r"/|\.(rs|py|md|toml)$", name) and not line.startswith("| a"):
                continue
            place = Path(name)
            if "NAME" in place.name:
                place = place.parent
            existing_paths = [folder / place for folder in folders if (folder / place).exists()]
            if not existing_paths:
                missing.append(name)
                continue
            first_match = existing_paths[0]
            folders += [first_match, first_match / "src"] if first_match.is_dir() else [first_match.parent]
    return missing


def recipes(root: Path) -> str:
    """Return the section of CONTRIBUTING.md that names files and folders for each kind of change."""
    return section(root / "CONTRIBUTING.md", "## Where a change goes")


def test_places_that_the_recipes_name_exist(root: Path) -> None:
    assert missing_places(root, recipes(root)) == []
    assert missing_places(root, section(root / "ARCHITECTURE.md", "## Where to add things")) == []
    links = re.findall(r"\]\(([^)#:]+)", (root / "CONTRIBUTING.md").read_text())
    assert [link for link in links if not (root / link).exists()] == []


@pytest.mark.parametrize(
    "line",
    [
        "3. Add its name to `crates/cohkit/src/delivered.rs`.",
        "1. Write `specifications/NAME.coh`.",
        "1. It goes to `crates/application/src`, with its numbers in `delivered.rs` there.",
        "| a link layer | `links` (bits, credits, replay) |",
        "| a kind of result | `python/cohkit/pages`: `reading.py`, `writing.py` |",
    ],
)
def test_missing_path_is_found(root: Path, line: str) -> None:
    assert len(missing_places(root, line)) == 1


def test_commands_that_contributing_names_have_their_targets(root: Path) -> None:
    """Each example, test, `make` target and tool that CONTRIBUTING.md names exists."""
    text = (root / "CONTRIBUTING.md").read_text()
    crates = {
        tomllib.loads(file.read_text())["package"]["name"]: file.parent for file in root.glob("crates/*/Cargo.toml")
    }
    examples = re.findall(r"cargo run -p ([\w-]+) --example (\w+)", text)
    assert examples
    for crate, name in examples:
        places = [crates[crate] / "examples" / place for place in (f"{name}.rs", f"{name}/main.rs")]
        assert any(place.is_file() for place in places), f"{crate}: example {name}"
    for name in re.findall(r"cargo test .*?--test (\w+)", text):
        assert [*root.glob(f"crates/*/tests/{name}.rs"), *root.glob(f"crates/*/tests/{name}/main.rs")], name
    targets = re.findall(r"^([a-z-]+):.*?##", (root / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"`make ([a-z-]+)`", text)) <= set(targets)
    for script in re.findall(r"`(tools/[\w.]+)", text):
        assert (root / script).is_file(), script


# Regression: after renames, five filters of `tools/soak` matched no test, and runs without tests were recorded as
# passed.
def test_long_runs_name_existing_tests(root: Path) -> None:
    commands = (root / "tools/soak").read_text().replace("\\\n", " ")
    runs = re.findall(r"cargo test .*?-p cohkit-(\w+) .*?--test (\w+) (\S*)", commands)
    assert len(runs) == commands.count("cargo test ")
    for crate, target, path in runs:
        folder = root / "crates" / crate / "tests" / target
        *modules, name = path.split("::")
        for module in modules:
            declared = (folder / "mod.rs" if (folder / "mod.rs").is_file() else folder / "main.rs").read_text()
            if folder.with_suffix(".rs").is_file():
                declared = folder.with_suffix(".rs").read_text()
            assert re.search(rf"\bmod {module};", declared), path
            folder /= module
        sources = [*folder.rglob("*.rs"), *folder.parent.glob(f"{folder.name}.rs")]
        assert any(f"fn {name}" in source.read_text() for source in sources), path


def test_every_shipped_protocol_is_compared_with_rumur(root: Path) -> None:
    compared_systems = re.findall(r'"([\w-]+)"', (root / "crates/check/tests/check/rumur_systems.rs").read_text())
    compared_systems += re.findall(r"(?<= )([\w-]+)/\w+", (root / "tools/soak").read_text())
    texts = {file.stem for file in root.glob("protocols/*.coh") if "\nuse " not in file.read_text()}
    assert texts - set(compared_systems) == NOT_COMPARED_WITH_RUMUR


def test_pages_name_every_workload_and_application(root: Path, cohkit_command: Command) -> None:
    listed = json.loads(cohkit_command("list", "--json").stdout)
    pages = {"workloads": ["workloads.md"], "applications": ["applications.md", "models.md"]}
    for kind, files in pages.items():
        text = "".join((root / "docs" / file).read_text() for file in files)
        names = [entry["name"] for entry in listed[kind]]
        assert names
        assert [name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)] == []


def test_dev_container_is_built_from_the_containerfile(root: Path) -> None:
    folder = root / ".devcontainer"
    container = json.loads((folder / "devcontainer.json").read_text())
    build = container["build"]
    assert (folder / build["context"]).resolve() == root
    file = folder / build["dockerfile"]
    stages = re.findall(r"^FROM (\S+)(?: AS (\w+))?$", file.read_text(), re.MULTILINE)
    assert build["target"] in [name for _, name in stages]
    # Without a target, the image is that of the last stage, for users.
    assert stages[-1][1] != build["target"]
    assert container["postCreateCommand"] == "tools/setup_tests"
    editors_section = section(root / "CONTRIBUTING.md", "### Editors and the dev container")
    extensions = re.findall(r"^\| `([\w-]+\.[\w-]+)` \|", editors_section, re.MULTILINE)
    assert sorted(extensions) == container["customizations"]["vscode"]["extensions"]
