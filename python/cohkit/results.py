"""Dictionaries of results, which are also members of sets and keys."""

from __future__ import annotations

import json
from typing import Any


class Answer(dict[str, Any]):
    """A dictionary that has the hash of what is in it; whoever keeps one in a set leaves it as it is.

    >>> import cohkit
    >>> len({cohkit.construct(cohkit.shipped("eci")) for _ in range(2)})
    1

    """

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]  # dictionaries have none
        """Give equal results equal hashes."""
        return hash(_frozen(self))


def answer(text: str) -> Any:  # noqa: ANN401 -- the caller knows which of `cohkit.types` it is
    """Read JSON of the compiled half."""
    return json.loads(text, object_hook=Answer)


def _frozen(value: object) -> object:
    match value:
        case dict():
            return frozenset((key, _frozen(item)) for key, item in value.items())
        case list() | tuple():
            return tuple(_frozen(item) for item in value)
        case _:
            return value
