"""Specs of operations on the bits of integers, and on truth values.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from opspec import ALL_FLOATS, INTEGERS, OpSpec, Sample, normal, strided_forms
from torch import Tensor

BITS = (*INTEGERS, torch.bool)
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

Draw = Callable[[tuple[int, ...], torch.dtype, torch.Generator], Tensor]


def drawn(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Returns all bit patterns of integers, and floats of which every fourth is 0."""
    limits = torch.iinfo(torch.int64)
    x = torch.randint(limits.min, limits.max, shape, generator=generator, device=generator.device)
    if dtype.is_floating_point:
        return normal(shape, dtype, generator, 8.0) * (x % 4 != 0)
    return x > 0 if dtype == torch.bool else x.to(dtype)


def places(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Returns shifts, some of them negative or too wide."""
    return torch.randint(0 if dtype == torch.uint8 else -3, 70, shape, generator=generator, device=generator.device).to(
        dtype
    )


def unary_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for shape, _ in SHAPES:
        yield Sample((drawn(shape, dtype, generator),), label=str(shape))
    for label, x in strided_forms(lambda shape: drawn(shape, dtype, generator)):
        yield Sample((x,), label=label)
    yield Sample((drawn((4, 5, 6), dtype, generator).permute(2, 0, 1),), label="permuted")
    if dtype.is_floating_point:
        yield Sample((torch.tensor(SPECIAL, dtype=dtype),), label="special")


def pairs(first: Draw, second: Draw) -> Callable[[torch.dtype, torch.Generator], Iterator[Sample]]:
    def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        def left(*shape: int) -> Tensor:
            return first(shape, dtype, generator)

        def right(*shape: int) -> Tensor:
            return second(shape, dtype, generator)

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
        elif dtype != torch.bool:
            limits = torch.iinfo(dtype)
            x = torch.tensor([limits.min, limits.min + 1, 1, 2, limits.max], dtype=dtype)
            yield Sample((x, x.unsqueeze(1)), label="extremes")

    return samples


def of_rows(second: Draw) -> Callable[[int, int, torch.dtype, torch.Generator], Sample]:
    def make(rows: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
        return Sample((drawn((rows, n), dtype, generator), second((rows, n), dtype, generator)))

    return make


def benchmarks(second: Draw) -> Callable[[torch.Generator], dict[str, Sample]]:
    make, shape = of_rows(second), (1, 1 << 20)
    return lambda generator: {"2^20 of int32": make(*shape, torch.int32, generator)}


def spec(name: str, dtypes: tuple[torch.dtype, ...], second: Draw) -> OpSpec:
    function = getattr(torch, name)
    return OpSpec(
        f"kpkg::{name}",
        function,
        pairs(drawn, second),
        dtypes,
        benchmarks=benchmarks(second),
        eager=function,
        rows=of_rows(second) if torch.float32 in dtypes else None,
    )


SPECS = [
    *(spec(f"bitwise_{name}", BITS, drawn) for name in ("and", "or", "xor")),
    *(spec(f"bitwise_{name}_shift", INTEGERS, places) for name in ("left", "right")),
    *(spec(f"logical_{name}", (*BITS, *ALL_FLOATS), drawn) for name in ("and", "or", "xor")),
    *(
        OpSpec(
            f"kpkg::{name}",
            getattr(torch, name),
            unary_samples,
            dtypes,
            benchmarks=lambda generator: {"2^20 of int32": Sample((drawn((1 << 20,), torch.int32, generator),))},
            eager=getattr(torch, name),
            rows=(lambda m, n, dtype, generator: Sample((drawn((m, n), dtype, generator),)))
            if torch.float32 in dtypes
            else None,
        )
        for name, dtypes in (("bitwise_not", BITS), ("logical_not", (*BITS, *ALL_FLOATS)))
    ),
]
