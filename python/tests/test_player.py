"""Applications from Python: the command's results, clear refusals, and the experiments with them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, get_type_hints

import pytest

import cohkit
from cohkit import types
from cohkit.experiments import EXPERIMENTS, Conditions
from cohkit.published import Published, compare

if TYPE_CHECKING:
    from conftest import Command

SMALL = Conditions(accesses=2000)


def without_run(value: Any) -> Any:
    return {key: item for key, item in value.items() if key != "run"}


def test_results_are_those_of_the_command(cohkit_command: Command) -> None:
    options = ["--with", "contexts=3", "--with", "calls=20", "--seed", 4, "--set", "link.latency=100ns"]
    printed = json.loads(cohkit_command("play", "enzian-dc-ddr", "rpc", *options, "--json").stdout)
    numbers = {"contexts": 3, "calls": 20}
    result = cohkit.play("enzian-dc-ddr", "rpc", numbers=numbers, seed=4, set={"link.latency": "100ns"})
    assert without_run(result) == without_run(printed)
    assert set(result) == set(get_type_hints(types.Play))
    assert result["times_ns"]
    assert set(result["times_ns"]["call"]) == set(get_type_hints(types.Times))
    assert result["counts"] == {"calls": 60}
    assert result["times_ns"]["call"]["distribution"][-1][1] == 60


def test_what_cannot_be_played_is_refused() -> None:
    for numbers, says in [
        ({"thread": 3}, "rpc has no parameter `thread`; it has contexts, payload, calls"),
        ({"contexts": 0}, "contexts must be 1 to 4096, not 0"),
        ({}, "two-line RPC has no end here"),
        ({"calls": 1, "contexts": 4096, "payload": 200}, "uses 1638400 lines, but memory has 1000"),
    ]:
        with pytest.raises(cohkit.InputError) as refused:
            cohkit.play("enzian-dc-bram", "rpc", numbers=numbers, set={"lines": 1000})
        assert says in str(refused.value)
    with pytest.raises(cohkit.InputError, match="there are shared-table, prefetcher, invalidation, rpc"):
        cohkit.play("enzian-dc-bram", "tables", time="1ms")  # type: ignore[arg-type]
    with pytest.raises(cohkit.InputError, match="written by hand"):
        cohkit.play("enzian-dc-bram", "rpc", numbers={"calls": 1}, protocol=cohkit.shipped("msi"))


def rows(name: str) -> dict[str, types.Result]:
    return {row["name"]: row for row in compare(name, EXPERIMENTS[name].run(SMALL), Published.shipped())}


def test_one_clean_invalidate_takes_as_long_as_published() -> None:
    table = rows("cckit-table3")
    known = {name: row for name, row in table.items() if row["published"] is not None}
    assert sorted(known) == ["clean, DC+BRAM, one at a time", "clean, DC+DDR, one at a time"]
    for name, row in known.items():
        assert row["error"] is not None
        assert abs(row["error"]) < 0.05
        assert table[name.replace("one at a time", "as many as accepted")]["ours"] < row["ours"] / 20
    assert {row["use"] for name, row in table.items() if name not in known} == {"prediction"}


def test_contention_costs_and_prefetching_pays() -> None:
    increments = rows("cckit-fig7")
    assert increments["0 %, FPGA"]["ours"] > increments["100 %, FPGA"]["ours"]
    reads = rows("cckit-fig8")
    assert reads["1, with"]["ours"] > reads["1, without"]["ours"]
    assert reads["4, without"]["ours"] > 3 * reads["1, without"]["ours"]


def test_results_along_something_are_drawn_as_lines(tmp_path: Any, cohkit_command: Command) -> None:
    done = cohkit_command("reproduce", "cckit-fig10", "--accesses", 1000, "--out", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    drawn = (tmp_path / "cckit-fig10.svg").read_text()
    for words in ("1 context", "48 contexts", "share of calls (%)", "latency of a call (ns)"):
        assert f"<!-- {words} -->" in drawn
