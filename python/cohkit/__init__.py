"""Cohkit: cache-coherence protocols, checked, simulated, tabulated and drawn from one text.

>>> import cohkit
>>> eci = cohkit.shipped("eci")
>>> [verdict.outcome for verdict in cohkit.check(eci, systems=["one_line"])]
['verified']
"""

from typing import TYPE_CHECKING

from cohkit import cpu, device, rtl, types
from cohkit._cohkit import Composition, Protocol, __version__
from cohkit.display import Display, show
from cohkit.errors import Error, FaultError, InputError, TextError, UnavailableError
from cohkit.frames import to_frame
from cohkit.links import link
from cohkit.litmus_tests import litmus
from cohkit.machines import Machine
from cohkit.memory_traces import MemoryTrace, memory_trace
from cohkit.models import check_model
from cohkit.mutation import mutants
from cohkit.old_names import resolver
from cohkit.pages import report
from cohkit.player import play, play_many
from cohkit.protocols import (
    bridges,
    chart_svg,
    chart_text,
    check,
    compose,
    composition,
    compositions,
    construct,
    parse,
    read,
    shipped,
    shipped_names,
    systems,
    table,
)
from cohkit.scenario import Scenario
from cohkit.simulator import platform, platforms, simulate, simulate_many
from cohkit.sweeps.execution import sweep
from cohkit.traces import trace

__all__ = [
    "Composition",
    "Display",
    "Error",
    "FaultError",
    "InputError",
    "Machine",
    "MemoryTrace",
    "Protocol",
    "Scenario",
    "TextError",
    "UnavailableError",
    "__version__",
    "bridges",
    "chart_svg",
    "chart_text",
    "check",
    "check_model",
    "compose",
    "composition",
    "compositions",
    "construct",
    "cpu",
    "device",
    "link",
    "litmus",
    "memory_trace",
    "mutants",
    "parse",
    "platform",
    "platforms",
    "play",
    "play_many",
    "read",
    "report",
    "rtl",
    "shipped",
    "shipped_names",
    "show",
    "simulate",
    "simulate_many",
    "sweep",
    "systems",
    "table",
    "to_frame",
    "trace",
    "types",
]


def __dir__() -> list[str]:
    """List the public names for completion; submodules are omitted."""
    return __all__


if not TYPE_CHECKING:
    __getattr__ = resolver(__name__)
