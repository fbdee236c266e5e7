"""An interpreter of the part of TLA+ that exported modules use: reachable states and the first violated invariant.

The syntax tree comes from the parser of the package `tla`; each expression becomes a function of Python. Definitions
are evaluated when they are used, as in TLC, so that an operation without a value is an error only where its value is
needed. Values of different kinds are not compared; a constant (a model value in TLC) differs from all others.
"""

from __future__ import annotations

import operator as op
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import tla

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    State = dict[str, Any]
    # Local names, the current state, and the values that the following state has so far.
    Code = Callable[[dict[str, Any], State, State], Any]
    Action = Callable[[dict[str, Any], State, State], Iterator[State]]

# Operators on two numbers.
ON_NUMBERS: dict[str, Callable[[int, int], Any]] = {
    "+": op.add,
    "-": op.sub,
    "*": op.mul,
    "^": op.pow,
    "\\div": op.floordiv,
    "%": op.mod,
    "<": op.lt,
    "<=": op.le,
    ">": op.gt,
    ">=": op.ge,
}


class EvaluationError(Exception):
    """An expression has no value."""


@dataclass(frozen=True)
class Constant:
    """A declared constant, which differs from all other values."""

    name: str


class Function(dict[Any, Any]):
    """A function with a finite domain: a record if that is strings, a tuple if it is the numbers from 1 on."""

    def __hash__(self) -> int:  # type: ignore[override]
        """Return a hash of the pairs, whatever their order."""
        return hash(frozenset(self.items()))


class Strings:
    """The set of all strings."""

    def __contains__(self, value: object) -> bool:
        """Return whether a value is a string."""
        return isinstance(value, str)


@dataclass(frozen=True)
class Functions:
    """The functions whose value at each element of the domain is in a set."""

    ranges: tuple[tuple[Any, Any], ...]

    def __contains__(self, value: object) -> bool:
        """Return whether a value is such a function."""
        return (
            isinstance(value, Function)
            and len(value) == len(self.ranges)
            and all(key in value and member(value[key], members) for key, members in self.ranges)
        )


def equal(a: object, b: object) -> bool:
    """Compare two values of one kind; numbers and truth values differ in kind."""
    if isinstance(a, Constant) or isinstance(b, Constant):
        return a == b
    if type(a) is not type(b):
        raise EvaluationError(f"{a!r} and {b!r} are compared")
    return a == b


def member(value: object, members: Any) -> bool:
    """Return whether a value is in a set."""
    if isinstance(members, (Strings, Functions)):
        return value in members
    return any(type(value) is type(other) and value == other for other in members)


def truth(value: Any) -> bool:
    """Return a truth value."""
    if not isinstance(value, bool):
        raise EvaluationError(f"{value!r} is used as a condition")
    return value


def element(function: Any, key: Any) -> Any:
    """Return the value of a function at a place of its domain."""
    if not isinstance(function, Function) or key not in function:
        raise EvaluationError(f"{key!r} is not in the domain of {function!r}")
    return function[key]


def changed(function: Any, path: list[Any], value: Any) -> Any:
    """Return a function with another value at the end of a path."""
    if not path:
        return value
    inner = changed(element(function, path[0]), path[1:], value)
    return Function({**function, path[0]: inner})


@dataclass
class Operator:
    """A definition: its parameters, its expression, and the local names that it may use."""

    parameters: list[str]
    body: Any
    names: dict[str, Any]


@dataclass
class Lazy:
    """An expression that is evaluated once, when its value is needed."""

    code: Code
    names: dict[str, Any]
    state: State
    following: State
    value: list[Any] = field(default_factory=list)

    def get(self) -> Any:
        """Return the value."""
        if not self.value:
            self.value.append(self.code(self.names, self.state, self.following))
        return self.value[0]


def node_type(node: Any) -> str:
    """Return the name of a node's class."""
    return type(node).__name__


