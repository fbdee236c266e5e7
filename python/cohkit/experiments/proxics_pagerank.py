"""PageRank with scores in far memory, summed by the host or by near-memory cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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

_KEY = "proxics.pagerank"
_SCALE = 1024
"""Reduction factor of the published graphs and of the host's capacities."""


class _Graph(NamedTuple):
    """A published graph: its name, its number for programs, and its sizes.

    Attributes:
        name: published name.
        shape: number of the shape, as in `nearmemory/programs/graph.h`.
        nodes: number of nodes.
        edges: number of entries in all lists of neighbours.

    """

    name: str
    shape: int
    nodes: int
    edges: int
    most: int
    """Maximum number of neighbours of a node."""


_GRAPHS = [
    _Graph("kronecker", 0, 1 << 26, 1_051_900_000, 1_003_753),
    _Graph("social", 1, 61_600_000, 1_468_400_000, 770_155),
    _Graph("clustered", 2, 50_600_000, 1_930_300_000, 8_563_807),
    _Graph("roads", 3, 23_900_000, 57_700_000, 9 * _SCALE),
    _Graph("uniform", 4, 1 << 25, 1_073_700_000, 113 * _SCALE),
]
_METHODS = ("local", "far", "far with hints", "line pipes", "register pipes")
_HINTS, _LINES, _ALL = 1 << 2, 1 << 3, 0b11111
_CORES = (1, 2, 4)
_FEWEST = 128


