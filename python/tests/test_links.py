"""Link rates from Python agree with those of the command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, get_type_hints

import pytest

import cohkit
from cohkit import types

if TYPE_CHECKING:
    from conftest import Command


def test_link_rates_match_the_command(cohkit_command: Command) -> None:
    arguments = ("--lanes", 8, "--payload", 128, "--delay", 20, "--bit-errors", 1e-7, "--seed", 3, "--dma", 4096)
    printed = json.loads(cohkit_command("link", "pcie3", *arguments, "--json").stdout)
    rates = cohkit.link("pcie3", lanes=8, payload=128, delay_ns=20, bit_errors=1e-7, seed=3, dma=4096)
    assert rates == printed
    assert set(rates) == set(get_type_hints(types.LinkRates))
    assert set(rates["steps"][0]) == set(get_type_hints(types.LinkStep))
    assert rates["dma"] is not None
    assert set(rates["dma"]) == set(get_type_hints(types.LinkDma))
    assert set(rates["dma"]["to_host"]) == set(get_type_hints(types.LinkTransfers))
    assert cohkit.link("eci")["dma"] is None
    assert set(rates["data"][0]) == set(get_type_hints(types.LinkData))


@pytest.mark.parametrize(
    ("name", "options", "expected_message"),
    [
        ("pcie6", {}, "there are eci, pcie3"),
        ("eci", {"lanes": 17}, "1 to 16 lanes"),
        ("eci", {"lanes": -1}, "`lanes` is a number from 0"),
        ("cxl68", {"payload": 128}, "supports payloads of 64 bytes"),
        ("ccix", {"dma": 64}, "are supported by pcie3, pcie4 and pcie5, not by ccix"),
        ("pcie4", {"dma": 0}, "1 to 1048576 bytes, not 0"),
        ("pcie4", {"dma": 64, "dma_engine": "device "}, "did you mean `device`"),
        ("pcie4", {"dma_engine": "device"}, "only with a size of DMA transfers"),
        ("pcie4", {"dma_settings": {"dma.start": "1ns"}}, "only with a size of DMA transfers"),
        ("pcie4", {"dma": 64, "dma_settings": {"dma.strat": "1ns"}}, "did you mean `dma.start`"),
        ("pcie4", {"dma": 64, "dma_settings": {"dma.tags": 0}}, "`dma.tags` is from 1 to 256, not 0"),
        ("ccix", {"delay_ns": 2**63}, "at most 10000 ns"),
    ],
)
def test_invalid_link_options_are_reported(name: str, options: dict[str, Any], expected_message: str) -> None:
    with pytest.raises(cohkit.InputError, match=expected_message):
        cohkit.link(name, **options)


def test_command_and_function_set_the_same_quantities_of_dma(cohkit_command: Command) -> None:
    before = cohkit.link("pcie3", dma=64)["dma"]
    after = cohkit.link("pcie3", dma=64, dma_settings={"dma.start": "200ns", "dma.queue": 8})["dma"]
    assert before is not None
    assert after is not None
    # The engine starts after the doorbell and after its descriptor.
    assert after["to_host"]["latency_ns"] - before["to_host"]["latency_ns"] == pytest.approx(200, abs=6)
    values = {quantity["name"]: quantity["value"] for quantity in after["quantities"]}
    assert (values["dma.start"], values["dma.queue"], values["dma.tags"]) == ("200ns", "8", "256")
    arguments = ("link", "pcie3", "--dma", 64, "--set", "dma.start=200ns", "--set", "dma.queue=8")
    assert "dma.start=200ns, dma.queue=8: " in cohkit_command(*arguments).stdout
