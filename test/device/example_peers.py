"""What examples.py compares the kernels of examples/ with, in PyTorch and Triton.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor


def rope(
    qkv: Tensor, positions: Tensor, cosines: Tensor, sines: Tensor, heads: int, kv_heads: int, pairs: bool
) -> tuple[Tensor, Tensor]:
    x = qkv.view(qkv.shape[0], heads + 2 * kv_heads, -1)[:, : heads + kv_heads].float()
    c, s = cosines[positions.long()][:, None], sines[positions.long()][:, None]
    a, b = (x[..., 0::2], x[..., 1::2]) if pairs else x.chunk(2, -1)
    parts = [a * c - b * s, b * c + a * s]
    turned = torch.stack(parts, -1).flatten(-2) if pairs else torch.cat(parts, -1)
    turned = turned.to(qkv.dtype)
    return turned[:, :heads].contiguous(), turned[:, heads:].contiguous()


def permuted(experts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    flat = experts.reshape(-1)
    order = flat.sort(stable=True).indices
    places = torch.empty_like(order)
    places[order] = torch.arange(flat.numel(), device=flat.device)
    return order, places, torch.bincount(flat, minlength=256).cumsum(0)


def segment_sums(x: Tensor) -> Tensor:
    sums = x.cumsum(-1)
    past = torch.ones(x.shape[-1], x.shape[-1], dtype=torch.bool, device=x.device).tril()
    return (sums[..., :, None] - sums[..., None, :]).masked_fill(~past, -float("inf"))


def mamba2(x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor, chunk: int = 64) -> Tensor:
    """The chunked form of T. Dao and A. Gu, "Transformers are SSMs", 2024, listing 1."""
    batch, length, heads, p = x.shape
    groups, n = b.shape[2:]
    values = (x * dt[..., None].to(x.dtype)).view(batch, length // chunk, chunk, heads, p)
    decay = (dt * a).view(batch, length // chunk, chunk, heads).permute(0, 3, 1, 2)
    left = b.repeat_interleave(heads // groups, 2).view(batch, length // chunk, chunk, heads, n)
    right = c.repeat_interleave(heads // groups, 2).view(batch, length // chunk, chunk, heads, n)
    sums = decay.cumsum(-1)
    mask = segment_sums(decay).exp().to(x.dtype)
    own = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", right, left, mask, values)
    weights = (sums[..., -1:] - sums).exp().to(x.dtype)
    states = torch.einsum("bclhn,bhcl,bclhp->bchpn", left, weights, values)
    states = torch.cat([torch.zeros_like(states[:, :1]), states], 1)
    between = segment_sums(F.pad(sums[..., -1], (1, 0))).exp().to(x.dtype)
    states = torch.einsum("bhzc,bchpn->bzhpn", between, states)[:, :-1]
    before = torch.einsum("bclhn,bchpn,bhcl->bclhp", right, states, sums.exp().to(x.dtype))
    return (own + before).reshape(batch, length, heads, p) + (d[:, None] * x.float()).to(x.dtype)


def gated_attention(q: Tensor, k: Tensor, v: Tensor, gate: Tensor, chunk: int = 64) -> Tensor:
    """Products within chunks at once, and a loop over chunks."""
    q, k, v, gate = (t.float().unflatten(2, (-1, chunk)) for t in (q, k, v, gate))
    sums = gate.cumsum(3)
    middle, total = sums[:, :, :, chunk // 2 - 1 : chunk // 2], sums[:, :, :, -1:]
    weights = ((q * (sums - middle).exp()) @ (k * (middle - sums).exp()).mT).tril()
    added = (k * (total - sums).exp()).mT @ v
    state, states = torch.zeros_like(added[:, :, 0]), []
    for i in range(q.shape[2]):
        states.append(state)
        state = state * total[:, :, i].exp().mT + added[:, :, i]
    result = weights @ v + (q * sums.exp()) @ torch.stack(states, 2)
    return result.flatten(2, 3).to(torch.bfloat16)


def heat(x: Tensor, alpha: float) -> Tensor:
    padded, inner = F.pad(x, [1] * (2 * x.dim())), slice(1, -1)
    change = -2 * x.dim() * x
    for dim in range(x.dim()):
        for side in (slice(2, None), slice(None, -2)):
            change = change + padded[tuple(side if i == dim else inner for i in range(x.dim()))]
    return x + alpha * change


def top_p(x: Tensor, p: float) -> Tensor:
    probability, place = x.float().softmax(-1).sort(-1, descending=True)
    kept = torch.where(probability.cumsum(-1) - probability < p, probability, 0.0)
    return place.gather(1, (kept / torch.rand_like(kept).exponential_()).argmax(-1, keepdim=True))


def is_top_p_sample(drawn: Tensor, x: Tensor, u: Tensor, p: float) -> bool:
    """Whether the drawn places are those of u, but for rounding."""
    probability = x.float().softmax(-1).double()
    ordered = probability.sort(-1, descending=True)[0]
    least = torch.where(ordered.cumsum(-1) - ordered < p, ordered, 2.0).amin(-1, keepdim=True)
    kept = torch.where(probability >= least, probability, 0.0)
    sums, goal = kept.cumsum(-1), u.double() * kept.sum(-1)
    end = sums.gather(1, drawn[:, None])[:, 0]
    begin = end - kept.gather(1, drawn[:, None])[:, 0]
    return bool(((end - goal > -1e-5) & (begin - goal < 1e-5)).all())


def jagged_softmax(x: Tensor, offsets: Tensor) -> Tensor:
    segments = offsets.numel() - 1
    own = torch.repeat_interleave(torch.arange(segments, device=x.device), offsets.diff())
    top = torch.full((segments,), -1e30, device=x.device).scatter_reduce(0, own, x.float(), "amax")
    e = (x.float() - top[own]).exp()
    return (e / torch.zeros(segments, device=x.device).scatter_add(0, own, e)[own]).to(x.dtype)


@triton.jit
def histogram_kernel(x, counts, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    own = tl.zeros((BINS,), tl.int32)
    for i in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        place = i * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(x + place, mask=place < n, other=0).to(tl.int32)
        own += tl.histogram(v, BINS, mask=place < n)
    tl.atomic_add(counts + tl.arange(0, BINS), own)


def triton_histogram(x: Tensor, bins: int) -> Tensor:
    counts = torch.zeros(triton.next_power_of_2(bins), device=x.device, dtype=torch.int32)
    histogram_kernel[(1056,)](x, counts, x.numel(), BLOCK=2048, BINS=counts.numel(), num_warps=8)
    return counts[:bins]


@triton.jit
def jagged_kernel(x, offsets, y, BLOCK: tl.constexpr):
    first = tl.load(offsets + tl.program_id(0))
    last = tl.load(offsets + tl.program_id(0) + 1)
    top = -float("inf")
    total = 0.0
    for j in range(first, last, BLOCK):
        place = j + tl.arange(0, BLOCK)
        v = tl.load(x + place, mask=place < last, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(top, tl.max(v, 0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(v - higher), 0)
        top = higher
    for j in range(first, last, BLOCK):
        place = j + tl.arange(0, BLOCK)
        v = tl.load(x + place, mask=place < last, other=0).to(tl.float32)
        tl.store(y + place, (tl.exp(v - top) / total).to(tl.bfloat16), mask=place < last)


def triton_jagged(x: Tensor, offsets: Tensor) -> Tensor:
    y = torch.empty_like(x)
    jagged_kernel[(offsets.numel() - 1,)](x, offsets, y, BLOCK=1024, num_warps=4)
    return y
