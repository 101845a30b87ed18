"""Specs of var, std, var_mean and std_mean.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from opspec import OpSpec, Sample, normal, strided_forms
from torch import Tensor

SHAPES: list[tuple[tuple[int, ...], list[int]]] = [
    ((2, 4), [1]),  # the smallest sample, whose second derivatives are compared
    *((shape, []) for shape in [(), (1,), (7,), (4097,), (100003,)]),
    *((shape, [-1]) for shape in [(5, 1), (0, 5), (70, 9), (4, 129), (3, 1025), (9, 4097), (1, 40000), (3, 70001)]),
    *((shape, [0]) for shape in [(2, 300), (9, 1000), (300, 2), (5000, 3), (40000, 1), (3000, 65)]),
    *(((3, 5, 7, 11), dims) for dims in ([1], [2, 3], [0, 2], [-1, 0], [1, 3], [0, 1, 3], [])),
    ((2, 3, 2, 3, 2, 3), [0, 2, 4]),
    ((4, 1, 9, 1), [1]),
    ((4, 1, 9, 1), [3, 0]),
    ((2, 6, 4000), [0, 2]),
    ((70, 7, 5), [1]),
    ((20, 16, 33), [1]),
    ((3, 100, 6), [1]),
    ((5000, 3, 2), [0, 2]),
    *((shape, dims) for shape in [(0, 3), (2, 0, 3)] for dims in ([0], [1], [0, 1])),
]
CORRECTIONS = (1.0, 0.0, 0.5, 4.0, 200.0, -1.5)


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def tensor(shape: tuple[int, ...]) -> Tensor:
        return normal(shape, dtype, generator) + 4

    for i, (shape, dims) in enumerate(SHAPES):
        correction = CORRECTIONS[i % len(CORRECTIONS)]
        yield Sample((tensor(shape), dims, correction, i % 2 == 1), label=f"{shape} over {dims}, {correction}")
    for label, x in strided_forms(tensor):
        for dims in ([0], [1], []):
            yield Sample((x, dims), label=f"{label} over {dims}")
    yield Sample((tensor((5, 6, 7)).permute(2, 0, 1), [1]), label="permuted")
    yield Sample((tensor((5, 6, 7)).permute(1, 2, 0)[:, 1:], [0, 2], 1.0, True), label="part of a permuted one")
    rows = torch.tensor([[math.nan, 1.0, 2.0], [3.0, 3.0, 3.0], [-1.0, 0.0, 1.0]], dtype=dtype)
    yield Sample((rows, [1]), label="NaN and equal elements")


def quietly(function: Callable[..., Any]) -> Callable[..., Any]:
    """PyTorch warns where no degrees of freedom are left."""

    def call(x: Tensor, dims: list[int], correction: float = 1.0, keepdim: bool = False) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(x, dims or list(range(x.dim())), correction=correction, keepdim=keepdim)

    return call


def beside_mean(function: Callable[..., Tensor]) -> Callable[..., tuple[Tensor, Tensor]]:
    """The mean is that of PyTorch's sum, which adds pairs: the one of var_mean loses more than is allowed here."""

    def call(x: Tensor, dims: list[int], correction: float = 1.0, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        spread = quietly(function)(x, dims, correction, keepdim)
        return spread, torch.mean(x, dims or list(range(x.dim())), keepdim)

    return call


def squares(x: Tensor, dims: list[int], correction: float = 1.0, keepdim: bool = False) -> Tensor:
    """The variance, and the squared round-off of distances from the mean."""
    spread = quietly(torch.var)(x, dims, correction, keepdim)
    return torch.maximum(spread, torch.ones_like(spread))


def roots(x: Tensor, dims: list[int], correction: float = 1.0, keepdim: bool = False) -> Tensor:
    return squares(x, dims, correction, keepdim).sqrt()


def with_mean(size: Callable[..., Tensor]) -> Callable[..., tuple[Tensor, Tensor]]:
    def sizes(x: Tensor, dims: list[int], correction: float = 1.0, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        return size(x, dims, correction, keepdim), torch.mean(x.abs(), dims or list(range(x.dim())), keepdim)

    return sizes


def benchmarks(generator: torch.Generator) -> dict[str, Sample]:
    cases = {"4096x4096 rows": [1], "4096x4096 columns": [0], "4096x4096 all": [0, 1]}
    return {label: Sample((normal((4096, 4096), torch.float32, generator), dims)) for label, dims in cases.items()}


def rows_of(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample((normal((m, n), dtype, generator), [1]))


def spec(name: str, magnitude: Callable[..., Any], reference: Callable[..., Any] | None = None) -> OpSpec:
    eager = quietly(getattr(torch, name))
    return OpSpec(
        f"kpkg::{name}",
        reference or eager,
        samples,
        magnitude=magnitude,
        eager=eager,
        benchmarks=benchmarks,
        rows=rows_of,
    )


SPECS = [
    spec("var", squares),
    spec("std", roots),
    spec("var_mean", with_mean(squares), beside_mean(torch.var)),
    spec("std_mean", with_mean(roots), beside_mean(torch.std)),
]
