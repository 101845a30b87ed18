"""Tests the gradient of cummax, its ties and NaN, and dtypes without kernels, against PyTorch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math

import kpkg
import pytest
import torch
from torch.testing import assert_close

SHAPES = [((), 0), ((1,), -1), ((0, 3), 0), ((3, 0), 1), ((5, 70), -1), ((2, 700), 1), ((70, 5), 0), ((600, 66), 0)]
SHAPES += [((3, 40, 7), 1)]


@pytest.fixture(scope="module")
def cummax(libraries):
    return libraries["scan"].cummax


def ties(shape, dtype=torch.float64):
    return (torch.randn(shape, generator=torch.Generator().manual_seed(6)) * 2).round().to(dtype)


@pytest.mark.parametrize("shape, dim", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_gradient_is_pytorchs(cummax, shape, dim, dtype):
    """Few maxima and many: each takes the gradients of a run, and an infinite one stays in its run."""
    for x in (ties(shape), torch.randn(shape), torch.arange(float(math.prod(shape))).reshape(shape)):
        x, grad = x.to(dtype).requires_grad_(), torch.randn(shape, dtype=torch.float64).mul(4).round().to(dtype)
        if grad.numel() > 3:
            grad.view(-1)[2] = math.inf
        with kpkg.fallback_policy("strict"):
            (found,) = torch.autograd.grad(cummax(x, dim)[0], x, grad)
        (expected,) = torch.autograd.grad(torch.cummax(x.double(), dim)[0], x, grad.double())
        assert_close(found, expected.to(dtype), equal_nan=True)


@pytest.mark.parametrize("shape, dim", SHAPES)
def test_not_a_number(cummax, shape, dim):
    """The first NaN ends the maxima, and each further one has its own index."""
    x = ties(shape)
    x.view(-1)[1::7] = math.nan
    values, indices = cummax(x, dim)
    expected = torch.cummax(x, dim)
    assert_close(values, expected.values, equal_nan=True, rtol=0, atol=0)
    assert torch.equal(indices, expected.indices)


def test_indices_have_no_gradient(cummax):
    values, indices = cummax(ties((3, 4)).requires_grad_(), 1)
    assert values.requires_grad and not indices.requires_grad and indices.dtype == torch.int64


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.bool])
def test_integers_are_pytorchs(cummax, dtype):
    x = ties((3, 40)).to(dtype)
    with kpkg.fallback_policy("silent"):
        values, indices = cummax(x, 1)
    expected = torch.cummax(x, 1)
    assert torch.equal(values, expected.values) and torch.equal(indices, expected.indices)


def test_vmap_and_compile(cummax):
    x = ties((4, 5, 30))
    found = torch.vmap(lambda x: torch.ops.kpkg.cummax(x, 0), in_dims=1)(x)
    expected = torch.vmap(lambda x: tuple(torch.cummax(x, 0)), in_dims=1)(x)
    assert all(torch.equal(a, b) for a, b in zip(found, expected))
    compiled = torch.compile(lambda x: torch.ops.kpkg.cummax(x, -1)[0].sum(), fullgraph=True, backend="aot_eager")
    x.requires_grad_()
    (found,) = torch.autograd.grad(compiled(x), x)
    (expected,) = torch.autograd.grad(torch.cummax(x, -1)[0].sum(), x)
    assert_close(found, expected)


def test_second_derivative_is_pytorchs(cummax):
    x = ties((3, 20)).requires_grad_()
    with kpkg.fallback_policy("silent"):
        assert torch.autograd.gradgradcheck(lambda x: cummax(x + torch.arange(20) / 64, 1)[0].square(), (x,))


def test_a_dimension_that_is_not_there(cummax):
    with pytest.raises((kpkg.KernelError, IndexError, RuntimeError), match="out of range|dim"):
        cummax(ties((3, 4)), 2)
