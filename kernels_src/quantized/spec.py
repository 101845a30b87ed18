"""Specs of products with packed weights of 4 and 8 bits.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from opspec import HALF, OpSpec, Sample, normal
from torch import Tensor

STEP, BLOCK = 64, 16
#: n, k, columns of a group, rows of the input
SIZES = [
    (16, 64, 64, 1),
    (64, 128, 64, 3),
    (48, 192, 192, 17),
    (80, 512, 128, 64),
    (272, 256, 64, 65),
    (130, 320, 64, 130),
    (9, 40, 40, 2),
    (256, 1088, 64, 33),
]
HALF_STEPS = [(32, 64, 32, 1), (40, 96, 32, 5), (130, 160, 32, 70), (64, 256, 32, 129)]


def numbers_of(weight: Tensor, n: int, rows: int) -> Tensor:
    """Returns the numbers `[n, k]`, k rounded up to whole steps of `rows` rows of the weight."""
    own = weight.cpu().unflatten(0, (-1, rows))
    found = torch.zeros(n, STEP * len(own), dtype=torch.float64)
    column = torch.arange(STEP)
    for row in range(n):
        thread = row % 8 * 4 + column // 2 % 4
        if weight.dtype == torch.int32:
            words = own[:, :, row // BLOCK * 128 + thread * 4 + column // 16].long()
            fields = words >> (4 * (column % 2 * 4 + column // 8 % 2 * 2 + row // 8 % 2)) & 15
            high = fields[:, 0] - 16 * (fields[:, 0] > 7)
            found[row] = (high if rows == 1 else 16 * high + fields[:, 1]).flatten().double()
        else:
            place = column // 16 % 2 * 8 + column // 8 % 2 * 4 + row // 8 % 2 * 2 + column % 2
            at = row // BLOCK * 1024 + column // 32 * 512 + thread * 16 + place
            found[row] = own.double()[:, 0, at].flatten()
    return found.to(weight.device)


def dense_weight(weight: Tensor, scales: Tensor, zeros: Tensor | None, k: int) -> Tensor:
    """Returns the weight `[n, k]`. It has one row for STEP columns, or two with integers of 8 bits."""
    rows = weight.shape[0] // -(-k // STEP)
    groups, steps = scales.shape[0], weight.shape[0] // rows
    size = STEP // 2 if groups > steps else STEP * steps // groups
    numbers = numbers_of(weight, scales.shape[1], rows)[:, :k].to(scales.dtype)
    if zeros is not None:
        numbers = numbers - zeros.t().repeat_interleave(size, 1)[:, :k]
    return numbers * scales.t().repeat_interleave(size, 1)[:, :k]


def reference(
    input: Tensor, weight: Tensor, scales: Tensor, zeros: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    return torch.nn.functional.linear(input, dense_weight(weight, scales, zeros, input.shape[-1]), bias)


def magnitude(
    input: Tensor, weight: Tensor, scales: Tensor, zeros: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    sizes = torch.nn.functional.linear(input.abs(), dense_weight(weight, scales, zeros, input.shape[-1]).abs())
    return sizes if bias is None else sizes + bias.abs()


def fp8_reference(input: Tensor, weight: Tensor, scales: Tensor, bias: Tensor | None = None) -> Tensor:
    return reference(input, weight, scales, None, bias)


def fp8_magnitude(input: Tensor, weight: Tensor, scales: Tensor, bias: Tensor | None = None) -> Tensor:
    return magnitude(input, weight, scales, None, bias)


def packed(n: int, k: int, generator: torch.Generator, name: str = "int4") -> Tensor:
    """Returns a weight with any numbers."""
    steps = -(-k // STEP) * (2 if name == "int8" else 1)
    shape = steps, -(-n // BLOCK) * BLOCK * (STEP if name == "fp8" else STEP // 8)
    if name == "fp8":
        return torch.randn(shape, generator=generator, device=generator.device).to(torch.float8_e4m3fn)
    return torch.randint(-(2**31), 2**31 - 1, shape, generator=generator, device=generator.device).int()


def samples_of(name: str) -> Callable[[torch.dtype, torch.Generator], Iterator[Sample]]:
    """Returns the samples of the op for weights in this format."""
    is_float = name == "fp8"

    def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        def make(*shape: int) -> Tensor:
            return normal(shape, dtype, generator)

        for n, k, size, rows in SIZES if is_float else SIZES + HALF_STEPS:
            groups = -(-k // size)
            weight, scales = packed(n, k, generator, name), make(groups, n)
            zeros = torch.randint(-8, 8, (groups, n), generator=generator, device=generator.device).to(dtype)
            before = () if is_float else (zeros,)
            none = () if is_float else (None,)
            label = f"{n}x{k}, groups of {size}, {rows} rows"
            yield Sample((make(rows, k), weight, scales), label=label)
            yield Sample((make(rows, k), weight, scales, *before, make(n)), label=f"{label}, all arguments")
            yield Sample(
                (make(2, k, rows).mT, weight, make(n, groups).t(), *none, make(2 * n)[::2]),
                label=f"{label}, strided, batch and bias",
            )
        yield Sample((make(0, 64), packed(32, 64, generator, name), make(1, 32)), label="no rows")
        yield Sample((make(5, 64), packed(0, 64, generator, name), make(1, 0)), label="no results")
        yield Sample((make(70), packed(33, 70, generator, name), make(2, 33)), label="a vector")

    return samples


def spec_of(name: str) -> OpSpec:
    is_float = name == "fp8"
    return OpSpec(
        f"kpkg::{name}_linear",
        fp8_reference if is_float else reference,
        samples_of(name),
        dtypes=HALF,
        magnitude=fp8_magnitude if is_float else magnitude,
        numpy=False,
        rounds_between=True,
        benchmarks=lambda generator: {
            "16x1024x1024, bfloat16": Sample(
                (
                    normal((16, 1024), torch.bfloat16, generator),
                    packed(1024, 1024, generator, name),
                    normal((8, 1024), torch.bfloat16, generator),
                )
            ),
        },
        eager=fp8_reference if is_float else reference,
    )


SPECS = [spec_of(name) for name in ("int4", "int8", "fp8")]
