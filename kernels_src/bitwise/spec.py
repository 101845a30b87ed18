"""Specs of operations on the bits of integers, and on truth values.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from opspec import (
    ALL_FLOATS,
    BROADCAST_SHAPES,
    INTEGERS,
    SPECIAL_FLOATS,
    OpSpec,
    Sample,
    any_numbers,
    pair_samples,
    strided_forms,
)
from torch import Tensor

BITS = (*INTEGERS, torch.bool)

Draw = Callable[[tuple[int, ...], torch.dtype, torch.Generator], Tensor]


def places(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Returns shifts, some of them negative or too wide."""
    return torch.randint(0 if dtype == torch.uint8 else -3, 70, shape, generator=generator, device=generator.device).to(
        dtype
    )


def unary_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for shape, _ in BROADCAST_SHAPES:
        yield Sample((any_numbers(shape, dtype, generator),), label=str(shape))
    for label, x in strided_forms(lambda shape: any_numbers(shape, dtype, generator)):
        yield Sample((x,), label=label)
    yield Sample((any_numbers((4, 5, 6), dtype, generator).permute(2, 0, 1),), label="permuted")
    if dtype.is_floating_point:
        yield Sample((torch.tensor(SPECIAL_FLOATS, dtype=dtype),), label="special")


def pairs(first: Draw, second: Draw) -> Callable[[torch.dtype, torch.Generator], Iterator[Sample]]:
    def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        def left(*shape: int) -> Tensor:
            return first(shape, dtype, generator)

        def right(*shape: int) -> Tensor:
            return second(shape, dtype, generator)

        yield from pair_samples(left, right)
        if dtype.is_floating_point:
            x = torch.tensor(SPECIAL_FLOATS, dtype=dtype)
            yield Sample((x, x.unsqueeze(1)), label="special")
        elif dtype != torch.bool:
            limits = torch.iinfo(dtype)
            x = torch.tensor([limits.min, limits.min + 1, 1, 2, limits.max], dtype=dtype)
            yield Sample((x, x.unsqueeze(1)), label="extremes")

    return samples


def of_rows(second: Draw) -> Callable[[int, int, torch.dtype, torch.Generator], Sample]:
    def make(rows: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
        return Sample((any_numbers((rows, n), dtype, generator), second((rows, n), dtype, generator)))

    return make


def benchmarks(second: Draw) -> Callable[[torch.Generator], dict[str, Sample]]:
    make, shape = of_rows(second), (1, 1 << 20)
    return lambda generator: {"2^20 of int32": make(*shape, torch.int32, generator)}


def spec(name: str, dtypes: tuple[torch.dtype, ...], second: Draw) -> OpSpec:
    function = getattr(torch, name)
    return OpSpec(
        f"kpkg::{name}",
        function,
        pairs(any_numbers, second),
        dtypes,
        benchmarks=benchmarks(second),
        eager=function,
        rows=of_rows(second) if torch.float32 in dtypes else None,
    )


SPECS = [
    *(spec(f"bitwise_{name}", BITS, any_numbers) for name in ("and", "or", "xor")),
    *(spec(f"bitwise_{name}_shift", INTEGERS, places) for name in ("left", "right")),
    *(spec(f"logical_{name}", (*BITS, *ALL_FLOATS), any_numbers) for name in ("and", "or", "xor")),
    *(
        OpSpec(
            f"kpkg::{name}",
            getattr(torch, name),
            unary_samples,
            dtypes,
            benchmarks=lambda generator: {"2^20 of int32": Sample((any_numbers((1 << 20,), torch.int32, generator),))},
            eager=getattr(torch, name),
            rows=(lambda m, n, dtype, generator: Sample((any_numbers((m, n), dtype, generator),)))
            if torch.float32 in dtypes
            else None,
        )
        for name, dtypes in (("bitwise_not", BITS), ("logical_not", (*BITS, *ALL_FLOATS)))
    ),
]
