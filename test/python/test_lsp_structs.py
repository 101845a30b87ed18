"""Tests what `kpkg lsp` answers about structs: their fields, comptime parameters and methods.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import COMMAND
from language_client import LanguageClient, RequestFailed, edited, place

WINDOWS = '''"""Windows of rows."""


struct Window[SIZE: Int]:
    """SIZE neighbours."""
    var stride: Int  # of windows
    var scale: Float64 = 1.0

    def area(self) -> Int:
        """Returns stride * SIZE."""
        return self.stride * SIZE


def scaled(v: Tile, w: Window) -> Tile:
    return v * w.scale
'''

SUMS = """from windows import Window, scaled


@kernel
@specialize(w.SIZE=[3])
def sums(x: Tensor[float32, 1], w: Window, mut y: Tensor[float32, 1]):
    var v = x.tile[64](block_idx.x * w.stride).load()
    y.tile[64](block_idx.x).store(scaled(v, w))


@register.op("demo::sums")
def sum_windows(x: Tensor) raises -> Tensor:
    var y = empty_like(x)
    var w = Window[SIZE=3](stride=2)
    w.stride = 4
    launch sums(x, w, y, grid=w.area())
    return y
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path.resolve()


@pytest.fixture
def structs(folder: Path) -> Iterator[LanguageClient]:
    (folder / "windows.k").write_text(WINDOWS)
    (folder / "sums.k").write_text(SUMS)
    with LanguageClient(COMMAND, folder) as started:
        for name in ("windows.k", "sums.k"):
            started.open(folder / name)
            started.checked(folder / name)
        yield started


def test_hover_on_structs_and_their_fields(structs, folder):
    path = folder / "sums.k"
    shown = structs.hover(path, "var w| = Window")
    assert "var w: Window[SIZE=3]" in shown
    shown = structs.hover(path, "Win|dow[SIZE=3](")
    assert "struct Window[SIZE: Int]" in shown and "SIZE neighbours." in shown
    shown = structs.hover(path, "x * w.str|ide).load")
    assert "var stride: Int" in shown
    assert "var stride: Int" in structs.hover(path, "Window[SIZE=3](str|ide=2)")
    assert "def area(self) -> Int" in structs.hover(path, "grid=w.ar|ea()")


def test_definitions_of_members(structs, folder):
    path = folder / "sums.k"
    for at in ("x * w.str|ide).load", "Window[SIZE=3](str|ide=2)", "    w.str|ide = 4"):
        found = structs.at("textDocument/definition", path, at)
        assert found[0]["uri"].endswith("/windows.k") and found[0]["range"]["start"] == {"line": 5, "character": 8}
    found = structs.at("textDocument/definition", path, "grid=w.ar|ea()")
    assert found[0]["range"]["start"]["line"] == 8


def test_rename_of_a_field(structs, folder):
    edit = structs.at("textDocument/rename", folder / "sums.k", "x * w.str|ide).load", newName="apart")
    texts = {
        Path(uri).name: edited({"windows.k": WINDOWS, "sums.k": SUMS}[Path(uri).name], edits)
        for uri, edits in edit["changes"].items()
    }
    assert texts["sums.k"] == SUMS.replace("stride", "apart")
    assert texts["windows.k"] == WINDOWS.replace("stride: Int", "apart: Int").replace("self.stride", "self.apart")


def test_a_field_in_code_without_types_is_not_renamed(structs, folder):
    path = folder / "windows.k"
    structs.change(path, 0, len(WINDOWS), WINDOWS + "\n\ndef unused(w):\n    return w.scale\n")
    structs.checked(path)
    with pytest.raises(RequestFailed, match="no check has reached"):
        structs.at("textDocument/rename", path, "var sc|ale", newName="factor")


def test_completion_of_members(structs, folder):
    path = folder / "sums.k"
    structs.replace(path, "    w.stride = 4\n", "    w.stride = 4\n    w.\n")
    offset = structs.texts[path].index("    w.\n") + len("    w.")
    found = structs.of("textDocument/completion", path, position=place(structs.texts[path], offset))
    assert [item["label"] for item in sorted(found["items"], key=lambda item: item["sortText"])] == [
        "SIZE",
        "scale",
        "stride",
        "area",
    ]
    found = structs.of("textDocument/documentSymbol", folder / "windows.k")
    assert [one["name"] for one in found] == ["Window", "scaled"]
    assert [one["name"] for one in found[0]["children"]] == ["stride", "scale", "area"]
