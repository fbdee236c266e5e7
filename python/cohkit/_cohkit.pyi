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

class RefusedError(Exception): ...

@type_check_only
class NativeSearchOptions(TypedDict):
    symmetry: bool
    hash_compaction: bool
    threads: int | None
    max_states: int | None
    max_depth: int | None
    max_memory: int | None
    coverage: bool
    simulate: tuple[int, int] | None
    checkpoint: tuple[str, bool, int] | None

@final
class Protocol:
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
    @property
    def has_policy(self) -> bool: ...
    @property
    def systems(self) -> list[tuple[str, int, int]]: ...

@final
class Composition:
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

def composes(text: str) -> bool: ...
def check_composition(
    composition: Composition, *, systems: list[str] | None, capacity: int | None, search_options: NativeSearchOptions
) -> str: ...
def check(
    protocol: Protocol,
    *,
    systems: list[str] | None,
    size: tuple[int, int] | None,
    capacity: int | None,
    search_options: NativeSearchOptions,
) -> str: ...
def check_model(
    text: str, *, file: str, dialect: str | None, deadlock: str, search_options: NativeSearchOptions
) -> str: ...
def table(protocol: Protocol, *, home: bool, merged: bool) -> str: ...
def construct(protocol: Protocol) -> str | None: ...
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
) -> str: ...

@type_check_only
class LitmusRun(TypedDict):
    cores: str | None
    model: str | None
    gives_up: int
    max_states: int
    chart: bool
    simulate: tuple[int, int] | None
    stores: str | None
    kinds: str | None
    system: str | None
    expect: str | None

@final
class Litmus:
    def __new__(cls, name: str, text: str | None) -> Litmus: ...

def litmus(test: Litmus, *, protocol: Protocol | Composition | None, options: LitmusRun) -> str: ...
def chart_text(json: str, *, width: int | None, ascii_only: bool) -> str: ...
def chart_svg(json: str, *, title: str) -> str: ...
def shipped() -> list[tuple[str, str]]: ...
def experiments() -> list[tuple[str, str]]: ...
def did_you_mean(unknown_name: str, names: list[str]) -> str: ...

@final
class Machine:
    def __new__(cls, name: str, text: str | None) -> Machine: ...
    def json(self) -> str: ...
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
        trace: tuple[str, bytes] | None,
        accesses: int | None,
        cores: int | None,
        outstanding: int | None,
        prefetch: int | None,
        by: list[str],
        settings: list[str],
        seed: int,
        oracle: bool,
        explain: bool,
    ) -> Simulation: ...

@final
class Exploration:
    def __new__(cls, protocol: Protocol, *, system: str | None, size: tuple[int, int] | None) -> Exploration: ...
    def view(self, path: list[int]) -> str: ...
    def nearest_violation(self, max_states: int) -> str: ...

def current_name(name: str) -> str: ...
def platforms() -> list[str]: ...
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
        scenario: tuple[Callable[[], object], int, int, bool] | None,
        protocol: Protocol | Composition,
        parameters: list[str],
        time: str | None,
        warm_up: str,
        settings: list[str],
        sizes: list[str],
        seed: int,
        oracle: bool,
        tables: bool,
    ) -> Play: ...

def play(plays: list[Play], *, threads: int | None, progress: Callable[[int, int], object] | None) -> str: ...
