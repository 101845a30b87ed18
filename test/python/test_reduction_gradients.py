"""Tests gradients of reductions, without fallbacks, against PyTorch in float64: ties, zeros, NaN, any dimensions.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

CASES = [
    ((), []),
    ((7,), [0]),
    ((7,), []),
    ((0, 3), [1]),
    ((4, 70), [1]),
    ((4, 70), [0]),
    ((4, 70), [-1, 0]),
    ((1, 5000), [1]),
    ((600, 66), [0]),
    ((2, 3, 5, 7), [1, 3]),
    ((2, 3, 5, 7), [0, 2, 3]),
    ((2, 3, 2, 3, 2, 3), [0, 2, 4]),
]
ORDERS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, -2.0, math.inf, -math.inf)


def norm_of(order):
    return lambda x, dim, keepdim: torch.linalg.vector_norm(x, order, dim, keepdim), (order,)


def product(x, dim, keepdim):
    for d in sorted((d % x.dim() for d in dim), reverse=True):
        x = torch.prod(x, d, keepdim)
    return x


OPS = {
    "prod": (product, ()),
    "sum": (torch.sum, ()),
    "mean": (torch.mean, ()),
    "amax": (torch.amax, ()),
    "amin": (torch.amin, ()),
    **{f"vector_norm {order}": norm_of(order) for order in ORDERS},
}
DTYPES = [torch.float32, torch.float64, torch.bfloat16]


@pytest.fixture(scope="module")
def library(libraries):
    return libraries["reduction"]


def drawn(shape, dtype):
    """Returns halves, of which many are equal and some are 0."""
    return (torch.randint(-9, 10, shape).double() * 0.5).to(dtype)


def compare(library, name, x, dim, keepdim):
    theirs, order = OPS[name]
    dims = dim or list(range(x.dim()))
    wide = x.detach().double().requires_grad_()
    expected = theirs(wide, dims, keepdim) if x.dim() else theirs(wide, [], keepdim)
    grad = drawn(expected.shape, x.dtype)
    found = getattr(library, name.split()[0])(x, *order, dim, keepdim)
    (mine,) = torch.autograd.grad(found, x, grad)
    (other,) = torch.autograd.grad(expected, wide, grad.double(), allow_unused=True)
    other = torch.zeros_like(wide) if other is None else other  # PyTorch's norm of order 0 has no gradient
    unit = 2.0**-7 if x.dtype is torch.bfloat16 else torch.finfo(x.dtype).eps * 8
    if name == "vector_norm 0.5":
        unit *= 64  # the sum is squared
    assert mine.dtype is x.dtype and mine.shape == x.shape
    assert_close(mine.double(), other, rtol=unit, atol=unit, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_gradients(library, name, dtype):
    for shape, dim in CASES:
        if (name in ("amax", "amin") or name.endswith(("inf", "-2.0"))) and 0 in shape:
            continue
        for keepdim in (False, True):
            compare(library, name, drawn(shape, dtype).requires_grad_(), dim, keepdim)


@pytest.mark.parametrize("name", OPS)
def test_strides(library, name):
    x = drawn((6, 7, 8, 3), torch.float64)
    for y in (x.permute(3, 0, 2, 1), x[::2, :, 1:], x.transpose(0, 1)[1:], x[:, :1].expand(6, 5, 8, 3)):
        for dim in ([0], [1, 2], [-1]):
            compare(library, name, y.detach().requires_grad_(), dim, False)


def test_not_a_number(library):
    x = torch.tensor([[1.0, math.nan, 2.0], [3.0, 3.0, 1.0]], requires_grad=True)
    for name in ("amax", "amin", *(f"vector_norm {order}" for order in ORDERS)):
        compare(library, name, x, [1], False)


def test_zeros_have_no_direction(library):
    x = torch.zeros(2, 3, requires_grad=True)
    for order in ORDERS:
        compare(library, f"vector_norm {order}", x, [1], False)


@pytest.mark.parametrize("shape, dim", [((4, 6), [1]), ((6, 4), [0]), ((3, 4, 2), [0, 2]), ((1, 5000), [])])
def test_products_with_zeros(library, shape, dim):
    """No zero, one and two of the factors of a product."""
    for zeros in ((), (1,), (1, 2)):
        x = drawn(shape, torch.float64).abs() / 5 + 0.1
        for place in zeros:
            x.movedim(dim[0] if dim else -1, 0)[place] = 0.0
        compare(library, "prod", x.requires_grad_(), dim, False)


def test_memory_format(library):
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last).requires_grad_()
    (found,) = torch.autograd.grad(library.mean(x, [2, 3]).sum(), x)
    assert found.is_contiguous(memory_format=torch.channels_last)
