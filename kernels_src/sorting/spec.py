"""Specs of sorting, selection and counting.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from opspec import ALL_FLOATS, OpSpec, Sample, forms_along, normal
from torch import Tensor

SORTED = (*ALL_FLOATS, torch.int32, torch.int64, torch.int16, torch.uint8)
SHAPES = [
    ((), 0),
    ((1,), 0),
    ((0,), 0),
    ((70,), -1),
    ((5, 33), 1),
    ((3, 0), 1),
    ((0, 3), 1),
    ((3, 300), -1),
    ((2, 1025), 1),
    ((2, 5000), 1),
    ((1, 20000), 1),
    ((200, 3), 0),
    ((3, 5, 7, 11), 1),
    ((2, 70, 9), -2),
]


def drawn(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Returns numbers of which many are equal, with both zeros."""
    x = torch.randint(-60, 61, shape, generator=generator, device=generator.device)
    if not dtype.is_floating_point:
        return (x if dtype.is_signed else x + 60).to(dtype)
    return (x.double() * 0.25 * torch.where(x == 0, -1.0, 1.0)).to(dtype)


def inputs(dtype: torch.dtype, generator: torch.Generator) -> Iterator[tuple[str, Tensor, int]]:
    def make(shape: tuple[int, ...]) -> Tensor:
        return drawn(shape, dtype, generator)

    yield from forms_along(SHAPES, make)
    if dtype.is_floating_point:
        for n in (100, 1100, 17000):
            x = make((2, n))
            x[:, 3::7], x[0, 1::5], x[1, 2::9] = math.nan, math.inf, -math.inf
            yield f"NaN and infinities in rows of {n}", x, 1


def sort_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for i, (label, x, dim) in enumerate(inputs(dtype, generator)):
        yield Sample((x, dim, i % 2 == 1), label=label)
        if x.numel() < 3000:
            yield Sample((x, dim, i % 2 == 0), label=f"{label}, the other way")


def topk_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for i, (label, x, dim) in enumerate(inputs(dtype, generator)):
        n = x.shape[dim] if x.dim() else 1
        for k in sorted({min(n, k) for k in (0, 1, 5, 60, 400)}):
            yield Sample((x, k, dim, i % 2 == 0), label=f"{k} of {label}")
    yield Sample((drawn((1, 3000), dtype, generator), 1500), label="1500 of 3000")
    yield Sample((drawn((2, 9000), dtype, generator), 5, 1, False), label="5 least of 9000")


def sort(input: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    values, indices = input.sort(dim=dim, descending=descending, stable=True)
    return values, indices


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True) -> tuple[Tensor, Tensor]:
    values, indices = sort(input, dim, largest)
    return (values.narrow(dim, 0, k), indices.narrow(dim, 0, k)) if input.dim() else (values, indices)


