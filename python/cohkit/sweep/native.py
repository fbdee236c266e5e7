"""Points whose command the native binary has alone: it is started for each, in a folder with the point's texts."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cohkit._cohkit import Composition, Protocol
from cohkit.errors import InputError, UnavailableError
from cohkit.native import binary
from cohkit.protocols import executed, given

if TYPE_CHECKING:
    from collections.abc import Sequence

_BAD_INPUT, _COULD_NOT_RUN = 2, 4


class Text(NamedTuple):
    """A text that a point carries: the file it stood in, and what is in it."""

    file: str
    text: str

    @staticmethod
    def of(test: str) -> Text | None:
        """Read a litmus test, or give nothing for what is the name of a shape."""
        # What is no text is refused by who reads it, at its place.
        return Text(test, Path(test).read_bytes().decode(errors="replace")) if test.endswith(".litmus") else None


def told(words: Sequence[object]) -> tuple[list[dict[str, Any]], int]:
    """Run a command with these words, of which texts become files, and give its JSON and its exit code.

    Raises:
        InputError: it refuses its input.
        UnavailableError: it could not run.

    """
    with tempfile.TemporaryDirectory() as folder:
        # Messages name files without the folder, which is another each time.
        line = [_file(word, Path(folder)) for word in words]
        command = [binary(), *line, "--json"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode in (_BAD_INPUT, _COULD_NOT_RUN):
        error = InputError if done.returncode == _BAD_INPUT else UnavailableError
        raise error(done.stderr.strip().removeprefix("error: "))
    if done.returncode < 0:
        raise UnavailableError(f"`cohkit {' '.join(line)}` was ended by signal {-done.returncode}")
    value = json.loads(done.stdout)
    return (value if isinstance(value, list) else [value]), done.returncode


def _file(word: object, folder: Path) -> str:
    if not isinstance(word, Composition | Protocol | Text):
        return str(word)
    name = Path(word.file).name if word.file else "text"
    if isinstance(word, Composition):
        return _files(word, name, folder)
    (folder / name).write_text(word.text)
    return name


def _files(word: Composition, name: str, folder: Path) -> str:
    """Write a text and those that it uses, which may be in folders above it."""
    up = max((Path(file).parts.count("..") for file, _, _ in word.uses), default=0)
    place = folder.joinpath(*["below"] * up)
    for file, text in [(name, word.text), *((file, text) for file, _, text in word.uses)]:
        written = place / file
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(text)
    return str((place / name).relative_to(folder))


def litmus(options: dict[str, Any], seed: int) -> tuple[list[dict[str, Any]], int]:
    """Run a litmus test: on a protocol, or by a memory model alone."""
    seeds = ["--seed", seed] if "simulate" in options else []
    return told(["litmus", options["test"], *_flags(options, "test"), *seeds])


def judge_litmus(options: dict[str, Any], _: int) -> None:
    """Look whether there are such a test and such a text."""
    test = options["test"]
    _printed(Text.of(test) or test)
    if "protocol" in options:
        executed(options["protocol"])


def _printed(test: str | Text) -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [binary(), "litmus", _file(test, Path(folder)), "--print"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(done.stderr.strip().removeprefix("error: "))


def lockstep(options: dict[str, Any], seed: int) -> tuple[list[dict[str, Any]], int]:
    """Run one seed of the RTL in lockstep with the controllers."""
    own = ["--seed", seed, "--seeds", 1]
    return told(["rtl", "test", options["protocol"], *_flags(options, "protocol"), *own])


def mutants(options: dict[str, Any], _: int) -> tuple[list[dict[str, Any]], int]:
    """Judge a mutant of a text, or some of them."""
    return told(["mutants", options["protocol"], *_flags(options, "protocol"), "--threads", 1])


def judge_text(options: dict[str, Any], _: int) -> None:
    """Look whether there is such a text."""
    given(options["protocol"])


def _flags(options: dict[str, Any], but: str) -> list[object]:
    pairs = [(name, value) for name, value in options.items() if name != but]
    return [word for name, value in pairs for word in (f"--{name.replace('_', '-')}", value)]
