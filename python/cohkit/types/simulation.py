"""Platforms, workloads and simulations."""

from typing import Any, Literal

from cohkit.results import Record, Records
from cohkit.types.protocols import Sequence


class Quantity(Record):
    """A quantity of a platform. `low` and `high` are `None` if a source gives the value.

    Attributes:
        name: name for `set`, with its table, such as `link.latency`.
        value: value in `unit`.
        unit: picoseconds, bytes per second, bytes, or a number without a unit.
        low, high: range of plausible values, in `unit`.
        origin: a source, a fit or an assumption, in words.

    """

    name: str
    value: int
    unit: Literal["ps", "B/s", "B", "count"]
    low: int | None
    high: int | None
    origin: str


class Platform(Record):
    """A simulated machine.

    With two levels of caches, `lower_level_caches` is the number of caches below each remote's cache. `agents` is the
    number of agents of each further kind.

    Attributes:
        protocol: the shipped protocol that runs on the platform by default.
        remotes: number of caching agents of the first kind.
        lines: number of lines in the home's memory.

    """

    name: str
    protocol: str
    remotes: int
    lower_level_caches: int | None = None
    agents: dict[str, int] | None = None
    lines: int
    quantities: Records[Quantity]


class Workload(Record):
    """Workload of the cores.

    Attributes:
        name: name of the workload; of a trace, as given.
        region_lines: number of lines that the cores access.
        accesses: number of accesses of the run, by all cores.
        cores: number of cores in use.
        partitioned: true if each core accesses its own part of the region.
        outstanding: maximum number of outstanding accesses of one core.
        prefetch: distance of prefetches, in accesses ahead; 0 without prefetches.

    """

    name: str
    region_lines: int
    accesses: int
    cores: int
    partitioned: bool
    outstanding: int
    prefetch: int


class Failure(Record):
    """Reason why a simulation was aborted.

    Attributes:
        kind: the violated property, or another kind that `docs/output.md` lists.
        message: the error, in one sentence.
        line: number of the line.
        time_ps: simulated time of the error, in picoseconds.
        wait_for: sentences: each waiting agent, and the agent that it waits for.
        sequence: the last steps that concern the line.

    """

    kind: str
    message: str
    line: int
    time_ps: int
    wait_for: list[str]
    sequence: Sequence


class Interval(Record):
    """A quarter of the counted events: their number, and its duration in nanoseconds."""

    count: int
    ns: float


class Quarter(Interval):
    """A quarter of the accesses of a run, with the number of lines held in caches at its end."""

    lines_cached: int


class LatencyTotal(Record):
    """Time of accesses: total in picoseconds; mean and slowest access in nanoseconds."""

    total_ps: int
    mean_ns: float
    slowest_ns: float | None


class PartLatency(LatencyTotal):
    """Time that accesses spent in one part of the machine."""

    name: str


class StepLatency(PartLatency):
    """Time that accesses spent in one step, and the part of the machine that the step belongs to."""

    part: str


class AccessStep(Record):
    """An interval of an access: its step, and the message in flight or waiting, if any.

    Attributes:
        begin_ns: start of the interval, in nanoseconds of simulated time.
        ns: length of the interval, in nanoseconds.

    """

    step: str
    message: str | None
    begin_ns: float
    ns: float


class SlowestAccess(Record):
    """The slowest access, with the steps that took its time, in order.

    Attributes:
        access: kind of the access, such as `load`.
        core, line: numbers of its core and its line.
        issued_ns: simulated time of its issue.

    """

    access: str
    core: int
    line: int
    issued_ns: float
    latency_ns: float
    steps: Records[AccessStep]


class Resource(Record):
    """A resource with limited capacity. Of several of one kind, the one with the highest utilisation.

    Attributes:
        name: kind of resource.
        which: name of the most utilised one; `None` if there is only one.
        count: number of resources of the kind.
        utilisation: share of the time in which the most utilised one was in use, 0 to 1.
        mean: mean utilisation of all resources of the kind.
        works: true if the resource itself works while it is in use; false if accesses occupy it while they wait.

    """

    name: str
    which: str | None
    count: int
    utilisation: float
    mean: float
    works: bool


class Bottleneck(Record):
    """The bottleneck of the access rate, with the reason.

    Attributes:
        name: the resource or part that limits the rate.
        utilisation: share of the time in which it is in use or at its limit, 0 to 1.
        reason: the reason, in words.

    """

    name: str
    utilisation: float
    reason: str


class Explanation(Record):
    """Breakdown of the access latency: `parts` add up to `latency`, and so do `steps`.

    Attributes:
        accesses: number of accesses whose latency was measured.
        slowest: the slowest access, the first of several; `None` if no access was measured.
        resources: the most utilised resource of each kind.

    """

    accesses: int
    latency: LatencyTotal
    parts: Records[PartLatency]
    steps: Records[StepLatency]
    slowest: SlowestAccess | None
    resources: Records[Resource]
    limit: Bottleneck


class BouncingLine(Record):
    """A line that bounces between caches. `address` is its offset from the start of the region in bytes.

    `other_words` counts the `transfers` whose access is to another word than the last access of the other cache (false
    sharing).
    `share` is its share of the time that accesses of all lines waited at caches.

    Attributes:
        line: number of the line.

    """

    line: int
    address: int
    transfers: int
    other_words: int
    share: float


class Simulation(Record):
    """The result of a simulation. `statistics` and `messages` are `None` if there is a `failure`.

    With several kinds of caching agents, `agents` contains the workload of each, and `workload` that of the first.
    `explanation` is present if it was requested and the run succeeded.

    Attributes:
        protocol, platform: names of protocol and platform.
        settings: settings of quantities, as given.
        home: executor of the home: `model` or `rtl`.
        seed: the seed of everything random.
        oracle: true if loads were compared with the last write and permissions were monitored.
        statistics: numbers by name; the name ends in the unit if there is one.
        quarters: four parts of the run with equal numbers of accesses; `None` after a failure or for fewer than four
            accesses.
        messages: number of messages of each kind.
        warnings: sentences: reasons to doubt the result.
        bouncing_lines: at most four lines, the largest share first; `None` if there is a failure.
        run: values that depend on the machine: file, version and seconds.

    """

    protocol: str
    platform: str
    settings: list[str]
    home: str
    workload: Workload
    agents: dict[str, Workload | None] | None = None
    seed: int
    oracle: bool
    statistics: dict[str, float] | None
    quarters: Records[Quarter] | None
    messages: dict[str, int] | None
    explanation: Explanation | None = None
    failure: Failure | None
    warnings: list[str]
    bouncing_lines: Records[BouncingLine] | None
    run: dict[str, Any]
