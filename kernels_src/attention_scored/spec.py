"""Specs of attention with score functions.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from opspec import HALF, OpSpec, Sample, normal
from torch import Tensor

Change = Callable[[Tensor, Tensor, Tensor], Tensor]  # scores, distance of keys from queries, the caller's tensor


def alibi(s: Tensor, ahead: Tensor, slopes: Tensor) -> Tensor:
    return s - slopes[:, None, None] * ahead.abs()


def relative(s: Tensor, ahead: Tensor, bias: Tensor) -> Tensor:
    return s + bias[:, (ahead + bias.shape[1] // 2).clamp(0, bias.shape[1] - 1)]


def documents(s: Tensor, ahead: Tensor, numbers: Tensor) -> Tensor:
    rows, keys = ahead.shape
    return s.masked_fill((numbers[:, :rows, None] != numbers[:, None, :keys])[:, None], -math.inf)


def reference_with(change: Change, sizes: bool = False) -> Callable[..., tuple[Tensor, Tensor]]:
    def reference(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        extra: Tensor,
        is_causal: bool = False,
        scale: float | None = None,
        softcap: float = 0.0,
        window: int = 0,
    ) -> tuple[Tensor, Tensor]:
        group = query.shape[1] // key.shape[1]
        k, v = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
        factor = query.shape[3] ** -0.5 if scale is None else scale
        s = query @ k.mT * factor
        s = softcap * torch.tanh(s / softcap) if softcap else s
        ahead = torch.arange(k.shape[2]) - torch.arange(query.shape[2])[:, None]
        s = change(s, ahead, extra)
        hidden = (ahead > 0) if is_causal else torch.zeros_like(ahead, dtype=torch.bool)
        s = s.masked_fill(hidden | (ahead.abs() >= window) if window else hidden, -math.inf)
        lse = torch.logsumexp(s, -1)
        p = torch.exp(s - lse.masked_fill(lse == -math.inf, 0.0).unsqueeze(-1))
        if not sizes:
            return p @ v, lse
        # Exponentials have errors as large as the largest of their terms.
        largest = 1 + (query.abs() @ k.abs().mT * factor).amax(-1) + (s.masked_fill(s == -math.inf, 0.0)).abs().amax(-1)
        return p @ v.abs() * largest.unsqueeze(-1), largest

    return reference


def samples_with(make_extra: Callable[[int, int, int, torch.Generator], Tensor]) -> Callable[..., Iterator[Sample]]:
    def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        def call(
            batch: int, heads: int, kv_heads: int, queries: int, keys: int, size: int, label: str, **options: Any
        ) -> Sample:
            shapes = ((batch, heads, queries, size), (batch, kv_heads, keys, size), (batch, kv_heads, keys, size))
            tensors = [normal(shape, dtype, generator) for shape in shapes]
            return Sample((*tensors, make_extra(batch, heads, max(queries, keys), generator)), options, label)

        yield call(1, 1, 1, 1, 1, 1, "one of all")
        yield call(2, 2, 2, 7, 9, 16, "few")
        yield call(1, 4, 2, 131, 259, 33, "groups, causal", is_causal=True)
        yield call(2, 2, 1, 260, 131, 128, "more queries than keys", scale=0.05)
        yield call(1, 2, 1, 300, 290, 20, "window", window=70)
        yield call(1, 2, 2, 150, 300, 64, "causal window, softcap", window=33, is_causal=True, softcap=2.0)
        yield call(3, 2, 1, 400, 520, 24, "several tiles")
        yield call(3, 1, 1, 300, 40, 16, "few keys, causal", is_causal=True)
        yield call(0, 2, 2, 5, 6, 8, "no batch")

    return samples


def slopes(batch: int, heads: int, length: int, generator: torch.Generator) -> Tensor:
    return 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)


def bias(batch: int, heads: int, length: int, generator: torch.Generator) -> Tensor:
    return torch.randn(heads, 65, generator=generator)


def numbers(batch: int, heads: int, length: int, generator: torch.Generator) -> Tensor:
    """Returns document numbers in three kinds of rows: documents in sequence, in any order with negative numbers, and
    documents of one position."""
    rows = torch.randint(-2, 4, (batch, length), generator=generator, dtype=torch.int32)
    rows[::3] = rows[::3].sort(-1).values
    rows[2::3] = torch.randperm(length, generator=generator, dtype=torch.int32)
    return rows


SPECS = [
    OpSpec(
        f"kpkg::attention_{name}",
        reference_with(change),
        samples_with(extra),
        (torch.float32, *HALF),
        reference_with(change, True),
        rounds_between=True,
    )
    for name, change, extra in (
        ("alibi", alibi, slopes),
        ("relative", relative, bias),
        ("documents", documents, numbers),
    )
]
