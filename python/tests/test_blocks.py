"""RTL blocks simulated by Verilator and driven by cocotb: `hardware/blocks/block_tests.py` has the checks."""

from __future__ import annotations

import importlib
import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.needs("cocotb", "verilator")

# SystemVerilog files of the blocks, in the order of their dependencies.
SOURCES = ["home_pkg", "fifo", "spill_register", "rr_pick", "stream_arbiter", "ram_block", "dcs_reader", "dcs_writer"]


def run(folder: Path, rtl: Path, block: tuple[str, str, dict[str, int]]) -> tuple[int, int]:
    """Return the number of executed and of failed tests of a block of this RTL."""
    top, test, parameters = block
    runner_of = importlib.import_module("cocotb.runner")
    runner = runner_of.get_runner("verilator")
    runner.build(
        verilog_sources=[*(rtl / f"{name}.sv" for name in SOURCES), rtl.parent / "blocks/blocks.sv"],
        hdl_toplevel=top,
        includes=[rtl],
        parameters=parameters,
        build_args=["--assert"],
        build_dir=folder,
        always=True,
    )
    results = runner.test(test_module="block_tests", hdl_toplevel=top, testcase=test, build_dir=folder)
    return tuple(runner_of.get_results(results))


@pytest.mark.filterwarnings("ignore:Python runners and associated APIs")
@pytest.mark.parametrize(
    "block",
    [
        ("fifo_block", "stream", {"Depth": 1}),
        ("fifo_block", "stream", {"Depth": 4}),
        ("fifo_block", "stream", {"Depth": 8, "RegisterValid": 0}),
        ("spill_register_block", "stream", {}),
        ("stream_arbiter_block", "arbiter", {}),
        ("dcs_reader_block", "reader", {}),
        ("dcs_writer_block", "writer", {}),
    ],
)
def test_block(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: tuple[str, str, dict[str, int]]
) -> None:
    monkeypatch.syspath_prepend(str(root / "hardware/blocks"))
    assert run(tmp_path, root / "hardware/rtl", block) == (1, 0)


@pytest.mark.filterwarnings("ignore:Python runners and associated APIs")
@pytest.mark.parametrize(
    "fault",
    [
        # Fault: a read completes with its first beat.
        ("dcs_reader", "reader", "burst_end && last_legal && r_index ==", "r_valid_i && in_flight && r_index =="),
        # Fault: bytes are released before the last one was received.
        (
            "dcs_writer",
            "writer",
            "rst_ni && load_data && last ? source_circuit",
            "rst_ni && load_data ? source_circuit",
        ),
    ],
)
def test_seeded_fault_is_detected(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: tuple[str, str, str, str]
) -> None:
    name, test, original, faulty = fault
    hardware = tmp_path / "hardware"
    shutil.copytree(root / "hardware", hardware)
    source = hardware / f"rtl/{name}.sv"
    text = source.read_text(encoding="utf-8")
    assert text.count(original) == 1
    source.write_text(text.replace(original, faulty), encoding="utf-8")
    monkeypatch.syspath_prepend(str(hardware / "blocks"))
    with pytest.raises(SystemExit, match="Failed 1 of 1 tests"):
        run(tmp_path / "build", hardware / "rtl", (f"{name}_block", test, {}))
