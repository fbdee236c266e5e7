"""The experiments that simulate: sums, kept results, joins, sensitivity and plots."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

import cohkit
from cohkit import plots
from cohkit.__main__ import main
from cohkit.experiments import EXPERIMENTS, Conditions, cckit_fig6, cckit_table2
from cohkit.experiments.experiment import Point, PointExperiment, Rerun, Span
from cohkit.progress import Bar
from cohkit.published import Measurement, Published, compare

if TYPE_CHECKING:
    from conftest import Command

# Conditions for tests that do not depend on the accuracy of results.
FEW_ACCESSES = Conditions(accesses=20_000)


# Commands of a DRAM start in clocks of the memory bus of DDR4-2133, or of a controller with a quarter of the clock of
# DDR4-2400, in nanoseconds.
CLOCKS = {"LLC+DDR": 0.938, "DC+DDR": 3.333}
T_RP = 14.16
"""Precharge of DDR4-2400, in nanoseconds."""


def without_refresh(point: Point) -> Point:
    """Disable the refresh of a DRAM: whether a read waits for one depends on its phase, which each part shifts."""
    if "BRAM" in point.name:
        return point
    settings: dict[str, Any] = {**(point.request.get("set") or {}), "dram.t_refi": "0ns"}
    return point._replace(request={**point.request, "set": settings})


def test_latencies_are_sums_of_parts_and_within_five_percent() -> None:
    measurements = EXPERIMENTS["cckit-table2"].run(FEW_ACCESSES)
    rows = compare("cckit-table2", measurements, Published.shipped())
    assert len(rows) == 6
    for measurement, row in zip(measurements, rows, strict=True):
        assert row["use"] == "fitted"
        assert row["error"] is not None
        assert abs(row["error"]) < 0.05
        assert sum(measurement.parts.values()) == pytest.approx(measurement.value)
    points = [without_refresh(point) for point in cckit_table2._points()]  # noqa: SLF001
    unrefreshed = PointExperiment(points, "ns", cckit_table2._latency, cckit_table2._parts)  # noqa: SLF001
    for measurement in unrefreshed.run(FEW_ACCESSES):
        # A random read of DC+DDR closes the open row first, and each command waits for the clock of the controller.
        waiting = {"DC+DDR, sequential": CLOCKS["DC+DDR"], "DC+DDR, random": T_RP + 3 * CLOCKS["DC+DDR"]}
        limit = waiting.get(measurement.name, 0.002 * measurement.value)
        assert abs(measurement.parts["waiting"]) < limit, "a part of the way is not among the parts"
    for sequential, random in zip(measurements[::2], measurements[1::2], strict=True):
        assert list(sequential.parts) == list(random.parts)


@pytest.mark.parametrize("point", cckit_table2._points(), ids=lambda point: point.name)  # noqa: SLF001
def test_latency_part_equals_its_quantity(point: Point) -> None:
    point = without_refresh(point)
    [full] = PointExperiment([point], "ns", cckit_table2._latency, cckit_table2._parts).run(FEW_ACCESSES)  # noqa: SLF001
    tolerance = CLOCKS.get(point.name.partition(", ")[0], 0.5)
    for name in full.parts:
        if not name.endswith(("bandwidth", "waiting", "t_rcd", "t_cl", "burst_clocks")):
            settings: dict[str, Any] = dict(point.request.get("set") or {})
            point_without_part = point._replace(request={**point.request, "set": {**settings, name: "0ns"}})
            [reduced] = PointExperiment([point_without_part], "ns", cckit_table2._latency).run(FEW_ACCESSES)  # noqa: SLF001
            # Faster reads hit more open rows.
            assert full.value - reduced.value == pytest.approx(full.parts[name], abs=tolerance), name


def test_throughput_does_not_exceed_link_bandwidth() -> None:
    rows = compare("cckit-fig6", EXPERIMENTS["cckit-fig6"].run(FEW_ACCESSES), Published.shipped())
    assert [row["name"] for row in rows[:4]] == [f"LLC+DDR, {words}" for words in cckit_fig6.WORKLOADS]
    assert len(rows) == 12
    for row in rows:
        assert (row["published"], row["error"], row["unit"]) == (None, None, "GiB/s")
        assert 1 < row["ours"] < 19.6


def test_experiments_run_their_stated_configurations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intercept the simulations of two experiments and compare their settings."""
    requests: list[Any] = []

    def look(simulations: list[Any], **_: object) -> list[Any]:
        """Record the requested simulations, and end the experiment."""
        requests.extend(simulations)
        raise KeyboardInterrupt

    monkeypatch.setattr("cohkit.experiments.experiment.simulate_many", look)
    for name in ("cckit-table2", "cckit-fig6"):
        with pytest.raises(KeyboardInterrupt):
            EXPERIMENTS[name].run(Conditions(seed=5))
    assert len(requests) == 6 + 12
    for simulation in requests:
        assert (simulation["region"], simulation["accesses"], simulation["seed"]) == ("1GiB", 8388608, 5)
    assert all(
        request["set"]["cores.count"] == request["set"]["cores.max_outstanding"] == 1 for request in requests[:6]
    )
    assert all(request["set"]["cores.prefetch_distance"] == 0 for request in requests[:6])
    assert not any(request.get("set") for request in requests[6:])


