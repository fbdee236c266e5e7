"""The dictionaries that the functions give. `docs/output.md` tells what the keys mean."""

from typing import Any, Literal, NotRequired, TypedDict


class Note(TypedDict):
    """What helps with an error: advice, or another place in the text (else `line` and `column` are `None`)."""

    message: str
    line: int | None
    column: int | None


class Diagnostic(TypedDict):
    """One error of a protocol text. Lines and columns count from 1; columns count characters."""

    code: str
    message: str
    line: int
    column: int
    end_line: int
    end_column: int
    label: str
    notes: list[Note]
    rendered: str


class Action(TypedDict):
    """What an agent does: `kind` is `send`, `receive`, `does` or `becomes`."""

    kind: Literal["send", "receive", "does", "becomes"]
    message: NotRequired[str]
    to: NotRequired[int]
    flight: NotRequired[int]
    what: NotRequired[str]
    state: NotRequired[str]


class Step(TypedDict):
    """One step of a message sequence. An action that receives has the further key `from`."""

    agent: int
    action: Action
    line: NotRequired[int]
    visible: bool


class Sequence(TypedDict):
    """A message sequence, which `chart_text` and `chart_svg` draw."""

    agents: list[str]
    steps: list[Step]


class Fault(TypedDict):
    """What is wrong with a home's policy."""

    kind: str
    message: str
    remedy: str | None
    line: int
    column: int
    sequences: list[Sequence]


class Property(TypedDict):
    """What is known of one property."""

    kind: str
    name: str
    status: Literal["holds", "violated", "undecided"]


class Counterexample(TypedDict):
    """What shows a violation, or how a channel's capacity is exceeded."""

    kind: str
    name: str
    message: str
    sequences: list[Sequence]
    trace: dict[str, Any] | None
    explanation: dict[str, Any] | None
    steps: NotRequired[list[str]]


class RuleCoverage(TypedDict):
    """How often the rules of one name fired."""

    rule: str
    instances: int
    fired: int
    new: int


class RowCoverage(TypedDict):
    """How often a row of the table of an agent was taken."""

    agent: str
    state: str
    event: str
    guard: str | None
    taken: int


class Coverage(TypedDict):
    """What a search has exercised."""

    rules: list[RuleCoverage]
    rows: list[RowCoverage]


class Walks(TypedDict):
    """What random walks came to."""

    seed: int
    walks: int
    steps: int
    states_counted: bool
    rules_fired: int
    rules: int
    never_fired: list[str]


class SystemSizes(TypedDict):
    """Sizes of a text that one of its systems states otherwise."""

    system: str
    sizes: dict[str, int]


class ProgramBounds(TypedDict):
    """Largest programs that judged a guarantee, and in how many placements they ran."""

    threads: int
    accesses: int
    homes: int
    placements: int
    sizes: list[SystemSizes]


class Verdict(TypedDict):
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
    properties: list[Property]
    counterexample: Counterexample | None
    assumptions: list[str]
    notes: list[str]
    programs: NotRequired[int]
    bounds: NotRequired[ProgramBounds]
    coverage: NotRequired[Coverage]
    omission_probability: NotRequired[float]
    walks: NotRequired[Walks]
    run: dict[str, Any]


class ModelVerdict(TypedDict):
    """The verdict on a Murphi model."""

    model: str
    outcome: Literal["verified", "violated", "undecided"]
    reason: str | None
    states: int
    transitions: int
    depth: int
    symmetric: bool
    components: list[int]
    properties: list[Property]
    counterexample: Counterexample | None
    coverage: NotRequired[Coverage]
    omission_probability: NotRequired[float]
    walks: NotRequired[Walks]
    run: dict[str, Any]


class Row(TypedDict):
    """One row of a controller's table, and the line of the text where it stands, from 1."""

    state: str
    event: str
    guard: str | None
    actions: list[str]
    next: str | None
    line: int


class Table(TypedDict):
    """The controller of an agent; `initial` are the states in which agents begin, by the names of agents in charts."""

    protocol: str
    agent: Literal["home", "remote"]
    constructed: bool
    merged: bool
    initial: dict[str, str]
    states: int
    transitions: int
    events: int
    rows: list[Row]
    run: dict[str, Any]


class Sizes(TypedDict):
    """How large a controller is."""

    states: int
    transitions: int
    events: int


class Construction(TypedDict):
    """A constructed home: its sizes for one remote, as it is and `merged`; `fault` is `None` if it can be followed."""

    protocol: str
    home: Sizes
    merged: Sizes
    knowledge_sets: int
    notes: list[str]
    fault: Fault | None
    run: dict[str, Any]


class System(TypedDict):
    """A system that a text asks to check."""

    name: str
    remotes: int
    lines: int


class Quantity(TypedDict):
    """A quantity of a platform; `low` and `high` are `None` where a source gives the value."""

    name: str
    value: int
    unit: Literal["ps", "B/s", "B", "count"]
    low: int | None
    high: int | None
    origin: str


class Platform(TypedDict):
    """A machine that is simulated.

    `below` is how many caches are below each remote's where there are two levels, and `agents` how many there are of
    each further kind.
    """

    name: str
    remotes: int
    below: NotRequired[int]
    agents: NotRequired[dict[str, int]]
    lines: int
    quantities: list[Quantity]


class Workload(TypedDict):
    """What the cores did."""

    name: str
    region_lines: int
    accesses: int
    cores: int
    chunked: bool
    outstanding: int
    prefetch: int


class Failure(TypedDict):
    """Why a simulation did not come to its end."""

    kind: str
    message: str
    line: int
    time_ps: int
    waits: list[str]
    sequence: Sequence


