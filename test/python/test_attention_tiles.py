"""Compares attention with float64 at the boundaries of the CPU tiles for few keys.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

TOLERANCES = {torch.float32: 5e-6, torch.bfloat16: 3e-2}


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("keys", [1, 16, 17, 64, 65, 128, 129])
def test_few_keys(libraries, dtype, keys):
    generator = torch.Generator().manual_seed(keys)
    sdpa = libraries["attention"].scaled_dot_product_attention
    for queries in (9, 16, 33, 130):
        q = torch.randn(2, 4, queries, 48, generator=generator).to(dtype)
        k, v = (torch.randn(2, 4, keys, 48, generator=generator).to(dtype) for _ in range(2))
        mask = torch.rand(queries, keys, generator=generator) > 0.4
        mask[:, 0] = True
        for options in ({}, {"is_causal": True}, {"attn_mask": mask}):
            expected = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), **options)
            error = (sdpa(q, k, v, **options).double() - expected).abs().max()
            assert error < TOLERANCES[dtype], (queries, options.keys(), error)
