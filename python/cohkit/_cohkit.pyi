from typing import final

__all__ = [
    "Protocol",
    "RefusedError",
    "__version__",
    "chart_svg",
    "chart_text",
    "check",
    "construct",
    "shipped",
    "table",
]

__version__: str

class RefusedError(Exception): ...

@final
class Protocol:
    def __new__(cls, text: str, file: str) -> Protocol: ...
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

def check(
    protocol: Protocol,
    *,
    systems: list[str] | None,
    size: tuple[int, int] | None,
    capacity: int | None,
    threads: int | None,
    max_states: int | None,
    max_depth: int | None,
    max_memory: int | None,
) -> str: ...
def table(protocol: Protocol, *, home: bool, merged: bool) -> str: ...
def construct(protocol: Protocol) -> str | None: ...
def chart_text(json: str, *, width: int | None, ascii_only: bool) -> str: ...
def chart_svg(json: str, *, title: str) -> str: ...
def shipped() -> list[tuple[str, str]]: ...
