"""Murphi models."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from cohkit import _cohkit, types
from cohkit.errors import call
from cohkit.protocols import decode
from cohkit.results import load
from cohkit.search_options import native_search_options, whole_numbers

if TYPE_CHECKING:
    from cohkit.search_options import SearchOptions


def check_model(
    file: str | os.PathLike[str],
    *,
    text: str | None = None,
    dialect: Literal["cmurphi", "rumur"] | None = None,
    deadlock: Literal["stuttering", "stuck", "off"] = "stuttering",
    **options: Unpack[SearchOptions],
) -> types.ModelVerdict:
    """Explore every reachable state of a Murphi model, and check its properties.

    Args:
        file: path of the model, which also names it in the result.
        text: contents of the model, if they are not to be read from the file.
        dialect: dialect to accept exclusively; all dialects if not given.
        deadlock: definition of deadlock: no rule leads to a different state, no rule is enabled, or no deadlocks.
        **options: search options: :class:`cohkit.search_options.SearchOptions`.

    Raises:
        TextError: the model is invalid; all its errors are listed.
        InputError: an option does not apply.
        OSError: the file cannot be read.

    >>> import cohkit
    >>> verdict = cohkit.check_model("models/german.m")
    >>> verdict["outcome"], verdict["states"], verdict["symmetric"]
    ('verified', 10470, True)

    """
    name = os.fspath(file)
    text = decode(name, Path(file).read_bytes()) if text is None else text
    search_options = native_search_options(options)
    verdict = call(
        name,
        lambda: _cohkit.check_model(text, file=name, dialect=dialect, deadlock=deadlock, search_options=search_options),
    )
    return types.ModelVerdict.of(whole_numbers(load(verdict)))
