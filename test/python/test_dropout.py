"""Tests dropout: masks by seed, gradients, the layer, and wrong arguments.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from conftest import BUILD, ROOT, build_package, torch_threads
from kpkg import nn
from torch.testing import assert_close


@pytest.fixture(scope="module")
def ops():
    package = BUILD / "test-packages" / "dropout.kpkg"
    library = kpkg.load(build_package(ROOT / "kernels_src" / "dropout", package, "--target", "native"))
    library.register_torch()
    return torch.ops.kpkg


def test_share_and_scale(ops):
    x = torch.ones(1 << 18)
    y = ops.dropout(x, 0.3, 5)
    assert abs((y == 0).float().mean() - 0.3) < 0.005
    assert set(y.unique().tolist()) == {0.0, torch.tensor(1 / 0.7).item()}


def test_masks_follow_from_seed_and_offset(ops):
    x = torch.ones(4097)
    first = ops.dropout(x, 0.5, 5, 7)
    assert torch.equal(first, ops.dropout(x, 0.5, 5, 7))
    assert torch.equal(first, ops.dropout(x, 0.5, 2, 7, None, torch.tensor([3])))
    for other in (ops.dropout(x, 0.5, 6, 7), ops.dropout(x, 0.5, 5, 8)):
        assert 0.4 < (first == other).float().mean() < 0.6
    with torch_threads(1):
        assert torch.equal(first, ops.dropout(x, 0.5, 5, 7))


def test_masks_do_not_depend_on_strides_or_dtypes(ops):
    x = torch.ones(60, 34)
    expected = ops.dropout(x, 0.5, 5)
    assert torch.equal(ops.dropout(torch.ones(34, 60).t(), 0.5, 5), expected)
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        assert torch.equal(ops.dropout(x.to(dtype), 0.5, 5).float(), expected)


def test_gradient_has_the_same_mask(ops):
    x, r = (torch.randn(33, 70, dtype=torch.float64, requires_grad=True) for _ in range(2))
    y = ops.dropout(x, 0.4, 9, 1, r, torch.tensor([4]))
    upstream = torch.randn(70, 33, dtype=torch.float64).t()
    dx, dr = torch.autograd.grad(y, (x, r), upstream)
    assert_close(dx, upstream * ops.dropout(torch.ones_like(x), 0.4, 13, 1))
    assert torch.equal(dr, upstream)


def test_compiled(ops):
    x = torch.randn(9, 130)
    run = torch.compile(lambda x: ops.dropout(x, 0.5, 3) + 1, fullgraph=True, backend="aot_eager")
    assert torch.equal(run(x), ops.dropout(x, 0.5, 3) + 1)


def test_layer(ops, default_ops):
    layer, x = nn.Dropout(0.25), torch.ones(1000, requires_grad=True)
    assert layer.use_kpkg
    torch.manual_seed(3)
    first = layer(x)
    assert not torch.equal(first, layer(x))
    torch.manual_seed(3)
    assert torch.equal(first, layer(x))
    first.sum().backward()
    assert torch.equal(x.grad, first.detach())
    assert torch.equal(layer.eval()(x), x) and not layer.use_kpkg
    assert torch.nn.Dropout not in nn.replacements()


X = torch.ones(4, 3)
WRONG = [
    ((X, 1.5), r"p is 1.5, expected 0 to 1"),
    ((X, float("nan")), r"p is nan, expected 0 to 1"),
    ((X.int(),), r"x is int32, expected float32, float64, float16 or bfloat16"),
    ((X, 0.5, 1, 0, X[1:]), r"residual has shape \[3, 3\], x \[4, 3\]"),
    ((X, 0.5, 1, 0, X.double()), r"residual is float64, expected float32 as x"),
    ((X, 0.5, 1, 0, None, torch.ones(1)), r"device_seed is float32 of shape \[1\], expected one int64"),
]


@pytest.mark.parametrize("arguments, message", WRONG)
def test_wrong_arguments_are_named(ops, arguments, message):
    with kpkg.fallback_policy("strict"), pytest.raises(RuntimeError, match=message):
        ops.dropout(*arguments)
