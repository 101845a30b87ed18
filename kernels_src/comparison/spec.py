"""Specs of comparisons, and of choices between elements.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from opspec import ALL_FLOATS, OpSpec, Sample, normal
from torch import Tensor

DTYPES = (*ALL_FLOATS, torch.int64, torch.int32, torch.int16, torch.uint8, torch.bool)
SHAPES = [
    ((), (), ()),
    ((1,), (1,), (1,)),
    ((0,), (0,), (1,)),
    ((4097,), (4097,), (4097,)),
    ((3, 0, 2), (2,), ()),
    ((5, 1000), (1000,), (5, 1)),
    ((4, 1), (1, 9), (4, 9)),
    ((3, 4, 5), (4, 1), ()),
    ((), (3, 5), (5,)),
    ((2, 3, 5, 7), (3, 1, 1), (2, 1, 5, 7)),
    ((2, 3, 2, 3, 2, 3), (3, 1, 3, 1, 3), (2, 3)),
    ((20011,), (20011,), (1,)),
]


def drawn(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Returns numbers of which many are equal."""
    x = torch.randint(-4, 5, shape, generator=generator, device=generator.device)
    if dtype is torch.bool:
        return x > 0
    return (x if dtype.is_signed else x + 4).to(dtype)


def operands(dtype: torch.dtype, generator: torch.Generator) -> Iterator[tuple[str, Tensor, Tensor, Tensor]]:
    def make(*shape: int) -> Tensor:
        return drawn(shape, dtype, generator)

    for a, b, c in SHAPES:
        yield f"{a}, {b}, {c}", make(*a), make(*b), make(*c)
        yield f"{b}, {a}, {c}", make(*b), make(*a), make(*c)
    yield "transposed", make(40, 33).t(), make(40, 33).t(), make(33, 40)
    yield "strides", make(6, 8, 10)[::2, :, ::2], make(3, 8, 5), make(8, 1)
    yield "permuted", make(4, 5, 6).permute(2, 0, 1), make(6, 4, 5), make(5, 6, 4).permute(1, 2, 0)
    if dtype.is_floating_point:
        x = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0], dtype=dtype, device=generator.device)
        yield "extremes", x, x.unsqueeze(1), x.unsqueeze(1).unsqueeze(1)


def pairs(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for label, a, b, _ in operands(dtype, generator):
        yield Sample((a, b), label=label)


def choices(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for label, a, b, c in operands(dtype, generator):
        yield Sample((c > 0 if dtype is not torch.bool else c, a, b), label=label)


def fills(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for label, a, b, c in operands(dtype, generator):
        if torch.broadcast_shapes(a.shape, c.shape) == a.shape:
            yield Sample((a, c > 0, -2.5 if dtype.is_signed else 2.5), label=label)


def limits(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for i, (label, a, b, c) in enumerate(operands(dtype, generator)):
        if dtype.is_floating_point:  # PyTorch's derivatives of equal elements differ between its modes
            b, c = b - 0.25, c + 0.25
        yield Sample(((a, b, c), (a, b), (a, None, c))[i % 3], label=label)


def of_rows(made: Callable[..., tuple[Any, ...]]) -> Callable[..., Sample]:
    def make(rows: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
        return Sample(made(normal((rows, n), dtype, generator), normal((rows, n), dtype, generator)))

    return make


def benchmarks(made: Callable[..., tuple[Any, ...]]) -> Callable[[torch.Generator], dict[str, Sample]]:
    return lambda generator: {"2^20": Sample(made(*(normal((1 << 20,), torch.float32, generator) for _ in range(2))))}


def both(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return a, b


SPECS = [
    *(
        OpSpec(
            f"kpkg::{name}",
            getattr(torch, name),
            pairs,
            DTYPES,
            benchmarks=benchmarks(both),
            eager=getattr(torch, name),
            rows=of_rows(both),
        )
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
    ),
    OpSpec(
        "kpkg::where",
        torch.where,
        choices,
        DTYPES,
        accumulation=0.0,
        benchmarks=benchmarks(lambda a, b: (a > 0, a, b)),
        eager=torch.where,
        rows=of_rows(lambda a, b: (a > 0, a, b)),
    ),
    OpSpec(
        "kpkg::masked_fill",
        lambda input, mask, value: input.masked_fill(mask, value),
        fills,
        DTYPES,
        accumulation=0.0,
        benchmarks=benchmarks(lambda a, b: (a, b > 0, 1.0)),
        eager=lambda input, mask, value: input.masked_fill(mask, value),
        rows=of_rows(lambda a, b: (a, b > 0, 1.0)),
    ),
    OpSpec(
        "kpkg::clamp",
        lambda input, min, max=None: torch.clamp(input, min, max),
        limits,
        DTYPES[:-1],
        accumulation=0.0,
        benchmarks=benchmarks(both),
        eager=lambda input, min, max=None: torch.clamp(input, min, max),
        rows=of_rows(both),
    ),
]
