"""Specs of products with weights of 4 bits.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from opspec import HALF, OpSpec, Sample, normal
from torch import Tensor

STEP, BLOCK = 64, 16
#: n, k, groups, rows of the input
SIZES = [
    (16, 64, 1, 1),
    (64, 128, 2, 3),
    (48, 192, 1, 17),
    (80, 512, 4, 64),
    (272, 256, 4, 65),
    (130, 320, 5, 130),
    (9, 40, 1, 2),
    (256, 1088, 17, 33),
]


def dense_weight(weight: Tensor, scales: Tensor, zeros: Tensor | None, k: int) -> Tensor:
    """Returns the weight `[n, k]`, field by field."""
    n = scales.shape[1]
    numbers = torch.zeros(n, STEP * weight.shape[0], dtype=scales.dtype)
    column = torch.arange(STEP)
    for row in range(n):
        thread = row % 8 * 4 + column // 2 % 4
        words = weight.cpu()[:, row // BLOCK * 128 + thread * 4 + column // 16].long()
        fields = words >> (4 * (column % 2 * 4 + column // 8 % 2 * 2 + row // 8 % 2)) & 15
        numbers[row] = (fields - 16 * (fields > 7)).flatten().to(scales.dtype)
    numbers = numbers.to(scales.device)
    groups = numbers.unflatten(1, (scales.shape[0], -1))
    if zeros is not None:
        groups = groups - zeros.t().unsqueeze(2)
    return (groups * scales.t().unsqueeze(2)).flatten(1)[:, :k]


def reference(
    input: Tensor, weight: Tensor, scales: Tensor, zeros: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    return torch.nn.functional.linear(input, dense_weight(weight, scales, zeros, input.shape[-1]), bias)


def magnitude(
    input: Tensor, weight: Tensor, scales: Tensor, zeros: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    sizes = torch.nn.functional.linear(input.abs(), dense_weight(weight, scales, zeros, input.shape[-1]).abs())
    return sizes if bias is None else sizes + bias.abs()


def packed(n: int, k: int, generator: torch.Generator) -> Tensor:
    """Returns words with any fields."""
    shape = (-(-k // STEP), -(-n // BLOCK) * BLOCK * STEP // 8)
    low, high = -(2**31), 2**31 - 1
    return torch.randint(low, high, shape, generator=generator, device=generator.device).int()


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    for n, k, groups, rows in SIZES:
        weight, scales = packed(n, k, generator), make(groups, n)
        zeros = torch.randint(-8, 8, (groups, n), generator=generator, device=generator.device).to(dtype)
        yield Sample((make(rows, k), weight, scales), label=f"{n}x{k}, {rows} rows")
        yield Sample((make(rows, k), weight, scales, zeros, make(n)), label=f"{n}x{k}, {rows} rows, zeros and bias")
        yield Sample(
            (make(2, k, rows).mT, weight, make(n, groups).t(), None, make(2 * n)[::2]),
            label=f"{n}x{k}, strided, batch and bias",
        )
    yield Sample((make(0, 64), packed(32, 64, generator), make(1, 32)), label="no rows")
    yield Sample((make(5, 64), packed(0, 64, generator), make(1, 0)), label="no results")
    yield Sample((make(70), packed(33, 70, generator), make(2, 33)), label="a vector")


SPECS = [
    OpSpec(
        "kpkg::int4_linear",
        reference,
        samples,
        dtypes=HALF,
        magnitude=magnitude,
        numpy=False,
        rounds_between=True,
        benchmarks=lambda generator: {
            "16x1024x1024, bfloat16": Sample(
                (
                    normal((16, 1024), torch.bfloat16, generator),
                    packed(1024, 1024, generator),
                    normal((8, 1024), torch.bfloat16, generator),
                )
            ),
        },
        eager=reference,
    ),
]
