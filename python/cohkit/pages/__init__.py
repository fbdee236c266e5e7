"""`cohkit report`: one self-contained page about a folder of results, for browsers without a network."""

from __future__ import annotations

import html
import json
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohkit.errors import InputError
from cohkit.pages.assembly import assemble
from cohkit.pages.reading import parts

if TYPE_CHECKING:
    import os

# Each script may use those before it.
SCRIPTS = ("elements", "plot", "chart", "diagram", "protocol", "check", "results", "main")


def report(folder: str | os.PathLike[str]) -> str:
    """Return one HTML page that shows the contents of a folder: results of commands, protocols and sweeps.

    The page is self-contained: it needs no network and no other file. Supported files are the output of `cohkit check`,
    `table`, `reproduce`, `sim`, `play` and `litmus` with `--json`. For a protocol file (`.coh`), the tables of both
    agents are shown; a composition has none, and is omitted.

    Raises:
        InputError: a file is not supported, or the folder contains none.
        TextError: a protocol is invalid.
        OSError: a file or folder cannot be read.

    >>> import cohkit, json, tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     verdicts = cohkit.check("msi", remotes=2)
    ...     written = (Path(folder) / "msi.json").write_text(json.dumps(verdicts))
    ...     page = cohkit.report(folder)
    >>> page[:15]
    '<!doctype html>'

    """
    folder = Path(folder)
    if not folder.is_dir():
        problem = "a file, not a folder" if folder.exists() else "no such folder"
        raise InputError(f"{folder}: {problem}; a report is of a folder with results")
    return page(f"Cohkit report: {folder.resolve().name}", assemble(parts(folder)))


def page(title: str, data: dict[str, Any], scripts: tuple[str, ...] = SCRIPTS, connect: str = "'none'") -> str:
    """Return the page that shows this data; its scripts may connect to `connect`."""
    files = resources.files(__package__) / "browser"
    text = {name: (files / name).read_text(encoding="utf-8") for name in ("page.html", "style.css")}
    script = "\n".join((files / f"{name}.js").read_text(encoding="utf-8") for name in scripts)
    # Only `<` could end the script element.
    encoded = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return text["page.html"].format(
        title=html.escape(title), style=text["style.css"], data=encoded, script=script, connect=connect
    )
