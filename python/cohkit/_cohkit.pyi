# Types of the compiled half of the package, which is written in Rust in `crates/cohkit-python`. The package wraps it.
#
# Functions that return `str` return JSON text, like that of the command's `--json`; the package converts it to records.
# A platform setting, a parameter and a size are texts `name=value`.
from collections.abc import Callable
from typing import TypedDict, final, type_check_only

__all__ = [
    "Composition",
    "Exploration",
    "Litmus",
    "Machine",
    "Play",
    "Protocol",
    "RefusedError",
    "Simulation",
    "__version__",
    "bridges",
    "chart_svg",
    "chart_text",
    "check",
    "check_composition",
    "check_model",
    "composes",
    "construct",
    "current_name",
    "did_you_mean",
    "experiments",
    "link",
    "litmus",
    "platforms",
    "play",
    "shipped",
    "simulate",
    "table",
]

__version__: str

# Arguments: the kind of failure (`text`, `fault`, `input` or `unavailable`), and its details as JSON text.
# The package converts it to its own exceptions.
class RefusedError(Exception): ...

@type_check_only
class NativeSearchOptions(TypedDict):
    symmetry: bool
    hash_compaction: bool
    threads: int | None
    # Limits: states, steps from an initial state (with `simulate`, of one walk), and bytes.
    max_states: int | None
    max_depth: int | None
    max_memory: int | None
    coverage: bool
    # Number of steps of random walks, and seed; `None` for a search.
    simulate: tuple[int, int] | None
    # Folder of the checkpoints, whether to resume from them, and seconds between two of them.
    checkpoint: tuple[str, bool, int] | None
    # Whether most states are kept in that folder.
    disk: bool

