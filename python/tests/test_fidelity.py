"""Published results beside blind predictions, and the decision whether a throughput is steady."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import cohkit
from cohkit import fidelity, reasons
from cohkit import fingerprint as fingerprint_module
from cohkit.__main__ import main
from cohkit.directions import CROSSOVERS, Direction, directions, without_numbers_of_missing_crossovers
from cohkit.experiments import EXPERIMENTS, Conditions, cckit_fig6
from cohkit.experiments.derived import DERIVED, derive
from cohkit.experiments.experiment import Point, PointExperiment
from cohkit.fingerprint import (
    ACCESSES,
    SMALL_CACHES,
    affected,
    code_of,
    differences,
    fingerprint,
    is_older,
    modules_of,
    numbers_of,
    small_caches,
    statements,
    without_origins,
    words_of,
)
from cohkit.published import Measurement, Published, compare
from cohkit.units import quantity

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Predictions of commit 608afff, made before the published numbers were known. Never change this list.
BLIND_PREDICTIONS = {
    "enzian.throughput.llc_ddr.sequential_read": "17.2229GiB/s",
    "enzian.throughput.llc_ddr.random_read": "17.4947GiB/s",
    "enzian.throughput.llc_ddr.sequential_write": "16.5097GiB/s",
    "enzian.throughput.llc_ddr.random_write": "16.5489GiB/s",
    "enzian.throughput.dc_ddr.sequential_read": "18.4458GiB/s",
    "enzian.throughput.dc_ddr.random_read": "18.5532GiB/s",
    "enzian.throughput.dc_ddr.sequential_write": "11.9553GiB/s",
    "enzian.throughput.dc_ddr.random_write": "11.6267GiB/s",
    "enzian.throughput.dc_bram.sequential_read": "18.4461GiB/s",
    "enzian.throughput.dc_bram.random_read": "18.7362GiB/s",
    "enzian.throughput.dc_bram.sequential_write": "17.6992GiB/s",
    "enzian.throughput.dc_bram.random_write": "17.7249GiB/s",
    "enzian.shared_table.fpga.0": "20.8333M/s",
    "enzian.shared_table.fpga.100": "2.1778M/s",
    "enzian.shared_table.cpu.0": "20.8333M/s",
    "enzian.shared_table.cpu.100": "2.46425M/s",
    "enzian.prefetcher.without.best": "1.57921GiB/s",
    "enzian.prefetcher.with.best": "1.83296GiB/s",
    "enzian.invalidation.dc_ddr.clean.1024": "250.861M/s",
    "enzian.invalidation.dc_ddr.dirty.1024": "158.738M/s",
    "enzian.invalidation.dc_ddr.not_held.1024": "661.893M/s",
    "enzian.invalidation.dc_bram.clean.1024": "250.861M/s",
    "enzian.invalidation.dc_bram.dirty.1024": "158.94M/s",
    "enzian.invalidation.dc_bram.not_held.1024": "661.893M/s",
    "enzian.view.read.1000.best": "33.399GiB/s",
    "enzian.rpc.1.50": "1003.39ns",
    "enzian.rpc_payload.throughput.lines.best": "259.387MiB/s",
}

# Numbers among the published results.
PUBLISHED = {
    "enzian.shared_table.fpga.0": "45.5M/s",
    "enzian.shared_table.fpga.100": "2.5M/s",
    "enzian.shared_table.cpu.0": "41M/s",
    "enzian.shared_table.cpu.100": "5M/s",
    "enzian.prefetcher.without.best": "7.8GiB/s",
    "enzian.prefetcher.with.best": "17.4GiB/s",
    "enzian.invalidation.dc_ddr.clean.1024": "230M/s",
    "enzian.invalidation.dc_bram.clean.1024": "181M/s",
    "enzian.view.read.1000.best": "19.5GiB/s",
    "enzian.rpc.1.50": "930ns",
    "enzian.rpc_payload.throughput.lines.best": "200MiB/s",
}


# Results with a blind value to which a quantity was fitted or chosen later: the size of an entry of CORD's tables, and
# the number of channels of a copy engine.
FITTED_LATER = ("cord.chip.", "proxics.bulk.interleaved_over_synchronous.")


def provenance_beside_blind(key: str) -> str:
    return "fitted" if key.startswith(FITTED_LATER) else "known"


def test_blind_predictions_never_change() -> None:
    published = Published.shipped()
    about = published._entries  # noqa: SLF001 -- all entries of the file
    blind_values = {key: value["blind"] for key, (value, _) in about.items() if "blind" in value}
    assert {key: value for key, value in blind_values.items() if key.startswith("enzian.")} == BLIND_PREDICTIONS
    for key, text in BLIND_PREDICTIONS.items():
        blind = quantity(text, key=key)
        assert published.blind(key, unit=blind.unit) == blind.value
        assert published.provenance(key) == provenance_beside_blind(key)
        published_value = published.value(key, unit=blind.unit)
        assert published_value == (quantity(PUBLISHED[key], key=key).value if key in PUBLISHED else None)
        assert key in PUBLISHED or published.claim(key)


# Digest of the predictions of commit d868299, made before the results of ECI, CCIX, CORD and Proxics were known. Never
# change it.
BLIND_RECORD = "e381b5d18270a6129cc644113ad4036fec02c0dfddca6cb70c2602e49d06723e"


def test_blind_values_of_other_systems_are_the_recorded_ones(root: Path) -> None:
    text = (root / "records/blind.jsonl").read_bytes()
    assert hashlib.sha256(text).hexdigest() == BLIND_RECORD
    records = [json.loads(line) for line in text.splitlines()]
    assert {record["commit"][:7] for record in records} == {"d868299"}
    recorded = {key: value for record in records for key, value in record["result"].items()}
    published = Published.shipped()
    about = published._entries  # noqa: SLF001 -- all entries of the file
    # Numbers derived later follow from the recorded rows.
    for name in DERIVED:
        rows = [Measurement("", value, unit, key) for key, (value, unit) in recorded.items()]
        recorded = {row.key: [row.value, row.unit] for row in derive(name, rows)} | recorded
    keys = [key for key, (value, _) in about.items() if "blind" in value and key not in BLIND_PREDICTIONS]
    assert len(keys) > 100
    absent = [key for key in keys if published.is_blind_absence(key)]
    assert absent == [f"ccix_exp1.crossover.latency.reads.{card}" for card in ("u280", "vck5000")]
    for key in absent:
        assert published.blind(key, unit="B") is None
        assert key not in recorded
        card, dma = (recorded[f"ccix_exp1.latency.reads.{side}.32768"] for side in (key.rpartition(".")[2], "dma"))
        assert card[0] == pytest.approx(3301.6, abs=0.05)
        assert dma[0] == pytest.approx(3945.1, abs=0.05)
    for key in set(keys) - set(absent):
        value, unit = recorded[key]
        assert published.blind(key, unit=unit) == pytest.approx(value, rel=1e-9), key
        assert published.provenance(key) == provenance_beside_blind(key)


def test_experiments_without_published_results_exist(root: Path) -> None:
    assert set(fidelity.UNPUBLISHED) < set(EXPERIMENTS)
    assert not set(fidelity.UNPUBLISHED) & set(fidelity.SECTIONS)
    published = Published.shipped()
    records = (json.loads(line) for line in (root / "records/blind.jsonl").read_text().splitlines())
    # Keys of their numbers at the commit of the blind predictions.
    for record in records:
        name = record["command"].removeprefix("cohkit reproduce ").removesuffix(" --json")
        if name in fidelity.UNPUBLISHED:
            for key, (_, unit) in record["result"].items():
                assert published.value(key, unit=unit) is None, key
                assert published.claim(key) is None, key


def test_each_row_states_its_provenance() -> None:
    published = Published.shipped()
    uses = {
        "enzian.read_latency.dc_ddr.random": "fitted",
        "enzian.clean_invalidate.latency.dc_ddr": "fitted",
        "enzian.state_machine.states": "known",
        "enzian.throughput.dc_bram.sequential_read": "known",
        "enzian.throughput.dc_bram.random_read": "known",
        # Only the blind value is a prediction: our present number was computed after the published one was known.
        "enzian.rpc.1.50": "known",
        # Published numbers that are kept in a separate file.
        "ccix.lock_table.rate.coherent.host.1": "predicted blind",
    }
    units = {"state_machine": "count", "throughput": "GiB/s"}
    measurements = [Measurement(key, 1, units.get(key.split(".")[1], "ns"), key) for key in uses]
    rows = compare("mine", measurements, published)
    assert {row["key"]: row["use"] for row in rows} == uses


def test_orders_and_bounds_are_compared_by_ratio() -> None:
    """A published relation or bound is compared by the ratio to the other number; invalid relations are errors."""
    text = """
