"""Python part of the `cohkit` command."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from cohkit import __version__
from cohkit.errors import Error, InputError, TextError, UnavailableError
from cohkit.experiments import EXPERIMENTS, Conditions
from cohkit.explorer import Explorer, serve
from cohkit.files import write
from cohkit.pages import report
from cohkit.pages.reading import omitted_compositions
from cohkit.plots import FORMATS
from cohkit.reproduce import ReproduceRequest, reproduce
from cohkit.sweeps.command import run as sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cohkit.plots import Format

# Exit codes of the native command.
SUCCESS, BAD_INPUT, COULD_NOT_RUN, INTERRUPTED = 0, 2, 4, 130
_MAX_NUMBER = 2**64

_DESCRIPTION = """\
Runs published tables and figures, and prints the published numbers beside ours.
Each of ours was fitted to the published one, made when it was known, or
predicted blind, that is before it was seen. The column `blind` has earlier
predictions, which never change. Where the table says `kept` no published number
is shown: if there is one, it is in a separate file, so that ours is made
without it; --published adds it.
"""

_EXAMPLE = """\
Example:
  $ cohkit reproduce cckit-table2 --accesses 1000
"""


_REPORT_DESCRIPTION = """\
Makes one HTML page of a folder with results, to view in a browser.
It needs no network and no other file. The folder contains outputs of check,
table, reproduce, sim, play and litmus with --json, each in a file that ends in
.json; protocol files (.coh), whose tables are shown; and folders of sweeps.
Other files are ignored; specifications that compose others are reported and
ignored.
"""

_REPORT_EXAMPLE = """\
Example:
  $ cohkit report ordering --out report.html
"""


_EXPLORE_DESCRIPTION = """\
Shows a protocol in a browser on this machine: the possible next steps of a
system, to choose from; their result, as a chart and as states; and the path to
the nearest violation. Reload the page to read the file
again. Ctrl-C ends it.
"""

_EXPLORE_EXAMPLE = """\
Example:
  $ cohkit explore protocols/msi.coh --remotes 2
