"""Logarithms of sums of attention: rows of them begin on 16 bytes whatever the number of queries.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import pytest
import torch
from opinfo.libraries import library


@pytest.mark.parametrize("queries", [1, 5, 13, 33, 64])
def test_rows_of_vectors(queries):
    q, k, v = (torch.randn(2, 3, n, 16, dtype=torch.double).requires_grad_() for n in (queries, 21, 21))
    out, lse = library("attention").attention(q, k, v)
    scores = q @ k.mT / 4
    assert lse.shape == (2, 3, queries) and lse.stride(2) == 1 and lse.stride(1) % 4 == 0 and lse.stride(0) % 4 == 0
    torch.testing.assert_close(lse, torch.logsumexp(scores, -1))
    expected = torch.softmax(scores, -1) @ v
    torch.testing.assert_close(out, expected)
    grad = torch.randn_like(out)
    for found, wanted in zip(torch.autograd.grad(out, (q, k, v), grad), torch.autograd.grad(expected, (q, k, v), grad)):
        torch.testing.assert_close(found, wanted)
