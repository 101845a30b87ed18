"""Spec of mixtures of experts.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from opspec import OpSpec, Sample, normal
from torch import Tensor
from torch.nn import functional as F


def parts(x: Tensor, interleaved: bool) -> tuple[Tensor, Tensor]:
    """Returns the elements of the last dimension that gate the others, and these."""
    return (x[..., 0::2], x[..., 1::2]) if interleaved else tuple(x.chunk(2, -1))  # type: ignore[return-value]


def gated(x: Tensor, activation: str, interleaved: bool, alpha: float, limit: float) -> Tensor:
    a, b = parts(x, interleaved)
    if activation == "silu":
        return F.silu(a) * b
    if activation == "gelu":
        return F.gelu(a) * b
    a = a.clamp(max=limit)
    return a * torch.sigmoid(alpha * a) * (b.clamp(-limit, limit) + 1)


def size_of_gated(x: Tensor, activation: str, interleaved: bool, *_: float) -> Tensor:
    """Returns a bound of the terms in the result of the gate, from those in its arguments."""
    a, b = parts(x, interleaved)
    return a * (b + 1 if activation == "clamped_swiglu" else b)


def mixture(
    gate: Any, x: Tensor, gate_up: Tensor, down: Tensor, weights: Tensor, experts: Tensor, biases: Any
) -> Tensor:
    sums = torch.zeros_like(x)
    for e in range(len(gate_up)):
        share = torch.where(experts == e, weights, 0).sum(1, keepdim=True)
        used = (experts == e).any(1)
        own = [None if bias is None else bias[e] for bias in biases]
        rows = F.linear(gate(F.linear(x[used], gate_up[e], own[0])), down[e], own[1])
        sums[used] += share[used] * rows
    return sums


def moe(
    input: Tensor,
    gate_up: Tensor,
    down: Tensor,
    weights: Tensor,
    experts: Tensor,
    gate_up_bias: Tensor | None = None,
    down_bias: Tensor | None = None,
    activation: str = "silu",
    interleaved: bool = False,
    alpha: float = 1.702,
    limit: float = 7.0,
) -> Tensor:
    def gate(x: Tensor) -> Tensor:
        return gated(x, activation, interleaved, alpha, limit)

    return mixture(gate, input, gate_up, down, weights, experts, (gate_up_bias, down_bias))


def magnitude(
    input: Tensor,
    gate_up: Tensor,
    down: Tensor,
    weights: Tensor,
    experts: Tensor,
    gate_up_bias: Tensor | None = None,
    down_bias: Tensor | None = None,
    activation: str = "silu",
    interleaved: bool = False,
    alpha: float = 1.702,
    limit: float = 7.0,
) -> Tensor:
    def gate(x: Tensor) -> Tensor:
        return size_of_gated(x, activation, interleaved)

    biases = [None if bias is None else bias.abs() for bias in (gate_up_bias, down_bias)]
    return mixture(gate, input.abs(), gate_up.abs(), down.abs(), weights.abs(), experts, biases)


#: Tokens, hidden size, inner size, experts, choices.
SIZES = [
    (1, 64, 32, 4, 2),
    (5, 33, 7, 3, 1),
    (16, 72, 40, 8, 4),
    (3, 16, 130, 130, 8),
    (0, 16, 8, 4, 2),
    (4, 16, 8, 4, 0),
    (17, 40, 24, 40, 3),
    (60, 24, 136, 4, 2),
    (200, 20, 18, 3, 2),
]


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int, scale: float = 1.0) -> Tensor:
        return normal(shape, dtype, generator, scale)

    def chosen(tokens: int, choices: int, experts: int, first: int = 0) -> Tensor:
        """Returns different experts for each token."""
        keys = torch.rand(tokens, experts, generator=generator, device=generator.device)
        return keys.argsort(1)[:, :choices].int().contiguous() + first

    def call(tokens: int, hidden: int, inner: int, experts: int, choices: int, first: int = 0) -> tuple[Tensor, ...]:
        weights = torch.rand(tokens, choices, generator=generator, device=generator.device)
        scales = hidden**-0.5, max(inner, 1) ** -0.5
        up, down = make(experts, 2 * inner, hidden, scale=scales[0]), make(experts, hidden, inner, scale=scales[1])
        return make(tokens, hidden), up, down, weights, chosen(tokens, choices, experts, first)

    for sizes in SIZES:
        x, up, down, weights, experts = call(*sizes)
        bias = make(*up.shape[:2]), make(*down.shape[:2])
        label = "{} tokens, {}x{}, {} experts, {} choices".format(*sizes)
        yield Sample((x, up, down, weights, experts), label=label)
        yield Sample((x, up, down, weights, experts, *bias, "gelu"), label=f"{label}, gelu, biases")
        clamped = (*bias, "clamped_swiglu", True, 1.702, 1.0)
        yield Sample((x, up, down, weights, experts, *clamped), label=f"{label}, clamped, interleaved")
        transposed = up.mT.contiguous().mT, down.mT.contiguous().mT
        yield Sample((x, *transposed, weights, experts, *clamped), label=f"{label}, clamped, transposed")
        yield Sample((x, *transposed, weights, experts), label=f"{label}, transposed")
    for tokens in (6, 50):
        call_of = call(tokens, 48, 24, 5, 3, -2)
        yield Sample(call_of, label=f"{tokens} tokens, experts that do not exist")
        none = torch.full_like(call_of[4], -1)
        yield Sample((*call_of[:4], none), label=f"{tokens} tokens without experts")
        x, up, down, weights, experts = call(tokens, 32, 16, 6, 2)
        strided = make(32, tokens).t(), up[:, :, ::2].repeat(1, 1, 2)[:, ::1], down, weights.t().contiguous().t()
        yield Sample((*strided, experts), label=f"{tokens} tokens, transposed")
        same = torch.zeros_like(experts[:, :1]) + 3
        yield Sample((x, up, down, weights[:, :1], same), label=f"{tokens} tokens, one expert for all")


def benchmarks(generator: torch.Generator) -> dict[str, Sample]:
    def call(tokens: int) -> Sample:
        x, up, down = (
            normal(shape, torch.float32, generator, 0.05) for shape in ((tokens, 256), (16, 256, 256), (16, 256, 128))
        )
        experts = torch.rand(tokens, 16, generator=generator).argsort(1)[:, :4].int().contiguous()
        return Sample((x, up, down, torch.rand(tokens, 4, generator=generator), experts))

    return {f"{tokens}x256x128, 4 of 16": call(tokens) for tokens in (4, 256)}


SPECS = [OpSpec("kpkg::moe", moe, samples, magnitude=magnitude, rounds_between=True, benchmarks=benchmarks, eager=moe)]