"""


def _experiment_list(width: int | None = None) -> str:
    names = max(map(len, EXPERIMENTS)) + 2
    lines = (f"{name:{names}}{item.title}" for name, item in EXPERIMENTS.items())
    if width is not None:
        lines = (textwrap.fill(line, width, subsequent_indent=" " * names) for line in lines)
    return "".join(f"{line}\n" for line in lines)


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the commands that Python implements."""
    parser = argparse.ArgumentParser(
        prog="cohkit",
        description="Python part of the cohkit command. `cohkit --help` of the native command lists the rest.",
    )
    parser.add_argument("--version", action="version", version=f"cohkit {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("sweep", help="run a command at every point of a sweep", add_help=False)
    _add_explore(
        commands.add_parser(
            "explore",
            help="explore a protocol step by step",
            description=_EXPLORE_DESCRIPTION,
            epilog=_EXPLORE_EXAMPLE,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
    )
    _add_report(
        commands.add_parser(
            "report",
            help="make one page of a folder with results",
            description=_REPORT_DESCRIPTION,
            epilog=_REPORT_EXAMPLE,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
    )
    reproduce = commands.add_parser(
        "reproduce",
        help="run published tables and figures",
        description=_DESCRIPTION,
        epilog=f"Experiments:\n{_experiment_list(80)}\n{_EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    reproduce.add_argument(
        "experiments", nargs="*", metavar="ID", help="an experiment, or `all`; without one they are listed"
    )
    reproduce.add_argument(
        "--published",
        action=_SingleUse,
        metavar="FILE.toml",
        help="add published numbers from a file in the format of published.toml",
    )
    reproduce.add_argument(
        "--sensitivity",
        action="store_true",
        help="run each simulation again, smaller, with each assumed value at both ends of its range, one at a time, "
        "and print how far each number moves",
    )
    reproduce.add_argument(
        "--out",
        action=_SingleUse,
        metavar="DIR",
        help="write the rows (ID.json) and the plot (ID.svg, see --format) of each experiment to this folder",
    )
    reproduce.add_argument(
        "--format",
        action=_SingleUse,
        choices=FORMATS,
        help="format of plots: svg if not given; needs --out",
    )
    reproduce.add_argument("--json", action="store_true", help="print the rows as JSON; without an experiment the list")
    reproduce.add_argument(
        "--accesses",
        action=_SingleUse,
        metavar="N",
        type=_positive,
        help="make simulations smaller, for a quick look: at most N accesses each, or N of the unit in the output "
        "instead; full size if not given",
    )
    reproduce.add_argument(
        "--threads",
        action=_SingleUse,
        metavar="N",
        type=_positive,
        help="parallel simulations, without effect on the numbers; at most the number of processors, "
        "which is the default",
    )
    reproduce.add_argument("--seed", action=_SingleUse, metavar="N", type=_number, default=0, help="random seed")
    return parser


def _add_report(report: argparse.ArgumentParser) -> None:
    """Add the arguments of `cohkit report`."""
    report.add_argument("folder", metavar="DIR", help="the folder with results")
    report.add_argument(
        "--out", action=_SingleUse, metavar="FILE", help="the file to write; report.html in the folder if not given"
    )


def _add_explore(explore: argparse.ArgumentParser) -> None:
    """Add the arguments of `cohkit explore`."""
    explore.add_argument("protocol", metavar="FILE", help="the protocol file, or the name of a shipped protocol")
    explore.add_argument(
        "--system", action=_SingleUse, metavar="NAME", help="a system of the file; the first if not given"
    )
    explore.add_argument(
        "--remotes",
        action=_SingleUse,
        metavar="N",
        type=_positive,
        help="caching agents of a system of this size instead, at most 8",
    )
    explore.add_argument("--lines", action=_SingleUse, metavar="N", type=_positive, help="its cache lines, at most 4")
    explore.add_argument(
        "--port",
        action=_SingleUse,
        metavar="N",
        type=_number,
        default=8421,
        help="8421 if not given; 0 chooses a free port",
    )
    explore.add_argument("--open", action="store_true", help="open it in the browser of this desktop")


class _SingleUse(argparse.Action):
    """Store a value and reject a second one, like the native command; argparse would keep the last one."""

    _given = False

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 -- as argparse calls it
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        """Store the value."""
        if self._given:
            raise argparse.ArgumentError(self, "this option cannot be given twice")
        self._given = True
        setattr(namespace, self.dest, values)


def _number(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) < _MAX_NUMBER:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {_MAX_NUMBER - 1}")


def _positive(text: str) -> int:
    number = _number(text)
    if number == 0:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _reproduce(options: argparse.Namespace, command: str) -> None:
    """Run the named experiments, or list all of them if none is named."""
    if options.experiments:
        conditions = Conditions(seed=options.seed, accesses=options.accesses, threads=options.threads)
        names, as_json = options.experiments, options.json
        if options.format and not options.out:
            raise InputError("`--format` needs `--out`")
        form: Format = options.format or "svg"
        request = ReproduceRequest(
            names, options.published, options.out, form, as_json, options.sensitivity, conditions, command
        )
        reproduce(request)
    elif options.json:
        listed = [{"name": name, "title": item.title} for name, item in EXPERIMENTS.items()]
        sys.stdout.write(json.dumps(listed, indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(_experiment_list())


def _report(options: argparse.Namespace) -> None:
    out = options.out or str(Path(options.folder) / "report.html")
    write(Path(out), report(options.folder).encode())
    for name in omitted_compositions(Path(options.folder)):
        sys.stderr.write(f"note: {name} is a composition and has no tables; the specifications it uses have\n")
    sys.stdout.write(f"report: {out}\n")


def _explore(options: argparse.Namespace) -> None:
    """Serve the explorer until it is interrupted."""
    # Check these limits here, before the compiled module is called with the values.
    for name, maximum in (("remotes", 8), ("lines", 4), ("port", 65535)):
        if (getattr(options, name) or 0) > maximum:
            raise InputError(f"`--{name}` is at most {maximum}")
    explorer = Explorer(options.protocol, system=options.system, remotes=options.remotes, lines=options.lines)

    def say(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    serve(explorer, options.port, browse=options.open, say=say)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    is_sweep = words[:1] == ["sweep"]
    options = argparse.Namespace(published=None) if is_sweep else _parser().parse_args(words)
    try:
        if is_sweep:
            return sweep(words[1:])
        if options.command == "reproduce":
            _reproduce(options, shlex.join(["cohkit", *words]))
        else:
            {"report": _report, "explore": _explore}[options.command](options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe, which is not an error. Prevent another write when the interpreter exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except Error as error:
        # The message of a text error already starts with `error`.
        sys.stderr.write(f"{error}\n" if isinstance(error, TextError) else f"error: {error}\n")
        return COULD_NOT_RUN if isinstance(error, UnavailableError) else BAD_INPUT
    except OSError as error:
        missing = isinstance(error, FileNotFoundError | IsADirectoryError) and (
            is_sweep or options.command in ("report", "explore") or error.filename == options.published
        )
        sys.stderr.write(f"error: {error.filename or 'standard output'}: {error.strerror or error}\n")
        return BAD_INPUT if missing else COULD_NOT_RUN
    return SUCCESS


if __name__ == "__main__":
    sys.exit(main())
