"""Protocols and compositions: reading, checking, tabulating and drawing them."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from cohkit import _cohkit, types
from cohkit._cohkit import Composition, Protocol
from cohkit.errors import InputError, TextError, call, suggestion
from cohkit.results import Records, load, records
from cohkit.search_options import is_whole, native_search_options, whole_numbers

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from cohkit.search_options import CheckOptions, SearchOptions

_FOLDER = "protocols/"
_MAX_REMOTES, _MAX_LINES = 8, 4
_MAX_CAPACITY = 255


def read(file: str | os.PathLike[str]) -> Protocol:
    """Read a protocol from a file.

    Raises:
        TextError: the protocol is invalid; all its errors are listed.
        OSError: the file cannot be read.

    >>> import cohkit
    >>> cohkit.read("protocols/msi.coh").name
    'msi'
    >>> cohkit.read("msi")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] no such file; `cohkit.shipped('msi')` gives the shipped protocol: 'msi'

    """
    return _read(file, shipped_names())


def _read(file: str | os.PathLike[str], names: list[str]) -> Protocol:
    """Read a protocol file. `names` are the alternatives to list in the message."""
    name = str(file)
    try:
        data = Path(file).read_bytes()
    except FileNotFoundError as error:
        message = f"no such file or shipped protocol; {suggestion(name, names)}there are {', '.join(names)}"
        if name in shipped_names():
            message = f"no such file; `cohkit.shipped({name!r})` gives the shipped protocol"
        elif name in compositions():
            message = f"no such file; `cohkit.composition({name!r})` gives the shipped composition"
        raise FileNotFoundError(error.errno, message, name) from None
    return parse(decode(name, data), file=name)


def decode(file: str, data: bytes) -> str:
    """Return the text of a file.

    Raises:
        TextError: the file is not text in UTF-8.

    >>> from cohkit.protocols import decode
    >>> decode("wide.coh", "protocol".encode("utf-16"))
    Traceback (most recent call last):
    ...
    cohkit.errors.TextError: error: wide.coh:1:1: this is encoded in UTF-16; save it in UTF-8

    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise _text_error(file, 1, 1, "this is encoded in UTF-16", "save it in UTF-8")
    if b"\r" in data and b"\n" not in data:
        message, remedy = "its lines end in carriage returns only", "save it with Unix or Windows line endings"
        raise _text_error(file, 1, data.index(b"\r") + 1, message, remedy)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        valid_text = data[: error.start].decode()
        line, column = valid_text.count("\n") + 1, len(valid_text) - valid_text.rfind("\n")
        message = f"this is not a text file: byte {error.start} is not UTF-8"
        raise _text_error(file, line, column, message, "save it as plain text in UTF-8") from None


def _text_error(file: str, line: int, column: int, message: str, remedy: str) -> TextError:
    """Return the error for a file that is not text, at this line and column."""
    return TextError(
        file,
        [
            types.Diagnostic.of(
                {
                    "code": "not-text",
                    "message": message,
                    "line": line,
                    "column": column,
                    "end_line": line,
                    "end_column": column,
                    "label": "",
                    "notes": [{"message": remedy, "line": None, "column": None}],
                    "rendered": f"error: {file}:{line}:{column}: {message}; {remedy}",
                }
            )
        ],
    )


def parse(text: str, *, file: str = "<text>") -> Protocol:
    """Parse a protocol; `file` is the name to show in messages.

    Raises:
        TextError: the protocol is invalid; all its errors are listed.

    >>> import cohkit
    >>> cohkit.parse(cohkit.shipped("mesi").text, file="mine.coh")
    <cohkit.Protocol mesi of mine.coh>

    """
    return call(file, Protocol, text, file)


def shipped(name: str) -> Protocol:
    """Return a protocol that comes with the package.

    Raises:
        InputError: no shipped protocol has this name.

    >>> import cohkit
    >>> cohkit.shipped("eci").has_policy
    True

    """
    if name in compositions():
        raise InputError(f"`{name}` composes others: `cohkit.composition({name!r})` gives it")
    if name not in shipped_names():
        names = shipped_names()
        raise InputError(f"no protocol `{name}` is shipped; {suggestion(name, names)}there are {', '.join(names)}")
    file = f"{_FOLDER}{name}.coh"
    return parse(shipped_file(file), file=file)


