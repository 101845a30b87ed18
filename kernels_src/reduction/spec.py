"""Specs of sum, mean, prod, amax, amin, vector_norm, argmax and argmin.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from opspec import ALL_FLOATS, OpSpec, Sample, all_bits, normal, strided_forms
from torch import Tensor

DTYPES = (torch.uint8, torch.int32, torch.int64, torch.bool, *ALL_FLOATS)

NUMBERS = tuple(dtype for dtype in DTYPES if dtype != torch.bool)


def shapes_and_dims() -> Iterator[tuple[tuple[int, ...], list[int]]]:
    for shape in [(), (1,), (7,), (4097,), (100003,)]:
        yield shape, []
    for shape in [(5, 1), (0, 5), (70, 9), (5, 33), (4, 129), (2, 1000), (3, 1025), (9, 4097), (1, 40000), (3, 70001)]:
        yield shape, [-1]
    for shape in [(2, 300), (5, 70), (9, 1000), (300, 2), (5000, 3), (40000, 1), (3000, 65)]:
        yield shape, [0]
    for dims in ([0], [1], [2], [-1], [0, 1], [2, 3], [1, 2], [0, 2], [-1, 0], [1, 3], [0, 1, 3], [0, 1, 2, 3], []):
        yield (3, 5, 7, 11), dims
    yield (2, 3, 2, 3, 2, 3), [0, 2, 4]
    yield (2, 3, 2, 3, 2, 3), [5, 3, 1]
    yield (4, 1, 9, 1), [1]
    yield (4, 1, 9, 1), [3, 0]
    yield (2, 6, 4000), [0, 2]
    for shape in [(3, 2000), (70, 7, 5), (9, 4, 60), (20, 16, 33), (3, 100, 6)]:
        yield shape, [len(shape) - 2]
    yield (50, 20, 9, 5), [0, 2, 3]


def samples(
    dtype: torch.dtype, generator: torch.Generator, make: Callable[..., Sample], values: Callable[..., Tensor] = normal
) -> Iterator[Sample]:
    """Calls `make(x, dims, keepdim, label)`. `values` are those of floats."""

    def tensor(shape: tuple[int, ...]) -> Tensor:
        return (values if dtype.is_floating_point else all_bits)(shape, dtype, generator)

    for i, (shape, dims) in enumerate(shapes_and_dims()):
        yield make(tensor(shape), dims, i % 2 == 1, f"{shape} over {dims}")
    for label, x in strided_forms(tensor):
        for dims in ([0], [1], []):
            yield make(x, dims, False, f"{label} over {dims}")
    yield make(tensor((5, 6, 7)).permute(2, 0, 1), [1], False, "permuted")
    yield make(tensor((5, 6, 7)).permute(1, 2, 0)[:, 1:], [0, 2], True, "part of a permuted one")
    if not dtype.is_floating_point:
        return
    rows = [
        [math.inf, 1.0, 2.0],
        [-math.inf, math.inf, 0.0],
        [math.nan, 1.0, math.inf],
        [-math.inf] * 3,
        [0.0, -0.0, 1.0],
    ]
    yield make(torch.tensor(rows, dtype=dtype), [1], False, "extreme")
    yield make(torch.tensor(rows, dtype=dtype), [0], False, "extreme columns")


def empty_samples(dtype: torch.dtype, make: Callable[..., Sample]) -> Iterator[Sample]:
    for shape, dims in [((0,), []), ((3, 0), [1]), ((3, 0), [0]), ((0, 4), [0]), ((2, 0, 3), [1]), ((2, 0, 3), [0, 1])]:
        yield make(torch.empty(shape, dtype=dtype), dims, False, f"empty {shape} over {dims}")


def over_dims(x: Tensor, dims: list[int], keepdim: bool, label: str) -> Sample:
    return Sample((x, dims, keepdim), label=label)


def norm_of(order: float) -> Callable[..., Sample]:
    return lambda x, dims, keepdim, label: Sample((x, order, dims, keepdim), label=f"{order}-norm, {label}")


def sum_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    yield from samples(dtype, generator, over_dims)
    yield from empty_samples(dtype, over_dims)


def extreme_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    yield from samples(dtype, generator, over_dims)
    yield over_dims(torch.empty(0, 3, dtype=dtype), [1], True, "no rows")


def norm_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for order in (1.0, 2.0):
        yield from samples(dtype, generator, norm_of(order))
        yield from empty_samples(dtype, norm_of(order))
    yield from empty_samples(dtype, norm_of(0.5))
    found = samples(dtype, generator, lambda *call: Sample(call), away_from_zero)
    for i, sample in enumerate(found):
        yield norm_of((0.0, math.inf, 3.0, -math.inf, -1.5, 1.5, -1.0, 0.5)[i % 8])(*sample.args)


def away_from_zero(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Elements of magnitude 0.5 or more, so that powers below 0 do not overflow."""
    x = normal(shape, torch.float64, generator)
    return (x.sign() * (x.abs() / 2 + 0.5)).to(dtype)


