"""Spec of mixtures of experts with matrices of 4 bits.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from moe.spec import gated, mixture, size_of_gated
from opspec import HALF, OpSpec, Sample, normal
from quantized.spec import BLOCK, STEP, dense_weight
from torch import Tensor


def dense(matrices: Tensor, scales: Tensor, k: int) -> Tensor:
    """Returns the matrices `[experts, n, k]`."""
    return torch.stack([dense_weight(*each, None, k) for each in zip(matrices, scales)])


def moe_packed(
    input: Tensor,
    gate_up: Tensor,
    gate_up_scales: Tensor,
    down: Tensor,
    down_scales: Tensor,
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

    first = dense(gate_up, gate_up_scales, input.shape[1])
    second = dense(down, down_scales, gate_up_scales.shape[2] // 2)
    return mixture(gate, input, first, second, weights, experts, (gate_up_bias, down_bias))


def magnitude(
    input: Tensor,
    gate_up: Tensor,
    gate_up_scales: Tensor,
    down: Tensor,
    down_scales: Tensor,
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
    first = dense(gate_up, gate_up_scales, input.shape[1]).abs()
    second = dense(down, down_scales, gate_up_scales.shape[2] // 2).abs()
    return mixture(gate, input.abs(), first, second, weights.abs(), experts, biases)


#: Tokens, hidden size, inner size, experts, choices, columns of a group.
SIZES = [
    (1, 64, 32, 4, 2, 32),
    (5, 96, 40, 3, 1, 64),
    (16, 128, 64, 8, 4, 64),
    (0, 64, 64, 2, 1, 64),
    (17, 128, 96, 6, 3, 32),
    (60, 256, 136, 4, 2, 128),
    (150, 64, 72, 2, 2, 64),
]


def call(sizes: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> tuple[Tensor, ...]:
    """Returns the tensors of a call, and biases behind them."""
    tokens, hidden, inner, count, choices, size = sizes

    def matrices(n: int, k: int) -> tuple[Tensor, Tensor]:
        shape = count, -(-k // STEP), -(-n // BLOCK) * BLOCK * STEP // 8
        words = torch.randint(-(2**31), 2**31 - 1, shape, generator=generator, device=generator.device).int()
        groups = -(-k // size) if shape[1] % -(-k // size) == 0 or size < STEP else shape[1]
        return words, normal((count, groups, n), dtype, generator, 0.2 * k**-0.5)

    keys = torch.rand(tokens, count, generator=generator, device=generator.device)
    experts = keys.argsort(1)[:, :choices].int().contiguous()
    weights = torch.rand(tokens, choices, generator=generator, device=generator.device)
    x = normal((tokens, hidden), dtype, generator)
    biases = normal((count, 2 * inner), dtype, generator), normal((count, hidden), dtype, generator)
    return x, *matrices(2 * inner, hidden), *matrices(hidden, inner), weights, experts, *biases


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for sizes in SIZES:
        label = "{} tokens, {}x{}, {} experts, {} choices, groups of {}".format(*sizes)
        given = call(sizes, dtype, generator)
        yield Sample(given[:7], label=label)
        yield Sample((*given, "gelu"), label=f"{label}, gelu, biases")
        clamped: tuple[Any, ...] = ("clamped_swiglu", True, 1.702, 1.0)
        yield Sample((*given, *clamped), label=f"{label}, clamped, interleaved")
        strided = given[0].t().contiguous().t(), *given[1:6], given[6] - 1
        yield Sample(strided, label=f"{label}, transposed, experts that do not exist")


SPECS = [
    OpSpec(
        "kpkg::moe_packed",
        moe_packed,
        samples,
        dtypes=HALF,
        magnitude=magnitude,
        numpy=False,
        rounds_between=True,
        eager=moe_packed,
    )
]
