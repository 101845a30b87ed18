"""Compares the fused gradients of masked attention, as on GPUs, with float64.

The kernels are compiled for this CPU; masks have any shape and strides.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import pytest
import torch
from conftest import load_input

INF = float("inf")
#: Batches, query heads, key-value heads, queries, keys, head size.
SHAPES = [
    (2, 2, 2, 1, 7, 64),
    (2, 3, 1, 130, 300, 64),
    (2, 4, 2, 257, 129, 80),
    (1, 2, 2, 63, 1, 128),
    (2, 2, 1, 200, 130, 40),
]


@pytest.fixture(scope="module")
def package():
    return load_input("masked_heads", "attention")


def masks(b, h, m, n, dtype, generator):
    """Returns functions that make masks for b batches, h heads, m queries and n keys."""

    def hidden(*shape):
        return torch.rand(*shape, generator=generator) > 0.4

    def numbers(*shape):
        return torch.randn(*shape, generator=generator).to(dtype)

    def blind():  # a query that attends to no key
        seen = hidden(m, n)
        seen[m // 2] = False
        return seen

    def cut():  # a query and a key that are hidden completely
        added = numbers(m, n)
        added[0], added[:, n // 2] = -INF, -INF
        return added

    return {
        "padding": lambda: torch.arange(n) < torch.randint(n // 2 + 1, n + 1, (b, 1, 1, 1), generator=generator),
        "keys": lambda: hidden(n),
        "queries": lambda: hidden(m, 1),
        "causal": lambda: torch.ones(m, n, dtype=torch.bool).tril(),
        "late": lambda: torch.ones(m, n, dtype=torch.bool).triu(40),
        "blind": blind,
        "batches": lambda: hidden(b, 1, m, n),
        "heads": lambda: hidden(h, m, n),
        "all": lambda: hidden(b, h, m, n),
        "expanded": lambda: hidden(1, 1, m, n).expand(b, h, m, n),
        "turned": lambda: hidden(n, m).T,
        "sliced": lambda: hidden(b, 1, m + 3, 2 * n + 5)[:, :, 1 : m + 1, 3 : 2 * n + 3 : 2],
        "one": lambda: torch.ones((), dtype=torch.bool),
        "nothing": lambda: torch.zeros(m, n, dtype=torch.bool),
        "added": lambda: numbers(1, h, m, n),
        "added to keys": lambda: numbers(b, 1, 1, n),
        "added to queries": lambda: numbers(b, h, m, 1),
        "added, cut": cut,
        "added, some -inf": lambda: numbers(b, h, m, n).masked_fill(hidden(b, h, m, n), -INF),
        "added, turned": lambda: numbers(h, n, m).mT,
        "added, sliced": lambda: numbers(b, 1, m + 2, n + 9)[:, :, 1 : m + 1, 4 : n + 4],
        "added, expanded": lambda: numbers(1, 1, m, n).expand(b, h, m, n),
        "added, far from 0": lambda: 8 * numbers(m, n) - 200,
        "lowest numbers": lambda: torch.zeros(b, 1, 1, n, dtype=dtype).masked_fill(~hidden(b, 1, 1, n), -3e4),
    }


def exact(q, k, v, mask, scale):
    """Returns the result and the log-sum-exps."""
    group = q.shape[1] // k.shape[1]
    s = q @ k.repeat_interleave(group, 1).mT * scale
    s = s.masked_fill(~mask, -INF) if mask.dtype == torch.bool else s + mask.double()
    s = s.masked_fill(s == -INF, -INF)  # stops the gradient
    return torch.softmax(s, -1).nan_to_num(0.0) @ v.repeat_interleave(group, 1), torch.logsumexp(s, -1)


@pytest.mark.parametrize("name", masks(1, 1, 1, 1, torch.float16, None))
def test_masks(package, name):
    for seed, (b, h, kv_heads, m, n, size) in enumerate(SHAPES):
        generator = torch.Generator().manual_seed(seed)
        dtype = torch.float16 if seed % 2 else torch.bfloat16
        q, k, v, grad = (
            torch.randn(b, heads, rows, size, generator=generator).to(dtype)
            for heads, rows in ((h, m), (kv_heads, n), (kv_heads, n), (h, m))
        )
        mask, scale = masks(b, h, m, n, dtype, generator)[name](), 0.3 if seed == 1 else size**-0.5
        wide = [t.double().requires_grad_() for t in (q, k, v)]
        out, lse = exact(*wide, mask, scale)
        grad_lse = torch.randn(lse.shape, generator=generator).masked_fill(lse == -INF, 0.0) if seed % 2 else None
        total = (out * grad.double()).sum()
        if grad_lse is not None:
            total = total + (lse.masked_fill(lse == -INF, 0.0) * grad_lse.double()).sum()
        wanted = [gradient.nan_to_num(0.0) for gradient in torch.autograd.grad(total, wide)]
        found = package.fused_gradients(
            grad, grad_lse, q, k, v, out.detach().to(dtype), lse.detach().float(), mask, scale
        )
        for what, result, reference in zip("qkv", found, wanted, strict=True):
            error, length = (
                float((result.double() - reference).norm()),
                max(float(reference.norm()), 0.05 * float(grad.double().norm())),
            )
            assert error <= 2 * torch.finfo(dtype).eps * length, (
                f"{what} of {tuple(q.shape)} {tuple(k.shape)} {dtype}: {error / length:.2e}"
            )


def test_hidden_blocks_are_not_read(package):
    """Weights of keys that every query hides would be NaN times 0."""
    q, k, v, grad = (
        torch.randn(1, 1, 256, 64, generator=torch.Generator().manual_seed(i)).to(torch.bfloat16) for i in range(4)
    )
    k[:, :, 128:], v[:, :, 128:] = float("nan"), float("nan")
    mask = torch.arange(256) < 128
    out, lse = exact(q.double(), k[:, :, :128].double(), v[:, :, :128].double(), mask[:128], 0.125)
    dq, dk, dv = package.fused_gradients(grad, None, q, k, v, out.to(torch.bfloat16), lse.float(), mask, 0.125)
    assert not any(t.isnan().any() for t in (dq, dk, dv)) and not dk[:, :, 128:].any() and not dv[:, :, 128:].any()
