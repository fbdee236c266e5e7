"""Count the states of a Murphi model by brute force, and its orbits.

Usage: brute_force.py [--write] MODEL...

Independent of everything else in this repository and slow: a model is translated to Python, every reachable state is a tuple
of its leaves, and orbits are the classes that exchanging two neighbouring values of a scalarset joins. A reachable state whose
image is not reachable means that the model is not symmetric, and ends the program. Multisets are kept sorted, as an unordered
collection has no other identity. Covers and liveness are not judged. `--write` puts `states`, `steps` and `orbits` into the
first lines of models whose dialect is cmurphi, and `orbits` into those of others; without it they are compared.
"""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from murphi_to_python import BOOLEAN, GLOBALS, Discarded, Failure, Translator, Type, moved
from with_rumur import KEYS, header

# Maximum number of states; more take too long and too much memory.
LIMIT = 450_000


class Machine:
    """A translated model."""

    def __init__(self, text: str) -> None:
        self.model = model = Translator(text)
        self.space = dict(GLOBALS)
        exec("\n".join(model.code), self.space)  # noqa: S102
        self.multisets: list[tuple[int, int, int]] = []
        at = 0
        for made in model.globals:
            self.find_multisets(made, at)
            at += made.size

    def find_multisets(self, made: Type, at: int) -> None:
        """Record the multisets of a variable that begins at leaf `at`.

        For each, record its offset, its capacity and the width of a slot, in leaves.
        """
        if made.kind == "array":
            for k in range(len(made.over.values)):
                self.find_multisets(made.element, at + k * made.element.size)
        elif made.kind == "record":
            for offset, inner in made.fields.values():
                self.find_multisets(inner, at + offset)
        elif made.kind == "multiset":
            self.multisets.append((at, made.capacity, made.element.size + 1))

    def sorted(self, state: list) -> tuple:
        """Return the state as a tuple with sorted multisets: filled slots first, and empty slots cleared."""
        for at, capacity, width in self.multisets:
            slots = [state[at + k * width : at + (k + 1) * width] for k in range(capacity)]
            slots.sort(key=lambda slot: (not slot[0], [-1 if x is None else x for x in slot]))
            state[at : at + capacity * width] = [False if x is None and k == 0 else x for slot in slots for k, x in enumerate(slot)]
        return tuple(state)

    def explore(self, deadlock: str):
        """Return verdict, property, number of steps, and the states in the order in which they were found.

        `deadlock` is `stuttering`, `stuck` or `off`. The steps are those of a shortest counterexample; without one,
        the number of levels of the search.
        """
        model, space = self.model, self.space
        rules = [(space[test], space[body]) for test, body, _ in model.rules]
        invariants = [(space[test], name) for test, name in model.invariants]
        assumptions = [space[test] for test in model.assumptions]
        seen: dict[tuple, int] = {}

        def arrive(state: list) -> tuple | None:
            """Add a state, unless it is known or violates an assumption, and return it.

            Raise `Failure` if an invariant does not hold.
            """
            found = self.sorted(state)
            if found in seen:
                return found
            if any(not holds for test in assumptions for holds in test(found)):
                return found
            for test, name in invariants:
                if any(not holds for holds in test(found)):
                    raise Failure(f'invariant "{name}"')
            seen[found] = len(seen)
            new.append(found)
            return found

        new: list[tuple] = []
        steps = 0
        try:
            for test, body, _ in model.starts:
                empty = [None] * model.size
                for at, capacity, width in self.multisets:
                    empty[at : at + capacity * width : width] = [False] * capacity
                for parameters in space[test](empty):
                    state = list(empty)
                    space[body](state, *parameters)
                    arrive(state)
            level, new = new, []
            while level:
                # The rule that fails, or leads to a state that fails, is a step; a deadlock is where no step is left.
                steps += 1
                for before in level:
                    progress = False
                    for test, body in rules:
                        for parameters in test(before):
                            state = list(before)
                            try:
                                body(state, *parameters)
                            except Discarded:
                                continue
                            after = arrive(state)
                            progress = progress or deadlock == "stuck" or after != before
                    if not progress and deadlock != "off":
                        raise Failure("deadlock")
                if len(seen) > LIMIT:
                    raise SystemExit("too many states")
                level, new = new, []
        except Failure as failure:
            property_ = str(failure)
            return "violated", property_, steps - 1 if property_ == "deadlock" else steps, seen
        return "verified", None, steps, seen

    def orbits(self, seen: dict[tuple, int]) -> int:
        """Count the classes of states that exchanges of scalarset values join. `seen` numbers all reachable states."""
        parent = list(range(len(seen)))

        def root(k: int) -> int:
            """Return the representative of a class of states."""
            while parent[k] != k:
                parent[k] = parent[parent[k]]
                k = parent[k]
            return k

        for scalarset in self.model.named_scalarsets:
            for a, b in itertools.pairwise(scalarset.values):
                exchange = {a: b, b: a}
                sources, flags, at = [], [], 0
                for made in self.model.globals:
                    part = moved(made, at, exchange)
                    sources += part[0]
                    flags += part[1]
                    at += made.size
                pairs = list(zip(sources, flags, strict=True))
                for state, k in seen.items():
                    image = [exchange.get(state[p], state[p]) if f else state[p] for p, f in pairs]
                    other = seen.get(self.sorted(image))
                    if other is None:
                        raise SystemExit("not symmetric: the image of a reachable state is not reachable")
                    x, y = root(k), root(other)
                    if x != y:
                        parent[x] = y
        return sum(1 for k in range(len(seen)) if root(k) == k)


def main() -> int:
    """Examine the models of the command line, and return the exit code: 1 if a first line disagrees."""
    write = "--write" in sys.argv
    failures = checked = 0
    for name in sys.argv[1:]:
        if name == "--write":
            continue
        path = Path(name)
        text = path.read_text()
        before = header(text)
        now = {k: v for k, v in before.items() if k not in ("states", "orbits", "steps")}
        if int(before.get("states", "0")) > LIMIT:
            continue
        checked += 1
        machine = Machine(text)
        verdict, property_, steps, seen = machine.explore(before.get("deadlock", "stuttering"))
        now["verdict"] = verdict
        complete = verdict == "verified"
        if complete and before.get("property", "").startswith(("cover", "liveness")):
            now["verdict"] = "violated"  # these are not judged here
        elif property_:
            now["property"] = property_
            now["steps"] = str(steps)
        if complete:
            now["states"] = str(len(seen))
            if machine.model.named_scalarsets:
                now["orbits"] = str(machine.orbits(seen))
        if before["dialect"] == "cmurphi":
            now["counted by"] = "brute_force.py"
        for k in [k for k in GLOBALS if re.fullmatch(r"[TV]\d+", k)]:
            del GLOBALS[k]
        BOOLEAN.serial = 0
        print(path.name, {k: now[k] for k in ("verdict", "property", "states", "orbits", "steps") if k in now}, flush=True)
        different = {k for k in now | before if now.get(k) != before.get(k)}
        if write and (before["dialect"] == "cmurphi" or different <= {"orbits"}):
            rest = text.splitlines()[len(before) :]
            path.write_text("\n".join([f"-- {k}: {now[k]}" for k in KEYS if k in now] + rest) + "\n")
        elif different:
            failures += 1
            for k in sorted(different):
                print(f"  {k}: {before.get(k)}, but found {now.get(k)}")
    print(f"{checked} models, {failures} disagree")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
