"""Specs of embedding and its gradient.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, normal
from torch import Tensor

#: Rows and columns of the table, shape of the indices.
SIZES: list[tuple[int, int, tuple[int, ...]]] = [
    (1, 1, ()),
    (5, 0, (3,)),
    (4, 7, (0,)),
    (3, 33, (2, 0)),
    (2, 129, (70,)),
    (50, 64, (3, 5)),
    (300, 1030, (9,)),
    (7, 2048, (2, 3, 4)),
    (1000, 8, (515,)),
]


def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1) -> Tensor:
    return weight[indices.long()]


def eager(weight: Tensor, indices: Tensor, padding_idx: int = -1) -> Tensor:
    return F.embedding(indices, weight, padding_idx if padding_idx >= 0 else None)


def eager_backward(grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int = -1) -> Tensor:
    return torch.ops.aten.embedding_dense_backward(grad, indices, num_weights, padding_idx, False)


def embedding_backward(grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int = -1) -> Tensor:
    out = grad.new_zeros(num_weights, grad.shape[-1])
    out.index_add_(0, indices.long().reshape(-1), grad.reshape(indices.numel(), grad.shape[-1]))
    if padding_idx >= 0:
        out[padding_idx] = 0
    return out


def magnitude(grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int = -1) -> Tensor:
    return embedding_backward(grad.abs(), indices, num_weights, padding_idx)


def drawn(rows: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randint(0, rows, shape, generator=generator, device=generator.device)


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for rows, n, shape in SIZES:
        yield Sample((normal((rows, n), dtype, generator), drawn(rows, shape, generator)), label=f"{rows}x{n} {shape}")
    table = normal((40, 66), dtype, generator)
    at = drawn(33, (6, 10), generator)
    yield Sample((table[:33, ::2], at.t()), label="strided")
    yield Sample((table.t(), at.to(torch.int32), 3), label="transposed, int32, padding")


def gradient_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for rows, n, shape in SIZES:
        given = (normal((*shape, n), dtype, generator), drawn(rows, shape, generator), rows)
        yield Sample(given, label=f"{rows}x{n} {shape}")
        yield Sample((*given, rows // 2), label=f"{rows}x{n} {shape}, padding")
    grad, at = normal((10, 6, 66), dtype, generator)[..., ::2], drawn(9, (6, 10), generator)
    yield Sample((grad, at.t(), 9), label="strided")
    yield Sample((grad[:1].expand(10, 6, 33), at.t().to(torch.int32), 12), label="expanded, int32")


def rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample((normal((32000, n), dtype, generator), drawn(32000, (m,), generator)))


def gradient_rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample((normal((m, n), dtype, generator), drawn(32000, (m,), generator), 32000))


SPECS = [
    OpSpec(
        "kpkg::embedding",
        embedding,
        samples,
        benchmarks=lambda generator: {"2048x1024": rows(2048, 1024, torch.float32, generator)},
        eager=eager,
        rows=rows,
    ),
    OpSpec(
        "kpkg::embedding_backward",
        embedding_backward,
        gradient_samples,
        magnitude=magnitude,
        benchmarks=lambda generator: {"2048x1024": gradient_rows(2048, 1024, torch.float32, generator)},
        eager=eager_backward,
        rows=gradient_rows,
    ),
]