# A file of published numbers that do not ship.
SEPARATE_NUMBERS = """\
[enzian.prefetcher]
source = "made up"
with = { 4 = "16GiB/s", 5 = "15000MB/s" }
"""


def test_separate_published_numbers_appear_in_all_outputs(tmp_path: Path, cohkit_command: Command) -> None:
    """Numbers of a separate file appear in the table, the rows and the plot, where they were missing before."""
    file = tmp_path / "kept.toml"
    # The shipped file states the source, too.
    file.write_text(SEPARATE_NUMBERS.replace('source = "made up"\n', ""))
    command = ["reproduce", "cckit-fig8", "--accesses", 2000, "--out", tmp_path]
    without = cohkit_command(*command)
    assert without.stdout.count("  kept  ") == 16
    assert "`--published FILE.toml`" in " ".join(without.stdout.split())
    plot = (tmp_path / "cckit-fig8.svg").read_text()
    assert "<!-- published -->" not in plot
    joined = cohkit_command(*command, "--published", file)
    assert (joined.returncode, joined.stderr) == (0, "")
    assert joined.stdout.count("  kept  ") == 14
    rows = {row["name"]: row for row in json.loads((tmp_path / "cckit-fig8.json").read_text())}
    row = rows["5, with prefetcher"]
    assert row["published"] == pytest.approx(15e9 / 2**30)
    assert row["error"] == pytest.approx(row["ours"] / row["published"] - 1, abs=1e-8)
    plot = (tmp_path / "cckit-fig8.svg").read_text()
    assert "<!-- published -->" in plot


def test_separate_number_extends_a_published_statement(tmp_path: Path) -> None:
    file = tmp_path / "kept.toml"
    file.write_text('[enzian.throughput]\ndc_ddr = { sequential_read = "16GiB/s" }\n')
    published = Published.shipped()
    published.join(Published.read(file))
    measurements = [Measurement("DC+DDR, sequential read", 12, "GiB/s", "enzian.throughput.dc_ddr.sequential_read")]
    [row] = compare("cckit-fig6", measurements, published)
    assert (row["published"], row["error"], row["use"]) == (16, -0.25, "known")
    assert row["blind_error"] == pytest.approx(18.4458 / 16 - 1)
    changed = '[enzian.throughput.dc_ddr]\nsequential_read = { says = "far below LLC+DDR", blind = "16GiB/s" }'
    with pytest.raises(cohkit.InputError, match=r"^mine.toml: enzian.throughput.dc_ddr.sequential_read is "):
        published.join(Published(changed, file="mine.toml"))


def test_published_file_without_matching_numbers_is_reported(tmp_path: Path, cohkit_command: Command) -> None:
    file = tmp_path / "kept.toml"
    file.write_text(SEPARATE_NUMBERS.replace("prefetcher", "prefetched"))
    completed = cohkit_command("reproduce", "cckit-fig8", "--accesses", 2000, "--published", file)
    assert completed.returncode == 0
    assert completed.stderr == f"note: no number of {file} belongs to these experiments\n"
    file.write_text("[enzian.prefetcher]\nwith = { 4 = 16 }\n")
    completed = cohkit_command("reproduce", "cckit-fig8", "--accesses", 2000, "--published", file)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert f"{file}: enzian.prefetcher.with.4: 16 has no unit" in completed.stderr


