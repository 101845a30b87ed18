"""Tests the grammar of editors on sources, and the extension of VS Code against a stand-in for the editor.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

FOLDER = ROOT / "editors" / "vscode"
PATTERNS = json.loads((FOLDER / "syntaxes" / "kpkg.tmLanguage.json").read_text())["patterns"]


def scopes(text: str) -> list[tuple[str, str]]:
    """Returns the marked pieces of a text with their scopes, as an editor finds them: the leftmost first rule."""
    found, at = [], 0
    while True:
        matches = [(re.compile(p.get("match") or p["begin"], re.M).search(text, at), p) for p in PATTERNS]
        first = min(((m.start(), i) for i, (m, _) in enumerate(matches) if m and m.group()), default=None)
        if first is None:
            return found
        match, pattern = matches[first[1]]
        end = match.end()
        if "end" in pattern:
            closing = re.compile(r"(?:\\.|[^\\])*?(?:" + pattern["end"] + ")", re.M | re.S).match(text, end)
            end = closing.end() if closing else len(text)
        captures = pattern.get("captures")
        if captures:
            found += [(match[int(number)], scope["name"]) for number, scope in captures.items()]
        else:
            found.append((text[match.start() : end], pattern["name"]))
        at = max(end, match.start() + 1)


def test_grammar_marks_the_words_of_the_language():
    text = '@register.op("my::f")\ndef f(x: Tensor) -> Tile[float32]:  # for\n'
    text += '    return "a\\"b" if x.shape[0] > 0x1F else zeros\n'
    marked = dict(scopes(text))
    assert marked["@register.op"] == "entity.name.function.decorator.kpkg"
    assert marked["f"] == "entity.name.function.kpkg"
    assert marked["Tensor"] == marked["Tile"] == "support.type.kpkg"
    assert marked["float32"] == "constant.language.dtype.kpkg"
    assert marked["# for"] == "comment.line.number-sign.kpkg"
    assert marked["return"] == marked["if"] == "keyword.control.kpkg"
    assert marked['"a\\"b"'] == "string.quoted.double.kpkg"
    assert marked["shape"] == "support.function.member.kpkg"
    assert marked["0x1F"] == "constant.numeric.kpkg"
    assert marked["zeros"] == "support.function.kpkg"


def test_grammar_ends_all_strings_of_the_shipped_sources():
    for path in sorted((ROOT / "kernels_src").rglob("*.k")):
        text = path.read_text()
        functions = re.findall(r"^ *def (\w+)", re.sub(r'""".*?"""', "", text, flags=re.S), re.M)
        marked = [piece for piece, scope in scopes(text) if scope == "entity.name.function.kpkg"]
        assert marked == functions, path


STAND_IN = """
const Module = require("module");
const events = [];
const settings = { command: "kpkg", arguments: ["-I", "shared"] };
const fakes = {
  vscode: {
    workspace: {
      getConfiguration: () => ({ get: (name) => settings[name] }),
      createFileSystemWatcher: (pattern) => pattern,
      onDidChangeConfiguration: () => ({}),
    },
    commands: { registerCommand: (name, run) => { events.push(name); fakes.run = run; return {}; } },
  },
  "vscode-languageclient/node": {
    LanguageClient: class {
      constructor(id, name, server, options) { events.push(server, options.documentSelector); }
      async start() { events.push("start"); }
      async stop() { events.push("stop"); }
    },
  },
};
const load = Module._load;
Module._load = (name, ...rest) => fakes[name] ?? load(name, ...rest);
(async () => {
  const extension = require(process.argv[1]);
  await extension.activate({ subscriptions: [] });
  await fakes.run();
  await extension.deactivate();
  console.log(JSON.stringify(events));
})();
"""


@pytest.mark.skipif(not shutil.which("node"), reason="no Node.js")
def test_extension_starts_the_server():
    done = subprocess.run(["node", "-e", STAND_IN, FOLDER / "extension.js"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    server = {"command": "kpkg", "args": ["lsp", "-I", "shared"]}
    selector = [{"scheme": "file", "language": "kpkg"}]
    start = [server, selector, "start"]
    assert json.loads(done.stdout) == ["kpkg.restart", *start, "stop", *start, "stop"]


def test_files_of_the_extension_exist():
    package = json.loads((FOLDER / "package.json").read_text())
    contributes = package["contributes"]
    paths = [package["main"], contributes["languages"][0]["configuration"], contributes["grammars"][0]["path"]]
    assert all(Path(FOLDER / path).is_file() for path in paths)
    assert contributes["languages"][0]["extensions"] == [".k"]
    json.loads((FOLDER / "language-configuration.json").read_text())
