"""The simulator: platforms, and workloads that run on them."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Required, TypedDict, cast

from cohkit import _cohkit, types
from cohkit.errors import InputError, call, suggestion
from cohkit.machines import Machine
from cohkit.memory_traces import MemoryTrace, TraceFile
from cohkit.protocols import load_executable
from cohkit.results import Records, load, records
from cohkit.search_options import is_whole
from cohkit.units import format_quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cohkit._cohkit import Composition, Protocol
    from cohkit.shipped_types import Workload
    from cohkit.units import Quantity

# Numeric options of a simulation, with minimum and maximum.
_MAX_COUNT = 2**64 - 1
_NUMBERS = {
    "accesses": (1, _MAX_COUNT),
    "cores": (1, 4096),
    "outstanding": (1, 4096),
    "prefetch": (0, 4096),
    "seed": (0, _MAX_COUNT),
}


class Request(TypedDict, total=False):
    """Arguments of one simulation for `simulate_many`. See `simulate` for their meaning and defaults."""

    platform: Required[str | os.PathLike[str] | Machine]
    workload: Required[Workload | str | MemoryTrace | TraceFile]
    protocol: Protocol | Composition | str | os.PathLike[str] | None
    region: str | int | Quantity | None
    accesses: int | None
    cores: int | None
    outstanding: int | None
    prefetch: int | None
    by: Mapping[str, Workload | str] | None
    set: Mapping[str, str | int | Quantity] | None
    seed: int
    oracle: bool
    explain: bool


def platforms() -> list[str]:
    """Return the names of the platforms that come with the package.

    >>> import cohkit
    >>> cohkit.platforms()[:3]
    ['clusters-4x4', 'cxl-512x8', 'cxl-8x8']

    """
    return _cohkit.platforms()


def platform(name: str | os.PathLike[str] | Machine) -> types.Platform:
    """Return a platform's quantities: value, unit, origin, and range if no source gives the value.

    Args:
        name: a platform that comes with the package, a file whose name ends in `.toml`, or a `Machine`.

    Raises:
        InputError: there is no platform with this name.
        TextError: the file is invalid; all its errors are listed.
        OSError: the file cannot be read.

    >>> import cohkit
    >>> frame = cohkit.to_frame(cohkit.platform("enzian-dc-ddr"))
    >>> frame.filter(frame["name"] == "link.latency").select("value", "unit", "low", "high").rows()
    [(100000, 'ps', 60000, 140000)]

    """
    return types.Platform.of(load(machine(name).json()))


def simulate(  # noqa: PLR0913 -- each is a keyword
    platform: str | os.PathLike[str] | Machine,
    workload: Workload | str | MemoryTrace | TraceFile,
    *,
    protocol: Protocol | Composition | str | os.PathLike[str] | None = None,
    region: str | int | Quantity | None = None,
    accesses: int | None = None,
    cores: int | None = None,
    outstanding: int | None = None,
    prefetch: int | None = None,
    by: Mapping[str, Workload | str] | None = None,
    set: Mapping[str, str | int | Quantity] | None = None,  # noqa: A002 -- as the option of the command
    seed: int = 0,
    oracle: bool = True,
    explain: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> types.Simulation:
    """Run a workload on a platform whose caches and home execute a protocol's controllers.

    A protocol failure ends the run; its result then has a `failure` and no `statistics`.

    Args:
        platform: a platform that comes with the package, a file whose name ends in `.toml`, or a `Machine`.
        workload: the name of a shipped workload, which `cohkit list workloads` describes; or a recorded trace: a
            `memory_trace`, `trace:FILE`, `packed-trace:FILE`, or a trace of another tool such as `lackey-trace:FILE`.
        protocol: protocol of caches and home: a protocol, the path of its file, or the name of a shipped one; the
            platform's protocol if not given.
        region: accessed memory: bytes, or a size with its unit such as `"4MiB"`; if not given, 16 MiB, or the memory
            that a trace accesses.
        accesses: number of accesses; if not given, the number of lines in the region, or all of a trace.
        cores: number of cores; the platform's `cores.count` if not given.
        outstanding: maximum outstanding accesses per core; the platform's `cores.max_outstanding` if not given.
        prefetch: prefetch distance of reads in accesses, 0 for none; the platform's `cores.prefetch_distance` if not
            given.
        by: workload per kind of caching agent, by the kind's name: a workload, or `idle`. Each kind makes `accesses`
            accesses; `cores`, `outstanding` and `prefetch` apply to the first kind.
        set: quantities of the platform to set, such as `{"link.latency": "120ns"}`; `agents.KIND.remotes` adds caching
            agents of a further kind of the protocol.
        seed: seed of all random numbers.
        oracle: whether to compare loads with the last write, and to check for conflicting permissions.
        explain: whether the result has an `explanation`: a breakdown of the access latency, the utilisation of
            resources, and the bottleneck.
        progress: called occasionally with the number of accesses performed, and the total.

    Raises:
        InputError: an argument is invalid.
        TextError: the platform's file is invalid, or no home can be constructed from a policy of this form.
        FaultError: the home's policy cannot be implemented.
        UnavailableError: the written data do not fit into the memory of this machine.
        OSError: the platform's file cannot be read.

    >>> import cohkit
    >>> result = cohkit.simulate("enzian-dc-bram", "sequential-read", region=1 << 20)
    >>> result["messages"]["ReadShared"], result["failure"]
    (8192, None)

    """
    request: Request = {
        "platform": platform,
        "workload": workload,
        "protocol": protocol,
        "region": region,
        "accesses": accesses,
        "cores": cores,
        "outstanding": outstanding,
        "prefetch": prefetch,
        "by": by,
        "set": set,
        "seed": seed,
        "oracle": oracle,
        "explain": explain,
    }
    return simulate_many([request], threads=1, progress=progress)[0]


def simulate_many(
    simulations: Iterable[Request],
    *,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Records[types.Simulation]:
    """Run simulations in parallel, and return their results in order, regardless of the number of threads.

    All requests are validated before the first simulation starts.

    Args:
        simulations: for each simulation a dictionary with `platform`, `workload` and further arguments of `simulate`.
        threads: maximum number of parallel simulations, at most the number of processors, which is the default;
            fewer if their written data would not fit into memory.
        progress: called occasionally with the number of accesses performed, and the total of all simulations.

    Raises:
        InputError: an argument is invalid. All other exceptions of `simulate` are raised as well.

    >>> import cohkit
    >>> both = [{"platform": name, "workload": "random-read"} for name in ("enzian-dc-ddr", "enzian-dc-bram")]
    >>> frame = cohkit.to_frame(cohkit.simulate_many(both))
    >>> frame.select("platform", "workload_cores", "workload_region_lines").rows()
    [('enzian-dc-ddr', 48, 131072), ('enzian-dc-bram', 48, 131072)]

    """
    if threads is not None and not 0 < threads < 2**32:
        raise InputError(f"`threads` is a positive number, not {threads}")
    compiled = [_compile_request(request) for request in simulations]
    output = call("", _cohkit.simulate, compiled, threads=threads, progress=progress)
    return records(types.Simulation.of, load(output))


def machine(name: str | os.PathLike[str] | Machine | _cohkit.Machine, *, text: str | None = None) -> _cohkit.Machine:
    """Return a compiled platform; `text` is the contents of its file, if it was already read."""
    if isinstance(name, _cohkit.Machine):
        return name
    if isinstance(name, Machine):
        return name.native
    if text is not None:
        return call(os.fspath(name), _cohkit.Machine, os.fspath(name), text)
    return Machine(name).native


def default_protocol(target_machine: _cohkit.Machine) -> Protocol | Composition:
    """Return the default protocol of a platform."""
    return _shipped_protocol(json.loads(target_machine.json())["protocol"])


@functools.cache
def _shipped_protocol(name: str) -> Protocol | Composition:
    """Return a shipped protocol, cached because it in turn caches its home."""
    return load_executable(name)


def _whole(name: str, value: object, low: int, high: int) -> int:
    """Return an option as an integer after checking its range; integers of numpy are accepted."""
    whole = is_whole(value)
    number = cast("int", value)
    if whole and low <= number <= high:
        return int(number)
    allowed = f"{low} to {high}" if high < _MAX_COUNT else f"at least {low}"
    if high == _MAX_COUNT and whole and number > high:
        allowed = f"at most {high}"
    raise InputError(f"`{name}` is {allowed}{'' if whole else ', and a whole number'}, not {value!r}")


def _work(workload: object) -> tuple[str, tuple[str, bytes] | None]:
    """Return the name of a workload, and its contents if it is a trace."""
    if isinstance(workload, MemoryTrace | TraceFile):
        return workload.name, (workload.kind, workload.file)
    if isinstance(workload, str):
        return workload, None
    kind, hint = type(workload).__name__, "`cohkit.memory_trace` makes one of addresses"
    raise InputError(f"a workload is a name or a `MemoryTrace`, not {kind}: {hint}")


def _compile_request(request: Request) -> _cohkit.Simulation:
    """Validate a simulation, and fill in default values."""
    options: dict[str, Any] = {
        "platform": None,
        "workload": None,
        "protocol": None,
        "region": None,
        "accesses": None,
        "cores": None,
        "outstanding": None,
        "prefetch": None,
        "by": None,
        "set": None,
        "seed": 0,
        "oracle": True,
        "explain": False,
    }
    if not isinstance(request, Mapping):
        raise InputError(f"a simulation is a dictionary with `platform` and `workload`, not {request!r}")
    for name, value in request.items():
        if name not in options:
            raise InputError(f"a simulation has no `{name}`; {suggestion(name, options)}it has {', '.join(options)}")
        options[name] = value
    for name in ("platform", "workload"):
        if options[name] is None:
            raise InputError(f"a simulation needs a `{name}`")
    for name, (low, high) in _NUMBERS.items():
        if options[name] is not None or name == "seed":
            options[name] = _whole(name, options[name], low, high)
    protocol = options.pop("protocol")
    target_machine = machine(options.pop("platform"))
    protocol = default_protocol(target_machine) if protocol is None else load_executable(protocol)
    options["by"] = [f"{kind}={workload}" for kind, workload in (options["by"] or {}).items()]
    settings = [f"{name}={format_quantity(value)}" for name, value in (options.pop("set") or {}).items()]
    if options["region"] is not None:
        options["region"] = format_quantity(options["region"], unit="B")
    workload, recorded_trace = _work(options.pop("workload"))
    return call(
        protocol.file,
        _cohkit.Simulation,
        target_machine,
        workload,
        trace=recorded_trace,
        protocol=protocol,
        settings=settings,
        **options,
    )
