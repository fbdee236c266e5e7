"""Compositions of protocols: parsing, checking, simulation and sweeps, with the results of the command."""

from __future__ import annotations

import json
import pickle
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import cohkit
from cohkit.native import write_text
from cohkit.sweeps.points import Point, Texts

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Command

# A device joined with a host, and the files of a composition for it and of one with two levels of caches.
TWO_SPACES = "enzian-dc-bram+enzian-cpu-home"
TWO_SPACES_FILE = "protocols/eci-both.coh"
TWO_LEVELS_FILE = "protocols/two-level.coh"


def without_run(results: list[Any]) -> list[Any]:
    """Return results without the entry `run`, which depends on the machine."""
    return [{name: value for name, value in result.items() if name != "run"} for result in results]


def assert_same_results(results: list[Any], printed: str) -> None:
    """Compare results with the command's output, except for machine-dependent values."""
    assert without_run(json.loads(json.dumps(results))) == without_run(json.loads(printed))


@pytest.fixture
def composition_file(tmp_path: Path) -> Path:
    """Copy the two-level composition and the files it uses, so that tests can change them."""
    for name in ("two-level", "mesi", "mesi-l1"):
        shutil.copy(f"protocols/{name}.coh", tmp_path)
    return tmp_path / "two-level.coh"


def test_composition_lists_spaces_files_and_systems() -> None:
    both = cohkit.composition("eci-both")
    assert (both.name, both.file, both.spaces, both.systems) == ("eci_both", TWO_SPACES_FILE, ["far", "near"], ["both"])
    assert [file for file, _, _ in both.uses] == ["eci.coh", "eci-near.coh"]
    assert both.uses[0][2] == cohkit.shipped("eci").text
    assert both == cohkit.composition(TWO_SPACES_FILE) != cohkit.composition(TWO_LEVELS_FILE)
    assert repr(both) == "<cohkit.Composition eci_both of protocols/eci-both.coh>"


def test_composition_pickles_with_its_files(composition_file: Path) -> None:
    composition = cohkit.composition(composition_file)
    pickled = pickle.dumps(composition)
    for file in list(composition_file.parent.iterdir()):
        file.unlink()
    restored = pickle.loads(pickled)  # noqa: S301 -- our own
    assert restored == composition
    assert hash(restored) == hash(composition)
    [outer, *_] = cohkit.check(restored, max_states=600)
    assert (outer["system"], outer["outcome"]) == ("joint.outer", "verified")


def test_composition_verdicts_match_the_command(cohkit_command: Command) -> None:
    for file in (TWO_SPACES_FILE, TWO_LEVELS_FILE):
        few = cohkit_command("check", file, "--max-states", 3000, "--json")
        assert_same_results(cohkit.check(file, max_states=3000), few.stdout)
    outcomes = [verdict["outcome"] for verdict in cohkit.check("two-level", systems="joint", max_states=3000)]
    assert outcomes == ["verified", "verified", "undecided"]


def test_change_of_a_used_file_changes_the_verdict(composition_file: Path) -> None:
    outer = composition_file.parent / "mesi.coh"
    text = outer.read_text()
    # Fault: a cache acknowledges an invalidation and keeps its copy.
    spoilt = [line for line in text.splitlines() if line.split("|")[0].split() == ["S"] and "| Inv " in line]
    [row] = spoilt
    before, _, state = row.rpartition("|")
    assert state.strip() == "I"
    outer.write_text(text.replace(row, f"{before}| S"))
    [first, *_] = cohkit.check(composition_file, max_states=3000)
    assert (first["outcome"], first["run"]["file"]) == ("violated", str(outer))


def test_composition_simulations_match_the_command(cohkit_command: Command) -> None:
    run_options: dict[str, Any] = {"region": "64KiB", "accesses": 500, "seed": 3}
    options = ("--region", "64KiB", "--accesses", 500, "--seed", 3, "--json", "--protocol")
    for machine, file in (("clusters-4x4", TWO_LEVELS_FILE), (TWO_SPACES, TWO_SPACES_FILE)):
        result = cohkit.simulate(machine, "random-mixed", protocol=file, **run_options)
        assert result["failure"] is None
        assert_same_results([result], f"[{cohkit_command('sim', machine, 'random-mixed', *options, file).stdout}]")


def test_device_and_host_form_a_machine_of_two_spaces(tmp_path: Path) -> None:
    """A host from a file is part of the joined machine, which needs the file no more after it was pickled."""
    device, host = TWO_SPACES.split("+")
    platform_file = tmp_path / "own.toml"
    shutil.copy(f"platforms/{host}.toml", platform_file)
    joined = cohkit.Machine(f"{device}+{platform_file}")
    pickled = pickle.dumps(joined.with_settings({"link.latency": "200ns"}))
    platform_file.unlink()
    restored = pickle.loads(pickled)  # noqa: S301 -- our own
    assert restored["link.latency"] == cohkit.Machine(device).with_settings({"link.latency": "200ns"})["link.latency"]
    assert restored != joined
    result = cohkit.simulate(joined, "random-read", protocol="eci-both", region="64KiB", accesses=100)
    assert result["failure"] is None
    with pytest.raises(cohkit.InputError, match="no platform is named `none`"):
        cohkit.Machine(f"{device}+none")
    with pytest.raises(FileNotFoundError):
        cohkit.Machine(f"{device}+none.toml")


