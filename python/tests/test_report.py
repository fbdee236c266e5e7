"""A report is one page that shows what commands wrote; it is looked at in a browser."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
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

PHONE, DESK = {"width": 390, "height": 800}, {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, cohkit_command: Command, root: Path) -> Path:
    """Make a folder with something of every kind."""
    folder = tmp_path_factory.mktemp("results")
    text = (root / "protocols/msi.coh").read_text()
    shutil.copy(root / "protocols/msi.coh", folder)
    shutil.copy(root / "protocols/msi-policy.coh", folder)
    # A cache that is told to invalidate its shared copy keeps it.
    broken = re.sub(r"(?m)^(\s*S .*\| Inv .*)\| I$", r"\1| S", text)
    assert broken != text
    other = tmp_path_factory.mktemp("broken") / "msi.coh"
    other.write_text(broken)
    for name, *words in [
        ("broken", "check", other, "--remotes", 2),
        ("msi", "check", "protocols/msi.coh", "--remotes", 2, "--coverage"),
        ("mesi", "table", "protocols/mesi.coh", "--agent", "remote"),
        ("litmus", "litmus", "SB", "--protocol", "protocols/msi.coh", "--chart"),
        ("sim", "sim", "enzian-dc-bram", "random-read", "--region", "1MiB", "--explain"),
        ("play", "play", "enzian-cohkit", "rpc", "--time", "20us"),
        ("eci-home", "reproduce", "eci-home"),
        ("fig8", "reproduce", "cckit-fig8", "--accesses", 200),
    ]:
        done = cohkit_command(*words, "--json")
        assert done.returncode in (0, 1), done.stderr
        (folder / f"{name}.json").write_text(done.stdout)
    # As many bars as a figure has anywhere, without the minute that its numbers take.
    like = json.loads((folder / "fig8.json").read_text())[0]
    bars = [
        {**like, "experiment": "cord-fig13", "name": f"{program} {by}, CXL, time", "key": f"{program}.{by}", "ours": at}
        for at, program in enumerate(["pr", "sssp", "pad", "tqh", "hsti", "trns", "mocfe", "cmc2d", "bigfft", "cr"], 1)
        for by in ("so", "mp", "wb")
    ]
    (folder / "bars.json").write_text(json.dumps(bars))
    options = ["random-read", "--accesses", 200, "--sweep", "link.latency=60ns,100ns", "--sweep", "outstanding=1,4"]
    done = cohkit_command("sim", "enzian-dc-ddr", *options, "--out", folder / "sweep")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def opened(
    browser: Browser, complaints: Callable[..., list[str]], results: Path, cohkit_command: Command
) -> Iterator[Callable[..., Page]]:
    """Open the report; whatever the page complains of fails the test, and so does a request for anything else."""
    page_file = results / "report.html"
    if not page_file.exists():
        done = cohkit_command("report", results)
        assert (done.returncode, done.stdout) == (0, f"report: {page_file}\n"), done.stderr
    said: list[list[str]] = []
    contexts = []

    def open_at(place: str = "", **how: Any) -> Page:
        context = browser.new_context(**{"viewport": DESK, **how})
        contexts.append(context)
        page = context.new_page()
        said.append(complaints(page, page_file.as_uri()))
        page.goto(f"{page_file.as_uri()}{place}")
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert [words for of_page in said for words in of_page] == []


@pytest.mark.needs("chromium")
def test_a_counterexample_is_stepped_through_with_the_state_of_every_agent(
    opened: Callable[..., Page], follow: Callable[[Locator], None]
) -> None:
    page = opened()
    follow(page.locator("nav a:text-is('broken')"))
    follow(page.locator("main table a"))
    assert "single writer" in page.inner_text("main")
    states = page.locator(".states tr")

    def told() -> dict[str, str]:
        return {str(agent): str(state) for agent, state in (row.split("\t") for row in states.all_inner_texts())}

    # The chart is the one that the command tells.
    assert told()["directory"].startswith("M owner=")
    page.get_by_role("button", name="to the start").click()
    assert told() == {"cache 0": "I", "cache 1": "I", "directory": "I"}
    assert page.get_by_role("button", name="a step back").is_disabled()
    for _ in range(3):
        page.get_by_role("button", name="a step on").click()
    assert told() == {"cache 0": "IS_D", "cache 1": "I", "directory": "I"}
    assert page.inner_text(".said").startswith("3 of ")
    assert page.locator(".beside li").all_inner_texts() == ["GetS: cache 0 \u2192 directory"]
    assert page.locator(".drawn g.now").get_attribute("data-step") == "2"
    # The same by keys.
    page.focus(".drawn")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text(".said").startswith("2 of ")
    page.keyboard.press("End")
    steps = page.locator(".drawn g[data-step]").count()
    assert page.inner_text(".said").startswith(f"{steps} of {steps}")
    last = told()
    assert last["directory"].startswith("M owner=")
    assert sorted([last["cache 0"][0], last["cache 1"][0]]) == ["M", "S"], last


@pytest.mark.needs("chromium")
def test_tables_are_filtered_and_lead_to_states_and_to_the_text(
    opened: Callable[..., Page], root: Path, follow: Callable[[Locator], None]
) -> None:
    page = opened()
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
    # A next state leads to its own rows.
    page.locator("table.rows tbody td:nth-child(4) button", has_text=re.compile("^M$")).first.click()
    assert set(page.locator("table.rows tbody td:first-child").all_inner_texts()) == {"M"}
    # Checks in the same folder have counted.
    taken = page.locator("table.rows tbody td:last-child").all_inner_texts()
    assert any(cell and cell != "never" for cell in taken)
    [row] = [row for row in table["rows"] if (row["state"], row["event"]) == ("M", "evict")]
    page.locator("table.rows tbody tr", has_text="evict").locator("a").click()
    here = page.inner_text(".source .here")
    assert here == (root / "protocols/msi.coh").read_text().split("\n")[row["line"] - 1]
    assert here.split("|")[1].strip() == "evict"


@pytest.mark.needs("chromium")
def test_every_part_is_shown_on_desks_and_phones_by_day_and_night(opened: Callable[..., Page], results: Path) -> None:
    for how in ({"viewport": DESK, "color_scheme": "dark"}, {"viewport": PHONE, "has_touch": True}):
        page = opened(**how)
        places = [str(link.get_attribute("href")) for link in page.locator("nav a").all()]
        # All parts, the overview, and the list of experiments.
        assert len(places) == len(parts(results)) + 2
        for place in places:
            page.evaluate("place => { location.hash = place; }", place)
            page.locator(f"main[data-place='{place}']").wait_for(state="attached")
            assert page.locator("nav a[aria-current]").get_attribute("href") == place
            assert len(page.inner_text("main")) > 40, place
            # Wide things scroll within themselves.
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), place
        colour = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert (colour == "rgb(255, 255, 255)") == (how["viewport"] == PHONE)


@pytest.mark.needs("chromium")
def test_points_of_plots_say_what_they_are(
    opened: Callable[..., Page], results: Path, follow: Callable[[Locator], None]
) -> None:
    page = opened()
    follow(page.locator("nav a:text-is('cckit-fig8')"))
    rows = json.loads((results / "fig8.json").read_text())
    marks = page.locator("svg .mark")
    assert marks.count() == sum(row["name"][0].isdigit() for row in rows)
    assert page.locator("svg .level").count() == sum(not row["name"][0].isdigit() for row in rows) > 0
    points = [row for row in rows if row["name"][0].isdigit()]
    marks.last.hover()
    told = page.inner_text(".tip")
    assert points[-1]["name"] in told
    assert f"ours: {points[-1]['ours']:.3g}" in told
    # By keys too; points on top of each other are told together.
    marks.first.focus()
    told = page.inner_text(".tip")
    assert {"1, with prefetcher", "1, without prefetcher"} <= set(told.split("\n")), told
    follow(page.locator("nav a:text-is('sweep')"))
    page.get_by_label("Show").select_option("statistics.latency_p50_ns")
    assert page.locator("svg .mark").count() == 4
    page.locator("svg .mark").first.focus()
    assert page.inner_text(".tip").startswith("link.latency 60ns\noutstanding 1\nstatistics.latency_p50_ns: ")


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("viewport", [DESK, PHONE])
@pytest.mark.parametrize("name", ["cord-fig13", "cckit-fig8", "eci-home"])
def test_labels_of_plots_are_apart(opened: Callable[..., Page], name: str, viewport: dict[str, int]) -> None:
    """Names of thirty bars stood below them, one over the other."""
    page = opened(f"#/experiment-{name}", viewport=viewport)
    plots = page.locator("main svg")
    assert (plots.count() > 0) == (name != "eci-home")
    for plot in plots.all():
        whole = plot.bounding_box()
        found = [(label.text_content(), label.bounding_box()) for label in plot.locator(".label").all()]
        # A box is a line high, of which letters have half.
        labels = [
            (words, {"x": (box["x"], box["width"]), "y": (box["y"] + box["height"] / 4, box["height"] / 2)})
            for words, box in found
            if words and box
        ]
        assert whole
        assert len(labels) > 4
        assert name != "cord-fig13" or {"pr so", "bigfft wb"} <= {words for words, _ in labels}
        for at, (words, box) in enumerate(labels):
            (low, size), room = box["x"], whole["width"]
            assert whole["x"] - 1 <= low, words
            assert low + size <= whole["x"] + room + 1, words
            for other, beside in labels[:at]:
                apart = [
                    box[way][0] + box[way][1] <= beside[way][0] or beside[way][0] + beside[way][1] <= box[way][0]
                    for way in ("x", "y")
                ]
                assert any(apart), (words, other)


@pytest.mark.needs("chromium")
def test_rows_that_were_never_taken_come_first(
    opened: Callable[..., Page], results: Path, follow: Callable[[Locator], None]
) -> None:
    [verdict] = json.loads((results / "msi.json").read_text())
    never = [row for row in verdict["coverage"]["rows"] if row["taken"] == 0]
    assert never
    page = opened()
    follow(page.locator("nav a[href^='#/check']:text-is('msi')"))
    follow(page.locator("main table a"))
    shown = page.locator("table.coverage tbody tr").all_inner_texts()
    assert len(shown) == len(verdict["coverage"]["rows"])
    assert [row.split("\t")[3] == "never" for row in shown] == [at < len(never) for at in range(len(shown))]


def test_commands_of_the_document_print_what_it_shows(root: Path, run_shown: Callable[[str], int]) -> None:
    assert run_shown((root / "docs/reports.md").read_text()) == 2


def test_texts_of_results_stay_texts(tmp_path: Path) -> None:
    verdicts = [dict(one) for one in cohkit.check("msi", remotes=1)]
    verdicts[0]["notes"] = ["</script><script>alert(1)</script>"]
    (tmp_path / "check.json").write_text(json.dumps(verdicts))
    page = cohkit.report(tmp_path)
    assert "<script>alert" not in page
    assert page.count("</script>") == 2


def refused(folder: Path) -> str:
    with pytest.raises(cohkit.InputError) as caught:
        cohkit.report(folder)
    return str(caught.value)


def test_a_page_goes_where_a_link_leads_and_into_what_is_no_file(tmp_path: Path, cohkit_command: Command) -> None:
    """A device had become a file, as had the link."""
    folder, page, link, pipe = (tmp_path / name for name in ("results", "page.html", "link.html", "pipe"))
    for inner in ("folder.json", "folder.coh"):
        (folder / inner).mkdir(parents=True)
    (folder / "msi.coh").write_text(cohkit.shipped("msi").text)
    link.symlink_to(page)
    os.mkfifo(pipe)
    assert cohkit_command("report", folder, "--out", link).returncode == 0
    assert link.is_symlink()
    # A reader that is there already lets the writer open it; a page does not fit into it otherwise.
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        assert cohkit_command("report", folder, "--out", pipe).returncode == 0
        assert reader.communicate()[0] == page.read_bytes()
    assert pipe.is_fifo()
    done = cohkit_command("report", folder, "--out", tmp_path)
    assert (done.returncode, done.stderr) == (2, f"error: {tmp_path}: Is a directory\n")


def test_a_file_that_is_none_is_named_with_what_was_expected(tmp_path: Path, cohkit_command: Command) -> None:
    assert "nothing in this folder goes into a report; expected was what `cohkit check`" in refused(tmp_path)
    assert "no such folder" in refused(tmp_path / "none")
    file = tmp_path / "one.json"
    for text, says in [
        ("{", "this is not JSON: Expecting property name"),
        ("[" * 100_000, "nested too deeply"),
        ("{}", "this is none of what a report is made of; expected was what `cohkit check`"),
        ("[]", "this is none of what a report is made of"),
        (
            '[{"experiment": 1, "published": 2, "ours": 3}]',
            "`cohkit reproduce` prints with `--json`, but at `0.experiment` a",
        ),
    ]:
        file.write_text(text)
        assert says in refused(tmp_path)
        assert str(file) in refused(tmp_path)
    file.write_bytes(b"[\xff]")
    assert "byte 1 is not UTF-8" in refused(tmp_path)
    done = cohkit_command("report", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert not (tmp_path / "report.html").exists()
    file.unlink()
    (tmp_path / "wrong.coh").write_text("protocol p { line 64; channels { up } }")
    with pytest.raises(cohkit.TextError):
        cohkit.report(tmp_path)


def test_the_folder_of_a_sweep_is_one_with_results(results: Path) -> None:
    [part] = parts(results / "sweep")
    assert (part.kind, part.file) == ("sweep", "sweep")
    assert part == next(one for one in parts(results) if one.kind == "sweep")


def test_what_was_changed_in_a_result_is_told_by_its_place(tmp_path: Path, results: Path) -> None:
    whole = json.loads((results / "broken.json").read_text())

    def changed(*way: str | int, to: Any) -> str:
        value = copy.deepcopy(whole)
        inner = value
        for key in way[:-1]:
            inner = inner[key]
        inner[way[-1]] = to
        (tmp_path / "one.json").write_text(json.dumps(value))
        return refused(tmp_path)

    chart = (0, "counterexample", "sequences", 0)
    assert 'at `0.outcome` one of "verified", "violated", "undecided" was expected, not "maybe"' in changed(
        0, "outcome", to="maybe"
    )
    assert "at `0.counterexample.sequences.0.agents.1` a text was expected, not 7" in changed(*chart, "agents", 1, to=7)
    assert "step 0 of a message sequence names an agent that is none of its 4" in changed(
        *chart, "steps", 0, "agent", to=4
    )
    assert "at `0` the key `protocol` was expected" in changed(0, to={"outcome": "verified", "properties": []})
    assert "this is no message sequence" in changed(*chart, "steps", 0, "action", to={"kind": "does"})


def test_texts_that_compose_others_are_left_out_with_a_word(
    root: Path, tmp_path: Path, cohkit_command: Command
) -> None:
    (tmp_path / "both.coh").write_text((root / "protocols/eci-both.coh").read_text())
    assert "nothing in this folder goes into a report" in refused(tmp_path)
    (tmp_path / "eci.coh").write_text((root / "protocols/eci.coh").read_text())
    assert [part.file for part in parts(tmp_path)] == ["eci.coh"]
    done = cohkit_command("report", str(tmp_path))
    assert done.returncode == 0
    assert done.stderr == "note: both.coh composes other texts and has no tables; those of the texts it uses have\n"


def test_some_rows_of_an_experiment_are_a_table_without_plots(tmp_path: Path, results: Path) -> None:
    rows = json.loads((results / "fig8.json").read_text())
    (tmp_path / "some.json").write_text(json.dumps([row for row in rows if not row["name"][0].isdigit()]))
    assert "at best, with prefetcher" in cohkit.report(tmp_path)


@pytest.mark.parametrize(
    ("value", "hint", "says"),
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
def test_values_are_held_against_types(value: object, hint: Any, says: str | None) -> None:
    assert misfit(value, hint) == says
