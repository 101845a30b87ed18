"""Tests ops in programs that AOTInductor compiles ahead of time.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import shutil

import kpkg
import pytest
import torch
from torch.testing import assert_close

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None and shutil.which("clang++") is None, reason="AOTInductor needs a C++ compiler"
)


def test_export_compile_and_load(packages, libraries, tmp_path):
    # PyTorch calls the newest library of an op: this one, whatever earlier tests have loaded.
    softmax = kpkg.load(packages["softmax"]).softmax

    class Model(torch.nn.Module):
        def forward(self, x, w):
            return torch.ops.kpkg.softmax(torch.ops.kpkg.layer_norm(x * 2, [8], w), -1) + 1

    x, w = torch.randn(4, 8), torch.randn(8)
    rows = torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(Model(), (x, w), dynamic_shapes={"x": {0: rows}, "w": None})
    package = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "model.pt2"))
    loaded = torch._inductor.aoti_load_package(package)
    calls = softmax.stats()["launches"]
    for count in (4, 9):
        x = torch.randn(count, 8)
        assert_close(loaded(x, w), Model()(x, w))
    assert softmax.stats()["launches"] == calls + 4
