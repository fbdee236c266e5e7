"""Search options of systems and Murphi models: each has the effect of the command's option."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import pytest

import cohkit
from cohkit import types

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Command

    from cohkit.search_options import SearchOptions


def without_run(verdict: Any) -> Any:
    """Return a verdict without the entry `run`, which depends on the machine."""
    return {key: value for key, value in verdict.items() if key != "run"}


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ({"symmetry": False}, ["--symmetry", "off"]),
        ({"coverage": True}, ["--coverage"]),
        ({"hash_compaction": True}, ["--hash-compaction"]),
        (
            {"simulate_steps": 3000, "seed": 7, "max_depth": 50},
            ["--random-walks", "3000", "--seed", "7", "--max-depth", "50"],
        ),
        ({"max_states": 500, "threads": 2}, ["--max-states", "500"]),
        ({"disk": True, "checkpoint": "python"}, ["--disk", "--checkpoint", "{}/command"]),
    ],
)
def test_search_options_match_the_command(
    options: SearchOptions, arguments: list[str], cohkit_command: Command, tmp_path: Path
) -> None:
    """Each option gives the command's verdict, for a protocol and for a model."""
    arguments = [argument.format(tmp_path) for argument in arguments]
    if "checkpoint" in options:
        options = {**options, "checkpoint": tmp_path / "python"}
    printed = json.loads(cohkit_command("check", "protocols/msi.coh", "--remotes", 2, *arguments, "--json").stdout)
    verdicts = cohkit.check(cohkit.shipped("msi"), remotes=2, **options)
    assert list(map(without_run, verdicts)) == list(map(without_run, printed))
    # A folder has the checkpoints of one command.
    arguments = [f"{argument}-model" if str(tmp_path) in argument else argument for argument in arguments]
    if "checkpoint" in options:
        options = {**options, "checkpoint": tmp_path / "python-model"}
    [printed] = json.loads(cohkit_command("check", "models/german.m", *arguments, "--json").stdout)
    model = cohkit.check_model("models/german.m", **options)
    assert without_run(model) == without_run(printed)
    for verdict, kind in ((verdicts[0], types.Verdict), (model, types.ModelVerdict)):
        optional = {"bounds", "coverage", "lost_symmetry", "omission_probability", "programs", "undecided_progress"}
        extra = (optional | {"walks"}) - set(verdict)
        assert set(verdict) == set(get_type_hints(kind)) - extra
    assert ("walks" in model) == ("simulate_steps" in options)
    assert ("coverage" in model) == ("coverage" in options)
    if "walks" in model:
        assert set(model["walks"]) == set(get_type_hints(types.RandomWalks))
    if "coverage" in model:
        assert set(model["coverage"]["rules"][0]) == set(get_type_hints(types.RuleCoverage))


@pytest.mark.parametrize(("name", "outcome"), [("write-through", "verified"), ("msi", "undecided")])
def test_verdict_for_any_number_matches_the_command(name: str, outcome: str, cohkit_command: Command) -> None:
    arguments = ["check", f"protocols/{name}.coh", "--remotes", 2, "--any-number", "--json"]
    printed = json.loads(cohkit_command(*arguments).stdout)
    system, any_number = cohkit.check(cohkit.shipped(name), remotes=2, any_number=True)
    assert list(map(without_run, (system, any_number))) == list(map(without_run, printed))
    assert type(system) is types.Verdict
    assert isinstance(any_number, types.AnyNumberVerdict)
    extra = {"bounds", "coverage", "omission_probability", "programs", "undecided_progress", "walks"}
    assert set(any_number) == set(get_type_hints(types.AnyNumberVerdict)) - extra
    decides = outcome == "verified"
    assert any_number.outcome == outcome
    assert (any_number.views is not None, any_number.pairs is not None) == (decides, decides)
    assert (any_number.reason is None, any_number.position is None) == (decides, decides)


def test_verdict_under_fairness_matches_the_command(cohkit_command: Command) -> None:
    arguments = ["check", "protocols/ccix.coh", "--remotes", 2, "--fairness", "weak", "--json"]
    printed = json.loads(cohkit_command(*arguments).stdout)
    system, transactions = cohkit.check("ccix", remotes=2, fairness="weak")
    assert [without_run(system)["outcome"], printed[0]["outcome"]] == ["verified", "verified"]
    assert isinstance(transactions, types.StarvationVerdict)
    assert without_run(transactions) == without_run(printed[1])
    found = transactions.counterexample
    assert found is not None
    assert found.repeats_from is not None
    assert found.steps is not None
    assert 0 <= found.repeats_from < len(found.steps)
    with pytest.raises(cohkit.InputError, match="no fairness `fair`: it is weak or strong"):
        cohkit.check("ccix", fairness="fair")  # type: ignore[arg-type]


