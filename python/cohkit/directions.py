"""Directions of published comparisons: ratios on one side of 1, orders of two published numbers, and crossovers.

An error in percent does not say on which side of 1 our ratio is, or that two of our curves do not cross.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cohkit.experiments import ccix, eci_link, proxics
from cohkit.experiments.derived import DERIVED
from cohkit.published import PERCENT, Provenance, Published
from cohkit.reproduce import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cohkit.types import Result

RATIOS = (
    "ccix_exp1.throughput_over_dma",
    "ccix_exp1.latency_over_dma",
    "cord.programs",
    "cord.sensitivity",
    "proxics.measured.latency_external_over_internal_percent",
    "proxics.sum.core_over_host",
    "proxics.uts",
)
"""First parts of the keys of percentages that compare two sides, which are equal at 100."""

PAIRS: Mapping[str, str] = {
    "enzian.read_latency.llc_ddr.random": "enzian.read_latency.llc_ddr.sequential",
    "enzian.read_latency.dc_ddr.random": "enzian.read_latency.dc_ddr.sequential",
    "enzian.read_latency.dc_bram.random": "enzian.read_latency.dc_bram.sequential",
    "enzian.invalidation.dc_bram.clean.1024": "enzian.invalidation.dc_ddr.clean.1024",
    "enzian.shared_table.cpu.0": "enzian.shared_table.fpga.0",
    "enzian.shared_table.cpu.100": "enzian.shared_table.fpga.100",
    "enzian.prefetcher.with.best": "enzian.prefetcher.without.best",
    "ccix.local_hit.u280.write": "ccix.local_hit.u280.read",
    "ccix.local_hit.vck5000.write": "ccix.local_hit.vck5000.read",
    "proxics.measured.internal_bandwidth": "proxics.host.external_bandwidth",
    "proxics.pipes.bytes.registers.four_threads": "proxics.pipes.bytes.registers.one_thread",
}
"""Numbers that are published beside another one of the same program under another condition, with that one."""
OTHER_BLIND = ("enzian.prefetcher.with.best",)
"""Keys whose blind value is of another measurement than ours, so that its direction is not judged: the blind values of
the prefetcher are those of the best of up to eight threads, and the compared ones of up to four."""
LEAST_DIFFERENCE = 0.001
"""Least difference between two numbers, as a share of the second, that counts as an order."""


class Curves(NamedTuple):
    """Two curves that cross as published."""

    sizes: Sequence[int]
    """Sizes at which ours are measured, in bytes."""
    first: str
    """Side that is ahead below the crossover."""
    second: str
    """Side that is ahead above the crossover."""


CROSSOVERS: Mapping[str, Curves] = {
    "eci_link.crossover": Curves(eci_link.SIZES, "the link", "DMA"),
    "ccix_exp1.crossover": Curves(ccix.SIZES, "the card", "DMA"),
    "proxics.bulk.crossover": Curves(proxics.BULK_SIZES, "the host", "the core"),
}
"""Curves of crossovers, by the first parts of their keys."""
CROSSOVER_FACTOR = 2
"""Largest factor between a published crossover and one of ours that counts as right: published sizes are powers of two,
and *about* one of them is nearer to it than to the next ones."""


class Direction(NamedTuple):
    """Judgement of our number, and of the blind one, by the direction of the published comparison."""

    experiment: str
    name: str
    """Name of the compared quantity."""
    says: str
    """Published direction in words."""
    kind: str
    """*direction* or *crossover*."""
    provenance: Provenance
    ours: str
    """Our direction in words, if an error does not show it; otherwise empty."""
    holds: bool
    blind_holds: bool | None
    """Judgement of the blind value; `None` if there is none."""
    ahead: str | None = None
    """Side that is ahead if our curves do not cross, so that there is no size to compare."""
    ahead_at: str = "every"
    """Size at which this side is ahead: *every*, or *the largest*."""
    blind_ahead: str | None = None
    """The same for the blind value, and the side that is ahead at the largest size if that value is `none`."""

    @property
    def verdict(self) -> str:
        """Our judgement in words."""
        found = f"{self.kind} {'right' if self.holds else 'wrong'}"
        return f"{found}: one side ahead at {self.ahead_at} size" if self.ahead else found


def directions(rows: Iterable[Result], published: Published) -> dict[str, Direction]:
    """Return the judgements of rows by key, and those of published crossovers without a row."""
    by_key = {row["key"]: row for row in rows}
    found: dict[str, Direction] = {}
    for key, row in by_key.items():
        if curves := _curves(key):
            found[key] = _crossover(row, curves, is_blind_absence=published.is_blind_absence(key))
        elif key in PAIRS and PAIRS[key] in by_key:
            found[key] = _pair(row, by_key[PAIRS[key]])
        elif row["unit"] == PERCENT and row["published"] not in (None, 100) and _starts(key, RATIOS):
            found[key] = _ratio(row)
    for experiment, numbers in DERIVED.items():
        for one in numbers:
            curves = _curves(one.key)
            size = published.value(one.key, unit=one.unit) if curves and one.key not in by_key else None
            if curves and size is not None:
                blind = published.blind(one.key, unit=one.unit)
                is_absent = published.is_blind_absence(one.key)
                found[one.key] = Direction(
                    experiment=experiment,
                    name=one.name,
                    says=number(size, one.unit),
                    kind="crossover",
                    provenance=published.provenance(one.key),
                    ours=f"none: {curves.first} ahead at the largest size",
                    holds=False,
                    blind_holds=False if is_absent else None if blind is None else _is_near(blind, size, curves),
                    ahead=curves.first,
                    ahead_at="the largest",
                    blind_ahead=curves.first if is_absent else None,
                )
    return found


def _starts(key: str, starts: Iterable[str]) -> str | None:
    """Return the first parts of a key among these, if any."""
    return next((start for start in starts if key == start or key.startswith(f"{start}.")), None)


def is_crossover(key: str) -> bool:
    """Return true if a key is that of a crossover."""
    return _curves(key) is not None


def _curves(key: str) -> Curves | None:
    start = _starts(key, CROSSOVERS)
    return CROSSOVERS[start] if start else None


def _judged(row: Result, says: str, ours: str, *, holds: bool, blind_holds: bool | None) -> Direction:
    return Direction(row["experiment"], row["name"], says, "direction", row["use"], ours, holds, blind_holds)


def _ratio(row: Result) -> Direction:
    """Judge the side of 100 %."""
    is_above = row["published"] > 100
    blind = row["blind"]
    return _judged(
        row,
        f"{number(row['published'], row['unit'])}, {'above' if is_above else 'below'} 100",
        number(row["ours"], row["unit"]),
        holds=_is_in_order(row["ours"], 100, is_above=is_above),
        blind_holds=None if blind is None else _is_in_order(blind, 100, is_above=is_above),
    )


def _is_in_order(value: float, reference: float, *, is_above: bool) -> bool:
    difference = (value - reference) / reference
    return (difference if is_above else -difference) > LEAST_DIFFERENCE


def _pair(row: Result, other: Result) -> Direction:
    """Judge the order of two numbers by that of the published ones."""
    is_above = row["published"] > other["published"]
    blinds = (row["blind"], other["blind"])
    return _judged(
        row,
        f"{number(row['published'], row['unit'])}, {'above' if is_above else 'below'} the "
        f"{number(other['published'], other['unit'])} of *{other['name']}*",
        f"{number(row['ours'], row['unit'])} beside {number(other['ours'], other['unit'])}",
        holds=_is_in_order(row["ours"], other["ours"], is_above=is_above),
        blind_holds=None if None in blinds or row["key"] in OTHER_BLIND else _is_in_order(*blinds, is_above=is_above),
    )


def _is_near(size: float, published: float, curves: Curves) -> bool:
    """Return whether a crossover is near the published size.

    A number that is the smallest size is an upper bound, and no crossover: the second side is ahead from there on.
    """
    return size > min(curves.sizes) and 1 / CROSSOVER_FACTOR <= size / published <= CROSSOVER_FACTOR


def _crossover(row: Result, curves: Curves, *, is_blind_absence: bool) -> Direction:
    """Judge a crossover: near the published size, elsewhere, or none as the second side is ahead at every size."""
    smallest = min(curves.sizes)
    blind, blind_ahead = row["blind"], None
    if is_blind_absence:
        blind_ahead = curves.first
    elif blind is not None and blind <= smallest:
        blind_ahead = curves.second
    return Direction(
        experiment=row["experiment"],
        name=row["name"],
        says=number(row["published"], row["unit"]),
        kind="crossover",
        provenance=row["use"],
        ours=number(row["ours"], row["unit"])
        if row["ours"] > smallest
        else f"none: {curves.second} ahead from {number(smallest, row['unit'])} on",
        holds=_is_near(row["ours"], row["published"], curves),
        blind_holds=False if is_blind_absence else None if blind is None else _is_near(blind, row["published"], curves),
        ahead=None if row["ours"] > smallest else curves.second,
        blind_ahead=blind_ahead,
    )


def without_numbers_of_missing_crossovers(rows: Sequence[Result], found: Mapping[str, Direction]) -> list[Result]:
    """Return the rows without the errors of crossovers that do not exist: these are no numbers of curves that cross."""
    corrected = []
    for row in rows:
        if direction := found.get(row["key"]):
            errors = {"error": None} if direction.ahead else {}
            errors |= {"blind_error": None} if direction.blind_ahead else {}
            corrected.append(type(row)(row | errors) if errors else row)
        else:
            corrected.append(row)
    return corrected