def test_sensitivity_reruns_at_both_ends_of_every_assumed_value(cohkit_command: Command) -> None:
    """Each assumed quantity is set to both ends of its range, except those that the experiment sets itself.

    The latency of the link follows from the other parts of a read, whose sum is fitted to these numbers. So the parts
    change nothing, and there is no search for settings that meet the numbers.
    """
    printed = cohkit_command("reproduce", "cckit-table2", "--accesses", 300, "--sensitivity", "--json").stdout
    rows = json.loads(printed)
    for row in rows:
        sensitivity = row["sensitivity"]
        assert sensitivity["ours"] == row["ours"]
        everything = [sensitivity["ours"], *(rerun["ours"] for rerun in sensitivity["reruns"])]
        assert (sensitivity["lowest"], sensitivity["highest"]) == (min(everything), max(everything))
        assert sensitivity["lowest"] <= sensitivity["ours"] <= sensitivity["highest"]
        assert sensitivity["lowest"] < sensitivity["highest"]
        assert set(sensitivity["deciding"]) <= {rerun["quantity"] for rerun in sensitivity["reruns"]}
        assert sensitivity["search"] is None
    last = rows[-1]["sensitivity"]["reruns"]
    own = {"cores.count", "cores.max_outstanding", "cores.prefetch_distance", "link.latency"}
    assumed = {q["name"] for q in cohkit.platform("enzian-dc-bram")["quantities"] if q["low"] is not None}
    assert {rerun["quantity"] for rerun in last} == {f"enzian-dc-bram:{name}" for name in assumed - own}
    values = {rerun["value"]: rerun["ours"] for rerun in last if rerun["quantity"] == "enzian-dc-bram:home.latency"}
    # A read takes the home's latency twice, and crosses the link twice, whose latency is 100 (60 to 140) ns.
    assert values == {end: pytest.approx(rows[-1]["ours"]) for end in ("22.12ns", "102.12ns")}


# Experiments that accept `--sensitivity`, as the message lists them: all but one, which has no assumed quantities.
SENSITIVE_EXPERIMENTS = ", ".join(name for name in EXPERIMENTS if name != "eci-home")


