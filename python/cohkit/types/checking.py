"""Verdicts of the checker, of other models and of traces, and mutants."""

from typing import Any, Literal

from cohkit.results import Record, Records
from cohkit.types.protocols import Sequence


class Property(Record):
    """Status of one property.

    Attributes:
        kind: group of properties that are judged in the same way; `docs/output.md` lists them.
        name: name of the property, such as `single writer`.

    """

    kind: str
    name: str
    status: Literal["holds", "violated", "undecided"]


class Counterexample(Record):
    """Evidence of a violation, or of an exceeded channel capacity.

    Attributes:
        kind, name: the violated property; or `capacity` (`limit` in a Murphi model) and the channel or message that
            exceeds it.
        message: the error, in one sentence.
        sequences: charts of the error; several for a fault of a constructed home if several sequences agree with
            everything that the home has received.
        trace: the steps with their rules and changes of variables, if a search found the error.
        explanation: the agents that wait for each other, for a deadlock or a missing completion.
        steps: sentences in place of charts and trace for two levels, and in place of a trace under fairness.
        repeats_from: position of the first step that repeats for ever, from 0; under fairness only.

    """

    kind: str
    name: str
    message: str
    sequences: Records[Sequence]
    trace: dict[str, Any] | None
    explanation: dict[str, Any] | None
    steps: list[str] | None = None
    repeats_from: int | None = None


class RuleCoverage(Record):
    """Number of times that the rules with one name fired.

    Attributes:
        rule: name of the rules.
        instances: number of rules with this name, one for each value of their parameters.
        fired: number of times that they fired.
        new: number of times that they led to a new state.

    """

    rule: str
    instances: int
    fired: int
    new: int


class RowCoverage(Record):
    """Number of times that one row of an agent's table was taken.

    Attributes:
        guard: the row's condition, if it has one.
        taken: number of times that the row was taken.

    """

    agent: str
    state: str
    event: str
    guard: str | None
    taken: int


class Coverage(Record):
    """Rules and rows exercised by a search."""

    rules: Records[RuleCoverage]
    rows: Records[RowCoverage]


class RandomWalks(Record):
    """Result of random walks.

    Attributes:
        seed: the seed of everything random.
        walks: number of walks.
        steps: number of steps of all walks.
        states_counted: true if the verdict's `states` counts all visited states; beyond 4,194,304 states, it does
            not.
        rules_fired, rules: number of rules that fired, and of all rules, counted over the values of their parameters.
        never_fired: names of rules that never fired.

    """

    seed: int
    walks: int
    steps: int
    states_counted: bool
    rules_fired: int
    rules: int
    never_fired: list[str]


class SystemSizes(Record):
    """Sizes that a system sets differently from the rest of its protocol.

    Attributes:
        system: name of the system.
        sizes: values of the sizes, by name.

    """

    system: str
    sizes: dict[str, int]


class ProgramBounds(Record):
    """Largest programs that checked a guarantee, and the number of placements in which they ran.

    Attributes:
        threads: maximum number of threads of a program.
        accesses: maximum number of accesses of a thread.
        homes: number of homes that share the lines.
        placements: number of placements of threads on caches and of locations on lines, of all programs together.
        max_spontaneous_evictions: maximum number of lines that caches evict on their own while a program runs.
        omitted_stores: kinds of stores of the protocol that the programs do not use, because its cores use another
            kind.
        sizes: systems with other sizes in which the bursts of stores ran, in addition to the sizes of the file.

    """

    threads: int
    accesses: int
    homes: int
    placements: int
    max_spontaneous_evictions: int
    omitted_stores: list[str]
    sizes: Records[SystemSizes]


class UndecidedQuestion(Record):
    """A search for progress that stopped at a limit.

    Attributes:
        question: name of the search, such as `progress of load`.
        states: number of states that it had visited; a string beyond 64 bits.

    """

    question: str
    states: int | str


