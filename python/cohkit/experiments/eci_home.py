"""Size of ECI's home: ours is constructed from a policy, the published one was written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohkit.experiments.experiment import Experiment
from cohkit.protocols import construct, parse, shipped, shipped_file
from cohkit.published import COUNT, Measurement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cohkit.experiments.experiment import Conditions
    from cohkit.types import Sizes

BASE = "tests/construction/base.coh"
NOTE = f"""\
The published numbers count messages where ours count events, which include operations of device and memory.
Ours also serves non-caching accesses, and offers each local operation with and without taking the lock.
`base` ({BASE}) does neither.
"""


def _run(_: Conditions) -> list[Measurement]:
    """Construct the home for one CPU, without and with merging of indistinguishable states, and also `base`."""
    home = construct(shipped("eci"))
    base = construct(parse(shipped_file(BASE), file=BASE))
    return [*_rows("", home["home"]), *_rows(", merged", home["merged"]), *_rows(", base", base["home"])]


def _rows(form: str, sizes: Sizes) -> Iterator[Measurement]:
    """Yield the three sizes of a home; `form` follows their names."""
    published = "enzian.state_machine"
    yield Measurement(f"states{form}", sizes["states"], COUNT, f"{published}.states")
    yield Measurement(f"transitions{form}", sizes["transitions"], COUNT, f"{published}.transitions")
    yield Measurement(f"events{form}", sizes["events"], COUNT, f"{published}.messages")


EXPERIMENT = Experiment(run=_run, note=NOTE, has_assumptions=False)