def shipped_file(file: str) -> str:
    """Return the text of a file of the repository that comes with the package."""
    return dict(_cohkit.shipped())[file]


def shipped_names() -> list[str]:
    """Return the names of the protocols that come with the package.

    >>> import cohkit
    >>> cohkit.shipped_names()[:4]
    ['back-invalidate', 'ccix', 'chi', 'cxl-bias']

    """
    return _shipped_by_kind(composing=False)


def _shipped_by_kind(*, composing: bool) -> list[str]:
    texts = ((file, text) for file, text in _cohkit.shipped() if file.startswith(_FOLDER))
    return sorted(Path(file).stem for file, text in texts if _cohkit.composes(text) == composing)


def compositions() -> list[str]:
    """Return the names of the compositions that come with the package.

    >>> import cohkit
    >>> cohkit.compositions()
    ['clusters', 'cxl-type2', 'eci-both', 'two-level']

    """
    return _shipped_by_kind(composing=True)


def compose(text: str, *, file: str = "<text>") -> Composition:
    """Parse a composition and the protocols that it uses, which are files next to `file` or shipped protocols.

    Raises:
        TextError: the composition, or a protocol that it uses, is invalid; all errors are listed.

    >>> import cohkit
    >>> both = cohkit.compose(cohkit.composition("eci-both").text)
    >>> both.spaces, both.systems
    (['far', 'near'], ['both'])

    """
    return call(file, Composition, text, file, None)


def composition(name: str | os.PathLike[str]) -> Composition:
    """Return a composition, by the path of its file or by the name of a shipped one.

    Raises:
        TextError: the composition, or a protocol that it uses, is invalid; all errors are listed.
        OSError: the file cannot be read.

    >>> import cohkit
    >>> cohkit.composition("two-level")
    <cohkit.Composition two_level of protocols/two-level.coh>

    """
    name_text = str(name)
    matches = [short for short in compositions() if name_text in (short, f"{_FOLDER}{short}.coh")]
    if matches and not Path(name).exists():
        file = f"{_FOLDER}{matches[0]}.coh"
        return compose(shipped_file(file), file=file)
    try:
        data = Path(name).read_bytes()
    except FileNotFoundError as error:
        names = compositions()
        message = f"no such file or shipped specification; {suggestion(name_text, names)}there are {', '.join(names)}"
        raise FileNotFoundError(error.errno, message, name_text) from None
    return compose(decode(name_text, data), file=name_text)


def systems(protocol: Protocol | str | os.PathLike[str]) -> Records[types.System]:
    """Return the systems that a protocol lists for checking.

    Args:
        protocol: a protocol, the path of its file, or the name of a shipped one.

    >>> import cohkit
    >>> cohkit.systems(cohkit.shipped("msi"))[0]
    {'name': 'three_caches', 'remotes': 3, 'lines': 1}

    """
    return Records(
        types.System(name=name, remotes=remotes, lines=lines)
        for name, remotes, lines in load_protocol(protocol).systems
    )


def load_protocol(protocol: Protocol | str | os.PathLike[str]) -> Protocol:
    """Return a protocol, given as such, by the path of its file, or by the name of a shipped one.

    Raises:
        TextError: the protocol is invalid.
        InputError: the argument is the text of a protocol instead of a path.
        OSError: the file cannot be read.

    >>> import cohkit
    >>> from cohkit.protocols import load_protocol
    >>> load_protocol("msi") == cohkit.shipped("msi")
    True

    """
    if isinstance(protocol, Protocol):
        return protocol
    if isinstance(protocol, str) and "\n" in protocol:
        raise InputError("this is the text of a specification, not a path; use `cohkit.parse` for it")
    if _composes(Path(protocol)):
        raise InputError(f"{protocol} composes others, but this function needs one protocol: use `cohkit.composition`")
    return _load_file_or_shipped(protocol, shipped_names())


