"""Reports: one page with the output of several commands, tested in a browser."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import statistics
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

import cohkit
from cohkit.pages.reading import parts
from cohkit.pages.shapes import misfit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conftest import Command
    from playwright.sync_api import Browser, Locator, Page

# Sizes of screens, in pixels.
PHONE, DESKTOP = {"width": 390, "height": 800}, {"width": 1400, "height": 900}
WIDE_SCREEN = {"width": 2560, "height": 1300}
# All combinations of screens and colour schemes.
BROWSER_CONTEXTS = [
    {"viewport": viewport, **scheme}
    for viewport in (PHONE, DESKTOP, WIDE_SCREEN)
    for scheme in ({}, {"color_scheme": "dark"})
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, cohkit_command: Command, root: Path) -> Path:
    """Make a folder with a result of every kind."""
    folder = tmp_path_factory.mktemp("results")
    text = (root / "protocols/msi.coh").read_text()
    shutil.copy(root / "protocols/msi.coh", folder)
    shutil.copy(root / "protocols/msi-policy.coh", folder)
    # Fault: a cache keeps its shared copy after an invalidation.
    faulty_text = re.sub(r"(?m)^(\s*S .*\| Inv .*)\| I$", r"\1| S", text)
    assert faulty_text != text
    faulty_file = tmp_path_factory.mktemp("broken") / "msi.coh"
    faulty_file.write_text(faulty_text)
    for name, *words in [
        ("broken", "check", faulty_file, "--remotes", 2),
        ("msi", "check", "protocols/msi.coh", "--remotes", 2, "--coverage"),
        ("mesi", "table", "protocols/mesi.coh", "--agent", "remote"),
        ("litmus", "litmus", "SB", "--protocol", "protocols/msi.coh", "--chart"),
        ("sim", "sim", "enzian-dc-bram", "random-read", "--region", "1MiB", "--explain"),
        ("play", "play", "enzian-cohkit", "rpc", "--stop-after", "20us"),
        ("eci-home", "reproduce", "eci-home"),
        ("fig8", "reproduce", "cckit-fig8", "--accesses", 200),
    ]:
        completed = cohkit_command(*words, "--json")
        assert completed.returncode in (0, 1), completed.stderr
        (folder / f"{name}.json").write_text(completed.stdout)
    # Two points at the same place.
    points = json.loads((folder / "fig8.json").read_text())
    by_name = {point["name"]: point for point in points}
    by_name["1, without prefetcher"]["ours"] = by_name["1, with prefetcher"]["ours"]
    (folder / "fig8.json").write_text(json.dumps(points))
    # The largest number of bars of any figure, without running its experiment, which takes a minute.
    like = json.loads((folder / "fig8.json").read_text())[0]
    bars = [
        {**like, "experiment": "cord-fig13", "name": f"{program} {by}, CXL, time", "key": f"{program}.{by}", "ours": at}
        for at, program in enumerate(["pr", "sssp", "pad", "tqh", "hsti", "trns", "mocfe", "cmc2d", "bigfft", "cr"], 1)
        for by in ("so", "mp", "wb")
    ]
    (folder / "bars.json").write_text(json.dumps(bars))
    options = ["random-read", "--accesses", 200, "--sweep", "link.latency=60ns,100ns", "--sweep", "outstanding=1,4"]
    completed = cohkit_command("sim", "enzian-dc-ddr", *options, "--out", folder / "sweep")
    assert completed.returncode == 0, completed.stderr
    return folder


@pytest.fixture
def open_report(
    browser: Browser, browser_messages: Callable[..., list[str]], results: Path, cohkit_command: Command
) -> Iterator[Callable[..., Page]]:
    """Open the report; console messages, errors and requests of the page fail the test."""
    page_file = results / "report.html"
    if not page_file.exists():
        completed = cohkit_command("report", results)
        assert (completed.returncode, completed.stdout) == (0, f"report: {page_file}\n"), completed.stderr
    messages: list[list[str]] = []
    contexts = []

    def open_context(place: str = "", **context_options: Any) -> Page:
        context = browser.new_context(**{"viewport": DESKTOP, **context_options})
        contexts.append(context)
        page = context.new_page()
        messages.append(browser_messages(page, page_file.as_uri()))
        page.goto(f"{page_file.as_uri()}{place}")
        return page

    yield open_context
    for context in contexts:
        context.close()
    assert [words for of_page in messages for words in of_page] == []


@pytest.mark.needs("chromium")
def test_counterexample_steps_show_the_state_of_every_agent(
    open_report: Callable[..., Page], follow: Callable[[Locator], None]
) -> None:
    """Buttons, keys and sentences select a step; the states, messages in flight and the marked step follow."""
    page = open_report()
    follow(page.locator("nav a:text-is('broken')"))
    assert page.inner_text(".violation").startswith("single writer: ")
    # Chart and list of sentences are visible, and the chart is as wide as its frame.
    assert page.locator(".drawn svg").bounding_box()["y"] < DESKTOP["height"] / 2  # type: ignore[index]
    assert page.locator(".story").bounding_box()["y"] < DESKTOP["height"]  # type: ignore[index]
    frame, chart = page.locator(".drawn").bounding_box(), page.locator(".drawn svg").bounding_box()
    assert frame is not None
    assert chart is not None
    assert 0.9 * frame["width"] < chart["width"] <= frame["width"]
    states = page.locator(".states tr")

    def shown_states() -> dict[str, str]:
        return {str(agent): str(state) for agent, state in (row.split("\t") for row in states.all_inner_texts())}

    # The chart equals that of the command.
    assert shown_states()["directory"].startswith("M owner=")
    page.get_by_role("button", name="to the start").click()
    assert shown_states() == {"cache 0": "I", "cache 1": "I", "directory": "I"}
    assert page.get_by_role("button", name="a step back").is_disabled()
    for _ in range(3):
        page.get_by_role("button", name="a step on").click()
    assert shown_states() == {"cache 0": "IS_D", "cache 1": "I", "directory": "I"}
    assert page.inner_text(".said").startswith("3 of ")
    assert page.locator(".beside li").all_inner_texts() == ["GetS: cache 0 \u2192 directory"]
    assert page.locator(".drawn g.now").get_attribute("data-step") == "2"
    # The list has a sentence with a link for each step.
    story = page.locator(".story li")
    assert story.nth(2).get_attribute("class") == "now"
    assert story.all_inner_texts()[:3] == ["cache 0: load", "cache 0 sends GetS to directory", "cache 0 enters IS_D"]
    story.nth(5).locator("button").click()
    assert page.inner_text(".said").startswith("6 of ")
    page.get_by_role("button", name="to the start").click()
    for _ in range(3):
        page.get_by_role("button", name="a step on").click()
    # The same with keys.
    page.focus(".drawn")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text(".said").startswith("2 of ")
    page.keyboard.press("End")
    steps = page.locator(".drawn g[data-step]").count()
    assert page.inner_text(".said").startswith(f"{steps} of {steps}")
    last_states = shown_states()
    assert last_states["directory"].startswith("M owner=")
    assert sorted([last_states["cache 0"][0], last_states["cache 1"][0]]) == ["M", "S"], last_states


@pytest.mark.needs("chromium")
def test_tables_are_filtered_and_lead_to_states_and_to_the_text(
    open_report: Callable[..., Page], root: Path, follow: Callable[[Locator], None]
) -> None:
    """Filter rows by words, by state and by links, and follow a row's link to its line of the text."""
    page = open_report()
    follow(page.locator("nav a:text-is('msi')"))
    table = cohkit.table(cohkit.shipped("msi"), agent="remote")
    rows = page.locator("table.rows tbody tr")
    assert rows.count() == len(table["rows"])
    page.get_by_label("Filter").fill("fwd data")
    sought = [row for row in table["rows"] if "Fwd" in row["event"] and any("Data" in a for a in row["actions"])]
    assert 0 < rows.count() == len(sought) < len(table["rows"])
    page.get_by_role("button", name="All rows").click()
    page.locator("svg [data-state='IM_AD']").click()
    assert set(page.locator("table.rows tbody td:first-child").all_inner_texts()) == {"IM_AD"}
    # A next state is a link to its rows.
    page.locator("table.rows tbody td:nth-child(4) button", has_text=re.compile("^M$")).first.click()
    assert set(page.locator("table.rows tbody td:first-child").all_inner_texts()) == {"M"}
    # Checks in the same folder contribute counts.
    taken_counts = page.locator("table.rows tbody td:last-child").all_inner_texts()
    assert any(cell and cell != "never" for cell in taken_counts)
    [row] = [row for row in table["rows"] if (row["state"], row["event"]) == ("M", "evict")]
    page.locator("table.rows tbody tr", has_text="evict").locator("a").click()
    current_line = page.inner_text(".source .here")
    assert current_line == (root / "protocols/msi.coh").read_text().split("\n")[row["line"] - 1]
    assert current_line.split("|")[1].strip() == "evict"


