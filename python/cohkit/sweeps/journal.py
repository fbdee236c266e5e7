"""The journal of a sweep: one line per finished point, on disk before the point counts as done."""

from __future__ import annotations

import fcntl
import json
import os
from typing import TYPE_CHECKING, Any

from cohkit import __version__
from cohkit.errors import InputError, UnavailableError
from cohkit.files import name_file_in_errors
from cohkit.sweeps.points import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

_FORM = "cohkit sweep 1"


class Journal:
    """An append-only file: after a crash it contains complete lines and at most one partial line."""

    def __init__(self, folder: Path, hashes: Sequence[str], command: str | None = None) -> None:
        """Open or create the journal of these points, with the command that runs them, if any.

        Raises:
            InputError: the folder contains another sweep, or its journal is damaged.
            UnavailableError: another process is writing to it.
            OSError: the journal cannot be written.

        """
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is not a folder; name one with `--out`")
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "journal.jsonl"
        self._hashes, self._command = hashes, command
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.done = self._read()
        except BlockingIOError:
            os.close(self._file)
            raise UnavailableError(f"{self._path}: another process writes to this sweep") from None
        except BaseException:
            os.close(self._file)
            raise
        directory = os.open(folder, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)

    def __enter__(self) -> Self:
        """Return the journal."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the journal; all outcomes are already on disk."""
        os.close(self._file)

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Append outcomes; they are on disk when this method returns."""
        lines = [json.dumps({"hash": self._hashes[outcome.number], **outcome._asdict()}) + "\n" for outcome in outcomes]
        self._write("".join(lines))
        self.done += outcomes

    def _write(self, text: str) -> None:
        """Append text and wait until it is on disk."""
        data = text.encode()
        with name_file_in_errors(self._path):
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)

    def _read(self) -> list[Outcome]:
        """Return the outcomes in the journal. Write its head first if it is new, and drop a partial last line."""
        data = self._path.read_bytes()
        complete_length = data.rfind(b"\n") + 1
        # A killed process leaves a partial line: its point is run again.
        os.ftruncate(self._file, complete_length)
        head = {"form": _FORM, "version": __version__, "points": list(self._hashes)}
        lines = data[:complete_length].splitlines()
        if not lines:
            command_entry = {} if self._command is None else {"command": self._command}
            self._write(json.dumps(head | command_entry) + "\n")
            return []
        # The journal of a sweep is independent of its command, and so of the number of workers.
        if {key: value for key, value in self._line(1, lines[0]).items() if key != "command"} != head:
            raise InputError(
                f"{self._path}:1:1: this folder contains another sweep, or one of other files or of another version of "
                "cohkit; choose another folder with `--out`"
            )
        done: dict[int, Outcome] = {}
        for number, line in enumerate(lines[1:], start=2):
            entry = self._line(number, line)
            try:
                expected_hash = self._hashes[entry["number"]]
                is_valid = entry.pop("hash") == expected_hash
                outcome = Outcome(**entry)
            except (KeyError, IndexError, TypeError):
                is_valid = False
            if not is_valid or outcome.number in done:
                raise InputError(f"{self._path}:{number}:1: this point is not part of the sweep, or is a duplicate")
            done[outcome.number] = outcome
        return list(done.values())

    def _line(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            return dict(json.loads(line))
        except (ValueError, TypeError):
            raise InputError(f"{self._path}:{number}:1: this line of the journal is damaged") from None
