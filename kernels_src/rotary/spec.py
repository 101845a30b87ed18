"""Specs of rotary position embedding and its gradient.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from opspec import OpSpec, Sample, normal
from torch import Tensor


def factors(table: Tensor, query: Tensor, positions: Tensor | None, sections: list[int]) -> Tensor:
    """Returns the elements of a table for each pair of each token: `[..., tokens, 1, pairs]`."""
    if positions is None:
        rows = table[: query.shape[-3]].expand(*query.shape[:-2], -1)
    elif sections:
        rows = torch.cat([table[p][..., c] for p, c in zip(positions, columns(table, sections))], -1)
    else:
        rows = table[positions]
    return rows.unsqueeze(-2)


def columns(table: Tensor, sections: list[int]) -> tuple[Tensor, ...]:
    return torch.arange(table.shape[1], device=table.device).split(list(sections))


def rotate(x: Tensor, c: Tensor, s: Tensor, interleaved: bool) -> Tensor:
    pairs = c.shape[-1]
    turned, rest = x[..., : 2 * pairs], x[..., 2 * pairs :]
    a, b = (turned[..., ::2], turned[..., 1::2]) if interleaved else (turned[..., :pairs], turned[..., pairs:])
    found = [a * c - b * s, b * c + a * s]
    joined = torch.stack(found, -1).flatten(-2) if interleaved else torch.cat(found, -1)
    return torch.cat([joined, rest], -1)


def rotary_embedding(
    query: Tensor,
    key: Tensor,
    cos: Tensor,
    sin: Tensor,
    positions: Tensor | None = None,
    interleaved: bool = False,
    sections: list[int] = [],
) -> tuple[Tensor, Tensor]:
    c, s = (factors(table, query, positions, sections) for table in (cos, sin))
    return rotate(query, c, s, interleaved), rotate(key, c, s, interleaved)


def rotary_embedding_backward(
    grad_query: Tensor,
    grad_key: Tensor,
    cos: Tensor,
    sin: Tensor,
    positions: Tensor | None = None,
    interleaved: bool = False,
    sections: list[int] = [],
) -> tuple[Tensor, Tensor]:
    return rotary_embedding(grad_query, grad_key, cos, -sin, positions, interleaved, sections)


def magnitude(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    """Returns magnitudes: both products of a pair are at most as large as the larger element."""
    size = [x.abs().amax(-1, keepdim=True).expand_as(x) if x.shape[-1] else x for x in (query, key)]
    return size[0] * 2, size[1] * 2


#: Leading shape, query heads, key-value heads, elements of a head, pairs.
SIZES: list[tuple[tuple[int, ...], int, int, int, int]] = [
    ((1,), 1, 1, 2, 1),
    ((0,), 2, 1, 64, 32),
    ((5,), 0, 3, 64, 32),
    ((3,), 2, 1, 7, 0),
    ((9,), 8, 2, 64, 32),
    ((17,), 9, 1, 80, 40),
    ((2, 5), 3, 3, 96, 16),
    ((2, 33), 4, 2, 128, 64),
    ((5, 1), 8, 8, 128, 64),
    ((3,), 2, 1, 256, 128),
    ((7,), 3, 2, 33, 10),
]
ROWS = 61


def tables(pairs: int, dtype: torch.dtype, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    angle = torch.rand((ROWS, pairs), generator=generator, dtype=torch.float64, device=generator.device) * 6.3
    return angle.cos().to(dtype), angle.sin().to(dtype)


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    def positions(*shape: int) -> Tensor:
        return torch.randint(0, ROWS, shape, generator=generator, device=generator.device)

    narrow = dtype in (torch.float16, torch.bfloat16)
    for index, (lead, heads, key_heads, dim, pairs) in enumerate(SIZES):
        q, k = make(*lead, heads, dim), make(*lead, key_heads, dim)
        table = tables(pairs, torch.float32 if narrow and index % 2 else dtype, generator)
        label = f"{lead} {heads} and {key_heads} heads of {dim}, {pairs} pairs"
        for interleaved in (False, True):
            yield Sample((q, k, *table, positions(*lead), interleaved), label=f"{label} {interleaved}")
        yield Sample((q, k, *table), label=f"{label}, tokens in order")
        sections = [pairs // 4, pairs - pairs // 4 - pairs // 3, pairs // 3]
        yield Sample((q, k, *table, positions(3, *lead), False, sections), label=f"{label} {sections}")
    q, k = make(2, 4, 19, 64).transpose(1, 2), make(2, 2, 19, 64).transpose(1, 2)
    table = tables(32, dtype, generator)
    yield Sample((q, k, *table, positions(2, 19).to(torch.int32)), label="heads before tokens, int32")
    packed = make(11, 6 * 64).view(11, 6, 64)
    yield Sample((packed[:, :4], packed[:, 4:], *table, positions(11), True), label="parts of one projection")
    q, k = make(6, 4, 128)[..., ::2], make(6, 2, 128)[..., 1::2]
    for interleaved in (False, True):
        yield Sample((q, k, *table, positions(12)[::2], interleaved), label=f"every other element {interleaved}")
    wide = tables(64, dtype, generator)
    yield Sample(
        (make(9, 4, 64), make(9, 1, 64), wide[0][:, ::2], wide[1][:, ::2], positions(9)), label="strided tables"
    )


def rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    """Returns a sample in which a row has heads of 128 elements, four of five of them queries."""
    heads = max(n // 128, 2)
    keys = max(heads // 5, 1)
    angle = torch.rand((m, 64), generator=generator, device=generator.device) * 6.3
    return Sample(
        (
            normal((m, heads - keys, 128), dtype, generator),
            normal((m, keys, 128), dtype, generator),
            angle.cos(),
            angle.sin(),
            torch.arange(m, device=generator.device),
        )
        if dtype != torch.float64
        else (
            normal((m, heads - keys, 128), dtype, generator),
            normal((m, keys, 128), dtype, generator),
            angle.double().cos(),
            angle.double().sin(),
        )
    )


def benchmarks(generator: torch.Generator) -> dict[str, Sample]:
    return {f"{m}x40x128": rows(m, 40 * 128, torch.float32, generator) for m in (4096, 16)}


SPECS = [
    OpSpec(
        "kpkg::rotary_embedding",
        rotary_embedding,
        samples,
        magnitude=magnitude,
        benchmarks=benchmarks,
        eager=rotary_embedding,
        rows=rows,
    ),
    OpSpec(
        "kpkg::rotary_embedding_backward",
        rotary_embedding_backward,
        samples,
        magnitude=magnitude,
        benchmarks=benchmarks,
        eager=rotary_embedding_backward,
        rows=rows,
    ),
]
