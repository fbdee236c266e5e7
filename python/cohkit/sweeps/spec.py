"""Specification of a sweep, from a file or from a command line."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import tomllib
from typing import TYPE_CHECKING, Any

from cohkit.errors import Error, InputError, suggestion
from cohkit.experiments import EXPERIMENTS
from cohkit.protocols import decoded
from cohkit.sweeps.kinds import KINDS, names
from cohkit.sweeps.points import Point, Texts
from cohkit.sweeps.values import Value, once, plain, values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_KEYS = {"run": str, "seed": int, "repetitions": int, "options": dict, "sweep": dict}
# Number of values of an axis validated before any run; errors in other values are reported at their points.
_LOOKED_AT = 64
_MOST_SEED = 2**64
_MOST_POINTS = 1_000_000
_SEEDS = (
    "`--repetitions N`, or `repetitions` at the top of a file, runs each point with N seeds, from `--seed` or `seed` on"
)


@dataclasses.dataclass
class Spec:
    """A sweep: a command, its fixed options, and its axes, of which the last one varies fastest."""

    run: str
    options: dict[str, Value] = dataclasses.field(default_factory=dict)
    axes: dict[str, list[Value]] = dataclasses.field(default_factory=dict)
    seed: int = 0
    repetitions: int = 1
    place: Callable[[str, str], str] = lambda _table, _key: ""
    """Function that returns the location of an entry, as the start of a message."""
    besides: set[str] = dataclasses.field(default_factory=set)
    """Names given on the command line in addition to a file."""

    def add(self, name: str, told: object) -> None:
        """Add an axis, given as a string, a list or a single value."""
        if isinstance(told, str):
            self.axes[name] = values(name, told)
        elif isinstance(told, list) and all(isinstance(value, str | int) for value in told):
            self.axes[name] = once(name, told)
        elif isinstance(told, int):
            self.axes[name] = [told]
        else:
            raise InputError(f'`{name}` needs a text such as "60ns..140ns/20ns" or a list of texts and whole numbers')

    def points(self) -> list[Point]:
        """Return the points in order.

        Raises:
            Error: a request is invalid; the message contains its location.

        """
        if self.run == "reproduce":
            self._expand()
        self._judge()
        self._count()
        texts: dict[tuple[object, ...], Texts] = {}
        points: list[Point] = []
        for at in itertools.product(*self.axes.values()):
            axes = dict(zip(self.axes, at, strict=True))
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

    def _judge(self) -> None:
        kind = KINDS[self.run]
        for name in set(self.options) & set(self.axes):
            raise InputError(f"{self._at('sweep', name)}`{name}` is swept, and has a value for all points as well")
        first = {name: found[0] for name, found in self.axes.items()}
        if self.seed < 0:
            raise InputError(f"{self._at('', 'seed')}`seed` is at least 0, not {self.seed}")
        needs = [name for name in kind.takes if name not in self.options | first]
        if needs:
            raise InputError(f"{self.place('options', '')}`{self.run}` needs a `{needs[0]}`")
        for name, value in self.options.items():
            self._typed("options", name, value)
        for name, found in self.axes.items():
            for value in found:
                self._typed("sweep", name, value)
        self._looked_at({}, "options", "")
        for name, found in self.axes.items():
            for value in found[:_LOOKED_AT]:
                self._looked_at({name: value}, "sweep", name)

    def _count(self) -> None:
        """Check the number of points and the range of seeds."""
        if self.repetitions < 1:
            raise InputError(f"{self._at('', 'repetitions')}`repetitions` is at least 1, not {self.repetitions}")
        if self.seed + self.repetitions > _MOST_SEED:
            raise InputError(f"{self._at('', 'repetitions')}seeds, which go on from `seed`, are below 2**64")
        first = {name: found[0] for name, found in self.axes.items()}
        if self.repetitions > 1 and not KINDS[self.run].seeded(self.options | first):
            raise InputError(f"{self._at('', 'repetitions')}`{self.run}` has no seed here: it repeats itself exactly")

        count = self.repetitions * math.prod(map(len, self.axes.values()))
        if count > _MOST_POINTS:
            raise InputError(f"{self.place('', '')}{count} points are more than {_MOST_POINTS}; sweep them in pieces")

    def _looked_at(self, change: dict[str, Value], table: str, name: str) -> None:
        first = {axis: found[0] for axis, found in self.axes.items()}
        try:
            KINDS[self.run].judge(self.options | first | change, self.seed)
        except Error as error:
            # An invalid protocol or platform reports its own location.
            if isinstance(error, InputError):
                table, name = (table, name) if name else self._blamed(str(error))
                raise InputError(f"{self._at(table, name)}{error}") from None
            raise

    def _blamed(self, said: str) -> tuple[str, str]:
        """Return the table and key that an error message refers to: the first name in it, or all options."""
        there = dict.fromkeys(self.options, "options") | dict.fromkeys(self.axes, "sweep")
        found = [
            (match.start(), table, name)
            for name, table in there.items()
            if (match := re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", said))
        ]
        return min(found)[1:] if found else ("options", "")

    def _at(self, table: str, name: str) -> str:
        """Return the location of an entry; empty for one on the command line."""
        return "" if table != "options" and name in self.besides else self.place(table, name)

    def _typed(self, table: str, name: str, value: Value) -> None:
        """Check that the name exists, and that the value has its type."""
        kind, place = KINDS[self.run], self._at(table, name)
        expected = kind.options.get(name)
        if name in ("seed", "repetitions"):
            raise InputError(f"{place}`{name}` is no axis: {_SEEDS}")
        if expected is int and (isinstance(value, bool) or not isinstance(value, int)):
            raise InputError(f"{place}`{name}` is a whole number, not {_said(value)}")
        if expected is bool and not isinstance(value, bool):
            raise InputError(f"{place}`{name}` is true or false, not {_said(value)}")
        # The numbers of an application are checked by the application itself.
        if expected is None and name not in kind.takes and (self.run != "play" or "." in name):
            first = {axis: found[0] for axis, found in self.axes.items()}
            there = names(self.run, self.options | first)
            if name not in there:
                raise InputError(
                    f"{place}there is no axis `{name}`; {suggestion(name, there)}there are {', '.join(there)}"
                )


def _said(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def truth(kind: str, name: str, found: list[Value]) -> list[Value]:
    """Convert the strings `true` and `false` from a command line to Booleans, for Boolean options."""
    words = {"true": True, "false": False}
    if KINDS[kind].options.get(name) is bool:
        return [words.get(str(value), value) for value in found]
    return found


def from_file(path: Path) -> Spec:
    """Read a specification from a file.

    Raises:
        InputError: the specification is invalid; the message contains the location.
        OSError: the file cannot be read.

    """
    text = decoded(str(path), path.read_bytes())
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = match.groups() if match else (str(text.count("\n") + 1), "1")
        said = re.sub(r" \(at .*\)$", "", str(error))
        raise InputError(f"{path}:{line}:{column}: {said[:1].lower()}{said[1:]}") from None

    def place(table: str, key: str) -> str:
        line, column = _place(text, table, key)
        return f"{path}:{line}:{column}: "

    return _spec(table, place, lambda table, key: _place(text, table, key))


def _spec(
    table: dict[str, Any], place: Callable[[str, str], str], order: Callable[[str, str], tuple[int, int]]
) -> Spec:
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
        said = f"no `{table['run']}`" if "run" in table else "nothing else"
        raise InputError(f"{place('', 'run')}`run` says what is swept: {', '.join(KINDS)}, and {said}")
    spec = Spec(table["run"], seed=table.get("seed", 0), repetitions=table.get("repetitions", 1), place=place)
    for name, value in _dotted(table.get("options", {})):
        if not isinstance(value, str | int):
            raise InputError(f"{place('options', name)}`{name}` is a text, a whole number, true or false")
        spec.options[name] = value
    # TOML groups keys with a common prefix; their locations determine the order of the axes.
    for name, told in sorted(_dotted(table.get("sweep", {})), key=lambda axis: order("sweep", axis[0])):
        try:
            spec.add(name, told)
        except InputError as error:
            raise InputError(f"{place('sweep', name)}{error}") from None
    return spec


def _dotted(table: dict[str, Any], before: str = "") -> Iterator[tuple[str, object]]:
    """Yield dotted names: TOML parses an unquoted key `link.latency` as a table `link`."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{before}{name}.")
        else:
            yield before + name, value


