"""Device applications behind the home of a machine, with threads on its cores."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Required, TypedDict

from cohkit import _cohkit, types
from cohkit.errors import InputError, call
from cohkit.protocols import load_executable
from cohkit.results import Records, load, records
from cohkit.scenario import Scenario, resource_count, start
from cohkit.search_options import is_whole
from cohkit.simulator import default_protocol, machine
from cohkit.units import format_quantity

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping

    from cohkit._cohkit import Composition, Protocol
    from cohkit.machines import Machine
    from cohkit.shipped_types import Application
    from cohkit.units import Quantity


class Request(TypedDict, total=False):
    """Arguments of one play for `play_many`. See `play` for their meaning and defaults."""

    platform: Required[str | os.PathLike[str] | Machine]
    application: Required[Application | Scenario]
    numbers: Mapping[str, int] | None
    time: str | float | Quantity | None
    warm_up: str | float | Quantity
    protocol: Protocol | Composition | str | os.PathLike[str] | None
    set: Mapping[str, str | int | Quantity] | None
    sizes: Mapping[str, int] | None
    seed: int
    oracle: bool
    tables: bool


def play(  # noqa: PLR0913 -- each is a keyword
    platform: str | os.PathLike[str] | Machine,
    application: Application | Scenario,
    *,
    numbers: Mapping[str, int] | None = None,
    time: str | float | Quantity | None = None,
    warm_up: str | float | Quantity = 0,
    protocol: Protocol | Composition | str | os.PathLike[str] | None = None,
    set: Mapping[str, str | int | Quantity] | None = None,  # noqa: A002 -- as the option of the command
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    oracle: bool = True,
    tables: bool = False,
) -> types.Play:
    """Play an application behind the home of a platform, with its threads on the cores.

    Any failure ends the run; its result then has a `failure`, and no measurements.

    Args:
        platform: a platform that comes with the package, a file whose name ends in `.toml`, or a `Machine`.
        application: the name of a shipped application, which `cohkit list applications` describes; or a user-defined
            `Scenario`.
        numbers: numbers of the application, such as `{"threads": 8}`; `cohkit play PLATFORM APPLICATION --param help`
            lists them.
        time: simulated time at which the run stops starting work, such as `"2ms"`, or in nanoseconds; the end of the
            application if not given.
        warm_up: simulated time before counting and timing start, with a unit or in nanoseconds.
        protocol: protocol of caches and home: a protocol, the path of its file, or the name of a shipped one; the
            platform's protocol if not given.
        set: quantities of the platform to set, such as `{"link.latency": "120ns"}`.
        sizes: sizes of the protocol, such as `{"homes": 8}`; `line` is the bytes of a line.
        seed: seed of all random numbers.
        oracle: whether to compare loads with the last write, to check permissions, and to check the final data.
        tables: whether `tables` contains the inputs and results of the threads, for checks by other programs.

    Raises:
        InputError: an argument is invalid.
        TextError: the platform's file is invalid.
        OSError: the platform's file cannot be read.

    >>> import cohkit
    >>> result = cohkit.play("enzian-dc-bram", "invalidation", numbers={"lines": 100})
    >>> result["counts"]["invalidated"], round(result["durations_ns"]["clean-invalidate"]["mean"])
    (100, 351)

    """
    request: Request = {
        "platform": platform,
        "application": application,
        "numbers": numbers,
        "time": time,
        "warm_up": warm_up,
        "protocol": protocol,
        "set": set,
        "sizes": sizes,
        "seed": seed,
        "oracle": oracle,
        "tables": tables,
    }
    return play_many([request], threads=1)[0]


def play_many(
    plays: Iterable[Request],
    *,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Records[types.Play]:
    """Play applications in parallel, and return the results in order, regardless of the number of threads.

    Args:
        plays: for each play a dictionary with `platform`, `application` and further arguments of `play`.
        threads: maximum number of parallel plays, at most the number of processors, which is the default.
        progress: called occasionally with the number of finished plays, and the total.

    Raises:
        InputError: an argument is invalid. All other exceptions of `play` are raised as well.

    >>> import cohkit
    >>> rpc = {"platform": "enzian-dc-bram", "application": "rpc"}
    >>> plays = [rpc | {"numbers": {"calls": 20, "payload": lines}} for lines in (1, 8)]
    >>> one, eight = (result["durations_ns"]["call"]["mean"] for result in cohkit.play_many(plays))
    >>> one < eight
    True

    """
    if threads is not None and not 0 < threads < 2**32:
        raise InputError(f"`threads` is a positive number, not {threads}")
    compiled = [_compile_request(request) for request in plays]
    output = call("", _cohkit.play, compiled, threads=threads, progress=progress)
    return records(types.Play.of, load(output))


def _compile_request(request: Request) -> _cohkit.Play:
    """Validate a play, and fill in default values."""
    options: dict[str, Any] = {
        "platform": None,
        "application": None,
        "numbers": None,
        "time": None,
        "warm_up": 0,
        "protocol": None,
        "set": None,
        "sizes": None,
        "seed": 0,
        "oracle": True,
        "tables": False,
    }
    for name, value in request.items():
        if name not in options:
            raise InputError(f"a play has no `{name}`; it has {', '.join(options)}")
        options[name] = value
    for name in ("platform", "application"):
        if options[name] is None:
            raise InputError(f"a play needs a `{name}`")
    seed = options["seed"]
    if not (is_whole(seed) and 0 <= seed < 2**64):
        raise InputError(f"`seed` is 0 to {2**64 - 1}, not {seed!r}")
    options["seed"] = int(seed)
    for name in ("time", "warm_up"):
        if options[name] is not None:
            options[name] = format_quantity(options[name], unit="ns")
    target_machine = machine(options.pop("platform"))
    protocol = options.pop("protocol")
    protocol = default_protocol(target_machine) if protocol is None else load_executable(protocol)
    numbers = [f"{name}={value}" for name, value in (options.pop("numbers") or {}).items()]
    settings = [f"{name}={format_quantity(value)}" for name, value in (options.pop("set") or {}).items()]
    sizes = [f"{name}={value}" for name, value in (options.pop("sizes") or {}).items()]
    application = options.pop("application")
    scenario = None
    if isinstance(application, Scenario):
        if numbers:
            raise InputError("a custom scenario defines its own parameters; `numbers` is only for shipped applications")
        scenario = (
            partial(start, application),
            resource_count(application),
            resource_count(application, "host_words"),
            application.ends,
        )
        application = application.application().name
    return call(
        protocol.file,
        _cohkit.Play,
        target_machine,
        application,
        scenario=scenario,
        protocol=protocol,
        parameters=numbers,
        settings=settings,
        sizes=sizes,
        **options,
    )
