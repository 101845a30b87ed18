"""Specs of attention over caches.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, normal
from torch import Tensor


def in_order(cache: Tensor, block_table: Tensor | None) -> Tensor:
    """Returns the cache as `[batch, key-value heads, keys, head size]`."""
    if block_table is None:
        return cache
    return cache[block_table.long()].transpose(1, 2).flatten(2, 3)


def decode(
    query: Tensor, key_cache: Tensor, value_cache: Tensor, lengths: Tensor | None = None,
    block_table: Tensor | None = None,
    scale: float | None = None, softcap: float = 0.0, window: int = 0, key_scale: Tensor | None = None,
    value_scale: Tensor | None = None, sinks: Tensor | None = None, sizes: bool = False
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Computes the definition, one sequence at a time.

    With `sizes`, returns the result for absolute values, and the magnitude of the exponents.
    """
    keys, values = in_order(key_cache, block_table), in_order(value_cache, block_table)
    keys = keys if key_scale is None else keys * key_scale
    values = values if value_scale is None else values * value_scale
    group, tokens = query.shape[1] // max(keys.shape[1], 1), query.shape[2]
    out, lse = query.new_zeros(*query.shape[:3], values.shape[3]), query.new_full(query.shape[:3], -math.inf)
    largest = torch.ones_like(lse)
    for b in range(query.shape[0]):
        length = keys.shape[2] if lengths is None else min(max(int(lengths[b]), 0), keys.shape[2])
        k, v = (t[b, :, :length].repeat_interleave(group, 0) for t in (keys, values))
        factor = query.shape[3] ** -0.5 if scale is None else scale
        s = query[b] @ k.mT * factor
        s = softcap * torch.tanh(s / softcap) if softcap else s
        ahead = torch.arange(length) - (length - tokens + torch.arange(tokens)[:, None])
        s = s.masked_fill((ahead > 0) | (ahead <= -window if window else False), -math.inf)
        if length:
            lse[b] = torch.logsumexp(s, -1)
        if sinks is not None:
            lse[b] = torch.logaddexp(lse[b], sinks[:, None])
        if length:
            p = torch.exp(s - lse[b].masked_fill(lse[b] == -math.inf, 0.0).unsqueeze(-1))
            out[b] = p @ (v.abs() if sizes else v)
            largest[b] += (query[b].abs() @ k.abs().mT * factor).amax(-1)
    return (out * largest.unsqueeze(-1), largest) if sizes else (out, lse)


def magnitude(*args: Tensor, **options: float) -> tuple[Tensor, Tensor]:
    return decode(*args, **options, sizes=True)


def latent(
    query: Tensor, cache: Tensor, lengths: Tensor | None = None, block_table: Tensor | None = None,
    scale: float | None = None, softcap: float = 0.0, window: int = 0, value_size: int = 512, sizes: bool = False
) -> tuple[Tensor, Tensor]:  # fmt: skip
    values = cache[..., :value_size]
    return decode(query, cache, values, lengths, block_table, scale, softcap, window, sizes=sizes)


