"""What a device application of one's own hears and does.

An application is a class with a `handle`, which takes an event and yields actions. An event names what happens to a
line of the home, or what the application has asked for; `docs/applications.md` builds one from nothing.

>>> from cohkit import device
>>> class Memory(device.Application):
...     name = "memory"
...     lines = range(8)
...
...     def handle(self, event):
...         match event:
...             case device.Read(line):
...                 yield device.Fetch(0, line)
...             case device.Fetched(_, line, words):
...                 yield device.Answer(line, words)
...             case device.Write(line, words):
...                 yield device.Store(line, line, words)
...             case device.Stored(tag):
...                 yield device.Accept(tag)
>>> list(Memory().handle(device.Read(3, "read", "none")))
[Fetch(tag=0, first=3, lines=1)]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence  # noqa: TC003 -- of named tuples
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

Right = Literal["none", "read", "write"]
"""The most that the CPU may do with a line."""

Operation = Literal["clean", "clean-invalidate"]
"""What the home does with the CPU's copies of a line: memory gets what was written; the second leaves no copy."""


class Start(NamedTuple):
    """Everything begins; comes once, before all else."""

    words: int
    """64-bit words of a line."""


class Read(NamedTuple):
    """The home reads a line for the CPU; only of `lines`. Wants `Answer`, now or later."""

    line: int
    wants: Right
    """The right that the CPU gets with the answer; `"none"` for a read that is not cached."""
    has: Right
    """The most that it may do until then."""


class Write(NamedTuple):
    """The home writes a line; only of `lines`. Wants `Accept`, now or later."""

    line: int
    words: Sequence[int]
    keeps: Right
    """The most that the CPU may do with it from now on."""


class Changed(NamedTuple):
    """The home has learnt that what the CPU may do with a line has changed."""

    line: int
    before: Right
    after: Right


class Done(NamedTuple):
    """A local operation is complete. If it was asked for with a lock, the lock is held."""

    line: int
    operation: Operation
    dirty: bool
    """Whether the CPU had written the line."""


class Fetched(NamedTuple):
    """A line that the application has asked its memory for; those of one burst come in order."""

    tag: int
    line: int
    words: Sequence[int]


class WordsRead(NamedTuple):
    """Words of its memory that the application has read, or what a word held before it was changed."""

    tag: int
    words: Sequence[int]


class Stored(NamedTuple):
    """Memory has what the application has written, a line or words of one."""

    tag: int


class Timer(NamedTuple):
    """The time that the application has asked for has passed."""

    tag: int


class RegisterRead(NamedTuple):
    """A thread reads a register over the bus of devices. Wants `Reply`, now or later."""

    register: int
    thread: int


class RegisterWritten(NamedTuple):
    """A thread has written a register over the bus of devices."""

    register: int
    value: int


class HostFetched(NamedTuple):
    """Words of the CPU's own memory that the application has asked for."""

    tag: int
    words: Sequence[int]


class CoherentLoaded(NamedTuple):
    """Words of the host's memory that have been read coherently, or what a word held before it was changed."""

    tag: int
    words: Sequence[int]


class CoherentStored(NamedTuple):
    """What the application has written to the host's memory coherently has been performed."""

    tag: int


class Refused(NamedTuple):
    """A coherent access to the host's memory that the page table does not permit; in place of what it was to give.

    Nothing has been read or written in the lines that were refused; what was to be written to others has been.
    Wants `Forgo` at once: who does not say that it goes on without the access ends the run.
    """

    tag: int
    word: int
    """The first word that was refused."""
    write: bool
    """Whether the access would have written."""
    permits: Right
    """The most that may be done with the page: `"none"` where it is not there."""


class Stop(NamedTuple):
    """The run is to end: the application ends what it has begun and gives its locks back."""


Event = (
    Start
    | Read
    | Write
    | Changed
    | Done
    | Fetched
    | WordsRead
    | Stored
    | Timer
    | RegisterRead
    | RegisterWritten
    | HostFetched
    | CoherentLoaded
    | CoherentStored
    | Refused
    | Stop
)
"""What an application hears."""


class Answer(NamedTuple):
    """Answer a read of the home."""

    line: int
    words: Sequence[int]


