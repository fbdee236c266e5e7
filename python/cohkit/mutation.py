"""Mutants of protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit import types
from cohkit.errors import InputError
from cohkit.native import run_json
from cohkit.protocols import load_protocol
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
    """Change a protocol in one place at a time, and check each mutant like `cohkit mutants`.

    Args:
        protocol: a protocol, the path of its file, or the name of a shipped one.
        number: only this mutant, counted from 0.
        first: first mutant; all mutants if not given.
        every: sampling interval: every n-th mutant.
        threads: mutants checked in parallel; the number of processors if not given.

    Raises:
        InputError: the mutant does not exist.
        TextError: the protocol is invalid.

    >>> import cohkit
    >>> [mutant] = cohkit.mutants("msi", number=3)
    >>> mutant.kind, mutant.verdict
    ('bytes of a message', 'rejected')

    """
    flags = {"number": "--index", "first": "--first", "every": "--stride", "threads": "--threads"}
    options = {"number": number, "first": first, "every": every, "threads": threads}
    for name, value in options.items():
        if value is not None and value < (name in ("every", "threads")):
            raise InputError(f"`{name}` is not {value}")
    words = [word for name, value in options.items() if value is not None for word in (flags[name], value)]
    results, _ = run_json(["mutants", load_protocol(protocol), *words])
    return records(types.Mutant.of, results)