@final
class Protocol:
    # `file` is the name in messages. Raises `RefusedError` of the kind `text` with all diagnostics.
    def __new__(cls, text: str, file: str) -> Protocol: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[Protocol], tuple[str, str]]: ...
    @property
    def name(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def text(self) -> str: ...
    # True if the home is given as a policy, from which its controller is constructed.
    @property
    def has_policy(self) -> bool: ...
    # Name, number of remotes and number of lines of each declared system.
    @property
    def systems(self) -> list[tuple[str, int, int]]: ...

@final
class Composition:
    # `uses` lists the used files that are not looked up: name in the composition, path, and text.
    def __new__(cls, text: str, file: str, uses: list[tuple[str, str, str]] | None) -> Composition: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[Composition], tuple[str, str, list[tuple[str, str, str]]]]: ...
    @property
    def name(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def uses(self) -> list[tuple[str, str, str]]: ...
    @property
    def spaces(self) -> list[str]: ...
    @property
    def systems(self) -> list[str]: ...

# Tables as JSON text like that of `cohkit table --json`.
def bridges(composition: Composition) -> str: ...

# True if the text is a composition, false if it is a protocol.
def composes(text: str) -> bool: ...

# `systems` are names, by default all; `capacity` is the channel capacity in messages.
def check_composition(
    composition: Composition, *, systems: list[str] | None, capacity: int | None, search_options: NativeSearchOptions
) -> str: ...

# `size` is the number of remotes and lines of one system to check instead of `systems`. `any_number` adds a verdict for
# every number of remotes; `fairness` is `weak` or `strong`, and adds verdicts on transactions that never end.
def check(
    protocol: Protocol,
    *,
    systems: list[str] | None,
    size: tuple[int, int] | None,
    capacity: int | None,
    any_number: bool,
    fairness: str | None,
    search_options: NativeSearchOptions,
) -> str: ...

# `dialect` is `cmurphi`, `rumur` or either if `None`; `deadlock` is `stuttering`, `stuck` or `off`.
def check_model(
    text: str, *, file: str, dialect: str | None, deadlock: str, search_options: NativeSearchOptions
) -> str: ...
def table(protocol: Protocol, *, home: bool, merged: bool) -> str: ...

# `None` if the home is not given as a policy.
def construct(protocol: Protocol) -> str | None: ...

# `delay_ns` is the one-way delay, `bit_errors` the errors per bit, and `dma` the bytes of a DMA transfer; `None` is the
# link's usual value.
def link(
    name: str,
    *,
    lanes: int | None,
    payload: int | None,
    delay_ns: int,
    bit_errors: float,
    seed: int,
    dma: int | None,
    dma_engine: str | None,
    dma_settings: list[str],
) -> str: ...

@type_check_only
class LitmusRun(TypedDict):
    cores: str | None
    model: str | None
    # Maximum number of spontaneous evictions and downgrades in one run, of all caches together.
    max_spontaneous_evictions: int
    max_states: int
    chart: bool
    # Seed of the first simulator run, and number of runs; `None` for an exhaustive exploration.
    simulate: tuple[int, int] | None
    stores: str | None
    kinds: str | None
    system: str | None
    expect: str | None

@final
class Litmus:
    # `name` is the file of the text or, without a text, the name of a classic shape.
    def __new__(cls, name: str, text: str | None) -> Litmus: ...

def litmus(test: Litmus, *, protocol: Protocol | Composition | None, options: LitmusRun) -> str: ...

# `json` is a message sequence; `width` is that of the terminal, in characters.
def chart_text(json: str, *, width: int | None, ascii_only: bool) -> str: ...
def chart_svg(json: str, *, title: str) -> str: ...

# Paths and texts of all files that the package contains.
def shipped() -> list[tuple[str, str]]: ...

# Names and titles of the experiments.
def experiments() -> list[tuple[str, str]]: ...

# Start of a help text that names a similar name; empty if there is none.
def did_you_mean(unknown_name: str, names: list[str]) -> str: ...

@final
class Machine:
    # `name` is the file of the text or, without a text, the name of a shipped platform.
    def __new__(cls, name: str, text: str | None) -> Machine: ...
    def json(self) -> str: ...
    # Combines a device with a host to one machine. Neither is changed; `set` also returns a new machine.
    def with_host(self, host: Machine) -> Machine: ...
    def set(self, settings: list[str]) -> Machine: ...

@final
class Simulation:
    def __new__(
        cls,
        machine: Machine,
        workload: str,
        *,
        protocol: Protocol | Composition,
        region: str | None,
        # Kind and contents of a trace; `workload` is then only its name in the result.
        trace: tuple[str, bytes] | None,
        accesses: int | None,
        cores: int | None,
        outstanding: int | None,
        prefetch: int | None,
        # Workloads of further kinds of agents, as `KIND=WORKLOAD`.
        by: list[str],
        settings: list[str],
        seed: int,
        oracle: bool,
        explain: bool,
    ) -> Simulation: ...

@final
class Exploration:
    # Without `size` (numbers of remotes and lines) and `system`, the first declared system.
    def __new__(cls, protocol: Protocol, *, system: str | None, size: tuple[int, int] | None) -> Exploration: ...
    # Numbers of the chosen steps among the possible ones, from the initial state on.
    def view(self, path: list[int]) -> str: ...
    def nearest_violation(self, max_states: int) -> str: ...

# Current name of a quantity of platforms that is given by its current or a former name.
def current_name(name: str) -> str: ...
def platforms() -> list[str]: ...

# Runs at most `threads` simulations at the same time. `progress` is called with the accesses so far and in all.
def simulate(
    simulations: list[Simulation], *, threads: int | None, progress: Callable[[int, int], object] | None
) -> str: ...

@final
class Play:
    def __new__(
        cls,
        machine: Machine,
        application: str,
        *,
        # Application written in Python: function that starts a run and returns a `ScenarioRun`, number of lines,
        # number of words of host memory, and whether the application ends by itself.
        scenario: tuple[Callable[[], object], int, int, bool] | None,
        protocol: Protocol | Composition,
        parameters: list[str],
        # Simulated times with their units: end of new work, and start of counting.
        time: str | None,
        warm_up: str,
        settings: list[str],
        # Parameters with which the protocol is read.
        sizes: list[str],
        seed: int,
        oracle: bool,
        tables: bool,
    ) -> Play: ...

# `progress` is called with the numbers of completed runs and of all runs.
def play(plays: list[Play], *, threads: int | None, progress: Callable[[int, int], object] | None) -> str: ...
