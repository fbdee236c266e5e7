"""The extension for VS Code: its grammar, executed by VS Code's own tokenizer, and its language client."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

Tokens = list[list[tuple[int, int, str]]]

pytestmark = pytest.mark.needs("node")

# Tokens as in crates/protocol/src/text/lexer.rs; longer symbols precede their prefixes.
SYMBOLS = r":=|\+=|-=|==|!=|<=|>=|->|\.\.|[;{}()\[\],|:=+\-<>.]"
TOKEN = re.compile(
    rf"""(?P<comment>\#.*)|(?P<title>"[^"]*")|(?P<word>[A-Za-z_]\w*)|(?P<number>[0-9]+)|(?P<symbol>{SYMBOLS})""",
    re.ASCII,
)
# Beginnings of the scopes that a token of each kind may have.
SCOPES: dict[str, str | tuple[str, ...]] = {
    "comment": "comment.",
    "title": "string.",
    "word": ("keyword.", "entity.name.", "storage.", "support.function.", "constant.language.", "variable."),
    "number": "constant.numeric.",
    "symbol": ("keyword.operator.", "punctuation."),
}
# Beginnings of the scopes of names.
NAMES = ("entity.name.", "variable.other.")
# Classes of channels. They are keywords in a few places only; elsewhere they may be names of channels.
CLASSES = {"request", "victim", "answer", "forward", "grant", "acknowledgement"}


def tokenize(root: Path, *files: Path) -> dict[Path, Tokens]:
    """Return the tokens of each line of the files: start, end and scope, as VS Code's tokenizer finds them."""
    command: list[str | Path] = ["node", root / "editors/vscode/scopes.mjs", root / ".venv/editors", *files]
    scopes_json = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {file: scopes_json[str(file)] for file in files}


