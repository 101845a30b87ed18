"""Tests gradients of max pooling through autograd, for images in both memory formats.

The backward finds the element that each result took again.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import kpkg
import pytest
import torch
import torch.nn.functional as F
from conftest import build_for_gpus
from torch.testing import assert_close

# batch, channels, height, width; kernel_size, stride, padding, dilation
CASES = [
    ((2, 70, 12, 36), (3, 3), (2, 2), (1, 1), (1, 1)),
    ((1, 64, 9, 8), (2, 2), (2, 2), (0, 0), (1, 1)),
    ((2, 5, 10, 39), (3, 4), (2, 3), (1, 2), (2, 1)),
    ((3, 33, 7, 20), (5, 3), (1, 1), (2, 1), (1, 1)),
    ((2, 17, 11, 12), (2, 2), (3, 3), (1, 1), (1, 1)),  # elements in no window
    ((1, 9, 18, 34), (16, 17), (1, 1), (8, 8), (1, 1)),  # a window has more elements than a byte can index
]


@pytest.fixture(scope="module", params=["CPU", "GPU"])
def pooling(libraries, request) -> Iterator[kpkg.CustomOpLibrary]:
    """Returns the CPU package, then the GPU package on this CPU, which copies NCHW images."""
    if request.param == "CPU":
        yield libraries["pooling"]
        return
    yield kpkg.load(build_for_gpus("pooling"))
    libraries["pooling"].register_torch()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("order", ["channels last", "contiguous", "one image", "other order of gradients"])
def test_gradients_of_max_pooling_are_pytorchs(pooling, case, order, dtype):
    shape, k, s, p, d = case
    torch.manual_seed(3)
    x = torch.randn(shape, dtype=dtype).mul(2).round()  # with ties
    x.view(-1)[::7] = -math.inf
    x[0, 0, 3:6] = -math.inf  # windows with nothing else
    x.view(-1)[::41] = math.nan
    if order != "contiguous":
        x = x.contiguous(memory_format=torch.channels_last)
    if order == "one image":
        x = x[0]
    x.requires_grad_()
    want = F.max_pool2d(x, k, s, p, d)
    got = pooling.max_pool2d(x, list(k), list(s), list(p), list(d))
    assert_close(got, want, rtol=0, atol=0, equal_nan=True)
    grad = torch.randn_like(want)
    if order == "other order of gradients":
        grad = grad.transpose(2, 3).contiguous().transpose(2, 3)
    (found,) = torch.autograd.grad(got, x, grad)
    exact = torch.autograd.grad(F.max_pool2d(x.double(), k, s, p, d), x, grad.double())[0]
    assert_close(found, exact, rtol=2 * torch.finfo(dtype).eps, atol=max(16, k[0] * k[1]) * torch.finfo(dtype).eps)
