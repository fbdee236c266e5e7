"""Execution on the cores of this machine, by worker processes."""

from __future__ import annotations

import multiprocessing
import signal
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, cast

from cohkit.sweeps.points import Outcome, Point, lost_outcome, run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.context import SpawnProcess

_ATTEMPTS = 3


def outcomes(points: Sequence[Point], workers: int) -> Iterator[list[Outcome]]:
    """Run points on `workers` processes, and yield outcomes as they complete.

    A point whose process dies is retried in another one; after three such failures it has failed.
    """
    waiting = list(enumerate(points))[::-1]
    tried: dict[int, int] = {}
    busy: dict[Connection, tuple[SpawnProcess, int]] = {}
    try:
        for _ in range(min(workers, len(points))):
            _assign(*_worker(), waiting, busy)
        while busy:
            came = []
            for ready in cast("list[Connection]", wait(list(busy))):
                process, at = busy.pop(ready)
                try:
                    came.append(ready.recv())
                    _assign(ready, process, waiting, busy)
                except (EOFError, ConnectionError):
                    process.join()
                    tried[at] = tried.get(at, 0) + 1
                    if tried[at] < _ATTEMPTS:
                        waiting.append((at, points[at]))
                    else:
                        ended = f"its process ended {_ATTEMPTS} times, the last time {_exit_reason(process.exitcode)}"
                        came.append(lost_outcome(points[at], ended))
                    if waiting:
                        _assign(*_worker(), waiting, busy)
            if came:
                yield came
    finally:
        for process, _ in busy.values():
            process.kill()


def _exit_reason(code: int | None) -> str:
    return f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"


def _assign(
    ready: Connection,
    process: SpawnProcess,
    waiting: list[tuple[int, Point]],
    busy: dict[Connection, tuple[SpawnProcess, int]],
) -> None:
    """Send the next point to a process, or let the process exit if no point is left."""
    if not waiting:
        ready.close()
        return
    at, point = waiting.pop()
    busy[ready] = (process, at)
    # The death of a worker is detected when its result is awaited.
    try:
        ready.send(point)
    except ConnectionError:
        return


def _worker() -> tuple[Connection, SpawnProcess]:
    # Use a fresh interpreter: a forked one would have copies of locks that may be held.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    return ours, process


def _serve(channel: Connection) -> None:
    """Run points until the connection is closed."""
    # Ctrl-C reaches all processes of a terminal; the process that writes the journal handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            point = channel.recv()
        except (EOFError, ConnectionError):
            return
        outcome = run(point)
        try:
            channel.send(outcome)
        except ConnectionError:
            return
