"""Validation of JSON values against the result types."""

from __future__ import annotations

import types
from typing import Any, Literal, Union, get_args, get_origin

from cohkit.results import Record, Records, fields

_NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", type(None): "null"}


def misfit(value: object, hint: Any, location: str = "") -> str | None:  # noqa: ANN401 -- types are values, and of many kinds
    """Describe the first value that does not match a type, with the expectation; return `None` if all match.

    >>> misfit({"states": 4, "agent": "hall"}, dict[str, int])
    'at `agent` a whole number was expected, not "hall"'

    """
    if hint is Any:
        return None
    if isinstance(hint, type) and issubclass(hint, Record):
        return _record_misfit(value, hint, location)
    kind, inner = get_origin(hint), get_args(hint)
    if kind in (Union, types.UnionType):
        return _union_misfit(value, inner, location)
    if kind in (list, Records) and isinstance(value, list):
        return _items_misfit(enumerate(value), inner[0], location)
    if kind is dict and isinstance(value, dict):
        return _items_misfit(value.items(), inner[1], location)
    return None if _is_plain(value, hint) else _mismatch(value, hint, location)


def _is_plain(value: object, hint: Any) -> bool:  # noqa: ANN401
    kind, inner = get_origin(hint), get_args(hint)
    if kind is not None:
        # Tuples are lists in JSON; other lists and objects were already checked.
        fits = isinstance(value, list) and len(value) == len(inner)
        return value in inner if kind is Literal else kind is tuple and fits
    # Booleans are integers in Python, but not in JSON.
    if isinstance(value, bool):
        return hint is bool
    return isinstance(value, (int, float) if hint is float else hint)


def _record_misfit(value: object, hint: Any, location: str) -> str | None:  # noqa: ANN401
    if not isinstance(value, dict):
        return _mismatch(value, dict, location)
    for key, field in fields(hint).items():
        if key not in value and field.required:
            return f"at `{location or 'the top'}` the key `{key}` was expected"
        if key in value and (mismatch := misfit(value[key], field.hint, f"{location}.{key}".lstrip("."))):
            return mismatch
    return None


def _union_misfit(value: object, hints: tuple[Any, ...], location: str) -> str | None:
    mismatches = [misfit(value, hint, location) for hint in hints]
    # For an optional type, report the mismatch with the other alternative.
    return None if None in mismatches else mismatches[0]


def _items_misfit(items: Any, hint: Any, location: str) -> str | None:  # noqa: ANN401
    mismatches = (misfit(item, hint, f"{location}.{key}".lstrip(".")) for key, item in items)
    return next((mismatch for mismatch in mismatches if mismatch), None)


def _mismatch(value: object, hint: Any, location: str) -> str:  # noqa: ANN401
    return f"at `{location or 'the top'}` {_name(hint)} was expected, not {_short(value)}"


def _name(hint: Any) -> str:  # noqa: ANN401
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(f'"{word}"' for word in get_args(hint))
    kind = get_origin(hint) or hint
    return {list: "a list", Records: "a list", tuple: "a list", dict: "an object"}.get(kind) or _NAMES.get(
        kind, "an object"
    )


def _short(value: object) -> str:
    """Return a value in a few words, for a message."""
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return f'"{value[:30]}"'
    return str(value)
