"""`tools/release`: each check passes on a repository that can be released, and fails on its own fault alone."""

from __future__ import annotations

import datetime as dt
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# Smallest repository that the tool can release, by path. FIRST stands for the first commit.
REPOSITORY_FILES = {
    "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\n[workspace.package]\nversion = "1.2.3"\n',
    "Cargo.lock": '[[package]]\nname = "one"\nversion = "1.2.3"\n[[package]]\nname = "two"\nversion = "1.2.3"\n'
    '[[package]]\nname = "serde"\nversion = "1.0.0"\nsource = "registry"\n',
    "crates/one/Cargo.toml": '[package]\nname = "one"\nversion.workspace = true\n',
    "crates/two/Cargo.toml": '[package]\nname = "two"\nversion.workspace = true\n',
    "pyproject.toml": '[project]\ndynamic = ["version"]\n[tool.maturin]\nmanifest-path = "crates/one/Cargo.toml"\n',
    "CITATION.cff": "cff-version: 1.2.0\nversion: 1.2.3\n",
    "CHANGELOG.md": "# Changelog\n\n## 1.2.3 - 2020-02-29\n\n### Added\n\n- A protocol.\n\n"
    "## 1.0.0 - 2019-01-01\n\n- All.\n",
    "Makefile": "site:\n\t@echo making the site\n",
    "tools/lint_prose": "import sys\n",
    ".ci/run": "#!/bin/sh\necho running the tests\n",
    "records/speed.jsonl": '{"commit": "FIRST+changes", "exit": 0}\n{"commit": "FIRST", "exit": 0}\n',
}
# Checks that build or test something.
SLOW_CHECKS = ["tests", "site"]


def git(root: Path, *arguments: str) -> str:
    """Run git in a folder and return its output."""
    completed = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return completed.stdout.strip()


