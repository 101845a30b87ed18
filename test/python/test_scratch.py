"""Tests scratch memory of blocks on CPUs. test/device/scratch.py tests it on a GPU.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib.util

import kpkg
import pytest
import torch
from conftest import BUILD, ROOT, build_package

SPEC = importlib.util.spec_from_file_location("scratch", ROOT / "test" / "device" / "scratch.py")
SCRATCH = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(SCRATCH)
CASES = dict(SCRATCH.cases("cpu"))


@pytest.fixture(scope="module")
def ops():
    source = ROOT / "test" / "device" / "kernels" / "scratch.k"
    package = build_package(source, BUILD / "test-packages" / "scratch.kpkg", "--target", "native", "-O1")
    return {op.name.removeprefix("scratch::"): op for op in kpkg.load(package)}


@pytest.mark.parametrize("name", CASES)
def test_elements_pass_through_memory(ops, name):
    for seed in range(3):
        CASES[name](ops, torch.Generator().manual_seed(seed))
