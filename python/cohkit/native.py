"""Interface to the native command, for results that only it provides."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cohkit._cohkit import Composition, Protocol
from cohkit.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence

_BAD_INPUT, _COULD_NOT_RUN = 2, 4


def binary() -> str:
    """Return the path of the command `cohkit`.

    Raises:
        UnavailableError: the command is not installed.

    """
    sibling = Path(sys.executable).with_name("cohkit")
    path = str(sibling) if sibling.is_file() else shutil.which("cohkit")
    if path is None:
        raise UnavailableError("the native command `cohkit` is neither next to this Python nor in `PATH`")
    return path


class Text(NamedTuple):
    """A file that a point carries: its name and contents.

    Attributes:
        file: name of the file, for messages.
        text: contents of the file.

    """

    file: str
    text: str

    @staticmethod
    def of(test: str) -> Text | None:
        """Read a litmus test, or return `None` for the name of a shape."""
        # Bytes that are not UTF-8 are reported by the parser, with their location.
        return Text(test, Path(test).read_bytes().decode(errors="replace")) if test.endswith(".litmus") else None


def run_json(words: Sequence[object]) -> tuple[list[dict[str, Any]], int]:
    """Run a command with these arguments, writing texts to files, and return its JSON output and exit code.

    Raises:
        InputError: the command rejected its input.
        UnavailableError: the command could not run.

    """
    with tempfile.TemporaryDirectory() as folder:
        # Messages name files without the temporary folder.
        arguments = [write_text(word, Path(folder)) for word in words]
        command = [binary(), *arguments, "--json"]
        process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if process.returncode in (_BAD_INPUT, _COULD_NOT_RUN):
        error = InputError if process.returncode == _BAD_INPUT else UnavailableError
        raise error(process.stderr.strip().removeprefix("error: "))
    if process.returncode < 0:
        raise UnavailableError(f"`cohkit {' '.join(arguments)}` was ended by signal {-process.returncode}")
    value = json.loads(process.stdout)
    return (value if isinstance(value, list) else [value]), process.returncode


def write_text(word: object, folder: Path) -> str:
    """Return an argument of a command; a text is written into the folder, and its file name is the argument."""
    if not isinstance(word, Composition | Protocol | Text):
        return str(word)
    name = Path(word.file).name if word.file else "text"
    if isinstance(word, Composition):
        return _write_texts(word, name, folder)
    (folder / name).write_text(word.text)
    return name


def _write_texts(word: Composition, name: str, folder: Path) -> str:
    """Write a composition and the texts that it uses, which may be in parent folders."""
    parent_count = max((Path(file).parts.count("..") for file, _, _ in word.uses), default=0)
    base = folder.joinpath(*["below"] * parent_count)
    for file, text in [(name, word.text), *((file, text) for file, _, text in word.uses)]:
        path = base / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str((base / name).relative_to(folder))
