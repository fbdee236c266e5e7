"""Old names of public objects. Each works for one release, and warns with the new name."""

from __future__ import annotations

import functools
import importlib
import warnings
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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


OLD_OPTIONS = {"cohkit.litmus": {"gives_up": "max_spontaneous_evictions"}}
"""New names of keyword arguments by function and old name."""


def _warn(old: str, new: str, stacklevel: int = 3) -> None:
    # By default, the code that uses the old name calls the caller of this function.
    message = f"`{old}` is now `{new}`; the next release removes the old name"
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel)


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


def current_options(function: str, options: Mapping[str, object]) -> dict[str, object]:
    """Return the keyword arguments of a function under their current names.

    Raises:
        TypeError: an argument is given under both names.

    """
    current = dict(options)
    for old, new in OLD_OPTIONS[function].items():
        if old in current:
            if new in current:
                raise TypeError(f"{function} got both `{new}` and its old name `{old}`")
            current[new] = current.pop(old)
            # The user's code calls the function that calls this one.
            _warn(f"{function}({old}=)", f"{function}({new}=)", stacklevel=4)
    return current