@pytest.mark.needs("chromium")
@pytest.mark.parametrize(
    "context_options",
    BROWSER_CONTEXTS,
    ids=lambda options: f"{options['viewport']['width']}-{options.get('color_scheme', 'light')}",
)
def test_every_part_fits_all_screens_and_colour_schemes(
    open_report: Callable[..., Page],
    results: Path,
    context_options: dict[str, Any],
    overflowing_elements: Callable[[Page], list[str]],
) -> None:
    """Visit all pages: nothing exceeds the screen, and numbers and nouns are formatted as intended."""
    page = open_report(**context_options)
    places = [str(link.get_attribute("href")) for link in page.locator("nav a").all()]
    # All parts, the overview, and the list of experiments.
    assert len(places) == len(parts(results)) + 2
    for place in places:
        page.evaluate("place => { location.hash = place; }", place)
        page.locator(f"main[data-place='{place}']").wait_for(state="attached")
        assert page.locator("nav a[aria-current]").get_attribute("href") == place
        text = page.inner_text("main")
        assert len(text) > 40, place
        # Wide elements scroll within their frames.
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), place
        assert overflowing_elements(page) == [], place
        # Plots fill their frames.
        for plot in page.locator("main .canvas").all():
            frame, svg = plot.bounding_box(), plot.locator("svg").bounding_box()
            assert frame is not None
            assert svg is not None
            assert abs(frame["width"] - svg["width"]) < 2, place
        # Single items are in the singular, and fractions have three significant digits.
        assert not re.search(
            r"\b1 (systems|experiments|numbers|tests|rows|steps|outcomes|states|transitions)\b", text
        ), place
        for digits in re.findall(r"(?<![\d.])\d+\.\d+(?![\d.])", text):
            assert len(digits.replace(".", "").lstrip("0")) <= 3, (place, digits)
        assert "kept" not in page.locator("main td").all_inner_texts(), place
    colour = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (colour == "rgb(255, 255, 255)") == ("color_scheme" not in context_options)