def bincount_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    dtype = torch.int64 if dtype.is_floating_point else dtype
    for n, bins in [(0, 3), (1, 1), (777, 100), (9000, 257), (5000, 1030), (3000, 8192), (3000, 9000)]:
        x = torch.randint(0, 200, (n,), generator=generator, device=generator.device)
        x = x * (bins // 150 + 1) if dtype is not torch.uint8 else x
        yield Sample((x.to(dtype), bins), label=f"{n} numbers, {bins} bins")
    yield Sample((drawn((30, 70), dtype, generator).t(), 40), label="transposed, numbers outside")


def histc_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for shape, bins in [((0,), 3), ((1,), 4), ((50, 20), 100), ((9000,), 16), ((9, 700), 256), ((4000,), 2048)]:
        x = drawn(shape, dtype, generator)
        for ends in ((0.0, 0.0), (-8.0, 8.0), (-3.0, 13.0)):
            yield Sample((x, bins, *ends), label=f"{shape}, {bins} bins of {ends}")
    yield Sample((drawn((30, 70), dtype, generator).t(), 10, -16.0, 16.0), label="transposed")
    yield Sample((torch.full((10,), 2.0, dtype=dtype), 4), label="equal elements")
    x = drawn((300,), dtype, generator)
    x[::7], x[1::7] = math.nan, math.inf
    yield Sample((x, 20, -10.0, 10.0), label="NaN and infinities")


def bins_of(input: Tensor, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Tensor:
    x = input.double().flatten()
    if min == max and len(x):
        min, max = float(x.min()), float(x.max())
    if min == max:
        min, max = min - 1, max + 1
    x = x[(x >= min) & (x <= max)]
    places = torch.floor((x - min) * bins / (max - min)).clamp(max=bins - 1).long()
    return torch.bincount(places, minlength=bins).double()


def unique_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for shape in [(), (0,), (1,), (70,), (5, 33), (4096,), (3, 3001)]:
        yield Sample((drawn(shape, dtype, generator),), label=str(shape))
    yield Sample((drawn((30, 70), dtype, generator).t(),), label="transposed")
    if dtype.is_floating_point:
        x = drawn((300,), dtype, generator)
        x[::7], x[1::9], x[2::9] = math.nan, math.inf, -math.inf
        yield Sample((x,), label="NaN and infinities")


def unique_padded(input: Tensor) -> tuple[Tensor, ...]:
    x, n = input.flatten(), input.numel()
    values, order = x.sort(stable=True)
    begins = torch.ones_like(order, dtype=torch.bool)
    begins[1:] = values[1:] != values[:-1]
    run = begins.cumsum(0) - 1
    found = x.new_zeros(n)
    found[: int(begins.sum())] = values[begins]
    inverse = torch.empty_like(order).scatter(0, order, run)
    counts = torch.bincount(run, minlength=n)
    return found, inverse.reshape(input.shape), counts, begins.sum().reshape(1)


def of_rows(*more: int) -> Callable[..., Sample]:
    return lambda rows, n, dtype, generator: Sample((normal((rows, n), dtype, generator), *more))


def benchmark(*more: int) -> Callable[[torch.Generator], dict[str, Sample]]:
    return lambda generator: {"512x1000": Sample((normal((512, 1000), torch.float32, generator), *more))}


SPECS = [
    OpSpec(
        "kpkg::sort", sort, sort_samples, SORTED, accumulation=0.0, benchmarks=benchmark(), eager=sort, rows=of_rows()
    ),
    OpSpec(
        "kpkg::argsort",
        lambda *args: sort(*args)[1],
        sort_samples,
        SORTED,
        benchmarks=benchmark(),
        eager=lambda x: x.argsort(dim=-1, stable=True),
        rows=of_rows(),
    ),
    OpSpec(
        "kpkg::topk",
        topk,
        topk_samples,
        SORTED,
        accumulation=0.0,
        benchmarks=benchmark(10),
        eager=torch.topk,
        rows=of_rows(10),
    ),
    OpSpec(
        "kpkg::bincount",
        lambda x, bins: torch.bincount(x.long()[(x >= 0) & (x.long() < bins)], minlength=bins),
        bincount_samples,
        (torch.int64, torch.int32, torch.uint8),
        benchmarks=lambda generator: {"100000 of 1000": Sample((torch.arange(100000) % 1000, 1000))},
        eager=lambda x, bins: torch.bincount(x, minlength=bins),
    ),
    OpSpec(
        "kpkg::histc",
        bins_of,
        histc_samples,
        accumulation=0.0,
        benchmarks=lambda generator: {
            "100000 in 100": Sample((normal((100000,), torch.float32, generator), 100, -4.0, 4.0))
        },
        eager=torch.histc,
    ),
    OpSpec(
        "kpkg::unique_padded",
        unique_padded,
        unique_samples,
        (*SORTED, torch.bool),
        accumulation=0.0,
        benchmarks=benchmark(),
        eager=lambda x: torch.unique(x, return_inverse=True, return_counts=True),
        rows=of_rows(),
    ),
]
