"""What a thread of the CPU does: a generator that yields one step after the other.

What a step gives comes back from `yield`: a word after loads and updates, 0 otherwise. Words have 64 bits.
On a machine that translates the thread's addresses, `yield` raises `AccessError` where the page table refuses access.

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

if TYPE_CHECKING:
    from cohkit.device import Right


class Load(NamedTuple):
    """Load a word of a line, which comes back."""

    line: int
    word: int = 0


class LoadExclusive(NamedTuple):
    """Load a word of a line, which comes back, with the right to write the line."""

    line: int
    word: int = 0


class Store(NamedTuple):
    """Store a word of a line."""

    line: int
    word: int
    value: int


class Acquire(NamedTuple):
    """Load a word of a line, for which all later steps wait; it comes back."""

    line: int
    word: int


class Release(NamedTuple):
    """Store a word of a line after all earlier steps."""

    line: int
    word: int
    value: int


class Add(NamedTuple):
    """Add to a word in one atomic step; what it was comes back."""

    line: int
    word: int
    by: int


class CompareSwap(NamedTuple):
    """Make a word `new` if it is `old`, in one atomic step; what it was comes back."""

    line: int
    word: int
    old: int
    new: int


class Hint(NamedTuple):
    """Say that a line will be read soon."""

    line: int


class ReadRegister(NamedTuple):
    """Read a register of the application over the bus of devices; its value comes back."""

    register: int


class WriteRegister(NamedTuple):
    """Write a register of the application over the bus of devices."""

    register: int
    value: int


class LoadHost(NamedTuple):
    """Load a word of the CPU's own memory, which comes back."""

    word: int


class StoreHost(NamedTuple):
    """Store a word of the CPU's own memory."""

    word: int
    value: int


class Work(NamedTuple):
    """Work for so many picoseconds."""

    time: int


class Fence(NamedTuple):
    """Wait until all stores have been performed."""


class Count(NamedTuple):
    """Count something for the statistics."""

    what: str
    by: int = 1


class Begin(NamedTuple):
    """What is to be timed begins now."""


class End(NamedTuple):
    """What is timed ends now, and is called so."""

    what: str


Step = (
    Load
    | LoadExclusive
    | Store
    | Acquire
    | Release
    | Add
    | CompareSwap
    | Hint
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
"""What a thread does next."""


class AccessError(Error):
    """The page table does not permit the access of a step: it is not made. A thread that lets this pass ends the run.

    >>> from cohkit import cpu
    >>> def reads_what_is_there(lines):
    ...     for line in range(lines):
    ...         try:
    ...             yield cpu.Load(line)
    ...         except cpu.AccessError as refused:
    ...             yield cpu.Count("not there", int(refused.permits == "none"))
    """

    def __init__(self, step: Step, write: bool, permits: Right) -> None:  # noqa: FBT001 -- as the compiled half has it
        """Tell which step was refused, whether it would have written, and the most that its page permits."""
        super().__init__(f"{step} is refused: the page {'may only be read' if permits == 'read' else 'is not there'}")
        self.step = step
        self.write = write
        self.permits = permits


Thread = Generator[Step, int, None]
"""A thread: it ends when the generator does."""
