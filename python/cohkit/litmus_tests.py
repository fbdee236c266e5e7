"""Litmus tests: outcomes of small multi-threaded programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack, cast

from cohkit import _cohkit, types
from cohkit.errors import InputError, call, suggestion
from cohkit.old_names import current_options
from cohkit.protocols import decode, load_executable
from cohkit.results import load
from cohkit.search_options import is_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cohkit._cohkit import Composition, LitmusRun, Protocol


class Options(TypedDict, total=False):
    """Options of :func:`cohkit.litmus`.

    Attributes:
        text: contents of the test, if it is not to be read from its file.
        protocol: protocol whose caches the threads run on, the path of its file, the name of a shipped one, or a
            composition of two levels; sequentially consistent memory if not given.
        cores: kind of cores; the kind for the protocol's `accesses`, otherwise `in_order`, if not given.
        model: memory model that the outcomes are compared with or, without a protocol, that defines them; the
            protocol's `guarantee` or the model of the cores if not given.
        max_spontaneous_evictions: total number of spontaneous evictions by caches; 1 if not given.
        max_states: state limit; ten million if not given.
        chart: return the shortest path to the deciding outcome as `sequence`, which :func:`cohkit.chart_text` draws,
            and its length as `steps`.
        stores: access of the protocol for each write, thread by thread, one letter each: `t` as the protocol's cores
            store, `b` written back in the core's own copy, `a` acknowledged by the home.
        kinds: kind of remote of each thread; required if kinds have different rows. For a composition with several
            inner protocols, the name of each thread's inner protocol; required.
        system: system of the protocol whose sizes the test uses; the protocol's common sizes if not given.
        expect: `"file"` to report in `expected` whether the outcomes are those that the file expects (`Result: Never`
            or similar).
        simulate_runs: run the test this many times in the simulator, with random times, instead of in every order.
        seed: seed of the first of these runs; each further run uses the next one. 0 if not given.

    """

    text: str | None
    protocol: Protocol | Composition | str | os.PathLike[str] | None
    cores: Literal["in_order", "store_buffer", "relaxed"] | None
    model: Literal["sc", "tso", "rc", "armv8", "riscv"] | None
    max_spontaneous_evictions: int | None
    max_states: int | None
    chart: bool
    stores: str | None
    kinds: Sequence[str] | None
    system: str | None
    expect: Literal["condition", "file"] | None
    simulate_runs: int | None
    seed: int | None


def litmus(test: str | os.PathLike[str], **options: Unpack[Options]) -> types.Litmus:
    """Run a litmus test in every order of events, on the caches of a protocol or on sequentially consistent memory.

    Args:
        test: a file in the format of the herd tools, in assembly (AArch64, Arm, RISC-V, x86, Power) or in C; or the
            name of a classic shape.
        **options: options of the run: :class:`cohkit.litmus_tests.Options`.

    Raises:
        TextError: the test or the protocol is invalid.
        FaultError: no home can be constructed from the protocol's policy.
        InputError: the shape does not exist, an option does not apply, or the test cannot run on the protocol.
        OSError: the file cannot be read.

    >>> import cohkit
    >>> weak = cohkit.litmus("SB", protocol="mesi", cores="store_buffer")
    >>> weak["outcome"], len(weak["outcomes"]), weak["model"]
    ('satisfied', 4, 'tso')

    """
    options = cast("Options", current_options("cohkit.litmus", options))
    _validate(options)
    name, text, given_protocol = os.fspath(test), options.get("text"), options.get("protocol")
    if text is None and _is_file(test):
        text = decode(name, Path(name).read_bytes())
    program = call(name, _cohkit.Litmus, name, text)
    protocol = None if given_protocol is None else load_executable(given_protocol)
    result = call(
        name if protocol is None else protocol.file,
        _cohkit.litmus,
        program,
        protocol=protocol,
        options=_native_options(options),
    )
    return types.Litmus.of(load(result))


def _native_options(options: Options) -> LitmusRun:
    """Return the options for the compiled module, with defaults in place of missing ones."""
    max_evictions, max_states = options.get("max_spontaneous_evictions"), options.get("max_states")
    runs, kinds = options.get("simulate_runs"), options.get("kinds")
    return {
        "cores": options.get("cores"),
        "model": options.get("model"),
        "max_spontaneous_evictions": 1 if max_evictions is None else max_evictions,
        "max_states": 10_000_000 if max_states is None else max_states,
        "chart": options.get("chart", False),
        "simulate": None if runs is None else (options.get("seed") or 0, runs),
        "stores": options.get("stores"),
        "kinds": None if kinds is None else ",".join(kinds),
        "system": options.get("system"),
        "expect": options.get("expect"),
    }


def _is_file(test: str | os.PathLike[str]) -> bool:
    """Return whether a test names a file. A name without suffix is that of a shape, unless the file exists."""
    path = Path(test)
    return not isinstance(test, str) or path.suffix == ".litmus" or "/" in test or path.exists()


def _validate(options: Options) -> None:
    for name in options:
        if name not in Options.__annotations__:
            known = ", ".join(f"`{option}`" for option in Options.__annotations__)
            hint = suggestion(name, Options.__annotations__)
            raise InputError(f"there is no option `{name}`; {hint}the options are {known}")
    _validate_numbers(options)
    _validate_runs(options)


def _validate_numbers(options: Options) -> None:
    numbers = {
        "max_spontaneous_evictions": (options.get("max_spontaneous_evictions"), 0, 2**8),
        "max_states": (options.get("max_states"), 1, 2**63),
        "simulate_runs": (options.get("simulate_runs"), 1, 2**63),
        "seed": (options.get("seed"), 0, 2**64),
    }
    for name, (value, low, limit) in numbers.items():
        if value is not None and not (is_whole(value) and low <= value < limit):
            raise InputError(f"`{name}` is a number from {low} to {limit - 1}, not {value!r}")


def _validate_runs(options: Options) -> None:
    """Reject options that do not apply without a protocol, or not to simulator runs."""
    if isinstance(options.get("kinds"), str):
        raise InputError("`kinds` must be a list with one kind per thread")
    if options.get("protocol") is None:
        for name in ("chart", "stores", "kinds", "system", "simulate_runs"):
            if options.get(name):
                raise InputError(f"`{name}` applies to the caches of a protocol: give `protocol` too")
    if options.get("simulate_runs") is None:
        if options.get("seed") is not None:
            raise InputError("`seed` applies to runs in the simulator: give `simulate_runs` too")
        return
    for name in ("max_spontaneous_evictions", "max_states", "chart"):
        if options.get(name):
            raise InputError(f"`{name}` applies to exhaustive exploration, not to runs in the simulator")