[x]
base = { says = "a bar without a number", blind = "2GiB/s" }
above = { says = "slightly above", above = "x.base", blind = "1GiB/s" }
below = { says = "far below", below = "x.base", blind = "1GiB/s" }
like = { says = "like it", like = "x.base", blind = "3GiB/s" }
most = { says = "at most 3 GiB/s", at_most = "3GiB/s", blind = "4GiB/s" }
least = { at_least = "2GiB/s", blind = "1GiB/s" }
range = { at_least = "2GiB/s", at_most = "4GiB/s", blind = "5GiB/s" }
"""
    values = {"base": 4, "above": 5, "below": 5, "like": 4, "most": 3, "least": 4, "range": 3}
    measurements = [Measurement(name, value, "GiB/s", f"x.{name}") for name, value in values.items()]
    rows = {row["name"]: row for row in compare("mine", measurements, Published(text, file="x.toml"))}
    assert {name: (row["ratio"], row["holds"]) for name, row in rows.items()} == {
        "base": (None, None),
        "above": (1.25, True),
        "below": (1.25, False),
        "like": (1, None),
        "most": (1, True),
        "least": (2, True),
        "range": (1.5, True),
    }
    assert {name: (row["blind_ratio"], row["blind_holds"]) for name, row in rows.items()} == {
        "base": (None, None),
        "above": (0.5, False),
        "below": (0.5, True),
        "like": (1.5, None),
        "most": (1.333333333, False),
        "least": (0.5, False),
        "range": (1.25, False),
    }
    assert [rows[name]["says"] for name in ("least", "range")] == [
        "at least 2GiB/s",
        "at least 2GiB/s and at most 4GiB/s",
    ]
    assert [(rows[name]["at_least"], rows[name]["at_most"]) for name in ("least", "range")] == [(2, None), (2, 4)]
    for invalid_entry, expected_message in (
        ('a = { blind = "1ns", bilnd = "2ns" }', "x.a: a result has no `bilnd`; did you mean `blind`? it has above, "),
        ('a = { says = "b", below = "x.b", above = "x.c" }', "x.a is in two relations, above and below"),
        (
            'a = { says = "b", below = "x.b", at_least = 3, at_most = 4 }',
            "two relations, below and at_least and at_most",
        ),
        ("a = { says = 3 }", "x.a.says: 3 is no text"),
        ('a = { says = "b", use = "fit" }', "x.a.use: 'fit' is neither calibration nor prediction"),
    ):
        with pytest.raises(cohkit.InputError) as error_info:
            Published(f"[x]\n{invalid_entry}", file="wrong.toml")
        assert str(error_info.value).startswith("wrong.toml: ")
        assert expected_message in str(error_info.value)


def test_fidelity_page_matches_the_last_record(root: Path) -> None:
    made = fidelity.page_of(root / "records/fidelity.jsonl", Published.shipped())
    assert (root / "docs" / "fidelity.md").read_text() == made, COMMANDS.splitlines()[-1]
    assert "662 million is no mere error" in made


COMMANDS = """\
tools/record fidelity --seed 0 -- .venv/bin/python -m cohkit.fidelity --run
.venv/bin/python -m cohkit.fidelity records/fidelity.jsonl > docs/fidelity.md"""
"""Commands that make a new record, and the page."""


@pytest.mark.needs("riscv-gcc")
def test_last_record_is_as_new_as_the_model(root: Path) -> None:
    """A change of a number that experiments use, or of the simulator's results, requires a new record and page.

    A record from before the fingerprint cannot be compared; its page states so.
    """
    result = fidelity.last_record(root / "records/fidelity.jsonl")["result"]
    page = (root / "docs/fidelity.md").read_text()
    if isinstance(result, list):
        assert fidelity.UNKNOWN_AGE in page, f"make a new record:\n{COMMANDS}"
        return
    assert fidelity.AS_NEW_AS_THE_MODEL in page
    assert {row["key"] for row in result["rows"]} >= BLIND_PREDICTIONS.keys()
    changed = differences(result["fingerprint"], fingerprint())
    text = "\n".join(changed)
    assert not changed, f"docs/fidelity.md is older than the model; make a new record:\n{COMMANDS}\nChanged:\n{text}"


def test_each_failed_relation_names_the_missing_fact(root: Path) -> None:
    page = fidelity.page_of(root / "records/fidelity.jsonl", Published.shipped())
    section = page.split("## Relations that do not hold")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith(("| c", "| e", "| p"))]
    # Crossovers of two cards have no number, as ours do not cross; their section has a row for each.
    assert sum("ahead at the largest size" in line for line in lines) == 2
    wrong = sum(page.count(f"{kind} wrong") for kind in ("order", "bound", "direction", "crossover"))
    assert len(lines) == wrong > 40
    for line in lines:
        fact = line.split("|")[-2].strip()
        assert is_one_of(fact, reasons.MISSING_FACTS), line


def test_each_large_error_has_a_reason(root: Path) -> None:
    page = fidelity.page_of(root / "records/fidelity.jsonl", Published.shipped())
    section = page.split("## Numbers off by more than 25 %")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith(("| c", "| e", "| p", "| r"))]
    assert len(lines) == page.count("| off by more than 25 %") > 30
    for line in lines:
        assert is_one_of(line.split("|")[-2].strip(), reasons.DEVIATIONS), line


def is_one_of(text: str, reasons: Mapping[str, str]) -> bool:
    """Return whether a text is one of these reasons, with any of our numbers in it."""
    return any(re.fullmatch(re.sub(r"\\{.*?\\}", ".+", re.escape(reason)), text) for reason in reasons.values())


def test_each_reason_is_needed(root: Path) -> None:
    """A reason whose rows hold by now, or whose key no row has, is removed when the record is renewed."""
    record = fidelity.last_record(root / "records/fidelity.jsonl")
    searches = fidelity.last_searches(root / "records/sensitivity.jsonl")
    assert not fidelity.unused_reasons(record, Published.shipped(), searches)


def test_unneeded_reason_is_found(root: Path) -> None:
    """A record in which a failed bound holds does not need its reason."""
    record = fidelity.last_record(root / "records/fidelity.jsonl")
    published = Published.shipped()
    [row] = [row for row in record["result"]["rows"] if row["key"] == "proxics.pipes.lines_over_largest.8"]
    row["ours"] = 80.0
    assert "proxics.pipes.lines_over_largest" not in fidelity.unused_reasons(record, published)
    row["ours"] = 95.0
    assert "proxics.pipes.lines_over_largest" in fidelity.unused_reasons(record, published)


def test_reasons_have_the_numbers_of_the_record() -> None:
    published = Published('[x]\nsource = "a"\nours = "4ns"\n[sources]\na = "an article"\n', file="mine.toml")
    rows = compare("mine", [Measurement("ours", 12.5, "ns", "x.ours")], published)
    assert fidelity._with_numbers("ours takes {x.ours}, not 4 ns", rows) == "ours takes 12.5 ns, not 4 ns"  # noqa: SLF001
    with pytest.raises(ValueError, match=r"names x\.other, which the record lacks"):
        fidelity._with_numbers("ours takes {x.other}", rows)  # noqa: SLF001


def judged(values: dict[str, float], unit: str) -> dict[str, Direction]:
    """Return the directions of rows with these values, by key."""
    published = Published.shipped()
    rows = compare("mine", [Measurement(key, value, unit, key) for key, value in values.items()], published)
    found = directions(rows, published)
    return {key: found[key] for key in values if key in found}


def test_direction_of_a_ratio_is_the_side_of_one() -> None:
    """An error of -30 % may be on the other side; 100 has no direction."""
    key = "proxics.sum.core_over_host.128"  # Published: 139. Blind: 82.65.
    for value, holds in ((96.5, False), (100.0, False), (101.0, True), (500.0, True)):
        direction = judged({key: value}, "percent")[key]
        assert (direction.holds, direction.blind_holds) == (holds, False)
        assert direction.verdict == f"direction {'right' if holds else 'wrong'}"
    key = "ccix_exp1.throughput_over_dma.reads.u280.32768"  # Published: 87.
    assert [judged({key: value}, "percent")[key].holds for value in (99.0, 101.0)] == [True, False]
    assert judged({"proxics.uts.local_over_one_core_beside.T1L": 205.0}, "percent") == {}


def test_direction_of_a_pair_is_the_order_of_the_numbers() -> None:
    better, worse = "enzian.prefetcher.with.best", "enzian.prefetcher.without.best"
    for value, holds in ((9.0, True), (8.0, False), (8.5001, False), (8.52, True)):
        found = judged({better: value, worse: 8.5}, "GiB/s")
        # The blind values are those of other numbers of threads.
        assert {key: (one.holds, one.blind_holds) for key, one in found.items()} == {better: (holds, None)}
    assert judged({better: 9.0}, "GiB/s") == {}
    second, first = "enzian.shared_table.cpu.100", "enzian.shared_table.fpga.100"
    assert judged({second: 5.0, first: 2.5}, "M/s")[second].blind_holds is True


def test_crossover_needs_curves_crossing_near_published_size() -> None:
    copy, reads = "proxics.bulk.crossover.copy", "eci_link.crossover.reads.one_link"
    cases = {
        copy: ((2048.0, False, "the core"), (4095.0, False, None), (4096.0, True, None), (16384.0, True, None)),
        reads: ((128.0, False, "DMA"), (1023.0, False, None), (2793.0, True, None), (4097.0, False, None)),
    }
    for key, values in cases.items():
        for value, holds, ahead in values:
            direction = judged({key: value}, "B")[key]
            assert (direction.holds, direction.ahead) == (holds, ahead), (key, value)
            # The blind values are the smallest sizes.
            assert (direction.blind_holds, direction.blind_ahead) == (False, values[0][2])
            if ahead:
                assert direction.verdict == "crossover wrong: one side ahead at every size"
    published = Published.shipped()
    rows = compare("mine", [Measurement(copy, 2048.0, "B", copy), Measurement(reads, 2793.0, "B", reads)], published)
    found = directions(rows, published)
    corrected = without_numbers_of_missing_crossovers(rows, found)
    assert [(row["error"] is None, row["blind_error"] is None) for row in corrected] == [(True, True), (False, True)]
    # Without a row, our curves do not cross.
    absent = found["ccix_exp1.crossover.latency.reads.u280"]
    assert (absent.holds, absent.ours) == (False, "none: the card ahead at the largest size")
    assert (absent.blind_holds, absent.blind_ahead) == (False, "the card")
    assert absent.verdict == "crossover wrong: one side ahead at the largest size"
    # A number of ours does not change the judgement of the blind prediction that there is none.
    key = "ccix_exp1.crossover.latency.reads.u280"
    present = judged({key: 4096.0}, "B")[key]
    assert (present.holds, present.blind_holds, present.blind_ahead) == (True, False, "the card")


@pytest.mark.parametrize(
    ("key", "first", "second"),
    [
        ("eci_link.crossover.reads.one_link", "eci_link.throughput.reads.one_link", "eci_link.throughput.reads.dma"),
        ("eci_link.crossover.writes.one_link", "eci_link.throughput.writes.one_link", "eci_link.throughput.writes.dma"),
        ("proxics.bulk.crossover.copy", "proxics.bulk.copy.host.far_with_hints", "proxics.bulk.copy.core"),
    ],
)
def test_blind_curves_without_a_crossover_do_not_cross(root: Path, key: str, first: str, second: str) -> None:
    """In the blind record, one side is ahead at every size."""
    records = [json.loads(line) for line in (root / "records/blind.jsonl").read_text().splitlines()]
    recorded = {name: value for record in records for name, (value, _) in record["result"].items()}
    sizes = next(curves.sizes for start, curves in CROSSOVERS.items() if key.startswith(start))
    assert all(recorded[f"{second}.{size}"] > recorded[f"{first}.{size}"] for size in sizes)
    assert judged({key: 2.0 * sizes[0]}, "B")[key].blind_ahead is not None


def test_update_keeps_the_rows_that_no_change_concerns(root: Path) -> None:
    earlier = fidelity.last_record(root / "records/fidelity.jsonl")
    before = earlier["result"]
    inputs = before["fingerprint"]["inputs"]
    cord = [name for name in ACCESSES if name.startswith("cord-")]

    def present(changed: str) -> dict[str, Any]:
        fingerprint = before["fingerprint"] | {"inputs": inputs | {changed: "other"}}
        rows = [row | {"ours": 1.0} for row in before["rows"] if row["experiment"] in cord]
        return {"rows": rows, "fingerprint": fingerprint}

    result = fidelity.updated(earlier, present("ordering/cord.coh"), cord)
    assert [row["key"] for row in result["rows"]] == [row["key"] for row in before["rows"]]
    for old, new in zip(before["rows"], result["rows"], strict=True):
        assert new["ours"] == (1.0 if old["experiment"] in cord else old["ours"])
    assert result["earlier"].keys() == ACCESSES.keys() - cord
    text = fidelity.page(earlier | {"commit": "a" * 40, "result": result}, Published.shipped())
    for commit in set(result["earlier"].values()):
        assert f"by commit {commit[:7]}, as their inputs and small runs are unchanged" in text
    # Fault: the earlier record has a part of the experiments, or no fingerprint.
    part = before | {"rows": [row for row in before["rows"] if row["experiment"] != "eci-home"]}
    with pytest.raises(ValueError, match="lacks these experiments: eci-home"):
        fidelity.updated(earlier | {"result": part}, present("ordering/cord.coh"), cord)
    with pytest.raises(ValueError, match="has no fingerprint"):
        fidelity.updated(earlier | {"result": before["rows"]}, present("ordering/cord.coh"), cord)
    # Fault: an experiment that a change concerns is not run.
    for changed, missing in (
        ("nearmemory/pipe.h", "proxics-pipes"),
        ("platforms/enzian-dc-ddr.toml", "cckit-fig6"),
        ("ordering/cord.coh", "cord-fig2"),
    ):
        with pytest.raises(ValueError, match=f"affects these experiments too: .*{missing}"):
            fidelity.updated(earlier, present(changed), [name for name in cord if name != missing])


def test_every_published_experiment_has_a_fingerprint() -> None:
    recorded = [name for name in EXPERIMENTS if name not in fidelity.UNPUBLISHED]
    assert sorted(ACCESSES) == sorted(recorded)


def test_fingerprint_follows_numbers_and_not_comments() -> None:
    source = '"""Text of 8 pages."""\nLINES = 16384  # of 128 B\nREGION = "4MiB"\nlabel = f"{LINES} of 3"\n'
    numbers = numbers_of(source)
    assert numbers == ["16384", "4MiB"]
    # Comments, texts and layout.
    assert numbers_of(source.replace("8 pages", "9 pages").replace("128 B", "64 B").replace(" = ", "=")) == numbers
    assert numbers_of(source.replace("16384", "0x4000")) == numbers
    for changed in (source.replace("16384", "16385"), source.replace("4MiB", "4KiB"), source + "ROWS = 1\n"):
        assert numbers_of(changed) != numbers
    machine = {"host": {"cycle": {"value": "500ps", "range": ["1ps"], "origin": "assumed: 2 GHz"}}, "name": "x"}
    assert without_origins(machine) == {"host": {"cycle": {"value": "500ps", "range": ["1ps"]}}, "name": "x"}
    code = 'int lines = 8; // of 128 B\nputs("a // b"); /* two\nlines */'
    assert code_of(code) == code_of(code.replace("128", "64").replace("\n", "  \n "))
    assert len({tuple(code_of(one)) for one in (code, code.replace("8;", "9;"), code.replace("a // b", "a // c"))}) == 3
    table = {"dram": {"scheduler": "fr-fcfs", "t_cl": {"value": "1ns", "origin": "a table"}}}
    assert words_of(table) == ["dram.scheduler = fr-fcfs"]
    assert statements("a { b }  # of c\n") == statements("# other\na {\n  b }") == ["a", "{", "b", "}"]


def test_changed_simulator_and_changed_inputs_are_named() -> None:
    recorded = fingerprint(["eci-home", "ccix-exp3"])
    assert recorded == json.loads(json.dumps(recorded)) == fingerprint(["eci-home", "ccix-exp3"])
    inputs = {"platforms/n1sdp-u280.toml", "protocols/ccix.coh", "nearmemory/host.h", "nearmemory/programs/uts.c"}
    assert inputs < recorded["inputs"].keys()
    assert differences(recorded, recorded) == []
    changed = json.loads(json.dumps(recorded))
    changed["inputs"]["platforms/n1sdp-u280.toml"] = "0"
    changed["values"]["eci-home"]["enzian.state_machine.states"] = 1
    del changed["values"]["ccix-exp3"]["ccix.local_hit.u280.read"]
    found = differences(recorded, changed)
    assert found[0] == "platforms/n1sdp-u280.toml: other numbers"
    assert found[1].startswith("eci-home: 1 numbers of small runs, such as enzian.state_machine.states: ")
    assert found[2].startswith("ccix-exp3: 1 numbers of small runs, such as ccix.local_hit.u280.read: ")
    assert len(found) == 3


def test_numbers_of_a_module_concern_the_experiments_that_use_it() -> None:
    before = {"inputs": {"python/cohkit/experiments/steady.py": "0"}, "values": {}}
    concerned = affected(before, {"inputs": {"python/cohkit/experiments/steady.py": "1"}, "values": {}})
    assert {"cckit-fig6", "cckit-fig8", "eci-link"} < set(concerned)
    assert not {"cckit-table2", "proxics-sum", "cord-fig2"} & set(concerned)
    assert modules_of("proxics-uts") > {"proxics_uts.py", "programs.py", "derived.py"}
    # Derived numbers of `proxics-uts` need no module of `ccix-exp1`, which `derived.py` imports.
    assert not {"ccix.py", "eci_link.py"} & modules_of("proxics-uts")


def test_modules_are_imported_in_either_form() -> None:
    forms: tuple[tuple[str, list[str]], ...] = (
        ("from cohkit.experiments.steady import is_even", ["steady"]),
        ("from cohkit.experiments import steady, plays", ["steady", "plays"]),
        ("from cohkit.experiments import Conditions", []),
        ("from cohkit.published import Published", []),
    )
    for source, modules in forms:
        assert fingerprint_module._imports(source) == modules  # noqa: SLF001


def test_page_states_which_searches_are_old() -> None:
    """A search has a fingerprint of its own experiment, and the record that of all."""
    present = fingerprint(["eci-home", "ccix-exp3"])
    own = json.loads(json.dumps(fingerprint(["ccix-exp3"])))
    assert not is_older("ccix-exp3", own, present)
    old = own | {"inputs": own["inputs"] | {"platforms/n1sdp-u280.toml": "0"}}
    assert is_older("ccix-exp3", old, present)
    moved = own | {"values": {name: dict.fromkeys(values, 0.0) for name, values in own["values"].items()}}
    assert is_older("ccix-exp3", moved, present)
    age = fidelity._age_of_searches  # noqa: SLF001
    assert age({"ccix-exp3": {"fingerprint": own}}, present) == "No later change affects these searches."
    text = age({"ccix-exp3": {"fingerprint": old}, "cckit-fig7": {}}, present)
    assert text == (
        "A later change may affect the searches of: `ccix-exp3`.\nSearches without a fingerprint: `cckit-fig7`."
    )


def test_small_caches_evict_in_small_runs() -> None:
    """A small run accesses fewer lines than the caches have; the numbers with small caches depend on evictions too."""
    values = fingerprint(["cckit-fig6"])["values"]
    whole, small = values["cckit-fig6"], values["cckit-fig6, small caches"]
    assert whole.keys() == small.keys()
    writes = [key for key in whole if key.endswith("_write")]
    assert len(writes) == 6
    # The writes of a configuration may be limited by its link alone.
    assert sum(small[key] != whole[key] for key in writes) >= 4
    assert small_caches(["enzian-dc-ddr"]) == {"enzian-dc-ddr:cache.sets": "64"}
    assert set(SMALL_CACHES) < ACCESSES.keys()


def test_platform_quantity_changes_the_numbers_of_small_runs() -> None:
    """A fault of the simulator has the same effect as another value of a quantity."""
    experiment, published = EXPERIMENTS["ccix-exp3"], Published.shipped()
    conditions = Conditions(accesses=ACCESSES["ccix-exp3"], keys=published.keys())
    before = {row.key: row.value for row in experiment.run(conditions)}
    settings = {"n1sdp-u280:agents.device.cache.hit_latency": "81ns"}
    after = {row.key: row.value for row in experiment.run(conditions._replace(settings=settings))}
    assert {key for key, value in after.items() if value != before[key]} == {"ccix.local_hit.u280.read"}


def test_processes_do_not_change_recorded_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    names, conditions = ["eci-home", "ccix-exp3", "cord-table3"], Conditions(accesses=500)
    rows = fidelity.run(conditions, names)
    published = Published.shipped()
    expected = [
        {"experiment": name, "key": ours.key, "ours": ours.value}
        for name in names
        for ours in EXPERIMENTS[name].run(conditions)
        if published.claim(ours.key) or published.value(ours.key, unit=ours.unit) is not None
    ]
    assert [{key: row[key] for key in ("experiment", "key", "ours")} for row in rows] == expected
    assert capsys.readouterr().err.splitlines()[-1].startswith("3 of 3: ")


def test_page_has_the_last_search_of_each_experiment(tmp_path: Path) -> None:
    file = tmp_path / "sensitivity.jsonl"
    records = [
        {"commit": "a", "result": {"cckit-fig8": 1}},
        {"commit": "b", "result": {"eci-link": 2, "cckit-fig8": 3}},
        {"commit": "c", "result": {"cckit-fig8": 4}},
    ]
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    assert fidelity.last_searches(file) == {
        "commits": {"cckit-fig8": "c", "eci-link": "b"},
        "result": {"cckit-fig8": 4, "eci-link": 2},
    }


def test_page_names_values_that_no_setting_meets() -> None:
    """The page has a verdict for each row, and lists the faults of the model's structure with their reasons."""
    key = "cord.chip"
    values = {f"{key}.area.core": 0.003, f"{key}.power.core": 9.3, f"{key}.energy.8 entries": 0.02}
    units = {"area": "mm2", "power": "mW", "energy": "nJ"}
    rows = [
        {
            "experiment": "cord-table3",
            "name": one,
            "key": one,
            "ours": value,
            "unit": units[one.split(".")[2]],
            "steady": None,
        }
        for one, value in values.items()
    ]
    common = {"other": "", "deciding": ["technology:swing of a bit line"]}
    targets = {f"{key}.area.core": 0.066, f"{key}.power.core": 9.242, f"{key}.energy.8 entries": 0.016}
    reaches = {
        f"{key}.area.core": {"is_met": False, "value": 0.008, "settings": {"a:b": "1"}} | common,
        f"{key}.power.core": {"is_met": True, "value": 9.5, "settings": {"a:b": "1"}} | common,
        f"{key}.energy.8 entries": {"is_met": True, "value": 0.02, "settings": {}} | common,
    }
    reaches = {one: reach | {"target": targets[one], "ours": values[one]} for one, reach in reaches.items()}
    search = {"size": "", "seed": 0, "budget": 96, "evaluated": 9, "failed": 0, "reaches": reaches}
    searches = {"commits": {"cord-table3": 40 * "b"}, "result": {"cord-table3": search}}
    made = fidelity.page({"commit": 40 * "a", "result": rows}, Published.shipped(), searches)
    lines = [line for line in made.splitlines() if line.startswith((f"| {key}", "| cord-table3"))]
    ends = [
        "off by more than 25 %; structure | fitted |",
        "within 5 %; met in range | fitted |",
        "bound right | fitted |",
    ]
    for line, end in zip(lines, ends, strict=False):
        assert line.endswith(end), line
    found = (
        "These experiments have 3 published values: 2 are met, without other settings or with some, 0 at the size of "
        "the search only, and 1 are not met.\n"
    )
    assert found in made
    assert "| `cord-table3` | full size | bbbbbbb | 96 | 3 | 0 |\n" in made
    assert "- ccix-exp1, size from which DMA has less latency, reads, u280\n" in made
    assert lines[3] == f"| cord-table3 | {key}.area.core | 0.066 mm2 | -95.5% | {reasons.REASONS[key]} |"
    assert lines[4] == (
        f"| cord-table3 | {key}.area.core | 0.066 mm2 | 0.008 mm2 | technology:swing of a bit line | "
        f"structure | "
        f"{reasons.REASONS[key]} |"
    )
    assert len(lines) == 5


