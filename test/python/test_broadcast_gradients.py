"""Tests gradients of arithmetic of two operands that are broadcast, without fallbacks, against PyTorch in float64.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
import random

import kpkg
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

SHAPES = [
    ((), ()),
    ((5,), ()),
    ((), (3, 4)),
    ((0, 3), (3,)),
    ((3, 0), (3, 1)),
    ((7, 1), (1, 9)),
    ((4, 70), (70,)),
    ((4, 70), (4, 1)),
    ((2, 3, 5, 7), (3, 1, 1)),
    ((2, 3, 5, 7), (2, 1, 5, 1)),
    ((3, 1, 4, 1), (2, 1, 6)),
    ((20000,), (1,)),
    ((1, 5000), (40, 1)),
    ((700, 66), (66,)),
    ((3000, 1), (3000, 5)),
]
OPS = {
    "add": lambda a, b: torch.add(a, b, alpha=-1.5),
    "sub": lambda a, b: torch.sub(a, b, alpha=2.0),
    "mul": torch.mul,
    "div": torch.div,
    "minimum": torch.minimum,
    "maximum": torch.maximum,
    "swiglu": lambda a, b: F.silu(a) * b,
    "geglu": lambda a, b: F.gelu(a) * b,
}
MORE = {"add": (-1.5,), "sub": (2.0,)}
DTYPES = [torch.float32, torch.float64, torch.bfloat16]


def drawn(shape, dtype):
    """Returns quarters, of which many are equal and none is 0."""
    x = torch.randint(0, 24, shape).double() * 0.25 - 2.875
    return x.to(dtype)


@pytest.fixture(scope="module")
def library(libraries):
    return libraries["elementwise"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_gradients_of_broadcast_operands(library, name, dtype):
    for shape_a, shape_b in SHAPES:
        for first, second in ((shape_a, shape_b), (shape_b, shape_a)):
            a, b = (drawn(shape, dtype).requires_grad_() for shape in (first, second))
            wide = [x.detach().double().requires_grad_() for x in (a, b)]
            expected = OPS[name](*wide)
            grad = drawn(expected.shape, dtype)
            with kpkg.fallback_policy("strict"):
                found = torch.autograd.grad(getattr(library, name)(a, b, *MORE.get(name, ())), (a, b), grad)
            terms = max(1, expected.numel())
            for x, y in zip(found, torch.autograd.grad(expected, wide, grad.double())):
                unit = torch.finfo(dtype).eps if dtype is not torch.bfloat16 else 2.0**-7
                bound = 8 * unit * max(1.0, math.sqrt(terms / max(y.numel(), 1)) * 8)
                assert x.dtype is dtype and x.shape == y.shape
                assert_close(x.double(), y, rtol=unit * 4, atol=bound * 8)


def test_only_what_is_needed(library):
    a, b = torch.randn(4, 5, requires_grad=True), torch.randn(5)
    with kpkg.fallback_policy("strict"):
        for name in OPS:
            getattr(library, name)(a, b).sum().backward()
    assert b.grad is None and a.grad is not None


def test_strides_and_memory(library):
    rng = random.Random(4)
    for _ in range(20):
        a = torch.randn(rng.randint(1, 9), rng.randint(1, 40), rng.randint(1, 9), dtype=torch.float64)
        a = a.permute(rng.sample(range(3), 3))
        b = torch.randn(a.shape[-2] * 2, 1, dtype=torch.float64)[::2]
        a, b = a.requires_grad_(), b.requires_grad_()
        grad = torch.randn(a.shape, dtype=torch.float64).transpose(0, 1).contiguous().transpose(0, 1)
        for name in ("mul", "div", "maximum"):
            with kpkg.fallback_policy("strict"):
                found = torch.autograd.grad(getattr(library, name)(a, b), (a, b), grad)
            assert_close(found, torch.autograd.grad(OPS[name](a, b), (a, b), grad))


def test_not_a_number_belongs_to_both(library):
    a = torch.tensor([math.nan, 1.0, 2.0], requires_grad=True)
    b = torch.tensor([1.0, math.nan, 2.0], requires_grad=True)
    for name in ("minimum", "maximum"):
        found = torch.autograd.grad(getattr(library, name)(a, b), (a, b), torch.ones(3))
        assert_close(found, torch.autograd.grad(OPS[name](a, b), (a, b), torch.ones(3)))


def test_operands_of_several_dtypes(library):
    a = torch.randn(3, 4, dtype=torch.bfloat16, requires_grad=True)
    b = torch.tensor(1.5, requires_grad=True)
    found = torch.autograd.grad(library.mul(a, b), (a, b), torch.ones(3, 4, dtype=torch.bfloat16))
    assert [x.dtype for x in found] == [torch.bfloat16, torch.float32]
    assert_close(found[1], a.detach().float().sum())


def test_second_derivatives(library):
    a, b = (torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    with kpkg.fallback_policy("silent"):
        for name in ("mul", "div", "swiglu"):
            assert torch.autograd.gradgradcheck(lambda x, y, op=getattr(library, name): op(x, y), (a, b + 3))
