"""Compares gradients of attention with large heads, as GPUs compute them, with float64.

The kernels are compiled for this CPU. Checks which rounds of heads are launched, and their results.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import itertools

import kpkg
import pytest
import torch
from conftest import load_input

ALL = 1 << 40
#: batch, query heads, key-value heads, queries, keys, head size of queries and keys, head size of values; visible keys
#: before and after a query; rounds
CASES = {
    "groups": ((2, 4, 2, 530, 290, 256, 256), ALL, ALL, 1),
    "causal": ((2, 1, 1, 700, 600, 200, 136), ALL, 0, 1),
    "window": ((1, 3, 3, 520, 1030, 192, 256), 89, 89, 1),
    "queries that see nothing": ((1, 2, 2, 900, 140, 136, 136), 49, 0, 1),
    "heads of 192 and 128": ((1, 2, 2, 640, 420, 192, 128), ALL, 0, 1),
    "rounds of heads": ((2, 66, 22, 257, 300, 136, 136), ALL, ALL, 4),
    "rounds of batches": ((5, 22, 22, 257, 300, 136, 136), ALL, ALL, 3),
    "larger rounds": ((5, 16, 16, 257, 300, 136, 136), ALL, 0, 1),
}


@pytest.fixture(scope="module")
def package():
    return load_input("materialised_heads", "attention")


def exact(grad, q, k, v, before, after):
    """Returns the result, the log-sum-exps and the gradients."""
    grad, q, k, v = (t.double() for t in (grad, q, k, v))
    group = q.shape[1] // k.shape[1]
    wide_k, wide_v = (t.repeat_interleave(group, 1) for t in (k, v))
    ahead = torch.arange(k.shape[2]) - torch.arange(q.shape[2])[:, None]
    s = (q @ wide_k.mT * q.shape[3] ** -0.5).masked_fill((ahead > after) | (ahead < -before), float("-inf"))
    p = torch.softmax(s, -1).nan_to_num(0.0)
    dp = grad @ wide_v.mT
    ds = p * (dp - (p * dp).sum(-1, keepdim=True)) * q.shape[3] ** -0.5

    def over_group(x):
        return x.unflatten(1, (k.shape[1], group)).sum(2)

    return p @ wide_v, torch.logsumexp(s, -1), (ds @ wide_k, over_group(ds.mT @ q), over_group(p.mT @ grad))


@pytest.mark.parametrize(
    ("case", "dtype"),
    list(zip(CASES.values(), itertools.cycle([torch.bfloat16, torch.float16]), strict=False)),
    ids=CASES,
)
def test_against_float64(package, case, dtype):
    (batch, heads, kv_heads, queries, keys, size, value_size), before, after, rounds = case
    generator = torch.Generator().manual_seed(queries)

    def normal(*shape):
        return torch.randn(shape, generator=generator).to(dtype)

    q, k = normal(batch, heads, queries, size), normal(batch, kv_heads, keys, size)
    v, grad = normal(batch, kv_heads, keys, value_size), normal(batch, heads, queries, value_size)
    out, lse, expected = exact(grad, q, k, v, before, after)
    with kpkg.profile_kernel() as profile:
        found = package.materialised_gradients(
            grad, q, k, v, out.to(dtype), lse.float(), size**-0.5, before, after, min(before, after) < ALL
        )
    names = [launch["instance"].partition("[")[0] for launch in profile.records["launches"]]
    assert names == ["compute_row_statistics"] + [
        "materialise_weights",
        "sum_materialised",
        "sum_materialised",
    ] * rounds + ["join_heads"] * (2 if heads > kv_heads else 0)
    unit = torch.finfo(dtype).eps
    for result, reference in zip(found, expected, strict=True):
        assert float((result.double() - reference).norm()) <= 0.5 * unit * float(reference.norm())


def test_refuses_what_is_not_for_them(package):
    q, rows = torch.randn(1, 1, 255, 256).bfloat16(), torch.zeros(1, 1, 255)
    with pytest.raises(kpkg.KernelError, match="not for queries"):
        package.materialised_gradients(q, q, q, q, q, rows, 1.0, ALL, ALL, False)