@pytest.mark.needs("chromium")
def test_overview_names_verdicts_errors_and_commands(
    open_report: Callable[..., Page], results: Path, follow: Callable[[Locator], None]
) -> None:
    """The tables of the first page have the values of the result files."""
    page = open_report()

    def table(label: str) -> list[dict[str, str]]:
        """Return the rows of the table with this label, by column."""
        locator = page.get_by_role("region", name=label).locator("table")
        heads = locator.locator("th").all_inner_texts()
        return [
            dict(zip(heads, row.locator("td").all_inner_texts(), strict=True))
            for row in locator.locator("tbody tr").all()
        ]

    systems = table("systems and their verdicts")
    verdicts = [verdict for file in ("broken", "msi") for verdict in json.loads((results / f"{file}.json").read_text())]
    assert [row["verdict"] for row in systems] == ["violated", "verified"]
    assert [row["first violated property"] for row in systems] == ["single writer", ""]
    assert [row["states"] for row in systems] == [str(verdict["states"]) for verdict in verdicts]
    assert all(re.fullmatch(r"[\d.]+ (ms|s|min)", row["time"]) for row in systems), systems
    # The worst and the median error, and a thumbnail, of each experiment.
    rows = json.loads((results / "eci-home.json").read_text())
    errors = sorted(abs(row["error"]) for row in rows if row["error"] is not None)
    cards = page.locator(".cards li")
    assert cards.locator("svg.thumbnail").count() == cards.count() == 3
    card = cards.filter(has_text="eci-home").inner_text()
    assert f"worst error {errors[-1]:.1%}".replace("%", " %") in card.replace("\n", " ")
    assert f"median {statistics.median(errors):.1%}".replace("%", " %") in card.replace("\n", " ")
    # Each command can be copied and executed.
    commands = {row["file"]: row for row in table("commands and versions")}
    assert commands["msi.json"]["command"] == "cohkit check protocols/msi.coh --remotes 2 --coverage --json"
    assert commands["eci-home.json"]["command"] == "cohkit reproduce eci-home --json"
    assert commands["sweep"]["command"].startswith("cohkit sweep sim enzian-dc-ddr random-read --accesses 200 --sweep")
    assert {row["cohkit"] for row in commands.values()} == {cohkit.__version__}
    follow(page.locator("main td a", has_text="msi remotes_2").first)
    assert "violated" in page.inner_text("main h2")


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("viewport", [{"width": 1400, "height": 900}, {"width": 2560, "height": 1300}])
@pytest.mark.parametrize("agent", [0, 1])
def test_edges_of_state_diagrams_name_their_events(
    open_report: Callable[..., Page], viewport: dict[str, int], agent: int
) -> None:
    """Each pair of states has one edge with all its events, and labels and boxes do not overlap."""
    page = open_report(viewport=viewport)
    page.locator("nav a:text-is('msi')").first.click()
    place = str(page.locator("nav a:text-is('msi')").first.get_attribute("href"))
    page.evaluate("place => { location.hash = place; }", f"{place}/table-{agent}")
    page.locator(f"main[data-place='{place}/table-{agent}']").wait_for(state="attached")
    controller = cohkit.table(cohkit.shipped("msi"), agent="remote" if agent == 0 else "home")
    expected: dict[str, set[str]] = {}
    for row in controller["rows"]:
        if row["next"] not in (None, row["state"]):
            expected.setdefault(f"{row['state']} {row['next']}", set()).add(row["event"])
    edges = page.locator("svg [data-edge]")
    boxes = []
    for edge in edges.all():
        events = expected.pop(str(edge.get_attribute("data-edge")))
        words = edge.locator("tspan").all_text_contents()
        assert set(words) == events or (len(events) > 3 and words[-1] == f"and {len(events) - 2} more")
        boxes.append((words, edge.locator("text").bounding_box()))
    assert expected == {}
    boxes += [
        ([str(node.get_attribute("data-state"))], node.bounding_box()) for node in page.locator("svg .node").all()
    ]
    for at, (words, box) in enumerate(boxes):
        for others, other in boxes[:at]:
            assert box is not None
            assert other is not None
            across = min(box["x"] + box["width"], other["x"] + other["width"]) - max(box["x"], other["x"])
            down = min(box["y"] + box["height"], other["y"] + other["height"]) - max(box["y"], other["y"])
            assert across < 3 or down < 3, (words, others)


