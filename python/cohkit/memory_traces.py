"""Memory traces from numpy arrays, as workloads of the simulator."""

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
# Maximum value of each field of a record.
_MAX_VALUES = {"address": 2**64 - 1, "gap": 2**32 - 1, "core": 4095, "access": len(_ACCESSES) - 1}


# Kinds of traces: the prefix before the colon and file name in a workload.
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
    """A trace file that has been read: running it no longer needs the file."""

    name: str
    """Name in results: the workload as given."""
    kind: str
    """Kind of trace, such as `trace` or `lackey-trace`."""
    file: bytes
    """Contents of the file."""

    @staticmethod
    def of(workload: str) -> TraceFile | None:
        """Read the file of a workload such as `trace:FILE` or `lackey-trace:FILE`; return `None` for other workloads.

        Raises:
            OSError: the file cannot be read.

        """
        kind, colon, path = workload.partition(":")
        if colon and kind in _KINDS:
            return TraceFile(workload, kind, Path(path).read_bytes())
        return None


@dataclass(frozen=True)
class MemoryTrace:
    """Accesses of each core, in order. `memory_trace` creates one from arrays.

    >>> import cohkit
    >>> trace = cohkit.memory_trace([0x80, 0x100], name="two")
    >>> trace
    MemoryTrace('two', 2 accesses)
    >>> trace.file[:8], trace.records[:8].hex()
    (b'COHKTRC1', '8000000000000000')

    """

    records: bytes
    """Accesses of 16 bytes each: address, picoseconds since the previous access, core, access type, and a zero."""
    packed: bool = False
    """True if 4 KiB pages are placed consecutively, in the order of their first access."""
    name: str = "trace"
    """Name in results."""

    def __len__(self) -> int:
        """Return the number of accesses."""
        return len(self.records) // 16

    def __repr__(self) -> str:
        """Return the name and the number of accesses."""
        return f"MemoryTrace({self.name!r}, {len(self)} accesses)"

    @property
    def kind(self) -> str:
        """Kind of trace."""
        return "packed-trace" if self.packed else "trace"

    @property
    def file(self) -> bytes:
        """Contents of its file."""
        return _MAGIC + self.records

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a file that `cohkit sim PLATFORM trace:FILE` reads; a name that ends in `.gz` selects gzip.

        Raises:
            OSError: the file cannot be written.

        """
        # Without a time stamp, the same trace always yields the same bytes.
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
    """Create a workload from arrays with one value per access, or from scalars that apply to all accesses.

    Args:
        addresses: addresses in bytes, shape `(accesses,)`, as a numpy array, a list or a polars column.
        access: names of accesses, or their numbers in the binary format.
        core: core numbers, from 0. Each core makes its accesses in order.
        gap_ps: minimum time between the starts of consecutive accesses of one core, in picoseconds.
        packed: whether to place 4 KiB pages consecutively, in the order of their first access, for addresses of a whole
            machine.
        name: name in results.

    Raises:
        InputError: an array has a different length than the addresses, or contains an invalid value.
        UnavailableError: numpy is not installed.

    >>> import cohkit
    >>> trace = cohkit.memory_trace([0x80, 0x100, 0x80], access=["load", "store", "load"], core=[0, 1, 0])
    >>> result = cohkit.simulate("enzian-dc-ddr", trace)
    >>> result["workload"]["cores"], result["workload"]["region_lines"], result["statistics"]["hits"]
    (2, 3, 1)

    """
    try:
        import numpy as np  # noqa: PLC0415 -- numpy is optional
    except ImportError as error:
        raise UnavailableError("traces of arrays need numpy: pip install 'cohkit[arrays]'") from error
    address_array = np.asarray(addresses)
    if address_array.ndim != 1:
        raise InputError(f"addresses have one dimension, not {address_array.ndim}")
    records = np.zeros(len(address_array), _RECORD)
    for field, values in (("address", address_array), ("gap", gap_ps), ("core", core), ("access", _numbers(access))):
        records[field] = _fitting(field, np.asarray(values), len(address_array))
    return MemoryTrace(records.tobytes(), packed, name)


def _numbers(access: Access | Sequence[Access] | npt.ArrayLike) -> npt.ArrayLike:
    """Convert accesses given by name to their numbers."""
    import numpy as np  # noqa: PLC0415

    accesses = np.asarray(access)
    if accesses.dtype.kind not in "UOT":
        return accesses
    names, inverse = np.unique(accesses.astype(str), return_inverse=True)
    for name in names:
        if name not in _ACCESSES:
            raise InputError(f"`{name}` is no access of a trace; there are {', '.join(_ACCESSES)}")
    numbers = np.array([_ACCESSES.index(name) for name in names], dtype=np.uint8)
    return numbers[inverse].reshape(accesses.shape)


def _fitting(field: str, values: npt.NDArray[np.generic], length: int) -> npt.NDArray[np.generic]:
    """Check that the values fit into a field of the records."""
    parameter = {"address": "addresses", "gap": "gap_ps"}.get(field, field)
    if values.ndim > 0 and values.shape != (length,):
        raise InputError(f"`{parameter}` has the shape {values.shape}; there are {length} addresses")
    if values.size and values.dtype.kind not in "ui":
        raise InputError(f"`{parameter}` holds whole numbers, not {values.dtype}")
    if values.size and not (int(values.min()) >= 0 and int(values.max()) <= _MAX_VALUES[field]):
        low, high = int(values.min()), int(values.max())
        raise InputError(f"`{parameter}` is 0 to {_MAX_VALUES[field]}, not {low if low < 0 else high}")
    return values
