"""Translate Murphi models to Python: the half of brute_force.py that knows the language.

`Translator(text).code` is the text of functions `test_k(s)`, which yields the parameters of each enabled instance of
rule `k`, and `body_k(s, parameters)`, which fires the instance, over a state `s` that is a list of leaves.
Invariants and assumptions are tests that yield `False` where they do not hold. The translator reads the constructs that
the models in models/ use, in either dialect.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field


class Failure(Exception):
    """Failure of a model; its text is the kind."""


class Discarded(Exception):
    """An assumption does not hold, so the step is discarded."""


@dataclass(eq=False)
class Type:
    """A type of a model.

    `values` of a simple type are unique over all types, except those of ranges, which are the integers themselves.
    `index` is the position of each value. `size` is the number of leaves of a variable, and `serial` numbers the types
    whose values the translated text uses, from 1; 0 is no number.
    """

    kind: str
    size: int = 1
    values: list = field(default_factory=list)
    index: dict = field(default_factory=dict)
    element: Type | None = None
    over: Type | None = None  # what an array is indexed by
    fields: dict = field(default_factory=dict)  # name -> (offset, type)
    capacity: int = 0
    scalarsets: list = field(default_factory=list)  # a scalarset itself, or the scalarsets in a union
    serial: int = 0


def simple(kind: str, values: list) -> Type:
    """Return a simple type with these values, in their order."""
    type_ = Type(kind, 1, values, {v: i for i, v in enumerate(values)})
    if kind == "scalarset":
        type_.scalarsets = [type_]
    return type_


# What the translated text calls.


def defined(value):
    """Return a value; an undefined one is a failure."""
    if value is None:
        raise Failure("undefined")
    return value


def place(value, low, count):
    """Return the position of an index in a range that begins at `low` and has `count` values."""
    if value is None:
        raise Failure("undefined")
    if not low <= value < low + count:
        raise Failure("index")
    return value - low


def member(value, index):
    """Return the position of an index among the values of a type."""
    if value is None:
        raise Failure("undefined")
    if value not in index:
        raise Failure("index")
    return index[value]


def within(value, low, high):
    """Return a value for a range.

    A value outside of the range is a failure; an undefined one is not.
    """
    if value is not None and not low <= value <= high:
        raise Failure("range")
    return value


def among(value, index):
    """Return a value for a scalarset or union.

    A value of another type is a failure; an undefined one is not.
    """
    if value is not None and value not in index:
        raise Failure("range")
    return value


def divide(a, b):
    """Divide, and round towards zero."""
    if b == 0:
        raise Failure("division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a, b):
    """Return the remainder of `divide`, which has the sign of `a`."""
    return a - b * divide(a, b)


def check(holds, text):
    """Raise the failure of an assertion that does not hold."""
    if not holds:
        raise Failure(f'assert "{text}"')


def assume(holds):
    """Discard the step if an assumption does not hold."""
    if not holds:
        raise Discarded


def fail(text):
    """Raise the failure of an error statement."""
    raise Failure(f'error "{text}"')


def add(state, at, capacity, size, element):
    """Add an element to the first empty slot of the multiset at leaf `at`.

    A slot has `size` leaves, the first of which is true if the slot is filled.
    """
    for slot in range(at, at + capacity * size, size):
        if not state[slot]:
            state[slot : slot + size] = [True, *element]
            return
    raise Failure("multiset full")


TOKEN = re.compile(
    r'\s+|--[^\n]*|/\*.*?\*/|(?P<string>"[^"]*")|(?P<number>\d+)|(?P<name>[A-Za-z]\w*)|(?P<sign>==>|->|:=|!=|<=|>=|\.\.|.)',
    re.DOTALL,
)
BOOLEAN = simple("boolean", [False, True])
INTEGER = Type("integer")


class Translator:
    """Reader of a model, which translates its rules to Python.

    Expressions are pairs (text, type). Designators are triples (list, type, offset).
    """

    def __init__(self, text: str) -> None:
        self.tokens = [m[0] for m in TOKEN.finditer(text) if m.lastgroup]
        self.at = 0
        self.scopes: list[dict] = [{"true": ("value", "True", BOOLEAN), "false": ("value", "False", BOOLEAN)}]
        self.types: list[Type] = []
        self.named_scalarsets: list[Type] = []
        self.fresh_value = itertools.count(1_000_000)
        self.fresh = itertools.count()
        self.size = 0
        self.multisets: list[tuple[int, Type]] = []
        self.leaves: list[Type] = []
        self.globals: list[Type] = []
        self.code: list[str] = []
        self.indent = 0
        self.binders: list[tuple] = []  # enclosing rulesets, chooses and aliases
        self.rules: list[tuple] = []
        self.starts: list[tuple] = []
        self.invariants: list[tuple] = []
        self.assumptions: list[str] = []
        self.returns: Type | None = None
        while self.at < len(self.tokens):
            self.section()

    # Tokens.

    def peek(self, ahead: int = 0) -> str:
        """Return the token `ahead` of the current one, keywords in lower case; empty beyond the end."""
        token = self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""
        return token.lower() if token.lower() in WORDS else token

    def next(self) -> str:
        """Return the current token, and advance."""
        token = self.peek()
        self.at += 1
        return token

    def take(self, token: str) -> bool:
        """Advance if the current token is this one, and return true."""
        if self.peek() == token:
            self.at += 1
            return True
        return False

    def want(self, token: str) -> None:
        """Require the current token to be this one, and advance; end the program otherwise."""
        if not self.take(token):
            raise SystemExit(f"expected {token}, not {self.tokens[self.at - 3 : self.at + 3]}")

    def end(self, word: str) -> None:
        """Require `end` or `endWORD`."""
        if not self.take("end" + word):
            self.want("end")

    def emit(self, line: str) -> None:
        """Append a line to the translated text."""
        self.code.append("    " * self.indent + line)

    def name(self, hint: str) -> str:
        """Return a new name for the translated text."""
        return f"{hint}_{next(self.fresh)}"

    def find(self, name: str):
        """Return the entry of a name in the innermost scope that declares it.

        An entry is a kind and its parts: a value (text, type), a place (list, offset, type), a type, or a function
        (name, parameters, result type).
        """
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        raise SystemExit(f"{name} is not declared")

    # Declarations.

    def section(self) -> None:
        """Read a declaration, a function or a rule."""
        word = self.peek()
        if word in ("const", "type", "var"):
            self.declarations()
        elif word in ("function", "procedure"):
            self.function()
        elif not self.take(";"):
            self.rule()

    def declarations(self) -> None:
        """Read constants, types and variables."""
        while self.peek() in ("const", "type", "var"):
            word = self.next()
            while re.fullmatch(r"[A-Za-z]\w*", self.peek()) and self.peek() not in SECTIONS:
                names = [self.next()]
                while self.take(","):
                    names.append(self.next())
                self.want(":")
                if word == "const":
                    self.scopes[-1][names[0]] = ("value", str(self.constant()), INTEGER)
                elif word == "type":
                    type_ = self.type(named=True)
                    self.scopes[-1][names[0]] = ("type", type_)
                else:
                    type_ = self.type()
                    for name in names:
                        self.variable(name, type_)
                self.take(";")

    def variable(self, name: str, type_: Type) -> None:
        """Declare a global variable in the next leaves of the state, or a local one in a list of its own."""
        if len(self.scopes) == 1:
            self.scopes[0][name] = ("place", "s", str(self.size), type_)
            self.globals.append(type_)
            self.size += type_.size
        else:
            local = self.name(name)
            self.emit(f"{local} = [None] * {type_.size}")
            if type_.kind == "multiset":
                raise SystemExit("local multisets are not read")
            self.scopes[-1][name] = ("place", local, "0", type_)

    def constant(self) -> int:
        """Read a constant expression, and return its value."""
        return eval(self.expression()[0], dict(GLOBALS))  # noqa: S307

    def type(self, *, named: bool = False) -> Type:
        """Read a type, and number it if it is new. `named` is true in the declaration of a type."""
        type_ = self.type_inner(named=named)
        if not type_.serial:
            self.types.append(type_)
            type_.serial = len(self.types)
            GLOBALS[f"T{type_.serial}"] = type_.index
            GLOBALS[f"V{type_.serial}"] = type_.values
        return type_

    def type_inner(self, *, named: bool) -> Type:
        """Read a type, and record scalarsets with a name, whose values orbits permute."""
        word = self.peek()
        if self.take("boolean"):
            return BOOLEAN
        if self.take("enum"):
            self.want("{")
            values = []
            scope = self.scopes[-1]
            names = []
            while not self.take("}"):
                names.append(self.next())
                values.append(next(self.fresh_value))
                self.take(",")
            type_ = simple("enum", values)
            scope.update({n: ("value", str(v), type_) for n, v in zip(names, values, strict=True)})
            return type_
        if self.take("scalarset"):
            self.want("(")
            type_ = simple("scalarset", [next(self.fresh_value) for _ in range(self.constant())])
            self.want(")")
            if named:
                self.named_scalarsets.append(type_)
            return type_
        if self.take("union"):
            self.want("{")
            members = []
            while not self.take("}"):
                members.append(self.type())
                self.take(",")
            type_ = simple("union", [v for m in members for v in m.values])
            type_.scalarsets = [m for m in members if m.kind == "scalarset"]
            return type_
        if self.take("array"):
            self.want("[")
            over = self.type()
            self.want("]")
            self.want("of")
            element = self.type()
            return Type("array", len(over.values) * element.size, element=element, over=over)
        if self.take("multiset"):
            self.want("[")
            capacity = self.constant()
            self.want("]")
            self.want("of")
            element = self.type()
            return Type("multiset", capacity * (1 + element.size), element=element, capacity=capacity)
        if self.take("record"):
            type_ = Type("record", 0)
            while not self.peek().startswith("end"):
                names = [self.next()]
                while self.take(","):
                    names.append(self.next())
                self.want(":")
                inner = self.type()
                self.take(";")
                for name in names:
                    type_.fields[name] = (type_.size, inner)
                    type_.size += inner.size
            self.end("record")
            return type_
        if re.fullmatch(r"[A-Za-z]\w*", word) and self.peek(1) != ".." and self.find(word)[0] == "type":
            self.next()
            return self.find(word)[1]
        low = self.constant()
        self.want("..")
        return simple("range", list(range(low, self.constant() + 1)))

    # Expressions.

    def expression(self):
        """Read an expression."""
        condition = self.implication()
        if not self.take("?"):
            return condition
        yes = self.implication()
        self.want(":")
        no = self.expression()
        return f"({self.read(yes)} if {self.read(condition)} else {self.read(no)})", yes[1]

    def implication(self):
        """Read an expression without a conditional operator."""
        left = self.binary(0)
        if self.take("->"):
            return f"((not {self.read(left)}) or {self.read(self.implication())})", BOOLEAN
        return left

    LEVELS = [{"|": "or"}, {"&": "and"}, None, {"<": "<", "<=": "<=", "=": "==", "!=": "!=", ">": ">", ">=": ">="},
              {"+": "+", "-": "-"}, {"*": "*", "/": "divide", "%": "remainder"}]

    def binary(self, level: int):
        """Read an expression whose operators bind at least as strongly as those of `level`."""
        if level == len(self.LEVELS):
            return self.unary()
        signs = self.LEVELS[level]
        if signs is None:
            if self.take("!"):
                return f"(not {self.read(self.binary(level))})", BOOLEAN
            return self.binary(level + 1)
        left = self.binary(level + 1)
        while self.peek() in signs:
            sign = signs[self.next()]
            right = self.binary(level + 1)
            a, b = self.read(left), self.read(right)
            text = f"{sign}({a}, {b})" if sign.isalpha() and len(sign) > 3 else f"({a} {sign} {b})"
            left = text, (BOOLEAN if level < 4 else INTEGER)
        return left

    def read(self, expression) -> str:
        """Return the text for the value of an expression.

        An undefined value is a failure, except for types with scalarsets.
        """
        if len(expression) == 2:
            return expression[0]
        text = f"{expression[0]}[{expression[2]}]"
        return text if expression[1].scalarsets else f"defined({text})"

    def copied(self, expression) -> str:
        """The text of a value that may be undefined or complex."""
        if len(expression) == 2:
            return expression[0]
        base, type_, offset = expression
        return f"{base}[{offset}]" if type_.size == 1 and type_.kind in SIMPLE else f"{base}[{offset}:{offset}+{type_.size}]"

    def unary(self):
        """Read an operand.

        Operands are parenthesised expressions, numbers, quantifiers, built-in functions, calls and designators.
        """
        if self.take("("):
            inner = self.expression()
            self.want(")")
            return self.read(inner), inner[1]
        if self.take("-"):
            return f"(-{self.read(self.unary())})", INTEGER
        if self.take("+"):
            return self.unary()
        token = self.peek()
        if token.isdigit():
            return self.next(), INTEGER
        if token in ("forall", "exists"):
            self.next()
            self.scopes.append({})
            loops = self.quantifiers()
            self.want("do")
            body = self.read(self.expression())
            self.scopes.pop()
            self.end(token)
            word = "all" if token == "forall" else "any"
            return f"{word}({body} {' '.join(f'for {v} in {r}' for v, r in loops)})", BOOLEAN
        if token == "isundefined":
            self.next()
            self.want("(")
            base, _, offset = self.designator()
            self.want(")")
            return f"({base}[{offset}] is None)", BOOLEAN
        if token == "ismember":
            self.next()
            self.want("(")
            value = self.copied(self.designator())
            self.want(",")
            type_ = self.type()
            self.want(")")
            return f"({value} in T{type_.serial})", BOOLEAN
        if token == "multisetcount":
            self.next()
            self.want("(")
            self.scopes.append({})
            variable, base, offset, type_ = self.slot()
            self.want(",")
            body = self.read(self.expression())
            self.want(")")
            self.scopes.pop()
            width = type_.element.size + 1
            return (
                f"sum(1 for {variable} in range({type_.capacity}) "
                f"if {base}[{offset}+{variable}*{width}] and {body})",
                INTEGER,
            )
        found = self.find(token)
        if found[0] == "function":
            self.next()
            return self.call(found)
        return self.designator()

    def slot(self):
        """`i: m` of choose and the multiset operations."""
        variable, name = self.name("slot"), self.next()
        self.want(":")
        base, type_, offset = self.designator()
        self.scopes[-1][name] = ("value", variable, Type("slot"))
        return variable, base, offset, type_

    def quantifiers(self) -> list[tuple[str, str]]:
        """Read the variables of a quantifier or loop.

        Return each variable with the text of its values.
        """
        loops = []
        while True:
            name = self.next()
            variable = self.name(name)
            if self.take(":"):
                type_ = self.type()
                loops.append((variable, f"V{type_.serial or self.register(type_)}"))
            else:
                self.want(":=")
                low = self.read(self.expression())
                self.want("to")
                high, type_, step = self.read(self.expression()), INTEGER, "1"
                if self.take("by"):
                    step = self.read(self.expression())
                loops.append((variable, f"range({low}, {high} + (1 if {step} > 0 else -1), {step})"))
            self.scopes[-1][name] = ("value", variable, type_)
            if not self.take(";"):
                return loops

    def register(self, type_: Type) -> int:
        """Number a type, and make its values available to the translated text."""
        self.types.append(type_)
        type_.serial = len(self.types)
        GLOBALS[f"T{type_.serial}"], GLOBALS[f"V{type_.serial}"] = type_.index, type_.values
        return type_.serial

    def designator(self):
        """Read a designator. Return list, type and text of the offset, or the text and type of a value."""
        found = self.find(self.next())
        if found[0] == "value":
            return found[1], found[2]
        _, base, offset, type_ = found
        while self.peek() in (".", "["):
            if self.take("."):
                inner, type_ = type_.fields[self.next()]
                offset = f"{offset}+{inner}" if inner else offset
                continue
            self.want("[")
            index = self.expression()
            text = self.copied(index)
            self.want("]")
            if type_.kind == "multiset":
                offset = f"{offset}+{text}*{type_.element.size + 1}+1"
            elif type_.over.kind == "range":
                offset = f"{offset}+place({text}, {type_.over.values[0]}, {len(type_.over.values)})*{type_.element.size}"
            else:
                serial = type_.over.serial or self.register(type_.over)
                offset = f"{offset}+member({text}, T{serial})*{type_.element.size}"
            type_ = type_.element
        return base, type_, offset

    def call(self, found):
        """Read the arguments of a function, and return its call.

        Arguments are pairs of a list and an offset, so that references and values have the same form.
        """
        _, function, parameters, result = found
        self.want("(")
        passed = ["s"]
        for by_reference, type_ in parameters:
            actual = self.expression()
            if by_reference:
                passed.append(f"({actual[0]}, {actual[2]})")
            elif type_.kind in SIMPLE:
                passed.append(f"([{self.fitted(self.copied(actual), type_)}], 0)")
            else:
                passed.append(f"({self.copied(actual)}, 0)")
            self.take(",")
        self.want(")")
        return f"{function}({', '.join(passed)})", result

    def fitted(self, text: str, type_: Type) -> str:
        """Return the text of a value with a check that it fits the type."""
        if type_.kind == "range":
            return f"within({text}, {type_.values[0]}, {type_.values[-1]})"
        if type_.kind in ("scalarset", "union"):
            return f"among({text}, T{type_.serial or self.register(type_)})"
        return text

    # Functions and statements.

    def function(self) -> None:
        """Read a function or procedure."""
        self.next()
        name = self.next()
        text, parameters, scope = self.name(name), [], {}
        self.want("(")
        actuals = ["s"]
        while not self.take(")"):
            by_reference = self.take("var")
            names = [self.next()]
            while self.take(","):
                names.append(self.next())
            self.want(":")
            type_ = self.type()
            for parameter in names:
                actual = self.name(parameter)
                actuals.append(actual)
                scope[parameter] = ("place", f"{actual}[0]", f"{actual}[1]", type_)
                parameters.append((by_reference, type_))
            self.take(";")
        result = self.type() if self.take(":") else None
        self.take(";")
        self.scopes[-1][name] = ("function", text, parameters, result)
        self.emit(f"def {text}({', '.join(actuals)}):")
        self.indent += 1
        self.scopes.append(scope)
        previous, self.returns = self.returns, result
        self.body("function", "procedure")
        self.returns = previous
        self.scopes.pop()
        if result is not None:
            self.emit("raise Failure('no return')")
        self.indent -= 1
        self.take(";")

    def body(self, *words: str) -> None:
        """Read declarations and statements up to `end` or `endWORD`."""
        if not self.take("begin"):
            self.declarations()
            self.take("begin")
        self.statements("end", *("end" + word for word in words))
        self.next()

    def statements(self, *ends: str) -> None:
        """Read statements up to one of these words."""
        self.emit("pass")
        while self.peek() not in ends:
            if not self.take(";"):
                self.statement()

    def block(self, *ends: str) -> None:
        """Read statements, indented."""
        self.indent += 1
        self.statements(*ends)
        self.indent -= 1

    def statement(self) -> None:
        """Read a statement."""
        word = self.peek()
        if word == "if":
            self.next()
            self.emit(f"if {self.read(self.expression())}:")
            self.want("then")
            self.block("elsif", "else", "end", "endif")
            depth = 0
            while self.take("elsif"):
                self.emit("else:")
                self.indent += 1
                depth += 1
                self.emit(f"if {self.read(self.expression())}:")
                self.want("then")
                self.block("elsif", "else", "end", "endif")
            if self.take("else"):
                self.emit("else:")
                self.block("end", "endif")
            self.indent -= depth
            self.end("if")
        elif word == "switch":
            self.next()
            subject = self.name("subject")
            self.emit(f"{subject} = {self.read(self.expression())}")
            self.emit("if False: pass")
            while self.take("case"):
                values = [self.read(self.expression())]
                while self.take(","):
                    values.append(self.read(self.expression()))
                self.want(":")
                self.emit(f"elif {subject} in ({', '.join(values)},):")
                self.block("case", "else", "end", "endswitch")
            if self.take("else"):
                self.emit("else:")
                self.block("end", "endswitch")
            self.end("switch")
        elif word == "for":
            self.next()
            self.scopes.append({})
            loops = self.quantifiers()
            self.want("do")
            for variable, values in loops:
                self.emit(f"for {variable} in {values}:")
                self.indent += 1
            self.statements("end", "endfor")
            self.indent -= len(loops)
            self.scopes.pop()
            self.end("for")
        elif word == "while":
            self.next()
            self.emit(f"while {self.read(self.expression())}:")
            self.want("do")
            self.block("end", "endwhile")
            self.end("while")
        elif word == "alias":
            self.next()
            self.scopes.append({})
            for line in self.aliases():
                self.emit(line)
            self.want("do")
            self.statements("end", "endalias")
            self.scopes.pop()
            self.end("alias")
        elif word == "return":
            self.next()
            self.emit("return" if self.returns is None else f"return {self.fitted(self.copied(self.expression()), self.returns)}")
        elif word in ("undefine", "clear"):
            self.next()
            base, type_, offset = self.designator()
            first = self.name("first")
            self.emit(f"{first} = {offset}")
            for k, leaf in enumerate(leaves(type_)):
                value = None if word == "undefine" else leaf.values[0]
                self.emit(f"{base}[{first}+{k}] = {value}")
        elif word in ("assert", "cover", "assume"):
            self.next()
            text = self.next()[1:-1] if self.peek().startswith('"') else ""
            condition = self.read(self.expression())
            if self.peek().startswith('"'):
                text = self.next()[1:-1]
            self.emit({"assert": f"check({condition}, {text!r})", "assume": f"assume({condition})"}.get(word, "pass"))
        elif word == "error":
            self.next()
            self.emit(f"fail({self.next()[1:-1]!r})")
        elif word == "multisetadd":
            self.next()
            self.want("(")
            element = self.designator()
            self.want(",")
            base, type_, offset = self.designator()
            self.want(")")
            self.emit(
                f"add({base}, {offset}, {type_.capacity}, {type_.element.size + 1}, "
                f"{element[0]}[{element[2]}:{element[2]}+{element[1].size}])"
            )
        elif word == "multisetremove":
            self.next()
            self.want("(")
            slot = self.read(self.expression())
            self.want(",")
            base, type_, offset = self.designator()
            self.want(")")
            width = type_.element.size + 1
            self.emit(f"{base}[{offset}+{slot}*{width}:{offset}+{slot}*{width}+{width}] = [False] + [None] * {width - 1}")
        else:
            found = self.find(word)
            if found[0] == "function":
                self.next()
                self.emit(self.call(found)[0])
                return
            base, type_, offset = self.designator()
            self.want(":=")
            value = self.copied(("None", type_) if self.take("undefined") else self.expression())
            if type_.kind in SIMPLE:
                self.emit(f"{base}[{offset}] = {self.fitted(value, type_)}")
            else:
                self.emit(f"{base}[{offset}:{offset}+{type_.size}] = {value}")

    def aliases(self) -> list[str]:
        """Read the names of an alias. Return the lines that compute their offsets or values."""
        lines = []
        while True:
            name = self.next()
            self.want(":")
            value = self.expression()
            text = self.name(name)
            if len(value) == 2:
                lines.append(f"{text} = {value[0]}")
                self.scopes[-1][name] = ("value", text, value[1])
            else:
                lines.append(f"{text} = {value[2]}")
                self.scopes[-1][name] = ("place", value[0], text, value[1])
            if not self.take(";") or self.peek() == "do":
                return lines

    # Rules.

    def rule(self) -> None:
        """Read a ruleset, a rule, a start state or a property; covers and liveness properties are skipped."""
        word = self.next()
        if word in ("ruleset", "alias", "choose"):
            self.scopes.append({})
            count = len(self.binders)
            if word == "ruleset":
                self.binders += [("loop", variable, values) for variable, values in self.quantifiers()]
            elif word == "alias":
                self.binders += [("line", line) for line in self.aliases()]
            else:
                self.binders.append(("choose", *self.slot()))
            self.want("do")
            while not self.peek().startswith("end"):
                if not self.take(";"):
                    self.rule()
            self.end(word)
            self.scopes.pop()
            del self.binders[count:]
            return
        name = self.next()[1:-1] if self.peek().startswith('"') else ""
        if word in ("rule", "startstate"):
            guard = None
            if word == "rule":
                start = self.at
                if self.peek() not in ("begin", "var", "const", "type"):
                    guard = self.read(self.expression())
                    if not self.take("==>"):
                        self.at, guard = start, None
            firing = self.instances(guard, name)
            self.scopes.append({})
            self.body(word)
            self.scopes.pop()
            self.indent = 0
            (self.rules if word == "rule" else self.starts).append(firing)
            return
        condition = self.read(self.expression())
        if not name and self.peek().startswith('"'):
            name = self.next()[1:-1]
        if word in ("invariant", "assume"):
            function = self.instances(None, name, condition)
            self.invariants.append((function, name)) if word == "invariant" else self.assumptions.append(function)

    def instances(self, guard: str | None, name: str, condition: str | None = None):
        """Begins `test_k(s)`, which yields the parameters of enabled instances, and `body_k(s, parameters)`."""
        k = next(self.fresh)
        parameters = [b[1] for b in self.binders if b[0] != "line"]
        self.emit(f"def test_{k}(s):")
        for binder in self.binders:
            self.indent += 1
            if binder[0] == "loop":
                self.emit(f"for {binder[1]} in {binder[2]}:")
            elif binder[0] == "line":
                self.emit("if True:")
                self.emit(f"    {binder[1]}")
            else:
                _, variable, base, offset, type_ = binder
                self.emit(f"for {variable} in range({type_.capacity}):")
                self.emit(f"    if not {base}[{offset}+{variable}*{type_.element.size + 1}]: continue")
        self.indent += 1
        self.emit(f"if not ({condition}): yield False" if condition else f"if {guard or 'True'}: yield ({''.join(p + ', ' for p in parameters)})")
        self.indent = 0
        if condition:
            return f"test_{k}"
        self.emit(f"def body_{k}(s{''.join(', ' + p for p in parameters)}):")
        self.indent = 1
        for binder in self.binders:
            if binder[0] == "line":
                self.emit(binder[1])
        return f"test_{k}", f"body_{k}", name


SIMPLE = ("boolean", "enum", "range", "scalarset", "union")
SECTIONS = {"const", "type", "var", "function", "procedure", "rule", "ruleset", "startstate", "invariant", "alias", "choose", "begin", "cover", "liveness", "assume", "==>"}
WORDS = SECTIONS | {
    "boolean", "enum", "scalarset", "union", "array", "multiset", "record", "of", "end", "forall", "exists", "do", "if",
    "then", "elsif", "else", "switch", "case", "for", "while", "return", "undefine", "clear", "assert", "error", "true", "false",
    "isundefined", "ismember", "multisetadd", "multisetremove", "multisetcount", "undefined", "to", "by",
}  # fmt: skip
GLOBALS = {
    f.__name__: f for f in (defined, place, member, within, among, divide, remainder, check, assume, fail, add)
} | {"Failure": Failure}


def leaves(type_: Type) -> list[Type]:
    """Return the type of each leaf of a variable, in order."""
    if type_.kind == "array":
        return leaves(type_.element) * len(type_.over.values)
    if type_.kind == "record":
        return [leaf for _, inner in type_.fields.values() for leaf in leaves(inner)]
    if type_.kind == "multiset":
        return ([BOOLEAN] + leaves(type_.element)) * type_.capacity
    return [type_]


def reset_types() -> None:
    """Remove the types of an earlier model from the names of translated texts."""
    for name in [name for name in GLOBALS if re.fullmatch(r"[TV]\d+", name)]:
        del GLOBALS[name]
    BOOLEAN.serial = 0


def leaf_image(type_: Type, at: int, exchange: dict) -> tuple[list[int], list[bool]]:
    """Return the image of a variable that begins at leaf `at`, under an exchange of values.

    For each leaf of the image: the leaf of the state from which its value comes, and whether the value is exchanged.
    """
    if type_.kind == "array":
        sources, flags = [], []
        for value in type_.over.values:
            index = type_.over.index[exchange.get(value, value) if type_.over.scalarsets else value]
            inner = leaf_image(type_.element, at + index * type_.element.size, exchange)
            sources += inner[0]
            flags += inner[1]
        return sources, flags
    if type_.kind == "record":
        parts = [leaf_image(inner, at + offset, exchange) for offset, inner in type_.fields.values()]
        return [x for p in parts for x in p[0]], [x for p in parts for x in p[1]]
    if type_.kind == "multiset":
        sources, flags = [], []
        for slot in range(type_.capacity):
            start = at + slot * (type_.element.size + 1)
            inner = leaf_image(type_.element, start + 1, exchange)
            sources += [start, *inner[0]]
            flags += [False, *inner[1]]
        return sources, flags
    return [at], [bool(type_.scalarsets)]
