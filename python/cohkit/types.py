"""Results of the functions: mappings whose keys are attributes, too. `docs/output.md` explains the keys.

Of a result that lacks a key, the attribute is `None`.
"""

from typing import Any, Literal

from cohkit.results import Record, Records


class Note(Record):
    """What helps with an error: advice, or another place in the text (else `line` and `column` are `None`)."""

    message: str
    line: int | None
    column: int | None


class Diagnostic(Record):
    """One error of a protocol text. Lines and columns count from 1; columns count characters."""

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
    """What an agent does: `kind` is `send`, `receive`, `does` or `becomes`."""

    kind: Literal["send", "receive", "does", "becomes"]
    message: str | None = None
    to: int | None = None
    flight: int | None = None
    what: str | None = None
    state: str | None = None


class Step(Record):
    """One step of a message sequence. An action that receives has the further key `from`."""

    agent: int
    action: Action
    line: int | None = None
    visible: bool


class Sequence(Record):
    """A message sequence, which `chart_text` and `chart_svg` draw."""

    agents: list[str]
    steps: Records[Step]


class Fault(Record):
    """What is wrong with a home's policy."""

    kind: str
    message: str
    remedy: str | None
    line: int
    column: int
    sequences: Records[Sequence]


class Property(Record):
    """What is known of one property."""

    kind: str
    name: str
    status: Literal["holds", "violated", "undecided"]


class Counterexample(Record):
    """What shows a violation, or how a channel's capacity is exceeded."""

    kind: str
    name: str
    message: str
    sequences: Records[Sequence]
    trace: dict[str, Any] | None
    explanation: dict[str, Any] | None
    steps: list[str] | None = None


class RuleCoverage(Record):
    """How often the rules of one name fired."""

    rule: str
    instances: int
    fired: int
    new: int


class RowCoverage(Record):
    """How often a row of the table of an agent was taken."""

    agent: str
    state: str
    event: str
    guard: str | None
    taken: int


class Coverage(Record):
    """What a search has exercised."""

    rules: Records[RuleCoverage]
    rows: Records[RowCoverage]


class Walks(Record):
    """What random walks came to."""

    seed: int
    walks: int
    steps: int
    states_counted: bool
    rules_fired: int
    rules: int
    never_fired: list[str]


class SystemSizes(Record):
    """Sizes of a text that one of its systems states otherwise."""

    system: str
    sizes: dict[str, int]


class ProgramBounds(Record):
    """Largest programs that judged a guarantee, and in how many placements they ran."""

    threads: int
    accesses: int
    homes: int
    placements: int
    given_up: int
    stores_left_out: list[str]
    sizes: Records[SystemSizes]


class Unfinished(Record):
    """The search for progress that a limit ended."""

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
    unfinished: Unfinished | None = None
    coverage: Coverage | None = None
    omission_probability: float | None = None
    walks: Walks | None = None
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
    walks: Walks | None = None
    run: dict[str, Any]


class Row(Record):
    """One row of a controller's table, and the line of the text where it stands, from 1."""

    state: str
    event: str
    guard: str | None
    actions: list[str]
    next: str | None
    line: int


class Table(Record):
    """The controller of an agent; `initial` are the states in which agents begin, by the names of agents in charts."""

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
    """How large a controller is."""

    states: int
    transitions: int
    events: int


class Construction(Record):
    """A constructed home: its sizes for one remote, as it is and `merged`; `fault` is `None` if it can be followed."""

    protocol: str
    home: Sizes
    merged: Sizes
    knowledge_sets: int
    notes: list[str]
    fault: Fault | None
    run: dict[str, Any]


class System(Record):
    """A system that a text asks to check."""

    name: str
    remotes: int
    lines: int


class Quantity(Record):
    """A quantity of a platform; `low` and `high` are `None` where a source gives the value."""

    name: str
    value: int
    unit: Literal["ps", "B/s", "B", "count"]
    low: int | None
    high: int | None
    origin: str


class Platform(Record):
    """A machine that is simulated.

    `below` is how many caches are below each remote's where there are two levels, and `agents` how many there are of
    each further kind.
    """

    name: str
    protocol: str
    remotes: int
    below: int | None = None
    agents: dict[str, int] | None = None
    lines: int
    quantities: Records[Quantity]


