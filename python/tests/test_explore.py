"""`cohkit explore`: a protocol in the browser, step by step."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import cohkit
from cohkit.explorer import Explorer, server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Command
    from playwright.sync_api import Browser, Locator, Page

# Violation of the faulty protocol, as the explorer states it.
FAULT = "single writer: another agent still has read or write permission"


@pytest.fixture
def faulty_protocol(root: Path, tmp_path: Path) -> Path:
    """Return a protocol file whose caches keep shared copies after an invalidation."""
    text = (root / "protocols/msi.coh").read_text()
    changed = re.sub(r"(?m)^(\s*S .*\| Inv .*)\| I$", r"\1| S", text)
    assert changed != text
    file = tmp_path / "msi.coh"
    file.write_text(changed)
    return file


# Number of tables that exceed the available width and scroll within their frames.
SCROLLED = "[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth + 1).length"


@contextmanager
def serve_explorer(explorer: Explorer) -> Iterator[str]:
    """Serve an explorer on a free port, and yield its address."""
    with server(explorer, 0) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{serving.server_port}/"
        finally:
            # A running server would prevent a failed test from ending.
            serving.shutdown()
            thread.join()


@pytest.fixture
def address(faulty_protocol: Path) -> Iterator[str]:
    """Yield the address of an explorer of the faulty protocol with two caches."""
    with serve_explorer(Explorer(str(faulty_protocol), remotes=2)) as explorer_address:
        yield explorer_address


def fetch_json(address: str, host: str | None = None) -> Any:
    """Return the server's answer; `host` replaces the name of the host in the request."""
    request = urllib.request.Request(address, headers={} if host is None else {"Host": host})  # noqa: S310 -- our own
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        return json.load(answer)


@pytest.mark.needs("chromium")
def test_explorer_steps_undo_and_jump_to_violation(
    browser: Browser, browser_messages: Callable[..., list[str]], address: str, follow: Callable[[Locator], None]
) -> None:
    """Take steps, take them back, jump to the violation, and follow addresses of states."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    messages = browser_messages(page, address)
    page.goto(address)
    choices = page.locator(".choices button")
    choices.get_by_text("cache 1: store", exact=True).click()
    page.wait_for_selector("text=GetM: cache 1 to directory")
    assert page.locator(".now tr").all_inner_texts()[1].split("\t")[1] == "IM_AD"
    choices.get_by_text("GetM of cache 1 reaches the home", exact=True).click()
    page.wait_for_selector("text=M owner=cache 1")
    assert [step.get_attribute("data-step") for step in page.locator(".drawn g").all()] == list("012345")
    page.get_by_role("button", name="Undo").click()
    page.wait_for_selector("text=GetM: cache 1 to directory")
    page.keyboard.press("Backspace")
    page.wait_for_selector("text=Nothing yet.")
    # One click follows the shortest path, which ends in a state without further steps.
    page.get_by_role("button", name="Jump to the nearest violation").click()
    page.wait_for_selector(f"text={FAULT}")
    assert choices.count() == 0
    page.get_by_role("button", name="to the start").click()
    assert page.inner_text(".player-frame .said") == "At the start."
    # The preceding state has its own address.
    page.get_by_text("The path here: 8 steps").click()
    page.locator(".way a").nth(6).click()
    page.wait_for_selector(".choices button.violated")
    assert FAULT in page.inner_text(".choices button.violated")
    page.reload()
    page.wait_for_selector(".choices button.violated")
    # Impossible and malformed paths are reported.
    page.goto(f"{address}#/explore/99")
    assert "step 0 of this path is choice 99" in page.inner_text("main [role=alert]")
    messages[:] = [words for words in messages if "400 (Bad Request)" not in words]
    # The page also contains the tables and the text of the protocol.
    follow(page.locator("nav a:text-is('msi')"))
    assert page.locator("table.rows tbody tr").count() > 20
    assert messages == []


@pytest.mark.needs("chromium")
def test_explorer_works_on_a_phone(browser: Browser, browser_messages: Callable[..., list[str]], address: str) -> None:
    page = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme="dark", has_touch=True).new_page()
    messages = browser_messages(page, address)
    page.goto(address)
    page.locator(".choices button").first.tap()
    page.wait_for_selector(".drawn g.now")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert messages == []


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [390, 1400, 2560])
def test_explorer_fits_the_viewport(
    browser: Browser,
    browser_messages: Callable[..., list[str]],
    overflowing_elements: Callable[[Page], list[str]],
    width: int,
) -> None:
    """Regression: the state table of ECI ended at 1433 of 1400 pixels, and the agents' states at 401 of 390."""
    explorer = Explorer("eci")
    way: list[int] = []
    # During a request, the home's state has three words, and the lock has a holder.
    while not (view := explorer.view(way))["lines"][0]["lock"]:
        way.append(len(way) % len(view["next"]) if len(way) < 40 else 0)
    with serve_explorer(explorer) as address:
        page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
        messages = browser_messages(page, address)
        for place in (f"explore/{','.join(map(str, way))}", "protocol-0/table-0", "protocol-0/table-1"):
            page.goto(f"{address}#/{place}")
            page.locator("main table").first.wait_for()
            assert overflowing_elements(page) == [], place
            assert width < 1400 or page.evaluate(SCROLLED) == 0, place
        assert messages == []