def searched(key: str, **reach: object) -> dict[str, Any]:
    """Return the search of an experiment with a value that the smaller simulation meets, changed by `reach`."""
    found = {"is_met": True, "settings": {}, "deciding": ["a:b"], "other": "", "target": 10.0, "ours": 10.2} | reach
    return {"size": "", "seed": 0, "budget": 96, "evaluated": 9, "failed": 0, "reaches": {key: found}}


def test_verdict_separates_full_size_and_unvaried_assumptions() -> None:
    """A value that holds in the smaller simulation of the search only is not met, nor is one without ranges a fault."""
    text = """
[x]
base = { says = "a bar" }
order = { says = "above the bar", above = "x.base" }
number = { published = "10ns" }
[cord.programs]
time = { published = "10ns" }
"""
    keys = {"x.base": 4.0, "x.order": 3.0, "x.number": 10.2, "cord.programs.time": 20.0}
    ours = [Measurement(key, value, "ns", key) for key, value in keys.items()]
    rows = {row["key"]: row for row in compare("mine", ours, Published(text, file="x.toml"))}

    def verdict(key: str, **reach: object) -> str:
        return fidelity.verdict(rows[key], searched(key, ours=keys[key], **reach))

    order: dict[str, object] = {"other": "x.base", "target": 1.0}
    assert verdict("x.order", **order) == "order wrong; met at the size of the search only"
    assert verdict("x.number") == "within 5 %; met at the size of the search only"
    assert verdict("x.order", settings={"a:b": "1"}, **order) == "order wrong; met in range"
    assert verdict("x.order", is_met=False, **order) == "order wrong; structure"
    assert verdict("x.order", is_met=False, deciding=[], **order) == "order wrong; not varied"
    assert verdict("cord.programs.time", is_met=False) == "off by more than 25 %; not varied"
    # A statement that was corrected after the search.
    assert verdict("x.number", target=11.0) == "within 5 %; not searched"
    # Nothing is to be met.
    assert fidelity.verdict(rows["x.base"], searched("x.order")) == ""


