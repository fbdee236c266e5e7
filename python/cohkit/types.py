"""Result types: mappings whose keys are also attributes. `docs/output.md` explains the keys.

If a result lacks a key, the attribute is `None`.
"""

from typing import TYPE_CHECKING, Any, Literal

from cohkit.old_names import resolver
from cohkit.results import Record, Records


class Note(Record):
    """Help for an error: advice, or a related location in the text (otherwise `line` and `column` are `None`).

    Attributes:
        message: one sentence.
        line, column: the related location, from 1; `None` for advice.

    """

    message: str
    line: int | None
    column: int | None


class Diagnostic(Record):
    """An error of a protocol file. Lines and columns count from 1; columns count characters.

    Attributes:
        code: name of the kind of error.
        message: the error, in one sentence.
        end_line, end_column: the end of the marked text, exclusive.
        label: words beside the marked text.
        rendered: the whole error with the text of the file, as the command prints it.

    """

    code: str
    message: str
    line: int
    column: int
    end_line: int
    end_column: int
    label: str
    notes: Records[Note]
    rendered: str


class Action(Record):
    """An action of an agent: `kind` is `send`, `receive`, `does` or `becomes`.

    Attributes:
        message: name of a sent or received message.
        to: receiver of a sent message, as an index into `agents` of the sequence.
        flight: number of this transmission; the step that receives it has the same number.
        what: another action, in words, if `kind` is `does`.
        state: next state of the agent, if `kind` is `becomes`.

    """

    kind: Literal["send", "receive", "does", "becomes"]
    message: str | None = None
    to: int | None = None
    flight: int | None = None
    what: str | None = None
    state: str | None = None


class Step(Record):
    """One step of a message sequence. A receiving action also has the key `from`.

    Attributes:
        agent: the acting agent, as an index into `agents` of the sequence.
        line: the cache line, if there are several.
        visible: true if the home can observe the step: it observes only messages that it sends and receives.

    """

    agent: int
    action: Action
    line: int | None = None
    visible: bool


class Sequence(Record):
    """A message sequence. `chart_text` and `chart_svg` draw it.

    Attributes:
        agents: names of the agents, in the order of their lifelines.
        steps: the steps, in time order.

    """

    agents: list[str]
    steps: Records[Step]