def test_views_agree_with_the_checker(faulty_protocol: Path) -> None:
    """The shortest path to a violation is as long as the checker's, and a correct protocol has no violation."""
    explorer = Explorer(str(faulty_protocol), remotes=2)
    [verdict] = cohkit.check(cohkit.read(faulty_protocol), remotes=2)
    example = verdict["counterexample"]
    assert example is not None
    assert example["trace"] is not None
    violation = explorer.nearest_violation()
    assert len(violation["path"]) == len(example["trace"]["steps"])
    assert violation["what"] == FAULT == f"{example['name']}: {example['message']}"
    assert explorer.view(violation["path"])["violation"] == FAULT
    [sound] = cohkit.check("msi", remotes=2)
    result = Explorer("msi", remotes=2).nearest_violation()
    # With two caches, nearly all states occur in symmetric pairs, which the checker counts once.
    assert result["path"] is None
    assert result["all"]
    assert sound["states"] is not None
    assert sound["states"] < result["explored_states"] <= 2 * sound["states"]


@pytest.mark.parametrize("name", cohkit.shipped_names())
def test_every_shipped_text_can_be_explored(name: str) -> None:
    explorer = Explorer(name)
    way: list[int] = []
    for step in range(12):
        view = explorer.view(way)
        assert view["violation"] is None
        assert all(choice["wrong"] is None for choice in view["next"]), view["next"]
        way.append((5 * step + 1) % len(view["next"]))
    assert len(explorer.view(way)["taken"]) == 12
    # The sequence of the view is valid input for a chart.
    assert cohkit.chart_text(explorer.view(way)["sequence"])


def test_server_rejects_other_hosts_and_unknown_paths(address: str) -> None:
    assert fetch_json(f"{address}view?path=")["quiescent"]
    for path, host, code in [
        ("view?path=", "evil.example", 403),
        ("", "evil.example", 403),
        ("../../etc/passwd", None, 404),
        ("view?path=x", None, 400),
        ("view?path=" + "9" * 5000, None, 400),
        ("view?path=" + ",".join(["0"] * 501), None, 400),
        ("view?path=-1", None, 400),
    ]:
        with pytest.raises(urllib.error.HTTPError) as error_info:
            fetch_json(f"{address}{path}", host)
        assert error_info.value.code == code, path
        error_info.value.close()


def test_changed_protocol_file_is_reloaded(address: str, faulty_protocol: Path, root: Path) -> None:
    assert fetch_json(f"{address}wrong")["path"]

    def page() -> str:
        with urllib.request.urlopen(address) as answer:  # noqa: S310 -- our own
            return str(answer.read().decode())

    faulty_protocol.write_text("protocol p { line 64; channels { up } }")
    assert "<pre>" in page()
    shutil.copy(root / "protocols/msi.coh", faulty_protocol)
    assert page().startswith("<!doctype html>")
    assert fetch_json(f"{address}wrong")["all"]


def test_help_example_serves_until_ctrl_c(root: Path, cohkit_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of the help serves the explorer; a second one on the same port fails, and Ctrl-C frees the port."""
    monkeypatch.setenv("COLUMNS", "80")
    help_lines = cohkit_command("explore", "--help").stdout.splitlines()
    assert [line for line in help_lines if len(line) > 80] == []
    example = help_lines[help_lines.index("Example:") + 1].removeprefix("  $ cohkit explore ")
    command: list[str | Path] = [Path(sys.executable).parent / "cohkit", "explore", *example.split(), "--port"]
    with subprocess.Popen([*command, "0"], cwd=root, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        first_line = running.stdout.readline()
        port = re.fullmatch(r"exploring msi at http://127\.0\.0\.1:(\d+)/ \(Ctrl-C ends it\)\n", first_line)
        assert port is not None
        assert fetch_json(f"http://127.0.0.1:{port[1]}/view?path=0")["taken"] == ["cache 0: load"]
        completed = subprocess.run([*command, port[1]], cwd=root, capture_output=True, text=True, check=False)
        assert completed.returncode == 4
        assert f"port {port[1]} of 127.0.0.1 is not available: " in completed.stderr
        running.send_signal(signal.SIGINT)
        assert running.wait() == 130
    # It no longer listens; closed connections may still occupy the port for a while.
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", int(port[1])))


@pytest.mark.parametrize(
    ("words", "expected_message"),
    [
        (("msi", "--system", "nowhere"), "no system is named `nowhere`"),
        (("msi", "--system", "three_caches", "--remotes", 2), "not both"),
        (("nowhere.coh",), "no such file"),
        (("msi", "--remotes", 9), "`--remotes` is at most 8"),
        (("msi", "--port", 65536), "`--port` is at most 65535"),
    ],
)
def test_unsupported_explore_requests_are_rejected(
    cohkit_command: Command, words: tuple[object, ...], expected_message: str
) -> None:
    completed = cohkit_command("explore", *words)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert expected_message in completed.stderr
