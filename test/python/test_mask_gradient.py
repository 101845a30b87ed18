"""Compares gradients of additive masks of all expandable shapes with float64 and with PyTorch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

SHAPES = [(2, 4, 70, 90), (1, 4, 70, 90), (4, 70, 1), (2, 1, 1, 90), (70, 90), (90,), (1, 1, 1, 1)]


def exact(q, k, v, mask, is_causal):
    q, k, v = q.double(), *(t.double().repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    s = q @ k.mT / q.shape[3] ** 0.5 + mask
    if is_causal:
        s = s.masked_fill(torch.ones(s.shape[2:], dtype=torch.bool).triu(1), float("-inf"))
    return torch.softmax(s, -1) @ v, torch.logsumexp(s, -1)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_of_attention(libraries, shape, is_causal):
    generator = torch.Generator().manual_seed(len(shape))
    q = torch.randn(2, 4, 70, 24, generator=generator)
    k, v = (torch.randn(2, 2, 90, 24, generator=generator) for _ in range(2))
    mask = torch.randn(shape, generator=generator).requires_grad_()
    wide = mask.detach().double().requires_grad_()
    results, references = libraries["attention"].attention(q, k, v, mask, is_causal), exact(q, k, v, wide, is_causal)
    grads = [torch.randn(r.shape, generator=generator) for r in results]
    (found,) = torch.autograd.grad(list(results), mask, grads)
    (expected,) = torch.autograd.grad(list(references), wide, [g.double() for g in grads])
    torch.testing.assert_close(found, expected.float(), atol=2e-5 * float(expected.abs().max()), rtol=1e-5)


def test_of_sdpa(libraries):
    q, k, v = (torch.randn(2, 3, 30, 16) for _ in range(3))
    mask = torch.randn(3, 1, 30).requires_grad_()
    found = torch.autograd.grad(libraries["attention"].scaled_dot_product_attention(q, k, v, mask).square().sum(), mask)
    expected = torch.autograd.grad(F.scaled_dot_product_attention(q, k, v, mask).square().sum(), mask)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
