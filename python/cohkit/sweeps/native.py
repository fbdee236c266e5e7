"""Points of commands that only the native binary has: it is started for each, in a folder with the point's texts."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from cohkit.errors import InputError
from cohkit.native import Text, binary, run_json, write_text
from cohkit.protocols import load_executable, load_protocol


def litmus(options: dict[str, Any], seed: int) -> tuple[list[dict[str, Any]], int]:
    """Run a litmus test on a protocol, or with a memory model alone."""
    seeds = ["--seed", seed] if "simulation_runs" in options else []
    return run_json(["litmus", options["test"], *_flags(options, "test"), *seeds])


def validate_litmus(options: dict[str, Any], _: int) -> None:
    """Check that the test and the protocol exist."""
    test = options["test"]
    _validate_test(Text.of(test) or test)
    if "protocol" in options:
        load_executable(options["protocol"])


def _validate_test(test: str | Text) -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [binary(), "litmus", write_text(test, Path(folder)), "--print"]
        process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if process.returncode:
        raise InputError(process.stderr.strip().removeprefix("error: "))


def lockstep(options: dict[str, Any], seed: int) -> tuple[list[dict[str, Any]], int]:
    """Run one seed of the RTL in lockstep with the controllers."""
    seed_options = ["--seed", seed, "--seeds", 1]
    return run_json(["rtl", "test", options["protocol"], *_flags(options, "protocol"), *seed_options])


def mutants(options: dict[str, Any], _: int) -> tuple[list[dict[str, Any]], int]:
    """Check one or several mutants of a protocol."""
    return run_json(["mutants", options["protocol"], *_flags(options, "protocol"), "--threads", 1])


def validate_protocol(options: dict[str, Any], _: int) -> None:
    """Check that the protocol exists."""
    load_protocol(options["protocol"])


def _flags(options: dict[str, Any], positional: str) -> list[object]:
    pairs = [(name, value) for name, value in options.items() if name != positional]
    return [word for name, value in pairs for word in (f"--{name.replace('_', '-')}", value)]
