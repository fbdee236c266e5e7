"""Reproduced published tables and figures, one module each.

An experiment defines what to run, and the published number that each of our numbers is compared with.
"""

from __future__ import annotations

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

EXPERIMENTS = {name: _DEFINED[name]._replace(title=title) for name, title in _cohkit.experiments()}
"""All experiments, in the order in which `all` runs them."""
