"""Traces of memory from numpy arrays: what cores access, as a workload of the simulator."""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from cohkit.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

Access = Literal["load", "store", "read_once", "write_line", "write_partial", "clean", "evict", "demote"]

_ACCESSES = get_args(Access)
_MAGIC = b"COHKTRC1"
_RECORD = [("address", "<u8"), ("gap", "<u4"), ("core", "<u2"), ("access", "u1"), ("zero", "u1")]
# The numbers that a field of a record can hold.
_MOST = {"address": 2**64 - 1, "gap": 2**32 - 1, "core": 4095, "access": len(_ACCESSES) - 1}


# The kinds of traces: what stands before the colon and the file's name where a workload is named.
_KINDS = (
    "trace",
    "packed-trace",
    "gem5-trace",
    "ramulator-trace",
    "dramsim3-trace",
    "champsim-trace",
    "lackey-trace",
    "dinero-trace",
    "pin-trace",
)


class TraceFile(NamedTuple):
    """A trace in a file, which has been read: who runs it needs the file no more."""

    name: str
    """What results call it: the workload as it was named."""
    kind: str
    """The kind of trace, such as `trace` or `lackey-trace`."""
    file: bytes
    """The bytes of the file."""

    @staticmethod
    def of(workload: str) -> TraceFile | None:
        """Read the file of a workload such as `trace:FILE` or `lackey-trace:FILE`; `None` if it is another workload.

        Raises:
            OSError: the file cannot be read.

        """
        kind, colon, path = workload.partition(":")
        if colon and kind in _KINDS:
            return TraceFile(workload, kind, Path(path).read_bytes())
        return None


@dataclass(frozen=True)
class MemoryTrace:
    """What each core accesses, in its order. `memory_trace` makes one of arrays.

    >>> import cohkit
    >>> trace = cohkit.memory_trace([0x80, 0x100], name="two")
    >>> trace
    MemoryTrace('two', 2 accesses)
    >>> trace.file[:8], trace.records[:8].hex()
    (b'COHKTRC1', '8000000000000000')

    """

    records: bytes
    """The accesses, each of 16 bytes: address, picoseconds since the access before, core, access, and a zero."""
    packed: bool = False
    """Whether pages of 4 KiB lie one after another, in the order in which they are first accessed."""
    name: str = "trace"
    """What results call it."""

    def __len__(self) -> int:
        """Count the accesses."""
        return len(self.records) // 16

    def __repr__(self) -> str:
        """Tell the name and the number of accesses."""
        return f"MemoryTrace({self.name!r}, {len(self)} accesses)"

    @property
    def kind(self) -> str:
        """The kind of trace."""
        return "packed-trace" if self.packed else "trace"

    @property
    def file(self) -> bytes:
        """The bytes of its file."""
        return _MAGIC + self.records

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it into a file that `cohkit sim PLATFORM trace:FILE` reads; one that ends in `.gz` is packed by gzip.

        Raises:
            OSError: the file cannot be written.

        """
        # No time stands in the file: the same trace gives the same bytes.
        data = gzip.compress(self.file, mtime=0) if os.fspath(path).endswith(".gz") else self.file
        Path(path).write_bytes(data)


def memory_trace(  # noqa: PLR0913 -- each is a keyword
    addresses: npt.ArrayLike,
    *,
    access: Access | Sequence[Access] | npt.ArrayLike = "load",
    core: npt.ArrayLike = 0,
    gap_ps: npt.ArrayLike = 0,
    packed: bool = False,
    name: str = "trace",
) -> MemoryTrace:
    """Make a workload of arrays, of which each says something of every access, or of all.

    Args:
        addresses: addresses in bytes, shape `(accesses,)`, of numpy, of lists, or of columns of polars.
        access: the names of accesses, or their numbers as the binary form has them.
        core: numbers of cores, from 0. Each core makes its accesses in their order.
        gap_ps: picoseconds that lie, at least, between the beginnings of an access and the one before of its core.
        packed: whether pages of 4 KiB lie one after another, in the order in which they are first accessed: for
            addresses of a whole machine.
        name: what results call it.

    Raises:
        InputError: an array has another length than the addresses, or something in it that cannot be.
        UnavailableError: numpy is not installed.

    >>> import cohkit
    >>> trace = cohkit.memory_trace([0x80, 0x100, 0x80], access=["load", "store", "load"], core=[0, 1, 0])
    >>> result = cohkit.simulate("enzian-dc-ddr", trace)
    >>> result["workload"]["cores"], result["workload"]["region_lines"], result["statistics"]["hits"]
    (2, 3, 1)

    """
    try:
        import numpy as np  # noqa: PLC0415 -- only who has arrays needs it
    except ImportError as error:
        raise UnavailableError("traces of arrays need numpy: pip install 'cohkit[arrays]'") from error
    places = np.asarray(addresses)
    if places.ndim != 1:
        raise InputError(f"addresses have one dimension, not {places.ndim}")
    records = np.zeros(len(places), _RECORD)
    for field, values in (("address", places), ("gap", gap_ps), ("core", core), ("access", _numbers(access))):
        records[field] = _fitting(field, np.asarray(values), len(places))
    return MemoryTrace(records.tobytes(), packed, name)


def _numbers(access: Access | Sequence[Access] | npt.ArrayLike) -> npt.ArrayLike:
    """Give the numbers of accesses that are told by their names."""
    import numpy as np  # noqa: PLC0415

    told = np.asarray(access)
    if told.dtype.kind not in "UOT":
        return told
    names, which = np.unique(told.astype(str), return_inverse=True)
    for name in names:
        if name not in _ACCESSES:
            raise InputError(f"`{name}` is no access of a trace; there are {', '.join(_ACCESSES)}")
    numbers = np.array([_ACCESSES.index(name) for name in names], dtype=np.uint8)
    return numbers[which].reshape(told.shape)


def _fitting(field: str, values: npt.NDArray[np.generic], length: int) -> npt.NDArray[np.generic]:
    """Refuse what a field of the records cannot hold."""
    shown = {"address": "addresses", "gap": "gap_ps"}.get(field, field)
    if values.ndim > 0 and values.shape != (length,):
        raise InputError(f"`{shown}` has the shape {values.shape}; there are {length} addresses")
    if values.size and values.dtype.kind not in "ui":
        raise InputError(f"`{shown}` holds whole numbers, not {values.dtype}")
    if values.size and not (int(values.min()) >= 0 and int(values.max()) <= _MOST[field]):
        low, high = int(values.min()), int(values.max())
        raise InputError(f"`{shown}` is 0 to {_MOST[field]}, not {low if low < 0 else high}")
    return values
