"""Murphi models."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from cohkit import _cohkit, types
from cohkit.errors import call
from cohkit.looking import looking, whole_numbers
from cohkit.protocols import decoded
from cohkit.results import load

if TYPE_CHECKING:
    from cohkit.looking import Options


def check_model(
    file: str | os.PathLike[str],
    *,
    text: str | None = None,
    dialect: Literal["cmurphi", "rumur"] | None = None,
    deadlock: Literal["stuttering", "stuck", "off"] = "stuttering",
    **options: Unpack[Options],
) -> types.ModelVerdict:
    """Explore every reachable state of a Murphi model, and judge its properties.

    Args:
        file: where the model is; it is named after it.
        text: the model itself, if it is not to be read from there.
        dialect: read it as this checker does, and accept nothing else; what either accepts if not given.
        deadlock: which states are deadlocks: those that no rule leaves for a different one, those in which no rule may
            fire, or none.
        **options: how to look at the states: :class:`cohkit.looking.Options`.

    Raises:
        TextError: the text is wrong; all its errors are listed.
        InputError: an option has no meaning.
        OSError: the file cannot be read.

    >>> import cohkit
    >>> verdict = cohkit.check_model("models/german.m")
    >>> verdict["outcome"], verdict["states"], verdict["symmetric"]
    ('verified', 10470, True)

    """
    name = os.fspath(file)
    text = decoded(name, Path(file).read_bytes()) if text is None else text
    chosen = looking(options)
    verdict = call(
        name,
        lambda: _cohkit.check_model(text, file=name, dialect=dialect, deadlock=deadlock, looking=chosen),
    )
    return types.ModelVerdict.of(whole_numbers(load(verdict)))
