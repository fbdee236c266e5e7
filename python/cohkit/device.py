"""Interface of user-defined device applications: events and actions.

An application is a class with a method `handle`, which takes an event and yields actions. An event reports a change of
a line of the home, or the completion of a request of the application. `docs/applications.md` builds one step by step.

Fields with the same name have the same meaning in all events and actions, unless their class says otherwise:

- `line`: number of a line of the home, or of the application's memory.
- `word`: number of a 64-bit word within a line, or of a word of host memory.
- `words`: values of 64-bit words in address order; in requests to read, their number.
- `first`: number of the first line, or of the first word of host memory.
- `tag`: number that the application chooses for a request; the completion returns it.
- `register`, `thread`: number of a register of the application, and of the thread that accesses it.
- `value`: value of a register, a 64-bit number.
- `by`: number to add; sums in memory wrap around at 2**64.
- `old`, `new`: value that a word is compared with, and value that replaces it.
- `what`: name of a counter or of a duration in the result.

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
    """Highest permission that the CPU may have until the answer; `"read"` for an upgrade."""


class Write(NamedTuple):
    """A write by the home, only of `lines`. Requires an `Accept`, now or later."""

    line: int
    words: Sequence[int]
    """New contents of the whole line."""
    keeps: Permission
    """Highest permission that the CPU retains for the line."""


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
    """True if the CPU had modified the line, so that memory has changed."""


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
    """Completion of a write of a line, or of words of a line, to the application's memory."""

    tag: int


class Timer(NamedTuple):
    """Expiry of a timer that the application started by `Wake`."""

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
    """Completion of a coherent write of the application to host memory: every later read observes it."""

    tag: int


class AccessRefusal(NamedTuple):
    """A coherent access to host memory that the page table does not permit, instead of its completion.

    Refused lines were neither read nor written; writes to other lines were performed. Requires `Abandon` immediately,
    otherwise the run ends.
    """

    tag: int
    word: int
    """Number of the first refused word in host memory."""
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
    """Answer a read by the home, with the contents of the whole line."""

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
    """Release the lock of a line, which a `Local` operation with `lock` has taken."""

    line: int


class Fetch(NamedTuple):
    """Read lines from the application's memory, in one burst. `FetchCompletion` returns each of them."""

    tag: int
    first: int
    lines: int = 1


class Store(NamedTuple):
    """Write a line to the application's memory. `StoreCompletion` follows."""

    tag: int
    line: int
    words: Sequence[int]


class ReadWords(NamedTuple):
    """Read `words` words of a line of the application's memory, at least one, from `word` on.

    `ReadCompletion` returns them.
    """

    tag: int
    line: int
    word: int
    words: int = 1


class WriteWords(NamedTuple):
    """Write words of a line of the application's memory, from `word` on. The other words are unchanged.

    `StoreCompletion` follows.
    """

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
    """Start a timer that expires after `after` picoseconds. `Timer` with the same tag follows."""

    tag: int
    after: int


class Reply(NamedTuple):
    """Reply to a thread's read of a register with `value`."""

    thread: int
    value: int


class HostFetch(NamedTuple):
    """Read `words` words of the CPU's own memory over the device bus, in one transfer.

    `HostFetchCompletion` returns them.
    """

    tag: int
    first: int
    words: int


class HostStore(NamedTuple):
    """Write words of the CPU's own memory over the device bus, without a completion."""

    first: int
    words: Sequence[int]


class CoherentLoad(NamedTuple):
    """Read `words` words of host memory coherently, at least one. `CoherentLoadCompletion` returns them.

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
    """Continue without the coherent access `tag`, which was refused."""

    tag: int


class Begin(NamedTuple):
    """Start the time measurement `tag`, which has no effect on the run."""

    tag: int


class End(NamedTuple):
    """End the time measurement `tag`, and record its duration under the name `what`."""

    tag: int
    what: str


class Count(NamedTuple):
    """Add `by` to the counter `what` of the statistics."""

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
    """Name of the application in messages."""
    lines: range | None = None
    """Lines whose reads the application answers and whose writes it accepts, a range with step 1.

    If `None`, the application is beside the home instead of behind it: the home's memory serves all reads and writes.
    """

    @abstractmethod
    def handle(self, event: Event) -> Iterable[Action]:
        """Handle an event, and return the resulting actions in order."""


if not TYPE_CHECKING:
    __getattr__ = resolver(__name__)