class Workload(Record):
    """What the cores did."""

    name: str
    region_lines: int
    accesses: int
    cores: int
    chunked: bool
    outstanding: int
    prefetch: int


class Failure(Record):
    """Why a simulation did not come to its end."""

    kind: str
    message: str
    line: int
    time_ps: int
    waits: list[str]
    sequence: Sequence


class Stretch(Record):
    """A quarter of what was counted: how many things, and how long they took."""

    count: int
    ns: float


class Quarter(Stretch):
    """A quarter of the accesses of a run, with the lines that caches held at its end."""

    lines_cached: int


class Spent(Record):
    """Time of accesses: of all in picoseconds, of one in the mean, and of the slowest, in nanoseconds."""

    total_ps: int
    mean_ns: float
    slowest_ns: float | None


class SpentPart(Spent):
    """What accesses spent on one part of the machine."""

    name: str


class SpentStep(SpentPart):
    """What accesses spent on one step, and of which part it is."""

    part: str


class Moment(Record):
    """Some time of an access: the step, and the message that travelled or waited, if one did."""

    step: str
    message: str | None
    begin_ns: float
    ns: float


class Slowest(Record):
    """The access that took longest, with what it was spent on, one after the other."""

    access: str
    core: int
    line: int
    issued_ns: float
    latency_ns: float
    way: Records[Moment]


class Resource(Record):
    """What can do or hold so much at a time; of several of a kind the one that was most in use."""

    name: str
    which: str | None
    count: int
    utilisation: float
    mean: float
    works: bool


class Limit(Record):
    """What limits how many accesses are performed in a time, and why it is that."""

    name: str
    utilisation: float
    reason: str


class Explanation(Record):
    """Where the time of accesses has gone: the sum of all `parts`, and that of all `steps`, is `latency`."""

    accesses: int
    latency: Spent
    parts: Records[SpentPart]
    steps: Records[SpentStep]
    slowest: Slowest | None
    resources: Records[Resource]
    limit: Limit


class BouncingLine(Record):
    """A line that goes to and fro between caches; `address` counts bytes from the begin of the region.

    Of its `transfers`, `other_words` were to another word than the last access of the other cache: false sharing.
    `share` is that of the time that accesses waited at caches, all lines together.
    """

    line: int
    address: int
    transfers: int
    other_words: int
    share: float


