"""Result types: mappings whose keys are also attributes. `docs/output.md` explains the keys.

If a result lacks a key, the attribute is `None`.
"""

from typing import TYPE_CHECKING, Any, Literal

from cohkit.old_names import resolver
from cohkit.results import Record, Records


class Note(Record):
    """Help for an error: advice, or a related location in the text (otherwise `line` and `column` are `None`)."""

    message: str
    line: int | None
    column: int | None


class Diagnostic(Record):
    """An error of a protocol file. Lines and columns count from 1; columns count characters."""

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
    """An action of an agent: `kind` is `send`, `receive`, `does` or `becomes`."""

    kind: Literal["send", "receive", "does", "becomes"]
    message: str | None = None
    to: int | None = None
    flight: int | None = None
    what: str | None = None
    state: str | None = None


class Step(Record):
    """One step of a message sequence. A receiving action also has the key `from`."""

    agent: int
    action: Action
    line: int | None = None
    visible: bool


class Sequence(Record):
    """A message sequence. `chart_text` and `chart_svg` draw it."""

    agents: list[str]
    steps: Records[Step]


class Fault(Record):
    """A fault of a home's policy, with the message sequences that show it."""

    kind: str
    message: str
    remedy: str | None
    line: int
    column: int
    sequences: Records[Sequence]


class Property(Record):
    """Status of one property."""

    kind: str
    name: str
    status: Literal["holds", "violated", "undecided"]


class Counterexample(Record):
    """Evidence of a violation, or of an exceeded channel capacity."""

    kind: str
    name: str
    message: str
    sequences: Records[Sequence]
    trace: dict[str, Any] | None
    explanation: dict[str, Any] | None
    steps: list[str] | None = None


class RuleCoverage(Record):
    """Number of times that the rules with one name fired."""

    rule: str
    instances: int
    fired: int
    new: int


class RowCoverage(Record):
    """Number of times that one row of an agent's table was taken."""

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
    """Result of random walks."""

    seed: int
    walks: int
    steps: int
    states_counted: bool
    rules_fired: int
    rules: int
    never_fired: list[str]


class SystemSizes(Record):
    """Sizes that a system sets differently from the rest of its protocol."""

    system: str
    sizes: dict[str, int]


class ProgramBounds(Record):
    """Largest programs that checked a guarantee, and the number of placements in which they ran."""

    threads: int
    accesses: int
    homes: int
    placements: int
    max_spontaneous_evictions: int
    omitted_stores: list[str]
    sizes: Records[SystemSizes]


class UndecidedQuestion(Record):
    """A search for progress that stopped at a limit."""

    question: str
    states: int | str


class Verdict(Record):
    """The verdict on one system."""

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
    """The verdict on a Murphi model."""

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
    """One row of a controller's table, and its line in the protocol file, from 1."""

    state: str
    event: str
    guard: str | None
    actions: list[str]
    next: str | None
    line: int


class Table(Record):
    """The controller of an agent. `initial` maps the name of each agent in charts to its initial state."""

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
    """Size of a controller."""

    states: int
    transitions: int
    events: int


class Construction(Record):
    """A constructed home: its sizes for one remote, plain and `merged`. `fault` is `None` if construction succeeds."""

    protocol: str
    home: Sizes
    merged: Sizes
    knowledge_sets: int
    notes: list[str]
    fault: Fault | None
    run: dict[str, Any]


class System(Record):
    """A system that a protocol file lists for checking."""

    name: str
    remotes: int
    lines: int


class Quantity(Record):
    """A quantity of a platform. `low` and `high` are `None` if a source gives the value."""

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
    """

    name: str
    protocol: str
    remotes: int
    lower_level_caches: int | None = None
    agents: dict[str, int] | None = None
    lines: int
    quantities: Records[Quantity]


class Workload(Record):
    """Workload of the cores."""

    name: str
    region_lines: int
    accesses: int
    cores: int
    partitioned: bool
    outstanding: int
    prefetch: int


class Failure(Record):
    """Reason why a simulation was aborted."""

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
    """An interval of an access: its step, and the message in flight or waiting, if any."""

    step: str
    message: str | None
    begin_ns: float
    ns: float


class SlowestAccess(Record):
    """The slowest access, with the steps that took its time, in order."""

    access: str
    core: int
    line: int
    issued_ns: float
    latency_ns: float
    steps: Records[AccessStep]


class Resource(Record):
    """A resource with limited capacity. Of several of one kind, the one with the highest utilisation."""

    name: str
    which: str | None
    count: int
    utilisation: float
    mean: float
    works: bool


class Bottleneck(Record):
    """The bottleneck of the access rate, with the reason."""

    name: str
    utilisation: float
    reason: str


class Explanation(Record):
    """Breakdown of the access latency: `parts` add up to `latency`, and so do `steps`."""

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
    """Traffic of one message type: on the links between hosts, and on the meshes inside them."""

    between: int
    between_bytes: int
    mesh_bytes: int


class Times(Record):
    """Durations in nanoseconds. `distribution` lists ascending values, each with the number of durations up to it."""

    count: int
    mean: float
    p50: float
    p99: float
    max: float
    distribution: list[tuple[float, int]]


class LinkTraffic(Record):
    """Traffic on the links of the caching agents of one kind, in both directions."""

    messages: int
    bytes: int


class Play(Record):
    """The result of a play of an application and its threads. Measurements are `None` if there is a `failure`."""

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
    """Rate that remains after one layer of a link, per direction."""

    name: str
    bytes_per_second: float


class LinkData(Record):
    """Data rate of one kind of traffic over a link, per direction."""

    name: str
    both_directions: bool
    formula_bytes_per_second: float
    simulated_bytes_per_second: float
    replayed_percent: float


class LinkTransfers(Record):
    """DMA transfers of one size in one direction: latency of a single transfer, and throughput of many."""

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
    """Rates of a link, from :func:`cohkit.link`. `dma` is `None` unless requested."""

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
    """An outcome of a litmus test. Simulator runs also report its `count`, and the first `seed` with it."""

    values_: dict[str, int]
    satisfies: bool
    allowed: bool
    count: int | None = None
    seed: int | None = None


class Litmus(Record):
    """Result of a litmus test, from :func:`cohkit.litmus`."""

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
    """A mutant: a protocol with one change, and the verdict on it."""

    protocol: str
    number: int
    kind: str
    mutant: str
    verdict: Literal["rejected", "refuted", "left open", "undecided", "bisimilar", "survived"]


class TraceVerdict(Record):
    """The verdict on a trace. `rows`, `messages` and `values` are `None` if it is rejected."""

    outcome: Literal["accepted", "rejected"]
    steps: int
    ends_quiescent: bool
    rows: int | None
    messages: int | None
    values_: int | None
    step: int | None
    reason: str | None


class EmittedHome(Record):
    """Sizes of a home in hardware. `run` lists the files written."""

    protocol: str
    states: int
    events: int
    rows: int
    row_bits: int
    address_bits: int
    run: dict[str, Any]


class Lockstep(Record):
    """Result of lockstep runs of the RTL and the controllers."""

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
    """Size of a home configuration on an FPGA, and its longest paths."""

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
    """Latencies of the RTL in cycles, and its throughput."""

    protocol: str
    units: int
    clock_mhz: float
    latencies: list[dict[str, Any]]
    traffic: list[dict[str, Any]]
    run: dict[str, Any]


if not TYPE_CHECKING:
    __getattr__ = resolver(__name__)
