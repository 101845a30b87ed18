"""Compares the Mojo GPU puzzles of examples/puzzles, which are at thread level, with PyTorch on the CPU.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import pytest
from conftest import BUILD, ROOT, build_package
from puzzle_cases import CASES, check


@pytest.fixture(scope="module")
def ops():
    import kpkg

    package = BUILD / "test-packages" / "puzzles.kpkg"
    return kpkg.load(build_package(ROOT / "examples" / "puzzles", package, "--target", "native", "-O1"))


@pytest.mark.parametrize("name", sorted(CASES))
def test_puzzle(ops, name):
    check(ops, name, "cpu")