def _program_size(graph: _Graph, conditions: Conditions) -> tuple[int, int, int, int]:
    """Return a graph's arguments for the program, scaled, within the limit of edges."""
    full = graph.edges // _SCALE
    edges = max(_FEWEST, min(full, conditions.accesses or full))
    nodes = max(_FEWEST // 2, graph.nodes // _SCALE * edges // full)
    return graph.shape, nodes, edges, max(1, graph.most // _SCALE)


def _capacities(graph: _Graph, conditions: Conditions) -> dict[str, str]:
    """Scale the host's capacities like the graph."""
    _, _, edges, _ = _program_size(graph, conditions)
    return scaled_capacities(edges, graph.edges)


def _pagerank(conditions: Conditions) -> list[Measurement]:
    """Return rates, traffic and lines for all graphs, and rates for all numbers of cores on the first graph."""
    shapes = [
        Run("pagerank", (*_program_size(graph, conditions), 1, 4, _ALL, 2), _capacities(graph, conditions))
        for graph in _GRAPHS
    ]
    grid = [(cores, mccs) for cores in _CORES for mccs in _CORES]
    # The grid takes most of the time.
    is_needed = conditions.keys is None or any(f"{_KEY}.grid." in key for key in conditions.keys)
    cells = [
        Run(
            "pagerank",
            (*_program_size(_GRAPHS[0], conditions), cores, mccs, _LINES | (_HINTS if mccs == 1 else 0), 1),
            {**_capacities(_GRAPHS[0], conditions), "host.cores": str(cores)},
        )
        for cores, mccs in grid
        if is_needed
    ]
    results = run_programs([*shapes, *cells], conditions)
    graph_results = [(graph.name, result) for graph, result in zip(_GRAPHS, results, strict=False)]
    cell_results = list(zip(grid if is_needed else (), results[len(_GRAPHS) :], strict=True))
    rows = [
        *_rates(graph_results),
        *_rates_of_grid(cell_results),
        *_traffic(graph_results),
        *_lines(graph_results),
        *_scales(conditions),
    ]
    cut = conditions.accesses is not None
    return [
        Measurement(name, value, unit, f"{_KEY}.{key.replace(' ', '_')}", cut=cut) for name, value, unit, key in rows
    ]


def _rate(result: Mapping[str, float], method: str) -> float:
    """Return edges processed in millions per second."""
    return result["all"] / (result[method] * CYCLE_S) / 1e6


# A number: name, value, unit, and end of its key.
_Row = tuple[str, float, str, str]
_GraphResults = Sequence[tuple[str, Mapping[str, float]]]


def _name(method: str) -> str:
    """Return the name of a method in rows: *hints* of the program's output are prefetches."""
    return method.replace("with hints", "with prefetches")


def _rates(graph_results: _GraphResults) -> Iterator[_Row]:
    """Yield the rate of each method on each graph."""
    for graph, result in graph_results:
        for method in _METHODS:
            yield f"{graph}, {_name(method)}", _rate(result, method), "M/s", f"{method}.{graph}"


def _rates_of_grid(cell_results: Sequence[tuple[tuple[int, int], Mapping[str, float]]]) -> Iterator[_Row]:
    """Yield the rates for each number of host cores and near-memory cores."""
    for (cores, mccs), result in cell_results:
        host = f"{cores} core{'s' if cores > 1 else ''}"
        if mccs == 1:
            yield f"{host}, far with prefetches", _rate(result, "far with hints"), "M/s", f"grid.hints.{cores}"
        beside = f"{mccs} near-memory core{'s' if mccs > 1 else ''}"
        yield f"{host}, {beside}", _rate(result, "line pipes"), "M/s", f"grid.lines.{cores}.{mccs}"


def _traffic(graph_results: _GraphResults) -> Iterator[_Row]:
    """Yield the bytes per edge on the link and at far memory."""
    for graph, result in graph_results:
        for method in _METHODS[1:]:
            for part in ("link", "DRAM"):
                bytes_per_edge = result[f"{method}, {part}"] / result["all"]
                yield f"{graph}, {_name(method)}, {part}", bytes_per_edge, "B", f"{part.lower()}.{method}.{graph}"


def _lines(graph_results: _GraphResults) -> Iterator[_Row]:
    """Yield, per 1000 scores, the changes of line in order of access, and the lines read from far memory."""
    for graph, result in graph_results:
        yield f"{graph}, lines of 1000", result["of 1000 scores"], COUNT, f"lines_of_1000.{graph}"
        yield f"{graph}, lines asked for", result["for 1000 scores"], COUNT, f"lines_asked_for.{graph}"


def _scales(conditions: Conditions) -> Iterator[_Row]:
    for graph in _GRAPHS:
        _, _, edges, _ = _program_size(graph, conditions)
        yield f"{graph.name}, scale of the graph", graph.edges / edges, COUNT, f"scale.data.{graph.name}"
        for label, name, scale in scales(_capacities(graph, conditions)):
            yield f"{graph.name}, scale of the {label}", scale, COUNT, f"scale.{name}.{graph.name}"


def _edges(accesses: int) -> str:
    return f"no more than {accesses} edge{'' if accesses == 1 else 's'} each, or {_FEWEST}; {SCALE_NOTE}"


EXPERIMENTS = {
    "proxics-pagerank": Experiment(
        run=_pagerank,
        note=f"""\
Graphs, the host's caches and the reach of its translations are {_SCALE} times smaller than published ("scale"; the
first-level cache has at least one set). Graphs have the sizes that the programs print. Unavailable graphs are generated
with the same degrees, and with as many of 1000 scores in another line than the previous score. "Lines asked for" are
the lines that the far method fetches per 1000 scores. The graph is in the host's memory; contributions and sums of
nodes are in far memory, except for "local". Prefetches have the best distance. Line and register pipes carry a node
with up to 30 neighbours to the one of 4 cores that has its block of 32 nodes. Numbers are edges per second over two
whole rounds (one for the grid of host cores and near-memory cores, on the Kronecker graph with line pipes), and bytes
per edge over the link in both directions, and at far memory. All sums are compared bit by bit.
""",
        omissions=OMISSIONS,
        headline="The host or near-memory cores add up neighbours' scores in far memory.",
        axis="edges (M/s); bytes for an edge (B); lines; how many times smaller",
        rerun_accesses=2**10,
        limited=_edges,
        needs=missing_tools,
    ),
}
