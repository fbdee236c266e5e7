"""Checks of the repository: worked examples of everything public, first pages of crates, shipped files."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import itertools
import os
import pty
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cohkit
from cohkit import _cohkit, experiments
from cohkit.experiments import EXPERIMENTS, eci_home
from cohkit.old_names import OLD_NAMES, OLD_OPTIONS

if TYPE_CHECKING:
    from conftest import Command

# Public names that need no example.
EXAMPLE_FREE = {"Composition", "Error", "Protocol", "__version__", "types"}
# Folders of all crates with a library.
LIBRARY_CRATES = sorted(path.parent.parent for path in Path(__file__).resolve().parents[2].glob("crates/*/src/lib.rs"))


@pytest.mark.parametrize("name", sorted(set(cohkit.__all__) - EXAMPLE_FREE))
def test_everything_public_has_an_example(name: str) -> None:
    assert ">>> " in (inspect.getdoc(getattr(cohkit, name)) or "")


def test_shipped_files_match_the_repository(root: Path) -> None:
    shipped = dict(_cohkit.shipped())
    protocols = root.glob("protocols/*.coh")
    # No experiment orders stores by sequence numbers under total store order.
    tso = [file for file in root.glob("ordering/tso/*.coh") if file.stem != "seq"]
    library = [*root.glob("nearmemory/**/*"), *root.glob("docs/riscv/*/*")]
    programs = [file for file in library if file.is_file()]
    files = [*root.glob("experiments/*.toml"), *root.glob("ordering/*.coh"), *tso, *protocols, *programs]
    files.append(root / eci_home.BASE)
    assert sorted(shipped) == sorted(str(file.relative_to(root)) for file in files)
    for file, text in shipped.items():
        assert (root / file).read_text() == text, f"`make setup` after a change of {file}"


@pytest.mark.parametrize(("name", "most"), [("python.md", 3), ("workloads.md", 0)])
def test_guide_examples_print_the_shown_output(root: Path, name: str, most: int) -> None:
    guide = (root / "docs" / name).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    assert len(blocks) > most
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, f"docs/{name}", None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(example)
    assert runner.failures == 0
    assert runner.tries == guide.count(">>> ")


def test_application_of_the_guide_works_as_printed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    guide = (root / "docs" / "applications.md").read_text()
    names: dict[str, object] = {}
    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks] == ["python", "python", "text"]
    for kind, text in blocks:
        if kind == "python":
            exec(text, names)  # noqa: S102 -- our own
        else:
            assert capsys.readouterr().out == text
    assert "<!-- time of a question (ns) -->" in (tmp_path / "filter.svg").read_text()


def test_documented_python_commands_print_the_shown_output(root: Path, cohkit_command: Command) -> None:
    shown = 0
    for document in [root / "README.md", *root.glob("docs/*.md")]:
        blocks = re.findall(r"^```console\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)
        for line, expected in re.findall(
            r"^\$ cohkit (reproduce .*)\n((?:[^$].*\n|\n)*)", "".join(blocks), re.MULTILINE
        ):
            shown += 1
            completed = cohkit_command(*line.split())
            pattern = ".*".join(re.escape(part) for part in re.split(r"(?m)^\.\.\.$", expected))
            assert completed.returncode == 0
            assert re.fullmatch(pattern, completed.stdout, re.DOTALL), f"{document.name}: {line}:\n{completed.stdout}"
    assert shown


@pytest.mark.parametrize("name", ["reproduce", "sweep", "report"])
def test_help_fits_a_terminal_and_shows_an_example_that_runs(
    name: str, cohkit_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = cohkit_command(name, "--help").stdout.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    example = lines[lines.index("Example:") + 1].removeprefix("  $ cohkit ")
    completed = cohkit_command(*re.sub(r"\b(out/|report\.html)", rf"{tmp_path}/\1", example).split())
    assert (completed.returncode, completed.stdout != "") == (0, True), completed.stderr


@pytest.mark.parametrize(("locale", "ascii_alone"), [("C", True), ("en_GB.UTF-8", False), ("", False)])
def test_charts_use_the_character_set_of_the_terminal(
    locale: str, *, ascii_alone: bool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chart in a terminal is ASCII with the locale `C`, and has other characters with UTF-8."""
    for name in ("LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LC_ALL", locale)
    text = (root / "protocols/msi.coh").read_text()
    faulty_text = re.sub(r"(?m)^(  S  .*\| Inv  .*)\| I$", r"\1| S", text)
    assert faulty_text != text
    command = [str(Path(sys.executable).parent / "cohkit"), "check", "-", "--remotes", "2"]
    controller, terminal = pty.openpty()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=terminal, stderr=subprocess.STDOUT, text=True
    ) as running:
        os.close(terminal)
        running.communicate(faulty_text)
    output = b""
    with contextlib.suppress(OSError):  # that of a terminal whose other end is closed
        while chunk := os.read(controller, 1 << 16):
            output += chunk
    os.close(controller)
    assert running.returncode == 1, output.decode()
    assert b"single writer" in output
    assert output.isascii() == ascii_alone


