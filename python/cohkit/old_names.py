"""Old names of public objects. Each works for one release, and warns with the new name."""

from __future__ import annotations

import functools
import importlib
import warnings
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_P = ParamSpec("_P")
_T = TypeVar("_T")

OLD_NAMES = {
    "cohkit": {"Shown": "Display", "looking": "search_options", "own": "scenario", "shown": "display"},
    "cohkit.cpu": {"Hint": "Prefetch"},
    "cohkit.device": {
        "Changed": "PermissionChange",
        "CoherentLoaded": "CoherentLoadCompletion",
        "CoherentStored": "CoherentStoreCompletion",
        "Done": "LocalCompletion",
        "Fetched": "FetchCompletion",
        "Forgo": "Abandon",
        "HostFetched": "HostFetchCompletion",
        "Refused": "AccessRefusal",
        "RegisterWritten": "RegisterWrite",
        "Right": "Permission",
        "Stored": "StoreCompletion",
        "WordsRead": "ReadCompletion",
    },
    "cohkit.published": {"Ours": "Measurement", "Said": "Claim", "Standing": "Provenance"},
    "cohkit.types": {
        "Limit": "Bottleneck",
        "LitmusEnd": "LitmusOutcome",
        "Moment": "AccessStep",
        "Slowest": "SlowestAccess",
        "Spent": "LatencyTotal",
        "SpentPart": "PartLatency",
        "SpentStep": "StepLatency",
        "Stretch": "Interval",
        "Taken": "MessageTraffic",
        "Travelled": "LinkTraffic",
        "Unfinished": "UndecidedQuestion",
        "Walks": "RandomWalks",
    },
}
"""New names by module and old name."""


def _warn(old: str, new: str) -> None:
    # Level 3 is the code that uses the old name.
    warnings.warn(f"`{old}` is now `{new}`; the next release removes the old name", DeprecationWarning, stacklevel=3)


def resolver(module: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module, which resolves its old names."""

    def resolve(name: str) -> Any:  # noqa: ANN401 -- any object of the module
        new = OLD_NAMES[module].get(name)
        if new is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        _warn(f"{module}.{name}", f"{module}.{new}")
        return getattr(importlib.import_module(module), new)

    return resolve


def old_method(old: str, method: Callable[_P, _T]) -> Callable[_P, _T]:
    """Return a method under its old name."""

    @functools.wraps(method)
    def renamed(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        owner = method.__qualname__.rpartition(".")[0]
        _warn(f"{owner}.{old}", method.__qualname__)
        return method(*args, **kwargs)

    return renamed
