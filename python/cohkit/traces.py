"""Traces, checked against the tables of a protocol."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohkit import types
from cohkit.native import Text, run_json
from cohkit.protocols import decode, load_protocol
from cohkit.results import Records, records

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cohkit._cohkit import Protocol


def trace(
    traces: str | os.PathLike[str] | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    protocol: Protocol | str | os.PathLike[str],
    *,
    sizes: Mapping[str, int] | None = None,
) -> Records[types.TraceVerdict]:
    r"""Check traces against the tables of a protocol, like `cohkit trace`.

    Args:
        traces: a JSON file with traces, such as one that `cohkit sim --trace` writes, or results that contain some,
            such as verdicts of :func:`cohkit.check`.
        protocol: a protocol, the path of its file, or the name of a shipped one.
        sizes: sizes of the protocol, such as `{"homes": 8}`.

    Raises:
        InputError: the input contains no trace.
        TextError: the protocol is invalid.
        OSError: the file cannot be read.

    >>> import cohkit, re
    >>> faulty = re.sub(r"(?m)( S  .*[|] Inv  .*[|]) I$", r"\1 S", cohkit.shipped("msi").text)
    >>> verdicts = cohkit.check(cohkit.parse(faulty), remotes=2)
    >>> [verdict] = cohkit.trace(verdicts, "msi")
    >>> verdict.outcome, verdict.reason
    ('rejected', 'cache 0 must enter I in this step')

    """
    if isinstance(traces, str | os.PathLike):
        text = Text(os.fspath(traces), decode(os.fspath(traces), Path(traces).read_bytes()))
    else:
        text = Text("traces.json", json.dumps(traces))
    size_options = [word for name, value in (sizes or {}).items() for word in ("--protocol-param", f"{name}={value}")]
    verdicts, _ = run_json(["trace", text, "--protocol", load_protocol(protocol), *size_options])
    return records(types.TraceVerdict.of, verdicts)
