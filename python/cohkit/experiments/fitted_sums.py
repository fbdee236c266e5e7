"""Sums of quantities that are fitted to a fact: a search varies their parts and holds the sums.

One quantity of a sum, the rest, is what the fact leaves for it beyond all other parts. If these vary, the rest follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cohkit import units
from cohkit.experiments.study import SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cohkit.experiments.study import Study


class FittedSum(NamedTuple):
    """Times of one part of a model whose weighted sum a fact gives."""

    part: str
    """Name of the machine, or of another part of a model."""
    fact: str
    """Measured time that the sum is part of, with its source."""
    rest: str
    """Quantity that is fitted: what the other parts leave."""
    weight: int
    """Number of times that the measured path contains the rest."""
    terms: Mapping[str, int]
    """Other quantities of the path, and the number of times that it contains each."""
    keys: Sequence[str] = ()
    """Published values that the sum holds, by the first parts of their keys: no search is made for them."""


_CPU = {"cache.request_latency": 1, "cache.fill_latency": 1}
_HOME = {**_CPU, "home.latency": 2, "home.memory_round_trip": 1}
_CARD = "agents.device.cache"


def _card(name: str, key: str, rest: str, kind: str) -> FittedSum:
    """Return the sum of a hit in the cache of a card on CCIX."""
    return FittedSum(
        name,
        f"a {kind} that hits the cache of the card (CCIX)",
        f"{_CARD}.{rest}",
        1,
        {f"{_CARD}.request_latency": 1},
        [key],
    )


SUMS = (
    FittedSum(
        "thunderx1-2s",
        "a read of LLC+DDR (CCKit, table 2)",
        "link.latency",
        2,
        {**_HOME, "home.llc_latency": 1, "dram.controller_latency": 1},
        ["enzian.read_latency.llc_ddr"],
    ),
    FittedSum(
        "enzian-dc-bram",
        "a read of DC+BRAM (CCKit, table 2)",
        "link.latency",
        2,
        _HOME,
        ["enzian.read_latency.dc_bram"],
    ),
    FittedSum(
        "enzian-dc-ddr",
        "a read of DC+DDR (CCKit, table 2)",
        "dram.controller_latency",
        1,
        {**_HOME, "link.latency": 2},
        ["enzian.read_latency.dc_ddr"],
    ),
    FittedSum(
        "thunderx1-2s-eci",
        "150 ns from cache to cache (ECI note)",
        "link.latency",
        2,
        {**_HOME, "bram.latency": 1},
        ["thunderx1_2s_eci_note.latency"],
    ),
    _card("n1sdp-u280", "ccix.local_hit.u280.read", "hit_latency", "read"),
    _card("n1sdp-u280", "ccix.local_hit.u280.write", "store_hit_latency", "write"),
    _card("n1sdp-vck5000", "ccix.local_hit.vck5000.read", "hit_latency", "read"),
    _card("n1sdp-vck5000", "ccix.local_hit.vck5000.write", "store_hit_latency", "write"),
    FittedSum(
        "near-memory",
        "103 ns of a load from the host's memory (AnandTech article 10353)",
        "host.fill",
        1,
        {"host.request": 1},
    ),
    FittedSum(
        "near-memory",
        "a read of DC+DDR (CCKit, table 2)",
        "device.path",
        1,
        {"host.request": 1, "host.fill": 1, "link.latency": 2, "dram.controller_latency": 1},
    ),
    FittedSum(
        "near-memory",
        "a third of this read for a fetch of a core (Proxics, table 1)",
        "copy.path",
        1,
        {"dram.controller_latency": 1},
        ["proxics.measured.latency_external_over_internal_percent"],
    ),
    FittedSum(
        "dma",
        "550 ns of a read of 64 bytes (pcie-bench)",
        "memory_latency",
        1,
        {"delay": 2},
    ),
)
"""All sums. A rest is never a term of an earlier sum of its part."""


class HeldSums:
    """Sums that concern the quantities of a study.

    A setting of parts that would drive a rest out of its range is taken as a direction: all parts of the sums of that
    machine go as far as the rest may.
    """

    def __init__(self, study: Study) -> None:
        """Select the sums whose rest and at least one other part have ranges in the study."""
        self._study = study
        self.sums: list[tuple[str, FittedSum]] = []
        parts = dict.fromkeys(name.partition(SEPARATOR)[0] for name in study.assumptions)
        for part in parts:
            for one in SUMS:
                names = [f"{part}{SEPARATOR}{name}" for name in (one.rest, *one.terms)]
                rest, *terms = (name in study.ranges for name in names)
                # A machine of two platforms has the quantities of its first one under their names.
                if part.partition("+")[0] == one.part and rest and any(terms):
                    self.sums.append((part, one))

    @property
    def rests(self) -> frozenset[str]:
        """Names of the quantities that follow from others."""
        return frozenset(f"{part}{SEPARATOR}{one.rest}" for part, one in self.sums)

    def descriptions(self) -> list[str]:
        """Return each sum in words, once for all machines with the same one."""
        return list(dict.fromkeys(f"{part}{SEPARATOR}{one.rest} follows from {one.fact}" for part, one in self.sums))

    def holds(self, key: str) -> bool:
        """Return true if a sum holds the published value of this key."""
        return any(key == start or key.startswith(f"{start}.") for _, one in self.sums for start in one.keys)

    def ends(self) -> dict[str, tuple[str, ...]]:
        """Return the ends of ranges that the sums allow, without the rests."""
        found = {}
        for name, ends in self._study.assumptions.items():
            if name not in self.rests:
                allowed = tuple(dict.fromkeys(self.resolve({name: end})[name] for end in ends))
                own = self._study.ranges[name].value if name in self._study.ranges else None
                if others := tuple(end for end in allowed if end != own):
                    found[name] = others
        return found

    def resolve(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Return settings with the rests that follow from them, in the order of the sums."""
        resolved = dict(settings)
        for part in dict.fromkeys(part for part, _ in self.sums):
            moves = self._moves(part, settings)
            if moves:
                scale = min([1.0, *self._limits(part, moves)])
                for name, move in moves.items():
                    value = _picoseconds(self._study.ranges[name].value) + scale * move
                    if name in self.rests or scale < 1:
                        resolved[name] = f"{round(value) / 1000:.15g}ns"
        return resolved

    def _moves(self, part: str, settings: Mapping[str, str]) -> dict[str, float]:
        """Return the distances of the parts of sums from their values, in picoseconds, those of the rests included."""
        moves: dict[str, float] = {}
        for _, one in self._sums_of(part):
            total = 0.0
            for term, count in one.terms.items():
                name = f"{part}{SEPARATOR}{term}"
                if name in settings and name not in self.rests:
                    moves[name] = _picoseconds(settings[name]) - _picoseconds(self._study.ranges[name].value)
                total += count * moves.get(name, 0)
            if total:
                moves[f"{part}{SEPARATOR}{one.rest}"] = -total / one.weight
        return moves

    def _limits(self, part: str, moves: Mapping[str, float]) -> Iterator[float]:
        """Yield the shares of the moves that each rest allows."""
        for _, one in self._sums_of(part):
            name = f"{part}{SEPARATOR}{one.rest}"
            if move := moves.get(name):
                value, low, high = map(_picoseconds, self._study.ranges[name])
                yield ((high if move > 0 else low) - value) / move

    def _sums_of(self, part: str) -> list[tuple[str, FittedSum]]:
        return [held for held in self.sums if held[0] == part]


def _picoseconds(text: str) -> float:
    return units.quantity(text, key="a fitted sum").to("ps")
