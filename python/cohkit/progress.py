"""Progress bars for long operations, shown only on a terminal."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

_UPDATE_INTERVAL_S = 0.1
_TEXT_COLUMNS = 45
_SHORTEST, _LONGEST = 5, 40


class Bar:
    """A progress bar on standard error, which is removed at the end of the operation.

    >>> from cohkit.progress import Bar
    >>> with Bar("counting") as bar:  # shows nothing here, as this is no terminal
    ...     for number in range(3):
    ...         bar(number, 3)
    """

    def __init__(self, name: str, stream: TextIO | None = None) -> None:
        """Set the name of the operation."""
        self._name = name
        self._stream = stream or sys.stderr
        self._shown = self._stream.isatty()
        self._begun = time.monotonic()
        self._last = float("-inf")

    def __enter__(self) -> Self:
        """Start the operation."""
        return self

    def __call__(self, done: int, total: int) -> None:
        """Show that `done` of `of` units are complete."""
        now = time.monotonic()
        if not self._shown or now < self._last + _UPDATE_INTERVAL_S:
            return
        self._last = now
        share = done / max(total, 1)
        available_columns = shutil.get_terminal_size().columns - _TEXT_COLUMNS
        length = max(_SHORTEST, min(_LONGEST, available_columns))
        bar = "█" * round(share * length)
        remaining = f", {(now - self._begun) * (1 - share) / share:.0f} s left" if share > 0 else ""
        self._stream.write(f"\r\033[K{self._name} {bar:░<{length}} {share:4.0%}{remaining}")
        self._stream.flush()

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the bar."""
        if self._last > float("-inf"):
            self._stream.write("\r\033[K")
            self._stream.flush()
