"""The native command, which some results are had from."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from cohkit.errors import UnavailableError


def binary() -> str:
    """Give the file of the command `cohkit`.

    Raises:
        UnavailableError: there is none.

    """
    beside = Path(sys.executable).with_name("cohkit")
    found = str(beside) if beside.is_file() else shutil.which("cohkit")
    if found is None:
        raise UnavailableError("the native command `cohkit` is neither beside this Python nor in `PATH`")
    return found
