"""Plays of applications, and rows of experiments."""

from typing import Any, Literal

from cohkit.results import Record, Records
from cohkit.types.simulation import Failure, Interval, Quarter


class MessageTraffic(Record):
    """Traffic of one message type: on the links between hosts, and on the meshes inside them.

    Attributes:
        between: number of messages between hosts.
        between_bytes: bytes of these messages between hosts, with headers.
        mesh_bytes: bytes of these messages on meshes: whole flits, once in each host.

    """

    between: int
    between_bytes: int
    mesh_bytes: int


class Times(Record):
    """Durations in nanoseconds. `distribution` lists ascending values, each with the number of durations up to it.

    Attributes:
        count: number of durations.

    """

    count: int
    mean: float
    p50: float
    p99: float
    max: float
    distribution: list[tuple[float, int]]


class LinkTraffic(Record):
    """Traffic on the links of the caching agents of one kind, in both directions.

    Attributes:
        messages: number of messages.
        bytes: bytes with headers; on framed links, all bytes of the blocks, packets or flits that carry information.

    """

    messages: int
    bytes: int


class Play(Record):
    """The result of a play of an application and its threads. Measurements are `None` if there is a `failure`.

    Attributes:
        settings: settings of quantities, as given.
        sizes: sizes of the protocol file, as given.
        home: executor of the home: `model` or `rtl`.
        parameters: values of the application's parameters, given or default.
        seed: the seed of everything random.
        oracle: true if loads were compared with the last write and permissions were monitored.
        window_ns: time from the end of the warm-up to the end of the run, in which events are counted and timed.
        counts, rates_per_s: number of the events that threads and application count, by name, and their rates per
            second.
        quarters_by_counter: four parts with equal counts for each counter; `None` for fewer than four events.
        durations_ns: durations by name, in nanoseconds: those that threads measured, and those of local operations.
        links: traffic of each kind of caching agents in the window.
        tables: rows of the received tables and of the results of threads, by name; `None` unless requested.
        end_ns: simulated time at the end of the run.
        statistics, messages, quarters: as in `Simulation`, of the whole run.
        traffic: traffic by message name, on a machine of hosts that write to each other's memory; `None` on other
            machines.
        warnings: sentences: reasons to doubt the result.
        run: values that depend on the machine: file, version and seconds.

    """

    protocol: str
    platform: str
    settings: list[str]
    sizes: list[str]
    home: str
    application: str
    parameters: dict[str, int]
    seed: int
    oracle: bool
    window_ns: float | None
    counts: dict[str, int] | None
    rates_per_s: dict[str, float] | None
    quarters_by_counter: dict[str, Records[Interval] | None] | None
    durations_ns: dict[str, Times] | None
    links: dict[str, LinkTraffic] | None
    tables: dict[str, list[list[int]]] | None
    end_ns: float | None
    statistics: dict[str, float] | None
    messages: dict[str, int] | None
    traffic: dict[str, MessageTraffic] | None
    quarters: Records[Quarter] | None
    failure: Failure | None
    warnings: list[str]
    run: dict[str, Any]


class Result(Record):
    """One row of an experiment's table: the published value under `key` and our value, in `unit`.

    The published value is a number, or words in `says`; both are `None` if it is kept separately. `at_least`
    and `at_most` are published bounds. `error` is relative to the published number. `ratio` is our value divided by
    the bound, or by our number that it is compared with. `holds` is `None` if that cannot be decided. `blind` is the
    value predicted before the published result was seen. `steady` is `None` unless the value is a throughput. `run`
    contains the `command` and the `version`.
    """

    experiment: str
    name: str
    key: str
    published: float | None
    says: str | None
    at_least: float | None
    at_most: float | None
    ours: float
    unit: str
    error: float | None
    holds: bool | None
    ratio: float | None
    blind: float | None
    blind_error: float | None
    blind_holds: bool | None
    blind_ratio: float | None
    use: Literal["fitted", "predicted blind", "known", "not steady"]
    steady: bool | None
    run: dict[str, Any] | None = None
