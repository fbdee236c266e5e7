"""CPU threads: generators that yield one step after the other.

`yield` returns the result of the step: a word after loads and atomic updates, otherwise 0. Words have 64 bits.
On a machine that translates the thread's addresses, `yield` raises `AccessError` if the page table denies the access.

Fields with the same name have the same meaning in all steps:

- `line`: number of a line of the home.
- `word`: number of a 64-bit word within the line; in `LoadHost` and `StoreHost`, of a word of host memory.
- `value`: value to write, from 0 to 2**64 - 1.
- `by`: number to add; sums in memory wrap around at 2**64.
- `old`, `new`: value that the word is compared with, and value that replaces it.
- `register`: number of a register of the application.
- `what`: name of a counter or of a duration in the result; threads and the application share counters of the same name.

>>> from cohkit import cpu
>>> def count_up(line, times):
...     for _ in range(times):
...         before = yield cpu.Add(line, 0, 1)
...         yield cpu.Count("was even", 1 - before % 2)
>>> next(count_up(3, 10))
Add(line=3, word=0, by=1)
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, NamedTuple

from cohkit.errors import Error
from cohkit.old_names import resolver

if TYPE_CHECKING:
    from cohkit.device import Permission


class Load(NamedTuple):
    """Load a word of a line. `yield` returns it."""

    line: int
    word: int = 0


class LoadExclusive(NamedTuple):
    """Load a word of a line with write permission for the line. `yield` returns the word."""

    line: int
    word: int = 0


class Store(NamedTuple):
    """Store a word of a line."""

    line: int
    word: int
    value: int


class Acquire(NamedTuple):
    """Load a word of a line before all later steps. `yield` returns the word."""

    line: int
    word: int


class Release(NamedTuple):
    """Store a word of a line after all earlier steps."""

    line: int
    word: int
    value: int


class Add(NamedTuple):
    """Add to a word atomically. `yield` returns its previous value."""

    line: int
    word: int
    by: int


class CompareSwap(NamedTuple):
    """Set a word to `new` atomically if it equals `old`. `yield` returns its previous value."""

    line: int
    word: int
    old: int
    new: int


class Prefetch(NamedTuple):
    """Prefetch a line for reading.

    A thread has at most `cores.max_outstanding` + `cores.prefetch_distance` - 1 prefetches outstanding.
    Further ones are dropped, and counted by the statistic `prefetches_dropped`.
    """

    line: int


class PrefetchExclusive(NamedTuple):
    """Prefetch a line with write permission, or for reading where caches send stores to the home.

    Outstanding prefetches are bounded as those of `Prefetch`.
    """

    line: int


class ReadRegister(NamedTuple):
    """Read a register of the application over the device bus. `yield` returns its value."""

    register: int


class WriteRegister(NamedTuple):
    """Write a register of the application over the device bus."""

    register: int
    value: int


class LoadHost(NamedTuple):
    """Load a word of the CPU's own memory. `yield` returns it."""

    word: int


class StoreHost(NamedTuple):
    """Store a word of the CPU's own memory."""

    word: int
    value: int


class Work(NamedTuple):
    """Compute for `time` picoseconds."""

    time: int


class Fence(NamedTuple):
    """Wait until all stores have been performed."""


class Count(NamedTuple):
    """Add to a counter of the statistics."""

    what: str
    by: int = 1


class Begin(NamedTuple):
    """Start the time measurement of this thread."""


class End(NamedTuple):
    """End the time measurement of this thread, and record its duration under the name `what`."""

    what: str


Step = (
    Load
    | LoadExclusive
    | Store
    | Acquire
    | Release
    | Add
    | CompareSwap
    | Prefetch
    | PrefetchExclusive
    | ReadRegister
    | WriteRegister
    | LoadHost
    | StoreHost
    | Work
    | Fence
    | Count
    | Begin
    | End
)
"""Steps of a thread."""


class AccessError(Error):
    """An access that the page table denies and that is not performed. A thread that does not catch this ends the run.

    >>> from cohkit import cpu
    >>> def reads_what_is_there(lines):
    ...     for line in range(lines):
    ...         try:
    ...             yield cpu.Load(line)
    ...         except cpu.AccessError as refused:
    ...             yield cpu.Count("not there", int(refused.permits == "none"))
    """

    def __init__(self, step: Step, write: bool, permits: Permission) -> None:  # noqa: FBT001 -- as the compiled half has it
        """Record the refused step, whether it was a write, and the permission of its page."""
        super().__init__(f"{step} faults: the page {'may only be read' if permits == 'read' else 'is not there'}")
        self.step = step
        self.write = write
        self.permits = permits


Thread = Generator[Step, int, None]
"""A thread. It ends when the generator ends."""


if not TYPE_CHECKING:
    __getattr__ = resolver(__name__)
