"""Interface of user-defined device applications: events and actions.

An application is a class with a method `handle`, which takes an event and yields actions. An event reports a change of
a line of the home, or the completion of a request of the application. `docs/applications.md` builds one step by step.

>>> from cohkit import device
>>> class Memory(device.Application):
...     name = "memory"
...     lines = range(8)
...
...     def handle(self, event):
...         match event:
...             case device.Read(line):
...                 yield device.Fetch(0, line)
...             case device.FetchCompletion(_, line, words):
...                 yield device.Answer(line, words)
...             case device.Write(line, words):
...                 yield device.Store(line, line, words)
...             case device.StoreCompletion(tag):
...                 yield device.Accept(tag)
>>> list(Memory().handle(device.Read(3, "read", "none")))
[Fetch(tag=0, first=3, lines=1)]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence  # noqa: TC003 -- of named tuples
from typing import TYPE_CHECKING, Literal, NamedTuple

from cohkit.old_names import resolver

if TYPE_CHECKING:
    from collections.abc import Iterable

Permission = Literal["none", "read", "write"]
"""Permission of the CPU for a line."""

Operation = Literal["clean", "clean-invalidate"]
"""Local operation on the CPU's copies of a line: both write dirty data back; the second also invalidates all copies."""


class Start(NamedTuple):
    """Start of the run. The first event, delivered once."""

    words: int
    """Number of 64-bit words per line."""


class Read(NamedTuple):
    """A read by the home on behalf of the CPU, only of `lines`. Requires an `Answer`, now or later."""

    line: int
    wants: Permission
    """Permission that the CPU receives with the answer; `"none"` for an uncached read."""
    has: Permission
    """Permission of the CPU until then."""


class Write(NamedTuple):
    """A write by the home, only of `lines`. Requires an `Accept`, now or later."""

    line: int
    words: Sequence[int]
    keeps: Permission
    """Permission of the CPU for the line from now on."""


class PermissionChange(NamedTuple):
    """A change of the CPU's permission for a line, as far as the home knows it."""

    line: int
    before: Permission
    after: Permission


class LocalCompletion(NamedTuple):
    """Completion of a local operation. If it was requested with a lock, the lock is held."""

    line: int
    operation: Operation
    dirty: bool
    """True if the CPU had written the line."""


class FetchCompletion(NamedTuple):
    """A line that the application requested from its memory. Lines of one burst arrive in order."""

    tag: int
    line: int
    words: Sequence[int]


class ReadCompletion(NamedTuple):
    """Words that the application read from its memory, or the previous value of a word that it changed."""

    tag: int
    words: Sequence[int]


class StoreCompletion(NamedTuple):
    """Completion of a write of the application to its memory, of a line or of words of one."""

    tag: int


class Timer(NamedTuple):
    """Expiry of a timer of the application."""

    tag: int


class RegisterRead(NamedTuple):
    """A read of a register by a thread over the device bus. Requires a `Reply`, now or later."""

    register: int
    thread: int


class RegisterWrite(NamedTuple):
    """A write of a register by a thread over the device bus."""

    register: int
    value: int


class HostFetchCompletion(NamedTuple):
    """Words that the application requested from the CPU's own memory."""

    tag: int
    words: Sequence[int]


class CoherentLoadCompletion(NamedTuple):
    """Words read coherently from host memory, or the previous value of a word that was changed."""

    tag: int
    words: Sequence[int]


class CoherentStoreCompletion(NamedTuple):
    """Completion of a coherent write of the application to host memory: it has been performed."""

    tag: int


class AccessRefusal(NamedTuple):
    """A coherent access to host memory that the page table does not permit, instead of its completion.

    Refused lines were neither read nor written; writes to other lines were performed. Requires `Abandon` immediately,
    otherwise the run ends.
    """

    tag: int
    word: int
    """First refused word."""
    write: bool
    """True if the access was a write."""
    permits: Permission
    """Permission of the page; `"none"` if it is not present."""