class Module:
    """A parsed module."""

    def __init__(self, text: str) -> None:
        """Parse a module and find its variables and definitions."""
        self.variables: list[str] = []
        self.constants: dict[str, Constant] = {}
        self.operators: dict[str, Operator] = {}
        self.codes: dict[int, Code] = {}
        self.actions: dict[tuple[int, bool], Action] = {}
        self.assigning: dict[str, bool] = {}
        self.tree = tla.parse(text)
        check_definitions(self.tree.units, set())
        for unit in self.tree.units:
            match node_type(unit):
                case "Constants":
                    self.constants = {name.operator: Constant(name.operator) for name in unit.names}
                case "Variables":
                    self.variables = [name.operator for name in unit.names]
                case "OperatorDefinition":
                    parameters = [parameter.operator for parameter in unit.arity or []]
                    self.operators[unit.name] = Operator(parameters, unit.definiens, {})
                case "RecursiveOperators":
                    pass
                case other:
                    raise EvaluationError(f"{other} is not supported")

    def code(self, node: Any) -> Code:
        """Return the function that evaluates an expression."""
        known = self.codes.get(id(node))
        if known is None:
            known = self.compile(node)
            self.codes[id(node)] = known
        return known

    def compile(self, node: Any) -> Code:
        """Make the function that evaluates an expression."""
        make = getattr(self, f"compile_{node.symbol.name.lower()}", None)
        if make is None:
            raise EvaluationError(f"{node_type(node)} is not supported")
        code: Code = make(node)
        return code

    def compile_integral_numeral(self, node: Any) -> Code:
        """Make the function of a number."""
        return constant(int(node.value))

    def compile_boolean_literal(self, node: Any) -> Code:
        """Make the function of a truth value."""
        return constant(node.value == "TRUE")

    def compile_string_literal(self, node: Any) -> Code:
        """Make the function of a string."""
        return constant(node.value[1:-1])

    def compile_set_of_booleans(self, _node: Any) -> Code:
        """Make the function of the truth values."""
        return constant((False, True))

    def compile_set_of_strings(self, _node: Any) -> Code:
        """Make the function of the set of all strings."""
        return constant(Strings())

    def compile_parentheses(self, node: Any) -> Code:
        """Make the function of an expression in parentheses."""
        return self.code(node.expression)

    def compile_if(self, node: Any) -> Code:
        """Make the function of a choice."""
        condition, then, other = map(self.code, (node.predicate, node.then, node.else_))
        return lambda n, s, f: then(n, s, f) if truth(condition(n, s, f)) else other(n, s, f)

    def compile_cases(self, node: Any) -> Code:
        """Make the function of a choice between cases."""
        return self.cases([(self.code(case.predicate), self.code(case.expression)) for case in node.cases])

    def compile_let(self, node: Any) -> Code:
        """Make the function of an expression with definitions."""
        body, definitions = self.code(node.expression), node.definitions
        return lambda n, s, f: body(self.local(definitions, n, s, f), s, f)

    def compile_vertical_list(self, node: Any) -> Code:
        """Make the function of a list of conjuncts or disjuncts."""
        parts = [self.code(item.expression) for item in node.arguments]
        decide = all if node.operator == "/\\" else any
        return lambda n, s, f: decide(truth(part(n, s, f)) for part in parts)

    def compile_tuple(self, node: Any) -> Code:
        """Make the function of a tuple."""
        parts = list(map(self.code, node.items))
        return lambda n, s, f: Function(enumerate((part(n, s, f) for part in parts), start=1))

    def compile_set_enumeration(self, node: Any) -> Code:
        """Make the function of a set of listed values."""
        parts = list(map(self.code, node.items))
        return lambda n, s, f: tuple(part(n, s, f) for part in parts)

    def compile_record(self, node: Any) -> Code:
        """Make the function of a record."""
        fields = [(name, self.code(part)) for name, part in node.key_values]
        return lambda n, s, f: Function((name, part(n, s, f)) for name, part in fields)

    def compile_set_of_records(self, node: Any) -> Code:
        """Make the function of a set of records."""
        fields = [(bound.name, self.code(bound.bound)) for bound in node.key_bounds]
        return lambda n, s, f: Functions(tuple((name, part(n, s, f)) for name, part in fields))

    def compile_set_of_functions(self, node: Any) -> Code:
        """Make the function of a set of functions."""
        domain, codomain = self.code(node.domain), self.code(node.codomain)
        return lambda n, s, f: Functions(tuple((key, codomain(n, s, f)) for key in domain(n, s, f)))

    def compile_function(self, node: Any) -> Code:
        """Make the function of a function of TLA+."""
        (declaration,) = node.declaration
        name, members, body = self.bound(declaration, node.value)
        return lambda n, s, f: Function((key, body({**n, name: key}, s, f)) for key in members(n, s, f))

    def compile_set_slice(self, node: Any) -> Code:
        """Make the function of the members of a set that satisfy a claim."""
        name, members, body = self.bound(node.declaration, node.predicate)
        return lambda n, s, f: tuple(key for key in members(n, s, f) if truth(body({**n, name: key}, s, f)))

    def compile_quantification(self, node: Any) -> Code:
        """Make the function of a claim about all or some members of a set."""
        (declaration,) = node.declarations
        name, members, body = self.bound(declaration, node.predicate)
        decide = all if node.quantifier == "\\A" else any
        return lambda n, s, f: decide(truth(body({**n, name: key}, s, f)) for key in members(n, s, f))

    def compile_function_application(self, node: Any) -> Code:
        """Make the function of an element of a function."""
        function, key = self.code(node.function), self.code(node.arguments[0])
        return lambda n, s, f: element(function(n, s, f), key(n, s, f))

    def compile_field(self, node: Any) -> Code:
        """Make the function of a field of a record."""
        function, name = self.code(node.expression), node.name
        return lambda n, s, f: element(function(n, s, f), name)

    def compile_except(self, node: Any) -> Code:
        """Make the function of a function with one changed element."""
        function, (change,) = self.code(node.function), node.changes
        steps = [constant(step) if isinstance(step, str) else self.code(step[0]) for step in change.item]
        value = self.code(change.expression)
        return lambda n, s, f: changed(function(n, s, f), [step(n, s, f) for step in steps], value(n, s, f))

    def compile_operator_application(self, node: Any) -> Code:
        """Make the function of an operator applied to its arguments."""
        name, arguments = node.operator, node.arguments or []
        if name in self.variables:
            return lambda _n, s, _f: s[name]
        if name in self.constants:
            return constant(self.constants[name])
        if name == "ENABLED":
            # The argument is `<<Next>>_vars`.
            action = self.action(arguments[0].action, first=False)
            return lambda _n, s, _f: any(after != s for after in action({}, s, {}))
        parts = list(map(self.code, arguments))
        make = OPERATORS.get((name, len(parts)))
        if make is not None:
            return make(*parts)
        return on_numbers(name, parts) if name in ON_NUMBERS else self.use(name, parts)

    @staticmethod
    def cases(cases: list[tuple[Code, Code]]) -> Code:
        """Make the function of a choice between cases."""

        def choose(n: dict[str, Any], s: State, f: State) -> Any:
            for condition, value in cases:
                if truth(condition(n, s, f)):
                    return value(n, s, f)
            raise EvaluationError("no case applies")

        return choose

    def bound(self, declaration: Any, body: Any) -> tuple[str, Code, Code]:
        """Return the name of a bound variable, its set, and the expression in which it is bound."""
        name, members = declaration.arguments
        return name.operator, self.code(members), self.code(body)

    def local(self, definitions: list[Any], names: dict[str, Any], state: State, following: State) -> dict[str, Any]:
        """Return the names inside a `LET`."""
        inner = dict(names)
        for unit in definitions:
            if node_type(unit) == "RecursiveOperators":
                continue
            if unit.arity:
                inner[unit.name] = Operator([parameter.operator for parameter in unit.arity], unit.definiens, inner)
            else:
                inner[unit.name] = Lazy(self.code(unit.definiens), inner, state, following)
        return inner

    def use(self, name: str, parts: list[Code]) -> Code:
        """Make the function of a defined name with arguments."""

        def value(n: dict[str, Any], s: State, f: State) -> Any:
            meaning = n.get(name, self.operators.get(name))
            if isinstance(meaning, Lazy):
                return meaning.get()
            if isinstance(meaning, Operator):
                return self.code(meaning.body)(inside(meaning, parts, n, s, f), s, f)
            if meaning is None:
                raise EvaluationError(f"{name} is not defined")
            return meaning

        return value

    def action(self, node: Any, *, first: bool) -> Action:
        """Return the function that yields the following states of an action, or the first states of a predicate."""
        known = self.actions.get((id(node), first))
        if known is None:
            known = self.compile_action(node, first=first)
            self.actions[id(node), first] = known
        return known

    def compile_action(self, node: Any, *, first: bool) -> Action:
        """Make the function of an action: it yields the values of variables with which the action holds."""
        make = getattr(self, f"act_{node.symbol.name.lower()}", None)
        action: Action | None = make and make(node, first=first)
        if action is not None:
            return action
        claim = self.code(node)
        if first:
            return lambda n, _s, f: iter([f] if truth(claim(n, f, {})) else [])
        return lambda n, s, f: iter([f] if truth(claim(n, s, f)) else [])

    def act_vertical_list(self, node: Any, *, first: bool) -> Action:
        """Make the function of a conjunction or disjunction of actions."""
        parts = [self.action(item.expression, first=first) for item in node.arguments]
        return every(parts) if node.operator == "/\\" else either(parts)

    def act_let(self, node: Any, *, first: bool) -> Action:
        """Make the function of an action with definitions."""
        body, definitions = self.action(node.expression, first=first), node.definitions
        return lambda n, s, f: body(self.local(definitions, n, s, {}), s, f)

    def act_quantification(self, node: Any, *, first: bool) -> Action | None:
        """Make the function of an action for some member of a set; `None` for a claim about all."""
        if node.quantifier != "\\E":
            return None
        (declaration,) = node.declarations
        name, members, _ = self.bound(declaration, node.predicate)
        body = self.action(node.predicate, first=first)
        return lambda n, s, f: (after for key in members(n, s, {}) for after in body({**n, name: key}, s, f))

    def act_operator_application(self, node: Any, *, first: bool) -> Action | None:
        """Make the function of an operator that gives variables a value; `None` if it is a claim."""
        arguments = node.arguments or []
        if node.operator == "UNCHANGED":
            (kept,) = arguments
            variables = [name.operator for name in (kept.items if node_type(kept) == "Tuple" else [kept])]
            return lambda _n, s, f: iter([{**f, **{name: s[name] for name in variables}}])
        target = self.target(arguments[0], first=first) if node.operator == "=" else None
        if target is not None:
            value = self.code(arguments[1])
            return lambda n, s, f: iter([{**f, target: value(n, s, {})}])
        if node.operator in self.operators and self.assigns(node.operator):
            meaning, parts = self.operators[node.operator], list(map(self.code, arguments))
            body = self.action(meaning.body, first=first)
            return lambda n, s, f: body(inside(meaning, parts, n, s, f), s, f)
        return None

    def assigns(self, name: str) -> bool:
        """Return whether a definition of the module gives variables a value, itself or through others."""
        if name not in self.assigning:
            uses = set(operators(self.operators[name].body))
            self.assigning[name] = bool(uses & {"'", "UNCHANGED"}) or any(
                self.assigns(other) for other in uses & self.operators.keys()
            )
        return self.assigning[name]

    def target(self, left: Any, *, first: bool) -> str | None:
        """Return the variable to which an equation with this left side gives a value."""
        if not first:
            if getattr(left, "operator", None) != "'":
                return None
            (left,) = left.arguments
        name = getattr(left, "operator", None)
        return name if name in self.variables else None

    def explore(self, invariants: list[str]) -> tuple[int, str | None]:
        """Return the number of reachable states, and the first invariant that a state violates."""
        start, following = (self.operators[name].body for name in ("Init", "Next"))
        claims = [(name, self.code(self.operators[name].body)) for name in invariants]
        step = self.action(following, first=False)
        queue: deque[State] = deque()
        seen: set[Function] = set()
        for state in self.action(start, first=True)({}, {}, {}):
            self.visit(state, seen, queue)
        while queue:
            state = queue.popleft()
            for name, claim in claims:
                if not truth(claim({}, state, {})):
                    return len(seen), name
            for after in step({}, state, {}):
                self.visit(after, seen, queue)
        return len(seen), None

    def visit(self, state: State, seen: set[Function], queue: deque[State]) -> None:
        """Note a state that has not been seen."""
        assert state.keys() == set(self.variables), set(self.variables) - state.keys()
        known = Function(state)
        if known not in seen:
            seen.add(known)
            queue.append(known)


