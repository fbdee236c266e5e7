"""The times of tests that `make test` prints at its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "test_times"

# Output of cargo with unit tests, a failed test binary, and documentation tests.
CARGO = """\
     Running unittests src/lib.rs (target/debug/deps/cohkit_base-221cce49421bfedf)
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.25s
     Running tests/lockstep.rs (target/debug/deps/lockstep-0123456789abcdef)
test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 236.06s
   Doc-tests cohkit_base
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.50s
"""

# Output of pytest with one duration.
PYTEST = """\
============================= slowest 20 durations =============================
99.10s call     python/tests/test_site.py::test_links
1 failed, 648 passed, 2 warnings in 981.12s (0:16:21)
"""


def run(*logs: Path) -> subprocess.CompletedProcess[str]:
    """Run the tool on logs."""
    return subprocess.run([sys.executable, TOOL, *logs], capture_output=True, text=True, check=False)


def test_times_are_listed_in_order_and_the_slowest_at_the_end(tmp_path: Path) -> None:
    """Print each binary with its time, and the slowest of all logs first in the second list."""
    (tmp_path / "rust.log").write_text(CARGO)
    (tmp_path / "pytest.log").write_text(PYTEST)
    result = run(tmp_path / "rust.log", tmp_path / "pytest.log")
    assert result.returncode == 0, result.stderr
    listed, slowest = result.stdout.split("\nslowest:\n")
    rows = [
        "    0.25 s  cohkit_base",
        "  236.06 s  lockstep (tests/lockstep.rs)",
        "    1.50 s  documentation of cohkit_base",
        "   99.10 s  python/tests/test_site.py::test_links",
        "  981.12 s  all of pytest",
    ]
    assert listed.splitlines() == rows
    assert slowest.splitlines() == [rows[at] for at in (4, 1, 3, 2, 0)]


def test_missing_log_is_reported(tmp_path: Path) -> None:
    """Name the log that does not exist, and exit with 1."""
    result = run(tmp_path / "rust.log")
    assert (result.returncode, result.stdout) == (1, "")
    assert "rust.log: no such log" in result.stderr
