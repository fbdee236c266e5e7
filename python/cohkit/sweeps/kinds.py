"""Commands that can be swept: the option names of each, and its execution at a point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cohkit import player, simulator
from cohkit._cohkit import Composition, current_name
from cohkit.errors import InputError, call, suggestion
from cohkit.experiments import EXPERIMENTS, Conditions
from cohkit.protocols import check, load_executable, systems, validate_size
from cohkit.published import Published, compare
from cohkit.results import load
from cohkit.search_options import native_search_options
from cohkit.sweeps import native
from cohkit.types import Platform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cohkit.sweeps.values import Value

Row = dict[str, Any]

_EXTRA_QUANTITIES = ("remotes", "lines")

# Options that add quantities to a machine: of links in layers, and of virtual addresses.
_QUANTITY_ADDING_OPTIONS = ("link.layer", "translation.enabled")


class Kind(NamedTuple):
    """A command that can be swept."""

    takes: tuple[str, ...]
    """Names of the positional arguments, in order."""
    options: dict[str, type]
    """Names and types of the options."""
    run: Callable[[dict[str, Any], int], tuple[list[Row], int]]
    """Function that runs the command with these options and this seed. Returns its rows and exit code."""
    validate: Callable[[dict[str, Any], int], object]
    """Function that validates options before any run."""
    columns: tuple[str, ...]
    """Patterns of the columns shown in a terminal, besides the axes."""
    uses_seed: Callable[[Mapping[str, Value]], bool] = lambda _: True
    """Function that returns true if a seed has an effect with these options."""


def names(kind: str, options: Mapping[str, Value]) -> list[str]:
    """Return all possible axes: options, and the quantities of the platform."""
    command_kind = KINDS[kind]
    return [*command_kind.takes, *command_kind.options, *_quantities(options)]


def _quantities(options: Mapping[str, Value]) -> list[str]:
    """Return the names of the quantities that a sweep of these options can set; none without a platform."""
    if "platform" not in options:
        return []
    target_machine = simulator.machine(cast("str", options["platform"]))
    adding_options = {
        name: value for name, value in options.items() if current_name(name).endswith(_QUANTITY_ADDING_OPTIONS)
    }
    if adding_options:
        target_machine = call(
            str(options["platform"]), target_machine.set, [f"{name}={value}" for name, value in adding_options.items()]
        )
    quantities = Platform.of(load(target_machine.json())).quantities
    return [*dict.fromkeys([*(quantity["name"] for quantity in quantities), *_EXTRA_QUANTITIES, *adding_options])]


def _split_options(options: dict[str, Any], option_names: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split options into those of the command and named numbers."""
    command_options = {name: value for name, value in options.items() if name in option_names}
    return command_options, {name: value for name, value in options.items() if name not in option_names}


def _sim_request(options: dict[str, Any], seed: int) -> simulator.Request:
    command_options, settings = _split_options(options, (*KINDS["sim"].takes, *KINDS["sim"].options))
    return cast("simulator.Request", command_options | {"set": settings, "seed": seed})


def _sim(options: dict[str, Any], seed: int) -> tuple[list[Row], int]:
    result = simulator.simulate_many([_sim_request(options, seed)], threads=1)[0]
    row = flat(result)
    if "explanation" in result:
        for part in result["explanation"]["parts"]:
            row[f"explanation.parts.{part['name']}.mean_ns"] = part["mean_ns"]
    return [row], _code(result["failure"])


def _play_request(options: dict[str, Any], seed: int) -> player.Request:
    command_options, named_values = _split_options(options, (*KINDS["play"].takes, *KINDS["play"].options))
    quantities = {*_quantities(options)}
    if "stop_after" in command_options:
        command_options["time"] = command_options.pop("stop_after")
    settings = {name: value for name, value in named_values.items() if current_name(name) in quantities}
    numbers = {name: value for name, value in named_values.items() if name not in settings}
    return cast("player.Request", command_options | {"set": settings, "numbers": numbers, "seed": seed})


def _play(options: dict[str, Any], seed: int) -> tuple[list[Row], int]:
    result = player.play_many([_play_request(options, seed)], threads=1)[0]
    return [flat(result)], _code(result["failure"])


def _code(failure: Mapping[str, Any] | None) -> int:
    if not failure:
        return 0
    return 3 if failure["kind"] == "no progress" else 1


def _check(options: dict[str, Any], seed: int) -> tuple[list[Row], int]:
    """Return one row for each system, and the exit code of `cohkit check`."""
    verdicts = check(options["protocol"], **_check_arguments(options, seed))
    rows = []
    for verdict in verdicts:
        violated = [
            checked_property["name"]
            for checked_property in verdict["properties"]
            if checked_property["status"] == "violated"
        ]
        rows.append(flat(verdict) | {"violated": "; ".join(violated) or None})
    codes = {"verified": 0, "violated": 1, "undecided": 3}
    return rows, worst_code(codes[verdict["outcome"]] for verdict in verdicts)


def worst_code(codes: Iterable[int]) -> int:
    """Return the exit code of several outcomes: a violation takes precedence over an undecided search."""
    return max(codes, key=(0, 3, 1, 2, 4, 130).index)


def _check_arguments(options: dict[str, Any], seed: int) -> dict[str, Any]:
    arguments = {name: value for name, value in options.items() if name not in ("protocol", "system", "random_walks")}
    if "system" in options:
        arguments["systems"] = [options["system"]]
    if "random_walks" in options:
        arguments |= {"simulate_steps": options["random_walks"], "seed": seed}
    return arguments | {"threads": 1}


