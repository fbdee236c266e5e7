"""`cohkit explore`: an interactive page for a protocol, served to browsers on this machine only."""

from __future__ import annotations

import html
import json
import threading
import webbrowser
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from cohkit import _cohkit
from cohkit.errors import Error, InputError, TextError, UnavailableError, call
from cohkit.pages import SCRIPTS, page
from cohkit.pages.assembly import assemble
from cohkit.pages.reading import Part
from cohkit.protocols import load_protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cohkit._cohkit import Protocol

HOST = "127.0.0.1"
# Maximum number of states to visit in the search for a violation; some hundred bytes each.
MAX_STATES = 300_000
# Maximum length of a path. Every browser can send an address of this length.
_MAX_STEPS = 500


class Explorer:
    """A system of a protocol, reloaded when its file changes."""

    def __init__(
        self, protocol: str, *, system: str | None = None, remotes: int | None = None, lines: int | None = None
    ) -> None:
        """Read the protocol, and select a system.

        Raises:
            InputError: the system does not exist.
            FaultError: no home can be constructed for it.
            TextError: the protocol is invalid.
            OSError: the file cannot be read.

        """
        if system is not None and (remotes, lines) != (None, None):
            raise InputError("name a system of the specification, or give `--remotes` and `--lines`, not both")
        self._name, self._system = protocol, system
        self._size = None if remotes is lines is None else (remotes or 1, lines or 1)
        self._lock = threading.Lock()
        self.read()

    def read(self) -> None:
        """Reload the protocol if its text has changed."""
        protocol = load_protocol(self._name)
        with self._lock:
            if getattr(self, "protocol", None) != protocol:
                exploration_type = _cohkit.Exploration
                self._of = call(protocol.file, exploration_type, protocol, system=self._system, size=self._size)
                self.protocol: Protocol = protocol

    def view(self, path: Sequence[int]) -> dict[str, Any]:
        """Return the state at the end of a path: a list of choices, each from those offered before.

        Raises:
            InputError: a choice was not offered.

        >>> from cohkit.explorer import Explorer
        >>> explorer = Explorer("msi", remotes=2)
        >>> [choice["text"] for choice in explorer.view([])["next"]]
        ['cache 0: load', 'cache 0: store', 'cache 1: load', 'cache 1: store']
        >>> explorer.view([0])["in_flight"]
        ['GetS: cache 0 to directory']

        """
        if len(path) > _MAX_STEPS:
            raise InputError(f"a path has at most {_MAX_STEPS} steps")
        view: dict[str, Any] = json.loads(call(self.protocol.file, self._of.view, list(path)))
        return view

    def nearest_violation(self, max_states: int = MAX_STATES) -> dict[str, Any]:
        """Return the path to the nearest violation, visiting at most `max_states` states."""
        result: dict[str, Any] = json.loads(self._of.nearest_violation(max_states))
        return result

    def page(self) -> str:
        """Return the page: tables and text of the protocol, and the available choices."""
        data = assemble([Part("text", self.protocol.file, self.protocol)])
        data["parts"].insert(
            0, {"kind": "explore", "id": "explore", "title": "Step by step", "file": self.protocol.file}
        )
        data["begin"] = "explore"
        return page(f"Cohkit: {self.protocol.name}", data, (*SCRIPTS[:-1], "explore", SCRIPTS[-1]), "'self'")


class _Handler(BaseHTTPRequestHandler):
    """Handles requests of a browser on this machine."""

    explorer: ClassVar[Explorer]
    hosts: ClassVar[set[str]]
    timeout = 30

    def do_GET(self) -> None:
        """Respond with the page, a view, or the path to the nearest violation."""
        # Reject other host names, through which a foreign page could send requests (DNS rebinding).
        if self.headers.get("Host") not in self.hosts:
            self._respond(HTTPStatus.FORBIDDEN, "text/plain", "only browsers on this machine may connect\n")
            return
        address = urlsplit(self.path)
        responses: dict[str, Callable[[], tuple[str, str]]] = {
            "/": self._page,
            "/view": lambda: ("application/json", json.dumps(self.explorer.view(_parse_path(address.query)))),
            "/wrong": lambda: ("application/json", json.dumps(self.explorer.nearest_violation())),
        }
        if address.path not in responses:
            self._respond(HTTPStatus.NOT_FOUND, "text/plain", f"there are {', '.join(responses)}\n")
            return
        try:
            self._respond(HTTPStatus.OK, *responses[address.path]())
        except InputError as error:
            self._respond(HTTPStatus.BAD_REQUEST, "text/plain", f"{error}\n")

    def _page(self) -> tuple[str, str]:
        """Return the page for the current text, or its errors."""
        try:
            self.explorer.read()
        except (Error, OSError) as error:
            message = html.escape(str(error))
            title = "the specification is invalid" if isinstance(error, TextError) else "nothing to explore"
            return "text/html", f"<!doctype html><title>{title}</title><pre>{message}</pre>"
        return "text/html", self.explorer.page()

    def _respond(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- as it is called
        """Suppress the log of requests."""


def _parse_path(query: str) -> list[int]:
    [text] = parse_qs(query, keep_blank_values=True).get("path", [""])[:1]
    words = [word for word in text.split(",") if word]
    # A longer number cannot be a choice.
    if not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):
        raise InputError(f"a path is a list of choice numbers separated by commas, not `{text}`")
    return [int(word) for word in words]


def server(explorer: Explorer, port: int) -> ThreadingHTTPServer:
    """Listen on a local port that other machines cannot reach; 0 selects a free one.

    Raises:
        UnavailableError: the port is in use, or not permitted for this user.

    """

    class Handler(_Handler):
        pass

    Handler.explorer = explorer
    try:
        serving = _Server((HOST, port), Handler)
    except OSError as error:
        raise UnavailableError(
            f"port {port} of {HOST} is not available: {error.strerror}; "
            "choose another with `--port N`, or a free one with `--port 0`"
        ) from error
    Handler.hosts = {f"{name}:{serving.server_port}" for name in (HOST, "localhost")}
    return serving


class _Server(ThreadingHTTPServer):
    """A server that does not wait for open connections, and does not share its port."""

    daemon_threads = True
    allow_reuse_address = True


def serve(explorer: Explorer, port: int, *, browse: bool, say: Callable[[str], object]) -> None:
    """Serve the page until Ctrl-C, which raises `KeyboardInterrupt`."""
    with server(explorer, port) as serving:
        address = f"http://{HOST}:{serving.server_port}/"
        say(f"exploring {explorer.protocol.name} at {address} (Ctrl-C ends it)\n")
        if browse:
            webbrowser.open(address)
        serving.serve_forever(poll_interval=0.1)