def _load_file_or_shipped(name: str | os.PathLike[str], names: list[str]) -> Protocol:
    # A file takes precedence over a shipped protocol.
    matches = [short for short in shipped_names() if str(name) in (short, f"{_FOLDER}{short}.coh")]
    return shipped(matches[0]) if matches and not Path(name).exists() else _read(name, names)


def load_executable(protocol: Protocol | Composition | str | os.PathLike[str]) -> Protocol | Composition:
    """Return the protocol or composition that a machine executes, given as such or by name.

    Raises:
        TextError: the protocol is invalid.
        InputError: the argument is the text of a protocol instead of a path, or a Murphi model.
        OSError: the file cannot be read.

    >>> from cohkit.protocols import load_executable
    >>> [load_executable(name).name for name in ("msi", "two-level")]
    ['msi', 'two_level']

    """
    if isinstance(protocol, Composition | Protocol):
        return protocol
    if "\n" in str(protocol):
        return load_protocol(protocol)
    if _composes(Path(protocol)):
        return composition(protocol)
    if Path(protocol).suffix == ".m":
        raise InputError(
            f"{protocol}: a Murphi model is not a protocol file; "
            "use the command `check` without a sweep, or `cohkit.check_model`"
        )
    return _load_file_or_shipped(protocol, sorted([*shipped_names(), *compositions()]))


def _composes(name: Path) -> bool:
    if not name.is_file():
        return any(str(name) in (short, f"{_FOLDER}{short}.coh") for short in compositions())
    # Reading reports files that are not text.
    return _cohkit.composes(name.read_bytes().decode(errors="replace"))


def check(
    protocol: Protocol | Composition | str | os.PathLike[str],
    *,
    systems: str | Sequence[str] | None = None,
    remotes: int | None = None,
    lines: int | None = None,
    capacity: int | None = None,
    **options: Unpack[CheckOptions],
) -> Records[types.Verdict]:
    """Explore every reachable state of the systems of a protocol, and check its properties.

    With the option `simulate_steps`, systems that are too large are explored by random walks.

    Args:
        protocol: a protocol, the path of its file, or the name of a shipped one; or a composition, of which each part
            is checked, and two levels of caches also together.
        systems: names of systems of the protocol, or one name; all if not given.
        remotes: caching agents of a system that replaces those of the protocol, 1 to 8; 1 if only `lines` is given.
        lines: cache lines of that system, 1 to 4; 1 if only `remotes` is given.
        capacity: maximum number of equal messages in an unordered channel, and of messages per line in an ordered one,
            1 to 255; 7 if not given. If it is exceeded, the verdict is undecided.
        **options: `any_number` adds a verdict for one line and every number of caching agents, a
            :class:`cohkit.types.AnyNumberVerdict`, after all others; `fairness`, which is `"weak"` or `"strong"`, adds
            a :class:`cohkit.types.StarvationVerdict` for each system; search options are those of
            :class:`cohkit.search_options.SearchOptions`.

    Raises:
        InputError: a system does not exist, a size is out of range, or `any_number` or `fairness` does not apply.
        TextError: no home can be constructed from a policy of this form.

    >>> import cohkit
    >>> [verdict] = cohkit.check(cohkit.shipped("msi"), systems=["three_caches"])
    >>> verdict["outcome"], verdict["states"], verdict["transitions"]
    ('verified', 4348, 14821)
    >>> verdicts = cohkit.check("write-through", remotes=2, any_number=True)
    >>> [(verdict.system, verdict.outcome) for verdict in verdicts]
    [('remotes_2_lines_1', 'verified'), ('any_number', 'verified')]

    """
    protocol = load_executable(protocol)
    if isinstance(systems, str):
        systems = [systems]
    names = None if systems is None else list(systems)
    any_number, fairness = options.pop("any_number", False), options.pop("fairness", None)
    caller_options = ("systems", "remotes", "lines", "capacity", "any_number", "fairness")
    search_options = native_search_options(options, caller_options=caller_options)
    if any_number:
        _validate_added_verdict("any_number", protocol, capacity, options)
    if fairness is not None:
        _validate_added_verdict("fairness", protocol, capacity, options)
        if fairness not in ("weak", "strong"):
            raise InputError(f"no fairness `{fairness}`: it is weak or strong")
    size = validate_size(protocol, systems=names, remotes=remotes, lines=lines, capacity=capacity)
    if isinstance(protocol, Composition):
        parts = call(
            protocol.file,
            _cohkit.check_composition,
            protocol,
            systems=names,
            capacity=capacity,
            search_options=search_options,
        )
        return records(types.Verdict.of, map(whole_numbers, load(parts)))
    verdicts = load(
        call(
            protocol.file,
            _cohkit.check,
            protocol,
            systems=names,
            size=size,
            capacity=capacity,
            any_number=any_number,
            fairness=fairness,
            search_options=search_options,
        )
    )
    return records(_verdict, map(whole_numbers, verdicts))


