"""Specs of quotients that are rounded to whole numbers, and of their remainders.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from opspec import ALL_FLOATS, INTEGERS, SPECIAL_FLOATS, OpSpec, Sample, any_numbers, pair_samples
from torch import Tensor

DTYPES = (*INTEGERS, *ALL_FLOATS)


def divisors(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Returns numbers other than 0: half of the integers are of all bit patterns, half of them small."""
    x = any_numbers(shape, dtype, generator)
    if dtype.is_floating_point:
        return torch.where(x == 0, 0.75, x)
    small = torch.randint(1, 8, shape, generator=generator, device=generator.device).to(dtype)
    return torch.where((x % 2 == 0) | (x == 0), small, x)


def pairs(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def left(*shape: int) -> Tensor:
        return any_numbers(shape, dtype, generator)

    def right(*shape: int) -> Tensor:
        return divisors(shape, dtype, generator)

    yield from pair_samples(left, right)
    if dtype.is_floating_point:
        x = torch.tensor(SPECIAL_FLOATS, dtype=dtype)
        yield Sample((x, x.unsqueeze(1)), label="special")
    else:
        limits = torch.iinfo(dtype)
        x = torch.tensor([limits.min, limits.min + 1, 1, 2, limits.max], dtype=dtype)
        yield Sample((x, (x if dtype.is_signed else x.clamp(min=1)).unsqueeze(1)), label="extremes")


def rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample((any_numbers((m, n), dtype, generator), divisors((m, n), dtype, generator)))


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
