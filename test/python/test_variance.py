"""Tests gradients of variance and standard deviation against PyTorch in float64, corrections, and cancellation.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math

import kpkg
import pytest
import torch
from torch.testing import assert_close

pytestmark = pytest.mark.filterwarnings("ignore:(std|var).*degrees of freedom")
OPS = ("var", "std", "var_mean", "std_mean")
CASES = [
    ((), []),
    ((7,), [0]),
    ((7,), []),
    ((0, 3), [1]),
    ((4, 70), [1]),
    ((4, 70), [-2]),
    ((1, 5000), [1]),
    ((600, 66), [0]),
    ((2, 3, 5, 7), [1, 3]),
    ((2, 3, 2, 3, 2, 3), [0, 2, 4]),
]


@pytest.fixture(scope="module")
def library(libraries):
    return libraries["variance"]


def results(value):
    return value if isinstance(value, tuple) else (value,)


def compare(library, name, x, dim, correction=1.0, keepdim=False):
    wide = x.detach().double().requires_grad_()
    expected = results(getattr(torch, name)(wide, dim or None, correction=correction, keepdim=keepdim))
    with kpkg.fallback_policy("strict"):
        found = results(getattr(library, name)(x, dim, correction, keepdim))
        grads = [torch.randn(r.shape, dtype=torch.float64).to(x.dtype) for r in found]
        (mine,) = torch.autograd.grad(found, x, grads)
    (other,) = torch.autograd.grad(expected, wide, [grad.double() for grad in grads])
    unit = 2.0**-6 if x.dtype is torch.bfloat16 else torch.finfo(x.dtype).eps * 32
    assert mine.dtype is x.dtype and mine.shape == x.shape
    assert_close(mine.double(), other, rtol=unit, atol=unit, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", OPS)
def test_gradients(library, name, dtype):
    for i, (shape, dim) in enumerate(CASES):
        compare(library, name, torch.randn(shape, dtype=dtype).requires_grad_(), dim, keepdim=i % 2 == 1)


@pytest.mark.parametrize("name", OPS)
def test_strides(library, name):
    x = torch.randn(6, 7, 8, 3, dtype=torch.float64)
    for y in (x.permute(3, 0, 2, 1), x[::2, :, 1:], x[:, :1].expand(6, 5, 8, 3)):
        for dim in ([0], [1, 2], [-1]):
            compare(library, name, y.detach().requires_grad_(), dim)


@pytest.mark.parametrize("correction", [0, 0.5, 3, 5, -2])
@pytest.mark.parametrize("name", OPS)
def test_corrections(library, name, correction):
    for x in (torch.tensor([1.0, 2.0, 4.0]), torch.ones(3), torch.tensor([1.0, math.nan, 0.0])):
        for dim in ([0], []):
            compare(library, name, x.double().requires_grad_(), dim, correction)


def test_channels_last(library):
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last).requires_grad_()
    (found,) = torch.autograd.grad(library.var(x, [2, 3]).sum(), x)
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert_close(library.var(x, [2, 3]), torch.var(x, (2, 3)))


@pytest.mark.parametrize("shape, dim", [((3, 300), 1), ((300, 3), 0), ((1, 70001), 1), ((70001, 9), 0), ((8, 4, 8), 1)])
def test_a_distant_mean_cancels_nothing(library, shape, dim):
    """A sum of squares less the square of the sum would leave no digit."""
    x = (torch.randn(shape, dtype=torch.float64) + 4096.0).float()
    assert_close(library.var(x, [dim]).double(), torch.var(x.double(), dim), rtol=1e-4, atol=0.0)
    assert_close(library.var_mean(x, [dim])[1].double(), torch.mean(x.double(), dim), rtol=1e-6, atol=0.0)


def test_large_elements_do_not_overflow(library):
    for n in (2, 20, 3000):
        x = torch.full((2, n), 3e38)
        for found in (library.std_mean(x, [1]), library.std_mean(x.t(), [0])):
            assert_close(found, (torch.zeros(2), x[:, 0]))


def test_equal_elements_have_no_spread(library):
    for shape in ((2, 5), (2, 3000), (1, 70001)):
        x = torch.full(shape, 0.1)
        assert not library.var(x, [1]).any() and not library.std(x.t(), [0]).any() and not library.var(x).any()


def test_dimensions_are_checked(library):
    with pytest.raises(kpkg.KernelError, match="dim 2 is out of range for a tensor of rank 2"):
        library.var(torch.ones(2, 3), [2])
    with pytest.raises(kpkg.KernelError, match="dim -1 is named twice"):
        library.std(torch.ones(2, 3), [1, -1])