def _place(text: str, table: str, key: str) -> tuple[int, int]:
    """Return the line and column of a key of a table, or of the table itself."""
    wanted = ".".join(filter(None, (table, key)))
    found, inside, known = (1, 1), "", ""
    for number, line in enumerate(text.splitlines(), start=1):
        if head := re.match(r"(\s*)\[+([^\[\]]*)\]", line):
            begins, name = head.groups()
            name = inside = _plain(name)
        elif match := re.match(r"""(\s*)((?:[\w.\s-]|"[^"]*"|'[^']*')+)=""", line):
            begins, name = match.groups()
            name = ".".join(filter(None, (inside, _plain(name))))
        else:
            continue
        if name == wanted:
            return number, len(begins) + 1
        # A key of an inline table has the location of that table; a missing key has the location of its table.
        if wanted.startswith(f"{name}.") and len(name) >= len(known):
            found, known = (number, len(begins) + 1), name
    return found


def _plain(key: str) -> str:
    """Return a key without quotes, and without blanks around its dots."""
    return ".".join(part.strip().strip("\"'") for part in key.split("."))


def setting(text: str) -> tuple[str, str]:
    """Split `NAME=VALUE`."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise InputError(f"`{text}` is not NAME=VALUE")
    return name, value


def fixed(kind: str, name: str, text: str) -> Value:
    """Parse the value of an option from a command line."""
    return truth(kind, name, [plain(text)])[0]
