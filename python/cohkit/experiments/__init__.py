"""Published tables and figures that we run again: one module each.

An experiment says what is run, and which published number each of ours stands beside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cohkit.experiments import eci_home

if TYPE_CHECKING:
    from collections.abc import Callable

    from cohkit.published import Ours


class Experiment(NamedTuple):
    """A published table or figure: what it shows, the work that gives our numbers, and what to know of them."""

    title: str
    run: Callable[[], list[Ours]]
    note: str = ""


EXPERIMENTS: dict[str, Experiment] = {
    "eci-home": Experiment(eci_home.TITLE, eci_home.run, eci_home.NOTE),
}
"""All experiments, in the order in which `all` runs them."""