def test_application_runs_on_a_machine_of_two_spaces(cohkit_command: Command) -> None:
    result = cohkit.play(TWO_SPACES, "gather", protocol="eci-both", numbers={"queries": 20})
    completed = cohkit_command(
        "play", TWO_SPACES, "gather", "--protocol", TWO_SPACES_FILE, "--param", "queries=20", "--json"
    )
    assert_same_results([result], f"[{completed.stdout}]")


def test_litmus_tests_run_on_two_cache_levels(cohkit_command: Command) -> None:
    result = cohkit.litmus("SB", protocol="two-level")
    assert_same_results([result], f"{cohkit_command('litmus', 'SB', '--protocol', TWO_LEVELS_FILE, '--json').stdout}")
    assert cohkit.litmus("SB", protocol="two-level", cores="store_buffer", simulate_runs=3)["runs"] == 3


def test_litmus_tests_run_in_clusters_of_different_protocols(cohkit_command: Command) -> None:
    result = cohkit.litmus("MP", protocol="clusters", kinds=["cpu", "gpu"], max_spontaneous_evictions=0)
    assert (result["kinds"], result["cores"], result["model"]) == (["cpu", "gpu"], "of_each_cluster", "compound")
    options = ["--protocol", "protocols/clusters.coh", "--kinds", "cpu,gpu", "--max-spontaneous-evictions", "0"]
    assert_same_results([result], f"{cohkit_command('litmus', 'MP', *options, '--json').stdout}")


@pytest.mark.parametrize(
    ("run_invalid", "expected_message"),
    [
        (lambda: cohkit.litmus("MP", protocol="clusters"), "`kinds` assigns one to each thread, in one of 4 ways"),
        (lambda: cohkit.litmus("MP", protocol="clusters", kinds=["cpu", "cpus"]), "did you mean `cpu`"),
        (lambda: cohkit.composition("two-levels"), "did you mean `two-level`"),
        (lambda: cohkit.check("two-level", systems="join"), "no system is named `join`; did you mean `joint`"),
        (lambda: cohkit.check("two-level", remotes=2), "`remotes` is for one protocol, and protocols/two-level.coh"),
        (lambda: cohkit.check("two-level", capacity=0), "`capacity`"),
        (lambda: cohkit.compose('protocol a\nuse "none.coh" as b\nsystem s { b.home 1 }'), "none.coh"),
        (lambda: cohkit.simulate("enzian-dc-ddr", "random-read", protocol="two-level"), "has one level of caches"),
        (lambda: cohkit.play("enzian-dc-ddr", "gather", protocol="two-level"), "but the specification has two"),
        (lambda: cohkit.litmus("SB", protocol="eci-both"), "a test runs on one address space"),
        (lambda: cohkit.litmus("SB", protocol="two-level", kinds=["l1", "l1"]), "threads on a two-level protocol"),
        (lambda: cohkit.table("two-level"), "cohkit.composition"),
        (lambda: cohkit.simulate("clusters-4x4", "random-read", protocol="two-level", explain=True), "one level"),
    ],
)
def test_invalid_uses_of_a_composition_are_reported(run_invalid: Any, expected_message: str) -> None:
    with pytest.raises((cohkit.Error, FileNotFoundError), match=expected_message.replace("(", r"\(")):
        run_invalid()


def test_sweep_points_contain_all_files_of_a_composition(composition_file: Path, tmp_path: Path) -> None:
    """A point's hash depends on the used files, and a composition with files of other folders can be written to one."""

    def point() -> Point:
        """Return a sweep point that checks the composition with its current files."""
        return Point(
            0, "check", {"protocol": str(composition_file)}, {}, 0, 0, Texts.of({"protocol": str(composition_file)})
        )

    first = point()
    assert pickle.loads(pickle.dumps(first)) == first  # noqa: S301 -- our own
    with (composition_file.parent / "mesi-l1.coh").open("a") as inner:
        inner.write("# another word\n")
    assert first.hash() != point().hash()
    written = tmp_path / "written"
    written.mkdir()
    (tmp_path / "folder").mkdir()
    above = cohkit.compose(
        "\n".join(line.replace('"mesi.coh"', '"../mesi.coh"') for line in composition_file.read_text().splitlines()),
        file=str(tmp_path / "folder/two-level.coh"),
    )
    name = write_text(above, written)
    assert cohkit.composition(written / name).uses[0][2] == above.uses[0][2]
