"""Fixtures of the Python tests: the repository, the native command, a browser, and the tools that tests need."""

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
    """Return the root folder of the repository."""
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def cohkit_command(root: Path) -> Command:
    """Return a function that runs the native command in the root folder, with its output captured."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).parent / "cohkit"), *map(str, arguments)]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def run_documented_commands(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], int]:
    """Return a function that runs the commands of a document in the current folder and checks their output.

    A line `...` in the documented output stands for any text. The function returns the number of commands.
    """
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


# Flags that disable the sandbox and all network traffic of the browser itself.
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
    """Return a Chromium browser that all tests share."""
    require("chromium")
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 -- Playwright is optional

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=BROWSER_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def browser_messages() -> Callable[[Page, str], list[str]]:
    """Return a function that collects a page's console messages, errors, and requests outside an address."""

    def collect_messages(page: Page, address: str) -> list[str]:
        messages: list[str] = []
        # 60 s, because test machines may be slow.
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
    """Return a function that lists the elements beyond the right edge of the viewport, outside scrollable frames."""

    def find_overflowing(page: Page) -> list[str]:
        elements: list[str] = page.evaluate(
            """() => {
                const scrolls = (element) =>
                    element && (getComputedStyle(element).overflowX !== "visible" || scrolls(element.parentElement));
                const rightEdge = (element) => Math.round(element.getBoundingClientRect().right);
                return [...document.querySelectorAll("body *")]
                    .filter((element) => rightEdge(element) > innerWidth && !scrolls(element.parentElement))
                    .map((element) => `${element.tagName} ${element.className} ends at ${rightEdge(element)}`);
            }"""
        )
        return elements

    return find_overflowing


@pytest.fixture
def follow() -> Callable[[Locator], None]:
    """Return a function that clicks a link within the page and waits until the page shows the link's target."""

    def click_and_wait(link: Locator) -> None:
        link = link.first
        target = link.get_attribute("href")
        link.click()
        link.page.locator(f"main[data-place='{target}']").wait_for(state="attached")

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
    """Register the mark `needs`, and restore the default handling of Ctrl-C."""
    config.addinivalue_line("markers", "needs(*tools): fails where one of these is missing")
    # A background process may ignore Ctrl-C, and the processes that tests start and interrupt would inherit that.
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