class Fault(Record):
    """A fault of a home's policy, with the message sequences that show it.

    Attributes:
        kind: name of the kind of fault.
        message: the fault, in one sentence.
        remedy: advice, if there is any.
        line, column: the statement of the policy, from 1.

    """

    kind: str
    message: str
    remedy: str | None
    line: int
    column: int
    sequences: Records[Sequence]


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
        steps: sentences in place of charts and trace, for two levels only.

    """

    kind: str
    name: str
    message: str
    sequences: Records[Sequence]
    trace: dict[str, Any] | None
    explanation: dict[str, Any] | None
    steps: list[str] | None = None


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


class ModelVerdict(Record):
    """The verdict on a Murphi model.

    Attributes:
        model: name of the model. The other keys are those of `Verdict`; a reason of `undecided` may also be `limit`.

    """

    model: str
    outcome: Literal["verified", "violated", "undecided"]
    reason: str | None
    states: int
    transitions: int
    depth: int
    symmetric: bool
    components: list[int]
    properties: Records[Property]
    counterexample: Counterexample | None
    coverage: Coverage | None = None
    omission_probability: float | None = None
    walks: RandomWalks | None = None
    run: dict[str, Any]


class Row(Record):
    """One row of a controller's table, and its line in the protocol file, from 1.

    Attributes:
        event: the access, message, local operation or memory operation.
        guard: the condition on variables and message fields, if there is one.
        actions: the actions, in order; `stall` alone stalls the event, `refuse` alone rejects a local operation.
        next: the next state; `None` if the event is not taken.
        line: line of the row, or, for a constructed row, of the policy statement or message that it comes from.

    """

    state: str
    event: str
    guard: str | None
    actions: list[str]
    next: str | None
    line: int


class Table(Record):
    """The controller of an agent. `initial` maps the name of each agent in charts to its initial state.

    Attributes:
        constructed: true if the home was constructed from a policy; the table is then that for one remote.
        merged: true if equivalent states of the constructed home are merged.
        states: number of states.
        transitions: number of rows that take their event; rows that stall or refuse it do not count.
        events: number of different events.
        rows: the rows, by state; among rows with the same state and event, the first one whose guard holds is taken.

    """

    protocol: str
    agent: Literal["home", "remote"]
    constructed: bool
    merged: bool
    initial: dict[str, str]
    states: int
    transitions: int
    events: int
    rows: Records[Row]
    run: dict[str, Any]


class Sizes(Record):
    """Size of a controller.

    Attributes:
        states: number of states.
        transitions: number of rows that take their event.
        events: number of different events.

    """

    states: int
    transitions: int
    events: int


class Construction(Record):
    """A constructed home: its sizes for one remote, plain and `merged`. `fault` is `None` if construction succeeds.

    Attributes:
        knowledge_sets: number of sets of system states that the home can tell apart by its messages.
        notes: sentences about the construction.

    """

    protocol: str
    home: Sizes
    merged: Sizes
    knowledge_sets: int
    notes: list[str]
    fault: Fault | None
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


class Quantity(Record):
    """A quantity of a platform. `low` and `high` are `None` if a source gives the value.

    Attributes:
        name: name for `set`, with its table, such as `link.latency`.
        value: value in `unit`.
        unit: picoseconds, bytes per second, bytes, or a number without a unit.
        low, high: range of plausible values, in `unit`.
        origin: a source, a fit or an assumption, in words.

    """

    name: str
    value: int
    unit: Literal["ps", "B/s", "B", "count"]
    low: int | None
    high: int | None
    origin: str


class Platform(Record):
    """A simulated machine.

    With two levels of caches, `lower_level_caches` is the number of caches below each remote's cache. `agents` is the
    number of agents of each further kind.

    Attributes:
        protocol: the shipped protocol that runs on the platform by default.
        remotes: number of caching agents of the first kind.
        lines: number of lines in the home's memory.

    """

    name: str
    protocol: str
    remotes: int
    lower_level_caches: int | None = None
    agents: dict[str, int] | None = None
    lines: int
    quantities: Records[Quantity]


class Workload(Record):
    """Workload of the cores.

    Attributes:
        name: name of the workload; of a trace, as given.
        region_lines: number of lines that the cores access.
        accesses: number of accesses of the run, by all cores.
        cores: number of cores in use.
        partitioned: true if each core accesses its own part of the region.
        outstanding: maximum number of outstanding accesses of one core.
        prefetch: distance of prefetches, in accesses ahead; 0 without prefetches.

    """

    name: str
    region_lines: int
    accesses: int
    cores: int
    partitioned: bool
    outstanding: int
    prefetch: int


class Failure(Record):
    """Reason why a simulation was aborted.

    Attributes:
        kind: the violated property, or another kind that `docs/output.md` lists.
        message: the error, in one sentence.
        line: number of the line.
        time_ps: simulated time of the error, in picoseconds.
        wait_for: sentences: each waiting agent, and the agent that it waits for.
        sequence: the last steps that concern the line.

    """

    kind: str
    message: str
    line: int
    time_ps: int
    wait_for: list[str]
    sequence: Sequence


class Interval(Record):
    """A quarter of the counted events: their number, and its duration in nanoseconds."""

    count: int
    ns: float


class Quarter(Interval):
    """A quarter of the accesses of a run, with the number of lines held in caches at its end."""

    lines_cached: int


class LatencyTotal(Record):
    """Time of accesses: total in picoseconds; mean and slowest access in nanoseconds."""

    total_ps: int
    mean_ns: float
    slowest_ns: float | None


class PartLatency(LatencyTotal):
    """Time that accesses spent in one part of the machine."""

    name: str


class StepLatency(PartLatency):
    """Time that accesses spent in one step, and the part of the machine that the step belongs to."""

    part: str


class AccessStep(Record):
    """An interval of an access: its step, and the message in flight or waiting, if any.

    Attributes:
        begin_ns: start of the interval, in nanoseconds of simulated time.
        ns: length of the interval, in nanoseconds.

    """

    step: str
    message: str | None
    begin_ns: float
    ns: float


class SlowestAccess(Record):
    """The slowest access, with the steps that took its time, in order.

    Attributes:
        access: kind of the access, such as `load`.
        core, line: numbers of its core and its line.
        issued_ns: simulated time of its issue.

    """

    access: str
    core: int
    line: int
    issued_ns: float
    latency_ns: float
    steps: Records[AccessStep]


class Resource(Record):
    """A resource with limited capacity. Of several of one kind, the one with the highest utilisation.

    Attributes:
        name: kind of resource.
        which: name of the most utilised one; `None` if there is only one.
        count: number of resources of the kind.
        utilisation: share of the time in which the most utilised one was in use, 0 to 1.
        mean: mean utilisation of all resources of the kind.
        works: true if the resource itself works while it is in use; false if accesses occupy it while they wait.

    """

    name: str
    which: str | None
    count: int
    utilisation: float
    mean: float
    works: bool


class Bottleneck(Record):
    """The bottleneck of the access rate, with the reason.

    Attributes:
        name: the resource or part that limits the rate.
        utilisation: share of the time in which it is in use or at its limit, 0 to 1.
        reason: the reason, in words.

    """

    name: str
    utilisation: float
    reason: str


class Explanation(Record):
    """Breakdown of the access latency: `parts` add up to `latency`, and so do `steps`.

    Attributes:
        accesses: number of accesses whose latency was measured.
        slowest: the slowest access, the first of several; `None` if no access was measured.
        resources: the most utilised resource of each kind.

    """

    accesses: int
    latency: LatencyTotal
    parts: Records[PartLatency]
    steps: Records[StepLatency]
    slowest: SlowestAccess | None
    resources: Records[Resource]
    limit: Bottleneck


class BouncingLine(Record):
    """A line that bounces between caches. `address` is its offset from the start of the region in bytes.

    Of its `transfers`, `other_words` accessed another word than the last access of the other cache (false sharing).
    `share` is its share of the time that accesses of all lines waited at caches.

    Attributes:
        line: number of the line.

    """

    line: int
    address: int
    transfers: int
    other_words: int
    share: float


class Simulation(Record):
    """The result of a simulation. `statistics` and `messages` are `None` if there is a `failure`.

    With several kinds of caching agents, `agents` contains the workload of each, and `workload` that of the first.
    `explanation` is present if it was requested and the run succeeded.

    Attributes:
        protocol, platform: names of protocol and platform.
        settings: settings of quantities, as given.
        home: executor of the home: `model` or `rtl`.
        seed: the seed of everything random.
        oracle: true if loads were compared with the last write and permissions were monitored.
        statistics: numbers by name; the name ends in the unit if there is one.
        quarters: four parts of the run with equal numbers of accesses; `None` after a failure or for fewer than four
            accesses.
        messages: number of messages of each kind.
        warnings: sentences: reasons to doubt the result.
        bouncing_lines: at most four lines, the largest share first; `None` if there is a failure.
        run: values that depend on the machine: file, version and seconds.

    """

    protocol: str
    platform: str
    settings: list[str]
    home: str
    workload: Workload
    agents: dict[str, Workload | None] | None = None
    seed: int
    oracle: bool
    statistics: dict[str, float] | None
    quarters: Records[Quarter] | None
    messages: dict[str, int] | None
    explanation: Explanation | None = None
    failure: Failure | None
    warnings: list[str]
    bouncing_lines: Records[BouncingLine] | None
    run: dict[str, Any]


class MessageTraffic(Record):
    """Traffic of one message type: on the links between hosts, and on the meshes inside them.

    Attributes:
        between: number of messages between hosts.
        between_bytes: bytes of these messages between hosts, with headers.
        mesh_bytes: bytes of these messages on meshes: whole flits, once in each host.

    """

    between: int
    between_bytes: int
    mesh_bytes: int


class Times(Record):
    """Durations in nanoseconds. `distribution` lists ascending values, each with the number of durations up to it.

    Attributes:
        count: number of durations.

    """

    count: int
    mean: float
    p50: float
    p99: float
    max: float
    distribution: list[tuple[float, int]]


class LinkTraffic(Record):
    """Traffic on the links of the caching agents of one kind, in both directions.

    Attributes:
        messages: number of messages.
        bytes: bytes with headers; on framed links, all bytes of the blocks, packets or flits that carry information.

    """

    messages: int
    bytes: int


class Play(Record):
    """The result of a play of an application and its threads. Measurements are `None` if there is a `failure`.

    Attributes:
        settings: settings of quantities, as given.
        sizes: sizes of the protocol file, as given.
        home: executor of the home: `model` or `rtl`.
        parameters: values of the application's parameters, given or default.
        seed: the seed of everything random.
        oracle: true if loads were compared with the last write and permissions were monitored.
        window_ns: time from the end of the warm-up to the end of the run, in which events are counted and timed.
        counts, rates_per_s: number of the events that threads and application count, by name, and their rates per
            second.
        quarters_by_counter: four parts with equal counts for each counter; `None` for fewer than four events.
        durations_ns: durations by name, in nanoseconds: those that threads measured, and those of local operations.
        links: traffic of each kind of caching agents in the window.
        tables: rows of the received tables and of the results of threads, by name; `None` unless requested.
        end_ns: simulated time at the end of the run.
        statistics, messages, quarters: as in `Simulation`, of the whole run.
        traffic: traffic by message name, on a machine of hosts that write to each other's memory; `None` on other
            machines.
        warnings: sentences: reasons to doubt the result.
        run: values that depend on the machine: file, version and seconds.

    """

    protocol: str
    platform: str
    settings: list[str]
    sizes: list[str]
    home: str
    application: str
    parameters: dict[str, int]
    seed: int
    oracle: bool
    window_ns: float | None
    counts: dict[str, int] | None
    rates_per_s: dict[str, float] | None
    quarters_by_counter: dict[str, Records[Interval] | None] | None
    durations_ns: dict[str, Times] | None
    links: dict[str, LinkTraffic] | None
    tables: dict[str, list[list[int]]] | None
    end_ns: float | None
    statistics: dict[str, float] | None
    messages: dict[str, int] | None
    traffic: dict[str, MessageTraffic] | None
    quarters: Records[Quarter] | None
    failure: Failure | None
    warnings: list[str]
    run: dict[str, Any]


class Result(Record):
    """One row of an experiment's table: the published value under `key` and our value, in `unit`.

    The published value is a number, or words in `says`; both are `None` if it is kept separately. `at_least`
    and `at_most` are published bounds. `error` is relative to the published number. `ratio` is our value divided by
    the bound, or by our number that it is compared with. `holds` is `None` if that cannot be decided. `blind` is the
    value predicted before the published result was seen. `steady` is `None` unless the value is a throughput. `run`
    contains the `command` and the `version`.
    """

    experiment: str
    name: str
    key: str
    published: float | None
    says: str | None
    at_least: float | None
    at_most: float | None
    ours: float
    unit: str
    error: float | None
    holds: bool | None
    ratio: float | None
    blind: float | None
    blind_error: float | None
    blind_holds: bool | None
    blind_ratio: float | None
    use: Literal["fitted", "predicted blind", "known", "not steady"]
    steady: bool | None
    run: dict[str, Any] | None = None


class LinkStep(Record):
    """Rate that remains after one layer of a link, per direction.

    Attributes:
        name: name of the layer.

    """

    name: str
    bytes_per_second: float


class LinkData(Record):
    """Data rate of one kind of traffic over a link, per direction.

    Attributes:
        name: kind of traffic.
        both_directions: true if the traffic goes in both directions at a time.
        formula_bytes_per_second: rate of one direction by the formula.
        simulated_bytes_per_second: rate between the two simulated ends.
        replayed_percent: units (flits, packets or blocks) that were replayed after an error, in percent of all units.

    """

    name: str
    both_directions: bool
    formula_bytes_per_second: float
    simulated_bytes_per_second: float
    replayed_percent: float


class LinkTransfers(Record):
    """DMA transfers of one size in one direction: latency of a single transfer, and throughput of many.

    Attributes:
        latency_ns: latency of a single transfer.
        bytes_per_second: throughput with 32 transfers at a time.

    """

    latency_ns: float
    bytes_per_second: float


DmaEngine = Literal["descriptors", "registers", "device"]
"""Start and end of DMA transfers."""


class LinkDma(Record):
    """DMA transfers of one size by one engine, in both directions."""

    engine: DmaEngine
    to_device: LinkTransfers
    to_host: LinkTransfers


class LinkRates(Record):
    """Rates of a link, from :func:`cohkit.link`. `dma` is `None` unless requested.

    Attributes:
        lanes, payload, delay_ns, bit_errors, seed: the arguments, including defaults.
        steps: remaining rate after each layer, from the wires upward.
        data: one entry for each kind of traffic, first in one direction and then in both.

    """

    link: str
    lanes: int
    payload: int
    delay_ns: int
    bit_errors: float
    seed: int
    steps: Records[LinkStep]
    data: Records[LinkData]
    dma: LinkDma | None


class LitmusOutcome(Record):
    """An outcome of a litmus test. Simulator runs also report its `count`, and the first `seed` with it.

    Attributes:
        values_: the key `values`: final values of the observed registers and locations, by name.
        satisfies: true if the outcome satisfies the test's condition.
        allowed: true if the model allows the outcome.

    """

    values_: dict[str, int]
    satisfies: bool
    allowed: bool
    count: int | None = None
    seed: int | None = None


class Litmus(Record):
    """Result of a litmus test, from :func:`cohkit.litmus`.

    Attributes:
        test: name in the test file.
        protocol: name of the protocol; `None` for sequentially consistent memory without caches.
        kinds: kind of remote that each thread runs on, if the protocol distinguishes kinds.
        cores: kind of core.
        model: the memory model that outcomes are compared with.
        condition: quantifier of the test's condition.
        observation: how many outcomes satisfy the condition; `None` if there is no outcome.
        outcome: the verdict. `violated` means that the protocol breaks a property or its guarantee, or that threads
            never end.
        expected: true if the outcomes are those that the file expects; `None` if that is undecided or was not
            requested.
        reason: the violation, or the reason of `undecided`.
        allowed: number of outcomes that the model allows.
        states: number of states visited; 0 for sequentially consistent memory, `None` for simulator runs.
        sequence, steps: chart of a path to an outcome, and the number of its steps; if requested or if an outcome is
            forbidden.
        runs, seed: number of simulator runs, and the seed of the first.
        run: values that depend on the machine.

    """

    test: str
    protocol: str | None
    kinds: list[str] | None = None
    cores: Literal["in_order", "store_buffer", "relaxed"]
    model: Literal["sc", "tso", "rc", "armv8", "riscv"]
    condition: Literal["exists", "not_exists", "forall"]
    observation: Literal["never", "sometimes", "always"] | None
    outcome: Literal["satisfied", "not_satisfied", "violated", "undecided"]
    expected: bool | None = None
    reason: str | None
    outcomes: Records[LitmusOutcome]
    allowed: int
    states: int | None = None
    sequence: Sequence | None = None
    steps: int | None = None
    runs: int | None = None
    seed: int | None = None
    run: dict[str, Any]


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


class EmittedHome(Record):
    """Sizes of a home in hardware. `run` lists the files written.

    Attributes:
        states, events: numbers of states and events of the home for one remote, with equivalent states merged.
        rows: number of valid rows of the ROM, including rows that stall or reject their event.
        row_bits, address_bits: widths of a row and of its address, in bits.

    """

    protocol: str
    states: int
    events: int
    rows: int
    row_bits: int
    address_bits: int
    run: dict[str, Any]


class Lockstep(Record):
    """Result of lockstep runs of the RTL and the controllers.

    Attributes:
        messages: number of messages that entered and left the home, each compared with the controllers.
        mismatches: 0 or 1: the first mismatch ends the test.
        rows_covered: number of rows of the ROM that were used.
        rows_reachable: number of rows that some order of events reaches.
        seeds, first_seed: number of runs and seed of the first, as given.
        shapes: configurations of the home's parameters that these seeds used.
        cycles: clock cycles of all runs together.
        local_responses: number of local operations and unlocks of the device that were answered.
        evictions: number of lines that the directory took from the remote to make room.
        illegal_inputs: number of illegal or unsolicited inputs that the home refused, or dropped and counted.
        uncovered_rows: reachable rows that were not used, each with its `state` and `event`.
        mutated_rows: number of ROM rows that were changed, one at a time.
        undetected_mutations: changed rows that no check detected in any of 20 runs that used them.
        mismatch: the mismatch with its seed, shape, cycle, description and last steps; `None` if there is none.
        run: values that depend on the machine: file, version and the RTL as built.

    """

    protocol: str
    messages: int
    mismatches: int
    rows_covered: int
    rows_reachable: int
    seeds: int
    first_seed: int
    shapes: list[dict[str, Any]]
    cycles: int
    local_responses: int
    evictions: int
    illegal_inputs: int
    uncovered_rows: list[dict[str, str]] | None
    mutated_rows: int
    undetected_mutations: list[dict[str, Any]]
    mismatch: dict[str, Any] | None
    run: dict[str, Any]


class Synthesis(Record):
    """Size of a home configuration on an FPGA, and its longest paths.

    Attributes:
        configuration: number of units.
        slices: number of slices of the home.
        lut: number of LUTs, including those of distributed memories; an upper bound, counted before placement.
        ff: number of flip-flops.
        bram36: number of memory blocks of 36 Kbit; a half counts as 0.5.
        uram: number of memory blocks of 288 Kbit.
        depth: levels of logic on the longest path that begins at a register.
        depth_after_memory: levels of logic on the longest path that begins at a memory block without an output
            register.
        paths, paths_after_memory: the five longest paths of each kind.
        modules: size and depth by module of the RTL.

    """

    protocol: str
    configuration: str
    slices: int
    lut: int
    ff: int
    bram36: float
    uram: int
    depth: int
    depth_after_memory: int
    paths: list[dict[str, Any]]
    paths_after_memory: list[dict[str, Any]]
    modules: list[dict[str, Any]]
    run: dict[str, Any]


class HomeMeasurements(Record):
    """Latencies of the RTL in cycles, and its throughput.

    Attributes:
        units: number of units in two slices.
        clock_mhz: clock frequency that converts cycles to times, in MHz.
        latencies: `cycles` of each `operation`, from the header of the request to the header of the answer.
        traffic: throughput of streams of requests.

    """

    protocol: str
    units: int
    clock_mhz: float
    latencies: list[dict[str, Any]]
    traffic: list[dict[str, Any]]
    run: dict[str, Any]


if not TYPE_CHECKING:
    __getattr__ = resolver(__name__)
