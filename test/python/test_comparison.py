"""Tests comparisons, where, masked_fill and clamp against PyTorch: gradients, numbers, torch.compile and messages.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

SHAPES = [((3, 5), (3, 5), (3, 5)), ((4, 70), (70,), (4, 1)), ((2, 3, 5), (), (3, 1)), ((1, 9), (7, 1), (7, 9))]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
DTYPES = [torch.float32, torch.float64, torch.bfloat16]


@pytest.fixture(scope="module")
def library(libraries):
    return libraries["comparison"]


def drawn(shape, dtype=torch.float64):
    return torch.randint(-3, 4, shape).to(dtype)


@pytest.mark.parametrize("name", COMPARISONS)
def test_not_a_number_and_infinities(library, name):
    x = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 2.0])
    assert torch.equal(getattr(library, name)(x, x.unsqueeze(1)), getattr(torch, name)(x, x.unsqueeze(1)))


@pytest.mark.parametrize("name", COMPARISONS)
def test_numbers(library, name):
    for x in (drawn((3, 4)), drawn((3, 4), torch.bfloat16), drawn((3, 4), torch.int64)):
        assert torch.equal(getattr(library, name)(x, 2), getattr(torch, name)(x, 2))


def test_large_integers(library):
    x = torch.tensor([2**53 + 1, 2**53, -(2**63)])
    assert library.eq(x, x.flip(0)).tolist() == [False, True, False]
    assert torch.equal(library.where(x > 0, x, x - 1), torch.where(x > 0, x, x - 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", SHAPES)
def test_gradients_of_where(library, shapes, dtype):
    condition = drawn(shapes[2]) > 0
    a, b = (drawn(shape, dtype).requires_grad_() for shape in shapes[:2])
    grad = drawn(torch.broadcast_shapes(*shapes), dtype)
    found = torch.autograd.grad(library.where(condition, a, b), (a, b), grad)
    for x, y in zip(found, torch.autograd.grad(torch.where(condition, a.double(), b.double()), (a, b), grad.double())):
        assert_close(x, y.to(dtype), rtol=2**-7 if dtype is torch.bfloat16 else 1e-5, atol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradient_of_masked_fill(library, dtype):
    x, mask = drawn((4, 70), dtype).requires_grad_(), drawn((70,)) > 0
    grad = drawn((4, 70), dtype)
    (found,) = torch.autograd.grad(library.masked_fill(x, mask, 3.0), x, grad)
    assert torch.equal(found, grad.masked_fill(mask, 0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("wanted", ["both", "min", "max"])
def test_gradients_of_clamp(library, shapes, dtype, wanted):
    """Small integers, so that elements equal bounds, and some bounds are the wrong way round."""
    tensors = [drawn(shape, dtype).requires_grad_() for shape in shapes]
    low, high = tensors[1] if wanted != "max" else None, tensors[2] if wanted != "min" else None
    inputs = [t for t in (tensors[0], low, high) if t is not None]
    expected = torch.clamp(*(None if t is None else t.double() for t in (tensors[0], low, high)))
    grad = drawn(expected.shape, dtype)
    result = library.clamp(tensors[0], low, high)
    assert torch.equal(result.double(), expected)
    for x, y in zip(torch.autograd.grad(result, inputs, grad), torch.autograd.grad(expected, inputs, grad.double())):
        assert_close(x, y.to(dtype), rtol=2**-7 if dtype is torch.bfloat16 else 1e-5, atol=1e-3)


def test_clamp_keeps_not_a_number(library):
    x = torch.tensor([math.nan, 1.0, 2.0])
    for low, high in ((x.flip(0), None), (None, x.flip(0)), (x.flip(0), x)):
        assert_close(library.clamp(x, low, high), torch.clamp(x, low, high), equal_nan=True)


def test_compiled(library):
    x, y = drawn((3, 4)), drawn((4,))

    def run(a, b):
        return library.where(library.lt(a, b), library.masked_fill(a, library.eq(a, b), 0.5), b)

    found = torch.compile(run, fullgraph=True, backend="aot_eager")(x, y)
    assert torch.equal(found, torch.where(x < y, x.masked_fill(x == y, 0.5), y))


def test_memory_format(library):
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    for result in (library.gt(x, x), library.where(x > 0, x, x), library.clamp(x, x, None)):
        assert result.is_contiguous(memory_format=torch.channels_last)


X = torch.ones(2, 3)
MISTAKES = [
    ("where", (X, X, X), r"condition is float32, expected bool"),
    ("masked_fill", (X, X, 1.0), r"mask is float32, expected bool"),
    ("masked_fill", (X, torch.ones(4, 2, 3, dtype=torch.bool), 1.0), r"mask has shape .*which .* cannot hold"),
    ("clamp", (X,), r"min and max are None, expected one of them at least"),
    ("clamp", (X.bool(), X.bool()), r"input is bool, expected numbers"),
    ("eq", (X.to(torch.float8_e5m2), X.to(torch.float8_e5m2)), r"a is float8_e5m2, expected a float of 16 bits"),
]


@pytest.mark.parametrize("name, arguments, message", MISTAKES)
def test_mistakes_are_named(name, arguments, message, library):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        getattr(library, name)(*arguments)
