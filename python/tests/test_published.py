"""Published numbers: units, joins, and errors that name the key."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cohkit
from cohkit.experiments import EXPERIMENTS, Conditions
from cohkit.published import COUNT, PERCENT, Measurement, Published, compare
from cohkit.units import Quantity, quantity

UNITS = {
    "time": ["ps", "ns", "us", "ms", "s"],
    "frequency": ["Hz", "kHz", "MHz", "GHz"],
    "size": ["b", "bit", "B", "kB", "KiB", "MB", "MiB", "GB", "GiB"],
    "bandwidth": ["b/s", "Gb/s", "B/s", "MB/s", "MiB/s", "GB/s", "GiB/s"],
}


@given(st.floats(1e-6, 1e9), st.data())
def test_unit_conversion_round_trips(value: float, data: st.DataObject) -> None:
    units = data.draw(st.sampled_from(list(UNITS.values())))
    first_unit, second_unit = data.draw(st.sampled_from(units)), data.draw(st.sampled_from(units))
    converted = Quantity(value, first_unit).to(second_unit)
    assert Quantity(converted, second_unit).to(first_unit) == pytest.approx(value)
    assert quantity(f"{value!r}{first_unit}", key="k") == (value, first_unit)


def test_known_conversions() -> None:
    assert Quantity(1, "GiB/s").to("B/s") == 2**30
    assert Quantity(10, "Gb/s").to("GB/s") == 1.25
    assert Quantity(1, "KiB").to("bit") == 8192
    assert Quantity(0.3, "us").to("ns") == pytest.approx(300)


@pytest.mark.parametrize(
    ("text", "expected_message"),
    [
        (268, '268 has no unit: write it as a string such as "268ns"'),
        ("268", "'268' has no unit: write it as \"268ns\""),
        ("268 parsecs", "there is no unit `parsecs`; there are ps, ns, us"),
        ("ns", "'ns' is not a number with a unit"),
        ("1e999999ns", "is not a number with a unit"),
        ("", "is not a number with a unit"),
        ("٣ns", "is not a number with a unit"),
        (True, "is not a number with a unit"),
        ([1], "is not a number with a unit"),
    ],
)
def test_invalid_quantities_are_rejected_with_their_key(text: object, expected_message: str) -> None:
    with pytest.raises(cohkit.InputError) as error_info:
        quantity(text, key="enzian.link.latency")
    assert str(error_info.value).startswith("enzian.link.latency: ")
    assert expected_message in str(error_info.value)


def test_invalid_number_is_reported_with_file_and_key() -> None:
    published = Published('[a]\nlatency = 5\nrate = "3GB/s"\nstates = "79"\n', file="mine.toml")
    for key, unit, expected_message in (
        ("a.latency", "ns", "mine.toml: a.latency: 5 has no unit"),
        ("a.rate", "ns", "mine.toml: a.rate: 3 GB/s is a bandwidth, where a time such as 1 ns is needed"),
        ("a.states", COUNT, "mine.toml: a.states: '79' is not a plain number, as needed for a count is"),
        ("a", COUNT, "a is a table"),
    ):
        with pytest.raises(cohkit.InputError) as error_info:
            published.value(key, unit=unit)
        assert expected_message in str(error_info.value)
    with pytest.raises(cohkit.InputError, match=r"mine.toml: Expected '\]'"):
        Published("[a", file="mine.toml")


def test_separate_numbers_are_joined_without_contradiction(tmp_path: Path) -> None:
    """Joined numbers add to the shipped ones; one that contradicts a shipped number is an error."""
    measurements = [
        Measurement("sequential", 590, "ns", "enzian.read_latency.dc_ddr.sequential"),
        Measurement("read", 10.0, "GiB/s", "x.r"),
    ]
    published = Published.shipped()
    latency, read_row = compare("mine", measurements, published)
    assert (latency["published"], latency["use"]) == (591, "fitted")
    assert latency["error"] == pytest.approx(-1 / 591)
    assert (read_row["published"], read_row["error"], read_row["use"]) == (None, None, "predicted blind")

    file = tmp_path / "kept.toml"
    file.write_text('[x]\nr = "8GiB/s"\n[enzian.read_latency.dc_ddr]\nrandom = "601ns"\n')
    published.join(Published.read(file))
    _, read_row = compare("mine", measurements, published)
    assert (read_row["published"], read_row["error"], read_row["use"]) == (8, 0.25, "predicted blind")

    for invalid_text in (
        '[enzian.read_latency.dc_ddr]\nrandom = "600ns"',
        "[enzian]\nread_latency = 3",
        "[x.r]\ny = 1",
    ):
        with pytest.raises(cohkit.InputError, match=r"^more\.toml: "):
            published.join(Published(invalid_text, file="more.toml"))


def test_every_shipped_number_has_a_source_and_a_use(root: Path) -> None:
    published = Published.shipped()
    numbers = [key for key in published._leaves if not key.startswith("sources.")]  # noqa: SLF001
    assert len(numbers) > 60
    for key in numbers:
        assert published.source(key), key
    assert published.use("enzian.clean_invalidate.latency.dc_ddr") == "calibration"
    assert published.value("enzian.resources.eci.lut_percent", unit=PERCENT) == 7.9
    # The size of the host's pages is fitted to the external bandwidth.
    text = (root / "experiments/published.toml").read_text()
    from_repository = Published(text, file="published.toml")
    assert from_repository.value("proxics.host.external_bandwidth", unit="GB/s") == pytest.approx(9.1)
    assert from_repository.provenance("proxics.host.external_bandwidth") == "fitted"
    assert from_repository.provenance("proxics.measured.internal_bandwidth") == "fitted"
    with pytest.raises(cohkit.InputError, match=r"enzian.cpu.use: 'definition' is neither calibration nor prediction"):
        published.use("enzian.cpu.clock")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_gives_rows_that_are_named_once(name: str) -> None:
    rows = compare(name, EXPERIMENTS[name].run(Conditions(accesses=1000)), Published.shipped())
    assert rows
    names = [row["name"] for row in rows]
    assert len(set(names)) == len(names)