@pytest.mark.parametrize(
    "reach", [{"is_met": False}, {"settings": {"a:b": "1"}}, {"is_met": False, "deciding": []}, {}]
)
def test_search_says_nothing_about_number_that_size_changes(reach: dict[str, object]) -> None:
    published = Published('[x]\nnumber = { published = "10ns" }\n', file="x.toml")
    for value, is_changed in ((10.2, False), (11.2, False), (11.4, True), (9.0, True)):
        [row] = compare("mine", [Measurement("number", value, "ns", "x.number")], published)
        # The number is 10.2 at the size of the search.
        word = fidelity.verdict(row, searched("x.number", **reach)).partition("; ")[2]
        assert (word == "not searched: the size changes the number") == is_changed, (value, word)


def test_verdict_names_the_reason_of_an_omitted_search() -> None:
    text = """
[x]
throughput = { published = "10GiB/s" }
time = { published = "10ns" }
bound = { at_most = "10ns" }
[ccix]
local_hit.u280.read = { published = "100ns" }
[eci_link]
crossover.reads = { published = "2KiB" }
"""
    ours = [
        Measurement("throughput", 10, "GiB/s", "x.throughput", steady=True),
        Measurement("time", 10, "ns", "x.time"),
        Measurement("bound", 9, "ns", "x.bound"),
        Measurement("hit", 100, "ns", "ccix.local_hit.u280.read"),
        Measurement("crossover", 2048, "B", "eci_link.crossover.reads", steady=True),
    ]
    rows = compare("mine", ours, Published(text, file="x.toml"))
    search = searched("x.other")
    steady, held = (f"not searched: {one}" for one in ("not steady at the smaller size", "held by a fitted sum"))

    def words() -> list[str]:
        return [fidelity.verdict(row, search).partition("; ")[2] for row in rows]

    # Without recorded reasons.
    assert words() == [steady, "not searched", "not searched", held, "not searched"]
    search["omitted"] = {"x.time": "not steady", "x.bound": "held"}
    assert words() == ["not searched", steady, held, "not searched", "not searched"]
    assert [fidelity.verdict(row, None).partition("; ")[2] for row in rows] == 5 * [""]


