"""Specification of a sweep, from a file or from a command line."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import tomllib
from typing import TYPE_CHECKING, Any

from cohkit._cohkit import current_name
from cohkit.errors import Error, InputError, suggestion
from cohkit.experiments import EXPERIMENTS
from cohkit.protocols import decode
from cohkit.sweeps.kinds import KINDS, current_option, names
from cohkit.sweeps.points import Point, Texts
from cohkit.sweeps.values import Value, parse_value, validate_unique, values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_KEYS = {"run": str, "seed": int, "repetitions": int, "options": dict, "sweep": dict}
# Number of values of an axis validated before any run; errors in other values are reported at their points.
_VALIDATED_VALUES = 64
_SEED_LIMIT = 2**64
_MAX_POINTS = 1_000_000
_SEEDS = (
    "`--repetitions N`, or `repetitions` at the top of a file, runs each point with N seeds, from `--seed` or `seed` on"
)


@dataclasses.dataclass
class Spec:
    """A sweep: a command, its fixed options, and its axes, of which the last one varies fastest.

    Attributes:
        run: the command: a key of `KINDS`.
        options: options with one value for all points.
        axes: values of each option that varies.
        seed: seed of the first repetition.
        repetitions: number of runs of each point, with consecutive seeds.

    """

    run: str
    options: dict[str, Value] = dataclasses.field(default_factory=dict)
    axes: dict[str, list[Value]] = dataclasses.field(default_factory=dict)
    seed: int = 0
    repetitions: int = 1
    place: Callable[[str, str], str] = lambda _table, _key: ""
    """Function that returns the location of an entry, as the start of a message."""
    command_line_names: set[str] = dataclasses.field(default_factory=set)
    """Names given on the command line in addition to a file."""

    def add(self, name: str, axis_values: object) -> None:
        """Add an axis, given as a string, a list or a single value."""
        if isinstance(axis_values, str):
            self.axes[name] = values(name, axis_values)
        elif isinstance(axis_values, list) and all(isinstance(value, str | int) for value in axis_values):
            self.axes[name] = validate_unique(name, axis_values)
        elif isinstance(axis_values, int):
            self.axes[name] = [axis_values]
        else:
            raise InputError(f'`{name}` needs a string such as "60ns..140ns/20ns" or a list of strings and integers')

    def points(self) -> list[Point]:
        """Return the points in order.

        Raises:
            Error: a request is invalid; the message contains its location.

        """
        if self.run == "reproduce":
            self._expand()
        self._validate()
        self._count()
        texts: dict[tuple[object, ...], Texts] = {}
        points: list[Point] = []
        for combination in itertools.product(*self.axes.values()):
            axes = dict(zip(self.axes, combination, strict=True))
            options = self.options | axes
            files = tuple(options.get(name) for name in ("protocol", "platform", "test", "workload"))
            if files not in texts:
                texts[files] = Texts.of(options)
            for repetition in range(self.repetitions):
                seed = self.seed + repetition
                points.append(Point(len(points), self.run, options, axes, seed, repetition, texts[files]))
        return points

    def _expand(self) -> None:
        """Expand the value `all` to the names of all experiments."""
        if self.options.get("experiment") == "all":
            del self.options["experiment"]
            self.axes = {"experiment": ["all"], **self.axes}
        if self.axes.get("experiment") == ["all"]:
            self.axes["experiment"] = [*EXPERIMENTS]

    def _validate(self) -> None:
        """Reject missing, unknown and duplicate options, and values of the wrong type."""
        kind = KINDS[self.run]
        for name in set(self.options) & set(self.axes):
            raise InputError(f"{self._location('sweep', name)}`{name}` is swept, but also has a value for all points")
        first = {name: axis_values[0] for name, axis_values in self.axes.items()}
        if self.seed < 0:
            raise InputError(f"{self._location('', 'seed')}`seed` is at least 0, not {self.seed}")
        missing = [name for name in kind.takes if name not in self.options | first]
        if missing:
            raise InputError(f"{self.place('options', '')}`{self.run}` needs a `{missing[0]}`")
        for name, value in self.options.items():
            self._validate_type("options", name, value)
        for name, axis_values in self.axes.items():
            for value in axis_values:
                self._validate_type("sweep", name, value)
        self._validate_options({}, "options", "")
        for name, axis_values in self.axes.items():
            for value in axis_values[:_VALIDATED_VALUES]:
                self._validate_options({name: value}, "sweep", name)

    def _count(self) -> None:
        """Check the number of points and the range of seeds."""
        if self.repetitions < 1:
            raise InputError(f"{self._location('', 'repetitions')}`repetitions` is at least 1, not {self.repetitions}")
        if self.seed + self.repetitions > _SEED_LIMIT:
            raise InputError(f"{self._location('', 'repetitions')}seeds count up from `seed` and must be below 2**64")
        first = {name: axis_values[0] for name, axis_values in self.axes.items()}
        if self.repetitions > 1 and not KINDS[self.run].uses_seed(self.options | first):
            raise InputError(f"{self._location('', 'repetitions')}`{self.run}` has no seed here: it is deterministic")

        count = self.repetitions * math.prod(map(len, self.axes.values()))
        if count > _MAX_POINTS:
            raise InputError(f"{self.place('', '')}{count} points are more than {_MAX_POINTS}; sweep them in pieces")

    def _validate_options(self, overrides: dict[str, Value], table: str, name: str) -> None:
        first = {axis: axis_values[0] for axis, axis_values in self.axes.items()}
        try:
            KINDS[self.run].validate(self.options | first | overrides, self.seed)
        except Error as error:
            # An invalid protocol or platform reports its own location.
            if isinstance(error, InputError):
                table, name = (table, name) if name else self._entry_in_message(str(error))
                raise InputError(f"{self._location(table, name)}{error}") from None
            raise

    def _entry_in_message(self, message: str) -> tuple[str, str]:
        """Return the table and key that an error message refers to: the first name in it, or all options."""
        tables_by_name = dict.fromkeys(self.options, "options") | dict.fromkeys(self.axes, "sweep")
        mentions = [
            (match.start(), table, name)
            for name, table in tables_by_name.items()
            if (match := re.search(rf"(?<![\w.]){re.escape(current_name(name))}(?![\w.])", message))
        ]
        return min(mentions)[1:] if mentions else ("options", "")

    def _location(self, table: str, name: str) -> str:
        """Return the location of an entry; empty for one on the command line."""
        return "" if table != "options" and name in self.command_line_names else self.place(table, name)

    def _validate_type(self, table: str, name: str, value: Value) -> None:
        """Check that the name exists, and that the value has its type."""
        kind, place = KINDS[self.run], self._location(table, name)
        expected = kind.options.get(name)
        if name in ("seed", "repetitions"):
            raise InputError(f"{place}`{name}` is no axis: {_SEEDS}")
        if expected is int and (isinstance(value, bool) or not isinstance(value, int)):
            raise InputError(f"{place}`{name}` is a whole number, not {_format_value(value)}")
        if expected is bool and not isinstance(value, bool):
            raise InputError(f"{place}`{name}` is true or false, not {_format_value(value)}")
        # The numbers of an application are checked by the application itself.
        if expected is None and name not in kind.takes and (self.run != "play" or "." in name):
            first = {axis: axis_values[0] for axis, axis_values in self.axes.items()}
            axis_names = names(self.run, self.options | first)
            if current_name(name) not in axis_names:
                raise InputError(
                    f"{place}there is no axis `{name}`; {suggestion(name, axis_names)}there are {', '.join(axis_names)}"
                )


def _format_value(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def convert_booleans(kind: str, name: str, axis_values: list[Value]) -> list[Value]:
    """Convert the strings `true` and `false` from a command line to Booleans, for Boolean options."""
    booleans = {"true": True, "false": False}
    if KINDS[kind].options.get(name) is bool:
        return [booleans.get(str(value), value) for value in axis_values]
    return axis_values


def from_file(path: Path) -> Spec:
    """Read a specification from a file.

    Raises:
        InputError: the specification is invalid; the message contains the location.
        OSError: the file cannot be read.

    """
    text = decode(str(path), path.read_bytes())
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = match.groups() if match else (str(text.count("\n") + 1), "1")
        message = re.sub(r" \(at .*\)$", "", str(error))
        raise InputError(f"{path}:{line}:{column}: {message[:1].lower()}{message[1:]}") from None

    def place(table: str, key: str) -> str:
        line, column = _key_location(text, table, key)
        return f"{path}:{line}:{column}: "

    return _spec(table, place, lambda table, key: _key_location(text, table, key))


def _spec(
    table: dict[str, Any], place: Callable[[str, str], str], order: Callable[[str, str], tuple[int, int]]
) -> Spec:
    """Return the specification in a TOML table.

    `place` returns the location of a key for messages, and `order` its line and column.
    """
    for key, value in table.items():
        expected = _KEYS.get(key)
        if expected is None:
            raise InputError(
                f"{place('', key)}a sweep has no `{key}`; {suggestion(key, _KEYS)}it has {', '.join(_KEYS)}"
            )
        if not isinstance(value, expected) or isinstance(value, bool):
            form = {str: "a text", int: "a whole number", dict: "a table"}[expected]
            raise InputError(f"{place('', key)}`{key}` is {form}")
    if table.get("run") not in KINDS:
        message = f"no `{table['run']}`" if "run" in table else "nothing else"
        raise InputError(f"{place('', 'run')}`run` must name the swept command: {', '.join(KINDS)}, and {message}")
    spec = Spec(table["run"], seed=table.get("seed", 0), repetitions=table.get("repetitions", 1), place=place)
    for name, value in _flatten_keys(table.get("options", {})):
        if not isinstance(value, str | int):
            raise InputError(f"{place('options', name)}`{name}` must be a string, an integer, true or false")
        spec.options[current_option(spec.run, name)] = value
    # TOML groups keys with a common prefix; their locations determine the order of the axes.
    for name, axis_values in sorted(_flatten_keys(table.get("sweep", {})), key=lambda axis: order("sweep", axis[0])):
        try:
            spec.add(current_option(spec.run, name), axis_values)
        except InputError as error:
            raise InputError(f"{place('sweep', name)}{error}") from None
    return spec


def _flatten_keys(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield dotted names: TOML parses an unquoted key `link.latency` as a table `link`."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flatten_keys(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _key_location(text: str, table: str, key: str) -> tuple[int, int]:
    """Return the line and column of a key of a table, or of the table itself."""
    full_key = ".".join(filter(None, (table, key)))
    location, current_table, matched_name = (1, 1), "", ""
    for number, line in enumerate(text.splitlines(), start=1):
        if head := re.match(r"(\s*)\[+([^\[\]]*)\]", line):
            indentation, name = head.groups()
            name = current_table = _unquoted_key(name)
        elif match := re.match(r"""(\s*)((?:[\w.\s-]|"[^"]*"|'[^']*')+)=""", line):
            indentation, name = match.groups()
            name = ".".join(filter(None, (current_table, _unquoted_key(name))))
        else:
            continue
        if name == full_key:
            return number, len(indentation) + 1
        # A key of an inline table has the location of that table; a missing key has the location of its table.
        if full_key.startswith(f"{name}.") and len(name) >= len(matched_name):
            location, matched_name = (number, len(indentation) + 1), name
    return location


def _unquoted_key(key: str) -> str:
    """Return a key without quotes, and without blanks around its dots."""
    return ".".join(part.strip().strip("\"'") for part in key.split("."))


def split_setting(text: str) -> tuple[str, str]:
    """Split `NAME=VALUE`."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise InputError(f"`{text}` is not NAME=VALUE")
    return name, value


def parse_option(kind: str, name: str, text: str) -> Value:
    """Parse the value of an option from a command line."""
    return convert_booleans(kind, name, [parse_value(text)])[0]
