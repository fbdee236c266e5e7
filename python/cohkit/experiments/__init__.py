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
    """A published table or figure: what it shows, and the work that gives our numbers."""

    title: str
    run: Callable[[], list[Ours]]


EXPERIMENTS: dict[str, Experiment] = {
    "eci-home": Experiment(eci_home.TITLE, eci_home.run),
}
"""All experiments, in the order in which `all` runs them."""
