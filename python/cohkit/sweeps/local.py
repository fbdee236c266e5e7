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
    attempts: dict[int, int] = {}
    busy: dict[Connection, tuple[SpawnProcess, int]] = {}
    try:
        for _ in range(min(workers, len(points))):
            _assign(*_worker(), waiting, busy)
        while busy:
            completed = []
            for connection in cast("list[Connection]", wait(list(busy))):
                process, index = busy.pop(connection)
                try:
                    completed.append(connection.recv())
                    _assign(connection, process, waiting, busy)
                except (EOFError, ConnectionError):
                    process.join()
                    attempts[index] = attempts.get(index, 0) + 1
                    if attempts[index] < _ATTEMPTS:
                        waiting.append((index, points[index]))
                    else:
                        reason = f"its process ended {_ATTEMPTS} times, the last time {_exit_reason(process.exitcode)}"
                        completed.append(lost_outcome(points[index], reason))
                    if waiting:
                        _assign(*_worker(), waiting, busy)
            if completed:
                yield completed
    finally:
        for process, _ in busy.values():
            process.kill()


def _exit_reason(code: int | None) -> str:
    return f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"


def _assign(
    connection: Connection,
    process: SpawnProcess,
    waiting: list[tuple[int, Point]],
    busy: dict[Connection, tuple[SpawnProcess, int]],
) -> None:
    """Send the next point to a process, or let the process exit if no point is left."""
    if not waiting:
        connection.close()
        return
    index, point = waiting.pop()
    busy[connection] = (process, index)
    # The death of a worker is detected when its result is awaited.
    try:
        connection.send(point)
    except ConnectionError:
        return


def _worker() -> tuple[Connection, SpawnProcess]:
    # Use a fresh interpreter: a forked one would have copies of locks that may be held.
    context = multiprocessing.get_context("spawn")
    parent_end, child_end = context.Pipe()
    process = context.Process(target=_serve, args=(child_end,), daemon=True)
    process.start()
    child_end.close()
    return parent_end, process


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
