"""Common code of the experiments with applications."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from cohkit.errors import Error, InputError
from cohkit.experiments.experiment import vary
from cohkit.experiments.steady import is_even, is_filling
from cohkit.experiments.study import run_once, settings_of
from cohkit.player import play_many
from cohkit.published import Measurement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cohkit._cohkit import Protocol
    from cohkit.experiments.experiment import Conditions
    from cohkit.player import Request
    from cohkit.shipped_types import Application
    from cohkit.types import Play, Times

_T = TypeVar("_T")

MACHINES = {"DC+DDR": ("dc_ddr", "enzian-dc-ddr"), "DC+BRAM": ("dc_bram", "enzian-dc-bram")}
"""The two homes on the FPGA, by their name in the article: name in keys of published numbers, and platform."""

_NANOSECONDS_PER_ACCESS = 100


COMPUTE_TIME = "cores.compute_time"
"""Quantity of a platform: time of a thread after an access, for all words of a line."""
WORD_TIME = "1500ps"
"""Time of a thread after an access to one word of a line, by a ThunderX-1 of 2 GHz. Assumed: six instructions (load,
addition and store of the word; next address, comparison and branch of the loop), of which the core begins two in a
clock (AnandTech article 8776). The published rates of the shared table were known when this value was derived."""
WORD_TIMES = ("500ps", "3ns")
"""Range of `WORD_TIME`: two instructions; and one instruction in a clock."""


class Stage(NamedTuple):
    """A number computed by plays of one application, and the key of the published one; the mean of several seeds.

    Attributes:
        name: name of the number in the table.
        key: key of the published number.
        platform, application, numbers: the play: machine, application and its numbers.
        measure: function that returns the number from a result.
        warm_up_us: simulated time before events are counted and timed.
        seeds: number of plays with consecutive seeds, of which the mean is taken.

    """

    name: str
    key: str
    platform: str
    application: Application
    numbers: Mapping[str, int]
    measure: Callable[[Play], float]
    time_us: int = 0
    """Simulated time after the warm-up; 0 runs until the application ends."""
    warm_up_us: int = 0
    seeds: int = 1
    unit: str = ""
    """Unit of this number, if it differs from that of the other stages."""
    cut: bool = False
    """True if the size is smaller than full size."""
    counted: str = ""
    """For a throughput: name of the counter."""
    per_s: float = 0
    """For a throughput: counted events per second that correspond to one unit of this number."""
    protocol: Protocol | str | None = None
    """The protocol, if it is not `eci`."""
    settings: Mapping[str, int | str] = {}
    """Quantities of the platform to set."""
    words: bool = False
    """True if threads of a ThunderX-1 access one word of a line, and not all of its words."""


def limited_time(accesses: int) -> str:
    """Describe the reduction of timed plays for a given number of accesses."""
    microseconds = f"{_NANOSECONDS_PER_ACCESS * accesses / 1000:.15g} us"
    return f"no more than {microseconds} each, after no more than {microseconds} of warm-up"


def times(result: Play, counter: str) -> Times:
    """Return the durations recorded under a name.

    Raises:
        InputError: the play was too short to record one.

    """
    return _lookup(result.durations_ns, result, counter)


def rate(result: Play, counter: str) -> float:
    """Return the events per second recorded under a name.

    Raises:
        InputError: the play was too short to count one.

    """
    return _lookup(result.rates_per_s, result, counter)


def _lookup(by_name: Mapping[str, _T] | None, result: Play, counter: str) -> _T:
    """Return a counter's value, or raise `InputError` if the play was too short to count it."""
    if by_name is None or counter not in by_name:
        message = f"no `{counter}` in {result.window_ns or 0:.15g} ns; more accesses are needed"
        raise InputError(message)
    return by_name[counter]