@pytest.fixture(scope="module")
def releasable_repository(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a repository that can be released."""
    folder = tmp_path_factory.mktemp("release")
    (folder / "tools").mkdir()
    shutil.copy(root / "tools/release", folder / "tools")
    git(folder, "init", "--quiet")
    git(folder, "config", "user.name", "Somebody")
    git(folder, "config", "user.email", "somebody@example.org")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "Begin")
    first = git(folder, "rev-parse", "HEAD")
    for name, text in REPOSITORY_FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("FIRST", first))
    (folder / ".ci/run").chmod(0o755)
    commit(folder)
    return folder


@pytest.fixture
def repository(releasable_repository: Path, tmp_path: Path) -> Path:
    """Copy the releasable repository, so that a test can change it."""
    return shutil.copytree(releasable_repository, tmp_path / "copy")


def commit(root: Path) -> None:
    """Commit all files."""
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Change files")


def release(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the release tool of a repository."""
    command = [sys.executable, "tools/release", *options]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def outcomes(printed: str) -> dict[str, tuple[str, str]]:
    """Return result and reason of each check that the tool has printed, by name."""
    lines = re.findall(r"^(pass|fail|skip)  (\w+) +(.*)$", printed, re.MULTILINE)
    return {name: (result, reason) for result, name, reason in lines}


def replace(file: str, old_text: str, new_text: str) -> Callable[[Path], None]:
    """Return a fault that replaces a text in a file and commits the change."""

    def fault(root: Path) -> None:
        text = (root / file).read_text()
        assert old_text in text
        (root / file).write_text(text.replace(old_text, new_text))
        commit(root)

    return fault


def modify(root: Path) -> None:
    """Leave uncommitted changes: a changed file and a new one."""
    (root / "Makefile").write_text("")
    (root / "new").write_text("")


def tag(root: Path) -> None:
    """Create the tag of the version that is to be released."""
    git(root, "tag", "v1.2.3")


def record_of_another_branch(root: Path) -> None:
    """Add a record of a commit that is not an ancestor of the released one."""
    unrelated_commit = git(root, "commit-tree", "HEAD^{tree}", "-m", "Begin elsewhere")
    with (root / "records/speed.jsonl").open("a") as file:
        file.write(f'{{"commit": "{unrelated_commit}"}}\n')
    commit(root)


def remove(file: str) -> Callable[[Path], None]:
    """Return a fault that removes a file and commits the change."""

    def fault(root: Path) -> None:
        (root / file).unlink()
        commit(root)

    return fault


# Date of a release that lies in the future.
TOMORROW = (dt.datetime.now(tz=dt.UTC) + dt.timedelta(days=1)).date().isoformat()

# Name of the check that fails, the fault, and a part of the reason.
FAULTS: list[tuple[str, Callable[[Path], None], str]] = [
    ("tree", modify, "2 uncommitted changes: Makefile, new"),
    (
        "workspace",
        replace("crates/two/Cargo.toml", "version.workspace = true", 'version = "1.2.2"'),
        "crates/two/Cargo.toml: version 1.2.2, in Cargo.toml 1.2.3",
    ),
    ("lock", replace("Cargo.lock", '"1.2.3"', '"1.2.2"'), "Cargo.lock: one: version 1.2.2, in Cargo.toml 1.2.3"),
    ("lock", replace("Cargo.lock", '"one"', '"three"'), "Cargo.lock: one: version None"),
    ("lock", replace("Cargo.lock", "[[package]]", "[[package"), "Expected"),
    ("lock", remove("Cargo.lock"), "No such file"),
    (
        "pyproject",
        replace("pyproject.toml", 'dynamic = ["version"]', 'version = "1.2"'),
        "pyproject.toml: version 1.2, in Cargo.toml 1.2.3",
    ),
    ("pyproject", replace("pyproject.toml", '["version"]', "[]"), "`dynamic` does not name it"),
    ("pyproject", replace("pyproject.toml", "manifest-path", "manifest"), "no entry 'manifest-path'"),
    ("citation", replace("CITATION.cff", "\nversion: 1.2.3", "\nversion: 1.3.0"), "CITATION.cff: version 1.3.0"),
    ("citation", replace("CITATION.cff", "\nversion: 1.2.3", ""), "CITATION.cff: version None"),
    ("changelog", replace("CHANGELOG.md", "1.2.3", "1.2.2"), "0 sections `## 1.2.3 - YYYY-MM-DD`, expected 1"),
    ("changelog", replace("CHANGELOG.md", "1.0.0 - 2019-01-01", "1.2.3 - 2019-01-01"), "2 sections"),
    ("changelog", replace("CHANGELOG.md", "2020-02-29", TOMORROW), f"{TOMORROW} is in the future"),
    ("changelog", replace("CHANGELOG.md", "2020-02-29", "2021-02-29"), "day"),
    ("changelog", replace("CHANGELOG.md", "- A protocol.", ""), "the section of 1.2.3 has no entries"),
    (
        "unreleased",
        replace("CHANGELOG.md", "# Changelog\n", "# Changelog\n\n## Unreleased\n\n- More.\n"),
        "`## Unreleased`; replace it by the version and the date",
    ),
    (
        "prose",
        replace("tools/lint_prose", "import sys\n", "import sys\nsys.exit('play: 3 openings, at most 2')\n"),
        "tools/lint_prose, exit status 1: play: 3 openings, at most 2",
    ),
    ("records", record_of_another_branch, "records/speed.jsonl:3: commit"),
    ("records", replace("records/speed.jsonl", '"exit": 0}\n{', '"exit": 0}\n{{'), ":2: not a record with a commit"),
    ("records", replace("records/speed.jsonl", "commit", "comit"), ":1: not a record with a commit"),
    ("tag", tag, "v1.2.3 exists; raise the version"),
    ("tests", replace(".ci/run", "echo running the tests", "exit 3"), ".ci/run: exit status 3"),
    ("site", replace("Makefile", "@echo making the site", "false"), "make --no-print-directory site: exit status 2"),
]


def test_repository_in_order_passes_and_is_not_changed(repository: Path) -> None:
    status_before = {file: file.stat().st_mtime_ns for file in repository.rglob("*") if ".git" not in file.parts}
    completed = release(repository)
    checks = outcomes(completed.stdout)
    assert completed.returncode == 0, completed.stdout
    assert {name for name, (result, _) in checks.items() if result != "pass"} == set(SLOW_CHECKS)
    assert all(checks[name] == ("skip", "needs --slow") for name in SLOW_CHECKS)
    assert "running" not in completed.stderr
    assert {
        file: file.stat().st_mtime_ns for file in repository.rglob("*") if ".git" not in file.parts
    } == status_before
    assert git(repository, "tag") == ""
    completed = release(repository, "--slow")
    assert (completed.returncode, outcomes(completed.stdout)["tests"]) == (0, ("pass", ".ci/run"))
    assert completed.stderr == "running the tests\nmaking the site\n"


@pytest.mark.parametrize(("name", "fault", "reason"), FAULTS)
def test_each_check_fails_on_its_fault(name: str, fault: Callable[[Path], None], reason: str, repository: Path) -> None:
    fault(repository)
    tags = git(repository, "tag")
    completed = release(repository, "--slow", "--tag")
    checks = outcomes(completed.stdout)
    assert completed.returncode == 1, completed.stdout
    assert [name for name, (result, _) in checks.items() if result == "fail"] == [name], completed.stdout
    assert reason in checks[name][1]
    assert completed.stdout.endswith(f"1 of {len(checks)} checks failed\n")
    assert git(repository, "tag") == tags
    # The long checks do not start if a quick one has failed.
    assert name in SLOW_CHECKS or checks["tests"] == ("skip", "an earlier check failed")


def test_every_check_has_a_fault(repository: Path) -> None:
    assert set(outcomes(release(repository).stdout)) == {name for name, _, _ in FAULTS}


def test_version_of_another_form_fails_all_version_checks(repository: Path) -> None:
    replace("Cargo.toml", "1.2.3", "1.2")(repository)
    completed = release(repository)
    failed = {name for name, check in outcomes(completed.stdout).items() if check[0] == "fail"}
    assert (completed.returncode, failed) == (1, {"workspace", "lock", "pyproject", "citation", "changelog", "tag"})
    assert outcomes(completed.stdout)["workspace"][1] == "Cargo.toml: `1.2` is not MAJOR.MINOR.PATCH"


def test_records_are_not_judged_by_a_shallow_clone(repository: Path) -> None:
    clone = repository.parent / "clone"
    git(repository, "clone", "--quiet", "--depth", "1", f"file://{repository}", str(clone))
    completed = release(clone)
    result, reason = outcomes(completed.stdout)["records"]
    assert (completed.returncode, result) == (0, "skip")
    assert "shallow" in reason


def test_tag_is_made_of_the_version(repository: Path) -> None:
    completed = release(repository, "--tag")
    assert completed.returncode == 0, completed.stdout
    assert git(repository, "tag") == "v1.2.3"
    assert git(repository, "tag", "--list", "--format=%(contents:subject) %(objecttype)") == "Release 1.2.3 tag"
    assert git(repository, "rev-parse", "v1.2.3^{commit}") == git(repository, "rev-parse", "HEAD")
    assert git(repository, "status", "--porcelain") == ""


@pytest.mark.parametrize("options", [["--fast"], ["1.2.3"], ["--tag=yes"], ["--ta"]])
def test_misuse_is_named(options: list[str], repository: Path) -> None:
    completed = release(repository, *options)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert "tools/release: error: " in completed.stderr


def test_help_names_every_check(repository: Path) -> None:
    completed = release(repository, "--help")
    assert completed.returncode == 0
    assert all(name in completed.stdout for name, _, _ in FAULTS)


def test_versions_of_this_repository_agree(root: Path) -> None:
    checks = outcomes(release(root).stdout)
    for name in ("workspace", "lock", "pyproject", "citation"):
        assert checks[name][0] == "pass", checks[name]
    assert checks["records"][0] in ("pass", "skip"), checks["records"]
    # The first section of the changelog is that of the version, with a date once it is released.
    version = checks["citation"][1]
    heading = re.search(r"^## (.*)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heading
    assert re.fullmatch(re.escape(version) + r" - (Unreleased|\d{4}-\d\d-\d\d)", heading[1])
