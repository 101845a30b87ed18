"""Spec of mixtures of experts with matrices of 8-bit floats.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from opspec import HALF, OpSpec, Sample, normal
from torch import Tensor
from torch.nn import functional as F

FP8 = torch.float8_e4m3fn
BLOCK = 128
MOST = 448.0


def dense(x: Tensor, scale: Tensor, like: Tensor) -> Tensor:
    """Returns the numbers of matrices with a scale for each block."""
    factors = scale.repeat_interleave(BLOCK, 1).repeat_interleave(BLOCK, 2)
    return x.to(like.dtype) * factors[:, : x.shape[1], : x.shape[2]].to(like.dtype)


def quantized(x: Tensor) -> Tensor:
    """Returns rows as 8-bit floats with a scale for each BLOCK elements give them."""
    parts = F.pad(x, (0, -x.shape[1] % BLOCK)).unflatten(1, (-1, BLOCK))
    scale = (parts.abs().amax(2, keepdim=True) / MOST).clamp(min=2.0**-126)
    return ((parts / scale).to(FP8).to(x.dtype) * scale).flatten(1)[:, : x.shape[1]]


def gated(x: Tensor, activation: str, alpha: float, limit: float) -> Tensor:
    a, b = x.chunk(2, 1)
    if activation == "silu":
        return F.silu(a) * b
    a = a.clamp(max=limit)
    return a * torch.sigmoid(alpha * a) * (b.clamp(-limit, limit) + 1)


def moe_fp8(
    input: Tensor,
    gate_up: Tensor,
    gate_up_scale: Tensor,
    down: Tensor,
    down_scale: Tensor,
    weights: Tensor,
    experts: Tensor,
    activation: str = "silu",
    alpha: float = 1.702,
    limit: float = 7.0,
) -> Tensor:
    x = quantized(input)
    sums = torch.zeros_like(x)
    for e in range(len(gate_up)):
        share = torch.where(experts == e, weights.to(x.dtype), 0).sum(1, keepdim=True)
        used = (experts == e).any(1)
        own = slice(e, e + 1)
        up = dense(gate_up[own], gate_up_scale[own], x)[0]
        hidden = quantized(gated(F.linear(x[used], up), activation, alpha, limit))
        sums[used] += share[used] * F.linear(hidden, dense(down[own], down_scale[own], x)[0])
    return sums


def magnitude(
    input: Tensor,
    gate_up: Tensor,
    gate_up_scale: Tensor,
    down: Tensor,
    down_scale: Tensor,
    weights: Tensor,
    experts: Tensor,
    activation: str = "silu",
    *_: float,
) -> Tensor:
    """Returns the sizes of terms. A hidden element beside the middle of two numbers may become either of them."""
    x = input.abs()
    sums = torch.zeros_like(x)
    for e in range(len(gate_up)):
        share = torch.where(experts == e, weights.to(x.dtype).abs(), 0).sum(1, keepdim=True)
        used = (experts == e).any(1)
        own = slice(e, e + 1)
        up = dense(gate_up[own], gate_up_scale[own], x)[0].abs()
        a, b = F.linear(x[used], up).chunk(2, 1)
        hidden = a * (b + 1 if activation == "clamped_swiglu" else b)
        sums[used] += share[used] * F.linear(hidden, dense(down[own], down_scale[own], x)[0].abs())
    return sums


#: Tokens, hidden size, inner size, experts, choices.
SIZES = [
    (1, 64, 128, 4, 2),
    (5, 144, 128, 3, 1),
    (16, 256, 256, 8, 4),
    (0, 128, 128, 4, 2),
    (4, 128, 128, 4, 0),
    (17, 1040, 128, 40, 3),
    (60, 384, 384, 4, 2),
    (200, 272, 128, 3, 2),
]


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def matrices(experts: int, rows: int, columns: int) -> tuple[Tensor, Tensor]:
        scale = torch.rand(experts, -(-rows // BLOCK), -(-columns // BLOCK), generator=generator) + 0.5
        return normal((experts, rows, columns), torch.float32, generator).to(FP8), scale * max(columns, 1) ** -0.5

    def chosen(tokens: int, choices: int, experts: int, first: int = 0) -> Tensor:
        keys = torch.rand(tokens, experts, generator=generator)
        return keys.argsort(1)[:, :choices].int().contiguous() + first

    def call(tokens: int, hidden: int, inner: int, experts: int, choices: int, first: int = 0) -> tuple[Tensor, ...]:
        weights = torch.rand(tokens, choices, generator=generator)
        both = *matrices(experts, 2 * inner, hidden), *matrices(experts, hidden, inner)
        return normal((tokens, hidden), dtype, generator), *both, weights, chosen(tokens, choices, experts, first)

    for sizes in SIZES:
        given = call(*sizes)
        label = "{} tokens, {}x{}, {} experts, {} choices".format(*sizes)
        yield Sample(given, label=label)
        yield Sample((*given, "clamped_swiglu", 1.702, 1.0), label=f"{label}, clamped")
    for tokens in (6, 50):
        given = call(tokens, 128, 128, 5, 3, -2)
        yield Sample(given, label=f"{tokens} tokens, experts that do not exist")
        none = torch.full_like(given[-1], -1)
        yield Sample((*given[:-1], none), label=f"{tokens} tokens without experts")
        x, up, up_scale, down, down_scale, weights, experts = call(tokens, 160, 128, 6, 2)
        strided = x.t().contiguous().t(), up.mT.contiguous().mT, up_scale.mT.contiguous().mT
        columns = weights.t().contiguous().t()
        yield Sample((*strided, down, down_scale, columns, experts), label=f"{tokens} tokens, transposed")
        yield Sample(
            (torch.zeros_like(x), up, up_scale, down, down_scale, weights, experts), label=f"{tokens} tokens of zeros"
        )


SPECS = [OpSpec("kpkg::moe_fp8", moe_fp8, samples, dtypes=HALF, magnitude=magnitude, rounds_between=True, numpy=False)]
