"""A shared table and an invalidation engine over four protocols, with the memory at the device or at the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cohkit.errors import InputError
from cohkit.experiments.experiment import Experiment
from cohkit.experiments.plays import Stage, limited_time, run
from cohkit.protocols import parse, shipped
from cohkit.types import LinkTraffic

if TYPE_CHECKING:
    from collections.abc import Callable

    from cohkit._cohkit import Protocol
    from cohkit.experiments.experiment import Conditions
    from cohkit.published import Measurement
    from cohkit.shipped_types import Application
    from cohkit.types import Play

KEY = "symmetry"
LANES: dict[str, int | str] = {"lanes": 16, "lane_rate": "4GB/s"}
"""Link settings, for all framings: 32 Gb/s per lane before line coding."""
ROWS = 1024
SHARES = (10, 100)
"""Percentages of the rows that the device increments as well."""
LINES = 512
"""Lines that the engine invalidates at the host, which has accessed them before the engine starts."""
BEGIN_US = 500
AT_A_TIME = (1, 8, 64)
"""Rows or lines that the device processes concurrently."""
NARROW = 64
"""Bytes per line where all protocols use the same line size."""


class Setup(NamedTuple):
    """A protocol with its machine and framing, and the caching agents at the opposite end of the link (`across`).

    Attributes:
        name: name in the table.
        protocol: name of the shipped protocol.
        machine: the platform.
        framing: layer of the framed link.
        line: bytes of a line of the protocol.
        across: kind of the caching agents at the opposite end of the link.

    """

    name: str
    protocol: str
    machine: str
    framing: str
    line: int
    across: str
    cached: bool = False
    """True if the memory belongs to the host, and the device caches it."""


SETUPS = (
    Setup("ECI", "eci", "peers-device-memory", "eci", 128, "cpu"),
    Setup("CXL.mem", "cxl-mem", "peers-device-memory", "cxl-256", 64, "host"),
    Setup("CXL bias", "cxl-bias", "peers-device-memory", "cxl-68", 64, "host"),
    Setup("CXL.cache", "cxl-cache", "peers-host-memory", "cxl-cache-68", 64, "device", cached=True),
)

_INCREMENTS = ("increments", "device increments")
_INVALIDATIONS = ("invalidated",)


def _settings(setup: Setup) -> dict[str, int | str]:
    """Return the settings of the framed link, and of caches of equal size for all line sizes."""
    link = f"agents.{setup.across}.link" if setup.cached else "link"
    settings: dict[str, int | str] = {f"{link}.layer": setup.framing}
    settings |= {f"{link}.{name}": value for name, value in LANES.items()}
    if setup.line > NARROW:
        # The same cache capacity in bytes for all line sizes.
        settings["cache.sets"] = 1024 * NARROW // setup.line
    return settings


def _narrow(setup: Setup) -> Protocol:
    """Return the protocol with lines of `NARROW` bytes."""
    text = shipped(setup.protocol).text
    declaration = f"line {setup.line} bytes"
    if declaration not in text:
        message = f"the text of {setup.protocol} does not say `{declaration}`"
        raise InputError(message)
    return parse(
        text.replace(declaration, f"line {NARROW} bytes"), file=f"{setup.protocol} with lines of {NARROW} bytes"
    )


def _count(result: Play, names: tuple[str, ...]) -> int:
    """Return the number of these events in the window. Raise `InputError` if there are none."""
    counts = result.counts or {}
    if not (number := sum(counts.get(name, 0) for name in names)):
        message = f"no `{names[0]}` in {result.window_ns or 0:.15g} ns; more accesses are needed"
        raise InputError(message)
    if counts.get("touched"):
        message = f"the host has not touched all lines in {BEGIN_US} us"
        raise InputError(message)
    return number


def _time(names: tuple[str, ...]) -> Callable[[Play], float]:
    """Return a function that returns the time per event in nanoseconds."""
    return lambda result: (result.window_ns or 0) / _count(result, names)


def _link_traffic(result: Play, setup: Setup) -> LinkTraffic:
    """Return the traffic on the link to the caching agents at its opposite end."""
    # Nothing is recorded if nothing was sent.
    return (result.links or {}).get(setup.across, LinkTraffic(messages=0, bytes=0))


def _bytes(setup: Setup, names: tuple[str, ...]) -> Callable[[Play], float]:
    """Return a function that returns the bytes on the link per event."""
    return lambda result: _link_traffic(result, setup)["bytes"] / _count(result, names)


def _messages(setup: Setup, names: tuple[str, ...]) -> Callable[[Play], float]:
    """Return a function that returns the messages on the link per event."""
    return lambda result: _link_traffic(result, setup)["messages"] / _count(result, names)


def _quantities(stage: Stage, setup: Setup, names: tuple[str, ...]) -> list[Stage]:
    """Return the three numbers of a play; their names and keys end with the quantity."""
    measures = {
        "time": ("ns", _time(names)),
        "bytes": ("B", _bytes(setup, names)),
        "messages": ("messages", _messages(setup, names)),
    }
    return [
        stage._replace(name=f"{stage.name}, {quantity}", key=f"{stage.key}.{quantity}", measure=measure, unit=unit)
        for quantity, (unit, measure) in measures.items()
    ]


def _stages(
    setup: Setup, key: str, lines: int, protocol: Protocol | str, settings: dict[str, int | str]
) -> list[Stage]:
    """Return the plays of a setup: the table by share of contended rows, and the engine on clean and dirty lines."""

    def stage(name: str, number: int, application: Application, numbers: dict[str, int]) -> Stage:
        return Stage(
            f"{number}, {name}, {setup.name}",
            f"{key}.{name.replace(' %', '').replace(' ', '_')}.{setup.protocol}.{number}",
            setup.machine,
            application,
            {**numbers, "outstanding": number, "cached": int(setup.cached)},
            _time(()),
            protocol=protocol,
            settings=settings,
        )

    stages = []
    for share in SHARES:
        for number in AT_A_TIME:
            table = stage(f"table {share} %", number, "shared-table", {"rows": ROWS, "contended": 10 * share})
            stages += _quantities(table._replace(time_us=200, warm_up_us=100), setup, _INCREMENTS)
    for dirty, state in enumerate(("clean", "dirty")):
        for number in AT_A_TIME:
            numbers = {"lines": lines, "dirty": dirty, "after": 1000 * BEGIN_US}
            engine = stage(f"engine {state}", number, "invalidation", numbers)
            stages += _quantities(engine._replace(warm_up_us=BEGIN_US, cut=lines < LINES), setup, _INVALIDATIONS)
    return stages


def _lines(conditions: Conditions) -> int:
    """Return the number of lines of the engine, limited by the conditions."""
    return LINES if conditions.accesses is None else max(1, min(LINES, conditions.accesses))


def _framed(conditions: Conditions) -> list[Measurement]:
    """Run all setups with framed links and each protocol's own line size."""
    stages_by_setup = (
        _stages(setup, f"{KEY}.framed", _lines(conditions), setup.protocol, _settings(setup)) for setup in SETUPS
    )
    return run([stage for stages in stages_by_setup for stage in stages], "", conditions)