class Simulation(Record):
    """The result of a simulation: `statistics` and `messages` are `None` if there is a `failure`.

    Of several kinds of caching agents, `agents` says what each did; `workload` is that of the first. There is an
    `explanation` if it was asked for and nothing failed.
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


class Taken(Record):
    """What messages of a kind have taken: on the links between hosts, and on meshes inside them."""

    between: int
    between_bytes: int
    mesh_bytes: int


class Times(Record):
    """Durations, in nanoseconds; `distribution` has some that rise, each with how many do not exceed it."""

    count: int
    mean: float
    p50: float
    p99: float
    max: float
    distribution: list[tuple[float, int]]


class Travelled(Record):
    """What has travelled on the links of caching agents of one kind, both ways."""

    messages: int
    bytes: int


class Play(Record):
    """What an application and its threads did; what was measured is `None` if there is a `failure`."""

    protocol: str
    platform: str
    settings: list[str]
    sizes: list[str]
    home: str
    application: str
    numbers: dict[str, int]
    seed: int
    oracle: bool
    window_ns: float | None
    counts: dict[str, int] | None
    rates_per_s: dict[str, float] | None
    courses: dict[str, Records[Stretch] | None] | None
    times_ns: dict[str, Times] | None
    links: dict[str, Travelled] | None
    tables: dict[str, list[list[int]]] | None
    end_ns: float | None
    statistics: dict[str, float] | None
    messages: dict[str, int] | None
    traffic: dict[str, Taken] | None
    quarters: Records[Quarter] | None
    failure: Failure | None
    warnings: list[str]
    run: dict[str, Any]


class Result(Record):
    """One row of an experiment's table: what is published under `key`, and what we get, in `unit`.

    Published is a number, or what `says` it in words; `None` both where it is kept apart. `bound` is what the words say
    that it is at most. `error` is relative to the number. `ratio` is ours divided by the bound, or by that number of
    ours that it is compared with; `holds` is `None` where that cannot be judged. `blind` is what was predicted before
    the published result was seen. `steady` is `None` unless it is a throughput. `run` has the `command` and the
    `version`.
    """

    experiment: str
    name: str
    key: str
    published: float | None
    says: str | None
    bound: float | None
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
    """What one layer of a link leaves of a direction."""

    name: str
    bytes_per_second: float


class LinkData(Record):
    """The data of a kind of traffic over a link, in one direction."""

    name: str
    both_directions: bool
    formula_bytes_per_second: float
    driven_bytes_per_second: float
    sent_again_percent: float


class LinkTransfers(Record):
    """Transfers of one size by DMA one way: how long one takes alone, and the rate of many."""

    latency_ns: float
    bytes_per_second: float


class LinkDma(Record):
    """Transfers of one size by DMA."""

    to_device: LinkTransfers
    to_host: LinkTransfers


class LinkRates(Record):
    """What one gets of a link, as :func:`cohkit.link` tells it; `dma` is `None` unless it is asked for."""

    link: str
    lanes: int
    payload: int
    delay_ns: int
    bit_errors: float
    seed: int
    steps: Records[LinkStep]
    data: Records[LinkData]
    dma: LinkDma | None


class LitmusEnd(Record):
    """An outcome of a litmus test; runs in the simulator tell how often it was `seen`, and the first `seed` of it."""

    values_: dict[str, int]
    fulfils: bool
    allowed: bool
    seen: int | None = None
    seed: int | None = None


class Litmus(Record):
    """What a litmus test has shown, as :func:`cohkit.litmus` tells it."""

    test: str
    protocol: str | None
    kinds: list[str] | None = None
    cores: Literal["in_order", "store_buffer", "relaxed"]
    model: Literal["sc", "tso", "rc", "armv8", "riscv"]
    condition: Literal["exists", "not_exists", "forall"]
    observation: Literal["never", "sometimes", "always"] | None
    outcome: Literal["yes", "no", "violated", "undecided"]
    expected: bool | None = None
    reason: str | None
    ends: Records[LitmusEnd]
    allowed: int
    states: int | None = None
    sequence: Sequence | None = None
    steps: int | None = None
    runs: int | None = None
    seed: int | None = None
    run: dict[str, Any]


class Mutant(Record):
    """A change of a protocol text in one place, and what became of it."""

    protocol: str
    number: int
    kind: str
    mutant: str
    fate: Literal["rejected", "refuted", "left open", "undecided", "survived"]


class TraceVerdict(Record):
    """The verdict on a trace. `rows`, `messages` and `values` are `None` if it is refused."""

    outcome: Literal["in_order", "refused"]
    steps: int
    at_rest: bool
    rows: int | None
    messages: int | None
    values_: int | None
    step: int | None
    why: str | None


class EmittedHome(Record):
    """Sizes of a home as hardware; `run` names the files that were written."""

    protocol: str
    states: int
    events: int
    rows: int
    row_bits: int
    address_bits: int
    run: dict[str, Any]


class Lockstep(Record):
    """Result of runs of the RTL in lockstep with the controllers."""

    protocol: str
    messages: int
    mismatches: int
    rows_covered: int
    rows_reachable: int
    seeds: int
    first_seed: int
    shapes: list[dict[str, Any]]
    cycles: int
    answers: int
    evictions: int
    strangers: int
    unused: list[dict[str, str]] | None
    spoilt: int
    missed: list[dict[str, Any]]
    mismatch: dict[str, Any] | None
    run: dict[str, Any]


class Synthesis(Record):
    """Size of a configuration of the home on an FPGA, and its longest paths."""

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
    """Latencies of the RTL in cycles, and how much traffic it bears."""

    protocol: str
    units: int
    clock_mhz: float
    latencies: list[dict[str, Any]]
    traffic: list[dict[str, Any]]
    run: dict[str, Any]