class Verdict(Record):
    """The verdict on one system.

    Attributes:
        protocol, system: names in the protocol file. A system that the caller chose is named after its size.
        remotes, lines: numbers of caching agents and of lines; `lines` is `None` for a guarantee.
        outcome: the verdict on all properties together.
        reason: the limit or other reason of `undecided`, such as `max_states`; `None` for other outcomes.
        states, transitions: states reached and rules fired up to the end of the search; `None` if nothing was
            searched.
        depth: largest number of steps from the start to any reached state.
        symmetric: true if states that differ only by a permutation of caching agents count once.
        components: number of states of each independent part; one number if the system was explored as a whole.
        counterexample: evidence of a violation or of an exceeded channel capacity.
        assumptions: sentences: assumptions of the verdict in addition to the rules of the file.
        notes: sentences, for example about accesses that are never performed.
        programs, bounds: number and size of the programs that were run; of the verdict on a guarantee only.
        undecided_progress: the search for progress that a limit ended, if all other properties hold.
        coverage: present if it was requested.
        omission_probability: upper bound of the probability that a state was omitted; with hash compaction only.
        walks: present if random walks replaced the search.
        run: values that depend on the machine: file, version, number of threads, seconds, states per second, bytes of
            memory.

    """

    protocol: str
    system: str
    remotes: int
    lines: int | None
    outcome: Literal["verified", "violated", "undecided"]
    reason: str | None
    states: int | None
    transitions: int | None
    depth: int | None
    symmetric: bool | None
    components: list[int] | None
    properties: Records[Property]
    counterexample: Counterexample | None
    assumptions: list[str]
    notes: list[str]
    programs: int | None = None
    bounds: ProgramBounds | None = None
    undecided_progress: UndecidedQuestion | None = None
    coverage: Coverage | None = None
    omission_probability: float | None = None
    walks: RandomWalks | None = None
    run: dict[str, Any]


class Position(Record):
    """A place in a file.

    Attributes:
        line, column: from 1; columns count characters.

    """

    line: int
    column: int


class AnyNumberVerdict(Verdict):
    """The verdict for one line and every number of caching agents.

    The keys of a system's search are `None`: `remotes`, `states`, `transitions`, `depth`, `symmetric`, `components` and
    `counterexample`.

    Attributes:
        reason: row, variable, construct or limit that stands in the way; `None` if verified.
        position: place of the obstacle in the file; `None` if verified, or if no single place causes it.
        views, pairs: size of the search: views of one agent, and pairs of views; `None` if undecided.

    """

    position: Position | None
    views: int | None
    pairs: int | None


class StarvationVerdict(Verdict):
    """The verdict on transactions that never end, for one system.

    `depth` and `components` are `None`.

    Attributes:
        fairness: assumption on the steps that must happen.

    """

    fairness: Literal["weak", "strong"]


class LostSymmetry(Record):
    """Scalarsets of a Murphi model whose values a step distinguishes by the order of a loop.

    Attributes:
        scalarsets: names of the scalarsets.
        reason: loop, two orders of its iterations, and the results that differ.

    """

    scalarsets: list[str]
    reason: str


class ModelVerdict(Record):
    """The verdict on a Murphi model.

    Attributes:
        model: name of the model. The other keys are those of `Verdict`; a reason of `undecided` may also be `limit`.
        lost_symmetry: scalarsets that the search does not permute, because the order of a loop turned out to matter.

    """

    model: str
    outcome: Literal["verified", "violated", "undecided"]
    reason: str | None
    states: int
    transitions: int
    depth: int
    symmetric: bool
    lost_symmetry: Records[LostSymmetry] | None = None
    components: list[int]
    properties: Records[Property]
    counterexample: Counterexample | None
    coverage: Coverage | None = None
    omission_probability: float | None = None
    walks: RandomWalks | None = None
    run: dict[str, Any]


class System(Record):
    """A system that a protocol file lists for checking.

    Attributes:
        name: name of the system in the file.
        remotes: number of caching agents.
        lines: number of lines.

    """

    name: str
    remotes: int
    lines: int


class Mutant(Record):
    """A mutant: a protocol with one change, and the verdict on it.

    Attributes:
        number: number of the mutant, from 0.
        kind: kind of change, such as `row dropped`.
        mutant: the changed part and the change, in words.

    """

    protocol: str
    number: int
    kind: str
    mutant: str
    verdict: Literal["rejected", "refuted", "left open", "undecided", "bisimilar", "survived"]


class TraceVerdict(Record):
    """The verdict on a trace. `rows`, `messages` and `values` are `None` if it is rejected.

    Attributes:
        steps: number of steps of the trace.
        ends_quiescent: true if the trace states that it ends with nothing in flight and no waiting agent.
        rows, messages: numbers of rows taken and of messages sent.
        values_: the key `values`: number of values of words compared.
        step: the rejected step, from 1; the number of steps plus one if the end of the trace is rejected.
        reason: the reason of the rejection, in a sentence.

    """

    outcome: Literal["accepted", "rejected"]
    steps: int
    ends_quiescent: bool
    rows: int | None
    messages: int | None
    values_: int | None
    step: int | None
    reason: str | None
