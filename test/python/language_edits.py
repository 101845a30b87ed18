"""Edits sources at random while `kpkg lsp` answers, as a test and as a program.

The program measures: python test/python/language_edits.py --edits 10000

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path

from language_client import LanguageClient, RequestFailed, place

ROOT = Path(__file__).resolve().parents[2]
#: Pieces that break sources, and repair them, in many ways.
PIECES = [
    "(",
    ")",
    "[",
    "]",
    ":",
    ".",
    ",",
    "=",
    '"',
    '"""',
    "\n",
    "    ",
    "\t",
    "#",
    "@kernel\n",
    "var x = ",
    "for i in",
]
PIECES += [
    "comptime if ",
    "def f[T: DType](x: Tile):\n    return x\n",
    "x.tile[16, 16](0, 0)",
    "struct S[N: Int]:\n    var a: Int\n    var b: S\n\n    def f(self):\n        return self.a\n",
    "S[N=3](a=1)",
    "s.a = 2\n",
    "\u00e4",
    "\U0001f600",
    "0x",
]


def at(client: LanguageClient, method: str, path: Path, offset: int, **more: object) -> object:
    document = {"uri": path.as_uri()}
    try:
        return client.request(method, {"textDocument": document, "position": place(client.texts[path], offset), **more})
    except RequestFailed as reason:
        return reason


def edit_randomly(client: LanguageClient, paths: list[Path], edits: int, seed: int) -> list[float]:
    """Makes edits and sends a request after each. Returns the seconds that each hover took."""
    drawn = random.Random(seed)
    originals = {path: path.read_text() for path in paths}
    for path in paths:
        client.open(path)
    hovers = []
    for number in range(edits):
        path = drawn.choice(paths)
        text = client.texts[path]
        begin = drawn.randrange(len(text) + 1)
        if number % 20 == 19:  # starts again, so that texts without errors occur
            client.change(path, 0, len(text), originals[path])
        elif drawn.random() < 0.4:
            client.change(path, begin, min(len(text), begin + drawn.randrange(1, 30)), "")
        elif drawn.random() < 0.5:
            client.change(path, begin, begin, drawn.choice(PIECES))
        else:
            source = drawn.choice(list(originals.values()))
            first = drawn.randrange(len(source))
            client.change(path, begin, begin, source[first : first + drawn.randrange(1, 80)])
        offset = drawn.randrange(len(client.texts[path]) + 1)
        start = time.perf_counter()
        at(client, "textDocument/hover", path, offset)
        hovers.append(time.perf_counter() - start)
        method = drawn.choice(["completion", "definition", "documentHighlight", "prepareRename"])
        at(client, f"textDocument/{method}", path, offset)
        if drawn.random() < 0.1:
            client.diagnostics(path, lambda found: True)  # lets a check end
        if drawn.random() < 0.2:
            at(client, "textDocument/rename", path, offset, newName="other")
            whole = {"start": place("", 0), "end": {"line": 1 << 20, "character": 0}}
            client.of("textDocument/inlayHint", path, range=whole)
            client.of("textDocument/codeAction", path, range=whole, context={"diagnostics": []})
            client.of("textDocument/documentSymbol", path)
    return hovers


def hover_all(client: LanguageClient, paths: list[Path]) -> list[float]:
    """Hovers over names of each file. Returns the seconds that each took."""
    hovers = []
    for path in paths:
        text = client.texts[path]
        for offset in range(0, len(text), max(1, len(text) // 40)):
            start = time.perf_counter()
            at(client, "textDocument/hover", path, offset)
            hovers.append(time.perf_counter() - start)
    return hovers


def peak_kilobytes(client: LanguageClient) -> int:
    status = Path(f"/proc/{client.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def summary(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    middle, most = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
    return {"median_ms": 1e3 * middle, "p99_ms": 1e3 * most, "longest_ms": 1e3 * ordered[-1], "count": len(ordered)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", type=Path, default=ROOT / "build" / "bin" / "kpkg")
    parser.add_argument("--edits", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sources", type=Path, default=ROOT / "kernels_src")
    options = parser.parse_args()
    paths = sorted(options.sources.rglob("*.k"))
    with LanguageClient(options.command, options.sources) as client:
        start = time.perf_counter()
        for path in paths:
            client.open(path)
        opened = hover_all(client, paths)  # while checks run
        for path in reversed(paths):  # the last opened one is checked first
            client.diagnostics(path, lambda found: True)
        checked = time.perf_counter() - start
        print(
            json.dumps({"files": len(paths), "all_checked_s": checked, "peak_kb": peak_kilobytes(client)}), flush=True
        )
        print(
            json.dumps({"hover_while_checking": summary(opened), "hover": summary(hover_all(client, paths))}),
            flush=True,
        )
        start = time.perf_counter()
        hovers = edit_randomly(client, paths, options.edits, options.seed)
        took = time.perf_counter() - start
        print(json.dumps({"edits": options.edits, "seconds": took, "peak_kb": peak_kilobytes(client)}))
        print(json.dumps({"hover_while_editing": summary(hovers)}))


if __name__ == "__main__":
    main()