@pytest.mark.needs("chromium")
def test_axes_have_units_and_one_series_has_no_legend(
    open_report: Callable[..., Page], follow: Callable[[Locator], None]
) -> None:
    """Select other axes of a sweep: titles, units and legend follow."""
    page = open_report()
    follow(page.locator("nav a:text-is('sweep')"))
    assert {"link.latency (ns)", "latency mean (\u00b5s)"} <= set(page.locator("svg .label").all_text_contents())
    assert page.locator(".legend span").all_inner_texts() == ["outstanding 1", "outstanding 4"]
    page.get_by_label("a line for each").select_option("")
    assert page.locator(".legend").count() == 0
    page.get_by_label("Show").select_option("statistics.bandwidth_bytes_per_s")
    assert "bandwidth (GB/s)" in page.locator("svg .label").all_text_contents()
    follow(page.locator("nav a:text-is('sim')"))
    assert "mean access (ns)" in page.locator("svg .label").all_text_contents()
    assert page.locator("main svg.plot").count() == 2
    assert page.locator(".legend").count() == 0
    # Values have the units of their names.
    values = dict(
        row.split("\t") for row in page.get_by_role("region", name="statistics").locator("tbody tr").all_inner_texts()
    )
    assert re.fullmatch(r"[\d.]+ [MG]B/s", values["bandwidth"])
    assert re.fullmatch(r"[\d.]+ ns", values["latency mean"])


