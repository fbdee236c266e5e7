"""Blocks of the RTL, each by itself in Verilator, driven by cocotb as hardware/blocks/block_tests.py says."""

from __future__ import annotations

import importlib
import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("cocotb", reason="cocotb is not installed: the package `cocotb` of PyPI")
if not shutil.which("verilator"):
    pytest.skip("Verilator is not installed: the Debian package `verilator`", allow_module_level=True)

SOURCES = ["home_pkg", "fifo", "spill_register", "rr_pick", "stream_arbiter"]


@pytest.mark.filterwarnings("ignore:Python runners and associated APIs")
@pytest.mark.parametrize(
    "block",
    [
        ("fifo_block", "stream", {"Depth": 1}),
        ("fifo_block", "stream", {"Depth": 4}),
        ("fifo_block", "stream", {"Depth": 8, "Fast": 0}),
        ("spill_register_block", "stream", {}),
        ("stream_arbiter_block", "arbiter", {}),
    ],
)
def test_block(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: tuple[str, str, dict[str, int]]
) -> None:
    top, test, parameters = block
    runner_of = importlib.import_module("cocotb.runner")
    monkeypatch.syspath_prepend(str(root / "hardware/blocks"))
    rtl = root / "hardware/rtl"
    runner = runner_of.get_runner("verilator")
    runner.build(
        verilog_sources=[*(rtl / f"{name}.sv" for name in SOURCES), root / "hardware/blocks/blocks.sv"],
        hdl_toplevel=top,
        includes=[rtl],
        parameters=parameters,
        build_args=["--assert"],
        build_dir=tmp_path,
        always=True,
    )
    results = runner.test(test_module="block_tests", hdl_toplevel=top, testcase=test, build_dir=tmp_path)
    assert runner_of.get_results(results) == (1, 0)
