"""Run the independent checker `rumur` on models, and compare its results with their first lines.

Usage: with_rumur.py [--write] MODEL...

The first lines of a model are `-- key: value`; models/README.md says what they mean. Without symmetry reduction `rumur`
gives the verdict, the number of states or the length of the counterexample; with exhaustive symmetry reduction it gives the
number of orbits, for models with one scalarset (for several it is not known to be canonical). `--write` puts what was found
into the first lines instead of comparing.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

# The keys in the order in which they are written.
KEYS = ["verdict", "property", "deadlock", "states", "orbits", "steps", "dialect", "counted by", "slow"]


def header(text: str) -> dict[str, str]:
    """Return the first lines `-- key: value`, up to the first line of another form."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = re.fullmatch(r"-- ([a-z ]+): (.+)", line)
        if match is None:
            break
        found[match[1]] = match[2]
    return found


def explore(model: Path, keys: dict[str, str], symmetry: str) -> tuple[str, int, int, float]:
    """Return verdict, states, rules fired in the counterexample, and processor time in seconds."""
    with tempfile.TemporaryDirectory() as scratch:
        code, program = Path(scratch) / "model.c", Path(scratch) / "model"
        options = ["--quiet", "--threads", "1", "--symmetry-reduction", symmetry, "--output", str(code)]
        if "deadlock" in keys:
            options += ["--deadlock-detection", keys["deadlock"]]
        subprocess.run(["rumur", *options, str(model)], check=True)
        compiler = ["cc", "-std=c11", "-O2", "-march=native", "-w", "-o", str(program), str(code), "-lpthread"]
        if subprocess.run(compiler, capture_output=True).returncode != 0:
            subprocess.run([*compiler, "-mcx16", "-latomic"], check=True)
        timed = ["bash", "-c", 'TIMEFORMAT="%U"; time "$0"', str(program)]
        run = subprocess.run(timed, capture_output=True, text=True, errors="replace")
    counted = re.findall(r"(\d+) states, \d+ rules fired", run.stdout)
    if not counted:
        raise SystemExit(f"{model}: rumur's program said: {run.stdout}{run.stderr}")
    steps = len(re.findall(r"^Rule .*fired\.$", run.stdout, re.MULTILINE))
    if run.returncode == 0:
        verdict = "verified"
    else:
        said = re.findall(r"error trace for the error:\s*\n\s*(.+)", run.stdout)
        verdict = f"violated ({said[0].strip() if said else 'no counterexample'})"
    return verdict, int(counted[-1]), steps, float(run.stderr.split()[-1])


def examine(model: Path) -> tuple[dict[str, str], str]:
    """Return the first lines as they should be, and a summary of the run."""
    keys = header(model.read_text())
    verdict, states, steps, seconds = explore(model, keys, "off")
    now = {key: value for key, value in keys.items() if key not in ("states", "steps", "slow", "counted by")}
    now["verdict"] = verdict.split()[0]
    now["counted by"] = "rumur"
    # Covers and liveness are judged when everything is explored, so nothing ends the search before.
    explored = now["verdict"] == "verified" or now.get("property", "").startswith(("cover", "liveness"))
    if explored:
        now["states"] = str(states)
        named = set(re.findall(r"(\w+) *: *scalarset", model.read_text()))
        if len(named) == 1:
            now["orbits"] = str(explore(model, keys, "exhaustive")[1])
    else:
        now["steps"] = str(steps)
    if seconds > 20:
        now["slow"] = "yes"
    return now, f"{verdict}, {states} states, {seconds} s"


def main() -> int:
    arguments = sys.argv[1:]
    write = "--write" in arguments
    failures = checked = 0
    for name in arguments:
        if name == "--write":
            continue
        model = Path(name)
        text = model.read_text()
        before = header(text)
        if before["dialect"] == "cmurphi":
            continue
        checked += 1
        now, note = examine(model)
        differing = [key for key in now if key != "slow" and before.get(key) != now[key]]
        print(f"{model.name}: {note}", flush=True)
        if write:
            rest = text.splitlines()[len(before) :]
            first = [f"-- {key}: {now[key]}" for key in KEYS if key in now]
            model.write_text("\n".join(first + rest) + "\n")
        elif differing:
            failures += 1
            for key in differing:
                print(f"  {key}: {before.get(key)}, but rumur finds {now[key]}")
    print(f"{checked} models, {failures} disagree")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
