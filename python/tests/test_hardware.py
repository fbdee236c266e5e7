"""The linter slang accepts the RTL; Verilator, which builds the RTL, lints it as well."""

from __future__ import annotations

import ctypes
import importlib
import json
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Command

pytestmark = pytest.mark.needs("pyslang")

# The default warnings, and those about widths, signs, conversions and violations of the standard.
WARNINGS = ["-Wdefault", "-Wconversion", "-Wpedantic", "-Wcase-redundant-default"]


def slang(options: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    """Return the output of slang for these options and files; the last line has the number of messages."""
    driver = importlib.import_module("pyslang.driver").Driver()
    driver.addStandardArgs()
    assert driver.parseCommandLine(" ".join(["slang", *WARNINGS, *options]))
    assert driver.processOptions()
    assert driver.parseAllSources()
    driver.runFullCompilation(quiet=False)
    # slang writes through C's buffered output, which must be flushed.
    ctypes.CDLL(None).fflush(None)
    captured = capfd.readouterr()
    return captured.out + captured.err


def lint(root: Path, top: str, more: list[Path], capfd: pytest.CaptureFixture[str]) -> str:
    """Return the output of slang for the design of a top module."""
    rtl = root / "hardware/rtl"
    files = [
        rtl / "home_pkg.sv",
        rtl / "registers_pkg.sv",
        root / "crates/rtl/tests/golden/eci_pkg.sv",
        *(file for file in sorted(rtl.glob("*.sv")) if not file.name.endswith("_pkg.sv")),
        *sorted((root / "hardware/endpoints").glob("*.sv")),
        *sorted((root / "hardware/lockstep").glob("*.sv")),
        root / "hardware/example/board.sv",
        root / "hardware/synth/synth.sv",
        *sorted((root / "hardware/formal").glob("*.sv")),
        *more,
    ]
    options = ["--top", top, "-DPROTOCOL_PKG=eci_pkg", "-I", str(rtl)]
    return slang([*options, *map(str, files)], capfd)


@pytest.mark.parametrize("top", ["lockstep", "lockstep -GEndpoint=4", "synth", "board"])
def test_slang_accepts_all_sources(root: Path, top: str, capfd: pytest.CaptureFixture[str]) -> None:
    output = lint(root, top, [], capfd)
    assert "0 errors, 0 warnings" in output, output


def test_slang_reports_a_seeded_fault(root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    faulty_source = tmp_path / "wrong.sv"
    faulty_source.write_text("module wrong(input logic [7:0] a, output logic [3:0] b);\n  assign b = a;\nendmodule\n")
    assert "width-trunc" in lint(root, "wrong", [faulty_source], capfd)


def test_slang_accepts_the_step_functions_of_shipped_protocols(
    root: Path, tmp_path: Path, cohkit_command: Command, capfd: pytest.CaptureFixture[str]
) -> None:
    tops, files = [], []
    for protocol in sorted(root.glob("protocols/*.coh")):
        text = protocol.read_text()
        if "\nuse " in text:
            continue
        kinds = " ".join(re.findall(r"^remote (.*?) *{", text, re.MULTILINE)).split()
        agents = ",".join(["home", *kinds])
        emitted = cohkit_command("rtl", "emit", protocol, "--agent", agents, "--json", "--out", tmp_path)
        assert emitted.returncode == 0, emitted.stderr
        printed = json.loads(emitted.stdout)
        modules = [agent["module"] for agent in printed["agents"]]
        tops += modules
        files += [f"{printed['protocol']}_agents_pkg", *modules]
    assert len(tops) == 38
    options = [f"--top {top}" for top in tops]
    output = slang([*options, *(str(tmp_path / f"{file}.sv") for file in files)], capfd)
    assert "0 errors, 0 warnings" in output, output