class Stretch(TypedDict):
    """A quarter of what was counted: how many things, and how long they took."""

    count: int
    ns: float


class Quarter(Stretch):
    """A quarter of the accesses of a run, with the lines that caches held at its end."""

    lines_cached: int


class Spent(TypedDict):
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


class Moment(TypedDict):
    """Some time of an access: the step, and the message that travelled or waited, if one did."""

    step: str
    message: str | None
    begin_ns: float
    ns: float


class Slowest(TypedDict):
    """The access that took longest, with what it was spent on, one after the other."""

    access: str
    core: int
    line: int
    issued_ns: float
    latency_ns: float
    way: list[Moment]


class Resource(TypedDict):
    """What can do or hold so much at a time; of several of a kind the one that was most in use."""

    name: str
    which: str | None
    count: int
    utilisation: float
    mean: float
    works: bool


class Limit(TypedDict):
    """What limits how many accesses are performed in a time, and why it is that."""

    name: str
    utilisation: float
    reason: str


class Explanation(TypedDict):
    """Where the time of accesses has gone: the sum of all `parts`, and that of all `steps`, is `latency`."""

    accesses: int
    latency: Spent
    parts: list[SpentPart]
    steps: list[SpentStep]
    slowest: Slowest | None
    resources: list[Resource]
    limit: Limit


class Simulation(TypedDict):
    """The result of a simulation: `statistics` and `messages` are `None` if there is a `failure`.

    Of several kinds of caching agents, `agents` says what each did; `workload` is that of the first. There is an
    `explanation` if it was asked for and nothing failed.
    """

    protocol: str
    platform: str
    settings: list[str]
    home: str
    workload: Workload
    agents: NotRequired[dict[str, Workload | None]]
    seed: int
    oracle: bool
    statistics: dict[str, float] | None
    quarters: list[Quarter] | None
    messages: dict[str, int] | None
    explanation: NotRequired[Explanation]
    failure: Failure | None
    run: dict[str, Any]


class Taken(TypedDict):
    """What messages of a kind have taken: on the links between hosts, and on meshes inside them."""

    between: int
    between_bytes: int
    mesh_bytes: int


class Times(TypedDict):
    """Durations, in nanoseconds; `distribution` has some that rise, each with how many do not exceed it."""

    count: int
    mean: float
    p50: float
    p99: float
    max: float
    distribution: list[tuple[float, int]]


class Travelled(TypedDict):
    """What has travelled on the links of caching agents of one kind, both ways."""

    messages: int
    bytes: int


class Play(TypedDict):
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
    courses: dict[str, list[Stretch] | None] | None
    times_ns: dict[str, Times] | None
    links: dict[str, Travelled] | None
    tables: dict[str, list[list[int]]] | None
    end_ns: float | None
    statistics: dict[str, float] | None
    messages: dict[str, int] | None
    traffic: dict[str, Taken] | None
    quarters: list[Quarter] | None
    failure: Failure | None
    run: dict[str, Any]


class Result(TypedDict):
    """One row of an experiment's table: what is published under `key`, and what we get, in `unit`.

    Published is a number, or what `says` it in words; `None` both where it is kept apart. `bound` is what the words say
    that it is at most. `error` is relative to the number. `ratio` is ours divided by the bound, or by that number of
    ours that it is compared with; `holds` is `None` where that cannot be judged. `blind` is what was predicted before
    the published result was seen. `steady` is `None` unless it is a throughput.
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


class LinkStep(TypedDict):
    """What one layer of a link leaves of a direction."""

    name: str
    bytes_per_second: float


class LinkData(TypedDict):
    """The data of a kind of traffic over a link, in one direction."""

    name: str
    both_directions: bool
    formula_bytes_per_second: float
    driven_bytes_per_second: float
    sent_again_percent: float


class LinkTransfers(TypedDict):
    """Transfers of one size by DMA one way: how long one takes alone, and the rate of many."""

    latency_ns: float
    bytes_per_second: float


class LinkDma(TypedDict):
    """Transfers of one size by DMA."""

    to_device: LinkTransfers
    to_host: LinkTransfers


class LinkRates(TypedDict):
    """What one gets of a link, as :func:`cohkit.link` tells it; `dma` is `None` unless it is asked for."""

    link: str
    lanes: int
    payload: int
    delay_ns: int
    bit_errors: float
    seed: int
    steps: list[LinkStep]
    data: list[LinkData]
    dma: LinkDma | None


class LitmusEnd(TypedDict):
    """An outcome of a litmus test; runs in the simulator tell how often it was `seen`, and the first `seed` of it."""

    values: dict[str, int]
    fulfils: bool
    allowed: bool
    seen: NotRequired[int]
    seed: NotRequired[int]


class Litmus(TypedDict):
    """What a litmus test has shown, as :func:`cohkit.litmus` tells it."""

    test: str
    protocol: str | None
    kinds: NotRequired[list[str]]
    cores: Literal["in_order", "store_buffer", "relaxed"]
    model: Literal["sc", "tso", "rc", "armv8", "riscv"]
    condition: Literal["exists", "not_exists", "forall"]
    observation: Literal["never", "sometimes", "always"] | None
    outcome: Literal["yes", "no", "violated", "undecided"]
    reason: str | None
    ends: list[LitmusEnd]
    allowed: int
    states: NotRequired[int]
    sequence: NotRequired[Sequence]
    steps: NotRequired[int]
    runs: NotRequired[int]
    seed: NotRequired[int]
    run: dict[str, Any]
