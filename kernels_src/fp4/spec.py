"""Specs of products with packed weights of 4-bit floats.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from opspec import HALF, OpSpec, Sample, normal
from torch import Tensor

STEP, BLOCK = 64, 16
#: n, k, rows of the input
SIZES = [
    (16, 64, 1),
    (64, 128, 3),
    (48, 192, 17),
    (80, 512, 64),
    (272, 256, 65),
    (130, 320, 130),
    (9, 32, 2),
    (33, 96, 1),
    (256, 1088, 33),
]
#: By the bits of a number.
FLOATS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]


def dense_weight(weight: Tensor, scales: Tensor, scale: float, k: int) -> Tensor:
    """Returns the weight `[n, k]`, row by row."""
    n = scales.shape[1]
    size = 32 if scales.shape[0] == -(-k // 32) else 16  # scales may be in float64
    found = torch.zeros(n, STEP * weight.shape[0], dtype=torch.float64)
    column, table = torch.arange(STEP), torch.tensor(FLOATS, dtype=torch.float64)
    for row in range(n):
        thread = row % 8 * 4 + column // 2 % 4
        words = weight.cpu()[:, row // BLOCK * 128 + thread * 4 + column // 16].long()
        found[row] = table[words >> (4 * (column % 2 * 4 + column // 8 % 2 * 2 + row // 8 % 2)) & 15].flatten()
    groups = scales.double().cpu().t().repeat_interleave(size, 1)[:, :k]
    return (found[:, :k] * groups * scale).to(weight.device)


def reference(input: Tensor, weight: Tensor, scales: Tensor, scale: float = 1.0, bias: Tensor | None = None) -> Tensor:
    dense = dense_weight(weight, scales, scale, input.shape[-1]).to(input.dtype)
    return torch.nn.functional.linear(input, dense, bias)


def magnitude(input: Tensor, weight: Tensor, scales: Tensor, scale: float = 1.0, bias: Tensor | None = None) -> Tensor:
    dense = dense_weight(weight, scales, scale, input.shape[-1]).abs()
    sizes = torch.nn.functional.linear(input.abs(), dense.to(input.dtype))
    return sizes if bias is None else sizes + bias.abs()


def packed(n: int, k: int, generator: torch.Generator) -> Tensor:
    """Returns words with any fields."""
    shape = (-(-k // STEP), -(-n // BLOCK) * BLOCK * STEP // 8)
    return torch.randint(-(2**31), 2**31 - 1, shape, generator=generator, device=generator.device).int()


def scales_of(format: str, n: int, k: int, generator: torch.Generator) -> Tensor:
    """Returns scales of weights of layers."""
    if format == "mxfp4":
        exponents = torch.randint(118, 130, (-(-k // 32), n), generator=generator, device=generator.device)
        return exponents.to(torch.uint8).view(torch.float8_e8m0fnu)
    return normal((-(-k // 16), n), torch.float32, generator).to(torch.float8_e4m3fn)


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    for format, scale in (("mxfp4", 1.0), ("nvfp4", 0.0625)):
        for n, k, rows in SIZES:
            weight, scales = packed(n, k, generator), scales_of(format, n, k, generator)
            yield Sample((make(rows, k), weight, scales, scale), label=f"{format} {n}x{k}, {rows} rows")
            yield Sample(
                (make(2, k, rows).mT, weight, scales.t().contiguous().t(), scale, make(2 * n)[::2]),
                label=f"{format} {n}x{k}, {rows} rows, strided, batch and bias",
            )
        given = (packed(32, 64, generator), scales_of(format, 32, 64, generator), scale)
        yield Sample((make(0, 64), *given), label=f"{format} no rows")
        yield Sample((make(64), *given), label=f"{format} a vector")
        none = (packed(0, 64, generator), scales_of(format, 0, 64, generator), scale)
        yield Sample((make(5, 64), *none), label=f"{format} no results")


SPECS = [
    OpSpec(
        "kpkg::fp4_linear",
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
                    scales_of("mxfp4", 1024, 1024, generator),
                )
            ),
        },
        eager=reference,
    ),
]
