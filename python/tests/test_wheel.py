"""The wheel contains the command and the module, and needs nothing but Python."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build with the profile of the tests, so that only packing remains."""
    folder = tmp_path_factory.mktemp("wheel")
    binaries = Path(sys.executable).parent
    pip = [binaries / "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-build-isolation", "--no-deps"]
    settings = ["--config-settings", "build-args=--profile=dev --locked"]
    command = ["env", f"PATH={binaries}:{os.environ['PATH']}", *pip, *settings, "--wheel-dir", folder, root]
    completed = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    [built] = folder.iterdir()
    return built


def test_wheel_contains_command_module_types_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "cp311-abi3" in wheel.name
    for file in ("cohkit/_cohkit.abi3.so", "cohkit/_cohkit.pyi", "cohkit/py.typed", "cohkit/__main__.py"):
        assert file in names
    assert [name for name in names if name.endswith(".data/scripts/cohkit")]
    assert {name.split("/")[0].split("-")[0] for name in names} == {"cohkit"}


def test_wheel_is_small_and_debug_lines_are_separate(wheel: Path, root: Path, tmp_path: Path) -> None:
    assert wheel.stat().st_size < 20e6
    with zipfile.ZipFile(wheel) as packed:
        binaries = [name for name in packed.namelist() if name.endswith((".so", "/scripts/cohkit"))]
        assert len(binaries) == 2
        for name in binaries:
            file = Path(packed.extract(name, tmp_path))
            debug_file = root / "target/wheel-debug" / f"{file.name}.debug"
            assert not {".debug_line", ".symtab"} & sections(file)
            assert ".gnu_debuglink" in sections(file)
            # Continuous integration builds without debug lines; private symbols are separate in any case.
            lines = {".debug_line"} if os.environ.get("CARGO_PROFILE_DEV_DEBUG", "1") != "0" else set()
            assert {".symtab"} | lines <= sections(debug_file)


def sections(binary: Path) -> set[str]:
    """Return the names of a binary's ELF sections."""
    command = ["readelf", "--section-headers", "--wide", str(binary)]
    section_list = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^ *\[ *\d+\] (\.\S+)", section_list, re.MULTILINE))


def test_source_distribution_contains_all_build_inputs(root: Path, tmp_path: Path) -> None:
    """The archive has all files that Rust sources include, and those of the build."""
    script = f"import build_backend; print(build_backend.build_sdist({str(tmp_path)!r}))"
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": "tools"}
    completed = subprocess.run(
        [sys.executable, "-c", script], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    [file] = tmp_path.glob("cohkit-*.tar.gz")
    with tarfile.open(file) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    file_count = 0
    for source in root.glob("crates/*/src/**/*.rs"):
        for path in re.findall(r'include_(?:str|bytes)!\(\s*"([^"]+)"\s*\)', source.read_text()):
            place = (source.parent / path).resolve().relative_to(root).as_posix()
            assert place in names, f"{place}, which {source.relative_to(root)} takes in"
            file_count += 1
    assert file_count > 50
    for place in (
        "tools/build_backend.py",
        "Cargo.lock",
        "crates/cohkit/Cargo.toml",
        "python/cohkit/py.typed",
        "LICENSE",
    ):
        assert place in names


def test_wheel_works_without_rust(wheel: Path, tmp_path: Path, root: Path) -> None:
    """Install the wheel in a new environment and run the command and the module with an empty environment."""
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", str(bare)]
    subprocess.run([*pip, "install", "--no-index", str(wheel)], check=True)

    def run_installed(*command: object) -> str:
        """Run a command, which must succeed without messages, and return its output."""
        arguments = ["env", "-i", *map(str, command)]
        completed = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (completed.returncode, completed.stderr) == (0, "")
        return completed.stdout

    command, python = bare / "bin" / "cohkit", bare / "bin" / "python"
    assert run_installed(command, "--version") == run_installed(python, "-m", "cohkit", "--version")
    assert "msi three_caches: verified: 4348 states up to symmetry" in run_installed(
        command, "check", root / "protocols" / "msi.coh", "--system", "three_caches"
    )
    script = "import cohkit; print(cohkit.check(cohkit.shipped('msi'), remotes=2)[0]['outcome'])"
    assert run_installed(python, "-c", script) == "verified\n"
    rows = json.loads(run_installed(command, "reproduce", "eci-home", "--json"))
    assert rows[0]["published"] == 79
    rows = json.loads(run_installed(command, "reproduce", "cckit-table2", "--accesses", 300, "--json"))
    assert rows[0]["published"] == 268