class Accept(NamedTuple):
    """Take a write of the home: it may go on."""

    line: int


class Local(NamedTuple):
    """Ask for a local operation, one at a time for each line; with a lock the CPU gets no right until `Unlock`."""

    line: int
    operation: Operation
    lock: bool = False


class Unlock(NamedTuple):
    """Give a lock back."""

    line: int


class Fetch(NamedTuple):
    """Read lines from the application's memory, in one burst."""

    tag: int
    first: int
    lines: int = 1


class Store(NamedTuple):
    """Write a line to the application's memory."""

    tag: int
    line: int
    words: Sequence[int]


class ReadWords(NamedTuple):
    """Read words of a line of the application's memory, at least one, from `word` on."""

    tag: int
    line: int
    word: int
    words: int = 1


class WriteWords(NamedTuple):
    """Write words of a line of the application's memory from `word` on; the others stay."""

    tag: int
    line: int
    word: int
    words: Sequence[int]


class AddWord(NamedTuple):
    """Add to a word of the application's memory in one step, in 64 bits; what it held comes back as `WordsRead`."""

    tag: int
    line: int
    word: int
    by: int = 1


class CompareSwapWord(NamedTuple):
    """Set a word of the application's memory if it is `old`, in one step; what it held comes back as `WordsRead`."""

    tag: int
    line: int
    word: int
    old: int
    new: int


class Wake(NamedTuple):
    """Ask to be woken after so many picoseconds."""

    tag: int
    after: int


class Reply(NamedTuple):
    """Answer a thread's read of a register."""

    thread: int
    value: int


class HostFetch(NamedTuple):
    """Read words of the CPU's own memory over the bus of devices, in one transfer."""

    tag: int
    first: int
    words: int


class HostStore(NamedTuple):
    """Write words of the CPU's own memory over the bus of devices; nothing comes back."""

    first: int
    words: Sequence[int]


class CoherentLoad(NamedTuple):
    """Read words of the host's memory coherently, at least one; comes back as `CoherentLoaded`.

    Those of one line are read at one moment, those of different lines in any order.
    """

    tag: int
    first: int
    words: int = 1
    cached: bool = True
    """Whether the device's cache keeps the lines; otherwise it asks for their bytes alone."""


class CoherentStore(NamedTuple):
    """Write words of the host's memory coherently; comes back as `CoherentStored`, with which alone it is ordered."""

    tag: int
    first: int
    words: Sequence[int]
    cached: bool = True
    """Whether the device's cache gets the lines to write them; otherwise it sends their bytes to the home."""


class CoherentAdd(NamedTuple):
    """Add to a word of the host's memory in one atomic step; what it held comes back as `CoherentLoaded`."""

    tag: int
    word: int
    by: int = 1


class CoherentCompareSwap(NamedTuple):
    """Set a word of the host's memory if it is `old`, in one atomic step; what it held comes as `CoherentLoaded`."""

    tag: int
    word: int
    old: int
    new: int


class Forgo(NamedTuple):
    """Go on without a coherent access that was refused."""

    tag: int


class Begin(NamedTuple):
    """What is to be timed under this tag begins now."""

    tag: int


class End(NamedTuple):
    """What is timed under this tag ends now, and is called so."""

    tag: int
    what: str


class Count(NamedTuple):
    """Count something for the statistics."""

    what: str
    by: int = 1


Action = (
    Answer
    | Accept
    | Local
    | Unlock
    | Fetch
    | Store
    | ReadWords
    | WriteWords
    | AddWord
    | CompareSwapWord
    | Wake
    | Reply
    | HostFetch
    | HostStore
    | CoherentLoad
    | CoherentStore
    | CoherentAdd
    | CoherentCompareSwap
    | Forgo
    | Begin
    | End
    | Count
)
"""What an application does."""


class Application(ABC):
    """A device application: a state, and what each event makes of it."""

    name: str
    """Its name in messages."""
    lines: range | None = None
    """The lines of which it answers the home's reads and takes its writes, a range with step 1.

    If `None`, it stands beside the home.
    """

    @abstractmethod
    def handle(self, event: Event) -> Iterable[Action]:
        """Take an event, and give the actions that leave with it, in order."""
