"""Specs of cumsum, cumprod and cummax and their gradients.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from opspec import ALL_FLOATS, OpSpec, Sample, all_bits, forms_along, normal
from torch import Tensor

DTYPES = (torch.uint8, torch.int32, torch.int64, torch.bool, *ALL_FLOATS)
SHAPES = [
    ((), 0),
    ((1,), 0),
    ((0,), 0),
    ((7,), -1),
    ((1025,), 0),
    ((100003,), 0),
    ((3, 0), 1),
    ((0, 3), 1),
    ((70, 9), 1),
    ((5, 33), -1),
    ((4, 600), 1),
]
SHAPES += [
    ((3, 9001), 1),
    ((2, 300), 0),
    ((600, 3), 0),
    ((5000, 5), 0),
    ((3000, 65), 0),
    ((3, 5, 7, 11), 0),
    ((3, 5, 7, 11), 1),
    ((3, 5, 7, 11), -2),
    ((2, 700, 9), 1),
]


def inputs(
    dtype: torch.dtype, generator: torch.Generator, values: Callable[..., Tensor]
) -> Iterator[tuple[str, Tensor, int]]:
    def make(shape: tuple[int, ...]) -> Tensor:
        return values(shape, dtype, generator)

    yield from forms_along(SHAPES, make)
    yield "permuted part", make((4, 50, 60)).permute(2, 0, 1)[3:], 0


def near_one(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Factors whose products neither vanish nor overflow."""
    return torch.exp2(normal(shape, torch.float64, generator, 1 / 64)).to(dtype)


def scan_samples(values: Callable[..., Tensor]) -> Callable[..., Iterator[Sample]]:
    def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for label, x, dim in inputs(dtype, generator, values if dtype.is_floating_point else all_bits):
            yield Sample((x, dim), label=label)
        if not dtype.is_floating_point:
            return
        yield Sample((torch.tensor([1.0, math.nan, 2.0, 0.0], dtype=dtype), 0), label="NaN")
        yield Sample((torch.tensor([1.0, math.inf, 2.0, 3.0], dtype=dtype), 0), label="infinity")

    return samples


def with_ties(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Numbers of which several along a dimension are the maximum, and among them both zeros."""
    return normal(shape, torch.float64, generator, 3.0).round().to(dtype)


def cummax_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    yield from scan_samples(with_ties)(dtype, generator)
    for label, x in (
        ("ascending", torch.arange(100.0)),
        ("descending", -torch.arange(1100.0)),
        ("minus infinity", torch.full((1100,), -math.inf)),
    ):
        yield Sample((x.to(dtype), 0), label=label)
    x = with_ties((4, 2100), dtype, generator)
    x[1, 700], x[2, 3], x[2, 1900] = math.nan, math.nan, math.nan
    yield Sample((x, 1), label="NaN in long rows")
    yield Sample((x.t().contiguous(), 0), label="NaN in long columns")


def cumprod_gradient_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for label, x, dim in inputs(dtype, generator, near_one):
        yield Sample((normal(tuple(x.shape), dtype, generator), x, dim), label=label)
    for zeros in ([2], [0, 5], [1, 2, 3], []):
        x = normal((3, 9), dtype, generator)
        x[1, zeros] = 0.0
        yield Sample((normal((3, 9), dtype, generator), x, 1), label=f"zeros at {zeros}")


def cumsum_gradient(grad: Tensor, dim: int) -> Tensor:
    return grad.flip(dim).cumsum(dim).flip(dim) if grad.dim() else grad


def cumprod_gradient(grad: Tensor, x: Tensor, dim: int) -> Tensor:
    x = x.detach().clone().requires_grad_()
    return torch.autograd.grad(x.cumprod(dim), x, grad)[0]


def length(x: Tensor, dim: int) -> int:
    """Equal factors round the same way: the error of a product grows with their number, not with its root."""
    return max(x.shape[dim] if x.dim() else 1, 1)


def benchmarks(tensors: int) -> Callable[[torch.Generator], dict[str, Sample]]:
    cases = {"4096x4096 rows": 1, "4096x4096 columns": 0}
    return lambda generator: {
        label: Sample((*(near_one((4096, 4096), torch.float32, generator) for _ in range(tensors)), dim))
        for label, dim in cases.items()
    }


def rows(tensors: int) -> Callable[..., Sample]:
    return lambda m, n, dtype, generator: Sample((*(near_one((m, n), dtype, generator) for _ in range(tensors)), 1))


SPECS = [
    OpSpec(
        "kpkg::cumsum",
        torch.cumsum,
        scan_samples(normal),
        DTYPES,
        magnitude=lambda x, dim: (x.abs() if x.is_floating_point() else x).cumsum(dim),
        benchmarks=benchmarks(1),
        eager=torch.cumsum,
        rows=rows(1),
    ),
    OpSpec(
        "kpkg::cumprod",
        torch.cumprod,
        scan_samples(near_one),
        DTYPES,
        magnitude=lambda x, dim: x.cumprod(dim) * length(x, dim),
        accumulation=2.0,
        benchmarks=benchmarks(1),
        eager=torch.cumprod,
        rows=rows(1),
    ),
    OpSpec(
        "kpkg::cummax",
        torch.cummax,
        cummax_samples,
        accumulation=0.0,
        benchmarks=benchmarks(1),
        eager=torch.cummax,
        rows=rows(1),
    ),
    OpSpec(
        "kpkg::cumsum_backward",
        cumsum_gradient,
        scan_samples(normal),
        magnitude=lambda grad, dim: cumsum_gradient(grad.abs(), dim),
        benchmarks=benchmarks(1),
        eager=cumsum_gradient,
        rows=rows(1),
    ),
    OpSpec(
        "kpkg::cumprod_backward",
        cumprod_gradient,
        cumprod_gradient_samples,
        magnitude=lambda grad, x, dim: cumprod_gradient(grad.abs(), x.abs(), dim) * length(x, dim),
        accumulation=4.0,
        benchmarks=benchmarks(2),
        eager=cumprod_gradient,
        rows=rows(2),
    ),
]
