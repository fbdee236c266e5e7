"""Exceptions of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

from cohkit._cohkit import RefusedError, did_you_mean
from cohkit.results import Records, load, records
from cohkit.types import Diagnostic, Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Error(Exception):
    """Base class of all exceptions that this package raises deliberately."""


class InputError(Error, ValueError):
    """Invalid input or an unsupported request.

    >>> import cohkit
    >>> cohkit.check(cohkit.shipped("msi"), systems=["nowhere"])
    Traceback (most recent call last):
    ...
    cohkit.errors.InputError: protocols/msi.coh: no system is named `nowhere`; ...
    """


class UnavailableError(Error):
    """A resource that this machine lacks: memory, or a package that is not installed.

    >>> import cohkit
    >>> cohkit.simulate("enzian-dc-ddr", "sequential-write", region="255GiB", set={"lines": 2**31 - 1})
    Traceback (most recent call last):
    ...
    cohkit.errors.UnavailableError: the data written, 255GiB, does not fit into the free memory of this machine; ...

    """


class TextError(Error):
    """An invalid protocol file or platform. `diagnostics` contains all errors, in the order of their locations.

    >>> import cohkit
    >>> try:
    ...     cohkit.parse("protocol p { line 64; channels { up } }", file="p.coh")
    ... except cohkit.TextError as error:
    ...     print(error.file, error.line, error.column, error.diagnostics[0].code)
    p.coh 1 12 syntax
    """

    def __init__(self, file: str, diagnostics: Sequence[Diagnostic]) -> None:
        """Create the exception from the errors of one file, at least one."""
        super().__init__("\n\n".join(diagnostic.rendered for diagnostic in diagnostics))
        self.file = file
        """Name under which the text was read."""
        self.diagnostics = Records(diagnostics)
        """All errors."""
        self.line = diagnostics[0].line
        """Line of the first error, from 1."""
        self.column = diagnostics[0].column
        """Column of the first error in characters, from 1."""

    def __reduce__(self) -> tuple[type[TextError], tuple[str, Records[Diagnostic]]]:
        """Pickle the constructor's arguments, so that an exception of a worker reaches its caller."""
        return TextError, (self.file, self.diagnostics)


class FaultError(Error):
    """A home policy that cannot be implemented: `fault` contains the reason and message sequences that show it.

    >>> import cohkit
    >>> try:
    ...     cohkit.table(cohkit.read("tests/construction/ambiguous-answer-proven.coh"))
    ... except cohkit.FaultError as error:
    ...     print(f"line {error.fault.line}: {error.fault.kind}")
    line 58: unbounded
    """

    def __init__(self, file: str, fault: Fault) -> None:
        """Create the exception for a fault in this file."""
        super().__init__(f"{file}:{fault.line}:{fault.column}: {fault.kind}: {fault.message}")
        self.file = file
        """Name under which the text was read."""
        self.fault = fault
        """Fault of the policy."""

    def __reduce__(self) -> tuple[type[FaultError], tuple[str, Fault]]:
        """Pickle the constructor's arguments, so that an exception of a worker reaches its caller."""
        return FaultError, (self.file, self.fault)


def suggestion(unknown_name: str, names: Iterable[str]) -> str:
    """Return the start of a help text for an unknown name: a suggestion, or nothing if no name is similar.

    >>> from cohkit.errors import suggestion
    >>> suggestion("link.latncy", ["link.latency", "link.lanes"]), suggestion("dram", ["link.lanes"])
    ('did you mean `link.latency`? ', '')

    """
    return did_you_mean(unknown_name, list(names))


def call(file: str, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call the compiled module, which reports errors as JSON, and raise them as the exceptions above."""
    try:
        return function(*args, **kwargs)
    except RefusedError as error:
        kind, details = error.args
        reason = load(details)
    match kind:
        case "text":
            raise TextError(file, records(Diagnostic.of, reason))
        case "fault":
            raise FaultError(file, Fault.of(reason))
        case "unavailable":
            raise UnavailableError(reason)
        case _:
            raise InputError(reason)
