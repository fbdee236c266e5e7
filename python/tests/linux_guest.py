"""A Linux guest under QEMU with a device: its memory is shared with this process, which is also the other peer.

`python linux_guest.py COMMAND` runs a command in the guest that `tools/build_linux` has built, and prints its output.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

GIB = 1 << 30
VECTORS = 2
# Numbers of the peers. `HOST_PEER` in linux/tests/device.c is the same number.
HOST, GUEST = 0, 1
# Page of the shared memory for requests of the tests. `HOST_PAGE` in linux/tests/test.h is the same offset.
HOST_PAGE = 64 << 20
REQUEST = HOST_PAGE + 64
# Longest time between two looks at the memory, in seconds.
POLL = 0.005
# Longest time that a guest may take, in seconds: far more than it needs on a busy machine.
TIMEOUT = 900


class Device:
    """Server of ivshmem: shared memory, and an eventfd for each peer and vector. It answers each doorbell."""

    def __init__(self, folder: Path, name: str) -> None:
        """Listen at `folder`/`name` for one guest."""
        self.path = folder / name
        self.memory_fd = os.memfd_create("cohkit")
        os.truncate(self.memory_fd, GIB)
        self.memory = mmap.mmap(self.memory_fd, GIB)
        self.events = {peer: [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(VECTORS)] for peer in (HOST, GUEST)}
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(1)
        self.guest: socket.socket | None = None

    def welcome(self) -> None:
        """Accept the guest and send it the memory and all eventfds."""
        self.guest, _ = self.listener.accept()
        # The version of the protocol, the number of the peer, and -1 with the memory.
        self.guest.sendall(struct.pack("<q", 0))
        self.guest.sendall(struct.pack("<q", GUEST))
        socket.send_fds(self.guest, [struct.pack("<q", -1)], [self.memory_fd])
        for peer, events in self.events.items():
            for event in events:
                socket.send_fds(self.guest, [struct.pack("<q", peer)], [event])

    def interrupt(self, vector: int) -> None:
        """Interrupt the guest."""
        os.eventfd_write(self.events[GUEST][vector], 1)

    def receive(self) -> None:
        """Handle the doorbell of the guest."""
        self.interrupt(0)

    def poll(self) -> None:
        """Do what the device does by itself."""

    def words(self, offset: int, count: int) -> tuple[int, ...]:
        """Return words of 64 bit of the memory."""
        return struct.unpack_from(f"<{count}Q", self.memory, offset)

    def close(self) -> None:
        """Close all files."""
        self.memory.close()
        for file in (self.memory_fd, *(event for events in self.events.values() for event in events)):
            os.close(file)
        for connection in (self.listener, self.guest):
            if connection:
                connection.close()


@dataclass
class Guest:
    """A guest that runs one command in `/programs` and powers off."""

    root: Path
    folder: Path
    command: str
    # Creates a second device in a folder, if there is one.
    second: Callable[[Path], Device] | None = None
    devices: list[Device] = field(init=False)
    emulator: subprocess.Popen[bytes] = field(init=False)
    # First entries of the guest's page tables from each address on that `host_sees_huge_entries` has sent.
    addresses: list[int] = field(default_factory=list)
    page_tables: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    error: BaseException | None = None

    def __enter__(self) -> Self:
        """Start the emulator and the device."""
        self.devices = [Device(self.folder, "device")]
        if self.second:
            self.devices.append(self.second(self.folder))
        # Words of 32 bit that the guest's test `memory_is_shared_with_the_host` expects.
        struct.pack_into("<I", self.devices[0].memory, HOST_PAGE, 0xC0DE0001)
        packages, built = self.root / ".venv/linux", self.root / "target/linux"
        arguments = [
            *("-machine", "q35,accel=tcg", "-cpu", "max", "-smp", "2", "-m", "256M"),
            *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            *("-kernel", str(packages / "kernel"), "-initrd", str(built / "initramfs.cpio")),
            *("-append", f'console=ttyS0 panic=-1 oops=panic no_timer_check run="{self.command}"'),
            *("-serial", f"file:{self.folder}/console", "-serial", f"file:{self.folder}/results"),
            *("-qmp", f"unix:{self.folder}/monitor,server=on,wait=off"),
        ]
        for device in self.devices:
            name = device.path.name
            arguments += ["-chardev", f"socket,id={name},path={device.path}"]
            arguments += ["-device", f"ivshmem-doorbell,chardev={name},vectors={VECTORS}"]
        self.emulator = subprocess.Popen(["qemu-system-x86_64", *arguments])
        for device in self.devices:
            device.welcome()
        self.server = threading.Thread(target=self.serve)
        self.server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the emulator."""
        self.emulator.kill()
        self.emulator.wait()
        self.server.join()
        for device in self.devices:
            device.close()

    def serve(self) -> None:
        """Answer the guest's tests until the emulator ends."""
        try:
            with selectors.DefaultSelector() as selector:
                for device in self.devices:
                    selector.register(device.events[HOST][0], selectors.EVENT_READ, device)
                while self.emulator.poll() is None:
                    for key, _ in selector.select(timeout=POLL):
                        os.eventfd_read(key.fd)
                        key.data.receive()
                    for device in self.devices:
                        device.poll()
                    self.answer_memory()
        except BaseException as error:  # noqa: BLE001 -- raised again in the test
            self.error = error
            self.emulator.kill()

    def answer_memory(self) -> None:
        """Answer requests that the guest has stored in the shared memory."""
        memory = self.devices[0].memory
        if struct.unpack_from("<I", memory, HOST_PAGE + 4) == (0xC0DE0002,):
            struct.pack_into("<I", memory, HOST_PAGE + 8, 0xC0DE0003)
        request, *addresses = self.devices[0].words(REQUEST, 4)
        if request == 1:
            tables = self.read_page_tables()
            self.page_tables = {
                number: [entry for entry in tables if entry[0] >= address][:3]
                for number, address in enumerate(addresses)
            }
            self.addresses = addresses
            struct.pack_into("<Q", memory, REQUEST, 2)

    def read_page_tables(self) -> list[tuple[int, str]]:
        """Return address and flags of each entry in the page tables of the guest's first processor."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.folder / "monitor"))
            stream = connection.makefile("rw")
            stream.readline()
            replies = []
            for command in (
                {"execute": "qmp_capabilities"},
                {
                    "execute": "human-monitor-command",
                    "arguments": {"command-line": "info tlb", "cpu-index": 0},
                },
            ):
                stream.write(json.dumps(command) + "\n")
                stream.flush()
                replies.append(json.loads(stream.readline()))
        entries = re.findall(r"^([0-9a-f]{16}): [0-9a-f]+ (\S+)", replies[-1]["return"], re.MULTILINE)
        return [(int(address, 16), flags) for address, flags in entries]

    def finish(self) -> tuple[str, str]:
        """Wait for the end; return the results and the kernel's log."""
        begin = time.monotonic()
        while self.emulator.poll() is None and time.monotonic() < begin + TIMEOUT:
            time.sleep(0.02)
        texts = [(self.folder / name).read_text(errors="replace") for name in ("results", "console")]
        if self.error:
            raise self.error
        assert self.emulator.poll() == 0, f"the guest has not ended: {texts[0]}\n{texts[1][-4000:]}"
        return texts[0].replace("\r", ""), texts[1].replace("\r", "")


def main() -> None:
    """Run the command of the arguments in a guest; exit with 1 if it fails."""
    root = Path(__file__).resolve().parents[2]
    with tempfile.TemporaryDirectory() as folder, Guest(root, Path(folder), " ".join(sys.argv[1:])) as guest:
        results, _ = guest.finish()
    sys.stdout.write(results)
    sys.exit(not results.endswith("exit 0\n"))


if __name__ == "__main__":
    main()
