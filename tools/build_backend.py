"""The build backend of the Python package: maturin's, with the native command in the wheel besides.

maturin builds either a module or a command. It builds the module here; the command is built first and laid where
maturin takes a wheel's scripts from, so that both come from the same sources with the same profile.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

import maturin
from maturin import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "target" / "wheel" / "scripts"
# maturin wants the folder also when it is asked for no more than the metadata.
SCRIPTS.mkdir(parents=True, exist_ok=True)


def lay_command(settings: Mapping[str, Any] | None, profile: str) -> None:
    """Build the command with the profile and the target that maturin is told to use, and lay it ready."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--profile", default=profile)
    parser.add_argument("--target")
    options, _ = parser.parse_known_args(maturin.get_maturin_pep517_args(settings))
    command = ["cargo", "build", "--locked", "--package", "cohkit", "--bin", "cohkit", "--profile", options.profile]
    if options.target:
        command += ["--target", options.target]
    command += ["--message-format", "json-render-diagnostics"]
    built = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    executable = next(message["executable"] for message in messages if message.get("executable"))
    shutil.rmtree(SCRIPTS, ignore_errors=True)
    SCRIPTS.mkdir(parents=True)
    shutil.copy2(executable, SCRIPTS)


def build_wheel(directory: str, settings: Mapping[str, Any] | None = None, metadata: str | None = None) -> str:
    lay_command(settings, "release")
    return maturin.build_wheel(directory, settings, metadata)


def build_editable(directory: str, settings: Mapping[str, Any] | None = None, metadata: str | None = None) -> str:
    lay_command(settings, "dev")
    return maturin.build_editable(directory, settings, metadata)
