"""Compares results and gradients of convolutions and transposed convolutions with float64.

Shapes, strides, paddings, dilations, groups and memory formats are random.

`KPKG_CONV_CASES` is the number of cases (default 240), `KPKG_CONV_SEED` the first seed.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import random

import kpkg
import pytest
import torch

CASES = int(os.environ.get("KPKG_CONV_CASES", "240"))
SEED = int(os.environ.get("KPKG_CONV_SEED", "0"))
CHUNK = 60
ROUND_OFF = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
F = torch.nn.functional


def reordered(x, chance):
    """Returns x in another memory format."""
    return chance.choice(
        [x, x.movedim(1, -1).contiguous().movedim(-1, 1), x.transpose(0, 1).contiguous().transpose(0, 1)]
    )


def case(seed):
    chance = random.Random(seed)
    dims = chance.choice([1, 2, 2, 3])
    groups, c, k = (
        chance.choice([1, 1, 2, 3]),
        chance.choice([1, 2, 3, 8, 17, 70]),
        chance.choice([1, 2, 5, 16, 33, 140]),
    )
    if chance.random() < 0.15:
        groups, c, k = chance.choice([4, 19, 33]), 1, chance.choice([1, 1, 2])
    extents = [chance.randint(1, {1: 300, 2: 20, 3: 7}[dims]) for _ in range(dims)]
    taps = [chance.randint(1, min(5, n + 1)) for n in extents]
    stride, dilation, padding = ([chance.randint(low, 3) for _ in extents] for low in (1, 1, 0))
    extents = [max(n, d * (t - 1) + 1 - 2 * p) for n, d, t, p in zip(extents, dilation, taps, padding)]
    dtype = chance.choice(list(ROUND_OFF))
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, dtype=torch.float64, generator=generator).to(dtype)

    batch = chance.randint(1, 3)
    bias = chance.random() < 0.5
    if chance.random() < 0.35:
        more = [chance.randint(0, max(s, d) - 1) for s, d in zip(stride, dilation)]
        small = [max(1, n // 2) for n in extents]
        grown = [
            (n - 1) * s - 2 * p + d * (t - 1) + m + 1
            for n, s, p, d, t, m in zip(small, stride, padding, dilation, taps, more)
        ]
        if min(grown) >= 1:
            x, w, b = (
                normal(batch, groups * k, *small),
                normal(groups * k, c, *taps),
                normal(groups * c) if bias else None,
            )
            return (
                f"conv_transpose{dims}d",
                reordered(x, chance),
                reordered(w, chance),
                b,
                (stride, padding, more, groups, dilation),
            )
    x, w, b = normal(batch, groups * c, *extents), normal(groups * k, c, *taps), normal(groups * k) if bias else None
    return f"conv{dims}d", reordered(x, chance), reordered(w, chance), b, (stride, padding, dilation, groups)


def with_gradients(function, x, w, b, rest, grad=None):
    leaves = [t.detach().clone().requires_grad_() for t in (x, w, b) if t is not None]
    out = function(*leaves, *([None] if b is None else []), *rest)
    if grad is None:
        grad = torch.randn(out.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(out.numel())).to(
            x.dtype
        )
    return [out.detach(), *torch.autograd.grad(out, leaves, grad.to(out.dtype))], grad


@pytest.mark.parametrize("first", range(SEED, SEED + CASES, CHUNK))
def test_random_cases(first, ops):
    for seed in range(first, min(first + CHUNK, SEED + CASES)):
        name, x, w, b, rest = case(seed)
        found, grad = with_gradients(ops[f"kpkg::{name}"], x, w, b, rest)
        exact, _ = with_gradients(getattr(F, name), *(None if t is None else t.double() for t in (x, w, b)), rest, grad)
        sizes, _ = with_gradients(
            getattr(F, name), *(None if t is None else t.double().abs() for t in (x, w, b)), rest, grad.abs()
        )
        for which, result, expected, size in zip(("result", "input", "weight", "bias"), found, exact, sizes):
            assert result.shape == expected.shape and result.dtype == x.dtype
            unit = ROUND_OFF[x.dtype]
            allowed = (
                2 * unit * expected.abs()
                + 32 * (unit if unit < 2.0**-30 else 2.0**-24) * size
                + torch.finfo(x.dtype).smallest_normal
            )
            worst = float(((result.double() - expected).abs() / allowed).max()) if result.numel() else 0.0
            assert worst <= 1, (
                f"seed {seed}: {name} {tuple(x.shape)} {tuple(w.shape)} {rest} {x.dtype}: {which} is off by "
                f"{worst:.2f} of what is allowed"
            )


def test_wrong_arguments_are_refused(ops):
    x, w = torch.zeros(1, 4, 5, 5), torch.zeros(6, 4, 3, 3)
    for arguments, message in [
        ((x, w[:, :3]), "has 4 channels, expected 3"),
        ((x, w, None, [1], [0], [3]), "does not fit"),
        ((x, w, None, [0]), "expected at least 1"),
        ((x, w, None, [1, 1, 1]), "expected 1 or 2"),
        ((x, w, None, [1], [0], [1], 4), "cannot be shared by 4 groups"),
        ((x[0, 0], w), "expected 3 or 4 dimensions"),
        ((x, w.double()), "weight is float64"),
        ((x, w, None, [2], [0], [1], 1, "same"), "stride of 1"),
    ]:
        with pytest.raises((RuntimeError, ValueError, kpkg.KernelError), match=message):
            ops["kpkg::conv2d"](*arguments)
    with pytest.raises((RuntimeError, ValueError, kpkg.KernelError), match="pool is max, expected none or mean"):
        ops["kpkg::conv2d_fused"](x, w, pool="max")