def latent_magnitude(*args: Tensor, **options: float) -> tuple[Tensor, Tensor]:
    return latent(*args, **options, sizes=True)


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    def call(
        batch: int, heads: int, kv_heads: int, tokens: int, keys: int, size: int, v_size: int = 0
    ) -> tuple[Tensor, ...]:
        return (
            make(batch, heads, tokens, size),
            make(batch, kv_heads, keys, size),
            make(batch, kv_heads, keys, v_size or size),
        )

    def lengths(*values: int) -> Tensor:
        return torch.tensor(values, dtype=torch.int32)

    def unknown_beyond(args: tuple[Tensor, ...], ends: Tensor) -> tuple[Tensor, ...]:
        """Fills cache elements beyond the ends, which stand for memory that nobody has written."""
        for b, end in enumerate(ends.tolist()):
            args[1][b, :, end:], args[2][b, :, end:] = math.nan, math.inf
        return (*args, ends)

    def paged(heads: int, kv_heads: int, tokens: int, page: int, size: int, *ends: int) -> tuple[Tensor, ...]:
        blocks = max(-(-end // page) for end in ends) + 1
        table = torch.randperm(len(ends) * blocks, generator=generator).reshape(len(ends), blocks).int()
        query, k, v = call(len(ends) * blocks + 2, heads, kv_heads, tokens, page, size)
        return query[: len(ends)], k, v, lengths(*ends), table

    yield Sample(call(1, 1, 1, 1, 1, 1), label="one of all")
    yield Sample((*call(2, 4, 2, 1, 30, 8), lengths(30, 4)), label="few")
    yield Sample((*call(2, 2, 1, 3, 20, 8), lengths(11, 20)), {"softcap": 2.0}, label="few, softcap")
    yield Sample(call(2, 4, 2, 1, 300, 64), label="whole caches")
    yield Sample(unknown_beyond(call(4, 6, 2, 1, 530, 40), lengths(0, 1, 257, 530)), label="lengths of 0 and 1")
    yield Sample(
        unknown_beyond(call(3, 8, 1, 3, 700, 16, 24), lengths(2, 513, 64)), {"scale": 0.2}, label="three tokens"
    )
    yield Sample(unknown_beyond(call(2, 2, 2, 5, 400, 33), lengths(399, 7)), {"window": 6}, label="window")
    yield Sample(unknown_beyond(call(2, 10, 2, 37, 500, 128), lengths(499, 20)), label="rows of two warpgroups")
    yield Sample(paged(4, 1, 50, 64, 64, 300, 70), {"window": 60}, label="rows of two warpgroups, pages of 64, window")
    yield Sample(
        unknown_beyond(call(2, 4, 1, 1, 90, 256, 200), lengths(90, 33)), {"softcap": 3.0}, label="large heads, softcap"
    )
    yield Sample(
        unknown_beyond(call(3, 8, 2, 2, 300, 64), lengths(300, 0, 65)), {"sinks": make(8)}, label="sinks, lengths"
    )
    yield Sample(paged(4, 1, 1, 64, 40, 200, 70), {"window": 50, "sinks": make(4)}, label="sinks, pages, window")
    yield Sample(call(0, 2, 2, 1, 7, 8), label="no batch")
    yield Sample(call(2, 2, 2, 0, 7, 8), label="no tokens")
    yield Sample(call(2, 2, 2, 2, 0, 8), label="no keys")
    yield Sample(paged(8, 2, 1, 16, 64, 1, 16, 17, 250), label="pages of 16")
    yield Sample(paged(8, 2, 3, 64, 128, 200, 0, 64, 131), label="pages of 64, three tokens")
    yield Sample(unknown_beyond(call(3, 10, 2, 1, 777, 120), lengths(777, 0, 65)), label="heads of 120")
    yield Sample(paged(4, 4, 2, 48, 32, 500, 49, 0), {"window": 100}, label="pages of 48, window")
    yield Sample(paged(4, 1, 1, 256, 24, 700, 256), {"softcap": 5.0}, label="pages of 256")
    latent = make(2, 1, 150, 576)
    yield Sample(
        (make(2, 16, 1, 576), latent, latent[..., :512], lengths(150, 33)), {"scale": 0.1}, label="latent attention"
    )
    rows = make(2, 1, 6, 24).transpose(1, 2)
    caches = (make(2, 333, 3, 24).transpose(1, 2), make(2, 333, 3, 24).transpose(1, 2))
    yield Sample((rows, *caches, lengths(333, 41)), label="heads behind positions")
    yield Sample(
        (
            make(2, 3, 24, 4).mT,
            make(1, 3, 700, 24).expand(2, 3, 700, 24),
            make(2, 3, 700, 48)[..., ::2],
            lengths(1000, -3),
        ),
        label="any strides, wrong lengths",
    )
    yield from narrow_samples(dtype, call, paged, lengths)


def narrow_samples(dtype: torch.dtype, call: Any, paged: Any, lengths: Any) -> Iterator[Sample]:
    """Yields samples with caches of 8 bits, made by the functions of `samples`."""
    if dtype is not torch.bfloat16:
        return  # NumPy has no 8-bit floats

    def narrow(args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return args[0], *((t / s).to(torch.float8_e4m3fn) for t, s in zip(args[1:3], (0.01, 0.5))), *args[3:]

    scales = {"key_scale": torch.tensor(0.01), "value_scale": torch.tensor([0.5])}
    yield Sample((*narrow(call(2, 4, 2, 1, 30, 8)), lengths(30, 4)), scales, label="8 bits, few")
    yield Sample(narrow(call(2, 8, 2, 3, 530, 128)), scales, label="8 bits, whole caches")
    yield Sample(narrow(paged(8, 2, 1, 16, 64, 1, 16, 17, 250)), scales, label="8 bits, pages of 16")
    yield Sample(
        narrow(paged(4, 1, 2, 64, 120, 700, 0, 256)), {**scales, "softcap": 5.0, "window": 70}, label="8 bits, softcap"
    )
    args = narrow(call(3, 10, 2, 1, 333, 200, 256))
    yield Sample((args[0] / 10, *args[1:], lengths(333, 7, 65)), label="8 bits without scales, large heads")


def latent_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    def ends(*values: int) -> Tensor:
        return torch.tensor(values, dtype=torch.int32)

    unwritten = make(3, 1, 300, 576)
    unwritten[0, :, 150:], unwritten[1], unwritten[2, :, 1:] = math.nan, math.inf, math.nan
    yield Sample(
        (make(3, 16, 1, 576), unwritten, ends(150, 0, 1)), {"scale": 0.1}, label="memory that nobody has written"
    )
    yield Sample(
        (make(2, 70, 2, 576), make(2, 1, 200, 576), ends(200, 65)), {"softcap": 4.0}, label="two tokens, softcap"
    )
    yield Sample((make(2, 4, 3, 576), make(2, 2, 400, 576), ends(399, 7)), {"window": 6}, label="window")
    yield Sample(
        (make(2, 8, 1, 576), make(8, 1, 64, 576), ends(250, 64), ends(3, 0, 7, 2, 1, 4, 5, 6).reshape(2, 4)),
        label="pages of 64",
    )
    yield Sample(
        (make(2, 8, 1, 576), make(8, 1, 48, 576), ends(100, 3), ends(3, 0, 7, 2, 1, 4, 5, 6).reshape(2, 4)),
        label="pages of 48",
    )
    yield Sample((make(1, 3, 1, 40), make(1, 1, 90, 40)), {"value_size": 24}, label="small heads")
    yield Sample((make(1, 3, 1, 41), make(1, 1, 90, 41)), {"value_size": 30}, label="odd heads")
    yield Sample((make(1, 2, 1, 576), make(1, 1, 20, 576)), {"value_size": 576}, label="all elements are values")
    yield Sample((make(0, 2, 1, 576), make(0, 1, 20, 576)), label="no batch")
    yield Sample((make(1, 2, 1, 576), make(1, 1, 0, 576)), label="no keys")


def benchmarks(generator: torch.Generator) -> dict[str, Sample]:
    found = {}
    for dtype, name in ((torch.float32, ""), (torch.bfloat16, " bfloat16")):
        q, k, v = (
            normal((4, 32, 1, 128), dtype, generator),
            normal((4, 8, 2048, 128), dtype, generator),
            normal((4, 8, 2048, 128), dtype, generator),
        )
        found[f"4 sequences of 2048{name}"] = Sample((q, k, v))
    return found


def eager(query: Tensor, key_cache: Tensor, value_cache: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query, key_cache, value_cache, enable_gqa=True)


SPECS = [
    OpSpec(
        "kpkg::attention_decode",
        decode,
        samples,
        magnitude=magnitude,
        rounds_between=True,
        benchmarks=benchmarks,
        eager=eager,
    ),
    OpSpec("kpkg::attention_latent", latent, latent_samples, magnitude=latent_magnitude, rounds_between=True),
]
