"""Tests `kpkg lsp` as an editor uses it.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import COMMAND, ROOT
from language_client import LanguageClient, RequestFailed, edited, place
from language_edits import edit_randomly

BLOCKS = '''"""Blocks of rows."""

comptime WIDTH = 64


def doubled(v: Tile) -> Tile:
    """Returns twice a tile."""
    return v + v
'''

SCALE = '''"""Scales a matrix."""

from blocks import WIDTH, doubled


@kernel
@specialize(T=[float32, float16])
@schedule(warps=4)
def scale_rows[T: DType, FACTOR: Int = 2](x: Tensor[T, 2], mut y: Tensor[T, 2]):
    """Scales a block. \u00e4"""
    var row = block_idx.x
    var v = x.tile[16, WIDTH](row, 0).load()
    var wide = v.cast[float32]()
    var total = wide.sum(axis=1)
    for i in range(FACTOR):
        wide += doubled(wide)
    y.tile[16, WIDTH](row, 0).store(wide.cast[T]())


@register.op("demo::scale")
def scale(x: Tensor) raises -> Tensor:
    var y = empty_like(x)
    launch scale_rows[T=x.dtype](x, y, grid=ceildiv(x.shape[0], 16))
    return y
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "blocks.k").write_text(BLOCKS)
    (tmp_path / "scale.k").write_text(SCALE)
    return tmp_path.resolve()


@pytest.fixture
def client(folder: Path) -> Iterator[LanguageClient]:
    with LanguageClient(COMMAND, folder) as started:
        started.open(folder / "scale.k")
        started.checked(folder / "scale.k")
        yield started


def labels(found: dict) -> list[str]:
    return [item["label"] for item in sorted(found["items"], key=lambda item: item["sortText"])]


# ---- Diagnostics -----------------------------------------------------------------------------------------------------

INPUTS = ROOT / "test" / "tools" / "kpkg" / "inputs"
WRONG = [
    "gpu_mistake.k",
    "two_errors.k",
    "mistakes.k",
    "habits/names.k",
    "habits/types.k",
    "habits/body.k",
    "too_large.k",
]


@pytest.mark.parametrize("name", WRONG)
def test_diagnostics_are_those_of_kpkg_check(name):
    path = INPUTS / name
    done = subprocess.run([COMMAND, "check", path, "--diagnostics=json"], capture_output=True, text=True)
    checked = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    text = path.read_text()

    def summary(one: dict) -> tuple:
        offset = len(text.encode()[: one["range"]["start"]["offset"]].decode())
        return one["code"], one["message"], place(text, offset)["line"], place(text, offset)["character"]

    wanted = sorted(summary(one) for one in checked if one["file"])
    with LanguageClient(COMMAND, INPUTS) as client:
        client.open(path)
        found = client.diagnostics(path, lambda found: len(found) == len(wanted))
    starts = [one["range"]["start"] for one in found]
    got = [
        (d["code"], d["message"].split("\n")[0], s["line"], s["character"]) for d, s in zip(found, starts, strict=True)
    ]
    assert sorted(got) == wanted


def test_a_note_is_related_information(client, folder):
    client.replace(folder / "scale.k", "    var total", "    var v = 1\n    var total")
    found = client.diagnostics(folder / "scale.k", len)
    related = [note for note in found[0]["relatedInformation"] if "declared" in note["message"]]
    assert related[0]["location"]["uri"] == (folder / "scale.k").as_uri()
    assert related[0]["location"]["range"]["start"]["line"] == SCALE[: SCALE.index("var v =")].count("\n")


def test_a_fix_removes_its_diagnostic(client, folder):
    path = folder / "scale.k"
    client.replace(path, "    var total", "    total")
    found = client.diagnostics(path, len)
    actions = client.of("textDocument/codeAction", path, range=found[0]["range"], context={"diagnostics": []})
    text = edited(client.texts[path], actions[0]["edit"]["changes"][path.as_uri()])
    assert text == SCALE
    client.change(path, 0, len(client.texts[path]), text)
    client.checked(path)


def test_unsaved_imports_count(client, folder):
    blocks, scale = folder / "blocks.k", folder / "scale.k"
    client.open(blocks)
    client.replace(blocks, "def doubled", "def tripled")
    found = client.diagnostics(scale, len)
    assert "doubled" in found[0]["message"]
    client.close(blocks)
    client.checked(scale)


def test_errors_of_an_import_are_shown_there(client, folder):
    (folder / "blocks.k").write_text(BLOCKS.replace("v + v", "v + nothing"))
    change = {"uri": (folder / "blocks.k").as_uri(), "type": 2}
    client.notify("workspace/didChangeWatchedFiles", {"changes": [change]})
    found = client.diagnostics(folder / "blocks.k", len)
    assert "nothing" in found[0]["message"]


# ---- Names -----------------------------------------------------------------------------------------------------------


def test_hover_shows_shape_dtype_and_memory_of_tiles(client, folder):
    path = folder / "scale.k"
    text = client.hover(path, "var wi|de = v")
    assert "var wide: Tile[float32, 16, 64]" in text
    assert "16 x 64 elements of 32 bits, 4 KiB" in text
    text = client.hover(path, "var v|")
    assert "Tile[float16, 16, 64]" in text and "Tile[float32, 16, 64]" in text


def test_hover_shows_the_layouts_of_tiles(client, folder):
    path = folder / "scale.k"
    (found,) = client.layouts(path, "var wi|de = v")
    assert "`Tile[float32, 16, 64]` on sm_90a, 128 threads: 8 elements in 8 registers of each thread" in found
    assert "`reg 1:1" in found
    assert client.layouts(path, "wi|de += doubled")  # of the value that the loop carries
    # In instances of other dtypes as in the first one.
    (found,) = client.layouts(path, "var v| = x")
    assert "Tile[float32, 16, 64]" in found
    # A place behind an edit keeps its layout until the next check.
    client.replace(path, "    var row", "    # a comment\n    var row")
    assert client.layouts(path, "var wi|de = v")


def test_layouts_are_those_of_the_chip(folder):
    with LanguageClient(COMMAND, folder, "--target", "a100") as client:
        client.open(folder / "scale.k")
        assert "on sm_80, 128 threads" in client.layouts(folder / "scale.k", "var wi|de = v")[0]


@pytest.mark.parametrize("target, why", [("x86-64-v3", "takes one GPU"), ("sm_17", "sm_17")])
def test_layouts_need_a_gpu(target, why):
    done = subprocess.run([COMMAND, "lsp", "--target", target], input="", capture_output=True, text=True)
    assert done.returncode == 2 and why in done.stderr


def test_inlay_hints_say_which_hints_are_dropped(client, folder):
    path = folder / "scale.k"
    client.replace(path, "@schedule(warps=4)", "@schedule(stages=3)")
    client.checked(path)
    client.layouts(path, "var wi|de = v")
    whole = {"start": place(client.texts[path], 0), "end": place(client.texts[path], len(client.texts[path]))}
    hints = client.of("textDocument/inlayHint", path, range=whole)
    (dropped,) = [hint for hint in hints if hint["label"].startswith("dropped")]
    assert "in a kernel without products" in dropped["label"]
    assert dropped["position"] == place(client.texts[path], client.texts[path].index("stages"))


def test_hover_shows_signatures_docstrings_and_values(client, folder):
    path = folder / "scale.k"
    assert "def doubled(v: Tile) -> Tile" in client.hover(path, "wide += dou|bled")
    assert "Returns twice a tile." in client.hover(path, "wide += dou|bled")
    assert "@kernel\ndef scale_rows[T: DType" in client.hover(path, "launch scale|_rows")
    assert "comptime WIDTH = 64" in client.hover(path, "y.tile[16, WID|TH]")
    assert "FACTOR: Int = 2" in client.hover(path, "range(FAC|TOR)")
    assert "Blocks of rows." in client.hover(path, "from blo|cks")


def test_hover_shows_what_built_in_names_do(client, folder):
    path = folder / "scale.k"
    assert "`.store(value)`: writes a tile" in client.hover(path, ".sto|re(")
    assert "element type" not in client.hover(path, "x.sha|pe[0]")
    assert "`.sum(axis)`: the sum" in client.hover(path, "wide.s|um(")
    assert "warps of a thread block" in client.hover(path, "@schedule(war|ps=4)")
    assert "rounded up" in client.hover(path, "ceil|div(")


def test_hover_survives_a_syntax_error(client, folder):
    path = folder / "scale.k"
    client.replace(path, "    var total = wide.sum(axis=1)\n", "    var total = (\n")
    assert client.diagnostics(path, len)
    assert "Tile[float32, 16, 64]" in client.hover(path, "var wi|de = v")
    assert "Returns twice a tile." in client.hover(path, "wide += dou|bled")


def test_inlay_hints_are_the_types_of_variables(client, folder):
    whole = {"start": place(SCALE, 0), "end": place(SCALE, len(SCALE))}
    hints = client.of("textDocument/inlayHint", folder / "scale.k", range=whole)
    by_line = {hint["position"]["line"]: hint["label"] for hint in hints}
    lines = SCALE.splitlines()
    found = {lines[line].split()[1]: label for line, label in by_line.items()}
    assert found["row"] == ": Int" and found["wide"] == ": Tile[float32, 16, 64]" and found["y"] == ": Tensor"
    assert found["v"].endswith("| ...")


def test_definitions_are_found_across_files(client, folder):
    path, blocks = folder / "scale.k", folder / "blocks.k"
    found = client.at("textDocument/definition", path, "wide += dou|bled")
    assert found == [{"uri": blocks.as_uri(), "range": word(BLOCKS, "doubled")}]
    found = client.at("textDocument/definition", path, "wide.cast[T|]()")
    assert found == [{"uri": path.as_uri(), "range": word(SCALE, "T: DType", 1)}]
    assert client.at("textDocument/definition", path, "from blo|cks")[0]["uri"] == blocks.as_uri()
    client.open(blocks)
    client.change(blocks, 0, 0, "comptime FIRST = 1\n")
    found = client.at("textDocument/definition", path, "wide += dou|bled")
    assert found[0]["range"]["start"]["line"] == word(BLOCKS, "doubled")["start"]["line"] + 1


def word(text: str, piece: str, length: int | None = None) -> dict:
    begin = text.index(piece)
    return {"start": place(text, begin), "end": place(text, begin + (length or len(piece)))}


def test_references_and_highlights(client, folder):
    path = folder / "scale.k"
    found = client.at("textDocument/references", path, "var wi|de = v", context={"includeDeclaration": False})
    assert len(found) == 4
    assert len(client.at("textDocument/documentHighlight", path, "var wi|de = v")) == 5


def test_rename_across_files(client, folder):
    path, blocks = folder / "scale.k", folder / "blocks.k"
    edit = client.at("textDocument/rename", path, "wide += dou|bled", newName="twice")["changes"]
    assert edited(SCALE, edit[path.as_uri()]) == SCALE.replace("doubled", "twice")
    assert edited(BLOCKS, edit[blocks.as_uri()]) == BLOCKS.replace("doubled", "twice")
    edit = client.at("textDocument/rename", path, "range(FAC|TOR)", newName="TIMES")["changes"]
    assert edited(SCALE, edit[path.as_uri()]) == SCALE.replace("FACTOR", "TIMES")
    edit = client.at("textDocument/rename", path, "[|T: DType", newName="E")["changes"]
    renamed = edited(SCALE, edit[path.as_uri()])
    assert (
        "@specialize(E=[" in renamed
        and "Tensor[E, 2]" in renamed
        and "cast[E]" in renamed
        and "scale_rows[E=x.dtype]" in renamed
    )


def test_rename_refuses_what_would_change_the_program(client, folder):
    path = folder / "scale.k"

    def why(marked: str, name: str) -> str:
        with pytest.raises(RequestFailed) as caught:
            client.at("textDocument/rename", path, marked, newName=name)
        return str(caught.value)

    assert "another meaning" in why("var wi|de = v", "v")
    assert "another meaning" in why("wide += dou|bled", "WIDTH")
    assert "not a name" in why("var wi|de = v", "for")
    assert "argument of an op" in why("def scale(|x: Tensor)", "input")
    assert "name of the language" in why("ceil|div(", "divided")
    with pytest.raises(RequestFailed):
        client.at("textDocument/prepareRename", path, ".sto|re(")


def test_completion(client, folder):
    path = folder / "scale.k"

    def completed(inserted: str, behind: str) -> list[str]:
        before = client.texts[path]
        client.replace(path, behind, behind + inserted)
        offset = client.texts[path].index(behind) + len(behind + inserted)
        position = place(client.texts[path], offset)
        found = client.of("textDocument/completion", path, position=position)
        client.change(path, 0, len(client.texts[path]), before)
        return labels(found)

    total = "    var total = wide.sum(axis=1)\n"
    members = completed("    wide.", total)
    assert {"sum", "cast", "reshape", "T", "shape"} <= set(members) and "load" not in members
    assert {"tile", "gather", "stride"} <= set(completed("    x.", total))
    assert set(completed("    var b = block_idx.", total)) == {"x", "y", "z"}
    names = completed("    var b = ", total)
    assert {"wide", "row", "T", "FACTOR", "doubled", "WIDTH", "zeros", "ceildiv", "Float32", "float32"} <= set(names)
    assert names.index("wide") < names.index("WIDTH") < names.index("zeros")
    assert completed("    launch scale_rows[", "var y = empty_like(x)\n")[:2] == ["FACTOR=", "T="]
    assert {"x=", "y=", "grid="} <= set(completed("    launch scale_rows(", "var y = empty_like(x)\n"))
    assert {"warps=", "stages=", "cluster="} <= set(completed("@schedule(", "from blocks import WIDTH, doubled\n"))
    assert "axis=" in completed("    var sums = wide.sum(", total)
    assert {"kernel", "tune", "register.op"} <= set(completed("@", "from blocks import WIDTH, doubled\n"))
    assert "op" in completed("@register.", "from blocks import WIDTH, doubled\n")
    assert completed("    # wide.", total) == []
    memory = "    var kept = scratch[float32](8, 8)\n"
    client.replace(path, total, total + memory)
    client.checked(path)
    shown = client.hover(path, "var ke|pt = ")
    assert "scratch[float32](8, 8)" in shown and "256 bytes" in shown
    members = set(completed("    kept.", memory))
    assert {"load", "store", "gather", "atomic_add", "window", "shape"} <= members and "reshape" not in members


# ---- Texts -----------------------------------------------------------------------------------------------------------


def test_format_is_that_of_kpkg_fmt(client, folder):
    path = folder / "scale.k"
    assert client.of("textDocument/formatting", path, options={}) == []
    client.replace(path, "wide += doubled(wide)", "wide+=doubled( wide )")
    edits = client.of("textDocument/formatting", path, options={})
    assert edited(client.texts[path], edits) == SCALE
    client.replace(path, "wide+=doubled( wide )", "wide += (")
    with pytest.raises(RequestFailed, match="syntax errors"):
        client.of("textDocument/formatting", path, options={})


def test_document_symbols(client, folder):
    found = client.of("textDocument/documentSymbol", folder / "scale.k")
    assert [(one["name"], one["detail"]) for one in found] == [("scale_rows", "kernel"), ("scale", "register.op")]


def test_positions_count_utf16(client, folder):
    path = folder / "scale.k"
    client.change(path, 0, len(SCALE), SCALE.replace("    var total", '    print("\U0001f600", row); \n    var total'))
    client.change(path, 0, len(client.texts[path]), 'comptime A = "\U0001f600\u00e4"; comptime B = A\n')
    client.change(path, 0, len(client.texts[path]), 'comptime PAIR = ("\U0001f600\u00e4", WIDE)\ncomptime WIDE = 3\n')
    found = client.at("textDocument/definition", path, ", WI|DE)")
    assert found[0]["range"]["start"] == {"line": 1, "character": 9}


def test_names_of_a_shipped_family():
    """Names are found through imports of a family with shared modules."""
    with LanguageClient(COMMAND, ROOT / "kernels_src") as client:
        path = ROOT / "kernels_src" / "softmax" / "softmax.k"
        client.open(path)
        client.checked(path)
        assert "def finish" in client.hover(path, "from results import fin|ish,")
        marked, context = "rows_at_|once, warps_of_rows", {"includeDeclaration": True}
        references = client.at("textDocument/references", path, marked, context=context)
        assert len({one["uri"] for one in references}) > 1


def test_options_are_those_of_kpkg_build(folder):
    shared = folder / "shared"
    shared.mkdir()
    (folder / "blocks.k").rename(shared / "blocks.k")
    path = folder / "scale.k"
    path.write_text(SCALE.replace("@kernel", "comptime ROWS = 16\n\n\n@kernel").replace("tile[16,", "tile[ROWS,"))
    with LanguageClient(COMMAND, folder, "-I", str(shared), "-D", "ROWS=32") as client:
        client.open(path)
        client.checked(path)
        assert "Tile[float32, 32, 64]" in client.hover(path, "var wi|de = v")
    done = subprocess.run([COMMAND, "lsp", "-D", "WIDTH"], input="", capture_output=True, text=True)
    assert done.returncode == 2 and "write NAME=VALUE" in done.stderr


def test_random_edits_end_no_server(folder):
    with LanguageClient(COMMAND, folder) as client:
        edit_randomly(client, [folder / "scale.k", folder / "blocks.k"], edits=200, seed=1)


def test_input_that_ends_early(folder):
    done = subprocess.run([COMMAND, "lsp"], input=b"", capture_output=True)
    assert done.returncode == 1