@pytest.mark.needs("chromium")
def test_plot_points_have_descriptions(
    open_report: Callable[..., Page], results: Path, follow: Callable[[Locator], None]
) -> None:
    """Pointer and focus show a point's description, also of points at the same place."""
    page = open_report()
    follow(page.locator("nav a:text-is('cckit-fig8')"))
    rows = json.loads((results / "fig8.json").read_text())
    marks = page.locator("svg .mark")
    assert marks.count() == sum(row["name"][0].isdigit() for row in rows)
    published = [row for row in rows if not row["name"][0].isdigit() and row["published"] is not None]
    assert page.locator("svg .level").count() == len(published) > 0
    points = [row for row in rows if row["name"][0].isdigit()]
    marks.last.hover()
    tip = page.inner_text(".tip")
    assert points[-1]["name"] in tip
    assert f"ours: {points[-1]['ours']:.3g}" in tip
    # With keys too; overlapping points share a description.
    marks.first.focus()
    tip = page.inner_text(".tip")
    assert {"1, with prefetcher", "1, without prefetcher"} <= set(tip.split("\n")), tip
    follow(page.locator("nav a:text-is('sweep')"))
    page.get_by_label("Show").select_option("statistics.load_latency_p50_ns")
    assert page.locator("svg .mark").count() == 4
    page.locator("svg .mark").first.focus()
    assert page.inner_text(".tip").startswith("link.latency 60 ns\noutstanding 1\nstatistics.load_latency_p50_ns: ")


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE])
@pytest.mark.parametrize("name", ["cord-fig13", "cckit-fig8", "eci-home"])
def test_plot_labels_do_not_overlap(open_report: Callable[..., Page], name: str, viewport: dict[str, int]) -> None:
    """Regression: the names of thirty bars overlapped below them."""
    page = open_report(f"#/experiment-{name}", viewport=viewport)
    plots = page.locator("main svg")
    assert (plots.count() > 0) == (name != "eci-home")
    for plot in plots.all():
        plot_box = plot.bounding_box()
        label_boxes = [(label.text_content(), label.bounding_box()) for label in plot.locator(".label").all()]
        # A box has the height of a line; letters have half of it.
        labels = [
            (words, {"x": (box["x"], box["width"]), "y": (box["y"] + box["height"] / 4, box["height"] / 2)})
            for words, box in label_boxes
            if words and box
        ]
        assert plot_box
        assert len(labels) > 4
        assert name != "cord-fig13" or {"pr so", "bigfft wb"} <= {words for words, _ in labels}
        for index, (words, box) in enumerate(labels):
            (low, size), room = box["x"], plot_box["width"]
            assert plot_box["x"] - 1 <= low, words
            assert low + size <= plot_box["x"] + room + 1, words
            for other_words, other_box in labels[:index]:
                is_separate = [
                    box[axis][0] + box[axis][1] <= other_box[axis][0]
                    or other_box[axis][0] + other_box[axis][1] <= box[axis][0]
                    for axis in ("x", "y")
                ]
                assert any(is_separate), (words, other_words)


