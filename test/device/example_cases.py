"""The calls that examples.py times, by file of examples/: kpkg's and its peers'.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import example_peers as peers
import torch
import torch.nn.functional as F
from torch import Tensor

BF16 = torch.bfloat16
Call = Callable[[], Any]


@dataclass
class Case:
    name: str
    calls: dict[str, Call]
    tolerance: float = 1e-2
    is_right: Callable[[], bool] | None = None


def randn(*shape: int, dtype: torch.dtype = BF16) -> Tensor:
    return torch.randn(*shape, device="cuda").to(dtype)


def integers(high: int, *shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.randint(high, shape, device="cuda", dtype=dtype)


def both(call: Call) -> dict[str, Call]:
    return {"eager": call, "compile": torch.compile(call, dynamic=False)}


def gradients(call: Call, inputs: tuple[Tensor, ...], grad: Tensor) -> Call:
    """The backward pass alone."""
    result = call()
    return lambda: torch.autograd.grad(result, inputs, grad, retain_graph=True)


def rope(ops: Any) -> Iterator[Case]:
    tokens, heads, kv_heads, d = 8192, 32, 8, 128
    qkv = randn(tokens, (heads + 2 * kv_heads) * d)
    positions = integers(4096, tokens, dtype=torch.int32)
    angles = torch.outer(torch.arange(4096.0), 1e4 ** (-torch.arange(d // 2) / (d // 2))).cuda()
    waves = angles.cos(), angles.sin()
    for pairs in (False, True):

        def ours(pairs: bool = pairs) -> Any:
            return ops.rope_split(qkv, positions, *waves, heads, kv_heads, interleaved=pairs)

        def peer(pairs: bool = pairs) -> Any:
            return peers.rope(qkv, positions, *waves, heads, kv_heads, pairs)

        yield Case(f"rope {'pairs' if pairs else 'halves'} 8192x32+8x128 bf16", {"kpkg": ours, **both(peer)})


def kvcache(ops: Any) -> Iterator[Case]:
    k, v = randn(16384, 8, 128), randn(16384, 8, 128)
    caches = [torch.zeros(8192, 16, 8, 128, device="cuda", dtype=BF16) for _ in range(2)]
    slots = torch.randperm(8192 * 16, device="cuda")[:16384]

    def peer() -> None:
        for cache, new in zip(caches, (k, v)):
            cache.view(-1, 8, 128)[slots] = new

    def is_right() -> bool:
        ops.kv_write(k, v, slots, *caches)
        return all(torch.equal(c.view(-1, 8, 128)[slots], new) for c, new in zip(caches, (k, v)))

    calls = {"kpkg": lambda: ops.kv_write(k, v, slots, *caches), **both(peer)}
    yield Case("kv write 16384 tokens bf16", calls, is_right=is_right)


def embed(ops: Any) -> Iterator[Case]:
    weight, indices = randn(50000, 1024), integers(50000, 32768)
    offsets = F.pad(integers(100, 4096).cumsum(0), (1, 0))
    members = integers(50000, int(offsets[-1]))

    def bags(table: Tensor) -> Tensor:
        return F.embedding_bag(members, table, offsets, mode="sum", include_last_offset=True)

    calls = {"kpkg": lambda: ops.embedding(weight, indices), **both(lambda: F.embedding(indices, weight))}
    yield Case("embedding 32768 of 50000x1024 bf16", calls, 0.0)
    calls = {"kpkg": lambda: ops.embedding_bag(weight, members, offsets), "eager": lambda: bags(weight)}
    yield Case("embedding bag 4096 x ~50 of 1024 bf16", calls)
    table = weight.float().requires_grad_()
    for name, ours, peer, rows in (
        ("embedding", lambda: ops.embedding(table, indices), lambda: F.embedding(indices, table), 32768),
        ("embedding bag", lambda: ops.embedding_bag(table, members, offsets), lambda: bags(table), 4096),
    ):
        grad = randn(rows, 1024, dtype=torch.float32)
        calls = {"kpkg": gradients(ours, (table,), grad), "eager": gradients(peer, (table,), grad)}
        yield Case(f"{name} gradient f32", calls, 1e-4)


def router(ops: Any) -> Iterator[Case]:
    scores = randn(16384, 256)

    def peer() -> tuple[Tensor, Tensor]:
        best, places = scores.topk(8)
        return best.float().softmax(-1), places.int()

    def is_right() -> bool:
        return torch.allclose(ops.route_topk(scores, 8)[0], peer()[0], atol=1e-5)

    calls = {"kpkg": lambda: ops.route_topk(scores, 8), **both(peer)}
    yield Case("router top 8 of 256, 16384 tokens bf16", calls, is_right=is_right)
    experts = ops.route_topk(scores, 8)[1]
    calls = {"kpkg": lambda: ops.permute_experts(experts), "eager": lambda: peers.permuted(experts)}
    yield Case("permutation 131072 by 256 experts", calls, 0.0)


def moe(ops: Any) -> Iterator[Case]:
    experts, n, m, k = 64, 2048, 1024, 8
    w13, w2 = randn(experts, 2 * m, n) * n**-0.5, randn(experts, n, m) * m**-0.5
    for tokens in (4096, 64):
        x = randn(tokens, n)
        weights, chosen = randn(tokens, experts).float().softmax(1).topk(k, 1)
        order, places, ends = peers.permuted(chosen.int())
        order, places, ends = order.int(), places.int(), ends[:experts].int()

        def up(x: Tensor = x, order: Tensor = order, ends: Tensor = ends) -> Tensor:
            parts = torch._grouped_mm(x[(order // k).long()], w13.transpose(1, 2), ends)
            return (F.silu(parts[:, :m].float()) * parts[:, m:].float()).to(BF16)

        def mlp(
            up: Call = up, places: Tensor = places, ends: Tensor = ends, weights: Tensor = weights, tokens: int = tokens
        ) -> Tensor:
            rows = torch._grouped_mm(up(), w2.transpose(1, 2), ends)
            return (rows[places.long()].view(tokens, k, n).float() * weights[..., None]).sum(1).to(BF16)

        calls = {"kpkg": lambda: ops.moe_gate_up(x, order, ends, w13, k), **both(up)}
        yield Case(f"moe gate and up {tokens} tokens, 8 of 64 x 2048 x 2048 bf16", calls, 2e-2)
        calls = {"kpkg": lambda: ops.moe_mlp(x, order, places, ends, weights, w13, w2), **both(mlp)}
        yield Case(f"moe mlp {tokens} tokens bf16", calls, 3e-2)


def sort(ops: Any) -> Iterator[Case]:
    for rows, n in ((65536, 256), (16384, 1024), (4096, 4096)):
        for dtype in (torch.float32, BF16):
            x = randn(rows, n, dtype=dtype)
            calls = {
                "kpkg": lambda x=x: ops.sort_rows(x),
                "eager": lambda x=x: torch.sort(x, dim=1, stable=True),
            }
            yield Case(f"sort of rows with places {rows}x{n} {str(dtype)[6:]}", calls, 0.0)


def hist(ops: Any) -> Iterator[Case]:
    count = 1 << 26
    for name, x, bins in (
        ("bincount 64M int64 1000 bins", integers(1000, count), 1000),
        ("histogram 64M uint8 256 bins", integers(256, count, dtype=torch.uint8), 256),
        ("bincount 64M int64 all equal", torch.full((count,), 3, device="cuda"), 1000),
    ):
        calls = {
            "kpkg": lambda x=x, bins=bins: ops.bincount(x, bins),
            "eager": lambda x=x, bins=bins: torch.bincount(x, minlength=bins),
            "triton": lambda x=x, bins=bins: peers.triton_histogram(x, bins),
        }
        yield Case(name, calls, 0.0)


def ssd(ops: Any) -> Iterator[Case]:
    batch, length, heads, p, n = 8, 4096, 32, 64, 128
    x, b, c = randn(batch, length, heads, p), randn(batch, length, 1, n) * n**-0.5, randn(batch, length, 1, n)
    dt = torch.rand(batch, length, heads, device="cuda") * 0.1 + 0.001
    a, d = -torch.rand(heads, device="cuda") * 2 - 0.5, torch.randn(heads, device="cuda")
    calls = {"kpkg": lambda: ops.mamba2(x, dt, a, b, c, d), **both(lambda: peers.mamba2(x, dt, a, b, c, d))}
    yield Case("mamba2 8x4096x32x64, 128 bf16", calls, 3e-2)
    q, k, v = randn(8, 16, length, 64), randn(8, 16, length, 64) * 0.125, randn(8, 16, length, 64)
    gate = F.logsigmoid(randn(8, 16, length, 64, dtype=torch.float32) + 2) / 4
    calls = {"kpkg": lambda: ops.gla(q, k, v, gate), "eager": lambda: peers.gated_attention(q, k, v, gate)}
    yield Case("gated linear attention 8x16x4096x64 bf16", calls, 3e-2)


def flce(ops: Any) -> Iterator[Case]:
    rows, n, vocabulary = 8192, 4096, 128256
    h, w = randn(rows, n).requires_grad_(), (randn(vocabulary, n) * n**-0.5).requires_grad_()
    target = integers(vocabulary, rows)

    def peer() -> Tensor:
        return F.cross_entropy(F.linear(h, w), target)

    def forward() -> Tensor:
        with torch.no_grad():
            return peer()

    calls = {"kpkg": lambda: ops.linear_cross_entropy(h.detach(), w.detach(), target)[0], **both(forward)}
    yield Case("linear cross entropy 8192x4096x128256 bf16", calls)
    calls = {
        "kpkg": lambda: torch.autograd.grad(ops.linear_cross_entropy(h, w, target)[0], (h, w)),
        "eager": lambda: torch.autograd.grad(peer(), (h, w)),
    }
    yield Case("linear cross entropy with gradients", calls, 5e-2)


def adamw(ops: Any) -> Iterator[Case]:
    p, g = randn(1 << 27, dtype=torch.float32), randn(1 << 27, dtype=torch.float32)
    m, v = torch.zeros_like(p), torch.zeros_like(p)
    copy = torch.nn.Parameter(p.clone())
    copy.grad = g
    fused = torch.optim.AdamW([copy], lr=1e-3, fused=True, capturable=True)

    def is_right() -> bool:
        mine, theirs = p.clone(), torch.nn.Parameter(p.clone())
        theirs.grad = g
        torch.optim.AdamW([theirs], lr=1e-3, fused=True).step()
        ops.adamw_(mine, g, torch.zeros_like(p), torch.zeros_like(p), 1)
        return torch.allclose(mine, theirs, atol=1e-6)

    calls = {"kpkg": lambda: ops.adamw_(p, g, m, v, 3), "eager": fused.step}
    yield Case("adamw 128M f32", calls, is_right=is_right)


def dropout(ops: Any) -> Iterator[Case]:
    x = randn(1 << 27)

    def is_right() -> bool:
        return abs((ops.dropout(x, 0.1, 123, 0) == 0).float().mean().item() - 0.1) < 1e-3

    calls = {"kpkg": lambda: ops.dropout(x, 0.1, 123, 0), **both(lambda: F.dropout(x, 0.1))}
    yield Case("dropout 128M bf16", calls, is_right=is_right)


def heat(ops: Any) -> Iterator[Case]:
    for rank, n in ((2, 16384), (3, 512)):
        x = randn(*[n] * rank, dtype=torch.float32)
        calls = {"kpkg": lambda x=x: ops.heat(x, 0.1), **both(lambda x=x: peers.heat(x, 0.1))}
        yield Case(f"heat {n}^{rank} f32", calls, 1e-5)


def fft(ops: Any) -> Iterator[Case]:
    x = randn(65536, 1024, 2, dtype=torch.float32)
    numbers = torch.view_as_complex(x)
    calls = {"kpkg": lambda: ops.fft1024(x), "cufft": lambda: torch.view_as_real(torch.fft.fft(numbers))}
    yield Case("fft 1024 x 65536", calls, 1e-5)


def topp(ops: Any) -> Iterator[Case]:
    for rows, vocabulary in ((64, 128256), (256, 32000)):
        x, u = randn(rows, vocabulary) * 3, torch.rand(rows, device="cuda")

        def is_right(x: Tensor = x, u: Tensor = u) -> bool:
            return peers.is_top_p_sample(ops.top_p(x, u, 0.9), x, u, 0.9)

        calls = {"kpkg": lambda x=x, u=u: ops.top_p(x, u, 0.9), "eager": lambda x=x: peers.top_p(x, 0.9)}
        yield Case(f"top-p {rows}x{vocabulary} bf16", calls, is_right=is_right)


def csr(ops: Any) -> Iterator[Case]:
    for name, rows, each in (("spmv", 1 << 20, 16), ("spmm", 1 << 17, 32)):
        columns = integers(rows, rows, each, dtype=torch.int32).sort(1)[0].flatten()
        values = randn(rows * each, dtype=torch.float32)
        begins = (torch.arange(rows + 1, device="cuda") * each).int()
        matrix = torch.sparse_csr_tensor(begins, columns, values, (rows, rows))
        x = randn(rows, dtype=torch.float32) if name == "spmv" else randn(rows, 128, dtype=torch.float32)
        op = getattr(ops, name)
        calls = {
            "kpkg": lambda op=op, v=values, c=columns, b=begins, x=x: op(v, c, b, x),
            "cusparse": lambda matrix=matrix, x=x: matrix @ x,
        }
        yield Case(f"{name} {rows} rows x {each} f32", calls, 1e-4)


def chol(ops: Any) -> Iterator[Case]:
    a = randn(1 << 18, 16, 24, dtype=torch.float32)
    a = a @ a.mT + torch.eye(16, device="cuda")
    b, factor = randn(1 << 18, 16, 16, dtype=torch.float32), torch.linalg.cholesky(a)
    calls = {"kpkg": lambda: ops.cholesky16(a), "eager": lambda: torch.linalg.cholesky_ex(a)[0]}
    yield Case("cholesky 262144 x 16x16", calls, 1e-4)
    calls = {
        "kpkg": lambda: ops.solve_lower16(factor, b),
        "eager": lambda: torch.linalg.solve_triangular(factor, b, upper=False),
    }
    yield Case("triangular solve 262144 x 16x16", calls, 1e-3)


def jagged(ops: Any) -> Iterator[Case]:
    offsets = F.pad(integers(4000, 20000).cumsum(0), (1, 0))
    x = randn(int(offsets[-1]))
    calls = {
        "kpkg": lambda: ops.jagged_softmax(x, offsets),
        "triton": lambda: peers.triton_jagged(x, offsets),
        "eager": lambda: peers.jagged_softmax(x, offsets),
    }
    yield Case(f"jagged softmax 20000 segments, {x.numel()} elements bf16", calls)


def quant(ops: Any) -> Iterator[Case]:
    x = randn(16384, 8192)

    def peer() -> tuple[Tensor, Tensor]:
        scale = x.float().abs().amax(1, keepdim=True).clamp(min=1e-10) / 127
        return torch.round(x.float() / scale).to(torch.int8), scale[:, 0]

    yield Case("int8 quantise 16384x8192 bf16", {"kpkg": lambda: ops.quantise(x), **both(peer)})
    q, scale = ops.quantise(x)
    calls = {"kpkg": lambda: ops.dequantise(q, scale, BF16), **both(lambda: (q.float() * scale[:, None]).to(BF16))}
    yield Case("dequantise 16384x8192 bf16", calls)


def image(ops: Any) -> Iterator[Case]:
    x = randn(8, 3, 2160, 3840, dtype=torch.float32)
    height, width = 1087, 1929
    calls = {"kpkg": lambda: ops.box_blur(x, 5), **both(lambda: F.avg_pool2d(x, 5, 1, 2))}
    yield Case("box blur 5x5 8x3x2160x3840 f32", calls, 1e-4)

    def resized() -> Tensor:
        return F.interpolate(x, (height, width), mode="bilinear", align_corners=False)

    calls = {"kpkg": lambda: ops.resize_bilinear(x, height, width), **both(resized)}
    yield Case("resize to 1087x1929", calls, 1e-3)
    lines = (torch.linspace(-1, 1, width), torch.linspace(-1, 1, height))
    grid = torch.stack(torch.meshgrid(*lines, indexing="xy"), -1).cuda()
    grid = grid + torch.rand(8, height, width, 2, device="cuda") * 0.02
    calls = {"kpkg": lambda: ops.grid_sample(x, grid), **both(lambda: F.grid_sample(x, grid, align_corners=False))}
    yield Case("grid_sample of 1087x1929 points", calls, 1e-3)


def fused(ops: Any) -> Iterator[Case]:
    x = randn(64, 64, 224, 224).contiguous(memory_format=torch.channels_last)
    w = (randn(128, 64, 3, 3) * 576**-0.5).contiguous(memory_format=torch.channels_last)
    bias = randn(128)

    def convolved() -> Tensor:
        return F.max_pool2d(F.relu(F.conv2d(x, w, bias, padding=1)), 2)

    calls = {"kpkg": lambda: ops.conv_bias_relu_pool(x, w, bias), **both(convolved)}
    yield Case("conv, bias, relu, pool 64x64x224x224 to 128 bf16", calls, 2e-2)
    n = 8192
    a, weight = randn(1024, n), randn(n, n) * n**-0.5
    vectors = [randn(n) for _ in range(3)]

    def normed() -> Tensor:
        return F.silu(F.group_norm(F.linear(a, weight, vectors[0]), n // 32, *vectors[1:]))

    calls = {"kpkg": lambda: ops.gemm_group_norm_swish(a, weight, *vectors, n // 32), **both(normed)}
    yield Case("linear, group norm, swish 1024x8192x8192 bf16", calls, 3e-2)


FILES: dict[str, Callable[[Any], Iterator[Case]]] = {
    case.__name__: case
    for case in (
        adamw, chol, csr, dropout, embed, fft, flce, fused, heat, hist,
        image, jagged, kvcache, moe, quant, rope, router, sort, ssd, topp,
    )
}  # fmt: skip
