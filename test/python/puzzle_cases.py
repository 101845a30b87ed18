"""Calls of the ops of examples/puzzles, each with its result by PyTorch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Case = Callable[[], tuple[tuple[Any, ...], Any]]
CASES: dict[str, list[Case]] = {}


def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Returns normal numbers that every other element of memory holds."""
    return torch.randn(*shape[:-1], 2 * shape[-1])[..., ::2].to(dtype)


def case(name: str, *sizes: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function of a size that returns arguments and the expected result."""

    def register(make: Callable[..., Any]) -> Callable[..., Any]:
        CASES[name] = [lambda size=size: make(size) for size in sizes]
        return make

    return register


LENGTHS = (1, 127, 128, 1000)


@case("p01_map", *LENGTHS)
def ten_more(n):
    a = drawn(n)
    return (a,), a + 10


@case("p03_guard", *LENGTHS)
def ten_more_guarded(n):
    return ten_more(n)


@case("p08_shared", *LENGTHS)
def ten_more_shared(n):
    return ten_more(n)


@case("p02_zip", *LENGTHS)
def zipped(n):
    a, b = drawn(n), drawn(n)
    return (a, b), a + b


@case("p23_elementwise", 1, 511, 512, 3000)
def elementwise(n):
    return zipped(n)


@case("p04_map_2d", (1, 1), (16, 16), (37, 50))
def ten_more_2d(shape):
    a = drawn(*shape)
    return (a,), a + 10


@case("p05_broadcast", (1, 1), (16, 17), (37, 50))
def outer(shape):
    a, b = drawn(shape[0]), drawn(shape[1])
    return (a, b), a[None, :] + b[:, None]


@case("p11_pooling", *LENGTHS)
def pooled(n):
    a = drawn(n)
    padded = F.pad(a.double(), (2, 0))
    return (a,), padded[:-2] + padded[1:-1] + padded[2:]


@case("p12_dot", *LENGTHS)
def dotted(n):
    a, b = drawn(n), drawn(n)
    return (a, b), (a.double() @ b.double())[None]


@case("p24_warp_sum", *LENGTHS)
def dotted_by_warp(n):
    return dotted(n)


@case("p13_convolution", (5, 3), (128, 16), (1000, 7))
def convolved(sizes):
    n, taps = sizes
    a, w = drawn(n), drawn(taps)
    padded = F.pad(a.double(), (0, taps - 1))
    return (a, w), F.conv1d(padded[None, None], w.double()[None, None])[0, 0]


@case("p14_prefix_sum", *LENGTHS)
def summed(n):
    a = drawn(n)
    return (a,), a.double().cumsum(0)


@case("p15_axis_sum", (1, 1), (5, 128), (7, 301))
def rows_summed(shape):
    a = drawn(*shape)
    return (a,), a.double().sum(1, keepdim=True)


@case("p34_cluster_sum", (1, 1), (3, 512), (5, 5001))
def rows_summed_by_clusters(shape):
    a = drawn(*shape)
    return (a,), a.double().sum(1)


@case("p16_matmul_naive", (1, 1, 1), (16, 16, 16), (33, 50, 17))
def multiplied(shape):
    m, k, n = shape
    a, b = drawn(m, k), drawn(k, n)
    return (a, b), a.double() @ b.double()


@case("p16_matmul_tiled", (1, 1, 1), (16, 16, 16), (33, 50, 17))
def multiplied_by_tiles(shape):
    return multiplied(shape)


@case("p18_softmax", (1, 1), (3, 128), (5, 333))
def softmax(shape):
    a = drawn(*shape)
    return (a,), a.double().softmax(1)


@case("p19_attention", (1, 16), (100, 64), (1024, 40))
def attention(shape):
    keys, width = shape
    q, k, v = drawn(width) / 8, drawn(keys, width), drawn(keys, width)
    return (q, k, v), (k.double() @ q.double()).softmax(0) @ v.double()


@case("p21_embedding", (10, 7), (100, 300))
def embedded(shape):
    table, ids = drawn(*shape), torch.randint(0, shape[0], (33,), dtype=torch.int32)
    return (table, ids), table[ids.long()]


@case("p22_norm_linear", (1, 8, 3), (5, 130, 200))
def norm_linear(shape):
    rows, n, columns = shape
    x, gain, shift, w, bias = drawn(rows, n), drawn(n), drawn(n), drawn(columns, n), drawn(columns)
    normed = F.layer_norm(x.double(), (n,), gain.double(), shift.double(), 1e-5)
    return (x, gain, shift, w, bias), F.linear(normed, w.double(), bias.double())


@case("p25_warp_neighbours", 128, 1024)
def neighbours(n):
    a = drawn(n)
    warps = a.double().view(-1, 32)
    found = F.pad(warps[:, 1:] - warps[:, :-1], (0, 1)) + warps[:, :1]
    return (a,), found.reshape(-1)


@case("p26_butterfly", 32, 100, 1024)
def butterfly(n):
    a = drawn(n)
    return (a,), torch.cat([part.max().expand(len(part)) for part in a.split(32)])


@case("p26_partition", 1, 31, 1000)
def partitioned(n):
    a = drawn(n)
    low = a < 0.25
    return (a, 0.25), torch.cat([a[low], a[~low]])


@case("p27_extract_bin", 1, 100, 128)
def extracted(n):
    a = torch.rand(n)
    hit = (a * 5).floor() == 2
    expected = torch.zeros(n)
    expected[: int(hit.sum())] = a[hit]
    return (a, 2, 5), (expected, hit.sum(dtype=torch.int32)[None])


@case("p27_normalise", 1, 100, 128)
def normalised(n):
    a = torch.rand(n) + 0.5
    return (a,), a.double() / a.double().mean()


@case("p27_histogram", 1, 1000, 20000)
def binned(n):
    a = torch.randint(-2, 202, (n,), dtype=torch.int32)
    inside = a[(a >= 0) & (a < 200)]
    return (a, 200), torch.bincount(inside, minlength=200).int()


@case("p28_async_stencil", 1, 128, 5000)
def stencil(n):
    a = torch.randn(n)
    padded = F.pad(a.double(), (4, 4))
    return (a,), padded.unfold(0, 9, 1).mean(1)


@case("p29_double_buffer", (128, 0), (128, 1), (640, 7))
def smoothed(sizes):
    n, steps = sizes
    a = torch.randn(n)
    blocks = a.double().view(-1, 128)
    for _ in range(steps):
        blocks = F.pad(blocks[:, None], (1, 1), mode="replicate")[:, 0].unfold(1, 3, 1).mean(2)
    return (a, steps), blocks.reshape(-1)


@case(
    "p33_mma",
    *[(dtype, *shape) for dtype in ("float16", "bfloat16", "float32") for shape in ((16, 16, 8), (21, 40, 13))],
)
def multiplied_by_warps(sizes):
    dtype, m, k, n = sizes
    # Numbers that tf32 holds, so that rounding is no part of the result.
    a, b = (drawn(*shape, dtype=torch.float16).to(getattr(torch, dtype)) for shape in ((m, k), (k, n)))
    return (a, b), a.double() @ b.double()


def check(ops: Any, name: str, device: str) -> None:
    """Calls an op with each of its cases, and compares the results."""
    torch.manual_seed(sum(map(ord, name)))
    for make in CASES[name]:
        arguments, expected = make()
        found = getattr(ops, name)(*(a.to(device) if isinstance(a, Tensor) else a for a in arguments))
        pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
        for one, wanted in pairs:
            torch.testing.assert_close(one.cpu(), wanted.to(one.dtype), rtol=2e-5, atol=2e-4)
