"""The kernel module in a guest under QEMU: its tests, a fuzzer, the page tables, and the commands of docs/linux.md."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from linux_guest import GIB, Guest
from linux_pages import PagingDevice, message_names, module_rows, protocol_rows, read_table

if TYPE_CHECKING:
    from conftest import Command

MIB = 1 << 20
# Random calls of the fuzzer on each device; the second one grants pages. `tools/soak` makes 1,000,000 of them.
FUZZ_SEED = 1
FUZZ_CALLS = {"/dev/cohkit0": 20_000, "/dev/cohkit1": 3_000}
# The kernel's own lines at the load of any module outside of its tree.
EXPECTED_LOG = [
    "cohkit: loading out-of-tree module taints kernel.",
    "cohkit: module verification failed: signature and/or required key missing - tainting kernel",
    "ACPI: PM: Preparing to enter system sleep state S5",
    "reboot: Power down",
]
# Lines about the time that the emulator takes on a busy machine.
DELAYS = re.compile(r"hrtimer: interrupt took|clocksource: |perf: interrupt took too long|sched: RT throttling")


def require_linux(root: Path) -> None:
    """Fail if the emulator or the packages of the guest are missing; skip if `COHKIT_WITHOUT` names `linux`."""
    if "linux" in os.environ.get("COHKIT_WITHOUT", "").split(","):
        pytest.skip("COHKIT_WITHOUT names linux")
    missing = [] if shutil.which("qemu-system-x86_64") else ["the Debian package `qemu-system-x86`"]
    if not (root / ".venv/linux/prepared").is_file():
        missing.append("a kernel with its headers and busybox, which `tools/setup_linux` unpacks")
    if missing:
        needed = f"this test needs {' and '.join(missing)}"
        pytest.fail(f"{needed}; `tools/setup_tests` installs all, COHKIT_WITHOUT=linux does without them")


def build(root: Path, folder: Path | str, *options: str) -> str:
    """Build the module and the guest; return the warnings."""
    command = [str(root / "tools/build_linux"), str(folder), *options]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout + completed.stderr


def documented_commands(root: Path) -> list[tuple[str, str]]:
    """Return the commands that docs/linux.md runs in the guest, and their output."""
    text = (root / "docs/linux.md").read_text()
    blocks = "".join(re.findall(r"^```console guest\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    return re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", blocks, re.MULTILINE)


@dataclass
class Session:
    """Output of a guest that has run everything."""

    results: str
    log: str
    page_tables: dict[int, list[tuple[int, str]]]
    addresses: list[int]
    paging: PagingDevice


@pytest.fixture(scope="module")
def session(root: Path, cohkit_command: Command, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """Build and boot one guest for all tests."""
    require_linux(root)
    table = read_table(cohkit_command("table", "linux/pages.coh", "--agent", "home", "--json").stdout)

    def paging(folder: Path) -> PagingDevice:
        return PagingDevice(folder, "pages", root, table)

    assert build(root, "target/linux") == ""
    shown = "; ".join(f"echo '$ {command}'; {command}" for command, _ in documented_commands(root))
    fuzzers = "; ".join(f"./guest-tests fuzz {FUZZ_SEED} {calls} {path}" for path, calls in FUZZ_CALLS.items())
    command = f"./guest-tests run; {fuzzers}; {shown}"
    with Guest(root, tmp_path_factory.mktemp("guest"), command, paging) as guest:
        results, console = guest.finish()
        device = guest.devices[1]
    assert isinstance(device, PagingDevice)
    log = console.partition("Run /init as init process\n")[2]
    return Session(results, log, guest.page_tables, guest.addresses, device)


def test_all_tests_of_the_guest_pass(root: Path, session: Session) -> None:
    program = root / "target/linux/guest/programs/guest-tests"
    names = subprocess.run([program, "list"], capture_output=True, text=True, check=True).stdout.split()
    assert len(names) == len(set(names)) > 30
    expected = [f"ok {name} (status 0)" for name in names]
    assert session.results.splitlines()[: len(names)] == expected, session.results


def test_random_calls_of_a_user_map_nothing_that_is_not_granted(session: Session) -> None:
    for path, calls in FUZZ_CALLS.items():
        assert f"ok fuzz ({path}, seed {FUZZ_SEED}, {calls} calls)\n" in session.results, session.results


def test_page_tables_have_huge_entries(session: Session) -> None:
    """QEMU prints the page tables of `host_sees_huge_entries`; the flag P marks an entry that is no table."""
    gib, mibs, pages = session.addresses
    first, after = session.page_tables[0][:2]
    assert first[0] == gib
    assert first[1][2] == "P"
    assert after[0] >= gib + GIB
    entries = session.page_tables[1]
    assert [address for address, _ in entries[:2]] == [mibs, mibs + 2 * MIB]
    assert [flags[2] for _, flags in entries[:2]] == ["P", "P"]
    assert entries[2][0] >= mibs + 4 * MIB
    entries = session.page_tables[2]
    assert [address for address, _ in entries[:2]] == [pages, pages + 4096]
    assert [flags[2] for _, flags in entries[:2]] == ["-", "-"]


def test_kernel_reports_nothing(session: Session) -> None:
    lines = [re.sub(r"^\[ *[\d.]+\] ", "", line) for line in session.log.splitlines() if line]
    assert [line for line in lines if not DELAYS.match(line)] == EXPECTED_LOG


def test_module_unloads(session: Session) -> None:
    assert session.results.endswith("exit 0\n")


def test_documented_commands_print_the_documented_output(root: Path, session: Session) -> None:
    commands = documented_commands(root)
    assert commands
    shown = "".join(f"$ {command}\n{output}" for command, output in commands)
    printed = session.results[session.results.index("$ ") :].removesuffix("exit 0\n")
    pattern = re.sub(r"(\d+)(?=\\ (?:us|ns))", r"\\d+", re.escape(shown))
    assert re.fullmatch(pattern, printed), printed


def test_sparse_has_no_warnings(root: Path, tmp_path: Path) -> None:
    """Sparse accepts the module, and notices an access of user memory without its function."""
    require_linux(root)
    assert build(root, tmp_path, "C=2") == ""
    source = tmp_path / "module/file.c"
    text = source.read_text()
    faulty = text.replace("copy_from_user(&grant, user,", "!memcpy(&grant, user,")
    assert faulty != text
    source.write_text(faulty)
    assert "different address spaces" in build(root, tmp_path, "C=1")


def test_page_protocol_is_verified(cohkit_command: Command) -> None:
    """Two machines that map a page are coherent, and so is every number of them."""
    completed = cohkit_command("check", "--any-number", "linux/pages.coh")
    assert completed.returncode == 0, completed.stdout
    for system in ("one_machine", "two_machines", "any_number"):
        assert f"pages {system}: verified" in completed.stdout


def test_kernel_has_the_rows_and_messages_of_the_page_protocol(root: Path, cohkit_command: Command) -> None:
    table = read_table(cohkit_command("table", "linux/pages.coh", "--agent", "remote", "--json").stdout)
    assert module_rows(root) == protocol_rows(table)
    text = (root / "linux/pages.coh").read_text()
    messages = re.findall(r"^  (?:fault|release|answer|recall|grant): +(.*)$", text, re.MULTILINE)
    names = re.findall(r"\b[A-Z]\w+", " ".join(messages))
    assert list(message_names(root)) == names


def test_device_and_kernel_keep_the_page_protocol(session: Session) -> None:
    """Each message had a row, all kinds occurred, and the kernel has given everything back."""
    paging = session.paging
    # 52 of the tests in the guest, and 20 of the example in the documentation.
    assert paging.calls == 72
    assert paging.checked_locks > 10
    assert set(paging.log) >= {"ReadFault", "WriteFault", "ReleaseRead", "ReleaseWrite"}
    assert set(paging.log) >= {"Protected", "UnmappedWrite", "UnmappedRead"}
    assert {page: state for page, state in paging.home.states.items() if state != paging.home.initial} == {}
    assert not any(paging.home.stalled.values())
