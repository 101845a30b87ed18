"""Tests that the tables of docs/package-format.md come from the manifest's schema.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools/ci"))
import format_page
import plan_tables


def test_page_is_that_of_the_schema():
    assert format_page.format_page_differs() == []


def test_every_macro_is_read():
    text = (format_page.ROOT / format_page.SCHEMA).read_text()
    schema = format_page.read_schema()
    assert sum(map(len, schema.records.values())) == text.count("\nKPKG_FIELD(")
    assert sum(map(len, schema.words.values())) == text.count("\nKPKG_WORD(")


@pytest.mark.parametrize(
    "row",
    [
        "| `threads` | needed | integer, 1 to 1024 | threads of a CTA |",
        "| `tensor_maps` | empty | list of at most 8: `tensor_map` | tensor maps of views, in the order of the "
        "parameters |",
        "| `torch` (1.1) | none | `torch` | how PyTorch treats the op |",
        "| `swizzle` | needed | integer, 0 to 128 | bytes over which rows are swizzled: 0, 32, 64, 128 |",
        "| `size` | needed | integer, 0 to 2^31 | bytes of the contents, at most those of its kind |",
        '| `["tiles", arg, d, size]` | the extent divided by `size`, rounded up |',
        "| an integer | itself |",
        "| 35 | `floordiv_int` | `i:ii` | a / b, rounded down |",
        "| 22 | `call` | its own | calls a function |",
        "| 11 | `bfloat16` | 16 | Float |",
        "| registers of a function | 2^14 |",
    ],
)
def test_rows_say_presence_limits_and_meaning(row):
    assert row in format_page.page().splitlines()


def test_another_limit_is_noticed(monkeypatch, tmp_path):
    schema = (format_page.ROOT / format_page.SCHEMA).read_text()
    for name in (format_page.PAGE, format_page.LIMITS, *plan_tables.SOURCES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((format_page.ROOT / name).read_text())
    changed = schema.replace("between(1, 1024)", "between(1, 2048)")
    (tmp_path / format_page.SCHEMA).write_text(changed)
    monkeypatch.setattr(format_page, "ROOT", tmp_path)
    assert format_page.format_page_differs() == [f"{format_page.PAGE}: differs from its sources; run `tools/dev pages`"]