def read_terminals(root: Path) -> tuple[set[str], set[str]]:
    """Return the words of the language, including former spellings, and its symbols, from the reference."""
    text = (root / "docs/language.md").read_text()
    [grammar] = re.findall(r"^```ebnf\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    quoted = set(re.findall(r'"([^"]+)"', grammar))
    former = re.split(r"^\| Keyword \| Former spelling \| Place \|\n.*\n", text, flags=re.MULTILINE)[1].split("\n\n")[0]
    words = {word for word in quoted if word[0].isalpha()} | set(" ".join(re.findall(r"`(.+?)`", former)).split())
    return words, {word for word in quoted if not word[0].isalpha()}


def test_every_token_of_every_protocol_file_is_highlighted(root: Path) -> None:
    """Each token of a simple lexer is one token of the grammar, with a scope of its kind."""
    files = [*sorted(root.glob("protocols/*.coh")), *sorted(root.glob("tests/**/*.coh"))]
    assert len(files) > 14
    words, symbols = read_terminals(root)
    seen_kinds: set[str] = set()
    for file, lines in tokenize(root, *files).items():
        for number, (text, tokens) in enumerate(zip(file.read_text().split("\n"), lines, strict=True), start=1):
            coloured = [(start, min(end, len(text)), scope) for start, end, scope in tokens if scope != "source.cohkit"]
            expected = list(TOKEN.finditer(text))
            where = f"{file}:{number}"
            assert [(start, end) for start, end, _ in coloured] == [token.span() for token in expected], where
            for token, (_, _, scope) in zip(expected, coloured, strict=True):
                kind = str(token.lastgroup)
                seen_kinds.add(token[0] if kind == "symbol" else kind)
                assert scope.startswith(SCOPES[kind]), f"{where}: {token[0]} is {scope}"
                if kind == "word" and token[0] not in words:
                    assert scope.startswith(NAMES), f"{where}: {token[0]} is a name, and {scope}"
    assert {"comment", "title", "word", "number"} <= seen_kinds
    assert len(seen_kinds & symbols) > 15, "texts use most symbols"


def test_grammar_has_exactly_the_terminals_of_the_language(root: Path, tmp_path: Path) -> None:
    """Each keyword alone on a line is highlighted as one, and the grammar has no other keywords."""
    words, symbols = read_terminals(root)
    file = tmp_path / "words.coh"
    lines = [*sorted(words - CLASSES), *sorted(symbols)]
    file.write_text("\n".join(lines))
    for line, tokens in zip(lines, tokenize(root, file)[file], strict=True):
        [(_, _, scope)] = tokens
        assert not scope.startswith((*NAMES, "invalid.")), f"{line} is {scope}"
    grammar = json.loads((root / "editors/vscode/syntaxes/cohkit.tmLanguage.json").read_text())
    known = {
        word
        for pattern in grammar["patterns"]
        for group in re.findall(r"\(([a-z_|]+)\)", pattern["match"])
        for word in group.split("|")
    }
    assert known == words


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("forward as forward home -> remote", ["name", "keyword", "class", "keyword", "operator", "keyword"]),
        ("answer AckDirty with E", ["keyword", "message", "keyword", "name"]),
        ("answer: AckDirty (line)", ["name", "separator", "name", "section", "keyword", "section"]),
        ("grant DataShared S with E", ["keyword", "message", "name", "keyword", "name"]),
        ("S | load | send Get | IS", ["name", "column", "access", "column", "keyword", "message", "column", "name"]),
    ],
)
def test_contextual_keywords_are_highlighted_by_position(
    root: Path, tmp_path: Path, line: str, expected: list[str]
) -> None:
    """Words that are keywords in some places only are names elsewhere."""
    kinds = {
        "variable.other": "name",
        "keyword.control": "keyword",
        "storage.type": "class",
        "entity.name.function": "message",
        "keyword.operator.arrow": "operator",
        "punctuation.separator": "separator",
        "punctuation.separator.column": "column",
        "punctuation.section": "section",
        "support.function.access": "access",
    }
    file = tmp_path / "line.coh"
    file.write_text(line)
    [tokens] = tokenize(root, file)[file]
    found_kinds = [kinds[scope.removesuffix(".cohkit")] for _, _, scope in tokens if scope != "source.cohkit"]
    assert found_kinds == expected


def test_invalid_tokens_are_marked(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "wrong.coh"
    file.write_text("home @ 3")
    [tokens] = tokenize(root, file)[file]
    assert list(tokens[2]) == [5, 6, "invalid.illegal.cohkit"]


def pack_extension(root: Path, folder: Path, *, external: str = '"vscode"') -> Path:
    """Check types, pack the extension and unpack it outside npm packages; `external` modules are not bundled."""
    source = folder / "source"
    left_out = shutil.ignore_patterns("dist", "node_modules", "*.vsix")
    shutil.copytree(root / "editors/vscode", source, ignore=left_out)
    (source / "node_modules").symlink_to(root / ".venv/editors/node_modules")
    bundle = source / "bundle.mjs"
    text = bundle.read_text()
    assert text.count('external: ["vscode"]') == 1
    bundle.write_text(text.replace('external: ["vscode"]', f"external: [{external}]"))
    for script in ("types", "package"):
        completed = subprocess.run(["npm", "run", script], cwd=source, capture_output=True, text=True, check=False)
        assert completed.returncode == 0, completed.stdout + completed.stderr
    [package] = source.glob("*.vsix")
    assert package.name in (root / "editors/vscode/README.md").read_text()
    assert package.stat().st_size < 1_000_000
    with zipfile.ZipFile(package) as packed:
        names = {name for name in packed.namelist() if name.startswith("extension/")}
        packed.extractall(folder / "installed")
    assert names == {
        "extension/dist/extension.js",
        "extension/dist/licences.txt",
        "extension/language-configuration.json",
        "extension/package.json",
        "extension/readme.md",
        "extension/syntaxes/cohkit.tmLanguage.json",
    }
    return folder / "installed/extension"


def run_extension(root: Path, extension: Path, file: Path) -> subprocess.CompletedProcess[str]:
    """Run the extension on a protocol file in a model of VS Code, which prints a report as JSON."""
    command = Path(sys.executable).parent / "cohkit"
    line: list[str | Path] = ["node", root / "editors/vscode/test/drive.mjs", extension, command, file]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_packaged_extension_reports_server_state(root: Path, tmp_path: Path) -> None:
    """Drive the packed extension: missing and wrong servers, diagnostics, definition, hover and completion."""
    packed = pack_extension(root, tmp_path)
    licences = (packed / "dist/licences.txt").read_text()
    assert "vscode-languageclient 11.0.0" in licences
    file = tmp_path / "msi.coh"
    shutil.copy(root / "protocols/msi.coh", file)
    completed = run_extension(root, packed, file)
    assert completed.returncode == 0, completed.stderr
    report: dict[str, Any] = json.loads(completed.stdout)
    missing, no_server = report["complaints"]
    assert "`/nonexistent/cohkit` is not found" in missing
    assert "`cohkit.command`" in missing
    assert "has no language server" in no_server, "Node.js is another program"
    [diagnostic] = report["broken"]
    assert diagnostic["message"].startswith("`@` has no meaning here")
    assert diagnostic["range"] == {"start": {"line": 0, "character": 11}, "end": {"line": 0, "character": 12}}
    assert report["fixed"] == report["again"] == []
    name, definition = report["definition"]["name"], report["definition"]
    assert definition["uri"] == file.as_uri()
    assert (
        definition["line"][definition["range"]["start"]["character"] : definition["range"]["end"]["character"]] == name
    )
    assert f"message `{name}`" in report["hover"]
    assert "| remote |" in report["hover"]
    # After `send`, messages are completed and states are not.
    assert {name, "Data"} <= set(report["completion"])
    assert "IM_AD" not in report["completion"]
    assert report["shown"] == []
    assert report["left"] == {"providers": [], "commands": []}


def test_package_without_client_is_rejected(root: Path, tmp_path: Path) -> None:
    packed = pack_extension(root, tmp_path, external='"vscode", "vscode-languageclient/node"')
    completed = run_extension(root, packed, root / "protocols/msi.coh")
    assert completed.returncode == 1
    assert "Cannot find module 'vscode-languageclient/node'" in completed.stderr


def test_every_seeded_server_fault_has_a_location(root: Path) -> None:
    faults = tomllib.loads((root / "crates/cohkit/tests/language_server_faults.toml").read_text())
    assert len(faults) > 40
    for name, fault in faults.items():
        text = (root / "crates/cohkit/src" / fault["file"]).read_text()
        assert text.count(fault["right"]) == 1, name
        assert "@" in fault["wrong"], name