@pytest.mark.parametrize("option", [{"any_number": True}, {"fairness": "weak"}])
@pytest.mark.parametrize(
    ("source", "options", "expected_message"),
    [
        ("msi", {"capacity": 3}, "leave out `capacity`"),
        ("msi", {"simulate_steps": 5}, "leave out `simulate_steps`"),
        ("two-level", {}, "applies to one protocol"),
    ],
)
def test_invalid_options_beside_added_verdicts_are_rejected(
    source: str, options: dict[str, Any], expected_message: str, option: dict[str, Any]
) -> None:
    with pytest.raises(cohkit.InputError, match=expected_message):
        cohkit.check(source, **option, **options)


def test_symmetry_reduces_states() -> None:
    msi = cohkit.shipped("msi")
    [orbits], [states] = (cohkit.check(msi, remotes=3, symmetry=symmetry) for symmetry in (True, False))
    assert (orbits["symmetric"], states["symmetric"]) == (True, False)
    assert states["states"] == 24981
    assert states["states"] / 6 <= (orbits["states"] or 0) < states["states"] / 5


def test_dialects_and_kinds_of_deadlock() -> None:
    text = "var x: boolean; startstate x := false end; rule x := true end; rule x := true end;"
    assert cohkit.check_model("a.m", text=text)["counterexample"]
    assert cohkit.check_model("a.m", text=text, deadlock="off")["outcome"] == "verified"
    assert cohkit.check_model("a.m", text=text, deadlock="stuck")["outcome"] == "verified"
    union = "var x: boolean; startstate x := false end; rule x := !x end; cover x;"
    assert cohkit.check_model("a.m", text=union)["outcome"] == "verified"
    with pytest.raises(cohkit.TextError) as error_info:
        cohkit.check_model("a.m", text=union, dialect="cmurphi")
    assert error_info.value.file == "a.m"
    assert set(error_info.value.diagnostics[0]) == set(get_type_hints(types.Diagnostic))
    with pytest.raises(cohkit.InputError, match="no dialect `murphi`"):
        cohkit.check_model("a.m", text=union, dialect="murphi")  # type: ignore[arg-type]
    with pytest.raises(cohkit.InputError, match="no kind of deadlock `none`"):
        cohkit.check_model("a.m", text=union, deadlock="none")  # type: ignore[arg-type]


def test_search_resumes_from_a_checkpoint(tmp_path: Path) -> None:
    msi, checkpoint_folder = cohkit.shipped("msi"), tmp_path / "kept"
    [uninterrupted] = cohkit.check(msi, remotes=3)
    [begun] = cohkit.check(msi, remotes=3, max_states=1000, checkpoint=checkpoint_folder)
    assert begun["reason"] == "max_states"
    with pytest.raises(cohkit.InputError, match="already contains checkpoints"):
        cohkit.check(msi, remotes=3, checkpoint=checkpoint_folder)
    [resumed] = cohkit.check(msi, remotes=3, resume=checkpoint_folder)
    assert without_run(resumed) == without_run(uninterrupted)
    model = cohkit.check_model("models/german.m")
    cohkit.check_model("models/german.m", max_states=1000, checkpoint=tmp_path / "model")
    assert without_run(cohkit.check_model("models/german.m", resume=tmp_path / "model")) == without_run(model)


@pytest.mark.parametrize(
    ("run_invalid", "expected_message"),
    [
        (lambda: cohkit.check("msi", remote=2), "did you mean `remotes`?"),  # type: ignore[call-arg]
        (lambda: cohkit.check("msi", remotes="2"), "`remotes` is 1 to 8, not '2'"),  # type: ignore[arg-type]
        (lambda: cohkit.check("msi", max_states="5"), "`max_states` is a positive number, not '5'"),  # type: ignore[arg-type]
        (lambda: cohkit.shipped("mesii"), "did you mean `mesi`?"),
        (lambda: cohkit.Machine("enzian-dc-ddr")["link.latncy"], "did you mean `link.latency`?"),
        (lambda: cohkit.litmus("SB", protcol="mesi"), "did you mean `protocol`?"),  # type: ignore[call-arg]
        (lambda: cohkit.show(1), "cannot be displayed"),  # type: ignore[arg-type]
        (lambda: cohkit.to_frame(3), "cannot make a frame"),  # type: ignore[arg-type]
        (lambda: cohkit.chart_text({}), "not a message sequence"),
    ],
)
def test_invalid_search_options_are_reported(run_invalid: Callable[[], object], expected_message: str) -> None:
    with pytest.raises(cohkit.InputError) as error:
        run_invalid()
    assert expected_message in str(error.value)


def test_protocol_names_are_accepted_by_all_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    msi = cohkit.shipped("msi")
    # Outside the repository; a file has precedence over a shipped one.
    monkeypatch.chdir(tmp_path)
    assert cohkit.systems("protocols/msi.coh") == cohkit.systems(msi)
    Path("mesi").write_text(msi.text)
    assert cohkit.table("mesi")["rows"] == cohkit.table(msi)["rows"]
    assert cohkit.table("msi") == cohkit.table(msi)
    assert cohkit.systems("msi") == cohkit.systems(msi)
    assert cohkit.construct("msi-policy") == cohkit.construct(cohkit.shipped("msi-policy"))
    assert cohkit.show(msi).text.startswith("msi, caching agents\n")
