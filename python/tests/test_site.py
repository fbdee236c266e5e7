"""The documentation site: built without warnings, complete, and readable in a browser."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cohkit


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, and return its folder."""
    out = tmp_path_factory.mktemp("site")
    completed = subprocess.run(
        [sys.executable, "tools/site", str(out)], cwd=root, capture_output=True, text=True, check=False
    )
    # Every warning of Sphinx is an error, for example a broken link or a page in no list.
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return out


def words(page: Path) -> str:
    """Return the text of a page, without markup."""
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text()))


def test_site_contains_every_page_of_the_repository(site: Path, root: Path) -> None:
    for page in [*root.glob("docs/*.md"), *root.glob("docs/decisions/*.md")]:
        title = page.read_text().partition("\n")[0].removeprefix("# ").replace("`", "")
        assert title in words((site / page.relative_to(root / "docs")).with_suffix(".html")), page.name
    index = words(site / "index.html")
    assert "Your first protocol" in index
    assert "Comparison with other tools" in index


def test_references_are_generated_from_the_code(site: Path) -> None:
    commands = words(site / "commands.html")
    binary = Path(sys.executable).parent / "cohkit"
    help_text = subprocess.run([binary, "--help"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^  ([a-z-]+)  ", help_text.partition("Options:")[0], re.MULTILINE)
    assert len(names) > 15
    for name in set(names) - {"help"}:
        assert f"sage: cohkit {name}" in commands
    assert "Usage: cohkit rtl synth" in commands
    reference = (site / "reference.html").read_text()
    for name in cohkit.__all__:
        if not name.startswith("_"):
            assert f'id="cohkit.{name}"' in reference or f'id="module-cohkit.{name}"' in reference, name


def test_site_has_no_broken_links(site: Path) -> None:
    pages = {page: page.read_text() for page in site.glob("*.html")}
    places = {page.name: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in pages.items()}
    checked = 0
    for page, text in pages.items():
        for to in re.findall(r'href="([^"]+)"', text):
            if re.match(r"[a-z]+:", to):
                continue
            name, _, part = re.sub(r"\?[^#]*", "", html.unescape(to)).partition("#")
            target = site / name if name else page
            assert target.is_file(), f"{page.name}: {to}"
            if part and target.suffix == ".html" and target.parent == site:
                assert part in places[target.name], f"{page.name}: {to}"
                checked += 1
    assert checked > 500


def concept_charts() -> dict[str, str]:
    """Return the charts of docs/concepts.md, by file name."""
    msi = cohkit.shipped("msi")
    forgetful = re.sub(r"(?m)( S  .*[|] Inv  .*[|]) I$", r"\1 S", msi.text)
    [verdict] = cohkit.check(cohkit.parse(forgetful), remotes=2)
    counterexample = verdict["counterexample"]
    assert counterexample
    sequence = cohkit.litmus("SB", protocol="mesi", cores="store_buffer", chart=True)["sequence"]
    assert sequence
    return {
        "race.svg": cohkit.chart_svg(counterexample["sequences"][0], title="a copy that is kept"),
        "store-buffers.svg": cohkit.chart_svg(sequence, title="both loads find 0"),
    }


@pytest.mark.parametrize("name", ["race.svg", "store-buffers.svg"])
def test_concept_charts_match_the_checker(name: str, root: Path) -> None:
    file = root / "docs/pictures" / name
    picture = concept_charts()[name]
    if os.environ.get("UPDATE_EXPECT"):
        file.write_text(picture)
    assert file.read_text() == picture, "UPDATE_EXPECT=1 draws it anew"


def test_site_needs_no_external_resources(site: Path) -> None:
    for page in site.glob("*.html"):
        fetched = re.findall(r'<(?:script|img|iframe)[^>]* src="([^"]+)"|<link[^>]* href="([^"]+)"', page.read_text())
        assert not [address for pair in fetched for address in pair if address.startswith(("http", "//"))], page.name
