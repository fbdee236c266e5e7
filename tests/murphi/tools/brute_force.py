"""Count the states of a Murphi model by brute force, and its orbits.

Usage: brute_force.py [--write] MODEL...

Independent of everything else in this repository, and slow: a model is translated to Python, every reachable state is a
tuple of its leaves, and orbits are the classes that exchanging two neighbouring values of a scalarset joins. A
reachable state whose image is not reachable means that the model is not symmetric, and ends the program. Multisets are
kept sorted, as an unordered collection has no other identity. Covers and liveness are not judged.

The header of a model (its first lines, `-- KEY: VALUE`) is compared with the result. With `--write`, `states`, `steps`
and `orbits` of models whose dialect is cmurphi, and `orbits` of others, are written to the header instead.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from murphi_to_python import GLOBALS, Discarded, Failure, Translator, Type, leaf_image, reset_types
from with_rumur import KEYS, header

# Maximum number of states; more take too long and too much memory.
LIMIT = 450_000

State = tuple
"""The values of all leaves; `None` is undefined."""


class Model:
    """A translated model."""

    def __init__(self, text: str) -> None:
        reset_types()
        self.translated = translated = Translator(text)
        # Names of the translated functions, and of what they call.
        self.namespace = dict(GLOBALS)
        exec("\n".join(translated.code), self.namespace)  # noqa: S102
        self.multisets: list[tuple[int, int, int]] = []
        at = 0
        for type_ in translated.globals:
            self.find_multisets(type_, at)
            at += type_.size

    def find_multisets(self, type_: Type, at: int) -> None:
        """Record the multisets of a variable that begins at leaf `at`.

        For each, record its offset, its capacity and the width of a slot, in leaves.
        """
        if type_.kind == "array":
            for k in range(len(type_.over.values)):
                self.find_multisets(type_.element, at + k * type_.element.size)
        elif type_.kind == "record":
            for offset, field_type in type_.fields.values():
                self.find_multisets(field_type, at + offset)
        elif type_.kind == "multiset":
            self.multisets.append((at, type_.capacity, type_.element.size + 1))

    def canonical(self, state: list) -> State:
        """Return the state as a tuple with sorted multisets: filled slots first, and empty slots cleared."""
        for at, capacity, width in self.multisets:
            slots = [state[at + k * width : at + (k + 1) * width] for k in range(capacity)]
            slots.sort(key=lambda slot: (not slot[0], [-1 if leaf is None else leaf for leaf in slot]))
            leaves = [False if leaf is None and k == 0 else leaf for slot in slots for k, leaf in enumerate(slot)]
            state[at : at + capacity * width] = leaves
        return tuple(state)

    def undefined_state(self) -> list:
        """Return the leaves before a start state: undefined variables and empty multisets."""
        state = [None] * self.translated.size
        for at, capacity, width in self.multisets:
            state[at : at + capacity * width : width] = [False] * capacity
        return state

    def functions(self, pairs: list) -> list[tuple]:
        """Return the translated functions of these pairs of names: test and body."""
        return [(self.namespace[test], self.namespace[body]) for test, body, _ in pairs]


class Search:
    """Breadth-first search of a model.

    `deadlock` is `stuttering` (a state whose rules all lead to itself is a deadlock), `stuck` (a state without an
    enabled rule is one) or `off`.
    """

    def __init__(self, model: Model, deadlock: str) -> None:
        translated = model.translated
        self.model = model
        self.deadlock = deadlock
        self.rules = model.functions(translated.rules)
        self.starts = model.functions(translated.starts)
        self.invariants = [(model.namespace[test], name) for test, name in translated.invariants]
        self.assumptions = [model.namespace[test] for test in translated.assumptions]
        # Reachable states with their numbers, and those of them that are not yet expanded.
        self.seen: dict[State, int] = {}
        self.frontier: list[State] = []

    def add(self, leaves: list) -> State:
        """Add a state, unless it is known or violates an assumption, and return it.

        Raise `Failure` if an invariant does not hold.
        """
        state = self.model.canonical(leaves)
        if state in self.seen:
            return state
        if any(not holds for test in self.assumptions for holds in test(state)):
            return state
        for test, name in self.invariants:
            if any(not holds for holds in test(state)):
                raise Failure(f'invariant "{name}"')
        self.seen[state] = len(self.seen)
        self.frontier.append(state)
        return state

    def start(self) -> None:
        """Add the start states."""
        undefined = self.model.undefined_state()
        for test, body in self.starts:
            for parameters in test(undefined):
                state = list(undefined)
                body(state, *parameters)
                self.add(state)

    def expand(self, state: State) -> None:
        """Add the successors of a state. Raise `Failure` if a rule fails, or in a deadlock."""
        progress = False
        for test, body in self.rules:
            for parameters in test(state):
                leaves = list(state)
                try:
                    body(leaves, *parameters)
                except Discarded:
                    continue
                successor = self.add(leaves)
                progress = progress or self.deadlock == "stuck" or successor != state
        if not progress and self.deadlock != "off":
            raise Failure("deadlock")

    def run(self) -> tuple[str, str | None, int]:
        """Search, and return the verdict, the violated property and the number of steps.

        The steps are those of a shortest counterexample; without one, the number of levels of the search.
        """
        steps = 0
        try:
            self.start()
            while self.frontier:
                # The rule that fails, or leads to a state that fails, is a step; a deadlock is where no step is left.
                steps += 1
                level, self.frontier = self.frontier, []
                for state in level:
                    self.expand(state)
                if len(self.seen) > LIMIT:
                    raise SystemExit("too many states")
        except Failure as failure:
            violated = str(failure)
            return "violated", violated, steps - 1 if violated == "deadlock" else steps
        return "verified", None, steps


def count_orbits(model: Model, seen: dict[State, int]) -> int:
    """Count the classes of states that exchanges of scalarset values join. `seen` numbers all reachable states."""
    parent = list(range(len(seen)))

    def root(k: int) -> int:
        """Return the representative of a class of states."""
        while parent[k] != k:
            parent[k] = parent[parent[k]]
            k = parent[k]
        return k

    for scalarset in model.translated.named_scalarsets:
        for a, b in itertools.pairwise(scalarset.values):
            exchange = {a: b, b: a}
            # For each leaf of the image: its leaf in the state, and whether its value is exchanged.
            leaves: list[tuple[int, bool]] = []
            at = 0
            for type_ in model.translated.globals:
                leaves += zip(*leaf_image(type_, at, exchange), strict=True)
                at += type_.size
            for state, number in seen.items():
                image = [exchange.get(state[leaf], state[leaf]) if swaps else state[leaf] for leaf, swaps in leaves]
                image_number = seen.get(model.canonical(image))
                if image_number is None:
                    raise SystemExit("not symmetric: the image of a reachable state is not reachable")
                parent[root(number)] = root(image_number)
    return sum(1 for number in range(len(seen)) if root(number) == number)


def examine(text: str, expected: dict[str, str]) -> dict[str, str]:
    """Return the header of a model according to the search; `expected` is its header now."""
    found = {key: value for key, value in expected.items() if key not in ("states", "orbits", "steps")}
    model = Model(text)
    search = Search(model, expected.get("deadlock", "stuttering"))
    verdict, violated, steps = search.run()
    found["verdict"] = verdict
    complete = verdict == "verified"
    if complete and expected.get("property", "").startswith(("cover", "liveness")):
        found["verdict"] = "violated"  # these are not judged here
    elif violated:
        found["property"] = violated
        found["steps"] = str(steps)
    if complete:
        found["states"] = str(len(search.seen))
        if model.translated.named_scalarsets:
            found["orbits"] = str(count_orbits(model, search.seen))
    if expected["dialect"] == "cmurphi":
        found["counted by"] = "brute_force.py"
    return found


def agrees(path: Path, text: str, expected: dict[str, str], *, write: bool) -> bool:
    """Examine a model and print the result. Return false if it differs from the header and was not written."""
    found = examine(text, expected)
    printed = ("verdict", "property", "states", "orbits", "steps")
    print(path.name, {key: found[key] for key in printed if key in found}, flush=True)
    different = {key for key in found | expected if found.get(key) != expected.get(key)}
    if write and (expected["dialect"] == "cmurphi" or different <= {"orbits"}):
        rest = text.splitlines()[len(expected) :]
        path.write_text("\n".join([f"-- {key}: {found[key]}" for key in KEYS if key in found] + rest) + "\n")
        return True
    for key in sorted(different):
        print(f"  {key}: {expected.get(key)}, but found {found.get(key)}")
    return not different


def main() -> int:
    """Examine the models of the command line, and return the exit code: 1 if a header disagrees."""
    write = "--write" in sys.argv
    failures = checked = 0
    for path in [Path(name) for name in sys.argv[1:] if name != "--write"]:
        text = path.read_text()
        expected = header(text)
        if int(expected.get("states", "0")) > LIMIT:
            continue
        checked += 1
        failures += not agrees(path, text, expected, write=write)
    print(f"{checked} models, {failures} disagree")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
