"""Execution of the notebooks."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
NEEDS_COMPILER = pytest.mark.needs("riscv-gcc")


def test_repository_has_five_notebooks() -> None:
    assert [notebook.stem for notebook in NOTEBOOKS] == [
        "1-first-protocol",
        "2-find-a-bug",
        "3-what-if-on-a-link",
        "4-device-application",
        "5-channel-program",
    ]


@pytest.mark.parametrize(
    "notebook",
    [
        pytest.param(book, id=book.stem, marks=[NEEDS_COMPILER] if book.stem == "5-channel-program" else [])
        for book in NOTEBOOKS
    ],
)
def test_notebook_runs_to_its_end(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    # Nothing is written to the user's home folder.
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    book: Any = nbformat.read(notebook, 4)  # type: ignore[no-untyped-call]
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code), "clear the outputs"
    assert any("assert " in cell.source for cell in code)
    NotebookClient(book, timeout=300, resources={"metadata": {"path": str(notebook.parent)}}).execute()
    formats = {form for cell in code for output in cell.outputs for form in output.get("data", {})}
    has_stream = any(output.output_type == "stream" for cell in code for output in cell.outputs)
    assert "text/html" in formats or has_stream
