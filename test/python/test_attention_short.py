"""Tests attention of few queries on a CPU, which uses tiles of few rows and computes float32 in float64.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from torch.testing import assert_close

# Sizes lie on both sides of the rows of a short tile, and of a block of its keys.
SHAPES = [(2, 4, 1, 6, 8), (3, 4, 3, 64, 64), (2, 2, 8, 65, 40), (2, 2, 9, 200, 64), (1, 6, 5, 700, 100)]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("batch, heads, queries, keys, size", SHAPES)
def test_scores_of_hundreds(batch, heads, queries, keys, size, causal, libraries):
    generator = torch.Generator().manual_seed(queries)
    q, k, v = (torch.rand(batch, heads, n, size, generator=generator) * 18 - 9 for n in (queries, keys, keys))
    found = libraries["attention"].scaled_dot_product_attention(q, k, v, None, 0.0, causal)
    expected = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=causal)
    rounding = 1e-6 if queries <= 8 and (keys < 512 or causal) else 4e-4
    assert (found - expected).abs().max() <= rounding * 9


def test_masks_and_shared_heads(libraries):
    generator = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(2, heads, n, 16, generator=generator) for heads, n in ((6, 4), (2, 70), (2, 70)))
    for mask in (torch.rand(2, 1, 4, 70, generator=generator) > 0.3, torch.randn(4, 70, generator=generator)):
        found = libraries["attention"].scaled_dot_product_attention(q, k, v, mask, 0.0, False, None, True)
        wide = mask if mask.dtype == torch.bool else mask.double()
        expected = torch.nn.functional.scaled_dot_product_attention(
            q.double(), k.double(), v.double(), wide, enable_gqa=True
        )
        assert (found - expected).abs().max() <= 1e-6


def test_a_query_that_sees_no_key_gives_zeros(libraries):
    q, k, v = torch.randn(1, 2, 3, 16), torch.randn(1, 2, 5, 16), torch.randn(1, 2, 5, 16)
    mask = torch.tensor([True, False, True]).reshape(3, 1).expand(3, 5)
    out, lse = libraries["attention"].attention(q, k, v, mask)
    assert (out[:, :, 1] == 0).all() and (lse[:, :, 1] == -torch.inf).all() and (out[:, :, 0] != 0).any()


def test_dimensions_before_the_heads(libraries):
    """They broadcast, also a mask with them, as in PyTorch. Several of them are one batch of the kernels."""
    generator = torch.Generator().manual_seed(2)

    def random(*shape):
        return torch.randn(*shape, generator=generator)

    q, k, v = random(2, 3, 4, 5, 8), random(2, 1, 4, 7, 8), random(3, 4, 7, 6)
    attend = libraries["attention"].scaled_dot_product_attention
    for mask in (None, random(5, 7), random(3, 1, 5, 7) > 0, random(2, 1, 4, 5, 7)):
        expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)
        assert_close(attend(q, k, v, mask), expected)
    shared = [random(2, 3, 2, 7, 8) for _ in range(2)]
    assert_close(
        attend(q, *shared, enable_gqa=True),
        torch.nn.functional.scaled_dot_product_attention(q, *shared, enable_gqa=True),
    )
    inputs = [random(2, 1, 3, 2, 5, 8).requires_grad_() for _ in range(3)]
    expected = torch.autograd.grad(torch.nn.functional.scaled_dot_product_attention(*inputs).square().sum(), inputs)
    assert_close(torch.autograd.grad(attend(*inputs).square().sum(), inputs), expected)
    with pytest.raises(RuntimeError, match="no gradient of attn_mask .* flatten the dimensions before the heads"):
        attend(*(x.detach() for x in inputs), random(5, 5).requires_grad_()).sum().backward()


def test_dropout_is_refused_with_a_way_out(libraries):
    q = torch.randn(1, 2, 3, 8)
    with pytest.raises(kpkg.KernelError, match="dropout_p is 0.1, .*: pass 0.0, or call torch.nn.functional"):
        libraries["attention"].scaled_dot_product_attention(q, q, q, None, 0.1)