def _piped(conditions: Conditions) -> list[Measurement]:
    """Run all setups with pipes as links and lines of equal size."""
    stages_by_setup = (_stages(setup, f"{KEY}.pipe", _lines(conditions), _narrow(setup), {}) for setup in SETUPS)
    return run([stage for stages in stages_by_setup for stage in stages], "", conditions)


def _limited(accesses: int) -> str:
    return f"{limited_time(accesses)}; of the engine no more than {accesses} line{'' if accesses == 1 else 's'}"


_NOTE = f"""\
A host and a device across a link of 16 lanes of 32 Gb/s and 50 ns one way, with a cache of 1 MiB on each side that
caches (peers-device-memory, peers-host-memory). With ECI and CXL.mem, the device has memory and home, and the host
caches lines. The device takes a line by a local operation. With ECI, that is a locking clean-invalidate. With CXL.mem,
it is device bias after a back-invalidate snoop; with CXL bias, device bias after a request to the host over CXL.cache,
as before CXL 3. With CXL.cache, the host has memory and home, and device and host cache lines. Table: one thread of the
host increments each of {ROWS} rows of a line in turn, and the device increments 10 or 100 % of them, the given number
at a time, in 200 us after 100 us of warm-up. Engine: the device takes each of {LINES} lines that the host has read
(clean) or written (dirty). Numbers are per increment by either side, or per line taken; bytes and messages are those
between host and device, in both directions.
"""
_OMISSIONS = "other traffic on the lanes, and the lower speed of a home in a device than in a host"
_AXIS = "time of one (ns); link bytes of one; messages of one"


def _experiment(note: str, run: Callable[[Conditions], list[Measurement]], headline: str) -> Experiment:
    return Experiment(
        run=run,
        note=_NOTE + note,
        omissions=_OMISSIONS,
        headline=headline,
        axis=_AXIS,
        along="rows or lines that the device works on at a time",
        logarithmic="xy",
        rerun_accesses=2**11,
        limited=_limited,
    )


EXPERIMENTS: dict[str, Experiment] = {
    "symmetric-vs-asymmetric": _experiment(
        """\
Lines have 128 bytes in ECI's blocks, and 64 bytes in flits of 256 bytes (CXL.mem with back-invalidate) and of 68 bytes
(CXL bias, CXL.cache). Bytes are those of blocks and flits that are not idle.
""",
        _framed,
        "One table, four protocols over the same lanes, each with its own line size and framing.",
    ),
    "symmetric-vs-asymmetric-64": _experiment(
        """\
All protocols have lines of 64 bytes, and a pipe of 63 GB/s with headers of 16 bytes.
""",
        _piped,
        "One table, four protocols, all with lines of 64 bytes over a pipe.",
    ),
}
"""Experiments by name, in order."""
