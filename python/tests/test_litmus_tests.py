"""Litmus tests from Python: the same results as those of the command, and errors as Python exceptions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cohkit

if TYPE_CHECKING:
    from conftest import Command


def without_run(entry: object) -> object:
    """Return a result without the entry `run`, which depends on the machine."""
    assert isinstance(entry, dict)
    return {key: value for key, value in entry.items() if key != "run"}


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ({}, []),
        ({"model": "tso"}, ["--model", "tso"]),
        ({"protocol": "protocols/msi.coh"}, ["--protocol", "protocols/msi.coh"]),
        (
            {"protocol": "msi", "cores": "store_buffer", "chart": True},
            ["--protocol", "protocols/msi.coh", "--cores", "store-buffer", "--chart"],
        ),
        (
            {"protocol": "msi", "cores": "store_buffer", "simulate_runs": 50, "seed": 3},
            ["--protocol", "protocols/msi.coh", "--cores", "store-buffer", "--simulation-runs", "50", "--seed", "3"],
        ),
        ({"protocol": "msi", "max_states": 50}, ["--protocol", "protocols/msi.coh", "--max-states", "50"]),
        (
            {"protocol": "msi", "max_spontaneous_evictions": 0},
            ["--protocol", "protocols/msi.coh", "--max-spontaneous-evictions", "0"],
        ),
        (
            {"protocol": "ordering/cord.coh", "stores": "ab"},
            ["--protocol", "ordering/cord.coh", "--store-variants", "ab"],
        ),
        (
            {"protocol": "ordering/cord.coh", "stores": "tb", "simulate_runs": 9},
            ["--protocol", "ordering/cord.coh", "--store-variants", "tb", "--simulation-runs", "9"],
        ),
        (
            {"protocol": "tests/kinds/mixed.coh", "kinds": ["device", "cache"]},
            ["--protocol", "tests/kinds/mixed.coh", "--kinds", "device,cache"],
        ),
    ],
)
@pytest.mark.parametrize("test", ["litmus/SB.litmus", "MP"])
def test_litmus_results_match_the_command(
    test: str, options: cohkit.litmus_tests.Options, flags: list[str], cohkit_command: Command
) -> None:
    [entry] = json.loads(cohkit_command("litmus", test, *flags, "--json").stdout)
    assert without_run(cohkit.litmus(test, **options)) == without_run(entry)


def test_litmus_text_replaces_the_named_file() -> None:
    file = Path("litmus/SB.litmus")
    result = cohkit.litmus("mine", text=file.read_text(encoding="utf-8"))
    assert result["outcomes"] == cohkit.litmus(file)["outcomes"]
    assert result["run"]["file"] == "mine"


def test_invalid_litmus_test_is_reported_with_its_location(tmp_path: Path) -> None:
    with pytest.raises(cohkit.TextError) as wrong:
        cohkit.litmus("mine.litmus", text="AArch64 mine\n{ }\n P0 ;\n JUMP X0 ;\n")
    assert (wrong.value.file, wrong.value.line, wrong.value.column) == ("mine.litmus", 4, 2)
    assert wrong.value.diagnostics[0]["code"] == "litmus"
    bytes_ = tmp_path / "bytes.litmus"
    bytes_.write_bytes(b"AArch64 mine\n\xff")
    with pytest.raises(cohkit.TextError, match="byte 13 is not UTF-8"):
        cohkit.litmus(bytes_)
    with pytest.raises(FileNotFoundError):
        cohkit.litmus("nowhere.litmus")


@pytest.mark.parametrize(
    ("options", "expected_message"),
    [
        ({"cores": "fast"}, "`fast` is not one of in_order, store_buffer, relaxed"),
        ({"model": "psc"}, "`psc` is not one of sc, tso, rc, armv8, riscv"),
        ({"max_spontaneous_evictions": 256}, "`max_spontaneous_evictions` is a number from 0 to 255, not 256"),
        ({"max_states": 0}, "`max_states` is a number from 1 to"),
        ({"chart": True}, "give `protocol` too"),
        ({"simulate_runs": 3}, "give `protocol` too"),
        ({"stores": "tt"}, "`stores` applies to the caches of a protocol: give `protocol` too"),
        ({"kinds": ["cache", "device"]}, "`kinds` applies to the caches of a protocol: give `protocol` too"),
        ({"protocol": "tests/kinds/mixed.coh"}, "`kinds` assigns one to each thread, in one of 3 ways"),
        ({"protocol": "tests/kinds/mixed.coh", "kinds": ["cache"]}, "`cache` names 1 kind, and SB has 2 threads"),
        ({"protocol": "ordering/cord.coh", "stores": "t"}, "--store-variants: `t` has 1 letter, and SB writes 2 times"),
        ({"protocol": "ordering/cord.coh", "stores": "every"}, "`stores` needs one letter per write of a single test"),
        ({"protocol": "msi", "seed": 3}, "give `simulate_runs` too"),
        ({"protocol": "msi", "simulate_runs": 3, "max_states": 5}, "not to runs in the simulator"),
        ({"room": 3}, "there is no option `room`; the options are `text`, `protocol`,"),
    ],
)
def test_inapplicable_litmus_options_are_rejected(options: cohkit.litmus_tests.Options, expected_message: str) -> None:
    with pytest.raises(cohkit.InputError) as error_info:
        cohkit.litmus("SB", **options)
    assert expected_message in str(error_info.value)


def test_unknown_shape_gets_a_suggestion() -> None:
    with pytest.raises(cohkit.InputError, match="did you mean `SB`"):
        cohkit.litmus("SBB")


def test_unsupported_litmus_test_is_rejected_with_a_reason() -> None:
    with pytest.raises(cohkit.InputError, match=r"^protocols/write-through\.coh: cannot run LB\+swps: "):
        cohkit.litmus("LB+swps", protocol="write-through")
    with pytest.raises(FileNotFoundError, match="no such file or shipped protocol"):
        cohkit.litmus("SB", protocol="nowhere")
    with pytest.raises(cohkit.FaultError):
        cohkit.litmus("SB", protocol="tests/construction/ambiguous-answer-proven.coh")