def test_values_without_a_search_are_counted_apart() -> None:
    """Values are counted by the size of the search that met them, and by the reason why none says anything."""
    keys = [f"cord.chip.{kind}.core" for kind in ("area", "power")] + ["cord.chip.area.directory"]
    values = {keys[0]: 0.003, keys[1]: 9.3, keys[2]: 0.13}
    rows = [
        {
            "experiment": "cord-table3",
            "name": key,
            "key": key,
            "ours": value,
            "unit": "mW" if "power" in key else "mm2",
            "steady": None,
        }
        for key, value in values.items()
    ]
    search = searched(keys[0], value=0.066, target=0.066, ours=0.066)
    search["reaches"] |= searched(keys[1], value=9.29, target=9.242, ours=9.29)["reaches"]
    searches = {"commits": {"cord-table3": 40 * "b"}, "result": {"cord-table3": search}}
    made = fidelity.page({"commit": 40 * "a", "result": rows}, Published.shipped(), searches)
    assert "; not searched: the size changes the number | " in made
    assert "; met at the size of the search only | " in made
    found = (
        "These experiments have 3 published values: 0 are met, without other settings or with some, 1 at the size of "
        "the search only, and 0 are not met.\n"
        "The search says nothing about the other ones: for 1 values, the size changes the number, and 1 have no "
        "search.\n"
    )
    assert found in made
    assert "| `cord-table3` | full size | bbbbbbb | 96 | 1 | 2 |\n" in made
    assert "### Values that no setting meets" not in made