def test_guide_names_everything_public(root: Path) -> None:
    guide = (root / "docs" / "python.md").read_text()
    assert [name for name in cohkit.__all__ if name not in guide] == []


def test_package_imports_without_optional_dependencies() -> None:
    heavy = (
        "import sys; import cohkit, cohkit.__main__; sys.exit(any(m in sys.modules for m in ('polars', 'matplotlib')))"
    )
    assert subprocess.run([sys.executable, "-c", heavy], check=False).returncode == 0
    without = "import sys; sys.modules['polars'] = None; import cohkit; cohkit.to_frame([])"
    completed = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, check=False)
    assert "frames need polars, which is not installed: `pip install 'cohkit[frames]'`" in completed.stderr


def test_frames_of_results_have_their_columns() -> None:
    verdicts = cohkit.to_frame(cohkit.check(cohkit.shipped("msi"), remotes=1))
    assert {"protocol", "system", "outcome", "states", "seconds", "memory_bytes"} <= set(verdicts.columns)
    assert verdicts.height == 1
    large = cohkit.to_frame([{"states": 2**80}, {"states": None}])
    assert large["states"].to_list() == [2**80, None]
    assert cohkit.to_frame([]).is_empty()


@pytest.mark.parametrize(
    ("without", "code", "expected_message"), [("", 1, "this test needs Verilator"), ("verilator", 0, "skipped")]
)
def test_missing_tool_fails_unless_skipped_explicitly(
    root: Path, without: str, code: int, expected_message: str
) -> None:
    test = "python/tests/test_blocks.py::test_block[block3]"
    completed = subprocess.run(
        [sys.executable, "-m", "pytest", test],
        cwd=root,
        env={"PATH": "/nonexistent", "COHKIT_WITHOUT": without},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == code, completed.stdout
    assert expected_message in completed.stdout


def test_every_experiment_is_listed() -> None:
    assert set(experiments._DEFINED) == set(EXPERIMENTS)  # noqa: SLF001


# Module, former name and present name of everything that was renamed.
OLD_AND_NEW = [(module, old, new) for module, names in OLD_NAMES.items() for old, new in names.items()]


@pytest.mark.parametrize(("module", "old", "new"), OLD_AND_NEW)
def test_old_name_is_the_new_object_and_warns(module: str, old: str, new: str, root: Path) -> None:
    owner = importlib.import_module(module)
    assert old not in vars(owner)
    with pytest.warns(DeprecationWarning, match=rf"^`{module}\.{old}` is now `{module}\.{new}`;") as warned:
        assert getattr(owner, old) is getattr(owner, new)
    assert [warning.filename for warning in warned] == [__file__]
    assert f"| `{module}.{old}` | `{module}.{new}` |" in (root / "CHANGELOG.md").read_text()


def test_old_name_can_be_imported_and_unknown_name_cannot() -> None:
    with pytest.warns(DeprecationWarning, match="`cohkit.Display`"):
        exec("from cohkit import Shown")  # noqa: S102 -- ruff and mypy reject the old name
    with pytest.raises(AttributeError, match="module 'cohkit' has no attribute 'Showed'"):
        getattr(cohkit, "Showed")  # noqa: B009 -- mypy rejects the attribute


def test_old_method_equals_the_new_one_and_warns(root: Path) -> None:
    machine = cohkit.Machine("enzian-dc-ddr")
    with pytest.warns(DeprecationWarning, match=r"^`Machine\.changed` is now `Machine\.with_settings`;") as warned:
        assert machine.changed({"cores.count": 4})["cores.count"] == 4
    assert [warning.filename for warning in warned] == [__file__]
    assert "| `cohkit.Machine.changed` | `cohkit.Machine.with_settings` |" in (root / "CHANGELOG.md").read_text()


def test_old_option_equals_the_new_one_and_warns(root: Path) -> None:
    assert OLD_OPTIONS == {"cohkit.litmus": {"gives_up": "max_spontaneous_evictions"}}
    expected_warning = r"^`cohkit\.litmus\(gives_up=\)` is now `cohkit\.litmus\(max_spontaneous_evictions=\)`;"
    options = {"protocol": "msi", "gives_up": 0}
    with pytest.warns(DeprecationWarning, match=expected_warning) as warned:
        result = cohkit.litmus("SB", **options)  # type: ignore[arg-type]
    assert [warning.filename for warning in warned] == [__file__]
    assert result["states"] == cohkit.litmus("SB", protocol="msi", max_spontaneous_evictions=0)["states"]
    row = "| `cohkit.litmus(gives_up=)` | `cohkit.litmus(max_spontaneous_evictions=)` |"
    assert row in (root / "CHANGELOG.md").read_text()
    with pytest.raises(TypeError, match="both `max_spontaneous_evictions` and its old name `gives_up`"):
        cohkit.litmus("SB", **options, max_spontaneous_evictions=0)  # type: ignore[arg-type]


def first_page(crate: Path) -> tuple[str, list[tuple[str, str]]]:
    """Return the prose of a crate's first page, and its fenced blocks as (attributes, contents)."""
    lines = (crate / "src/lib.rs").read_text().splitlines()
    page = "\n".join(line[3:].removeprefix(" ") for line in itertools.takewhile(lambda line: line[:3] == "//!", lines))
    fence = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return fence.sub("", page), fence.findall(page)


def dependencies(crate: Path) -> set[str]:
    """Return the crates of the workspace that a crate depends on, directly and indirectly."""
    table = tomllib.loads((crate / "Cargo.toml").read_text()).get("dependencies", {})
    direct = {name.removeprefix("cohkit-") for name in table if re.match("cohkit(-|$)", name)}
    return direct.union(*(dependencies(crate.parent / name) for name in direct))


@pytest.mark.parametrize("crate", LIBRARY_CRATES, ids=[crate.name for crate in LIBRARY_CRATES])
def test_first_page_of_a_crate_has_purpose_boundary_and_example(crate: Path) -> None:
    """The boundary names crates that this one does not depend on, directly or indirectly."""
    prose, blocks = first_page(crate)
    purpose = prose.split("\n\n")[0]
    assert len(purpose.split()) > 4
    assert purpose.endswith(".")
    boundary = re.findall(r"(?:The crate|It) does not know ([^.]+)", prose)
    assert len(boundary) == 1
    names = {path.name for path in LIBRARY_CRATES} - {crate.name}
    unknown = names if "any other crate" in boundary[0] else names & set(re.findall(r"`([\w-]+)`", boundary[0]))
    assert unknown & dependencies(crate) == set()
    # Rustdoc runs a block without attributes, unless the crate has no doctests.
    is_library = tomllib.loads((crate / "Cargo.toml").read_text()).get("lib", {}).get("doctest", True)
    assert "" in [attributes for attributes, _ in blocks] or not is_library
    if not is_library:
        [(language, example)] = blocks
        assert language == "python"
        runner = doctest.DocTestRunner()
        runner.run(doctest.DocTestParser().get_doctest(example, {}, crate.name, None, 0))
        assert (runner.failures, runner.tries > 0) == (0, True)


@pytest.mark.parametrize("crate", LIBRARY_CRATES, ids=[crate.name for crate in LIBRARY_CRATES])
def test_links_of_a_first_page_have_a_target(crate: Path) -> None:
    prose, _ = first_page(crate)
    definition = re.compile(r"^\[`([^`]+)`\]: (\S+)$", re.MULTILINE)
    targets = dict(definition.findall(prose))
    root, *others = [
        set(re.findall(r"\w+", re.sub(r"//.*", "", path.read_text())))
        for path in [crate / "src/lib.rs", *crate.glob("src/**/*.rs")]
    ]
    for text, target in re.findall(r"\[`([^`]+)`\](?:\(([^)]+)\))?", definition.sub("", prose)):
        link = target or targets.get(text, text)
        first, *_, last = re.sub(r"^\w+@|[!()]+$", "", link).split("::") * 2
        assert first in root or first.removeprefix("cohkit_") in dependencies(crate), link
        assert first not in root or any(last in words for words in others), link
