"""The wheel carries the command and the module, and needs nothing but Python where it is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build with the profile of the tests, so that everything but the packing is done already."""
    folder = tmp_path_factory.mktemp("wheel")
    binaries = Path(sys.executable).parent
    pip = [binaries / "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-build-isolation", "--no-deps"]
    settings = ["--config-settings", "build-args=--profile=dev --locked"]
    command = ["env", f"PATH={binaries}:{os.environ['PATH']}", *pip, *settings, "--wheel-dir", folder, root]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [built] = folder.iterdir()
    return built


def test_the_wheel_holds_command_module_types_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "cp311-abi3" in wheel.name
    for file in ("cohkit/_cohkit.abi3.so", "cohkit/_cohkit.pyi", "cohkit/py.typed", "cohkit/__main__.py"):
        assert file in names
    assert [name for name in names if name.endswith(".data/scripts/cohkit")]
    assert {name.split("/")[0].split("-")[0] for name in names} == {"cohkit"}


def test_it_works_in_a_bare_environment_without_rust(wheel: Path, tmp_path: Path, root: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", str(bare)]
    subprocess.run([*pip, "install", "--no-index", str(wheel)], check=True)

    def alone(*command: object) -> str:
        arguments = ["env", "-i", *map(str, command)]
        done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    command, python = bare / "bin" / "cohkit", bare / "bin" / "python"
    assert alone(command, "--version") == alone(python, "-m", "cohkit", "--version")
    assert "msi three_caches: verified: 4348 states up to symmetry" in alone(
        command, "check", root / "protocols" / "msi.coh", "--system", "three_caches"
    )
    script = "import cohkit; print(cohkit.check(cohkit.shipped('msi'), remotes=2)[0]['outcome'])"
    assert alone(python, "-c", script) == "verified\n"
    rows = json.loads(alone(command, "reproduce", "eci-home", "--json"))
    assert rows[0]["published"] == 79
    rows = json.loads(alone(command, "reproduce", "cckit-table2", "--accesses", 300, "--json"))
    assert rows[0]["published"] == 268
