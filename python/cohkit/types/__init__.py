"""Result types: mappings whose keys are also attributes. `docs/output.md` explains the keys.

If a result lacks a key, the attribute is `None`.
"""

from typing import TYPE_CHECKING

from cohkit.old_names import resolver
from cohkit.types.checking import (
    Counterexample,
    Coverage,
    ModelVerdict,
    Mutant,
    ProgramBounds,
    Property,
    RandomWalks,
    RowCoverage,
    RuleCoverage,
    System,
    SystemSizes,
    TraceVerdict,
    UndecidedQuestion,
    Verdict,
)
from cohkit.types.links import (
    DmaEngine,
    LinkData,
    LinkDma,
    LinkRates,
    LinkStep,
    LinkTransfers,
)
from cohkit.types.litmus import (
    Litmus,
    LitmusOutcome,
)
from cohkit.types.plays import (
    LinkTraffic,
    MessageTraffic,
    Play,
    Result,
    Times,
)
from cohkit.types.protocols import (
    Action,
    Construction,
    Diagnostic,
    Fault,
    Note,
    Row,
    Sequence,
    Sizes,
    Step,
    Table,
)
from cohkit.types.rtl import (
    EmittedHome,
    HomeMeasurements,
    Lockstep,
    Synthesis,
)
from cohkit.types.simulation import (
    AccessStep,
    Bottleneck,
    BouncingLine,
    Explanation,
    Failure,
    Interval,
    LatencyTotal,
    PartLatency,
    Platform,
    Quantity,
    Quarter,
    Resource,
    Simulation,
    SlowestAccess,
    StepLatency,
    Workload,
)

__all__ = [
    "AccessStep",
    "Action",
    "Bottleneck",
    "BouncingLine",
    "Construction",
    "Counterexample",
    "Coverage",
    "Diagnostic",
    "DmaEngine",
    "EmittedHome",
    "Explanation",
    "Failure",
    "Fault",
    "HomeMeasurements",
    "Interval",
    "LatencyTotal",
    "LinkData",
    "LinkDma",
    "LinkRates",
    "LinkStep",
    "LinkTraffic",
    "LinkTransfers",
    "Litmus",
    "LitmusOutcome",
    "Lockstep",
    "MessageTraffic",
    "ModelVerdict",
    "Mutant",
    "Note",
    "PartLatency",
    "Platform",
    "Play",
    "ProgramBounds",
    "Property",
    "Quantity",
    "Quarter",
    "RandomWalks",
    "Resource",
    "Result",
    "Row",
    "RowCoverage",
    "RuleCoverage",
    "Sequence",
    "Simulation",
    "Sizes",
    "SlowestAccess",
    "Step",
    "StepLatency",
    "Synthesis",
    "System",
    "SystemSizes",
    "Table",
    "Times",
    "TraceVerdict",
    "UndecidedQuestion",
    "Verdict",
    "Workload",
]

if not TYPE_CHECKING:
    __getattr__ = resolver(__name__)
