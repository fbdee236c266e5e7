"""Reproduced published tables and figures, one module each.

An experiment defines its runs, and the published number that each of our numbers is compared with.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from cohkit import _cohkit
from cohkit.experiments import (
    ccix,
    cckit_fig6,
    cckit_fig7,
    cckit_fig8,
    cckit_fig9,
    cckit_fig10,
    cckit_table2,
    cckit_table3,
    cord,
    cord_programs,
    cord_scale,
    cord_tables,
    derived,
    eci_home,
    eci_link,
    locktable,
    proxics,
    proxics_pagerank,
    proxics_uts,
    rpc_payload,
    symmetry,
)
from cohkit.experiments.experiment import Conditions, Experiment, Span

if TYPE_CHECKING:
    from cohkit.published import Measurement

__all__ = ["EXPERIMENTS", "Conditions", "Experiment", "Span"]

_DEFINED: dict[str, Experiment] = {
    "eci-home": eci_home.EXPERIMENT,
    "cckit-table2": cckit_table2.EXPERIMENT,
    "cckit-fig6": cckit_fig6.EXPERIMENT,
    "cckit-table3": cckit_table3.EXPERIMENT,
    "cckit-fig7": cckit_fig7.EXPERIMENT,
    "cckit-fig8": cckit_fig8.EXPERIMENT,
    "cckit-fig9": cckit_fig9.EXPERIMENT,
    "cckit-fig10": cckit_fig10.EXPERIMENT,
    "rpc-payload": rpc_payload.EXPERIMENT,
    "locktable": locktable.EXPERIMENT,
    "eci-link": eci_link.EXPERIMENT,
    **ccix.EXPERIMENTS,
    "ccix-locktable": locktable.CARD_EXPERIMENT,
    **cord.EXPERIMENTS,
    **cord_programs.EXPERIMENTS,
    **cord_tables.EXPERIMENTS,
    **cord_scale.EXPERIMENTS,
    **symmetry.EXPERIMENTS,
    **proxics.EXPERIMENTS,
    **proxics_uts.EXPERIMENTS,
    **proxics_pagerank.EXPERIMENTS,
}


def module_of(name: str) -> str:
    """Return the name of the module that defines an experiment.

    >>> module_of("cord-table3")
    'cohkit.experiments.cord_tables'

    """
    for module in (value for value in globals().values() if isinstance(value, ModuleType)):
        values = list(vars(module).values())
        defined = values + [one for value in values if isinstance(value, dict) for one in value.values()]
        if any(value is _DEFINED[name] for value in defined):
            return module.__name__
    raise KeyError(name)


def _with_derived(name: str, experiment: Experiment) -> Experiment:
    """Append the derived numbers to those of an experiment."""

    def run(conditions: Conditions) -> list[Measurement]:
        if conditions.keys is not None:
            needed = (key for one in derived.DERIVED[name] if one.key in conditions.keys for key in one.needed_keys)
            conditions = conditions._replace(keys=conditions.keys | frozenset(needed))
        rows = experiment.run(conditions)
        return [*rows, *derived.derive(name, rows)]

    return experiment._replace(run=run) if name in derived.DERIVED else experiment


EXPERIMENTS = {name: _with_derived(name, _DEFINED[name])._replace(title=title) for name, title in _cohkit.experiments()}
"""All experiments, in the order in which `all` runs them."""