def run(stages: Sequence[Stage], unit: str, conditions: Conditions) -> list[Measurement]:
    """Play all stages with all their seeds. A play that yields several numbers runs only once."""
    stages = [stage for stage in stages if _is_needed(stage.key, conditions.keys)]
    requests_by_stage = [
        (stage, [_request(stage, seed, conditions) for seed in range(stage.seeds)]) for stage in stages
    ]
    requests = [request for _, stage_requests in requests_by_stage for request in stage_requests]

    def play(pending: list[Request]) -> Sequence[Play]:
        return play_many(pending, threads=conditions.threads, progress=conditions.progress)

    plays = run_once(requests, play, conditions.study)
    results = {repr(request): result for request, result in zip(requests, plays, strict=True)}
    ours = []
    for stage, stage_requests in requests_by_stage:
        values, steady = [], True
        for request in stage_requests:
            result = results[repr(request)]
            if failure := result.failure:
                raise Error(f"{stage.name}: {failure.kind}: {failure.message}")
            try:
                values.append(stage.measure(result))
                steady &= _is_steady(stage, values[-1], result, conditions)
            except InputError as error:
                raise InputError(f"{stage.name}: {error}") from None
        ours.append(
            Measurement(
                stage.name,
                sum(values) / len(values),
                stage.unit or unit,
                stage.key,
                steady=steady if stage.counted else None,
                cut=_is_cut(stage, conditions),
            )
        )
    return ours


BEST = "best"
"""Last part of the key of the largest of several numbers."""


def _is_needed(key: str, keys: frozenset[str] | None) -> bool:
    """Return whether one of the keys is that of this number, or that of the maximum of its group."""
    return (
        keys is None
        or key in keys
        or any(key.startswith(one.removesuffix(BEST)) for one in keys if one.endswith(f".{BEST}"))
    )


def largest(ours: Sequence[Measurement], prefix: str, name: str) -> list[Measurement]:
    """Return the largest number whose key starts with `prefix`, for a published number without a stated configuration.

    The key of the result ends with `best`. The list is empty if there is no such number.
    """
    candidates = [measurement for measurement in ours if measurement.key.startswith(prefix)]
    greatest = sorted(candidates, key=lambda measurement: -measurement.value)[:1]
    return [measurement._replace(name=name, key=f"{prefix}{BEST}") for measurement in greatest]


def _is_steady(stage: Stage, value: float, result: Play, conditions: Conditions) -> bool:
    """Return true if the rate is `value` from the second quarter on, and no reduced run ends while caches fill."""
    quarters = (result.quarters_by_counter or {}).get(stage.counted)
    return is_even(value * stage.per_s, quarters) and not (_is_cut(stage, conditions) and is_filling(result.quarters))


def _is_cut(stage: Stage, conditions: Conditions) -> bool:
    """Return true if the size or the simulated time of a stage is reduced."""
    duration_ns = 1000 * max(stage.time_us, stage.warm_up_us)
    accesses = conditions.accesses
    return stage.cut or (accesses is not None and _NANOSECONDS_PER_ACCESS * accesses < duration_ns)


def _request(stage: Stage, seed: int, conditions: Conditions) -> Request:
    """Return the request of one play; `seed` is added to that of the conditions."""
    request: Request = {
        "platform": stage.platform,
        "application": stage.application,
        "numbers": stage.numbers,
        "seed": conditions.seed + seed,
        "protocol": stage.protocol,
        "set": {**stage.settings, **(_word_time(stage.platform, conditions) if stage.words else {})},
    }
    if stage.time_us:
        time, warm_up = 1000 * stage.time_us, 1000 * stage.warm_up_us
        if conditions.accesses is not None:
            # Limit the simulated time to the approximate duration of this many accesses.
            max_ns = _NANOSECONDS_PER_ACCESS * conditions.accesses
            time, warm_up = min(time, max_ns), min(warm_up, max_ns)
        request["time"] = f"{warm_up + time}ns"
        request["warm_up"] = f"{warm_up}ns"
    elif stage.warm_up_us:
        # The application ends by itself; its measurements start after this time.
        request["warm_up"] = f"{stage.warm_up_us}us"
    return vary(request, conditions)


def _word_time(platform: str, conditions: Conditions) -> dict[str, str]:
    """Return the time of a thread after an access to one word, which is assumed, as a setting of a platform."""
    if conditions.study:
        conditions.study.assume(platform, COMPUTE_TIME, WORD_TIMES, is_discrete=False)
    return {COMPUTE_TIME: settings_of(platform, conditions.settings).get(COMPUTE_TIME, WORD_TIME)}
