"""Compares the attention kernels of GPUs, compiled for this CPU, with float64.

Checks which kernels the op and its gradients launch for lengths, masks and heads of any kind, and their results.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import random
from collections import Counter

import kpkg
import pytest
import torch
from conftest import build_for_gpus

SEEDS = range(48)
#: Kernels that CPUs do not run, or run in another way: all must have been launched at the end.
PATHS = {
    "attention_forward",
    "attend_few",
    "copy_rows",
    "prepare_rows",
    "all_gradients",
    "finish_queries",
    "join_heads",
    "compute_row_statistics",
    "query_gradient",
    "key_gradients",
}
PATHS |= {"pack_queries", "span_queries", "transpose_queries"}
launched: Counter[str] = Counter()


@pytest.fixture(scope="module")
def package(libraries):
    """Returns the package of the GPU kernels.

    `libraries` are loaded first and registered again at the end, because ops have the public names of the package
    registered last.
    """
    yield kpkg.load(build_for_gpus("attention", "scores.k"))
    libraries["attention"].register_torch()


def exact(q, k, v, mask, causal, softcap, window):
    """Returns the result and the log-sum-exps."""
    group = q.shape[1] // k.shape[1]
    s = q @ k.repeat_interleave(group, 1).mT / q.shape[3] ** 0.5
    if softcap:
        s = softcap * torch.tanh(s / softcap)
    if mask is not None:
        s = s.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else s + mask.double()
    ahead = torch.arange(k.shape[2]) - torch.arange(q.shape[2])[:, None]
    hidden = ahead > 0 if causal else torch.zeros_like(ahead, dtype=torch.bool)
    if window:
        hidden = hidden | (ahead.abs() >= window)
    s = s.masked_fill(hidden, float("-inf"))
    return torch.softmax(s, -1).nan_to_num(0.0) @ v.repeat_interleave(group, 1), torch.logsumexp(s, -1)


def case(seed):
    """Returns query, key, value, mask or None, is_causal, softcap and window."""
    chance, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    dtype = chance.choice([torch.bfloat16, torch.float16, torch.float32])
    kv_heads, group, size = chance.choice([1, 2]), chance.choice([1, 1, 3]), chance.choice([40, 64, 80, 96, 128, 200])
    queries, keys = chance.choice([1, 5, 63, 130, 257]), chance.choice([1, 7, 64, 129, 300, 515])
    is_plain, is_masked = seed % 8 in (0, 3), seed % 8 == 5
    if seed % 8 == 0:  # fused gradients over all blocks
        dtype, size, queries, keys = (
            chance.choice([torch.bfloat16, torch.float16]),
            chance.choice([64, 128]),
            chance.choice([1024, 1027]),
            chance.choice([77, 160]),
        )
        group = 3 if seed % 16 == 0 else 1
    elif is_masked:  # the same with a mask
        dtype, size, queries, keys = (
            chance.choice([torch.bfloat16, torch.float16]),
            chance.choice([40, 64, 80, 128]),
            chance.choice([520, 1027]),
            chance.choice([77, 160, 300]),
        )
    elif is_plain:  # query heads that share a tile
        dtype, queries, keys = (
            chance.choice([torch.bfloat16, torch.float16]),
            chance.choice([1, 5, 63]),
            chance.choice([515, 2100]),
        )
    q, k, v = (
        torch.randn(2, heads, n, size, generator=generator).to(dtype)
        for heads, n in ((group * kv_heads, queries), (kv_heads, keys), (kv_heads, keys))
    )
    kind = "none" if is_plain else chance.choice(["none", "padding", "seen", "added", "column"])
    if is_masked:
        kind = ["added", "padding", "seen", "column"][seed // 8 % 4]
    mask = {
        "none": lambda: None,
        "padding": lambda: torch.arange(keys) < torch.tensor([keys // 2 + 1, keys]).reshape(2, 1, 1, 1),
        "seen": lambda: torch.rand(queries, keys, generator=generator) > 0.3,
        "added": lambda: torch.randn(2, 1, queries, keys, generator=generator).to(dtype),
        "column": lambda: torch.rand(queries, 1, generator=generator) > 0.2,
    }[kind]()
    if is_plain or is_masked:
        return q, k, v, mask, False, 0.0, 0
    return q, k, v, mask, chance.random() < 0.4, chance.choice([0.0, 0.0, 3.0]), chance.choice([0, 0, 50])


def profiled(call):
    with kpkg.profile_kernel() as profile:
        results = call()
    launched.update({launch["instance"].partition("[")[0] for launch in profile.records["launches"]})
    return results


@pytest.mark.parametrize("seed", SEEDS)
def test_cases(package, seed):
    q, k, v, mask, causal, softcap, window = case(seed)
    out, lse = profiled(lambda: package.attention(q, k, v, mask, causal, None, softcap, window))
    wide = [t.double().requires_grad_() for t in (q, k, v)]
    wanted, sums = exact(*wide, mask, causal, softcap, window)
    grad = torch.randn(out.shape, generator=torch.Generator().manual_seed(seed)).to(q.dtype)
    wanted_gradients = torch.autograd.grad(wanted, wide, grad.double())
    found = profiled(
        lambda: package.attention_backward(grad, q, k, v, out, lse, mask, causal, None, softcap, window, seed % 3 == 0)
    )
    what = (
        f"{tuple(q.shape)} {tuple(k.shape)} {q.dtype} {None if mask is None else (mask.dtype, tuple(mask.shape))} "
        f"{causal=} {softcap=} {window=}"
    )
    unit = max(torch.finfo(q.dtype).eps, 2.0**-17)
    torch.testing.assert_close(
        lse.double(), sums.detach(), atol=4 * unit, rtol=4 * unit, msg=lambda text: f"lse of {what}: {text}"
    )
    for name, result, reference in zip(
        ("out", "query", "key", "value"), (out, *found), (wanted.detach(), *wanted_gradients), strict=True
    ):
        error, size = (
            float((result.double() - reference).norm()),
            max(float(reference.norm()), 0.05 * float(grad.double().norm())),
        )
        assert error <= 2 * unit * size, f"{name} of {what}: {error / size / unit:.2f} units"


def test_all_paths_were_taken():
    if len(launched) < 4:
        pytest.skip("needs all cases")
    assert not PATHS - launched.keys(), f"no case took {sorted(PATHS - launched.keys())}"