def test_option_that_no_experiment_accepts_is_rejected(
    cohkit_command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    completed = cohkit_command("reproduce", "eci-home", "--sensitivity")
    expected_message = f"`--sensitivity` has no meaning for eci-home; it has for {SENSITIVE_EXPERIMENTS}"
    assert (completed.returncode, completed.stdout, completed.stderr) == (2, "", f"error: {expected_message}\n")
    simulating = [name for name in EXPERIMENTS if name not in ("eci-home", "cord-table3")]
    assert main(["reproduce", "eci-home", "--accesses", "1"]) == 2
    expected_message = f"`--accesses` has no meaning for eci-home; it has for {', '.join(simulating)}"
    assert capsys.readouterr() == ("", f"error: {expected_message}\n")


def test_sensitivity_is_printed_with_its_size(cohkit_command: Command) -> None:
    completed = cohkit_command("reproduce", "eci-home", "cckit-table2", "--accesses", 300, "--sensitivity")
    assert completed.returncode == 0
    expected_note = f"`--sensitivity` has no meaning for eci-home; it has for {SENSITIVE_EXPERIMENTS}"
    assert completed.stderr == f"note: {expected_note}\n"
    assert "both ends of its range, one at a time (no more than 300 accesses each):\n" in completed.stdout
    table, _, rest = completed.stdout.partition("Quantities that decide most of a number:\n")
    [line] = [line for line in table.splitlines() if "DC+BRAM, random" in line and " = " in line]
    assert "link.bandwidth = 15GB/s" in line
    decisions, _, held = rest.partition("Fitted sums are held while their parts vary:\n")
    assert "DC+BRAM, random: link.bandwidth\n" in decisions
    assert "enzian-dc-bram:link.latency follows from a read of DC+BRAM (CCKit, table 2)\n" in held
    assert completed.stdout.count("lowest") == 1


def test_search_for_a_published_value_is_printed(cohkit_command: Command) -> None:
    completed = cohkit_command("reproduce", "rpc-payload", "--accesses", 1, "--sensitivity")
    assert completed.returncode == 0
    title = "Published values, with several quantities at ends of their ranges at once:\n"
    _, _, found = completed.stdout.partition(title)
    assert re.search(r"at best, lines, throughput: 200 MiB/s is (met|not met by this search), ", found)


def test_failed_simulation_of_an_experiment_is_an_error() -> None:
    point = Point(
        "mine", "x.y", {"platform": "enzian-dc-ddr", "workload": "random-read", "set": {"watchdog_timeout": "1ns"}}
    )
    with pytest.raises(cohkit.Error, match=r"mine with watchdog_timeout=1ns: no progress: |mine: no progress: "):
        PointExperiment([point], "ns", lambda _: 0.0).run(FEW_ACCESSES)


def _rows() -> tuple[list[Measurement], Any]:
    """Return two measurements and their rows, one of them with a published number."""
    measurements = [
        Measurement("A, first", 10, "ns", "x.a"),
        Measurement("A, second", 12, "ns", "x.b", {"link.a": 8, "dram.b": 4}),
    ]
    return measurements, compare("mine", measurements, Published('[x]\na = "9ns"', file="x.toml"))


def test_plots_are_deterministic_and_labelled() -> None:
    """Two plots of the same rows are equal byte by byte and contain all labels."""
    measurements, rows = _rows()
    spans = [Span("A, first", 10, [Rerun("q", "1ns", 4), Rerun("q", "2ns", 15)])]
    first_plot, second_plot = (
        plots.bars("What & why", "time (ns)", measurements, rows, spans, foot="Left out: much.") for _ in range(2)
    )
    assert first_plot == second_plot
    assert ET.fromstring(first_plot).tag.endswith("svg")  # noqa: S314 -- our own
    plot = first_plot.decode()
    for text in (
        "What &amp; why",
        "time (ns)",
        "first",
        "second",
        "published",
        "+11.1%",
        "ours: memory",
        "A",
        "Left out: much.",
    ):
        assert f"<!-- {text} -->" in plot
    assert "<!-- reruns: nominal, and range of assumed quantities -->" in plot
    assert "<dc:date>" not in plot


def _plot_of(numbers: dict[str, float], published: str = "", logarithmic: str = "") -> str:
    """Return a plot with lines as SVG. Names of numbers are `X, SERIES`."""
    measurements = [
        Measurement(name, value, "GiB/s", f"x.{name.replace(', ', '.')}") for name, value in numbers.items()
    ]
    rows = compare("mine", measurements, Published(published, file="x.toml"))
    return plots.lines("Title.", "threads", "throughput (GiB/s)", rows, logarithmic).decode()


def test_coincident_series_are_merged_with_joined_names() -> None:
    numbers = {"1, one": 1.0, "2, one": 2.0, "1, two": 1.001, "2, two": 2.002, "1, three": 1.0, "2, three": 1.5}
    plot = _plot_of(numbers, '[x]\n1 = { one = "1.5GiB/s", three = "2GiB/s" }')
    for text in ("one = two", "three", "published"):
        assert plot.count(f"<!-- {text} -->") == 1
    assert "<!-- two -->" not in plot
    # A published number of one series only is drawn, and the series are not merged.
    plot = _plot_of(numbers, '[x]\n1 = { two = "1.5GiB/s" }')
    assert plot.count("<!-- one -->") == plot.count("<!-- two -->") == 1


def test_panels_of_several_units_name_a_series_once() -> None:
    measurements = [
        Measurement(f"1, {side} {quantity}", 2.0, unit, "") for side in ("host", "device") for quantity, unit in _PANELS
    ]
    rows = compare(
        "mine",
        [measurement._replace(value=i + 1.0) for i, measurement in enumerate(measurements)],
        Published("", file=""),
    )
    plot = plots.lines("Title.", "at a time", "latency (us); rate (M/s)", rows).decode()
    for text in ("host", "device", "latency (us)", "rate (M/s)"):
        assert plot.count(f"<!-- {text} -->") == 1


# Quantity and unit of each panel.
_PANELS = (("latency", "us"), ("rate", "M/s"))


@pytest.mark.parametrize("form", plots.FORMATS)
def test_plots_have_the_requested_format_and_column_width(
    form: plots.Format, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two plots in each format are equal, and as wide as a column of a paper."""
    begins = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}[form]
    command = ["reproduce", "cckit-fig8", "--accesses", "3000", "--out", str(tmp_path), "--format", form]
    written = []
    for _ in range(2):
        assert main(command) == 0
        written.append((tmp_path / f"cckit-fig8.{form}").read_bytes())
    assert written[0] == written[1]
    assert written[0].startswith(begins)
    if form == "svg":
        # Points of 1/72 inch.
        width = float(written[0].partition(b'width="')[2].partition(b"pt")[0])
        assert width == pytest.approx(3.4 * 72)
    assert f"cckit-fig8.{form}" in capsys.readouterr().out
    assert main(["reproduce", "cckit-fig8", "--format", form]) == 2
    assert capsys.readouterr().err == "error: `--format` needs `--out`\n"


def test_call_latencies_are_drawn_as_a_distribution(tmp_path: Path) -> None:
    assert main(["reproduce", "cckit-fig10", "--accesses", "500", "--out", str(tmp_path)]) == 0
    plot = (tmp_path / "cckit-fig10.svg").read_text()
    assert "<!-- share of calls (%) -->" in plot
    assert plot.count("<!-- published -->") == 1
    assert "lines, 1 context = 16 contexts" in plot


def test_titles_of_plots_are_sentences() -> None:
    for name, experiment in EXPERIMENTS.items():
        if experiment.axis:
            assert experiment.headline.endswith("."), name
            assert experiment.headline[0].isupper(), name
            assert len(experiment.headline.split()) > 7, name


def test_omissions_are_printed_with_numbers_and_plot(tmp_path: Path, cohkit_command: Command) -> None:
    for name, experiment in EXPERIMENTS.items():
        assert bool(experiment.omissions) == bool(experiment.axis), name
    completed = cohkit_command("reproduce", "cckit-table2", "--accesses", 300, "--out", tmp_path)
    expected_note = f"Left out: {EXPERIMENTS['cckit-table2'].omissions}."
    assert f"\n{expected_note}\n" in completed.stdout
    assert f"<!-- {expected_note} -->" in (tmp_path / "cckit-table2.svg").read_text()


def test_plots_without_matplotlib_report_the_missing_package(tmp_path: Path) -> None:
    hide = "import importlib.util as u, sys; u.find_spec = lambda name: None; from cohkit.__main__ import main; "
    arguments = ["reproduce", "cckit-fig6", "--out", str(tmp_path)]
    completed = subprocess.run(
        [sys.executable, "-c", f"{hide}sys.exit(main({arguments!r}))"], capture_output=True, text=True, check=False
    )
    assert (completed.returncode, completed.stdout) == (4, "")
    assert completed.stderr == (
        "error: plots need matplotlib, which is not installed: `pip install 'cohkit[plots]'` adds it\n"
    )


@pytest.mark.parametrize(
    ("arguments", "expected_message"),
    [
        (["--accesses", "0"], "must be at least 1"),
        (["--accesses", "-5"], "'-5' is not a number from 0"),
        (["--threads", "two"], "'two' is not a number from 0"),
        (["--seed", "1e3"], "'1e3' is not a number from 0"),
        (["--seed", "0", "--seed", "1"], "argument --seed: this option cannot be given twice"),
        (["--accesses", "10", "--accesses", "10"], "argument --accesses: this option cannot be given twice"),
    ],
)
def test_invalid_option_values_are_rejected(
    arguments: list[str], expected_message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "cckit-fig6", *arguments])
    assert ended.value.code == 2
    assert expected_message in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_bar_appears_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    elsewhere, terminal = io.StringIO(), Terminal()
    for stream in (elsewhere, terminal):
        now = iter([0.0, 10.0, 10.05, 20.0])
        monkeypatch.setattr(time, "monotonic", lambda now=now: next(now))
        with Bar("work", stream) as bar:
            for done in (50, 51, 100) if stream is terminal else ():
                bar(done, 100)
    assert elsewhere.getvalue() == ""
    frames = terminal.getvalue().split("\r\033[K")
    assert frames == ["", f"work {'█' * 20}{'░' * 20}  50%, 10 s left", f"work {'█' * 40} 100%, 0 s left", ""]