class Stop(NamedTuple):
    """Request to end the run: the application completes what it has started and releases its locks."""


Event = (
    Start
    | Read
    | Write
    | PermissionChange
    | LocalCompletion
    | FetchCompletion
    | ReadCompletion
    | StoreCompletion
    | Timer
    | RegisterRead
    | RegisterWrite
    | HostFetchCompletion
    | CoherentLoadCompletion
    | CoherentStoreCompletion
    | AccessRefusal
    | Stop
)
"""Events of an application."""


class Answer(NamedTuple):
    """Answer a read by the home."""

    line: int
    words: Sequence[int]


class Accept(NamedTuple):
    """Accept a write by the home, which then continues."""

    line: int


class Local(NamedTuple):
    """Request a local operation, one at a time per line. With a lock, the CPU gets no permission until `Unlock`."""

    line: int
    operation: Operation
    lock: bool = False


class Unlock(NamedTuple):
    """Release a lock."""

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
    """Write words of a line of the application's memory, from `word` on. The other words are unchanged."""

    tag: int
    line: int
    word: int
    words: Sequence[int]


class AddWord(NamedTuple):
    """Add to a 64-bit word of the application's memory atomically. `ReadCompletion` returns its previous value."""

    tag: int
    line: int
    word: int
    by: int = 1


class CompareSwapWord(NamedTuple):
    """Set a word of the application's memory atomically if it equals `old`. `ReadCompletion` has its previous value."""

    tag: int
    line: int
    word: int
    old: int
    new: int


class Wake(NamedTuple):
    """Start a timer that expires after `after` picoseconds."""

    tag: int
    after: int


class Reply(NamedTuple):
    """Reply to a thread's read of a register."""

    thread: int
    value: int


class HostFetch(NamedTuple):
    """Read words of the CPU's own memory over the device bus, in one transfer."""

    tag: int
    first: int
    words: int


class HostStore(NamedTuple):
    """Write words of the CPU's own memory over the device bus, without a completion."""

    first: int
    words: Sequence[int]


class CoherentLoad(NamedTuple):
    """Read words of host memory coherently, at least one. `CoherentLoadCompletion` returns them.

    Words of one line are read atomically, those of different lines in any order.
    """

    tag: int
    first: int
    words: int = 1
    cached: bool = True
    """True to keep the lines in the device's cache, false to request only the bytes."""


class CoherentStore(NamedTuple):
    """Write words of host memory coherently. Only the completion, `CoherentStoreCompletion`, orders the write."""

    tag: int
    first: int
    words: Sequence[int]
    cached: bool = True
    """True to fetch the lines into the device's cache for writing, false to send the bytes to the home."""


class CoherentAdd(NamedTuple):
    """Add to a word of host memory atomically. `CoherentLoadCompletion` returns its previous value."""

    tag: int
    word: int
    by: int = 1


class CoherentCompareSwap(NamedTuple):
    """Set a word of host memory atomically if it equals `old`. `CoherentLoadCompletion` returns its previous value."""

    tag: int
    word: int
    old: int
    new: int


class Abandon(NamedTuple):
    """Continue without a refused coherent access."""

    tag: int


class Begin(NamedTuple):
    """Start the time measurement with this tag."""

    tag: int


class End(NamedTuple):
    """End the time measurement with this tag, and record its duration under the name `what`."""

    tag: int
    what: str


class Count(NamedTuple):
    """Add to a counter of the statistics."""

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
    | Abandon
    | Begin
    | End
    | Count
)
"""Actions of an application."""


class Application(ABC):
    """A device application: a state machine that reacts to events."""

    name: str
    """Name in messages."""
    lines: range | None = None
    """Lines whose reads it answers and whose writes it accepts, a range with step 1.

    If `None`, the application is beside the home instead of behind it.
    """

    @abstractmethod
    def handle(self, event: Event) -> Iterable[Action]:
        """Handle an event, and return the resulting actions in order."""


if not TYPE_CHECKING:
    __getattr__ = resolver(__name__)