def test_search_records_why_it_omits_values() -> None:
    found = fidelity.search(Conditions(accesses=200), ["ccix-exp3"])["ccix-exp3"]
    keys = [f"ccix.local_hit.{card}.{direction}" for card in ("u280", "vck5000") for direction in ("write", "read")]
    assert found["omitted"] == dict.fromkeys(keys, "held")
    assert not found["reaches"]


def test_section_has_rows_for_crossovers_without_a_number(root: Path) -> None:
    made = fidelity.page_of(root / "records/fidelity.jsonl", Published.shipped())
    section = made.split("## Transfers over CCIX")[1].split("\n## ")[0]
    for card in ("u280", "vck5000"):
        [line] = [line for line in section.splitlines() if f"less latency, reads, {card} |" in line]
        none = "none: the card ahead at the largest size"
        assert f"| 4096 B | {none} | fails | {none} | | crossover wrong: one side ahead at the largest size; " in line


def test_longest_key_of_all_reasons_is_the_reason() -> None:
    reach = {"deciding": ["a:b"]}
    reason = fidelity._reason  # noqa: SLF001
    key = "cord.programs.time.CXL.pr.mp"
    assert reason(key, reach) == f"missing: {reasons.MISSING_FACTS[key]}"
    assert reason("cord.programs.other", reach) == reasons.UNVARIED["cord.programs"]
    assert reason("x", reach) == reasons.UNKNOWN_REASON
    assert reason("x", {"deciding": []}) == reasons.NO_EFFECT


