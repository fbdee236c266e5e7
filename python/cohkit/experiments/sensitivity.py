"""Sensitivity of numbers to assumed quantities: those that decide, and the search for published values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cohkit.experiments.experiment import Conditions, Span

Case = tuple[str, dict[str, str]]
"""Name of a number, and the quantities that are set for it."""


class Evaluator(Protocol):
    """Numbers that can be computed again with other quantities."""

    def evaluate(self, cases: Sequence[Case], conditions: Conditions) -> list[float]:
        """Return the number of each case."""


class Reach(NamedTuple):
    """Result of the search for one number."""

    name: str
    target: float
    """Published number, or the published bound that our number violates."""
    is_met: bool
    """True if a setting inside all ranges meets the target."""
    value: float
    """Number with `settings`; if the target is met, at the target or beyond it."""
    settings: dict[str, str]
    """Quantities at the ends of their ranges, in order of their effect. If the target is met, the last one is needed
    only in part."""


MIN_EFFECT = 1e-4
"""Smallest relative effect of a quantity that takes part in the search."""
DECIDING_SHARE = 0.8
"""Share of all effects that the deciding quantities have together."""


def deciding(span: Span) -> list[str]:
    """Return the fewest quantities that have most of the effect on a number, the most effective one first.

    The effect of a quantity is the distance between the lowest and the highest number over its range.
    """
    numbers: dict[str, list[float]] = {}
    for rerun in span.reruns:
        numbers.setdefault(rerun.quantity, [span.ours]).append(rerun.ours)
    effects = {quantity: max(values) - min(values) for quantity, values in numbers.items()}
    total, share, names = sum(effects.values()), 0.0, []
    for quantity, effect in sorted(effects.items(), key=lambda item: -item[1]):
        if effect == 0 or share >= DECIDING_SHARE * total:
            break
        share += effect
        names.append(quantity)
    return names


def search(
    evaluator: Evaluator, spans: Sequence[Span], targets: Mapping[str, float], conditions: Conditions
) -> list[Reach]:
    """Search for settings inside the ranges with which numbers meet their targets.

    For each number, quantities are ordered by their effect toward the target. The search sets them to that end of their
    range, one after the other, and finds the shortest such sequence that reaches the target. If all of them together do
    not reach it, the target counts as not met.
    """
    sequences = {span.name: _toward(span, targets[span.name]) for span in spans if span.name in targets}
    origins = {span.name: span.ours for span in spans}
    # For each number: lengths of a sequence that is too short, and of one that suffices, with the value of the latter.
    found: dict[str, Reach] = {}
    bounds = {}
    full = evaluator.evaluate([(name, dict(sequence)) for name, sequence in sequences.items()], conditions)
    for (name, sequence), value in zip(sequences.items(), full, strict=True):
        is_met = _passes(origins[name], value, targets[name])
        found[name] = Reach(name, targets[name], is_met, value, dict(sequence))
        if is_met and sequence:
            bounds[name] = (0, len(sequence))
    while pending := {name: (low + high) // 2 for name, (low, high) in bounds.items() if high - low > 1}:
        cases = [(name, dict(sequences[name][:length])) for name, length in pending.items()]
        for (name, length), value in zip(pending.items(), evaluator.evaluate(cases, conditions), strict=True):
            low, high = bounds[name]
            if _passes(origins[name], value, targets[name]):
                bounds[name] = (low, length)
                found[name] = found[name]._replace(value=value, settings=dict(sequences[name][:length]))
            else:
                bounds[name] = (length, high)
    return list(found.values())


def _passes(origin: float, value: float, target: float) -> bool:
    """Return whether the target is between two numbers, or equal to one of them."""
    return min(origin, value) <= target <= max(origin, value)


def _toward(span: Span, target: float) -> list[tuple[str, str]]:
    """Return the quantities with an effect toward the target, each with its more effective end, in that order."""
    if target == span.ours:
        return []
    direction = 1 if target > span.ours else -1
    best: dict[str, tuple[float, str]] = {}
    for rerun in span.reruns:
        effect = (rerun.ours - span.ours) * direction
        if effect > MIN_EFFECT * abs(span.ours) and effect > best.get(rerun.quantity, (0.0, ""))[0]:
            best[rerun.quantity] = (effect, rerun.value)
    ordered = sorted(best.items(), key=lambda item: -item[1][0])
    return [(quantity, value) for quantity, (_, value) in ordered]
