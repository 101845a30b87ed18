"""Specs of logsumexp and its gradient.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from opspec import OpSpec, Sample, normal, strided_forms
from torch import Tensor

SHAPES = [(1, 1), (3, 0), (0, 5), (5, 33), (4, 257), (2, 1025), (3, 4097), (2, 40000)]


def inputs(dtype: torch.dtype, generator: torch.Generator) -> Iterator[tuple[str, Tensor, int]]:
    def make(shape: tuple[int, ...]) -> Tensor:
        return normal(shape, dtype, generator, 3.0)

    for shape in SHAPES:
        yield str(shape), make(shape), -1
    yield "scalar", make(()), 0
    for dim in range(-4, 4):
        yield f"dim {dim}", make((3, 5, 7, 11)), dim
    yield "columns", make((2, 70, 65)), 1
    yield "short columns", make((70, 7, 5)), 1
    yield "long columns", make((2, 900, 20)), 1
    yield "few split columns", make((33000, 3)), 0
    yield "split columns", make((2, 9000, 70)), 1
    yield "split rows", make((2, 100003)), -1
    yield "short rows", make((70, 50)), -1
    for label, x in strided_forms(make):
        yield label, x, -1
        yield f"{label}, dim 0", x, 0


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for index, (label, x, dim) in enumerate(inputs(dtype, generator)):
        yield Sample((x, dim, index % 2 == 1), label=label)
    big = torch.finfo(dtype).max / 4
    rows = [
        [big, -big, big, 0.0],
        [-math.inf, 1.0, 2.0, -math.inf],
        [-math.inf] * 4,
        [math.inf, 0.0, 1.0, -math.inf],
        [math.nan, 0.0, 1.0, 2.0],
        [-80.0, 80.0, 0.0, -1.0],
    ]
    x = torch.tensor(rows, dtype=torch.float64).to(dtype)
    yield Sample((x, -1), label="extreme")
    yield Sample((x, 0), label="extreme, dim 0")
    yield Sample((x.T.repeat(4000, 1), 0), label="extreme parts of columns")
    yield Sample((x.repeat(1, 80000), -1), label="extreme parts of rows")


def logsumexp_backward(grad: Tensor, input: Tensor, output: Tensor, dim: int = -1, keepdim: bool = False) -> Tensor:
    if not keepdim and input.dim():
        grad, output = grad.unsqueeze(dim), output.unsqueeze(dim)
    return grad * torch.exp(input - output.masked_fill(output.isinf(), 0))


def backward_magnitude(grad: Tensor, input: Tensor, output: Tensor, dim: int = -1, keepdim: bool = False) -> Tensor:
    """The exponential is as wrong as its argument is large."""
    size = 1 + input.abs() + (output if keepdim or not input.dim() else output.unsqueeze(dim)).nan_to_num().abs()
    return logsumexp_backward(grad, input, output, dim, keepdim).abs() * size


def backward_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for index, (label, x, dim) in enumerate(inputs(dtype, generator)):
        keepdim = index % 2 == 1
        out = torch.logsumexp(x.double(), dim, keepdim).to(dtype)
        yield Sample((normal(tuple(out.shape), dtype, generator), x, out, dim, keepdim), label=label)


def rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample((normal((m, n), dtype, generator, 3.0), -1))


SPECS = [
    OpSpec(
        "kpkg::logsumexp",
        torch.logsumexp,
        samples,
        benchmarks=lambda generator: {"4096x1024": rows(4096, 1024, torch.float32, generator)},
        eager=torch.logsumexp,
        rows=rows,
    ),
    OpSpec("kpkg::logsumexp_backward", logsumexp_backward, backward_samples, magnitude=backward_magnitude),
]
