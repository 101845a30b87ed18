"""Spec of attention_varlen.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import accumulate

import torch
from opspec import OpSpec, Sample, normal
from torch import Tensor


def varlen(
    query: Tensor, key: Tensor, value: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, is_causal: bool = False,
    scale: float | None = None, softcap: float = 0.0, window: int = 0, sizes: bool = False
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Computes the definition, one sequence at a time.

    With `sizes`, returns the result for absolute values, and the magnitude of the exponents.
    """
    group = query.shape[1] // max(key.shape[1], 1)
    out, lse = (
        query.new_zeros(*query.shape[:2], value.shape[2]),
        query.new_full((query.shape[1], query.shape[0]), -math.inf),
    )
    largest = torch.ones_like(lse)
    factor = query.shape[2] ** -0.5 if scale is None else scale
    ends, key_ends = cu_seqlens_q.tolist(), cu_seqlens_k.tolist()
    for rows, keys in zip(map(slice, ends, ends[1:]), map(slice, key_ends, key_ends[1:])):
        q, k, v = (t.transpose(0, 1) for t in (query[rows], key[keys], value[keys]))
        k, v = k.repeat_interleave(group, 0), v.repeat_interleave(group, 0)
        if q.shape[1] == 0 or k.shape[1] == 0:
            continue
        s = q @ k.mT * factor
        s = softcap * torch.tanh(s / softcap) if softcap else s
        ahead = torch.arange(k.shape[1]) - (k.shape[1] - q.shape[1] + torch.arange(q.shape[1])[:, None])
        hidden = (ahead > 0) if is_causal else torch.zeros_like(ahead, dtype=torch.bool)
        s = s.masked_fill(hidden | (ahead.abs() >= window) if window else hidden, -math.inf)
        lse[:, rows] = torch.logsumexp(s, -1)
        p = torch.exp(s - lse[:, rows].masked_fill(lse[:, rows] == -math.inf, 0.0).unsqueeze(-1))
        out[rows] = (p @ (v.abs() if sizes else v)).transpose(0, 1)
        largest[:, rows] += (q.abs() @ k.abs().mT * factor).amax(-1)
    return (out * largest.T.unsqueeze(-1), largest) if sizes else (out, lse)


def magnitude(*args: Tensor, **options: float) -> tuple[Tensor, Tensor]:
    return varlen(*args, **options, sizes=True)


def ends_of(*lengths: int) -> Tensor:
    return torch.tensor([0, *accumulate(lengths)], dtype=torch.int32)


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def call(
        heads: int, kv_heads: int, size: int, queries: tuple[int, ...], keys: tuple[int, ...] = (), v_size: int = 0
    ) -> tuple[Tensor, ...]:
        rows, others = sum(queries), sum(keys or queries)
        tensors = ((rows, heads, size), (others, kv_heads, size), (others, kv_heads, v_size or size))
        return (*(normal(shape, dtype, generator) for shape in tensors), ends_of(*queries), ends_of(*(keys or queries)))

    yield Sample(call(1, 1, 1, (1,)), label="one of all")
    yield Sample(call(2, 2, 8, (5, 0, 30)), {"is_causal": True}, label="few")
    yield Sample(call(4, 2, 16, (7, 20), (9, 3)), label="few, more keys")
    yield Sample(call(2, 2, 64, (128, 256, 7)), label="whole tiles")
    yield Sample(call(4, 2, 40, (0, 1, 130, 0, 65, 0)), {"is_causal": True}, label="lengths of 0 and 1, causal")
    yield Sample(
        call(2, 1, 32, (3, 150, 1, 20), (200, 10, 0, 300)), {"is_causal": True}, label="more keys, fewer keys, none"
    )
    yield Sample(call(2, 2, 24, (100, 33), (290, 5), 16), {"window": 40}, label="window")
    yield Sample(
        call(1, 1, 256, (60, 90)), {"softcap": 3.0, "is_causal": True, "scale": 0.2}, label="large heads, softcap"
    )
    yield Sample(call(2, 2, 8, tuple([2, 0, 5] * 60)), {"is_causal": True}, label="many sequences")
    yield Sample(call(2, 2, 8, ()), label="no sequences")
    packed = normal((97, 3, 4, 16), dtype, generator)
    yield Sample(
        (packed[:, 0], packed[:, 1], packed[:, 2], ends_of(50, 47), ends_of(50, 47)),
        {"is_causal": True},
        label="interleaved",
    )
    poisoned = call(2, 2, 16, (70, 75))
    poisoned[2][70:] = math.nan
    yield Sample(poisoned, label="NaN in another sequence")


SPECS = [OpSpec("kpkg::attention_varlen", varlen, samples, magnitude=magnitude, rounds_between=True)]
