"""The build backend of the Python package: maturin's, with the native command added to the wheel.

maturin builds either a module or a command. It builds the module here; the command is built first and copied to the
folder of the wheel's scripts, so that both have the same sources and profile. The binaries of a wheel are
stripped; their debug information, which profilers and backtraces need, is in `target/wheel-debug`.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

import maturin
from maturin import (
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
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
DEBUG = ROOT / "target" / "wheel-debug"
# maturin requires the folder even if only the metadata is requested.
SCRIPTS.mkdir(parents=True, exist_ok=True)

Settings = Mapping[str, Any] | None


def build_options(settings: Settings, profile: str) -> argparse.Namespace:
    """Return the options of maturin that also apply to the command."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--profile", default=profile)
    parser.add_argument("--target")
    parser.add_argument("--zig", action="store_true")
    parser.add_argument("--compatibility", default="")
    options, _ = parser.parse_known_args(maturin.get_maturin_pep517_args(settings))
    return options


def add_command(options: argparse.Namespace) -> None:
    """Build the command with the profile and target of maturin, and copy it into the data folder."""
    build, target = "build", options.target
    if options.zig:
        # zig links against the C library of the version that the wheel's tag names.
        build, version = "zigbuild", re.fullmatch(r"manylinux_(\d+)_(\d+)", options.compatibility)
        if not (target and version):
            sys.exit("--zig needs --target and --compatibility manylinux_2_NN, which say for which C library")
        target += f".{version[1]}.{version[2]}"
    command = ["cargo", build, "--locked", "--package", "cohkit", "--bin", "cohkit", "--profile", options.profile]
    if target:
        command += ["--target", target]
    command += ["--message-format", "json-render-diagnostics"]
    built = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
    executable = next(message["executable"] for message in messages if message.get("executable"))
    shutil.rmtree(SCRIPTS, ignore_errors=True)
    SCRIPTS.mkdir(parents=True)
    shutil.copy2(executable, SCRIPTS)


def separate_debug_information(wheel: pathlib.Path) -> None:
    """Move debug information and private symbols of a wheel's binaries to separate files."""
    shutil.rmtree(DEBUG, ignore_errors=True)
    DEBUG.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        wheel_command = [sys.executable, "-m", "wheel"]
        subprocess.run([*wheel_command, "unpack", "--dest", folder, wheel], check=True, stdout=subprocess.DEVNULL)
        [root] = pathlib.Path(folder).iterdir()
        for binary in [*root.glob("*.data/scripts/cohkit"), *root.glob("cohkit/*.so")]:
            debug = DEBUG / f"{binary.name}.debug"
            subprocess.run(["objcopy", "--only-keep-debug", binary, debug], check=True)
            subprocess.run(["objcopy", "--strip-unneeded", f"--add-gnu-debuglink={debug}", binary], check=True)
        subprocess.run(
            [*wheel_command, "pack", "--dest-dir", wheel.parent, root], check=True, stdout=subprocess.DEVNULL
        )


def get_requires_for_build_wheel(settings: Settings = None) -> list[str]:
    """Return maturin's requirements, and those of builds with Zig."""
    requires: list[str] = maturin.get_requires_for_build_wheel(settings)
    return [*requires, "ziglang", "cargo-zigbuild"] if build_options(settings, "release").zig else requires


def build_wheel(directory: str, settings: Settings = None, metadata: str | None = None) -> str:
    """Build the wheel with the command in it, and separate its debug information on Linux."""
    add_command(build_options(settings, "release"))
    name: str = maturin.build_wheel(directory, settings, metadata)
    if sys.platform == "linux":
        separate_debug_information(pathlib.Path(directory) / name)
    return name


def build_editable(directory: str, settings: Settings = None, metadata: str | None = None) -> str:
    """Build an editable package with the command, by default in the profile `dev`."""
    add_command(build_options(settings, "dev"))
    name: str = maturin.build_editable(directory, settings, metadata)
    return name


def build_sdist(directory: str, settings: Settings = None) -> str:
    """Build the source distribution."""
    name: str = maturin.build_sdist(directory, settings)
    return name
