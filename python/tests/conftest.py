"""Share the repository, and the native command beside this Python."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cohkit.experiments import EXPERIMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Locator, Page

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def root() -> Path:
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def cohkit_command(root: Path) -> Command:
    """Run the native command at the repository's root."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).parent / "cohkit"), *map(str, arguments)]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def run_documented_commands(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], int]:
    """Run the commands of a document in the current folder, compare their output, and return their number."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")

    def run(text: str) -> int:
        blocks = "".join(re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
        documented = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", blocks, re.MULTILINE)
        for line, expected in documented:
            completed = subprocess.run(
                ["bash", "-c", f"exec 2>&1; {line}"], capture_output=True, text=True, check=False
            )
            pattern = ".*".join(re.escape(part) for part in re.split(r"(?m)^\.\.\.\n", expected))
            assert re.fullmatch(pattern, completed.stdout, re.DOTALL), f"{line}:\n{completed.stdout}"
            assert completed.returncode == 0
        return len(documented)

    return run


@pytest.fixture(autouse=True)
def run_in_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make relative paths independent of the folder in which the tests are started."""
    monkeypatch.chdir(root)


# Folder in which `tools/setup_tests` installs packages for Node.js.
NODE_FOLDER = Path(__file__).resolve().parents[2] / ".venv/editors"


@cache
def tools() -> dict[str, dict[str, Any]]:
    """Return the entry of `cohkit doctor` for each tool that tests may need, by name."""
    command = [str(Path(sys.executable).parent / "cohkit"), "doctor", "--json"]
    catalogue_json = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {tool["name"]: tool for tool in json.loads(catalogue_json)["tools"]}


BROWSER_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    require("chromium")
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 -- only tests that have it use it

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=BROWSER_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def browser_messages() -> Callable[[Page, str], list[str]]:
    """Collect a page's console messages, errors, and requests outside an address."""

    def collect_messages(page: Page, address: str) -> list[str]:
        messages: list[str] = []
        # Machines under test are slow.
        page.set_default_timeout(60_000)
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on(
            "request",
            lambda request: None if request.url.startswith((address, "data:")) else messages.append(request.url),
        )
        return messages

    return collect_messages


@pytest.fixture
def overflowing_elements() -> Callable[[Page], list[str]]:
    """List the elements that extend beyond the right edge of the viewport, outside scrollable frames."""

    def find_overflowing(page: Page) -> list[str]:
        elements: list[str] = page.evaluate(
            """() => {
                const scrolls = (one) =>
                    one && (getComputedStyle(one).overflowX !== "visible" || scrolls(one.parentElement));
                const ends = (one) => Math.round(one.getBoundingClientRect().right);
                return [...document.querySelectorAll("body *")]
                    .filter((one) => ends(one) > innerWidth && !scrolls(one.parentElement))
                    .map((one) => `${one.tagName} ${one.className} ends at ${ends(one)}`);
            }"""
        )
        return elements

    return find_overflowing


@pytest.fixture
def follow() -> Callable[[Locator], None]:
    """Click a link within the page, and wait until its target is shown, which happens some time after the click."""

    def click_and_wait(link: Locator) -> None:
        link = link.first
        place = link.get_attribute("href")
        link.click()
        link.page.locator(f"main[data-place='{place}']").wait_for(state="attached")

    return click_and_wait


def require(name: str) -> None:
    """Fail the test if a tool is missing; skip it if `COHKIT_WITHOUT` names the tool."""
    if name in os.environ.get("COHKIT_WITHOUT", "").split(","):
        pytest.skip(f"COHKIT_WITHOUT names {name}")
    tool = tools()[name]
    if not tool["run"]["available"]:
        needed = f"this test needs {tool['description']} ({tool['run']['problem']}), from {tool['packages']}"
        pytest.fail(f"{needed}; `tools/setup_tests` installs it, COHKIT_WITHOUT={name} does without it")
    if name == "node" and not (NODE_FOLDER / "installed").is_file():
        pytest.fail("this test needs what npm installs of editors/vscode; `tools/setup_tests` does it")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*tools): fails where one of these is missing")
    # A background process may ignore Ctrl-C, and processes that tests start inherit this; tests interrupt them.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def require_tools(request: pytest.FixtureRequest) -> None:
    """Require the tools that a test's mark `needs` names, and those of the experiment that parametrizes the test."""
    run_with = getattr(request.node, "callspec", None)
    experiment = EXPERIMENTS.get(run_with.params.get("name")) if run_with else None
    if experiment and experiment.needs:
        require("riscv-gcc")
    for mark in request.node.iter_markers("needs"):
        for name in mark.args:
            require(name)