# Regression: runs with fewer accesses than the cache has lines write nothing back. Figure 6 then showed, as
# predictions, 17.2 GiB/s with 2,000 accesses and 18.3 GiB/s with 20,000, where 8 million accesses give 11.96 GiB/s.
@pytest.mark.parametrize("accesses", [2_000, 20_000])
def test_throughput_before_the_first_write_back_is_not_steady(
    accesses: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["reproduce", "cckit-fig6", "--accesses", str(accesses), "--out", str(tmp_path)]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    [line] = [line for line in printed.splitlines() if line.startswith("  DC+DDR, sequential write ")]
    assert line.endswith(" not steady")
    assert "predict" not in line
    assert "Not steady: the simulation was cut" in printed
    rows: list[dict[str, Any]] = json.loads((tmp_path / "cckit-fig6.json").read_text())
    for row in rows:
        assert (row["steady"], row["use"], row["holds"]) == (False, "not steady", None)
        assert (
            row["blind_holds"] is not None or row["blind_ratio"] is not None or row["says"] == "a bar without a number"
        )
    assert "<!-- not steady -->" in (tmp_path / "cckit-fig6.svg").read_text()


def test_throughput_with_full_caches_is_steady() -> None:
    [write] = [point for point in cckit_fig6._points() if point.name == "DC+DDR, sequential write"]  # noqa: SLF001
    small: Point = write._replace(request={**write.request, "set": {"cache.sets": 64}})
    measured = PointExperiment([small], "GiB/s", cckit_fig6._throughput, steady=cckit_fig6._steady)  # noqa: SLF001
    runs = [measured.run(Conditions(accesses=accesses))[0] for accesses in (2_000, 200_000, 240_000)]
    assert [(run.steady, run.cut) for run in runs] == [(False, True), (True, True), (True, True)]
    _, longer, longest = runs
    assert longer.value == pytest.approx(longest.value, rel=0.02)
    [row] = compare("mine", [longer], Published.shipped())
    assert row["use"] == "known"


def test_steadiness_is_checked_for_applications() -> None:
    """Rates of runs that are too short for a steady state are marked, and single latencies are not judged."""
    measurements = {
        measurement.name: measurement for measurement in EXPERIMENTS["cckit-fig7"].run(Conditions(accesses=2_000))
    }
    # The table is not yet warm after a fraction of a millisecond.
    assert measurements["0 %, FPGA"].steady is False
    # The device issues one request per clock of 322 MHz, and a line that no cache holds needs no further message.
    measurements = {
        measurement.name: measurement for measurement in EXPERIMENTS["cckit-table3"].run(Conditions(accesses=4_096))
    }
    for machine in ("DC+DDR", "DC+BRAM"):
        assert measurements[f"not held, {machine}, as many as accepted"].value == pytest.approx(1e3 / 3.106, rel=1e-4)
    measurements = {
        measurement.name: measurement for measurement in EXPERIMENTS["cckit-table3"].run(Conditions(accesses=100))
    }
    assert measurements["clean, DC+DDR, as many as accepted"].steady is False
    assert measurements["clean, DC+DDR, one at a time"].steady is None
