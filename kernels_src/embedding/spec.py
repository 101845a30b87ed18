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


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor | None = None,
    mode: str = "mean",
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Tensor:
    return F.embedding_bag(
        indices.long(),
        weight,
        None if offsets is None else offsets.long(),
        mode=mode,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx if padding_idx >= 0 else None,
    )


def bag_magnitude(weight: Tensor, indices: Tensor, *rest: object) -> Tensor:
    """The longest bag of the samples has 40 rows, with weights of up to 5."""
    return weight.abs().amax() * (200 if rest[1:2] == ("sum",) else 1) if weight.numel() else weight.new_zeros(())


def bag_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    """PyTorch has no maxima of 16 bits on CPUs."""
    modes = ("sum", "mean", "max") if dtype in (torch.float32, torch.float64) else ("sum", "mean")
    for mode in modes:
        for rows_, n, shape in [(1, 1, (1, 1)), (4, 7, (3, 8)), (50, 129, (5, 9)), (9, 1030, (2, 3)), (3, 5, (0, 4))]:
            given = normal((rows_, n), dtype, generator), drawn(rows_, shape, generator)
            yield Sample((*given, None, mode), label=f"{mode} {rows_}x{n} {shape}")
        table, at = normal((30, 66), dtype, generator), drawn(30, (60,), generator)
        offsets = torch.tensor([0, 0, 5, 45, 45], device=at.device)
        yield Sample((table[:, ::2], at, offsets, mode), label=f"{mode}, offsets")
        yield Sample((table.t(), at.to(torch.int32), offsets.int(), mode, None, False, 3), label=f"{mode}, padding")
        yield Sample(
            (table, at, torch.cat([offsets, offsets.new_tensor([60])]), mode, None, True), label=f"{mode}, end"
        )
    given = normal((30, 66), dtype, generator), drawn(30, (60,), generator), torch.tensor([0, 7, 20])
    yield Sample((*given, "sum", normal((60,), dtype, generator), False, 2), label="weighted")


def bag_rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample((normal((32000, n), dtype, generator), drawn(32000, (m, 20), generator)))


SPECS = [
    OpSpec(
        "kpkg::embedding_bag",
        embedding_bag,
        bag_samples,
        magnitude=bag_magnitude,
        benchmarks=lambda generator: {"1024 bags of 20 x256": bag_rows(1024, 256, torch.float32, generator)},
        eager=embedding_bag,
        rows=bag_rows,
    ),
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
