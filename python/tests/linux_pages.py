"""A device on the host that grants pages to the guest by the home of linux/pages.coh, and recalls them.

The home is the table that `cohkit table` constructs: a message without a row is an error, so that the kernel module is
tested against the protocol file. The device behind the home computes with the pages, as applications do with lines.
"""

from __future__ import annotations

import json
import re
import struct
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from linux_guest import GIB, HOST, Device

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = 4096
WORDS = PAGE // 8
# As in linux/include/linux/cohkit_pages.h.
CONTROL = GIB - (2 << 20)
MAGIC, VERSION, SLOTS = 0x73676170, 1, 4096
# Numbers of words of 32 bit in the control structure: the rings, and the counts in them.
TO_DEVICE, TO_KERNEL = 16, 48
HEAD, TAIL = 0, 16
# Pages, as in linux/tests/pages.c.
CALL_PAGES = (0, 1)
WITHHELD_PAGE, RELEASING_PAGE = 8, 9
SHARED_PAGES = range(16, 32)


def message_names(root: Path) -> dict[str, int]:
    """Return the numbers of the messages, by their names in the protocol file."""
    text = (root / "linux/include/linux/cohkit_pages.h").read_text()
    names = re.findall(r"^\tCOHKIT_PAGES_(\w+?)(?: = 1)?,$", text, re.MULTILINE)
    return {"".join(part.capitalize() for part in name.split("_")): number for number, name in enumerate(names, 1)}


