"""Tests attention with lengths that are not multiples of a vector.

Covers the aligned copies of masks for GPUs, and gradients of partial blocks.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from conftest import load_input

DTYPES = [torch.bool, torch.float32, torch.bfloat16, torch.float16]


@pytest.fixture(scope="module")
def package(libraries):
    return load_input("mask_rows", "attention")


def launches(package, mask, keys):
    with kpkg.profile_kernel() as profile:
        rows = package.mask_rows(mask, keys)
    return rows, [launch["instance"].partition("[")[0] for launch in profile.records["launches"]]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(2, 3, 5, 77), (77,), (5, 1), (2, 1, 1, 77), (1, 1, 9, 300), ()], ids=str)
def test_rows_of_other_lengths_are_copied(package, shape, dtype):
    mask, keys = (torch.randn(shape) * 2).to(dtype), shape[-1] if shape and shape[-1] > 1 else 77
    line = 16 // dtype.itemsize
    rows, kernels = launches(package, mask, keys)
    if keys == 300 and dtype == torch.float32:  # rows are whole vectors
        assert kernels == [] and torch.equal(rows, mask)
        return
    wide = mask.reshape((1,) * (4 - mask.dim()) + mask.shape)
    assert (
        kernels == ["copy_rows"] and rows.shape == (*wide.shape[:3], -(-keys // line) * line) and rows.is_contiguous()
    )
    assert torch.equal(rows[..., :keys], wide.expand(*wide.shape[:3], keys)) and not rows[..., keys:].any()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_of_whole_vectors_are_not_copied(package, dtype):
    mask = torch.randn(2, 3, 8, 64).to(dtype)
    for given in (mask, mask[:, :1], mask[0, 0, 0], mask[:, :, ::2]):
        rows, kernels = launches(package, given, 64)
        assert kernels == [] and torch.equal(rows, given.expand(rows.shape))
    rows, kernels = launches(package, mask[..., 1:-1], 62)
    assert kernels == ["copy_rows"] and torch.equal(rows[..., :62], mask[..., 1:-1])


@pytest.mark.parametrize("queries, keys", [(1, 1), (5, 7), (63, 130), (131, 65), (257, 3)])
def test_gradients(libraries, queries, keys):
    """Padding queries behind the last one do not affect the gradients."""
    generator = torch.Generator().manual_seed(queries)
    q, k, v = (
        torch.randn(2, heads, n, 20, dtype=torch.double, generator=generator).requires_grad_()
        for heads, n in ((4, queries), (2, keys), (2, keys))
    )
    mask = torch.rand(queries, keys, generator=generator) > 0.3
    mask[0] = False  # attends to no key
    out, lse = libraries["attention"].attention(q, k, v, mask)
    scores = (q @ k.repeat_interleave(2, 1).mT / 20**0.5).masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, -1).nan_to_num(0.0)
    expected = weights @ v.repeat_interleave(2, 1)
    torch.testing.assert_close(out, expected)
    grad = torch.randn(out.shape, dtype=torch.double, generator=generator)
    dp = grad @ v.detach().repeat_interleave(2, 1).mT
    ds = weights.detach() * (dp - (weights.detach() * dp).sum(-1, keepdim=True)) / 20**0.5
    wanted = (
        ds @ k.detach().repeat_interleave(2, 1),
        (ds.mT @ q.detach()).unflatten(1, (2, 2)).sum(2),
        (weights.detach().mT @ grad).unflatten(1, (2, 2)).sum(2),
    )
    for found, reference in zip(torch.autograd.grad(out, (q, k, v), grad), wanted, strict=True):
        torch.testing.assert_close(found, reference)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("low", ["lowest", -1e9])
@pytest.mark.parametrize("queries", [6, 70])
def test_queries_whose_keys_all_have_low_numbers(libraries, dtype, low, queries):
    """Equal low numbers for all keys of a query do not change its weights; -inf hides keys."""
    generator = torch.Generator().manual_seed(queries)
    q, k, v, grad = (torch.randn(1, 2, n, 64, dtype=dtype, generator=generator) for n in (queries, 70, 70, queries))
    mask = torch.zeros(queries, 70, dtype=dtype)
    mask[:3], mask[3], mask[4, 7:] = (
        torch.finfo(dtype).min if low == "lowest" else max(low, torch.finfo(dtype).min),
        -float("inf"),
        torch.finfo(dtype).min,
    )
    wide = [t.double().clone().requires_grad_() for t in (q, k, v)]
    scores = wide[0] @ wide[1].mT / 8 + mask.double().clamp(min=-(2.0**17)).masked_fill(
        mask == -float("inf"), -float("inf")
    )
    expected = torch.softmax(scores.masked_fill(scores == -float("inf"), -float("inf")), -1).nan_to_num(0.0) @ wide[2]
    out, lse = libraries["attention"].attention(q, k, v, mask)
    found = libraries["attention"].attention_backward(grad, q, k, v, out, lse, mask)
    wanted = [gradient.nan_to_num(0.0) for gradient in torch.autograd.grad(expected, wide, grad.double())]
    for result, reference in zip((out, *found), (expected.detach(), *wanted), strict=True):
        assert float((result.double() - reference).norm()) <= 0.02 * float(reference.norm())