def _verdict(entry: Mapping[str, Any]) -> types.Verdict:
    """Return the record of a verdict on a system, on its transactions, or for every number of caching agents."""
    if "views" in entry:
        return types.AnyNumberVerdict.of(entry)
    return (types.StarvationVerdict if "fairness" in entry else types.Verdict).of(entry)


def _validate_added_verdict(
    option: str, protocol: Protocol | Composition, capacity: int | None, options: SearchOptions
) -> None:
    """Reject what the option for an additional verdict excludes."""
    if isinstance(protocol, Composition):
        raise InputError(f"`{option}` applies to one protocol, but this specification composes several")
    if capacity is not None:
        raise InputError(f"`{option}` has a fixed channel capacity: leave out `capacity`")
    if options.get("simulate_steps") is not None:
        raise InputError(f"`{option}` applies to searches: leave out `simulate_steps`")


def validate_size(
    protocol: Protocol | Composition,
    *,
    systems: Sequence[str] | None = None,
    remotes: int | None = None,
    lines: int | None = None,
    capacity: int | None = None,
) -> tuple[int, int] | None:
    """Return the size of a system that replaces those of the protocol, if one is given.

    Raises:
        InputError: a number is out of range, or does not apply to this protocol.

    >>> import cohkit
    >>> from cohkit.protocols import validate_size
    >>> validate_size(cohkit.shipped("msi"), remotes=3)
    (3, 1)

    """
    if capacity is not None:
        _number("capacity", capacity, _MAX_CAPACITY)
    if remotes is None and lines is None:
        return None
    if isinstance(protocol, Composition):
        name = "lines" if remotes is None else "remotes"
        raise InputError(f"`{name}` is for one protocol, and {protocol.file} composes several")
    if systems is not None:
        raise InputError("name systems of the specification, or give `remotes` and `lines`, not both")
    return _number("remotes", remotes, _MAX_REMOTES), _number("lines", lines, _MAX_LINES)


def _number(name: str, number: int | None, maximum: int) -> int:
    """Return a number after checking that it is from 1 to `maximum`; 1 if it is not given."""
    if number is None:
        return 1
    if not (is_whole(number) and 1 <= number <= maximum):
        raise InputError(f"`{name}` is 1 to {maximum}, not {number!r}")
    return number


def table(
    protocol: Protocol | str | os.PathLike[str],
    *,
    agent: Literal["home", "remote"] = "home",
    merged: bool = False,
) -> types.Table:
    """Return an agent's controller as rows: state, event, guard, actions, next state.

    A home that is given as a policy is constructed first; its table is that for one remote.
    With `merged`, its indistinguishable states are merged.

    Args:
        protocol: a protocol, the path of its file, or the name of a shipped one.
        agent: the agent whose table is returned.
        merged: whether to merge states of a constructed home.

    Raises:
        FaultError: the policy cannot be implemented.
        TextError: no home can be constructed from a policy of this form.

    >>> import cohkit
    >>> remote = cohkit.table(cohkit.shipped("msi"), agent="remote")
    >>> remote["rows"][0]
    {'state': 'I', 'event': 'load', 'guard': None, 'actions': ['send GetS'], 'next': 'IS_D', 'line': 49}

    """
    if agent not in ("home", "remote"):
        raise InputError(f"`agent` is 'home' or 'remote', not {agent!r}")
    protocol = load_protocol(protocol)
    result = call(protocol.file, _cohkit.table, protocol, home=agent == "home", merged=merged)
    return types.Table.of(_ordered(load(result)))


