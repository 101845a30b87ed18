"""Tests parts of tiles and joined tiles on the CPU, with the cases of test/device/parts.py.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import kpkg
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("KPKG_BUILD_DIR", "build")
sys.path[:0] = [str(ROOT / "test" / "device")]

import parts  # noqa: E402

SHAPES = ((6, 10), (16, 33))
DTYPES = ("float32", "int8")


@pytest.fixture(scope="module")
def ops(tmp_path_factory: pytest.TempPathFactory) -> object:
    folder = tmp_path_factory.mktemp("parts")
    (folder / "parts.k").write_text(parts.source(SHAPES, DTYPES))
    command = [BUILD / "bin" / "kpkg", "build", folder / "parts.k", "-o", folder / "parts.kpkg", "--target", "native"]
    subprocess.run([*command, "-O1"], check=True)
    return kpkg.load(folder / "parts.kpkg")


@pytest.mark.parametrize("form", parts.FORMS)
def test_parts_equal_pytorchs(ops: object, form: str) -> None:
    chosen = [case for case in parts.cases(SHAPES) if case[0] == form]
    assert chosen
    wrong = [
        f"{parts.op_name(*case)} {dtype}"
        for case in chosen
        for dtype in DTYPES
        if not parts.is_right(ops, *case, dtype, "cpu")
    ]
    assert not wrong
