"""Unbalanced tree search in far memory, by the host and by near-memory cores."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cohkit.experiments.experiment import Experiment
from cohkit.experiments.programs import (
    CYCLE_S,
    SCALE_NOTE,
    Run,
    missing_tools,
    run_programs,
    scaled_capacities,
    scales,
)
from cohkit.experiments.proxics import OMISSIONS
from cohkit.published import COUNT, Measurement

if TYPE_CHECKING:
    from cohkit.experiments.experiment import Conditions


class _Tree(NamedTuple):
    """A reduced published tree: its name, its published number of nodes, and the arguments of programs.

    Attributes:
        name: published name.
        published: published number of nodes of the full tree.
        type, shape, depth, branching, children, seed: fields of `struct tree` in `nearmemory/programs/tree.h`.

    """

    name: str
    published: int
    type: int
    shape: int
    depth: int
    branching: int
    child_probability: int
    """Probability that a node has children, in millionths."""
    children: int
    seed: int


_SCALE = 256
# Types, shapes and seeds (except that of T3L) are as published; depth, branching and probability yield about as many
# nodes as published.
_TREES = [
    _Tree("T1L", 102_181_082, 1, 3, 9, 4, 0, 0, 29),
    _Tree("T2L", 96_793_510, 1, 2, 16, 6, 0, 0, 220),
    _Tree("T3L", 111_345_631, 0, 0, 0, 1000, 198_800, 5, 7),
]
_SEARCHES = {
    "local": "local",
    "far": "far",
    "far with hints": "far with prefetches",
    "far, 4 cores": "far, 4 host cores",
    "far with hints, 4 cores": "far with prefetches, 4 host cores",
    "1 beside": "1 near-memory core",
    "4 beside": "4 near-memory cores",
}
"""Names of rows by the labels that the program prints, of which keys are made."""


def _uts(conditions: Conditions) -> list[Measurement]:
    """Return the rate of visited nodes for each tree and method, and the factor by which a tree is reduced."""
    max_nodes = conditions.accesses or 1 << 20
    # The host's capacities scale like the tree.
    capacities = [scaled_capacities(min(max_nodes, tree.published // _SCALE), tree.published) for tree in _TREES]
    runs = [
        Run("uts", (*tree[2:], max_nodes), {**settings, "host.cores": "4"})
        for tree, settings in zip(_TREES, capacities, strict=True)
    ]
    results = run_programs(runs, conditions)
    cut = conditions.accesses is not None
    ours: list[Measurement] = []
    for tree, result in zip(_TREES, results, strict=True):
        for method, name in _SEARCHES.items():
            rate = result["all"] / (result[method] * CYCLE_S) / 1e6
            key = f"proxics.uts.{method.replace(', ', '.').replace(' ', '_')}.{tree.name}"
            ours.append(Measurement(f"{tree.name}, {name}", rate, "M/s", key, cut=cut))
    for tree, result, settings in zip(_TREES, results, capacities, strict=True):
        smaller = tree.published / result["all"]
        ours.append(Measurement(f"{tree.name}, smaller", smaller, COUNT, f"proxics.uts.smaller.{tree.name}", cut=cut))
        for label, name, scale in scales(settings):
            key = f"proxics.uts.scale.{name}.{tree.name}"
            ours.append(Measurement(f"{tree.name}, scale of the {label}", scale, COUNT, key, cut=cut))
    return ours


def _nodes(accesses: int) -> str:
    return f"no more than {accesses} node{'' if accesses == 1 else 's'} each, and the children of one; {SCALE_NOTE}"


EXPERIMENTS = {
    "proxics-uts": Experiment(
        run=_uts,
        note=f"""\
Trees of the benchmark UTS, about {_SCALE} times smaller than T1L, T2L and T3L ("smaller": factor), like the caches of
the host and the reach of its translations ("scale"; the first-level cache has at least one set). Nodes are SHA-1
hashes. They are in memory before the search, each in a separate line, siblings in adjacent lines. The host searches
depth first, or prefetches as many nodes ahead as its last-level cache may have lines in flight (64; a quarter for each
of four cores). Four host cores, with prefetches or without, take parts of the tree from each other. Near-memory cores
have 8 outstanding reads. Four of them deal the children of each node equally to all by FIFOs, as the published ones do;
a core without nodes takes those that it has received, and credits show when all are done. The unit is million nodes per
second, from the last start of a program to the last number that a core sends. Nodes, leaves and depth are compared.
""",
        omissions=OMISSIONS,
        headline="The host and near-memory cores search trees in far memory; prefetches overlap more reads.",
        axis="nodes (M/s); how many times smaller",
        rerun_accesses=2**10,
        limited=_nodes,
        needs=missing_tools,
    ),
}