def declare(name: str, scope: set[str]) -> None:
    """Add a name to a scope in which it has no meaning yet."""
    if name in scope:
        raise EvaluationError(f"{name} is declared twice")
    scope.add(name)


def check_names(node: Any, scope: set[str]) -> None:
    """Raise an error if a name has two meanings in one scope, which TLA+ forbids."""
    if not isinstance(node, (tuple, list)):
        return
    kind, part = node_type(node), cast("Any", node)
    if kind == "Let":
        inner = set(scope)
        check_definitions(part.definitions, inner)
        check_names(part.expression, inner)
    elif kind in ("Function", "SetSlice", "Quantification"):
        declarations = part.declarations if kind == "Quantification" else part.declaration
        inner = set(scope)
        for declaration in declarations if isinstance(declarations, list) else [declarations]:
            name, members = declaration.arguments
            check_names(members, scope)
            declare(name.operator, inner)
        check_names(part.value if kind == "Function" else part.predicate, inner)
    else:
        for inner_node in node:
            check_names(inner_node, scope)


def check_definitions(units: list[Any], scope: set[str]) -> None:
    """Check the names of definitions, and add them to the scope."""
    recursive: set[str] = set()
    for unit in units:
        if node_type(unit) in ("Constants", "Variables", "RecursiveOperators"):
            for name in unit.names:
                declare(name.operator, scope)
                recursive.add(name.operator)
            continue
        if unit.name not in recursive:
            declare(unit.name, scope)
        inner = set(scope)
        for parameter in unit.arity or []:
            declare(parameter.operator, inner)
        check_names(unit.definiens, inner)


