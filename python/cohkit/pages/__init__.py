"""`cohkit report`: one page of a folder with results, to look through in a browser without a network."""

from __future__ import annotations

import html
import json
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohkit.errors import InputError
from cohkit.pages.assembly import assembled
from cohkit.pages.reading import parts

if TYPE_CHECKING:
    import os

# In this order each script knows those before it.
SCRIPTS = ("elements", "plot", "chart", "diagram", "protocol", "check", "results", "main")


def report(folder: str | os.PathLike[str]) -> str:
    """Give one page of HTML that shows what a folder holds: results of commands, protocol texts and sweeps.

    The page needs nothing else: no network, no other file. Files are what `cohkit check`, `table`, `reproduce`, `sim`,
    `play` and `litmus` print with `--json`; of a protocol text (`.coh`) the tables of both agents are shown;
    one that composes others has none, and is left out.

    Raises:
        InputError: a file is none of these, or there is none.
        TextError: a protocol text is wrong.
        OSError: something cannot be read.

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
        there = "a file, not a folder" if folder.exists() else "no such folder"
        raise InputError(f"{folder}: {there}; a report is of a folder with results")
    return page(f"Cohkit report: {folder.resolve().name}", assembled(parts(folder)))


def page(title: str, data: dict[str, Any], scripts: tuple[str, ...] = SCRIPTS, connect: str = "'none'") -> str:
    """Give the page that shows this data; it may ask `connect` for more."""
    files = resources.files(__package__) / "browser"
    text = {name: (files / name).read_text(encoding="utf-8") for name in ("page.html", "style.css")}
    script = "\n".join((files / f"{name}.js").read_text(encoding="utf-8") for name in scripts)
    # In a script element only this could end it.
    told = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return text["page.html"].format(
        title=html.escape(title), style=text["style.css"], data=told, script=script, connect=connect
    )
