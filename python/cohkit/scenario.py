"""User-defined applications: scenarios, and their interface to the compiled module."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from cohkit import cpu, device
from cohkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable


class Contents(NamedTuple):
    """Contents of memory after a run, when no message is in flight, with the initial contents. Words have 64 bits."""

    words: Sequence[Sequence[int]]
    """Final words of each line of the scenario."""
    initial: Sequence[Sequence[int]]
    """Words of each line before the run."""
    host: Sequence[int] = ()
    """Final values of the scenario's `host_words` words of host memory."""


class Scenario(ABC):
    """An application and the threads that use it, which `play` accepts instead of a name.

    `application` and `threads` are called for each run and must return fresh objects, because a failed run is repeated.

    >>> import cohkit
    >>> from cohkit import cpu, device
    >>> class Snatcher(device.Application):
    ...     name = "snatcher"
    ...
    ...     def handle(self, event):
    ...         match event:
    ...             case device.PermissionChange(line, _, "write"):
    ...                 yield device.Local(line, "clean-invalidate")
    ...             case device.LocalCompletion(dirty=dirty):
    ...                 yield device.Count("written", int(dirty))
    >>> def writer():
    ...     for value in range(10):
    ...         yield cpu.Store(0, 0, value)
    ...         yield cpu.Fence()
    ...         yield cpu.Work(1_000_000)
    >>> class Snatching(cohkit.Scenario):
    ...     lines = 1
    ...
    ...     def application(self):
    ...         return Snatcher()
    ...
    ...     def threads(self):
    ...         return [writer()]
    >>> cohkit.play("enzian-dc-bram", Snatching())["counts"]
    {'written': 10}
    """

    lines: int
    """Number of lines of the home that the scenario uses, starting at line 0."""
    ends: bool = True
    """True if the scenario ends by itself, false if only the end of the run stops it."""
    host_words: int = 0
    """Number of words of host memory that are accessed coherently, from word 0, if host memory is a separate space."""

    @abstractmethod
    def application(self) -> device.Application:
        """Return a new application in its initial state."""

    @abstractmethod
    def threads(self) -> Sequence[cpu.Thread]:
        """Return new threads at their first step; thread `n` runs on core `n`."""

    def verify(self, application: device.Application, contents: Contents) -> str | None:  # noqa: ARG002 -- for overrides
        """Check the state at the end of a run. Return a description of the failure in one sentence, or `None`."""
        return None


# Classes of the events by their names in the compiled module.
_EVENTS: dict[str, Callable[..., device.Event]] = {
    "start": device.Start,
    "read": device.Read,
    "write": device.Write,
    "permission_change": device.PermissionChange,
    "local_completion": device.LocalCompletion,
    "fetch_completion": device.FetchCompletion,
    "read_completion": device.ReadCompletion,
    "store_completion": device.StoreCompletion,
    "timer": device.Timer,
    "register_read": device.RegisterRead,
    "register_write": device.RegisterWrite,
    "host_fetch_completion": device.HostFetchCompletion,
    "coherent_load_completion": device.CoherentLoadCompletion,
    "coherent_store_completion": device.CoherentStoreCompletion,
    "page_fault": device.AccessRefusal,
    "stop": device.Stop,
}


# Bits of the numbers in actions and steps, by field; 64 if not listed.
_BITS = {"line": 32, "lines": 32, "first": 32, "tag": 32, "thread": 32, "register": 32, "word": 16}
# Exceptions, by class and field.
_BITS_OF = {
    (cpu.LoadHost, "word"): 32,
    (cpu.StoreHost, "word"): 32,
    (device.HostFetch, "words"): 32,
    (device.ReadWords, "words"): 16,
    (device.CoherentLoad, "words"): 32,
    (device.CoherentAdd, "word"): 32,
    (device.CoherentCompareSwap, "word"): 32,
}


def _to_native(instruction: object, module: str) -> tuple[str, tuple[Any, ...]]:
    """Return the name of an action or step in the compiled module, and its values.

    Raises:
        TypeError: `instruction` is not an action or step of the module `module`, or a field has the wrong type.
        OverflowError: a number is out of range; the message names the action or step, its line and the field.

    """
    if not (isinstance(instruction, tuple) and type(instruction).__module__ == module):
        raise TypeError(f"{instruction!r} is not one of the valid instructions, which are in {module}")
    kind = type(instruction)
    fields: tuple[str, ...] = getattr(kind, "_fields", ())
    for field, value in zip(fields, instruction, strict=True):
        expected = kind.__annotations__[field].__forward_arg__
        if expected == "Sequence[int]" and (isinstance(value, str) or not hasattr(value, "__len__")):
            raise TypeError(f"{instruction!r}: `{field}` are numbers, not {value!r}")
        bits = _BITS_OF.get((kind, field), _BITS.get(field, 64))
        for number in value if isinstance(value, Sequence) and not isinstance(value, str) else [value]:
            if expected in {"int", "Sequence[int]"} and not hasattr(number, "__index__"):
                raise TypeError(f"{instruction!r}: `{field}` is a number, not {number!r}")
            if isinstance(number, int) and not 0 <= number < 2**bits:
                raise OverflowError(f"{instruction!r}: `{field}` is 0 to {2**bits - 1}, not {number}")
    return kind.__name__, tuple(instruction)


