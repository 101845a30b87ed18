"""Tests the decorator that gives a function its kernels.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from conftest import COMMAND

SOURCE = """
    @kernel
    @specialize(T=[float32])
    def raise_rows[T: DType](x: Tensor[T, 1], mut y: Tensor[T, 1], by: Float64):
        y.tile[64](block_idx.x).store(x.tile[64](block_idx.x).load() + by.cast[T]())

    @register.op("NAMESPACE::raised")
    def raised(x: Tensor, by: Float64 = 1.0) raises -> Tensor:
        var y = empty_like(x)
        launch raise_rows[T=x.dtype](x, y, by, grid=ceildiv(x.numel(), 64))
        return y
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KPKG_COMMAND", str(COMMAND))
    monkeypatch.setenv("KPKG_CACHE_DIR", str(tmp_path))
    with kpkg.fallback_policy("warn"):
        yield


def test_kernels_run_and_the_function_is_the_fallback():
    calls = []

    @kpkg.compiled(SOURCE.replace("NAMESPACE", "decorated"), targets="native")
    def raised(x, by=1.0):
        calls.append(x.dtype)
        return x + by

    assert isinstance(raised, kpkg.Op)
    x = torch.randn(100)
    torch.testing.assert_close(raised(x, 2.0), x + 2.0)
    assert calls == [] and torch.equal(torch.ops.decorated.raised(x), x + 1)
    with pytest.warns(kpkg.FallbackWarning):
        torch.testing.assert_close(raised(x.double(), by=3.0), x.double() + 3.0)
    assert calls == [torch.float64]


def test_autograd_differentiates_the_function():
    @kpkg.compiled(SOURCE.replace("NAMESPACE", "differentiated"), targets="native")
    def raised(x, by=1.0):
        return x * x + by  # not what the kernel computes, to tell them apart

    x = torch.randn(10, requires_grad=True)
    y = raised(x)
    y.sum().backward()
    torch.testing.assert_close(y, x + 1)
    torch.testing.assert_close(x.grad, 2 * x.detach())


def test_names_and_arguments_must_agree():
    def shifted(x, by=1.0):
        return x + by

    def raised(x, amount=1.0):
        return x + amount

    decorate = kpkg.compiled(SOURCE.replace("NAMESPACE", "disagreeing"), targets="native")
    with pytest.raises(TypeError, match="text of shifted needs one op of that name; its ops are disagreeing::raised"):
        decorate(shifted)
    with pytest.raises(TypeError, match=r"raised takes x, amount, but its op is raised\(Tensor x, float by=1.0\)"):
        decorate(raised)
    with pytest.raises(kpkg.CompileError, match="raised.k:5"):
        kpkg.compiled(SOURCE.replace("cast[", "casts["), targets="native")(raised)


def test_without_a_compiler_the_function_runs(monkeypatch, tmp_path):
    def function(x):
        return x + 1

    monkeypatch.setenv("KPKG_COMMAND", str(tmp_path / "none"))
    with pytest.warns(kpkg.FallbackWarning, match="function runs as it is, without kernels: KPKG_COMMAND is"):
        assert kpkg.compiled(SOURCE)(function) is function
    with kpkg.fallback_policy("strict"), pytest.raises(FileNotFoundError):
        kpkg.compiled(SOURCE)(function)