def operators(node: Any) -> Iterator[str]:
    """Return the operators that an expression applies."""
    if isinstance(node, (tuple, list)):
        if node_type(node) == "OperatorApplication":
            yield cast("Any", node).operator
        for part in node:
            yield from operators(part)


# Operators by name and number of arguments. The second operand of a logical operator is evaluated only if the first
# does not decide.
OPERATORS: dict[tuple[str, int], Callable[..., Code]] = {
    ("/\\", 2): lambda a, b: lambda n, s, f: truth(a(n, s, f)) and truth(b(n, s, f)),
    ("\\/", 2): lambda a, b: lambda n, s, f: truth(a(n, s, f)) or truth(b(n, s, f)),
    ("=>", 2): lambda a, b: lambda n, s, f: not truth(a(n, s, f)) or truth(b(n, s, f)),
    ("~", 1): lambda a: lambda n, s, f: not truth(a(n, s, f)),
    ("'", 1): lambda a: lambda n, _s, f: a(n, f, {}),
    ("-", 1): lambda a: lambda n, s, f: -a(n, s, f),
    ("..", 2): lambda a, b: lambda n, s, f: range(a(n, s, f), b(n, s, f) + 1),
    ("\\cup", 2): lambda a, b: lambda n, s, f: (*a(n, s, f), *b(n, s, f)),
    ("\\in", 2): lambda a, b: lambda n, s, f: member(a(n, s, f), b(n, s, f)),
    ("=", 2): lambda a, b: lambda n, s, f: equal(a(n, s, f), b(n, s, f)),
    ("#", 2): lambda a, b: lambda n, s, f: not equal(a(n, s, f), b(n, s, f)),
}


