"""Points of a sweep: self-contained runs that any process with the package can execute, identified by a hash."""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
import json
import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cohkit import __version__
from cohkit._cohkit import Composition, Protocol
from cohkit.errors import Error, UnavailableError
from cohkit.machines import Machine
from cohkit.memory_traces import TraceFile
from cohkit.native import Text
from cohkit.protocols import load_executable
from cohkit.simulator import machine
from cohkit.sweeps.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cohkit.sweeps.values import Value


class Texts(NamedTuple):
    """Contents of the files that a point reads, so that a worker needs no access to them."""

    protocol: Protocol | Composition | None = None
    platform: tuple[str, str | None] | Machine | None = None
    test: Text | None = None
    trace: TraceFile | None = None

    @staticmethod
    def of(options: Mapping[str, Value]) -> Texts:
        """Read the files that the options name."""
        protocol, platform = options.get("protocol"), options.get("platform")
        text = load_executable(str(protocol)) if protocol is not None else None
        on = str(platform)
        program = Text.of(str(options.get("test")))
        trace = TraceFile.of(str(options.get("workload")))
        if "+" in on and not Path(on).exists():
            return Texts(text, Machine(on), program, trace)
        own = Path(on).read_bytes().decode(errors="replace") if on.endswith(".toml") else None
        return Texts(text, (on, own) if platform is not None else None, program, trace)


class Point(NamedTuple):
    """One run. It can be pickled, and is independent of the machine that runs it."""

    number: int
    """Index in the sweep, from 0."""
    run: str
    """Command: a key of `KINDS`."""
    options: dict[str, Value]
    """Options of the command."""
    axes: dict[str, Value]
    """Options that vary in the sweep."""
    seed: int
    repetition: int
    texts: Texts

    def hash(self) -> str:
        """Return a hash of the run's content: command, options, texts, seed and version."""
        told = {name: value for name, value in self.options.items() if name not in ("protocol", "platform")}
        if self.texts.test:
            told["test"] = self.texts.test.text
        if self.texts.trace:
            kind = self.texts.trace.name.partition(":")[0]
            told["workload"] = f"{kind}:{hashlib.sha256(self.texts.trace.file).hexdigest()}"
        # A shipped platform is identified by its contents; the location of a file is irrelevant.
        on = self.texts.platform
        what = [self.run, told, self.seed, _protocol_texts(self.texts.protocol), _machine_content(on), __version__]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]

    def resolved_options(self) -> dict[str, Any]:
        """Return the options, with file names replaced by the contents of the files."""
        options: dict[str, Any] = dict(self.options)
        if self.texts.protocol:
            options["protocol"] = self.texts.protocol
        on = self.texts.platform
        if isinstance(on, Machine):
            options["platform"] = on
        elif on and on[1] is not None:
            options["platform"] = machine(on[0], text=on[1])
        if self.texts.test:
            options["test"] = self.texts.test
        if self.texts.trace:
            options["workload"] = self.texts.trace
        return options


def _protocol_texts(protocol: Protocol | Composition | None) -> str | list[str] | None:
    """Return the text of a protocol, along with the texts that it uses."""
    if isinstance(protocol, Composition):
        return [protocol.text, *(text for _, _, text in protocol.uses)]
    return protocol and protocol.text


def _machine_content(platform: tuple[str, str | None] | Machine | None) -> str | None:
    if isinstance(platform, Machine):
        return platform.native.json()
    if platform is None:
        return None
    name, text = platform
    return _shipped_machine(name) if text is None else text


@functools.cache
def _shipped_machine(platform: str) -> str:
    return machine(platform).json()


class Outcome(NamedTuple):
    """Result of a point."""

    number: int
    rows: list[dict[str, Any]]
    code: int
    """Exit code that the command would have returned."""
    error: str | None
    """Reason why there are no rows."""
    host: dict[str, Any]
    """Machine-dependent metadata."""


def run(point: Point) -> Outcome:
    """Run a point. An error is part of its outcome."""
    begun = time.perf_counter()
    rows: list[dict[str, Any]] = []
    code, error = 0, None
    try:
        rows, code = KINDS[point.run].run(point.resolved_options(), point.seed)
    except (Error, OSError) as raised:
        error = str(raised)
        code = 4 if isinstance(raised, UnavailableError | OSError) else 2
    host = {
        "seconds": time.perf_counter() - begun,
        "worker": f"{socket.gethostname()}:{os.getpid()}",
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    }
    return Outcome(point.number, rows, code, error, host)


def lost_outcome(point: Point, reason: str) -> Outcome:
    """Return the outcome of a point whose worker did not survive."""
    return Outcome(point.number, [], 4, reason, {})
