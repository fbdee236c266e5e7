"""The linter slang accepts the RTL; Verilator, which builds the RTL, lints it as well."""

from __future__ import annotations

import ctypes
import importlib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.needs("pyslang")

# The default warnings, and those about widths, signs, conversions and violations of the standard.
WARNINGS = ["-Wdefault", "-Wconversion", "-Wpedantic", "-Wcase-redundant-default"]


def lint(root: Path, top: str, more: list[Path], capfd: pytest.CaptureFixture[str]) -> str:
    """Return the output of slang for the design of a top module; the last line has the number of messages."""
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
    driver = importlib.import_module("pyslang.driver").Driver()
    driver.addStandardArgs()
    options = ["slang", *WARNINGS, "--top", top, "-DPROTOCOL_PKG=eci_pkg", "-I", str(rtl)]
    assert driver.parseCommandLine(" ".join([*options, *map(str, files)]))
    assert driver.processOptions()
    assert driver.parseAllSources()
    driver.runFullCompilation(quiet=False)
    # slang writes through C's buffered output, which must be flushed.
    ctypes.CDLL(None).fflush(None)
    captured = capfd.readouterr()
    return captured.out + captured.err


@pytest.mark.parametrize("top", ["lockstep", "lockstep -GEndpoint=4", "synth", "board"])
def test_slang_accepts_all_sources(root: Path, top: str, capfd: pytest.CaptureFixture[str]) -> None:
    output = lint(root, top, [], capfd)
    assert "0 errors, 0 warnings" in output, output


def test_slang_reports_a_seeded_fault(root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    faulty_source = tmp_path / "wrong.sv"
    faulty_source.write_text("module wrong(input logic [7:0] a, output logic [3:0] b);\n  assign b = a;\nendmodule\n")
    assert "width-trunc" in lint(root, "wrong", [faulty_source], capfd)
