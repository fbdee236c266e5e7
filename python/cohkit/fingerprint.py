"""Fingerprint of the model behind `docs/fidelity.md`: digests of its inputs, and numbers of small runs.

A record has the fingerprint of the program that made it. If the present one differs, the record is older than a change
that moves its numbers. Comments, documentation and the layout of the code are not in it.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohkit import _cohkit, experiments
from cohkit.experiments import EXPERIMENTS, Conditions, derived
from cohkit.experiments.study import SEPARATOR, Study
from cohkit.protocols import shipped_file
from cohkit.published import Published
from cohkit.simulator import platform

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cohkit.published import Measurement

ACCESSES: Mapping[str, int] = {
    "eci-home": 1,
    "cckit-table2": 2**11,
    "cckit-fig6": 2**13,
    "cckit-table3": 2**10,
    "cckit-fig7": 2**11,
    "cckit-fig8": 2**8,
    "cckit-fig9": 2**13,
    "cckit-fig10": 2**9,
    "rpc-payload": 2,
    "eci-link": 2**9,
    "ccix-exp1": 2**9,
    "ccix-exp3": 2**9,
    "cord-fig2": 2**9,
    "cord-fig7": 2**8,
    "cord-fig8": 2**9,
    "cord-table3": 1,
    "proxics-table1": 2**10,
    "proxics-bulk": 2**8,
    "proxics-pipes": 64,
    "proxics-spawn": 1,
    "proxics-sum": 2**9,
    "proxics-uts": 2**6,
    "proxics-pagerank": 2**7,
}
"""Limit of the small runs of each experiment with published results. All together take half a minute."""
SMALL_CACHES = ("cckit-fig6", "ccix-exp3")
"""Experiments whose small runs are repeated with small caches: their caches have more lines than a small run accesses,
so that nothing is evicted without this."""
SMALL_SETS = "64"
"""Sets of a small cache: 1024 lines of 16 ways, an eighth of a small run of `cckit-fig6`, and more than the outstanding
accesses of 48 cores."""
_FOLDER = "python/cohkit/experiments"
DIGITS = 9
"""Significant digits of the numbers of small runs."""


def fingerprint(names: Iterable[str] = ACCESSES) -> dict[str, Any]:
    """Return the digests of the inputs of these experiments by file, and the numbers of their small runs."""
    values: dict[str, dict[str, float]] = {}
    platforms: set[str] = set()
    protocols: set[str] = set()
    keys = Published.shipped().keys()
    for name in names:
        study = Study()
        experiment = EXPERIMENTS[name]
        accesses = ACCESSES[name] if experiment.limited else None
        conditions = Conditions(accesses=accesses, keys=keys, study=study)
        values[name] = _rounded(experiment.run(conditions))
        if name in SMALL_CACHES:
            small = conditions._replace(settings=small_caches(study.platforms))
            values[f"{name}, small caches"] = _rounded(experiment.run(small))
        platforms |= study.platforms
        protocols |= study.protocols
    modules = {file for name in values.keys() & ACCESSES.keys() for file in modules_of(name)}
    return {"inputs": dict(sorted(_inputs(platforms, protocols, modules))), "values": values}


def modules_of(name: str) -> set[str]:
    """Return the files of the modules that an experiment uses: its own, and what they import of the experiments.

    >>> sorted(modules_of("eci-home"))
    ['eci_home.py', 'experiment.py', 'study.py']

    """
    pending = [experiments.module_of(name).rpartition(".")[2]]
    found: set[str] = set()
    while pending:
        module = pending.pop()
        if f"{module}.py" not in found:
            found.add(f"{module}.py")
            # `derived.py` imports the experiments whose numbers it derives; an experiment does not use the other ones.
            if module != "derived":
                pending += _imports(_module_file(f"{module}.py").read_text(encoding="utf-8"))
    return found | ({"derived.py"} if name in derived.DERIVED else set())


def _module_file(name: str) -> Path:
    return Path(experiments.__file__).parent / name


def _imports(source: str) -> list[str]:
    """Return the modules of experiments that a module imports, or imports names from.

    >>> _imports("from cohkit.experiments import Conditions, plays; from cohkit.experiments.study import Study")
    ['plays', 'study']

    """
    package = experiments.__name__
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        if node.module.startswith(f"{package}."):
            found.append(node.module.removeprefix(f"{package}."))
        elif node.module == package:
            found += [name.name for name in node.names if _module_file(f"{name.name}.py").exists()]
    return found


def _rounded(rows: Iterable[Measurement]) -> dict[str, float]:
    return {row.key: float(f"{row.value:.{DIGITS}g}") for row in rows}


def small_caches(platforms: Iterable[str]) -> dict[str, str]:
    """Return settings that give every cache of these platforms few sets."""
    return {
        f"{name}{SEPARATOR}{one.name}": SMALL_SETS
        for name in sorted(platforms)
        for one in platform(name)["quantities"]
        if one.name == "cache.sets" or one.name.endswith(".cache.sets")
    }


def _inputs(platforms: Iterable[str], protocols: Iterable[str], modules: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the files that the experiments use, each with the digest of its numbers or statements."""
    for name in platforms:
        quantities = [(one.name, one.value, one.low, one.high) for one in platform(name)["quantities"]]
        # The package has no platform files. Records are made in a checkout, which has them.
        file = Path(experiments.__file__).parents[3] / f"platforms/{name}.toml"
        words = words_of(tomllib.loads(file.read_text(encoding="utf-8"))) if file.exists() else []
        yield f"platforms/{name}.toml", digest([quantities, words])
    for name in protocols:
        yield f"protocols/{name}.coh", digest(statements(shipped_file(f"protocols/{name}.coh")))
    for name in ("cord", "mp", "so", "wb"):
        yield f"ordering/{name}.coh", digest(statements(shipped_file(f"ordering/{name}.coh")))
    machine = tomllib.loads(shipped_file("nearmemory/enzian.toml"))
    yield "nearmemory/enzian.toml", digest(without_origins(machine))
    for name, text in _cohkit.shipped():
        if name.startswith("nearmemory/") and name.endswith((".c", ".h")):
            yield name, digest(code_of(text))
    for name in modules:
        if numbers := numbers_of(_module_file(name).read_text(encoding="utf-8")):
            yield f"{_FOLDER}/{name}", digest(numbers)


