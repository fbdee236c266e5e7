"""Litmus tests."""

from typing import Any, Literal

from cohkit.results import Record, Records
from cohkit.types.protocols import Sequence


class LitmusOutcome(Record):
    """An outcome of a litmus test. Simulator runs also report its `count`, and the first `seed` with it.

    Attributes:
        values_: the key `values`: final values of the observed registers and locations, by name.
        satisfies: true if the outcome satisfies the test's condition.
        allowed: true if the model allows the outcome.

    """

    values_: dict[str, int]
    satisfies: bool
    allowed: bool
    count: int | None = None
    seed: int | None = None


class Litmus(Record):
    """Result of a litmus test, from :func:`cohkit.litmus`.

    Attributes:
        test: name in the test file.
        protocol: name of the protocol; `None` for sequentially consistent memory without caches.
        kinds: kind of remote that each thread runs on, if the protocol distinguishes kinds.
        cores: kind of core.
        model: the memory model that outcomes are compared with.
        condition: quantifier of the test's condition.
        observation: how many outcomes satisfy the condition; `None` if there is no outcome.
        outcome: the verdict. `violated` means that the protocol breaks a property or its guarantee, or that threads
            never end.
        expected: true if the outcomes are those that the file expects; `None` if that is undecided or was not
            requested.
        reason: the violation, or the reason of `undecided`.
        allowed: number of outcomes that the model allows.
        states: number of states visited; 0 for sequentially consistent memory, `None` for simulator runs.
        sequence, steps: chart of a path to an outcome, and the number of its steps; if requested or if an outcome is
            forbidden.
        runs, seed: number of simulator runs, and the seed of the first.
        run: values that depend on the machine.

    """

    test: str
    protocol: str | None
    kinds: list[str] | None = None
    cores: Literal["in_order", "store_buffer", "relaxed"]
    model: Literal["sc", "tso", "rc", "armv8", "riscv"]
    condition: Literal["exists", "not_exists", "forall"]
    observation: Literal["never", "sometimes", "always"] | None
    outcome: Literal["satisfied", "not_satisfied", "violated", "undecided"]
    expected: bool | None = None
    reason: str | None
    outcomes: Records[LitmusOutcome]
    allowed: int
    states: int | None = None
    sequence: Sequence | None = None
    steps: int | None = None
    runs: int | None = None
    seed: int | None = None
    run: dict[str, Any]
