"""Spec of dropout, with Philox in integers of PyTorch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, normal, strided_forms
from torch import Tensor

LOW = 2**32 - 1


def numbers(count: int, seed: int, offset: int) -> Tensor:
    """Returns the number of each element, from 0 up to 1."""
    c2 = torch.arange((count + 3) // 4)
    c0, c1, c3 = torch.full_like(c2, offset & LOW), torch.full_like(c2, offset >> 32 & LOW), torch.zeros_like(c2)
    k0, k1 = seed & LOW, seed >> 32 & LOW
    for _ in range(10):
        a, b = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (b >> 32 & LOW) ^ c1 ^ k0, b & LOW, (a >> 32 & LOW) ^ c3 ^ k1, a & LOW
        k0, k1 = k0 + 0x9E3779B9 & LOW, k1 + 0xBB67AE85 & LOW
    return (torch.stack([c0, c1, c2, c3], 1).reshape(-1)[:count] >> 8).double() * 2.0**-24


def dropout(
    x: Tensor,
    p: float = 0.5,
    seed: int = 0,
    offset: int = 0,
    residual: Tensor | None = None,
    device_seed: Tensor | None = None,
) -> Tensor:
    u = numbers(x.numel(), seed + (0 if device_seed is None else int(device_seed)), offset).to(x.device)
    y = torch.where(u.reshape(x.shape) >= p, x / (1 - p) if p < 1 else torch.zeros_like(x), 0.0)
    return y if residual is None else y + residual


def eager(x: Tensor, p: float = 0.5, *_: object) -> Tensor:
    return F.dropout(x, p)


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(shape: tuple[int, ...]) -> Tensor:
        return normal(shape, dtype, generator)

    for shape in [(), (0, 3), (1,), (3, 5), (2047,), (2048,), (2049,), (3, 7, 129)]:
        yield Sample((make(shape), 0.25, 123, 7), label=f"{shape}")
    for label, x in strided_forms(make):
        yield Sample((x, 0.5, -1, 2**40), label=label)
        yield Sample((x, 0.75, 5, 0, make(tuple(x.shape)).t().contiguous().t()), label=f"{label}, residual")
    yield Sample((make((70, 30)), 0.5, 2**50, 3, None, torch.tensor([2**33 + 9])), label="seed on the device")
    yield Sample((make((70,)), 0.0, 1), label="nothing dropped")
    yield Sample((make((70,)), 1.0, 1, 0, make((70,))), label="all dropped")
    yield Sample((make((2, 3, 5, 7)).to(memory_format=torch.channels_last), 0.5, 1), label="channels-last")


def rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample((normal((m, n), dtype, generator), 0.25, 1))


SPECS = [
    OpSpec(
        "kpkg::dropout",
        dropout,
        samples,
        benchmarks=lambda generator: {"2048x1024": rows(2048, 1024, torch.float32, generator)},
        eager=eager,
        rows=rows,
    ),
]
