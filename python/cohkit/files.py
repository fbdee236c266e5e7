"""Atomic file output: a file is written completely or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@contextmanager
def name_file_in_errors(file: str | os.PathLike[str]) -> Iterator[None]:
    """Add the file name to operating system errors that lack one.

    >>> from cohkit.files import name_file_in_errors
    >>> with name_file_in_errors("full.json"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    ...
    OSError: [Errno 28] No space left on device: 'full.json'

    """
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = os.fspath(file)
        raise


def _new_file(folder: Path) -> Any:  # noqa: ANN401 -- tempfile has no public name for it
    try:
        return tempfile.NamedTemporaryFile("wb", dir=folder, prefix=".cohkit-", delete=False)
    except OSError as error:
        # The user named the folder, not the temporary file in it.
        error.filename = str(folder)
        raise


def write(path: Path, content: bytes) -> None:
    """Replace the contents of a file atomically and durably; on failure, the file is unchanged.

    A symbolic link is followed. A device or a pipe is written to directly.
    """
    path = path.resolve() if path.is_symlink() else path
    with name_file_in_errors(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
    with name_file_in_errors(path), _new_file(path.parent) as temporary:
        try:
            temporary.write(content)
            temporary.flush()
            # A full disk may be reported only now.
            os.fsync(temporary.fileno())
            temporary.close()
            mask = os.umask(0)
            os.umask(mask)
            Path(temporary.name).chmod(0o666 & ~mask)
            Path(temporary.name).replace(path)
        except BaseException:
            Path(temporary.name).unlink(missing_ok=True)
            raise


def try_folder(folder: Path) -> None:
    """Check that a folder, which need not exist yet, is writable, without leaving anything behind."""
    existing: Iterable[Path] = (parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    with _new_file(next(iter(existing))) as temporary:
        Path(temporary.name).unlink()
