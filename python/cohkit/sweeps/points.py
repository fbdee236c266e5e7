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
    """Contents of the files that a point reads, so that a worker needs no access to them.

    Attributes:
        protocol: the parsed protocol or composition.
        platform: name of the platform and contents of its file (`None` for a shipped one), or a machine of two
            platforms.
        test: the litmus test.
        trace: the recorded trace.

    """

    protocol: Protocol | Composition | None = None
    platform: tuple[str, str | None] | Machine | None = None
    test: Text | None = None
    trace: TraceFile | None = None

    @staticmethod
    def of(options: Mapping[str, Value]) -> Texts:
        """Read the files that the options name."""
        protocol, platform = options.get("protocol"), options.get("platform")
        text = load_executable(str(protocol)) if protocol is not None else None
        platform_name = str(platform)
        program = Text.of(str(options.get("test")))
        trace = TraceFile.of(str(options.get("workload")))
        if "+" in platform_name and not Path(platform_name).exists():
            return Texts(text, Machine(platform_name), program, trace)
        platform_text = (
            Path(platform_name).read_bytes().decode(errors="replace") if platform_name.endswith(".toml") else None
        )
        return Texts(text, (platform_name, platform_text) if platform is not None else None, program, trace)


class Point(NamedTuple):
    """One run. It can be pickled, and is independent of the machine that runs it.

    Attributes:
        seed: seed of the run: that of the sweep plus `repetition`.
        repetition: number of the repetition of these options, from 0.
        texts: contents of the files that the options name.

    """

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
        identifying_options = {
            name: value for name, value in self.options.items() if name not in ("protocol", "platform")
        }
        if self.texts.test:
            identifying_options["test"] = self.texts.test.text
        if self.texts.trace:
            kind = self.texts.trace.name.partition(":")[0]
            identifying_options["workload"] = f"{kind}:{hashlib.sha256(self.texts.trace.file).hexdigest()}"
        # A shipped platform is identified by its contents; the location of a file is irrelevant.
        platform = self.texts.platform
        content = [
            self.run,
            identifying_options,
            self.seed,
            _protocol_texts(self.texts.protocol),
            _machine_content(platform),
            __version__,
        ]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]

    def resolved_options(self) -> dict[str, Any]:
        """Return the options, with file names replaced by the contents of the files."""
        options: dict[str, Any] = dict(self.options)
        if self.texts.protocol:
            options["protocol"] = self.texts.protocol
        platform = self.texts.platform
        if isinstance(platform, Machine):
            options["platform"] = platform
        elif platform and platform[1] is not None:
            options["platform"] = machine(platform[0], text=platform[1])
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
    """Result of a point.

    Attributes:
        number: index of the point in the sweep.
        rows: rows of the result table; empty if there is an error.

    """

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
    start = time.perf_counter()
    rows: list[dict[str, Any]] = []
    code, error = 0, None
    try:
        rows, code = KINDS[point.run].run(point.resolved_options(), point.seed)
    except (Error, OSError) as exception:
        error = str(exception)
        code = 4 if isinstance(exception, UnavailableError | OSError) else 2
    host = {
        "seconds": time.perf_counter() - start,
        "worker": f"{socket.gethostname()}:{os.getpid()}",
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    }
    return Outcome(point.number, rows, code, error, host)


def lost_outcome(point: Point, reason: str) -> Outcome:
    """Return the outcome of a point whose worker did not survive."""
    return Outcome(point.number, [], 4, reason, {})
