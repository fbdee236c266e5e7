"""Mutants of protocol texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit import types
from cohkit.errors import InputError
from cohkit.native import run_json
from cohkit.protocols import given
from cohkit.results import Records, records

if TYPE_CHECKING:
    import os

    from cohkit._cohkit import Protocol


def mutants(
    protocol: Protocol | str | os.PathLike[str],
    *,
    number: int | None = None,
    first: int | None = None,
    every: int | None = None,
    threads: int | None = None,
) -> Records[types.Mutant]:
    """Change a protocol text in one place at a time, and judge each mutant as `cohkit mutants` does.

    Args:
        protocol: a protocol, the path of a text, or the name of one that ships.
        number: only this mutant, from 0 on.
        first: mutants from this number on; all if not given.
        every: one in so many of them.
        threads: mutants judged at once; as many as there are processors if not given.

    Raises:
        InputError: there is no such mutant.
        TextError: the text is wrong.

    >>> import cohkit
    >>> [mutant] = cohkit.mutants("msi", number=3)
    >>> mutant.kind, mutant.fate
    ('bytes of a message', 'rejected')

    """
    numbers = {"--number": number, "--from": first, "--every": every, "--threads": threads}
    for name, value in numbers.items():
        if value is not None and value < (name in ("--every", "--threads")):
            raise InputError(f"`{name.removeprefix('--')}` is not {value}")
    words = [word for name, value in numbers.items() if value is not None for word in (name, value)]
    found, _ = run_json(["mutants", given(protocol), *words])
    return records(types.Mutant.of, found)
