"""Scaled experiments: data and capacities of the host shrink alike, and each scale is printed."""

from __future__ import annotations

import importlib
import tomllib
from typing import TYPE_CHECKING

import pytest

from cohkit.experiments import Conditions
from cohkit.experiments.programs import CAPACITIES, Run, scaled_capacities
from cohkit.protocols import shipped_file

if TYPE_CHECKING:
    from collections.abc import Sequence

_SCALED = {"proxics-uts": "proxics_uts", "proxics-pagerank": "proxics_pagerank", "proxics-filter": "proxics"}
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}


class _Anything(dict[str, float]):
    """Results of a program: every name has the number 1."""

    def __missing__(self, name: str) -> float:
        return 1


def _runs_and_rows(
    name: str, accesses: int | None, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Run], dict[str, float]]:
    """Run an experiment without its programs; return their runs, and its rows by key."""
    module = importlib.import_module(f"cohkit.experiments.{_SCALED[name]}")
    recorded: list[Run] = []

    def run_programs(runs: Sequence[Run], _conditions: Conditions) -> list[dict[str, float]]:
        recorded.extend(runs)
        return [_Anything() for _ in runs]

    monkeypatch.setattr(module, "run_programs", run_programs)
    rows = module.EXPERIMENTS[name].run(Conditions(accesses=accesses))
    return recorded, {row.key: row.value for row in rows}


def test_capacities_are_those_of_the_machine() -> None:
    """The unscaled capacities are the values of the shipped machine."""
    machine = tomllib.loads(shipped_file("nearmemory/enzian.toml"))["host"]
    for capacity in CAPACITIES:
        text = machine[capacity.quantity.removeprefix("host.")]["value"]
        assert int(text[:-3]) * _UNITS[text[-3:]] == capacity.full


@pytest.mark.parametrize("accesses", [None, 5000])
@pytest.mark.parametrize("name", _SCALED)
def test_capacities_scale_like_the_data(name: str, accesses: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run sets all capacities, with the scale of its data unless at the minimum, and the rows print the scales."""
    runs, rows = _runs_and_rows(name, accesses, monkeypatch)
    prefix = name.replace("-", ".")
    data = {key: value for key, value in rows.items() if key.startswith((f"{prefix}.scale.data", f"{prefix}.smaller"))}
    assert data
    for run in runs:
        sizes = {one: int(run.settings[one.quantity].removesuffix("B")) for one in CAPACITIES}
        scale = max(one.full / size for one, size in sizes.items())
        assert scale > 1
        for one, size in sizes.items():
            assert size == max(one.least, int(one.full / scale))
    for one in CAPACITIES:
        printed = {value for key, value in rows.items() if key.startswith(f"{prefix}.scale.{one.quantity[5:]}")}
        assert printed == {one.full / int(run.settings[one.quantity].removesuffix("B")) for run in runs}
    if accesses is None and name != "proxics-uts":
        # A power of two is at most the square root of two away.
        page_scales = [value for key, value in rows.items() if key.startswith(f"{prefix}.scale.page")]
        for page, value in zip(page_scales, data.values(), strict=True):
            assert page / 2**0.5 <= value <= page * 2**0.5


def test_uts_scales_its_host_by_its_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The full trees are 256 times smaller than published, and so are last cache and reach of translations."""
    _, rows = _runs_and_rows("proxics-uts", None, monkeypatch)
    for tree in ("T1L", "T2L", "T3L"):
        assert rows[f"proxics.uts.scale.llc.{tree}"] == rows[f"proxics.uts.scale.page.{tree}"] == 256
        assert rows[f"proxics.uts.scale.l1.{tree}"] == 8


def test_capacity_never_grows() -> None:
    """More data than published leaves the machine as it is."""
    assert scaled_capacities(3, 2) == scaled_capacities(1, 1)