def bridges(composition: Composition | str | os.PathLike[str]) -> Records[types.BridgeTable]:
    """Return the bridges of a composition as tables: each an outer cache together with the home over it.

    Both levels of the composition's first system are explored together. A state has only the parts that its events and
    messages depend on.

    Args:
        composition: a composition with levels, the path of its file, or the name of a shipped one.

    Raises:
        InputError: the composition has no levels, a property is violated, or the search is incomplete.

    >>> import cohkit
    >>> for bridge in cohkit.bridges("clusters"):
    ...     print(bridge.inner, bridge.outer, len(bridge.rows))
    cpu outer 178
    gpu outer 43

    """
    executable = load_executable(composition)
    if isinstance(executable, Protocol):
        raise InputError(
            f"{executable.file} is a protocol: a composition has bridges, and `cohkit.table` gives its rows"
        )
    return records(types.BridgeTable.of, load(call(executable.file, _cohkit.bridges, executable)))


def _ordered(table: dict[str, object]) -> dict[str, object]:
    """Sort the cells of each row into reading order."""
    rows = cast("list[dict[str, object]]", table["rows"])
    cells = ("state", "event", "guard", "actions", "next", "line")
    return table | {"rows": [{key: row[key] for key in cells} for row in rows]}


def construct(protocol: Protocol | str | os.PathLike[str]) -> types.Construction:
    """Construct the home from its policy, and return its sizes and notes.

    Args:
        protocol: a protocol, the path of its file, or the name of a shipped one.

    Raises:
        InputError: the home of this protocol is written by hand.
        FaultError: the policy cannot be implemented, so there is no home.
        TextError: no home can be constructed from a policy of this form.

    >>> import cohkit
    >>> cohkit.construct(cohkit.shipped("msi-policy"))["merged"]["events"] > 0
    True

    """
    protocol = load_protocol(protocol)
    result = call(protocol.file, _cohkit.construct, protocol)
    if result is None:
        raise InputError(f"{protocol.file}: the home is hand-written; there is nothing to construct")
    return types.Construction.of(load(result))


def chart_text(sequence: Mapping[str, Any], *, width: int | None = None, ascii_only: bool = False) -> str:
    """Draw a message sequence as text, in `width` columns if given, with only ASCII characters if requested.

    Raises:
        InputError: the argument is not a message sequence.

    >>> import cohkit
    >>> step = {"agent": 0, "action": {"kind": "does", "what": "load"}, "visible": True}
    >>> print(cohkit.chart_text({"agents": ["cpu", "home"], "steps": [step]}, ascii_only=True))
    cpu     home
     |       |
     # load  |
     |       |
    <BLANKLINE>

    """
    return _cohkit.chart_text(_sequence(sequence), width=width, ascii_only=ascii_only)


def chart_svg(sequence: Mapping[str, Any], *, title: str = "") -> str:
    """Draw a message sequence as SVG.

    Raises:
        InputError: the argument is not a message sequence.

    >>> import cohkit
    >>> cohkit.chart_svg({"agents": ["cpu", "home"], "steps": []}, title="nothing")[:4]
    '<svg'

    """
    return _cohkit.chart_svg(_sequence(sequence), title=title)


def _sequence(sequence: object) -> str:
    """Serialise a message sequence for the compiled module."""
    if not (isinstance(sequence, Mapping) and "agents" in sequence and "steps" in sequence):
        raise InputError(
            "this is not a message sequence: one has `agents` and `steps`, as in `sequences` of a counterexample"
        )
    return json.dumps(sequence)
