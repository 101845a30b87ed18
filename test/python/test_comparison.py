"""Tests comparisons, where, masked_fill and clamp against PyTorch: gradients, numbers, torch.compile and messages.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math

import kpkg
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


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool])
def test_numbers_out_of_range(library, name, dtype):
    """PyTorch's integers wrap around. A bool beside an integer has the integer's dtype."""
    x = torch.tensor([0, 1, 44, 100, -128]).to(dtype)
    for number in (44, 300, -1, -300, 2**31, -(2**40), 2**63 - 1, -(2**63), 0.5, 1e300):
        for tensor in (x, x.expand(3, 5), x[1]):
            found, expected = getattr(library, name)(tensor, number), getattr(torch, name)(tensor, number)
            assert torch.equal(found, expected), (number, tensor)


INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]


@pytest.mark.parametrize("dtype", [*INTEGERS, torch.bool])
def test_masked_fill_of_integers(library, dtype):
    x, mask = drawn((4, 70), torch.int64).to(dtype), drawn((70,)) > 0
    before = library.masked_fill.stats()["fallbacks"]
    for value in (0, 2.75, 100, True, -1):
        for tensor in (x, x[:, ::2], x.t().contiguous().t(), x[:0]):
            part = mask[:: 70 // tensor.shape[1]]
            assert torch.equal(library.masked_fill(tensor, part, value), tensor.masked_fill(part, value)), value
    assert library.masked_fill.stats()["fallbacks"] == before
    if dtype.is_signed:
        assert torch.equal(library.masked_fill(x, mask, -2.75), x.masked_fill(mask, -2.75))


def test_clamp_of_bools_is_pytorchs(library):
    x, y = drawn((4, 5)) > 0, drawn((4, 5)) > 0
    with kpkg.fallback_policy("strict"):
        for bounds in ((y, None), (None, y)):
            assert torch.equal(library.clamp(x, *bounds), torch.clamp(x, *bounds))
    assert torch.equal(library.clamp(x, 0, 1), torch.clamp(x, 0, 1))


def test_clamp_refuses_numbers_out_of_range(library):
    x = torch.ones(2, dtype=torch.uint8)
    for clamp in (library.clamp, torch.clamp):
        with pytest.raises(RuntimeError, match="cannot be converted to type uint8_t without overflow"):
            clamp(x, 0, 300)


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
    ("masked_fill", (X.byte(), X > 0, 256.0), r"value 256(\.0)? does not fit uint8"),
    ("masked_fill", (X.byte(), X > 0, -1.5), r"value -1.5 does not fit uint8"),
    ("masked_fill", (X.long(), X > 0, math.nan), r"value nan does not fit int64"),
    ("masked_fill", (X.long(), X > 0, 2.0**60), r"value .* may be rounded"),
    ("eq", (X.to(torch.float8_e5m2), X.to(torch.float8_e5m2)), r"a is float8_e5m2, expected a float of 16 bits"),
]


@pytest.mark.parametrize("name, arguments, message", MISTAKES)
def test_mistakes_are_named(name, arguments, message, library):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        getattr(library, name)(*arguments)
