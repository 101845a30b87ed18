"""Spec of low-rank adapters of linear layers.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from opspec import OpSpec, Sample, normal
from torch import Tensor
from torch.nn import functional as F


def lora_linear(
    input: Tensor,
    a: Tensor,
    b: Tensor,
    adapters: Tensor,
    scales: Tensor | None = None,
    base: Tensor | None = None,
) -> Tensor:
    sums = input.new_zeros(*input.shape[:-1], b.shape[1])
    for i in range(len(a)):
        own = adapters == i
        part = F.linear(F.linear(input[own], a[i]), b[i])
        sums[own] = part if scales is None else part * scales[i].to(part.dtype)
    return sums if base is None else base + sums


def magnitude(
    input: Tensor,
    a: Tensor,
    b: Tensor,
    adapters: Tensor,
    scales: Tensor | None = None,
    base: Tensor | None = None,
) -> Tensor:
    sizes = None if scales is None else scales.abs(), None if base is None else base.abs()
    return lora_linear(input.abs(), a.abs(), b.abs(), adapters, *sizes)


#: Rows, k, n, rank, adapters.
SIZES = [
    (1, 64, 64, 8, 1),
    (3, 33, 70, 5, 4),
    (17, 1030, 66, 16, 9),
    (64, 72, 130, 64, 3),
    (65, 72, 130, 64, 3),
    (0, 16, 8, 8, 2),
    (5, 16, 0, 8, 2),
    (9, 40, 24, 0, 2),
    (300, 40, 24, 16, 40),
    (200, 48, 1040, 33, 2),
    (520, 64, 96, 8, 130),
    (40, 24, 16, 128, 5),
]


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    device = generator.device

    def make(*shape: int, scale: float = 1.0) -> Tensor:
        return normal(shape, dtype, generator, scale)

    def call(rows: int, k: int, n: int, rank: int, count: int) -> tuple[Tensor, ...]:
        a, b = make(count, rank, k, scale=max(k, 1) ** -0.5), make(count, n, rank, scale=max(rank, 1) ** -0.5)
        adapters = torch.randint(-1, count, (rows,), dtype=torch.int32, generator=generator, device=device)
        return make(rows, k), a, b, adapters

    for sizes in SIZES:
        x, a, b, adapters = call(*sizes)
        scales, base = torch.rand(len(a), generator=generator, device=device) + 0.5, make(len(x), b.shape[1])
        label = "{} rows, {} to {}, rank {}, {} adapters".format(*sizes)
        yield Sample((x, a, b, adapters), label=label)
        yield Sample((x, a, b, adapters, scales, base), label=f"{label}, scales and base")
        transposed = x.t().contiguous().t(), a.mT.contiguous().mT, b.mT.contiguous().mT
        yield Sample((*transposed, adapters.sort()[0], scales), label=f"{label}, transposed, sorted")
        strided = base.t().contiguous().t()
        yield Sample((x, a, b, torch.full_like(adapters, len(a) - 1), None, strided), label=f"{label}, one for all")
    for rows in (20, 300):
        x, a, b, adapters = call(rows, 40, 24, 32, 3)
        base = make(rows, 24)
        yield Sample((x, a, b, torch.full_like(adapters, -1), None, base), label=f"{rows} rows without adapters")
        yield Sample((x, a, b, adapters * 3 - 2, None, base), label=f"{rows} rows, adapters that do not exist")
        batch = x.reshape(2, -1, 40), a, b, adapters.reshape(2, -1), None, base.reshape(2, -1, 24)
        yield Sample(batch, label=f"{rows} rows in a batch")
    x, a, b, adapters = call(1, 40, 24, 16, 3)
    yield Sample((x[0], a, b, adapters[0]), label="a vector")


def benchmarks(generator: torch.Generator) -> dict[str, Sample]:
    def call(rows: int) -> Sample:
        x, a, b = (
            normal(shape, torch.float32, generator, 0.1) for shape in ((rows, 1024), (8, 16, 1024), (8, 1024, 16))
        )
        return Sample((x, a, b, torch.randint(0, 8, (rows,), dtype=torch.int32, generator=generator)))

    return {f"{rows}x1024x1024, rank 16 of 8": call(rows) for rows in (8, 512)}


SPECS = [
    OpSpec(
        "kpkg::lora_linear",
        lora_linear,
        samples,
        magnitude=magnitude,
        rounds_between=True,
        benchmarks=benchmarks,
        eager=lora_linear,
    )
]