def digest(value: object) -> str:
    """Return a short digest of a value that JSON can express."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def statements(text: str) -> list[str]:
    """Return the words and signs of a protocol file, without comments.

    >>> statements("size most 3         # outstanding stores")
    ['size', 'most', '3']

    """
    return re.findall(r"\w+|[^\w\s]", re.sub(r"#.*", "", text))


def code_of(text: str) -> list[str]:
    """Return the words, signs and texts of a C program, without comments and white space.

    >>> code_of('int most = 16; /* lines */  puts("a // b"); // 128 B')
    ['int', 'most', '=', '16', ';', 'puts', '(', '"a // b"', ')', ';']

    """
    return [token for token in _C_TOKEN.findall(text) if not token.startswith(("//", "/*"))]


_C_TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\w+|[^\w\s]""", re.DOTALL)


def words_of(platform: Mapping[str, Any], table: str = "") -> list[str]:
    """Return the words of a parsed platform that are no quantities, such as its schedulers, in order of their names.

    >>> words_of({"name": "x", "dram": {"scheduler": "fr-fcfs", "t_cl": {"value": "1ns", "origin": "a table"}}})
    ['dram.scheduler = fr-fcfs', 'name = x']

    """
    words = []
    for name, value in platform.items():
        if isinstance(value, dict) and "origin" not in value:
            words += words_of(value, f"{table}{name}.")
        elif not isinstance(value, dict):
            words.append(f"{table}{name} = {value}")
    return sorted(words)


def without_origins(machine: object) -> object:
    """Return the parsed file of a machine without the texts on the origin of its quantities."""
    if isinstance(machine, dict):
        return {name: without_origins(value) for name, value in machine.items() if name != "origin"}
    return machine


def numbers_of(source: str) -> list[str]:
    """Return all numbers of Python code in order, also those in texts of a number and a unit.

    >>> numbers_of('REGION = "4MiB"  # of 16' + chr(10) + 'lines = min(5_000, count)')
    ['4MiB', '5000']

    """
    constants = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    constants.sort(key=lambda node: (node.lineno, node.col_offset))
    values = (node.value for node in constants)
    return [
        str(value)
        for value in values
        if not isinstance(value, bool)
        and (isinstance(value, int | float) or (isinstance(value, str) and _QUANTITY.fullmatch(value)))
    ]


_QUANTITY = re.compile(r"[\d.]+ ?[A-Za-z/%]*")


def affected(recorded: Mapping[str, Any], present: Mapping[str, Any]) -> list[str]:
    """Return the experiments that the differences between two fingerprints may affect.

    Ordering protocols affect the experiments of CORD, and programs of near-memory cores those of Proxics. Programs
    that search trees affect `proxics-uts` alone, and a module of experiments those that use it. Any other input may
    affect all.
    """
    files = recorded["inputs"].keys() | present["inputs"].keys()
    found = set()
    for file in files:
        if recorded["inputs"].get(file) != present["inputs"].get(file):
            found |= _users(file)
    for name in recorded["values"].keys() | present["values"].keys():
        if recorded["values"].get(name) != present["values"].get(name):
            found.add(name.split(",")[0])
    return [name for name in ACCESSES if name in found]


def is_older(name: str, earlier: Mapping[str, Any], present: Mapping[str, Any]) -> bool:
    """Return true if a later change may affect an experiment.

    `earlier` is the fingerprint of this experiment alone, and `present` that of all.
    """
    common = {
        part: {key: value for key, value in present[part].items() if key in earlier[part]}
        for part in ("inputs", "values")
    }
    return name in affected(earlier, common)


def _users(file: str) -> set[str]:
    """Return the experiments that an input may affect."""
    folder, _, name = file.rpartition("/")
    if folder == _FOLDER:
        # No experiment uses a module that was renamed or removed: the values of small runs show whether numbers moved.
        return {user for user in ACCESSES if name in modules_of(user)}
    start = {"ordering": "cord-", "nearmemory": "proxics-"}.get(file.split("/", maxsplit=1)[0], "")
    if file.startswith("nearmemory/programs/uts"):
        start = "proxics-uts"
    return {user for user in ACCESSES if user.startswith(start)}


def differences(recorded: Mapping[str, Any], present: Mapping[str, Any]) -> list[str]:
    """Return, in words, the inputs and numbers that differ between two fingerprints."""
    files = sorted(recorded["inputs"].keys() | present["inputs"].keys())
    found = [f"{file}: other numbers" for file in files if recorded["inputs"].get(file) != present["inputs"].get(file)]
    for name in dict.fromkeys([*recorded["values"], *present["values"]]):
        before, now = (one["values"].get(name, {}) for one in (recorded, present))
        changed = [key for key in dict.fromkeys([*before, *now]) if before.get(key) != now.get(key)]
        if changed:
            key = changed[0]
            found.append(
                f"{name}: {len(changed)} numbers of small runs, such as {key}: {before.get(key)}, now {now.get(key)}"
            )
    return found
