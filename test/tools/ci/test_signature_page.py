"""Tests the comparison of the page of signatures with the checker's table.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import pytest
from signature_page import builtins, complaints, signatures


def test_rows_are_those_of_the_checker():
    assert complaints(signatures()) == []
    assert {("", "dot"), ("Tile", "sum"), ("View", "gather"), ("Tensor", "fold")} <= set(builtins())


@pytest.mark.parametrize(
    ("name", "wrong", "complaint"),
    [
        ("cumsum", "cumsum(x)", "differs from the checker"),
        ("cumsum", "cumsum(x, axis=0)", "differs from the checker"),
        ("full", "full(value, extents...)", "differs from the checker"),
        ("scan", "scan[f](tiles..., *, axis, init)", "differs from the checker"),
        ("empty", "empty(extents..., dtype=float32)", "differs from the checker"),
        ("fma", "fmaf(a, b, c)", "has no `fmaf`"),
        ("tune", "tuned(where=True)", "the decorators are"),
    ],
)
def test_wrong_rows_are_reported(name, wrong, complaint):
    rows = [row._replace(signature=wrong) if row.name == name else row for row in signatures()]
    assert any(complaint in one for one in complaints(rows))


def test_missing_rows_are_reported():
    rows = [row for row in signatures() if row.name != "gather"]
    assert any("add a row for `gather` (View)" in one for one in complaints(rows))
