"""Search options shared by the functions that return verdicts on systems and models."""

from __future__ import annotations

import os
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from cohkit.errors import InputError, suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cohkit._cohkit import NativeSearchOptions


class SearchOptions(TypedDict, total=False):
    """Options of :func:`cohkit.check` and :func:`cohkit.check_model`.

    Attributes:
        symmetry: explore one representative of each set of states that differ only in the names of caching agents or
            scalarset values; if false, explore all states. `True` by default.
        hash_compaction: store a 64-bit signature of each expanded state instead of the state. The verdict then has an
            `omission_probability`, and properties that need all states are not checked.
        threads: number of search threads, at most the number of processors, which is the default. The verdicts do not
            depend on it.
        max_states: state limit.
        max_depth: limit of the number of steps from an initial state; with `simulate_steps`, of the steps of one walk,
            1000 by default.
        max_memory_bytes: memory limit; three quarters of the free memory by default.
        coverage: count how often rules fired and rows were taken.
        simulate_steps: perform random walks of this many steps in total instead of a search.
        seed: seed of random walks, 0 by default.
        checkpoint: folder for checkpoints, written periodically and when a limit is reached.
        resume: folder with checkpoints to continue from, and to write to.
        checkpoint_every_seconds: seconds between checkpoints, 30 by default.
        disk: keep most states in the folder of `checkpoint` or `resume` instead of in memory. The verdicts do not
            depend on it, except for progress, which is judged in memory.

    """

    symmetry: bool
    hash_compaction: bool
    threads: int | None
    max_states: int | None
    max_depth: int | None
    max_memory_bytes: int | None
    coverage: bool
    simulate_steps: int | None
    seed: int | None
    checkpoint: str | os.PathLike[str] | None
    resume: str | os.PathLike[str] | None
    checkpoint_every_seconds: int
    disk: bool


class CheckOptions(SearchOptions, total=False):
    """Options of :func:`cohkit.check`.

    Attributes:
        any_number: add a verdict for one line and every number of caching agents.
        fairness: add a verdict on transactions that never end, under this assumption.

    """

    any_number: bool
    fairness: Literal["weak", "strong"] | None


def native_search_options(options: SearchOptions, *, caller_options: Sequence[str] = ()) -> NativeSearchOptions:
    """Validate options before a long search, and convert them for the compiled module.

    `caller_options` are names of options that the caller has already consumed.
    """
    _validate(options, caller_options)
    steps, checkpoint, resume = options.get("simulate_steps"), options.get("checkpoint"), options.get("resume")
    folder = resume if checkpoint is None else checkpoint
    every = options.get("checkpoint_every_seconds", 30)
    return {
        "symmetry": options.get("symmetry", True),
        "hash_compaction": options.get("hash_compaction", False),
        "threads": options.get("threads"),
        "max_states": options.get("max_states"),
        "max_depth": options.get("max_depth"),
        "max_memory": options.get("max_memory_bytes"),
        "coverage": options.get("coverage", False),
        "simulate": None if steps is None else (steps, options.get("seed") or 0),
        "checkpoint": None if folder is None else (os.fspath(folder), resume is not None, every),
        "disk": options.get("disk", False),
    }


def is_whole(value: object) -> bool:
    """Return whether the value is an integer and not a Boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _validate(options: SearchOptions, caller_options: Sequence[str]) -> None:
    """Reject unknown options, values that are not positive, and options that exclude each other."""
    for name in options:
        if name not in SearchOptions.__annotations__:
            known_names = [*caller_options, *SearchOptions.__annotations__]
            known = ", ".join(f"`{option}`" for option in known_names)
            raise InputError(f"there is no option `{name}`; {suggestion(name, known_names)}the options are {known}")
    positive = {
        "threads": options.get("threads"),
        "max_states": options.get("max_states"),
        "max_depth": options.get("max_depth"),
        "max_memory_bytes": options.get("max_memory_bytes"),
        "simulate_steps": options.get("simulate_steps"),
        "checkpoint_every_seconds": options.get("checkpoint_every_seconds", 30),
    }
    for name, value in positive.items():
        if value is not None and not (is_whole(value) and 0 < value < 2**63):
            raise InputError(f"`{name}` is a positive number, not {value!r}")
    _validate_storage(options)
    _validate_walks(options)


def _validate_storage(options: SearchOptions) -> None:
    if options.get("checkpoint") is not None and options.get("resume") is not None:
        raise InputError("give `checkpoint` to start or `resume` to continue, not both")
    if options.get("hash_compaction"):
        for name in ("coverage", "checkpoint", "resume"):
            if options.get(name):
                raise InputError(f"`{name}` needs the expanded states, but hash compaction keeps only their signatures")
        if options.get("simulate_steps"):
            raise InputError("hash compaction applies to searches; random walks keep no states")
    if options.get("disk"):
        if options.get("checkpoint") is None and options.get("resume") is None:
            raise InputError("`disk` keeps states in a folder: give `checkpoint` or `resume` with it")
        for name in ("coverage", "hash_compaction"):
            if options.get(name):
                raise InputError(f"`{name}` excludes `disk`, which keeps whole states out of memory")


def _validate_walks(options: SearchOptions) -> None:
    seed, steps = options.get("seed"), options.get("simulate_steps")
    if seed is not None and not (is_whole(seed) and 0 <= seed < 2**64):
        raise InputError(f"`seed` is a number below 2**64, not {seed!r}")
    if seed is not None and steps is None:
        raise InputError("`seed` applies to random walks: give `simulate_steps` with it")
    if steps is not None:
        for name in ("max_states", "max_memory_bytes", "coverage", "checkpoint", "resume"):
            if options.get(name):
                raise InputError(f"random walks have no `{name}`")


def whole_numbers(verdict: dict[str, Any]) -> dict[str, Any]:
    """Convert counts to integers: they may arrive as strings, because other JSON readers are limited to 64 bits."""
    for count in ("states", "transitions"):
        if isinstance(verdict[count], str):
            verdict[count] = int(verdict[count])
    return verdict