@dataclass
class Home:
    """The home agent of one machine: the state of each page, and the events that are stalled."""

    table: dict[str, Any]
    send: Callable[[str, int], None]
    device: PagingDevice
    states: dict[int, str] = field(default_factory=dict)
    stalled: dict[int, deque[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Index the rows."""
        self.rows = {(row["state"], row["event"]): row for row in self.table["rows"]}
        assert all(row["guard"] is None for row in self.table["rows"])
        self.initial = str(self.table["initial"]["home"])

    def state(self, page: int) -> str:
        """Return the state of a page."""
        return self.states.get(page, self.initial)

    def handle(self, page: int, event: str) -> None:
        """Handle an event, and then the stalled events that the new state accepts."""
        if not self.apply(page, event):
            self.stalled.setdefault(page, deque()).append(event)
            return
        waiting = self.stalled.get(page, deque())
        while any(self.take(page, waiting, index) for index in range(len(waiting))):
            pass

    def take(self, page: int, waiting: deque[str], index: int) -> bool:
        """Handle one stalled event; return false if it is still stalled."""
        if index >= len(waiting) or not self.apply(page, waiting[index]):
            return False
        del waiting[index]
        return True

    def apply(self, page: int, event: str) -> bool:
        """Apply the row of an event; return false if it stalls."""
        row = self.rows.get((self.state(page), event))
        assert row, f"page {page}: {event} in state {self.state(page)}"
        if "stall" in row["actions"]:
            return False
        assert "refuse" not in row["actions"], f"page {page}: {event} in state {self.state(page)} is refused"
        self.states[page] = row["next"]
        for action in row["actions"]:
            kind, _, name = action.partition(" ")
            if kind == "send":
                self.send(name, page)
            else:
                self.device.requests.append((kind, name, page))
        return True


class PagingDevice(Device):
    """The device: two pages of calls, one that is withheld, some that are recalled, and others that are granted."""

    def __init__(self, folder: Path, name: str, root: Path, table: dict[str, Any]) -> None:
        """Write the control structure before the guest starts."""
        super().__init__(folder, name)
        struct.pack_into("<4I", self.memory, CONTROL, MAGIC, VERSION, HOST, SLOTS)
        # Views of the counts and slots: their accesses are whole words, unlike those of `struct`, which copy bytes.
        self.counts = memoryview(self.memory)[CONTROL : CONTROL + 4096].cast("I")
        self.slots = memoryview(self.memory)[CONTROL + 4096 : CONTROL + 4096 + 16 * SLOTS].cast("Q")
        self.numbers = message_names(root)
        self.names = {number: name for name, number in self.numbers.items()}
        self.home = Home(table, self.send, self)
        # Actions of the home for the device, which are handled one after the other.
        self.requests: deque[tuple[str, str, int]] = deque()
        self.random = Random(1)  # noqa: S311 -- the same order in each run
        self.log: list[str] = []
        self.side = 0
        self.calls = 0
        self.waiting_call: int | None = None
        self.withheld: list[int] = []
        # Contents of locked pages, and the number of polls until they are unlocked.
        self.locked: dict[int, tuple[bytes, int]] = {}
        self.busy: set[int] = set()
        self.checked_locks = 0

    def close(self) -> None:
        """Close all files."""
        self.counts.release()
        self.slots.release()
        super().close()

    def send(self, name: str, page: int) -> None:
        """Put a message into the ring to the kernel, and interrupt it."""
        tail = self.counts[TO_KERNEL + TAIL]
        assert (tail - self.counts[TO_KERNEL + HEAD]) % (1 << 32) < SLOTS
        self.slots[SLOTS + tail % SLOTS] = self.numbers[name] | page << 8
        self.counts[TO_KERNEL + TAIL] = (tail + 1) % (1 << 32)
        self.interrupt(0)

    def receive(self) -> None:
        """Handle the messages of the kernel."""
        while (head := self.counts[TO_DEVICE + HEAD]) != self.counts[TO_DEVICE + TAIL]:
            slot = self.slots[head % SLOTS]
            self.counts[TO_DEVICE + HEAD] = (head + 1) % (1 << 32)
            name, page = self.names[slot & 0xFF], slot >> 8
            self.log.append(name)
            self.home.handle(page, name)
            self.run()

    def run(self) -> None:
        """Handle the requests of the home."""
        while self.requests:
            kind, name, page = self.requests.popleft()
            match kind, name:
                case "read", "memory":
                    self.read(page)
                case "write", "memory":
                    self.home.handle(page, "memory done")
                case "acknowledge", _:
                    self.complete(page, name)
                case _:
                    raise AssertionError((kind, name, page))

    def read(self, page: int) -> None:
        """Answer a read of the home for the kernel, now or later."""
        if page in CALL_PAGES and page != self.side:
            # The call: take the arguments first.
            self.waiting_call = page
            self.home.handle(self.side, "clean_invalidate")
        elif page == WITHHELD_PAGE:
            self.withheld.append(page)
        else:
            self.home.handle(page, "memory data")
        if page == RELEASING_PAGE:
            for withheld in self.withheld:
                self.home.handle(withheld, "memory data")
            self.withheld.clear()

    def complete(self, page: int, operation: str) -> None:
        """Handle the completion of a local operation."""
        if page in CALL_PAGES:
            assert operation == "clean_invalidate"
            assert self.waiting_call is not None
            arguments = struct.unpack_from(f"<{WORDS}Q", self.memory, PAGE * page)
            results = [(3 * argument + 1) % (1 << 64) for argument in arguments]
            struct.pack_into(f"<{WORDS}Q", self.memory, PAGE * self.waiting_call, *results)
            answered, self.side, self.waiting_call = self.waiting_call, self.waiting_call, None
            self.calls += 1
            self.home.handle(answered, "memory data")
        elif operation.endswith("_lock"):
            self.locked[page] = (self.contents(page), self.random.randrange(3))
        else:
            self.busy.discard(page)

    def contents(self, page: int) -> bytes:
        """Return the bytes of a page."""
        return self.memory[PAGE * page : PAGE * (page + 1)]

    def poll(self) -> None:
        """Recall pages, and check and unlock those that are locked."""
        for page, (contents, polls) in list(self.locked.items()):
            assert self.contents(page) == contents, f"page {page} has changed while it was locked"
            if polls:
                self.locked[page] = (contents, polls - 1)
            else:
                del self.locked[page]
                self.checked_locks += 1
                self.home.handle(page, "unlock")
                self.run()
        page = self.random.choice(SHARED_PAGES)
        if page not in self.busy and self.home.state(page) != self.home.initial:
            self.busy.add(page)
            operation = self.random.choice(["clean", "clean_invalidate"])
            self.home.handle(page, operation + self.random.choice(["", "_lock"]))
            self.run()


def module_rows(root: Path) -> set[tuple[str, str, str, str]]:
    """Return the rows of linux/module/pages_rows.h: state, event, message and next state, in names of the protocol."""
    text = (root / "linux/module/pages_rows.h").read_text()
    rows = re.findall(r"\{ STATE_(\w+), (\w+), (\w+), STATE_(\w+) \}", text)

    def name(constant: str) -> str:
        constant = constant.removeprefix("COHKIT_PAGES_")
        if constant.startswith("ACCESS_"):
            return constant.removeprefix("ACCESS_").lower()
        return "" if constant == "0" else "".join(part.capitalize() for part in constant.split("_"))

    return {(state, name(event), name(message), after) for state, event, message, after in rows}


def protocol_rows(table: dict[str, Any]) -> set[tuple[str, str, str, str]]:
    """Return the rows of a remote's table in the same form; an access that needs no message has none."""
    rows = set()
    for row in table["rows"]:
        sent = [action.removeprefix("send ") for action in row["actions"] if action.startswith("send ")]
        assert len(sent) <= 1
        if row["next"] is not None:
            rows.add((row["state"], row["event"], "".join(sent), row["next"]))
    return rows


def read_table(text: str) -> dict[str, Any]:
    """Return a table that `cohkit table --json` has printed."""
    table: dict[str, Any] = json.loads(text)
    return table
