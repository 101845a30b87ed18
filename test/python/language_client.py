"""A client of `kpkg lsp`, as an editor is one.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Seconds to wait for an answer. It is far longer than any needs, for loaded machines.
PATIENCE = 120


class RequestFailed(Exception):
    """The server's reason for an answer that it does not give."""


class LanguageClient:
    """Starts a server for a folder, and ends it as a context manager."""

    def __init__(self, command: Path, folder: Path, *options: str):
        self.process = subprocess.Popen([command, "lsp", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.changed = threading.Condition()
        self.answers: dict[int, dict] = {}
        self.published: dict[str, list[dict]] = {}
        self.texts: dict[Path, str] = {}
        self.versions: dict[Path, int] = {}
        self.last = 0
        threading.Thread(target=self._read, daemon=True).start()
        folders = [{"uri": folder.as_uri(), "name": folder.name}]
        self.capabilities = self.request("initialize", {"capabilities": {}, "workspaceFolders": folders})
        self.notify("initialized", {})

    def __enter__(self) -> LanguageClient:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.request("shutdown", None)
            self.notify("exit", None)
        assert self.process.wait(PATIENCE) == 0

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream
        while header := stream.readline():
            if not header.lower().startswith(b"content-length:"):
                continue
            while stream.readline().strip():
                pass
            message = json.loads(stream.read(int(header.split(b":")[1])))
            with self.changed:
                if "id" in message:
                    self.answers[message["id"]] = message
                elif message["method"] == "textDocument/publishDiagnostics":
                    self.published.setdefault(message["params"]["uri"], []).append(message["params"])
                self.changed.notify_all()
        self.process.wait()  # so that whoever waits sees that it ended
        with self.changed:
            self.changed.notify_all()

    def _send(self, message: dict) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def until(self, holds: Callable[[], Any]) -> Any:
        """Waits until a condition about what the server sent holds, and returns its value."""
        with self.changed:
            assert self.changed.wait_for(lambda: holds() or self.process.poll() is not None, PATIENCE), "no answer"
            value = holds()
        assert value, f"the server ended with {self.process.poll()}"
        return value

    def notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def request(self, method: str, params: Any) -> Any:
        self.last += 1
        number = self.last
        self._send({"id": number, "method": method, "params": params})
        answer = self.until(lambda: self.answers.get(number))
        del self.answers[number]
        if "error" in answer:
            raise RequestFailed(answer["error"]["message"])
        return answer["result"]

    # Texts.

    def open(self, path: Path, text: str | None = None) -> None:
        self.texts[path] = path.read_text() if text is None else text
        self.versions[path] = 1
        item = {"uri": path.as_uri(), "languageId": "kpkg", "version": 1, "text": self.texts[path]}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def change(self, path: Path, begin: int, end: int, inserted: str) -> None:
        """Replaces a range of characters."""
        before = self.texts[path]
        change = {"range": {"start": place(before, begin), "end": place(before, end)}, "text": inserted}
        self.texts[path] = before[:begin] + inserted + before[end:]
        self.versions[path] += 1
        document = {"uri": path.as_uri(), "version": self.versions[path]}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})

    def replace(self, path: Path, old: str, new: str) -> None:
        assert self.texts[path].count(old) == 1, f"{old} is not unique"
        begin = self.texts[path].index(old)
        self.change(path, begin, begin + len(old), new)

    def close(self, path: Path) -> None:
        self.notify("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}})

    # Requests.

    def at(self, method: str, path: Path, marked: str, **more: Any) -> Any:
        """Sends a request for the place of `|` in a unique piece of the text."""
        piece = marked.replace("|", "")
        assert self.texts[path].count(piece) == 1, f"{piece} is not unique"
        offset = self.texts[path].index(piece) + marked.index("|")
        document = {"uri": path.as_uri()}
        return self.request(method, {"textDocument": document, "position": place(self.texts[path], offset), **more})

    def hover(self, path: Path, marked: str) -> str:
        found = self.at("textDocument/hover", path, marked)
        return found["contents"]["value"] if found else ""

    def layouts(self, path: Path, marked: str) -> list[str]:
        """Waits until the hover shows where GPU code keeps a tile, and returns its lines on that."""
        end = time.monotonic() + PATIENCE
        while True:
            lines = [line for line in self.hover(path, marked).splitlines() if " of each thread" in line]
            if lines:
                return lines
            assert time.monotonic() < end, "no layout"
            time.sleep(0.02)

    def of(self, method: str, path: Path, **more: Any) -> Any:
        return self.request(method, {"textDocument": {"uri": path.as_uri()}, **more})

    def diagnostics(self, path: Path, holds: Callable[[list[dict]], Any]) -> list[dict]:
        """Waits until the diagnostics of a text's current version meet a condition, and returns them."""

        def latest() -> dict | None:
            found = self.published.get(path.as_uri(), [])
            is_current = found and found[-1].get("version") == self.versions.get(path)
            return found[-1] if is_current and holds(found[-1]["diagnostics"]) else None

        return self.until(latest)["diagnostics"]

    def checked(self, path: Path) -> None:
        """Waits until the current version has been checked without errors."""
        self.diagnostics(path, lambda found: not found)


def place(text: str, offset: int) -> dict[str, int]:
    """Returns a position in UTF-16 units."""
    line = text.count("\n", 0, offset)
    begin = text.rfind("\n", 0, offset) + 1
    return {"line": line, "character": len(text[begin:offset].encode("utf-16-le")) // 2}


def edited(text: str, edits: list[dict]) -> str:
    """Returns the text after edits of the server; each line has ASCII characters only."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def offset(position: dict[str, int]) -> int:
        return min(starts[min(position["line"], len(starts) - 1)] + position["character"], len(text))

    for edit in sorted(edits, key=lambda edit: offset(edit["range"]["start"]), reverse=True):
        begin, end = offset(edit["range"]["start"]), offset(edit["range"]["end"])
        text = text[:begin] + edit["newText"] + text[end:]
    return text