def prod_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    yield from samples(dtype, generator, over_dims, near_one)
    yield from empty_samples(dtype, over_dims)


def near_one(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Factors whose products neither vanish nor overflow."""
    return torch.exp2(normal(shape, torch.float64, generator, 1 / 64)).to(dtype)


def all_of(x: Tensor, dims: list[int]) -> list[int]:
    return dims or list(range(x.dim()))


def size_of(reduced: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Returns the reduction of magnitudes; integers are not compared with a tolerance."""
    return lambda x, dims, keepdim=False: reduced(x.abs() if x.is_floating_point() else x, dims, keepdim)


def sum_of(x: Tensor, dims: list[int], keepdim: bool = False) -> Tensor:
    return torch.sum(x, all_of(x, dims), keepdim)


def mean_of(x: Tensor, dims: list[int], keepdim: bool = False) -> Tensor:
    return torch.mean(x, all_of(x, dims), keepdim)


def prod_of(x: Tensor, dims: list[int], keepdim: bool = False) -> Tensor:
    for d in sorted((d % max(x.dim(), 1) for d in all_of(x, dims)), reverse=True):
        x = torch.prod(x, d, keepdim=True)
    return (
        x
        if keepdim
        else x.reshape([n for d, n in enumerate(x.shape) if d not in [k % x.dim() for k in all_of(x, dims)]])
    )


def prod_size(x: Tensor, dims: list[int], keepdim: bool = False) -> Tensor:
    """Every factor rounds the product once, in any order."""
    result = prod_of(x, dims, keepdim)
    if not x.is_floating_point():
        return result
    return result * math.sqrt(max(x.numel() // max(result.numel(), 1), 1))


def norm_of_dims(x: Tensor, order: float, dims: list[int], keepdim: bool = False) -> Tensor:
    """By PyTorch's sum, which adds pairs: its vector_norm loses more in float64 than is allowed here."""
    if math.isinf(order):
        return (torch.amax if order > 0 else torch.amin)(x.abs(), all_of(x, dims), keepdim)
    if order == 0.0:
        return sum_of((x != 0).double(), dims, keepdim)
    return sum_of(x.abs() ** order, dims, keepdim) ** (1.0 / order)


def vector_norm(x: Tensor, order: float, dims: list[int], keepdim: bool = False) -> Tensor:
    return torch.linalg.vector_norm(x, order, all_of(x, dims) or None, keepdim)


def few_numbers(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return normal(shape, dtype, generator, 3.0).round()


def arg_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    """Ties included: numbers are few."""
    for sample in samples(dtype, generator, over_dims, few_numbers):
        x, dims, keepdim = sample.args
        if len(dims) < 2:
            yield Sample((x if dtype.is_floating_point else x % 5, dims, keepdim), label=sample.label)


def arg_of(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The first one of the best."""

    def reference(x: Tensor, dims: list[int], keepdim: bool = False) -> Tensor:
        return function(x, dims[0] if dims else None, keepdim)

    return reference


def benchmarks(make: Callable[..., Sample]) -> Callable[[torch.Generator], dict[str, Sample]]:
    def samples_of(generator: torch.Generator) -> dict[str, Sample]:
        cases = {"4096x4096 rows": [1], "4096x4096 columns": [0], "4096x4096 all": [0, 1]}
        return {
            label: make(normal((4096, 4096), torch.float32, generator), dims, False, "")
            for label, dims in cases.items()
        }

    return samples_of


def rows_of(make: Callable[..., Sample]) -> Callable[..., Sample]:
    return lambda m, n, dtype, generator: make(normal((m, n), dtype, generator), [1], False, "")


def spec(
    name: str, reference: Callable[..., Any], samples_of: Any, make: Callable[..., Sample] = over_dims, **others: Any
) -> OpSpec:
    others = {"eager": reference, "benchmarks": benchmarks(make), "rows": rows_of(make), **others}
    return OpSpec(f"kpkg::{name}", reference, samples_of, **others)


SPECS = [
    spec("sum", sum_of, sum_samples, dtypes=DTYPES, magnitude=size_of(sum_of)),
    spec("mean", mean_of, sum_samples, magnitude=size_of(mean_of)),
    spec("prod", prod_of, prod_samples, dtypes=DTYPES, magnitude=prod_size),
    spec("amax", torch.amax, extreme_samples, dtypes=DTYPES, accumulation=0.0),
    spec("amin", torch.amin, extreme_samples, dtypes=DTYPES, accumulation=0.0),
    spec("vector_norm", norm_of_dims, norm_samples, norm_of(2.0), eager=vector_norm),
    spec(
        "argmax",
        arg_of(torch.argmax),
        arg_samples,
        dtypes=NUMBERS,
        accumulation=0.0,
    ),
    spec(
        "argmin",
        arg_of(torch.argmin),
        arg_samples,
        dtypes=NUMBERS,
        accumulation=0.0,
    ),
]