@pytest.mark.needs("chromium")
def test_rows_that_were_never_taken_come_first(
    open_report: Callable[..., Page], results: Path, follow: Callable[[Locator], None]
) -> None:
    [verdict] = json.loads((results / "msi.json").read_text())
    never = [row for row in verdict["coverage"]["rows"] if row["taken"] == 0]
    assert never
    page = open_report()
    follow(page.locator("nav a[href^='#/check']:text-is('msi')"))
    row_texts = page.locator("table.coverage tbody tr").all_inner_texts()
    assert len(row_texts) == len(verdict["coverage"]["rows"])
    assert [row.split("\t")[3] == "never" for row in row_texts] == [
        index < len(never) for index in range(len(row_texts))
    ]


def test_documented_commands_print_the_shown_output(root: Path, run_documented_commands: Callable[[str], int]) -> None:
    assert run_documented_commands((root / "docs/reports.md").read_text()) == 2


def test_result_texts_are_escaped(tmp_path: Path) -> None:
    verdicts = [dict(verdict) for verdict in cohkit.check("msi", remotes=1)]
    verdicts[0]["notes"] = ["</script><script>alert(1)</script>"]
    (tmp_path / "check.json").write_text(json.dumps(verdicts))
    page = cohkit.report(tmp_path)
    assert "<script>alert" not in page
    assert page.count("</script>") == 2


def input_error_of(folder: Path) -> str:
    """Return the message of the error of a report on this folder."""
    with pytest.raises(cohkit.InputError) as error_info:
        cohkit.report(folder)
    return str(error_info.value)


def test_report_is_written_through_links_and_into_pipes(tmp_path: Path, cohkit_command: Command) -> None:
    """Regression: a device and a link were replaced by files."""
    folder, page, link, pipe = (tmp_path / name for name in ("results", "page.html", "link.html", "pipe"))
    for inner in ("folder.json", "folder.coh"):
        (folder / inner).mkdir(parents=True)
    (folder / "msi.coh").write_text(cohkit.shipped("msi").text)
    link.symlink_to(page)
    os.mkfifo(pipe)
    assert cohkit_command("report", folder, "--out", link).returncode == 0
    assert link.is_symlink()
    # The writer can open a pipe only if there is a reader, and a page exceeds the pipe's capacity.
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        assert cohkit_command("report", folder, "--out", pipe).returncode == 0
        assert reader.communicate()[0] == page.read_bytes()
    assert pipe.is_fifo()
    completed = cohkit_command("report", folder, "--out", tmp_path)
    assert (completed.returncode, completed.stderr) == (2, f"error: {tmp_path}: Is a directory\n")


def test_unsupported_file_is_reported_with_the_expectation(tmp_path: Path, cohkit_command: Command) -> None:
    """Empty folders and invalid files are errors, and no report is written."""
    assert "this folder contains nothing for a report; expected the output of `cohkit check`" in input_error_of(
        tmp_path
    )
    assert "no such folder" in input_error_of(tmp_path / "none")
    file = tmp_path / "one.json"
    for text, expected_message in [
        ("{", "this is not JSON: Expecting property name"),
        ("[" * 100_000, "nested too deeply"),
        ("{}", "reports do not support this file; expected the output of `cohkit check`"),
        ("[]", "reports do not support this file"),
        (
            '[{"experiment": 1, "published": 2, "ours": 3}]',
            "`cohkit reproduce` with `--json`, but at `0.experiment` a",
        ),
    ]:
        file.write_text(text)
        assert expected_message in input_error_of(tmp_path)
        assert str(file) in input_error_of(tmp_path)
    file.write_bytes(b"[\xff]")
    assert "byte 1 is not UTF-8" in input_error_of(tmp_path)
    completed = cohkit_command("report", tmp_path)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert not (tmp_path / "report.html").exists()
    file.unlink()
    (tmp_path / "wrong.coh").write_text("protocol p { line 64; channels { up } }")
    with pytest.raises(cohkit.TextError):
        cohkit.report(tmp_path)


def test_sweep_folder_is_a_report_input(results: Path) -> None:
    [part] = parts(results / "sweep")
    assert (part.kind, part.file) == ("sweep", "sweep")
    assert part == next(part for part in parts(results) if part.kind == "sweep")


