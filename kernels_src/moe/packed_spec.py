"""Spec of mixtures of experts with matrices of 4 bits.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from fp4.spec import dense_weight as fp4_weight
from moe.spec import magnitude, moe
from opspec import HALF, OpSpec, Sample, normal
from quantized.spec import BLOCK, STEP, dense_weight
from torch import Tensor


def dense(matrices: Tensor, scales: Tensor, k: int) -> Tensor:
    """Returns the matrices `[experts, n, k]`."""
    if scales.dtype == torch.float8_e8m0fnu:
        return torch.stack([fp4_weight(*each, 1.0, k) for each in zip(matrices, scales)])
    return torch.stack([dense_weight(*each, None, k) for each in zip(matrices, scales)])


def of_dense(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Returns a function of `moe`'s arguments as one of packed matrices and their scales."""

    def of_packed(
        input: Tensor, gate_up: Tensor, gate_up_scales: Tensor, down: Tensor, down_scales: Tensor, *rest: Any
    ) -> Tensor:
        first = dense(gate_up, gate_up_scales, input.shape[1]).to(input.dtype)
        second = dense(down, down_scales, gate_up_scales.shape[2] // 2).to(input.dtype)
        return function(input, first, second, *rest)

    return of_packed


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


def exponents(count: int, n: int, k: int, generator: torch.Generator) -> Tensor:
    """Returns scales with which a product of k elements has results of size 1 or so."""
    shape, middle = (count, -(-k // 32), n), 125 - k.bit_length() // 2
    drawn = torch.randint(middle - 2, middle + 1, shape, generator=generator, device=generator.device)
    return drawn.to(torch.uint8).view(torch.float8_e8m0fnu)


def call(
    sizes: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator, is_float: bool = False
) -> tuple[Tensor, ...]:
    """Returns the tensors of a call, and biases behind them."""
    tokens, hidden, inner, count, choices, size = sizes

    def matrices(n: int, k: int) -> tuple[Tensor, Tensor]:
        shape = count, -(-k // STEP), -(-n // BLOCK) * BLOCK * STEP // 8
        words = torch.randint(-(2**31), 2**31 - 1, shape, generator=generator, device=generator.device).int()
        if is_float:
            return words, exponents(count, n, k, generator)
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
        floats = call(sizes, dtype, generator, is_float=True)
        yield Sample((*floats, *clamped), label=f"{label}, MXFP4, clamped, interleaved")
        mixed = *floats[:3], *given[3:5], *floats[5:7]
        yield Sample(mixed, label=f"{label}, the first matrix in MXFP4")


SPECS = [
    OpSpec(
        "kpkg::moe_packed",
        of_dense(moe),
        samples,
        dtypes=HALF,
        magnitude=of_dense(magnitude),
        numpy=False,
        rounds_between=True,
        eager=of_dense(moe),
    )
]
