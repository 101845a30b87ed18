"""Spec of grouped_gemm.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from opspec import OpSpec, Sample, normal
from torch import Tensor


def grouped(mat_a: Tensor, mat_b: Tensor, offs: Tensor) -> Tensor:
    ends = [0, *offs.tolist()]
    parts = [mat_a[first:last] @ matrix for first, last, matrix in zip(ends, ends[1:], mat_b)]
    return torch.cat([*parts, mat_a.new_zeros(mat_a.shape[0] - ends[-1], mat_b.shape[2])])


def magnitude(mat_a: Tensor, mat_b: Tensor, offs: Tensor) -> Tensor:
    return grouped(mat_a.abs(), mat_b.abs(), offs)


COUNTS = [[5], [0, 7, 0, 3], [1] * 17, [0, 0], [129, 0, 1, 260], [64, 128, 70], [0, 300, 0], [2] * 140]


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    for i, counts in enumerate(COUNTS):
        rows, groups = sum(counts), len(counts)
        k, n = [(40, 70), (64, 64), (1, 5), (33, 258), (300, 96)][i % 5]
        offs = torch.tensor(counts, device=generator.device).cumsum(0).to(torch.int32)
        yield Sample((make(rows, k), make(groups, k, n), offs), label=f"{groups} groups of {rows} rows, {k}x{n}")
        a = [make(k, rows).t(), make(rows, k + 3)[:, 1 : k + 1], make(rows, 2 * k)[:, ::2]][i % 3]
        yield Sample((a, make(groups, n, k).mT, offs), label=f"{groups} groups of {rows} rows, strided")
    offs = torch.tensor([3, 9], dtype=torch.int32, device=generator.device)
    yield Sample((make(20, 16), make(2, 16, 24), offs), label="rows behind the last group")
    yield Sample((make(9, 0), make(2, 0, 24), offs), label="no depth")
    yield Sample((make(9, 16), make(1, 16, 24).expand(2, 16, 24), offs), label="one matrix for all")


def benchmarks(generator: torch.Generator) -> dict[str, Sample]:
    offs = torch.arange(32, 513, 32, dtype=torch.int32)
    return {
        "16x32x512x512": Sample(
            (normal((512, 512), torch.float32, generator), normal((16, 512, 512), torch.float32, generator), offs)
        )
    }


SPECS = [OpSpec("kpkg::grouped_gemm", grouped, samples, magnitude=magnitude, benchmarks=benchmarks)]
