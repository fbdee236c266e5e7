"""How to look at the states of a system or a model: what the functions that give verdicts have in common."""

from __future__ import annotations

import os
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypedDict

from cohkit.errors import InputError, near

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cohkit._cohkit import Looking


class Options(TypedDict, total=False):
    """Options of :func:`cohkit.check` and :func:`cohkit.check_model`.

    Attributes:
        symmetry: explore one state of each orbit only: states that differ by which caching agent, or which value of a
            scalarset, is which; if not, each on its own. `True` if not given.
        hash_compaction: keep of states that were expanded a signature of 64 bits instead of the state; the verdict then
            has an `omission_probability`, and what takes all states to judge is not judged.
        threads: threads that search; the verdicts do not depend on it. As many as there are processors if not given,
            and never more.
        max_states: give up beyond this many states.
        max_depth: give up beyond this many steps from the start; with `simulate_steps` the most steps of one walk, 1000
            if not given.
        max_memory_bytes: give up beyond this much memory; three quarters of what is free if not given.
        coverage: count how often rules fired and rows were taken.
        simulate_steps: walk at random instead, for so many steps.
        seed: what random walks follow from, 0 if not given.
        checkpoint: a folder to keep what is found in, from time to time and when a limit is reached.
        resume: a folder with checkpoints to go on from, and to keep what is found in.
        checkpoint_every_seconds: seconds between checkpoints, 30 if not given.

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


def looking(options: Options, *, beside: Sequence[str] = ()) -> Looking:
    """Judge options before anything long is begun, and give them in the words of the compiled half.

    `beside` are names of options that the caller has taken already.
    """
    _judge(options, beside)
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
    }


def is_whole(value: object) -> bool:
    """Whether this is a whole number, which truths are not here."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _judge(options: Options, beside: Sequence[str]) -> None:
    for name in options:
        if name not in Options.__annotations__:
            there = [*beside, *Options.__annotations__]
            known = ", ".join(f"`{option}`" for option in there)
            raise InputError(f"there is no option `{name}`; {near(name, there)}the options are {known}")
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
    if options.get("checkpoint") is not None and options.get("resume") is not None:
        raise InputError("give `checkpoint` to begin or `resume` to go on; not both")
    if options.get("hash_compaction"):
        for name in ("coverage", "checkpoint", "resume"):
            if options.get(name):
                raise InputError(
                    f"`{name}` needs the states that were expanded; hash compaction keeps their signatures"
                )
        if options.get("simulate_steps"):
            raise InputError("random walks keep no states: hash compaction is for searches")
    _judge_walks(options)


def _judge_walks(options: Options) -> None:
    seed, steps = options.get("seed"), options.get("simulate_steps")
    if seed is not None and not (is_whole(seed) and 0 <= seed < 2**64):
        raise InputError(f"`seed` is a number below 2**64, not {seed!r}")
    if seed is not None and steps is None:
        raise InputError("`seed` is for random walks: give `simulate_steps` with it")
    if steps is not None:
        for name in ("max_states", "max_memory_bytes", "coverage", "checkpoint", "resume"):
            if options.get(name):
                raise InputError(f"random walks have no `{name}`")


def whole_numbers(verdict: dict[str, Any]) -> dict[str, Any]:
    """Turn counts into integers: JSON readers elsewhere take none beyond 64 bits, so these arrive as texts."""
    for count in ("states", "transitions"):
        if isinstance(verdict[count], str):
            verdict[count] = int(verdict[count])
    return verdict
