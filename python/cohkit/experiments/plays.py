"""What the experiments with applications have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from cohkit.errors import Error, InputError
from cohkit.experiments.steady import even, filling
from cohkit.player import play_many
from cohkit.published import Ours

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cohkit._cohkit import Protocol
    from cohkit.experiments.experiment import Conditions
    from cohkit.player import Application, Request
    from cohkit.types import Play, Times

_T = TypeVar("_T")

MACHINES = {"DC+DDR": ("dc_ddr", "enzian-dc-ddr"), "DC+BRAM": ("dc_bram", "enzian-dc-bram")}
"""What the article calls the two homes on the FPGA, the name in keys of published numbers, and the platform."""

_NANOSECONDS_PER_ACCESS = 100


class Stage(NamedTuple):
    """A number that plays of one application give, and the key of the published one; with several seeds their mean."""

    name: str
    key: str
    platform: str
    application: Application
    numbers: Mapping[str, int]
    measure: Callable[[Play], float]
    time_us: int = 0
    """Simulated time after the warm-up; until the application ends if 0."""
    warm_up_us: int = 0
    seeds: int = 1
    unit: str = ""
    """Of this number, if it is another than that of the rest."""
    cut: bool = False
    """Whether its numbers are smaller than at full size."""
    counted: str = ""
    """Of a throughput, what is counted."""
    per_s: float = 0
    """How many of it in a second this number is for each that it has."""
    protocol: Protocol | str | None = None
    """The text, if it is not `eci`."""
    settings: Mapping[str, int | str] = {}
    """Quantities of the platform that are set."""


def time_each(accesses: int) -> str:
    """Say what plays are cut to that end after a time, where so many accesses are asked for."""
    microseconds = f"{_NANOSECONDS_PER_ACCESS * accesses / 1000:.15g} us"
    return f"no more than {microseconds} each, after no more than {microseconds} of warm-up"


def times(result: Play, what: str) -> Times:
    """Give the durations of what is called so.

    Raises:
        InputError: the play was too short for one.

    """
    return _called(result.times_ns, result, what)


def rate(result: Play, what: str) -> float:
    """Give how many there were per second of what is called so.

    Raises:
        InputError: the play was too short for one.

    """
    return _called(result.rates_per_s, result, what)


def _called(all_of: Mapping[str, _T] | None, result: Play, what: str) -> _T:
    if all_of is None or what not in all_of:
        message = f"no `{what}` in {result.window_ns or 0:.15g} ns; more accesses are needed"
        raise InputError(message)
    return all_of[what]


def run(stages: Sequence[Stage], unit: str, conditions: Conditions) -> list[Ours]:
    """Play all, each with all its seeds; what gives several numbers is played once."""
    wanted = [(stage, [_request(stage, seed, conditions) for seed in range(stage.seeds)]) for stage in stages]
    requests = {repr(request): request for _, of_stage in wanted for request in of_stage}
    played = play_many(requests.values(), threads=conditions.threads, progress=conditions.progress)
    results = dict(zip(requests, played, strict=True))
    ours = []
    for stage, of_stage in wanted:
        values, steady = [], True
        for request in of_stage:
            result = results[repr(request)]
            if failure := result.failure:
                raise Error(f"{stage.name}: {failure.kind}: {failure.message}")
            try:
                values.append(stage.measure(result))
                steady &= _is_steady(stage, values[-1], result, conditions)
            except InputError as error:
                raise InputError(f"{stage.name}: {error}") from None
        ours.append(
            Ours(
                stage.name,
                sum(values) / len(values),
                stage.unit or unit,
                stage.key,
                steady=steady if stage.counted else None,
                cut=_is_cut(stage, conditions),
            )
        )
    return ours


def best(ours: Sequence[Ours], of: str, name: str) -> Ours:
    """Give the greatest of the numbers whose keys begin so, for what is published without saying where it was measured.

    Its key ends with `best`.
    """
    greatest = max((one for one in ours if one.key.startswith(of)), key=lambda one: one.value)
    return greatest._replace(name=name, key=f"{of}best")


def _is_steady(stage: Stage, value: float, result: Play, conditions: Conditions) -> bool:
    course = (result.courses or {}).get(stage.counted)
    return even(value * stage.per_s, course) and not (_is_cut(stage, conditions) and filling(result.quarters))


def _is_cut(stage: Stage, conditions: Conditions) -> bool:
    longest = 1000 * max(stage.time_us, stage.warm_up_us)
    asked = conditions.accesses
    return stage.cut or (asked is not None and _NANOSECONDS_PER_ACCESS * asked < longest)


def _request(stage: Stage, seed: int, conditions: Conditions) -> Request:
    request: Request = {
        "platform": stage.platform,
        "application": stage.application,
        "numbers": stage.numbers,
        "seed": conditions.seed + seed,
        "protocol": stage.protocol,
        "set": stage.settings,
    }
    if stage.time_us:
        time, warm_up = 1000 * stage.time_us, 1000 * stage.warm_up_us
        if conditions.accesses is not None:
            # As long as about so many accesses take.
            most = _NANOSECONDS_PER_ACCESS * conditions.accesses
            time, warm_up = min(time, most), min(warm_up, most)
        request["time"] = f"{warm_up + time}ns"
        request["warm_up"] = f"{warm_up}ns"
    elif stage.warm_up_us:
        # It ends by itself, and begins what is measured after this time.
        request["warm_up"] = f"{stage.warm_up_us}us"
    return request