def test_modified_result_is_reported_with_its_location(tmp_path: Path, results: Path) -> None:
    """Each change makes a valid result invalid; the message has the path of the wrong value."""
    valid_result = json.loads((results / "broken.json").read_text())

    def error_after_change(*path: str | int, to: Any) -> str:
        """Set the value at this path and return the message."""
        value = copy.deepcopy(valid_result)
        inner = value
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = to
        (tmp_path / "one.json").write_text(json.dumps(value))
        return input_error_of(tmp_path)

    chart = (0, "counterexample", "sequences", 0)
    assert 'at `0.outcome` one of "verified", "violated", "undecided" was expected, not "maybe"' in error_after_change(
        0, "outcome", to="maybe"
    )
    assert "at `0.counterexample.sequences.0.agents.1` a text was expected, not 7" in error_after_change(
        *chart, "agents", 1, to=7
    )
    assert "step 0 of a message sequence names an agent outside its 4" in error_after_change(
        *chart, "steps", 0, "agent", to=4
    )
    assert "at `0` the key `protocol` was expected" in error_after_change(
        0, to={"outcome": "verified", "properties": []}
    )
    assert "this is not a message sequence" in error_after_change(*chart, "steps", 0, "action", to={"kind": "does"})


def test_compositions_are_omitted_with_a_note(root: Path, tmp_path: Path, cohkit_command: Command) -> None:
    (tmp_path / "both.coh").write_text((root / "protocols/eci-both.coh").read_text())
    assert "this folder contains nothing for a report" in input_error_of(tmp_path)
    (tmp_path / "eci.coh").write_text((root / "protocols/eci.coh").read_text())
    assert [part.file for part in parts(tmp_path)] == ["eci.coh"]
    completed = cohkit_command("report", str(tmp_path))
    assert completed.returncode == 0
    assert completed.stderr == "note: both.coh is a composition and has no tables; the specifications it uses have\n"


def test_some_rows_of_an_experiment_are_a_table_without_plots(tmp_path: Path, results: Path) -> None:
    rows = json.loads((results / "fig8.json").read_text())
    (tmp_path / "some.json").write_text(json.dumps([row for row in rows if not row["name"][0].isdigit()]))
    assert "at best, with prefetcher" in cohkit.report(tmp_path)


@pytest.mark.needs("chromium")
def test_single_items_are_counted_in_the_singular(
    tmp_path: Path, results: Path, browser: Browser, browser_messages: Callable[..., list[str]]
) -> None:
    """Reports on results with one number and one outcome."""
    for name in ("eci-home", "litmus", "broken"):
        [first, *_] = json.loads((results / f"{name}.json").read_text())
        if "outcomes" in first:
            first["outcomes"] = first["outcomes"][:1]
        (tmp_path / f"{name}.json").write_text(json.dumps([first]))
    file = tmp_path / "report.html"
    file.write_text(cohkit.report(tmp_path))
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    messages = browser_messages(page, file.as_uri())
    page.goto(file.as_uri())
    assert "of 1 published number\n" in page.inner_text(".cards") + "\n"
    for place, words in [
        ("experiment-eci-home", "of 1 published number."),
        ("litmus-1", "1 outcome\n"),
    ]:
        page.goto(f"{file.as_uri()}#/{place}")
        page.locator(f"main[data-place='#/{place}']").wait_for(state="attached")
        assert words in page.inner_text("main")
    assert messages == []


@pytest.mark.parametrize(
    ("value", "hint", "expected_message"),
    [
        (1, float, None),
        (True, int, "at `the top` a whole number was expected, not true"),
        (None, int | None, None),
        ("x", int | None, 'at `the top` a whole number was expected, not "x"'),
        ([1, "2"], list[int], 'at `1` a whole number was expected, not "2"'),
        ({"a": [{"b": None}]}, dict[str, list[dict[str, str]]], "at `a.0.b` a text was expected, not null"),
        ({"states": 1}, cohkit.types.Sizes, "at `the top` the key `transitions` was expected"),
    ],
)
def test_values_are_validated_against_types(value: object, hint: Any, expected_message: str | None) -> None:
    assert misfit(value, hint) == expected_message
