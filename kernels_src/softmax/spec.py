"""Specs of softmax and log_softmax.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from opspec import OpSpec, Sample, normal, strided_forms
from torch import Tensor


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(shape: tuple[int, ...]) -> Tensor:
        return normal(shape, dtype, generator, 3.0)

    for shape in [(1, 1), (3, 0), (0, 5), (1, 7), (5, 33), (4, 129), (2, 1000), (7, 1023), (3, 1024), (3, 1025), (2, 8191), (1, 16385), (2, 40000)]:
        yield Sample((make(shape), -1), label=str(shape))
    yield Sample((make(()), 0), label="scalar")
    for dim in range(-4, 4):
        yield Sample((make((3, 5, 7, 11)), dim), label=f"dim {dim}")
    yield Sample((make((2, 70, 65)), 1), label="columns")
    yield Sample((make((300, 2)), 0), label="tall columns")
    for label, x in strided_forms(make):
        yield Sample((x, -1), label=label)
        yield Sample((x, 0), label=f"{label}, dim 0")
    yield Sample((make((4, 6, 33)).transpose(1, 2), 1), label="transposed inside")
    big = torch.finfo(dtype).max / 4
    rows = [[big, -big, big, 0.0], [-math.inf, 1.0, 2.0, -math.inf], [-math.inf] * 4, [math.inf, 0.0, 1.0, 2.0], [math.nan, 0.0, 1.0, 2.0], [-80.0, 80.0, 0.0, -1.0]]
    yield Sample((torch.tensor(rows, dtype=torch.float64).to(dtype), -1), label="extreme")


def benchmarks(generator: torch.Generator) -> dict[str, Sample]:
    shapes = [(4096, 1024), (512, 16384), (4, 128)]
    return {f"{m}x{n}": Sample((normal((m, n), torch.float32, generator), -1)) for m, n in shapes}


def rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample((normal((m, n), dtype, generator, 3.0), -1))


SPECS = [
    OpSpec("kpkg::softmax", torch.softmax, samples, benchmarks=benchmarks, eager=torch.softmax, rows=rows),
    OpSpec("kpkg::log_softmax", torch.log_softmax, samples, benchmarks=benchmarks, eager=torch.log_softmax, rows=rows),
]
