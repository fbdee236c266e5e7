"""Remote procedure calls as a function of argument size, through pairs of lines and over a bus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit.experiments.enzian import LINE_BYTES
from cohkit.experiments.experiment import Experiment
from cohkit.experiments.plays import Stage, largest, rate, run, times
from cohkit.experiments.study import value_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from cohkit.experiments.experiment import Conditions
    from cohkit.published import Measurement
    from cohkit.shipped_types import Application
    from cohkit.types import Play

KEY = "enzian.rpc_payload"
PLATFORM = "enzian-dc-bram"
PAYLOADS = (1, 2, 5, 10, 20, 50, 100, 200)
CONTEXTS = 16
CALLS = 20
WORDS_OF_A_LINE = 16

# Label, name in keys, application, name of its size argument, and the value of that argument per line.
METHODS: list[tuple[str, str, Application, str, int]] = [
    ("lines", "lines", "rpc", "payload", 1),
    ("lines with prefetches", "hints", "rpc", "payload", 1),
    ("registers, a word of each line", "registers.1", "rpc-registers", "words", 1),
    ("registers, all words", "registers.16", "rpc-registers", "words", WORDS_OF_A_LINE),
    ("descriptors, a word of each line", "descriptors.1", "rpc-descriptors", "words", 1),
    ("descriptors, all words", "descriptors.16", "rpc-descriptors", "words", WORDS_OF_A_LINE),
]

NOTE = f"""\
Arguments and results have the given number of lines of 128 bytes each; each thread makes {CALLS} calls. Latency: one
context; rate: {CONTEXTS} contexts; throughput: the arguments that one context passes.
Lines: a call writes the lines of arguments and loads those of results one after the other, one word of each line. The
device withholds the first line of results until it has fetched all arguments, one after the other.
Lines with prefetches: those with write permission precede the loads of results, by as many lines as the platform's
cores prefetch ahead. The published throughput is line by line, which we read as without prefetches.
Registers and descriptors: as in cckit-fig10, with all words of as many lines, or with one word of each line. With all
words, they move as many bytes as lines do, but the thread spends time on each word. With one word of each line, the
thread does the same work as with lines, but the bus moves fewer bytes. A fair comparison lies between the two. The bus
is PCIe Gen3 with 16 lanes and the assumed latency of the platform (`bus.*`); these rows are baselines of this model,
not published ones.
"""
OMISSIONS = "the operating system, address translation, and writes that the CPU combines on their way to registers"


def _latency(result: Play) -> float:
    """Return the mean latency of a call in microseconds."""
    return times(result, "call").mean / 1000


def _rate(result: Play) -> float:
    """Return calls in thousands per second."""
    return rate(result, "calls") / 1000


def _limited(accesses: int) -> str:
    return f"no more than {accesses} call{'' if accesses == 1 else 's'} of each thread"


def _stages(measure: Callable[[Play], float], contexts: int, calls: int, distance: int) -> list[Stage]:
    """Return a play for each method and payload. A method's parameter counts `scale` units per line.

    Prefetches precede loads by `distance` lines.
    """
    quantity, unit = ("latency", "us") if measure is _latency else ("rate", "k/s")
    return [
        Stage(
            f"{payload}, {method}, {quantity}",
            f"{KEY}.{quantity}.{key}.{payload}",
            PLATFORM,
            application,
            {"contexts": contexts, parameter: payload * scale, "calls": calls}
            | ({"hints": distance} if key == "hints" else {}),
            measure,
            unit=unit,
            cut=calls < CALLS,
            counted="calls" if contexts > 1 else "",
            per_s=1e3,
            words=True,
        )
        for method, key, application, parameter, scale in METHODS
        for payload in PAYLOADS
    ]


def _run(conditions: Conditions) -> list[Measurement]:
    """Run the plays, and add the largest throughput."""
    calls = min(CALLS, conditions.accesses or CALLS)
    distance = int(value_of(PLATFORM, "cores.prefetch_distance", conditions.settings))
    stages = [
        *_stages(_latency, 1, calls, distance),
        *_stages(_rate, CONTEXTS, calls, distance),
    ]
    by_lines = tuple(f"{KEY}.latency.{method}." for method in ("lines", "hints"))
    latency_stages = [stage for stage in stages if stage.key.startswith(by_lines)]
    ours = run([*stages, *map(_throughput_stage, latency_stages)], "", conditions)
    # In a short run, the first calls, which fetch the lines, have more weight.
    ours = [
        measurement._replace(steady=not measurement.cut) if measurement.unit == "MiB/s" else measurement
        for measurement in ours
    ]
    return [
        *ours,
        *largest(ours, f"{KEY}.throughput.lines.", "at best, lines, throughput"),
        *largest(ours, f"{KEY}.throughput.hints.", "at best, lines with prefetches, throughput"),
    ]


def _throughput_stage(stage: Stage) -> Stage:
    """Measure the argument throughput of one thread in MiB/s, instead of the latency of calls."""

    def measure(result: Play) -> float:
        return result.parameters["payload"] * LINE_BYTES / _latency(result) * 1e6 / 2**20

    name, key = (text.replace("latency", "throughput") for text in (stage.name, stage.key))
    return stage._replace(name=name, key=key, measure=measure, unit="MiB/s")


EXPERIMENT = Experiment(
    run=_run,
    note=NOTE,
    omissions=OMISSIONS,
    headline="A CPU thread passes data to a device and takes as much back, through cache lines or over a bus.",
    axis="latency of a call (us); thousand calls/s; arguments (MiB/s)",
    along="lines of arguments, and of results",
    logarithmic="xy",
    rerun_accesses=4,
    limited=_limited,
)
