"""Exported TLA+ modules have the states and violations of their models.

An independent interpreter explores the modules, since TLC is not a package of any registry that the tests use.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tla_interpreter import Module, invariants

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Command

# Models of a few hundred states, with the constructs that the others have.
MODELS = [
    "models/alternating_bit.m",
    "models/bounded_buffer.m",
    "models/dekker.m",
    "models/fair_room.m",
    "models/mesi_snoop.m",
    "models/peterson_tso_fenced.m",
    "models/philosophers.m",
    "tests/murphi/assume.m",
    "tests/murphi/every-statement.m",
]

# Models with a violation: of an invariant, of an assertion, of a range, and a deadlock.
VIOLATED = [
    "models/average_of_none.m",
    "models/both_wait.m",
    "models/cancel_race.m",
    "models/link_replay_dropped.m",
    "models/lost_update.m",
    "models/peterson_tso.m",
    "models/philosophers_deadlock.m",
    "tests/murphi/division-by-zero.m",
    "tests/murphi/index-error.m",
]

# Systems of protocols: file, remotes.
PROTOCOLS = [
    ("docs/first-protocol/5-valid.coh", 2),
    ("protocols/write-through.coh", 2),
    ("protocols/msi.coh", 2),
]


@pytest.fixture(autouse=True)
def deep_recursion() -> Iterator[None]:
    """Let loops of a module recurse."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    yield
    sys.setrecursionlimit(limit)


def exported(command: Command, folder: Path, *arguments: object) -> tuple[dict[str, Any], Module, list[str]]:
    """Export one model; return the verdict on it, the module, and the names of its invariants."""
    options = ["--symmetry", "off", "--json", "--export-tla", folder]
    result = command("check", *arguments, *options)
    assert result.returncode in (0, 1), result.stderr
    (file,) = folder.glob("*.tla")
    verdict = json.loads(result.stdout)[0]
    configuration = file.with_suffix(".cfg").read_text()
    return verdict, Module(file.read_text()), invariants(configuration)


# Small models, each of one difficulty of the translation: the order of evaluation, an operation without a value at each
# place, names, assumptions, and starts with a violation.
SMALL = sorted((Path(__file__).parent / "tla_models").glob("*.m"))


@pytest.mark.parametrize("file", SMALL, ids=lambda file: file.stem)
def test_a_small_module_agrees_with_its_model(file: Path, cohkit_command: Command, tmp_path: Path) -> None:
    """Numbers of states agree, or both are violated."""
    verdict, module, claims = exported(cohkit_command, tmp_path, file)
    states, violated = module.explore(claims)
    if verdict["outcome"] == "verified":
        assert (states, violated) == (verdict["states"], None)
    else:
        assert violated is not None


@pytest.mark.parametrize("file", MODELS)
def test_a_module_has_the_states_of_its_model(file: str, cohkit_command: Command, tmp_path: Path) -> None:
    """Numbers of states agree, and no invariant is violated."""
    verdict, module, claims = exported(cohkit_command, tmp_path, file)
    assert verdict["outcome"] == "verified"
    assert module.explore(claims) == (verdict["states"], None)


@pytest.mark.parametrize(("file", "remotes"), PROTOCOLS)
def test_a_module_has_the_states_of_a_protocol(
    file: str, remotes: int, cohkit_command: Command, tmp_path: Path
) -> None:
    """Numbers of states agree, and no invariant is violated."""
    verdict, module, claims = exported(cohkit_command, tmp_path, file, "--remotes", remotes, "--lines", 1)
    assert verdict["outcome"] == "verified"
    assert module.explore(claims) == (verdict["states"], None)


@pytest.mark.parametrize("file", VIOLATED)
def test_a_module_violates_what_its_model_violates(file: str, cohkit_command: Command, tmp_path: Path) -> None:
    """The violated invariant stands for a property that the model violates."""
    verdict, module, claims = exported(cohkit_command, tmp_path, file)
    violated = [entry for entry in verdict["properties"] if entry["status"] == "violated"]
    kind, name = next((entry["kind"], entry["name"]) for entry in violated)
    expected = {
        "invariant": "".join(c if c.isalnum() else "_" for c in name),
        "no_deadlock": "NoDeadlock",
    }.get(kind, "NoViolation")
    assert module.explore(claims)[1] == expected


def test_all_shipped_protocols_have_modules(root: Path, cohkit_command: Command, tmp_path: Path) -> None:
    """The grammar accepts each module, and no name has two meanings."""
    files = [file for file in sorted(root.glob("protocols/*.coh")) if "\nuse " not in file.read_text()]
    result = cohkit_command("check", *files, "--lines", 1, "--max-states", 1, "--export-tla", tmp_path)
    assert result.returncode == 3, result.stderr
    modules = sorted(tmp_path.glob("*.tla"))
    assert len(modules) >= len(files)
    # The largest modules take minutes to parse.
    for file in sorted(modules, key=lambda file: file.stat().st_size)[:6]:
        module = Module(file.read_text())
        assert invariants(file.with_suffix(".cfg").read_text())[:2] == ["NoViolation", "TypeOK"]
        assert {"Init", "Next", "Spec"} <= module.operators.keys()
