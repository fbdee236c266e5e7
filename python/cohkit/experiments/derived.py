"""Numbers that articles state as ratios, extremes or crossovers, derived from the rows of an experiment."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from cohkit.experiments import ccix, eci_link, proxics
from cohkit.experiments.programs import LINE_BYTES, MCC_CYCLE_S
from cohkit.published import COUNT, PERCENT, Measurement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

Rows = dict[str, Measurement]
"""Rows of an experiment by key."""


class Derived(NamedTuple):
    """A number derived from rows: its name, key and unit, the keys of the rows, and the function of their values.

    The function returns `None` if the values do not determine the number, such as a crossover of curves that do not
    cross.
    """

    name: str
    key: str
    unit: str
    needed_keys: Sequence[str]
    compute: Callable[[Sequence[float]], float | None]
    sizes: Sequence[int] = ()
    """For a crossover that smaller runs may determine too: the sizes of both curves."""

    def at_sizes_of(self, keys: Mapping[str, object]) -> Derived:
        """Return the crossover of the sizes that both curves have; the number itself if it is no such crossover."""
        if not self.sizes:
            return self
        half = len(self.sizes)
        present = [
            index for index in range(half) if {self.needed_keys[index], self.needed_keys[half + index]} <= keys.keys()
        ]
        if len(present) < 2:
            return self
        needed = [self.needed_keys[offset + index] for offset in (0, half) for index in present]
        sizes = [self.sizes[index] for index in present]
        return self._replace(needed_keys=needed, compute=_crossover(sizes), sizes=sizes)


def derive(experiment: str, rows: Iterable[Measurement]) -> list[Measurement]:
    """Return the derived numbers of an experiment, without those whose rows are absent or do not determine them.

    >>> from cohkit.experiments.derived import derive
    >>> from cohkit.published import Measurement
    >>> rows = [
    ...     Measurement("far", 1.5, "M/s", "proxics.uts.far.T1L"),
    ...     Measurement("local", 6, "M/s", "proxics.uts.local.T1L"),
    ... ]
    >>> [(derived.name, derived.value) for derived in derive("proxics-uts", rows)]
    [('T1L, local over far memory', 400.0)]
    """
    by_key = {row.key: row for row in rows}
    measurements = []
    for full in DERIVED.get(experiment, ()):
        derived = full.at_sizes_of(by_key)
        needed = [by_key[key] for key in derived.needed_keys if key in by_key]
        if len(needed) < len(derived.needed_keys):
            continue
        try:
            value = derived.compute([row.value for row in needed])
        except (ValueError, ZeroDivisionError):
            # A row is 0, which has no ratio.
            continue
        if value is not None:
            steady = (
                None if all(row.steady is None for row in needed) else all(row.steady is not False for row in needed)
            )
            cut = any(row.cut for row in needed)
            measurements.append(Measurement(derived.name, value, derived.unit, derived.key, steady=steady, cut=cut))
    return measurements


def _percent(values: Sequence[float]) -> float | None:
    """Return the first value in percent of the second one."""
    value, reference = values
    return 100 * value / reference if reference else None


def _ratio(name: str, key: str, value_key: str, reference_key: str) -> Derived:
    return Derived(name, key, PERCENT, (value_key, reference_key), _percent)


def _crossover(sizes: Sequence[int]) -> Callable[[Sequence[float]], float | None]:
    """Return a function that finds the size in bytes from which the second of two curves stays above the first.

    Its argument has the values of the first curve at each size, then those of the second curve. Between two sizes, the
    logarithm of the ratio is interpolated linearly over that of the size. A second curve that is above from the
    smallest size on gives the smallest size, as an upper bound; one that ends below gives `None`.
    """

    def crossover(values: Sequence[float]) -> float | None:
        first, second = values[: len(sizes)], values[len(sizes) :]
        leads = [math.log(later / earlier) for earlier, later in zip(first, second, strict=True)]
        if leads[-1] <= 0:
            return None
        behind = [index for index, lead in enumerate(leads) if lead <= 0]
        if not behind:
            return float(sizes[0])
        last = behind[-1]
        share = -leads[last] / (leads[last + 1] - leads[last])
        return float(sizes[last] * (sizes[last + 1] / sizes[last]) ** share)

    return crossover


def _largest_ratio(values: Sequence[float]) -> float:
    """Return the largest ratio, in percent, between corresponding values of two curves."""
    half = len(values) // 2
    return max(100 * value / reference for value, reference in zip(values[:half], values[half:], strict=True))


def _ratio_of_largest(values: Sequence[float]) -> float:
    """Return the largest value of the first of two curves in percent of the largest value of the second."""
    half = len(values) // 2
    return 100 * max(values[:half]) / max(values[half:])


def _eci_link() -> Iterable[Derived]:
    # The card's engine is not published; AMD's engine for such cards has descriptors.
    dma = "dma_descriptors"
    sizes, key = eci_link.SIZES, eci_link.KEY
    for direction in ("reads", "writes"):
        curves = {
            (measure, engine): [f"{key}.{measure}.{direction}.{engine}.{size}" for size in sizes]
            for measure in ("latency", "throughput")
            for engine in ("one_link", "two_links", dma)
        }
        yield Derived(
            f"size from which DMA has more throughput, {direction}, one link",
            f"{key}.crossover.{direction}.one_link",
            "B",
            curves["throughput", "one_link"] + curves["throughput", dma],
            _crossover(sizes),
        )
        for label in ("one link", "two links"):
            engine = label.replace(" ", "_")
            yield Derived(
                f"latency over that of DMA, largest of all sizes, {direction}, {label}",
                f"{key}.latency_over_dma.{direction}.{engine}",
                PERCENT,
                curves["latency", engine] + curves["latency", dma],
                _largest_ratio,
            )
        yield Derived(
            f"throughput over that of DMA, largest of each, {direction}, two links",
            f"{key}.throughput_over_dma.{direction}.two_links",
            PERCENT,
            curves["throughput", "two_links"] + curves["throughput", dma],
            _ratio_of_largest,
        )


def _ccix_exp1() -> Iterable[Derived]:
    # The article's engine is that of TaPaSCo.
    key, dma = "ccix_exp1", "dma_registers"
    sizes = ccix.SIZES
    for card in ccix.CARDS:
        for size in (1024, 32768):
            yield _ratio(
                f"throughput over that of DMA, {size}, reads, {card}",
                f"{key}.throughput_over_dma.reads.{card}.{size}",
                f"{key}.throughput.reads.{card}.{size}",
                f"{key}.throughput.reads.{dma}.{size}",
            )
            yield _ratio(
                f"throughput over that of DMA, one at a time, {size}, reads, {card}",
                f"{key}.single_over_dma.reads.{card}.{size}",
                f"{key}.single.reads.{card}.{size}",
                f"{key}.single.reads.{dma}.{size}",
            )
        for direction in ("reads", "writes"):
            yield _ratio(
                f"latency over that of DMA, 64, {direction}, {card}",
                f"{key}.latency_over_dma.{direction}.{card}.64",
                f"{key}.latency.{direction}.{card}.64",
                f"{key}.latency.{direction}.{dma}.64",
            )
        yield Derived(
            f"size from which DMA has less latency, reads, {card}",
            f"{key}.crossover.latency.reads.{card}",
            "B",
            [f"{key}.latency.reads.{engine}.{size}" for engine in (dma, card) for size in sizes],
            _crossover(sizes),
        )


def _best(scale: float) -> Callable[[Sequence[float]], float]:
    """Return a function that multiplies the largest value by a factor."""
    return lambda values: scale * max(values)


WORD_BYTES = 8
WORDS_PER_LINE = 15
"""Words of a line of a pipe; the last word of its 16 is the tag."""
LINE_BYTES_PER_WORD = LINE_BYTES / WORDS_PER_LINE
"""Bytes of lines per word. Published rates count whole lines: 128 B in 27.4 clocks of 300 MHz are 1400 MB/s."""
REGISTERS = {"": (1, 2, 4, 8), "4_threads.": (1, 2)}
"""Numbers of registers of a thread that are measured, by the prefix of the key."""


def _proxics_pipes() -> Iterable[Derived]:
    key = "proxics.pipes"
    lines = {threads: [f"{key}.lines.{threads}{count}" for count in proxics.LINES] for threads in REGISTERS}
    all_lines = [one for keys in lines.values() for one in keys]
    yield Derived("lines, largest", f"{key}.bytes.lines.best", "MB/s", all_lines, _best(LINE_BYTES_PER_WORD))
    yield Derived(
        "clocks of the core for a line, smallest",
        f"{key}.clocks_of_line",
        COUNT,
        all_lines,
        lambda values: WORDS_PER_LINE / (max(values) * 1e6 * MCC_CYCLE_S),
    )
    yield Derived("one line of one thread", f"{key}.bytes.lines.one", "MB/s", lines[""][:1], _best(LINE_BYTES_PER_WORD))
    yield Derived(
        "8 lines of one thread over the largest",
        f"{key}.lines_over_largest.8",
        PERCENT,
        lines[""],
        lambda values: 100 * values[proxics.LINES.index(8)] / max(values),
    )
    for (threads, counts), label in zip(REGISTERS.items(), ("one thread", "four threads"), strict=True):
        yield Derived(
            f"registers of {label}, largest",
            f"{key}.bytes.registers.{label.replace(' ', '_')}",
            "MB/s",
            [f"{key}.registers.{threads}{count}" for count in counts],
            _best(WORD_BYTES),
        )


def _proxics_spawn() -> Iterable[Derived]:
    key = "proxics.spawn"
    yield Derived(
        "32768, share of verification",
        f"{key}.verification_share.32768",
        PERCENT,
        (f"{key}.verified.32768", f"{key}.as_trusted.32768"),
        lambda values: 100 * (values[0] - values[1]) / values[0],
    )


def _proxics_bulk() -> Iterable[Derived]:
    key = "proxics.bulk"
    for operation in ("set", "clear", "copy"):
        host = [f"{key}.{operation}.host.far_with_hints.{size}" for size in proxics.BULK_SIZES]
        core = [f"{key}.{operation}.core.{size}" for size in proxics.BULK_SIZES]
        yield Derived(
            f"size from which a core is faster than the host, {operation}",
            f"{key}.crossover.{operation}",
            "B",
            host + core,
            _crossover(proxics.BULK_SIZES),
            proxics.BULK_SIZES,
        )
    large = proxics.BULK_SIZES[-1]
    for operation in ("set", "clear", "copy"):
        yield _ratio(
            f"{large}, core over host with prefetches, {operation}",
            f"{key}.core_over_host.{operation}.{large}",
            f"{key}.{operation}.core.{large}",
            f"{key}.{operation}.host.far_with_hints.{large}",
        )
    yield _ratio(
        f"{large}, interleaved copies over synchronous ones",
        f"{key}.interleaved_over_synchronous.{large}",
        f"{key}.interleaved_copy.core.{large}",
        f"{key}.copy.core.{large}",
    )


def _proxics_sum() -> Iterable[Derived]:
    key = "proxics.sum"
    for width in proxics.WIDTHS:
        yield _ratio(
            f"{width}, core over host with prefetches",
            f"{key}.core_over_host.{width}",
            f"{key}.core.{width}",
            f"{key}.host.far_with_hints.{width}",
        )


def _proxics_uts() -> Iterable[Derived]:
    key = "proxics.uts"
    # Names by the keys of rows, which searches and blind values have.
    pairs = {
        "local_over_far_memory": ("local over far memory", "local", "far"),
        "hints_over_none": ("prefetches over none", "far_with_hints", "far"),
        "four_host_cores_over_one_core_beside": (
            "four host cores over one near-memory core",
            "far_with_hints.4_cores",
            "1_beside",
        ),
        "four_host_cores_without_prefetches_over_one_core_beside": (
            "four host cores without prefetches over one near-memory core",
            "far.4_cores",
            "1_beside",
        ),
        "local_over_one_core_beside": ("local over one near-memory core", "local", "1_beside"),
        "four_cores_beside_over_one": ("four near-memory cores over one", "4_beside", "1_beside"),
    }
    for tree in ("T1L", "T2L", "T3L"):
        for ratio, (name, value, reference) in pairs.items():
            yield _ratio(
                f"{tree}, {name}",
                f"{key}.{ratio}.{tree}",
                f"{key}.{value}.{tree}",
                f"{key}.{reference}.{tree}",
            )


def _cord_fig7() -> Iterable[Derived]:
    # The programs of which the article states a least distance, without the direction.
    for program in ("trns", "mocfe", "cmc2d"):
        yield Derived(
            f"{program} mp, CXL, difference from CORD's time",
            f"cord.programs.time_apart.CXL.{program}.mp",
            PERCENT,
            (f"cord.programs.time.CXL.{program}.mp",),
            lambda values: abs(values[0] - 100),
        )


DERIVED: Mapping[str, Sequence[Derived]] = {
    "eci-link": tuple(_eci_link()),
    "ccix-exp1": tuple(_ccix_exp1()),
    "cord-fig7": tuple(_cord_fig7()),
    "proxics-pipes": tuple(_proxics_pipes()),
    "proxics-spawn": tuple(_proxics_spawn()),
    "proxics-bulk": tuple(_proxics_bulk()),
    "proxics-sum": tuple(_proxics_sum()),
    "proxics-uts": tuple(_proxics_uts()),
}
"""Derived numbers by experiment."""