def _validate_check(options: dict[str, Any], seed: int) -> None:
    """Reject options and systems that `check` would reject, without a search."""
    protocol = load_executable(options["protocol"])
    arguments = _check_arguments(options, seed)
    size = {name: arguments.pop(name, None) for name in ("remotes", "lines", "capacity")}
    validate_size(protocol, systems=arguments.get("systems"), **size)
    system_names = (
        protocol.systems if isinstance(protocol, Composition) else [system["name"] for system in systems(protocol)]
    )
    for name in arguments.pop("systems", []):
        if name not in system_names:
            hint = f"{suggestion(name, system_names)}there are {', '.join(system_names)}"
            raise InputError(f"{protocol.file}: no system is named `{name}`; {hint}")
    native_search_options(arguments)  # type: ignore[arg-type]  # judged there


def _reproduce(options: dict[str, Any], seed: int) -> tuple[list[Row], int]:
    name = options["experiment"]
    ours = EXPERIMENTS[name].run(Conditions(seed=seed, accesses=options.get("accesses"), threads=1))
    return [flat(row) for row in compare(name, ours, Published.shipped())], 0


def _validate_experiment(options: dict[str, Any], _: int) -> None:
    if options["experiment"] not in EXPERIMENTS:
        name, names_text = options["experiment"], ", ".join(EXPERIMENTS)
        raise InputError(f"there is no experiment `{name}`; {suggestion(str(name), EXPERIMENTS)}there are {names_text}")
    if options.get("accesses", 1) < 1:
        raise InputError(f"`accesses` is at least 1, not {options['accesses']}")


def _flatten_rows(results: list[Row], code: int) -> tuple[list[Row], int]:
    return [flat(result) for result in results], code


def flat(result: Mapping[str, Any], prefix: str = "") -> Row:
    """Flatten a result into one table row, with dotted names and without machine-dependent values.

    >>> from cohkit.sweeps.kinds import flat
    >>> flat({"states": 2, "run": {"seconds": 1}, "times": {"mean": 5.0}, "bouncing_lines": [1]})
    {'states': 2, 'times.mean': 5.0}

    """
    row: Row = {}
    for name, value in result.items():
        if (name == "run" and not prefix) or isinstance(value, list) or name in ("counterexample", "tables"):
            continue
        if isinstance(value, dict):
            row |= flat(value, f"{prefix}{name}.")
        elif name != "failure":
            row[prefix + name] = value
    return row


_MACHINE = {"protocol": str, "oracle": bool}

KINDS: dict[str, Kind] = {
    "sim": Kind(
        ("platform", "workload"),
        _MACHINE | {"region": str, "accesses": int, "cores": int, "outstanding": int, "prefetch": int, "explain": bool},
        _sim,
        lambda options, seed: simulator._compile_request(_sim_request(options, seed)),  # noqa: SLF001 -- it only looks
        ("statistics.latency_mean_ns", "statistics.bandwidth_bytes_per_s", "explanation.limit.name"),
    ),
    "play": Kind(
        ("platform", "application"),
        _MACHINE | {"stop_after": str, "warm_up": str},
        _play,
        lambda options, seed: player._compile_request(_play_request(options, seed)),  # noqa: SLF001 -- it only looks
        ("rates_per_s.*", "durations_ns.*.mean"),
    ),
    "check": Kind(
        ("protocol",),
        {
            "system": str,
            "remotes": int,
            "lines": int,
            "capacity": int,
            "symmetry": bool,
            "hash_compaction": bool,
            "max_states": int,
            "max_depth": int,
            "random_walks": int,
        },
        _check,
        _validate_check,
        ("system", "outcome", "violated", "states", "transitions", "depth"),
        lambda options: "random_walks" in options,
    ),
    "reproduce": Kind(
        ("experiment",),
        {"accesses": int},
        _reproduce,
        _validate_experiment,
        ("name", "published", "ours", "unit", "error"),
    ),
    "litmus": Kind(
        ("test",),
        {
            "protocol": str,
            "cores": str,
            "model": str,
            "max_spontaneous_evictions": int,
            "max_states": int,
            "simulation_runs": int,
        },
        lambda options, seed: _flatten_rows(*native.litmus(options, seed)),
        native.validate_litmus,
        ("outcome", "allowed", "states"),
        lambda options: "simulation_runs" in options,
    ),
    "lockstep": Kind(
        ("protocol",),
        {"messages": int, "shape": str},
        lambda options, seed: _flatten_rows(*native.lockstep(options, seed)),
        native.validate_protocol,
        ("messages", "mismatches", "rows_covered", "rows_reachable"),
    ),
    "mutants": Kind(
        ("protocol",),
        {"index": int, "first": int, "stride": int},
        lambda options, seed: _flatten_rows(*native.mutants(options, seed)),
        native.validate_protocol,
        ("kind", "mutant", "verdict"),
        lambda _: False,
    ),
}
"""Commands that can be swept, by name."""

FORMER_NAMES = {
    ("check", "simulate"): "random_walks",
    ("litmus", "gives_up"): "max_spontaneous_evictions",
    ("litmus", "simulate"): "simulation_runs",
    ("mutants", "every"): "stride",
    ("mutants", "from"): "first",
    ("mutants", "number"): "index",
    ("play", "time"): "stop_after",
}
"""Options by command and former name, which stays valid until 0.3.0."""


def current_option(kind: str, name: str) -> str:
    """Return the current name of an option, given its current or former name."""
    return FORMER_NAMES.get((kind, name), name)
