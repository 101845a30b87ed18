"""Specs of quotients that are rounded to whole numbers, and of their remainders.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from opspec import ALL_FLOATS, INTEGERS, OpSpec, Sample, normal
from torch import Tensor

DTYPES = (*INTEGERS, *ALL_FLOATS)
SHAPES = [
    ((), ()),
    ((1,), (1,)),
    ((0,), (1,)),
    ((3, 0, 2), (2,)),
    ((4097,), (4097,)),
    ((20011,), ()),
    ((5, 1000), (1000,)),
    ((5, 1000), (5, 1)),
    ((4, 1), (1, 9)),
    ((2, 3, 5, 7), (3, 1, 1)),
    ((2, 3, 2, 3, 2, 3), (3, 1, 3, 1, 3)),
]
SPECIAL = [math.inf, -math.inf, math.nan, 0.0, -0.0, 1.0, -1.0, 3.0, -7.5, 1e-3, -1e4]


def drawn(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Returns all bit patterns of integers, and floats of which every fourth is 0."""
    limits = torch.iinfo(torch.int64)
    x = torch.randint(limits.min, limits.max, shape, generator=generator, device=generator.device)
    if dtype.is_floating_point:
        return normal(shape, dtype, generator, 8.0) * (x % 4 != 0)
    return x.to(dtype)


def divisors(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Returns numbers other than 0: half of the integers are of all bit patterns, half of them small."""
    x = drawn(shape, dtype, generator)
    if dtype.is_floating_point:
        return torch.where(x == 0, 0.75, x)
    small = torch.randint(1, 8, shape, generator=generator, device=generator.device).to(dtype)
    return torch.where((x % 2 == 0) | (x == 0), small, x)


def pairs(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def left(*shape: int) -> Tensor:
        return drawn(shape, dtype, generator)

    def right(*shape: int) -> Tensor:
        return divisors(shape, dtype, generator)

    for a, b in SHAPES:
        yield Sample((left(*a), right(*b)), label=f"{a}, {b}")
        yield Sample((left(*b), right(*a)), label=f"{b}, {a}")
    yield Sample((left(40, 33).t(), right(40, 33).t()), label="both transposed")
    yield Sample((left(40, 33).t(), right(33, 40)), label="one transposed")
    yield Sample((left(6, 8, 10)[::2, :, ::2], right(3, 8, 5)), label="strides")
    yield Sample((left(20001)[::3], right()), label="every third and one")
    yield Sample((left(4, 5, 6).permute(2, 0, 1), right(6, 4, 5)), label="permuted")
    if dtype.is_floating_point:
        x = torch.tensor(SPECIAL, dtype=dtype)
        yield Sample((x, x.unsqueeze(1)), label="special")
    else:
        limits = torch.iinfo(dtype)
        x = torch.tensor([limits.min, limits.min + 1, 1, 2, limits.max], dtype=dtype)
        yield Sample((x, (x if dtype.is_signed else x.clamp(min=1)).unsqueeze(1)), label="extremes")


def rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample((drawn((m, n), dtype, generator), divisors((m, n), dtype, generator)))


def benchmarks(generator: torch.Generator) -> dict[str, Sample]:
    return {f"2^20 of {str(dtype)[6:]}": rows(1, 1 << 20, dtype, generator) for dtype in (torch.int32, torch.float32)}


def terms(a: Tensor, b: Tensor) -> Tensor:
    """Returns the magnitude of terms that cancel in remainders."""
    size = b.abs() if b.is_floating_point() else b
    return torch.where(size.isfinite(), size, 0.0).expand(torch.broadcast_shapes(a.shape, b.shape))


def spec(name: str, magnitude: Callable[..., Tensor] | None) -> OpSpec:
    function = getattr(torch, name)
    return OpSpec(
        f"kpkg::{name}",
        function,
        pairs,
        DTYPES,
        magnitude=magnitude,
        benchmarks=benchmarks,
        eager=function,
        rows=rows,
    )


SPECS = [
    spec("floor_divide", None),
    *(spec(name, terms) for name in ("remainder", "fmod")),
]
