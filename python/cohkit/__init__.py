"""Cohkit: cache-coherence protocols, checked, tabulated and drawn from one text.

>>> import cohkit
>>> eci = cohkit.shipped("eci")
>>> [verdict["outcome"] for verdict in cohkit.check(eci, systems=["one_line"])]
['verified']
"""

from cohkit import types
from cohkit._cohkit import Protocol, __version__
from cohkit.errors import Error, FaultError, InputError, TextError
from cohkit.frames import to_frame
from cohkit.protocols import (
    chart_svg,
    chart_text,
    check,
    construct,
    parse,
    read,
    shipped,
    shipped_names,
    systems,
    table,
)

__all__ = [
    "Error",
    "FaultError",
    "InputError",
    "Protocol",
    "TextError",
    "__version__",
    "chart_svg",
    "chart_text",
    "check",
    "construct",
    "parse",
    "read",
    "shipped",
    "shipped_names",
    "systems",
    "table",
    "to_frame",
    "types",
]