def constant(value: Any) -> Code:
    """Make the function of a constant."""
    return lambda _n, _s, _f: value


def on_numbers(name: str, parts: list[Code]) -> Code:
    """Make the function of an operator on two numbers."""
    compute, (a, b) = ON_NUMBERS[name], parts

    def value(n: dict[str, Any], s: State, f: State) -> Any:
        operands = a(n, s, f), b(n, s, f)
        if type(operands[0]) is not int or type(operands[1]) is not int:
            raise EvaluationError(f"{name} is applied to {operands!r}")
        return compute(*operands)

    return value


def inside(meaning: Operator, parts: list[Code], n: dict[str, Any], s: State, f: State) -> dict[str, Any]:
    """Return the names inside an operator that is applied to arguments."""
    arguments = (Lazy(part, n, s, f) for part in parts)
    return {**meaning.names, **dict(zip(meaning.parameters, arguments, strict=True))}


def every(parts: list[Action]) -> Action:
    """Make the function of a conjunction of actions."""

    def states(n: dict[str, Any], s: State, f: State, place: int = 0) -> Iterator[State]:
        if place == len(parts):
            yield f
            return
        for after in parts[place](n, s, f):
            yield from states(n, s, after, place + 1)

    return states


def either(parts: list[Action]) -> Action:
    """Make the function of a disjunction of actions."""
    return lambda n, s, f: (after for part in parts for after in part(n, s, f))


def invariants(configuration: str) -> list[str]:
    """Return the invariants of a configuration."""
    _, _, rest = configuration.partition("INVARIANTS\n")
    return rest.partition("CHECK_DEADLOCK")[0].split()
