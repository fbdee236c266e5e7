"""What of the `cohkit` command is Python."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cohkit import __version__
from cohkit.errors import Error
from cohkit.experiments import EXPERIMENTS
from cohkit.published import COUNT, Published, compare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cohkit.types import Result

# As those of the native command.
YES, BAD_INPUT, COULD_NOT_RUN, INTERRUPTED = 0, 2, 4, 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cohkit",
        description="What of the cohkit command is Python. `cohkit --help` of the native command tells the rest.",
    )
    parser.add_argument("--version", action="version", version=f"cohkit {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    reproduce = commands.add_parser(
        "reproduce",
        help="run published tables and figures",
        description="Runs published tables and figures, and prints the published numbers beside ours. "
        "Where no number is given the table says `kept`: the result is kept apart, as a prediction.",
        epilog="Experiments:\n" + "\n".join(f"  {name:14}{item.title}" for name, item in EXPERIMENTS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    reproduce.add_argument(
        "experiments", nargs="*", metavar="ID", help="an experiment, or `all`; without one they are listed"
    )
    reproduce.add_argument(
        "--published", metavar="FILE.toml", help="join further published numbers, in the form of published.toml"
    )
    reproduce.add_argument("--json", action="store_true", help="print the rows as JSON")
    reproduce.add_argument("--out", metavar="FILE", help="write the result to this file: all of it, or nothing")
    return parser


def _chosen(names: Sequence[str]) -> list[str]:
    if "all" in names:
        return list(EXPERIMENTS)
    for name in names:
        if name not in EXPERIMENTS:
            raise Error(f"there is no experiment `{name}`; there are {', '.join(EXPERIMENTS)}")
    return list(dict.fromkeys(names))


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "kept"
    return f"{value:.0f}" if unit == COUNT else f"{value:.4g} {unit}"


def _table(name: str, rows: Sequence[Result]) -> str:
    lines = [("", "published", "ours", "error", "use")]
    for row in rows:
        error = "" if row["error"] is None else f"{row['error']:+.1%}"
        unit = row["unit"]
        lines.append((row["name"], _number(row["published"], unit), _number(row["ours"], unit), error, row["use"]))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = f"{name}: {EXPERIMENTS[name].title}\n\n"
    for first, *numbers, use in lines:
        cells = [f"{cell:>{width}}" for cell, width in zip(numbers, widths[1:4], strict=True)]
        text += "  ".join(["", f"{first:<{widths[0]}}", *cells, use]) + "\n"
    if EXPERIMENTS[name].note:
        text += f"\n{EXPERIMENTS[name].note}"
    return text


def _reproduce(options: argparse.Namespace) -> str:
    if not options.experiments:
        return "".join(f"{name:14}{item.title}\n" for name, item in EXPERIMENTS.items())
    published = Published.shipped()
    if options.published:
        published.join(Published.read(options.published))
    results = {}
    for name in _chosen(options.experiments):
        results[name] = compare(name, EXPERIMENTS[name].run(), published)
    if options.json:
        return json.dumps([row for rows in results.values() for row in rows], indent=2, ensure_ascii=False) + "\n"
    return "\n".join(_table(name, rows) for name, rows in results.items())


def _write(file: str, text: str) -> None:
    """Put the text into the file: all of it, or the file stays as it was."""
    path = Path(file).resolve()
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".cohkit-", delete=False, encoding="utf-8") as new:
        try:
            new.write(text)
            new.close()
            mask = os.umask(0)
            os.umask(mask)
            Path(new.name).chmod(0o666 & ~mask)
            Path(new.name).replace(path)
        except BaseException:
            Path(new.name).unlink(missing_ok=True)
            raise


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and give its exit code."""
    options = _parser().parse_args(arguments)
    try:
        result = _reproduce(options)
        if options.out:
            _write(options.out, result)
        else:
            sys.stdout.write(result)
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone, which is no error; the interpreter must not try again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except Error as error:
        sys.stderr.write(f"error: {error}\n")
        return BAD_INPUT
    except OSError as error:
        missing = isinstance(error, FileNotFoundError | IsADirectoryError) and error.filename == options.published
        sys.stderr.write(f"error: {error.filename or 'standard output'}: {error.strerror or error}\n")
        return BAD_INPUT if missing else COULD_NOT_RUN
    return YES


if __name__ == "__main__":
    sys.exit(main())
