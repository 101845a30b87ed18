"""Checks the implementations that run without packages: they are those that the packages declare.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import sys
from pathlib import Path

import kpkg
import pytest
import torch
from kpkg import _fallbacks

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_is_that_of_the_packages(libraries, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    sys.modules.pop("shipped_ops", None)
    from shipped_ops import declarations

    assert _fallbacks.SHIPPED.read_text() == declarations(libraries.values()), "run `tools/dev shipped`"


@pytest.fixture
def no_packages(monkeypatch, tmp_path):
    monkeypatch.setenv("KPKG_PATH", str(tmp_path))
    kpkg.ops.reload()
    yield kpkg.ops
    monkeypatch.undo()
    kpkg.ops.reload()


def test_ops_run_without_packages(no_packages):
    x = torch.randn(4, 8)
    with kpkg.fallback_policy("warn"), pytest.warns(kpkg.FallbackWarning, match="kpkg::softmax"):
        assert torch.equal(no_packages.softmax(x, -1), x.softmax(-1))
    with kpkg.fallback_policy("silent"):
        assert torch.equal(no_packages.gemm(x, x.T, alpha=2.0), 2.0 * (x @ x.T))
        assert torch.equal(no_packages.layer_norm(x, [8]), torch.nn.functional.layer_norm(x, [8]))
    with pytest.raises(kpkg.KernelError, match="no package has kpkg::nosuch"):
        no_packages["kpkg::nosuch"](x)
