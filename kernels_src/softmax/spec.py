"""Specs of softmax, log_softmax and their gradients.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from opspec import OpSpec, Sample, normal, strided_forms
from torch import Tensor

#: Columns that one tile holds, of one outer index or several, and columns that are split: shape, dimension.
COLUMNS = [
    ("short, few", (70, 7, 5), 1),
    ("short", (9, 13, 37), 1),
    ("few", (3, 100, 6), 1),
    ("many elements of few", (2, 700, 3), 1),
    ("wide", (3, 50, 130), 1),
    ("long", (2, 200, 40), 1),
    ("longer", (2, 900, 20), 1),
    ("longest held", (2, 3001, 17), 1),
    ("split few", (33000, 3), 0),
    ("split", (2, 9000, 70), 1),
]


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(shape: tuple[int, ...]) -> Tensor:
        return normal(shape, dtype, generator, 3.0)

    for shape in [
        (1, 1),
        (3, 0),
        (0, 5),
        (1, 7),
        (5, 33),
        (4, 129),
        (2, 1000),
        (7, 1023),
        (3, 1024),
        (3, 1025),
        (2, 8191),
        (1, 16385),
        (2, 40000),
    ]:
        yield Sample((make(shape), -1), label=str(shape))
    yield Sample((make(()), 0), label="scalar")
    for dim in range(-4, 4):
        yield Sample((make((3, 5, 7, 11)), dim), label=f"dim {dim}")
    yield Sample((make((2, 70, 65)), 1), label="columns")
    yield Sample((make((300, 2)), 0), label="tall columns")
    for label, shape, dim in COLUMNS:
        yield Sample((make(shape), dim), label=f"{label} columns")
    for n in (17, 32, 50, 64, 100):
        yield Sample((make((70, n)), -1), label=f"rows of {n}")
    for label, x in strided_forms(make):
        yield Sample((x, -1), label=label)
        yield Sample((x, 0), label=f"{label}, dim 0")
    yield Sample((make((4, 6, 33)).transpose(1, 2), 1), label="transposed inside")
    big = torch.finfo(dtype).max / 4
    rows = [
        [big, -big, big, 0.0],
        [-math.inf, 1.0, 2.0, -math.inf],
        [-math.inf] * 4,
        [math.inf, 0.0, 1.0, 2.0],
        [math.nan, 0.0, 1.0, 2.0],
        [-80.0, 80.0, 0.0, -1.0],
    ]
    extreme = torch.tensor(rows, dtype=torch.float64).to(dtype)
    yield Sample((extreme, -1), label="extreme")
    yield Sample((extreme.T.contiguous(), 0), label="extreme columns")
    # All other parts of long rows and columns have the sum 0.
    nothing = torch.full((len(rows), 320000), -math.inf, dtype=dtype)
    yield Sample(
        (torch.cat([extreme, nothing[:, :16000], extreme], 1).T.contiguous(), 0), label="extreme parts of columns"
    )
    yield Sample((torch.cat([extreme, nothing, extreme], 1), -1), label="extreme parts of rows")


def benchmarks(generator: torch.Generator) -> dict[str, Sample]:
    shapes = [(4096, 1024), (512, 16384), (4, 128)]
    return {f"{m}x{n}": Sample((normal((m, n), torch.float32, generator), -1)) for m, n in shapes}


def rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample((normal((m, n), dtype, generator, 3.0), -1))


def softmax_backward(grad: Tensor, out: Tensor, dim: int = -1) -> Tensor:
    return torch._softmax_backward_data(grad, out, dim, out.dtype)


def log_softmax_backward(grad: Tensor, out: Tensor, dim: int = -1) -> Tensor:
    return torch._log_softmax_backward_data(grad, out, dim, out.dtype)


def _summed(terms: Tensor, dim: int) -> Tensor:
    return terms.abs().sum(dim, keepdim=True) if terms.dim() else terms.abs()


def softmax_backward_magnitude(grad: Tensor, out: Tensor, dim: int = -1) -> Tensor:
    return (grad.abs() + _summed(grad * out, dim)) * out.abs()


def log_softmax_backward_magnitude(grad: Tensor, out: Tensor, dim: int = -1) -> Tensor:
    return grad.abs() + out.exp() * _summed(grad, dim) * (
        1 + out.nan_to_num(neginf=0.0).abs()
    )  # exp is as wrong as its argument is large


def backward_samples(forward: Callable[..., Tensor]) -> Callable[..., Iterator[Sample]]:
    """The samples of the forward op, with its result and a gradient of the result's shape.

    The gradient is dense or has the strides of the input.
    """

    def make(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for index, sample in enumerate(samples(dtype, generator)):
            x, dim = sample.args
            out = forward(x.double(), dim).to(dtype)
            grad = normal(tuple(x.shape), dtype, generator)
            if index % 2:
                grad = torch.empty_like(x).copy_(grad) if x.dim() != 2 else grad.t().contiguous().t()
            yield Sample((grad, out, dim), label=sample.label)
        yield Sample(
            (normal((1, 40), dtype, generator).expand(5, 40), out.new_full((5, 40), 0.025), -1),
            label="expanded gradient",
        )
        rows = torch.tensor(
            [[math.inf, 1.0, 2.0], [math.nan, 0.0, 1.0], [1.0, -math.inf, math.inf]], dtype=torch.float64
        ).to(dtype)
        yield Sample((rows, torch.full((3, 3), 0.25, dtype=dtype), -1), label="infinite gradient")

    return make


def backward_rows(forward: Callable[..., Tensor]) -> Callable[..., Sample]:
    def make(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
        return Sample((normal((m, n), dtype, generator), forward(normal((m, n), dtype, generator, 3.0), -1), -1))

    return make


def backward_benchmarks(forward: Callable[..., Tensor]) -> Callable[..., dict[str, Sample]]:
    make = backward_rows(forward)
    return lambda generator: {
        f"{m}x{n}": make(m, n, torch.float32, generator) for m, n in [(4096, 1024), (512, 16384), (4, 128)]
    }


SPECS = [
    OpSpec("kpkg::softmax", torch.softmax, samples, benchmarks=benchmarks, eager=torch.softmax, rows=rows),
    OpSpec("kpkg::log_softmax", torch.log_softmax, samples, benchmarks=benchmarks, eager=torch.log_softmax, rows=rows),
    OpSpec(
        "kpkg::softmax_backward",
        softmax_backward,
        backward_samples(torch.softmax),
        magnitude=softmax_backward_magnitude,
        benchmarks=backward_benchmarks(torch.softmax),
        eager=softmax_backward,
        rows=backward_rows(torch.softmax),
    ),
    OpSpec(
        "kpkg::log_softmax_backward",
        log_softmax_backward,
        backward_samples(torch.log_softmax),
        magnitude=log_softmax_backward_magnitude,
        benchmarks=backward_benchmarks(torch.log_softmax),
        eager=log_softmax_backward,
        rows=backward_rows(torch.log_softmax),
    ),
]