# Advances a thread. The arguments are the result of its last step, and for a refused access whether it is a write and
# the permission of the page. Returns the next step, None if the thread ends, or False if it does not catch the refusal.
_Stepper = Callable[[int, tuple[bool, device.Permission] | None], tuple[str, tuple[Any, ...]] | Literal[False] | None]


class ScenarioRun(NamedTuple):
    """A started scenario, as passed to the compiled module."""

    name: str
    """Name of the application."""
    lines: tuple[int, int] | None
    """First line that the application serves and the end of its range; `None` for an application beside the home."""
    handle: Callable[[str, tuple[Any, ...]], list[tuple[str, tuple[Any, ...]]]]
    """Handles an event, given by name and values, and returns the actions as names with values."""
    threads: list[_Stepper]
    verify: Callable[[list[list[int]], list[list[int]], list[int]], str | None]
    """Checks final words, initial words and host words as `Scenario.verify` does."""


# Lines and words of host memory are numbered by 32 bits.
_MAX_NUMBER = 2**32 - 1


def resource_count(scenario: Scenario, resource: str = "lines") -> int:
    """Return the number of lines, or of words of host memory, that a scenario uses.

    Raises:
        InputError: the scenario does not define `resource`, or not as a number from 0 to 2**32 - 1.

    """
    number: object = getattr(scenario, resource, None)
    if not isinstance(number, int) or not 0 <= number <= _MAX_NUMBER:
        name = type(scenario).__name__
        noun = resource.removeprefix("host_")
        raise InputError(
            f"`{resource}` of the scenario {name} is a number of {noun}, 0 to {_MAX_NUMBER}, not {number!r}"
        )
    return number


def _served_lines(application: device.Application) -> tuple[int, int] | None:
    """Return the first line that an application serves and the end of its range; `None` if it is beside the home.

    Raises:
        InputError: `lines` of the application is no valid range with step 1.

    """
    lines: object = application.lines
    if lines is None:
        return None
    if not isinstance(lines, range) or lines.step != 1 or not 0 <= lines.start <= lines.stop <= _MAX_NUMBER:
        raise InputError(
            f"`lines` of the application {application.name} must be a range of consecutive lines, "
            f"such as range(8), or None, not {lines!r}"
        )
    return lines.start, lines.stop


def start(scenario: Scenario) -> ScenarioRun:
    """Create the application and the threads of a scenario for one run.

    Raises:
        InputError: the lines of the scenario or of its application are invalid.

    """
    application = scenario.application()

    def handle(kind: str, values: tuple[Any, ...]) -> list[tuple[str, tuple[Any, ...]]]:
        actions: Iterable[device.Action] | None = application.handle(_EVENTS[kind](*values))
        if actions is None:
            raise TypeError(
                f"`handle` of {type(application).__name__} returns None; yield actions, or return a list of them, "
                "which may be empty"
            )
        return [_to_native(action, device.__name__) for action in actions]

    def verify(words: list[list[int]], initial: list[list[int]], host: list[int]) -> str | None:
        return scenario.verify(application, Contents(words, initial, host))

    served = _served_lines(application)
    lines = max(resource_count(scenario), served[1] if served else 0)
    threads = [_thread_stepper(thread, number, lines) for number, thread in enumerate(scenario.threads())]
    return ScenarioRun(application.name, served, handle, threads, verify)


def _thread_stepper(thread: cpu.Thread, number: int, lines: int) -> _Stepper:
    """Return the function that advances a thread. It raises `InputError` for accesses beyond the scenario's `lines`."""
    last_step: cpu.Step | None = None

    def step(
        result: int, refusal: tuple[bool, device.Permission] | None
    ) -> tuple[str, tuple[Any, ...]] | Literal[False] | None:
        nonlocal last_step
        error = cpu.AccessError(last_step, *refusal) if last_step is not None and refusal is not None else None
        try:
            if error is not None:
                last_step = thread.throw(error)
            elif last_step is None:
                last_step = next(thread)
            else:
                last_step = thread.send(result)
        except StopIteration:
            return None
        except cpu.AccessError as raised:
            if raised is error:
                return False
            raise
        line = getattr(last_step, "line", None)
        if isinstance(line, int) and 0 <= line < 2**32 and line >= lines:
            raise InputError(f"thread {number}: {last_step!r}: the scenario has {lines} lines, from 0")
        return _to_native(last_step, cpu.__name__)

    return step
