"""Results: mappings whose keys are also attributes, and lists of them."""

from __future__ import annotations

import functools
import inspect
import json
import types
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import polars as pl

_T = TypeVar("_T")
_REQUIRED = object()


class Record(dict[str, Any]):
    """A mapping whose keys are also attributes; notebooks show it as a chart, a table or a plot.

    Subclasses annotate their keys; a key with a default may be missing. If a key is a method of mappings or a keyword
    of Python, its attribute ends in an underscore: `values_`. Records are hashable: do not modify one that is in a set.

    >>> import cohkit
    >>> [verdict] = cohkit.check("msi", remotes=2)
    >>> verdict.states == verdict["states"], verdict.coverage
    (True, None)
    >>> len({cohkit.construct(cohkit.shipped("eci")) for _ in range(2)})
    1

    """

    def __init_subclass__(cls) -> None:
        """Create attributes for the annotated keys."""
        super().__init_subclass__()
        for name in inspect.get_annotations(cls):
            setattr(cls, name, _Attribute(name, cls.__dict__.get(name, _REQUIRED)))

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Self:
        """Return a record with these keys, and convert their values to the types that the class declares.

        >>> from cohkit.types import Property
        >>> Property.of({"kind": "invariant", "name": "single writer", "status": "holds"}).status
        'holds'

        """
        makers = _makers(cls)
        return cls({key: makers.get(key, _plain)(item) for key, item in value.items()})

    def to_frame(self) -> pl.DataFrame:
        """Return a frame of the record's rows, or one row: :func:`cohkit.to_frame`."""
        from cohkit.frames import to_frame  # noqa: PLC0415 -- frames are made of records

        return to_frame(self)

    def _repr_html_(self) -> str | None:
        return _html(self)

    def __hash__(self) -> int:  # type: ignore[override]  # dictionaries have none
        """Return equal hashes for equal records."""
        return hash(_frozen(self))


class Records(list[_T], Generic[_T]):
    """A list of records, which notebooks show and frames are built from.

    >>> import cohkit
    >>> cohkit.systems("msi").to_frame().rows()
    [('three_caches', 3, 1), ('two_lines', 2, 2)]

    """

    def to_frame(self) -> pl.DataFrame:
        """Return a frame with a row for each record: :func:`cohkit.to_frame`."""
        from cohkit.frames import to_frame  # noqa: PLC0415

        return to_frame(self)  # type: ignore[arg-type]  # records are mappings

    def _repr_html_(self) -> str | None:
        return _html(self)


class Field:
    """A key of a record: the type of its value, and whether it is required."""

    def __init__(self, hint: Any, *, required: bool) -> None:  # noqa: ANN401 -- types are values
        """Set the type and whether the key is required."""
        self.hint = hint
        self.required = required


def fields(kind: type[Record]) -> dict[str, Field]:
    """Return the declared keys of a kind of records.

    >>> from cohkit.types import LitmusOutcome
    >>> [key for key, field in fields(LitmusOutcome).items() if field.required]
    ['values', 'satisfies', 'allowed']

    """
    attributes = {name: getattr(kind, name) for name in get_type_hints(kind)}
    hints = get_type_hints(kind)
    return {
        attribute.key: Field(hints[name], required=attribute.default is _REQUIRED)
        for name, attribute in attributes.items()
    }


def load(text: str) -> Any:  # noqa: ANN401 -- the caller knows which of `cohkit.types` it is
    """Parse JSON from the compiled module."""
    return json.loads(text)


def records(kind: Callable[[Mapping[str, Any]], _T], values: Iterable[Mapping[str, Any]]) -> Records[_T]:
    """Return a list of records of one kind, each made by `Record.of`."""
    return Records(kind(value) for value in values)


class _Attribute:
    """Descriptor that reads the attribute of a key from its record."""

    def __init__(self, name: str, default: object) -> None:
        self.key = name.rstrip("_")
        self.default = default

    def __get__(self, record: Record | None, owner: type[Record]) -> Any:  # noqa: ANN401
        if record is None:
            return self
        if self.key in record:
            return record[self.key]
        if self.default is _REQUIRED:
            raise AttributeError(f"this {owner.__name__} has no `{self.key}`")
        return self.default

    def __set__(self, record: Record, value: object) -> None:
        raise AttributeError(f"results do not change; `{self.key}` is read only")


@functools.cache
def _makers(kind: type[Record]) -> dict[str, Callable[[Any], Any]]:
    return {key: _maker(field.hint) for key, field in fields(kind).items()}


def _maker(hint: Any) -> Callable[[Any], Any]:  # noqa: ANN401
    """Return the function that converts JSON to a type."""
    kind, inner = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint.of
    if kind in (Union, types.UnionType):
        # Optional types: no type here is a union of several kinds of records.
        makers = [maker for maker in map(_maker, inner) if maker is not _plain]
        return _or_none(makers[0]) if makers else _plain
    if kind in (list, Records):
        item_maker = _maker(inner[0])
        return _plain if item_maker is _plain else lambda values: Records(map(item_maker, values))
    if kind is dict:
        value_maker = _maker(inner[1])
        return (
            _plain
            if value_maker is _plain
            else lambda items: Record({key: value_maker(item) for key, item in items.items()})
        )
    return _plain


def _or_none(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else make(value)


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Return a value of no declared type: objects in it become records without attributes."""
    match value:
        case dict():
            return Record({key: _plain(item) for key, item in value.items()})
        case list():
            return [_plain(item) for item in value]
        case _:
            return value


def _html(result: Any) -> str | None:  # noqa: ANN401
    from cohkit.display import show  # noqa: PLC0415
    from cohkit.errors import InputError  # noqa: PLC0415

    try:
        return show(result).html
    except InputError:
        # Only the text of this result can be shown.
        return None


def _frozen(value: object) -> object:
    match value:
        case dict():
            return frozenset((key, _frozen(item)) for key, item in value.items())
        case list() | tuple():
            return tuple(_frozen(item) for item in value)
        case _:
            return value
