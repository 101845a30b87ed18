"""Specs of attention, scaled_dot_product_attention and their gradients.

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


def scores(
    query: Tensor,
    key: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float = 0.0,
    window: int = 0,
    sinks: Tensor | None = None,
) -> Tensor:
    """Returns the arguments of softmax, `[batch, heads, queries, keys]`: -inf where a query does not see a key. With
    sinks there is one more key."""
    key = key.repeat_interleave(query.shape[1] // max(key.shape[1], 1), 1)
    s = query @ key.mT * (query.shape[3] ** -0.5 if scale is None else scale)
    s = softcap * torch.tanh(s / softcap) if softcap else s
    if attn_mask is not None:
        s = s.masked_fill(~attn_mask, -math.inf) if attn_mask.dtype == torch.bool else s + attn_mask
    ahead = torch.arange(key.shape[2]) - torch.arange(query.shape[2])[:, None]
    if is_causal:
        s = s.masked_fill(ahead > 0, -math.inf)
    s = s.masked_fill(ahead.abs() >= window, -math.inf) if window else s
    return s if sinks is None else torch.cat([s, sinks[:, None, None].expand(*s.shape[:3], 1)], -1)


def probabilities(s: Tensor, lse: Tensor) -> Tensor:
    return torch.exp(s - lse.masked_fill(lse == -math.inf, 0.0).unsqueeze(-1))


def grouped(query: Tensor, key: Tensor) -> Tensor:
    """Returns `key` repeated for each query head."""
    return key.repeat_interleave(query.shape[1] // max(key.shape[1], 1), 1)


def attention(query: Tensor, key: Tensor, value: Tensor, *rest: Any, **options: Any) -> tuple[Tensor, Tensor]:
    s = scores(query, key, *rest, **options)
    lse = torch.logsumexp(s, -1) if s.shape[3] else s.new_full(s.shape[:3], -math.inf)
    return probabilities(s, lse)[..., : key.shape[2]] @ grouped(query, value), lse


def magnitude(query: Tensor, key: Tensor, value: Tensor, *rest: Any, **options: Any) -> tuple[Tensor, Tensor]:
    """Returns the magnitude: exponentials have errors as large as the largest products in them."""
    out, lse = attention(query, key, value.abs(), *rest, **options)
    largest = torch.ones_like(lse)
    if key.shape[2]:
        scale = options.get("scale")
        largest += scores(query.abs(), key.abs(), None, scale=None if scale is None else abs(scale)).amax(-1)
    return out * largest.unsqueeze(-1), largest


def sdpa(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False
) -> Tensor:  # fmt: skip
    return attention(query, key, value, attn_mask, is_causal, scale)[0]


def sdpa_magnitude(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, **options: Any
) -> Tensor:
    kept = {name: option for name, option in options.items() if name in ("is_causal", "scale")}
    return magnitude(query, key, value, attn_mask, **kept)[0]


def backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    *rest: Any,
    sizes: bool = False,
    **options: Any,
) -> tuple[Tensor, ...]:
    """Returns the gradients by their formulas, or with `sizes` the sums of the magnitudes of all terms."""
    scale, softcap = options.get("scale"), options.get("softcap", 0.0)
    scale = query.shape[3] ** -0.5 if scale is None else scale
    options.pop("deterministic", None)
    p = probabilities(scores(query, key, *rest, **options), lse)
    if sizes:
        grad, query, key, value, out, scale = (abs(t) for t in (grad, query, key, value, out, scale))
    dp = grad @ grouped(query, value).mT
    delta = (grad * out).sum(-1, keepdim=True)
    ds = p * (dp + delta if sizes else dp - delta)
    if softcap and not sizes:
        ds = ds * (1 - torch.tanh(query @ grouped(query, key).mT * scale / softcap) ** 2)

    def over_group(x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], key.shape[1], x.shape[1] // key.shape[1], *x.shape[2:]).sum(2)

    return ds @ grouped(query, key) * scale, over_group(ds.mT @ query * scale), over_group(p.mT @ grad)


def backward_magnitude(*args: Any, **options: Any) -> tuple[Tensor, ...]:
    return backward(*args, sizes=True, **options)


class Inputs:
    """Makes random queries, keys and values of one dtype, in the order of the calls."""

    def __init__(self, dtype: torch.dtype, generator: torch.Generator) -> None:
        self.dtype, self.generator = dtype, generator

    def make(self, *shape: int) -> Tensor:
        return normal(shape, self.dtype, self.generator)

    def chance(self, *shape: int) -> Tensor:
        """Returns a mask of which about half is true."""
        return torch.rand(*shape, generator=self.generator) < 0.5

    def qkv(
        self, batch: int, heads: int, kv_heads: int, queries: int, keys: int, size: int, v_size: int = 0
    ) -> tuple[Tensor, ...]:
        return (
            self.make(batch, heads, queries, size),
            self.make(batch, kv_heads, keys, size),
            self.make(batch, kv_heads, keys, v_size or size),
        )


def samples_of_sizes(inputs: Inputs) -> Iterator[Sample]:
    qkv = inputs.qkv
    yield Sample(qkv(1, 1, 1, 1, 1, 1), label="one of all")
    yield Sample(qkv(1, 2, 2, 3, 5, 4), {"is_causal": True}, label="few")
    yield Sample(qkv(1, 2, 1, 19, 70, 24), {"scale": 0.0}, label="a scale of 0")
    yield Sample(qkv(1, 2, 2, 9, 600, 16), {"scale": 0.0}, label="a scale of 0, many keys")
    yield Sample(
        qkv(2, 1, 1, 5, 3, 16),
        {"attn_mask": torch.tensor([[[[True, False, True]]]]), "scale": -0.3},
        label="mask of keys",
    )
    yield Sample(qkv(2, 2, 1, 7, 0, 8), label="no keys")
    yield Sample(qkv(2, 2, 2, 0, 7, 8), label="no queries")
    yield Sample(qkv(0, 2, 2, 3, 7, 8), label="no batch")
    yield Sample(qkv(1, 2, 2, 128, 256, 64), label="whole tiles")
    yield Sample(qkv(1, 4, 2, 131, 259, 33), {"is_causal": True}, label="groups, causal")
    yield Sample(qkv(1, 2, 1, 260, 131, 80), {"is_causal": True, "scale": 0.05}, label="more queries than keys")
    yield Sample(qkv(1, 1, 1, 65, 63, 256, 200), {"softcap": 2.0}, label="large heads, softcap")
    yield Sample(qkv(1, 2, 1, 300, 290, 20, 10), {"window": 70}, label="window")
    yield Sample(qkv(1, 1, 1, 150, 300, 16), {"window": 33, "is_causal": True}, label="causal window")
    yield Sample(qkv(2, 4, 2, 200, 330, 128), label="heads of 128, groups")
    yield Sample(qkv(1, 2, 2, 333, 260, 112, 104), {"is_causal": True}, label="heads of 112 and 104, causal")
    yield Sample(qkv(1, 2, 1, 257, 300, 128), {"window": 90}, label="heads of 128, window")
    yield Sample(qkv(1, 2, 1, 4130, 200, 128), label="many queries, heads of 128")
    yield Sample(qkv(1, 2, 2, 1030, 300, 64), label="many queries, heads of 64")
    yield Sample(qkv(1, 1, 1, 70, 140, 32), {"is_causal": True, "scale": -0.2}, label="negative scale, causal")
    yield Sample(
        qkv(1, 1, 1, 4100, 333, 104, 112),
        {"window": 2000, "is_causal": True},
        label="many queries, heads of 104 and 112, causal window",
    )
    yield Sample(qkv(2, 2, 1, 260, 300, 192, 128), {"is_causal": True}, label="heads of 192 and 128, causal")
    yield Sample(qkv(1, 1, 1, 300, 290, 160, 120), {"window": 70}, label="heads of 160 and 120, window")
    yield Sample(qkv(2, 4, 2, 530, 200, 256), label="many queries, heads of 256, groups")
    yield Sample(
        qkv(1, 2, 1, 600, 330, 200, 144),
        {"window": 120, "is_causal": True},
        label="many queries, heads of 200 and 144, causal window",
    )


def samples_of_few_queries(inputs: Inputs) -> Iterator[Sample]:
    make, qkv = inputs.make, inputs.qkv
    yield Sample(qkv(2, 8, 2, 5, 600, 64), label="few queries, groups")
    yield Sample(qkv(1, 16, 2, 33, 1111, 128, 96), {"scale": 0.05}, label="few queries, many rows")
    yield Sample(qkv(1, 4, 1, 9, 2300, 16), label="few queries, keys in parts")
    yield Sample(qkv(0, 2, 1, 3, 512, 8), label="few queries, no batch")
    rows = make(2, 64, 6, 40).transpose(1, 2)
    yield Sample(
        (rows, make(2, 530, 3, 40).transpose(1, 2), make(2, 530, 3, 24).transpose(1, 2)),
        label="few queries, heads behind positions",
    )


def masked_samples(inputs: Inputs) -> Iterator[Sample]:
    make, qkv, chance = inputs.make, inputs.qkv, inputs.chance
    hidden = chance(50, 270)
    hidden[7] = False
    yield Sample(qkv(2, 3, 3, 50, 270, 40), {"attn_mask": hidden}, label="queries that see nothing")
    yield Sample(qkv(2, 3, 1, 50, 270, 40), {"attn_mask": make(2, 1, 50, 270), "is_causal": True}, label="float mask")
    yield Sample(
        qkv(2, 2, 2, 140, 270, 64),
        {"attn_mask": chance(2, 1, 140, 270)},
        label="mask of batches, heads of 64",
    )
    yield Sample(
        qkv(2, 4, 2, 140, 270, 128), {"attn_mask": make(4, 140, 270)}, label="float mask, heads of 128, groups"
    )
    bias = make(3, 1, 270)
    bias[:, :, 9:] = -math.inf
    yield Sample(qkv(2, 3, 1, 50, 270, 40), {"attn_mask": bias, "softcap": 5.0}, label="broadcast mask with -inf")


def samples_of_layouts_and_values(inputs: Inputs) -> Iterator[Sample]:
    make, qkv = inputs.make, inputs.qkv
    packed = make(2, 70, 3, 4, 24).permute(2, 0, 3, 1, 4)
    yield Sample((packed[0], packed[1], packed[2]), label="interleaved")
    yield Sample(
        (make(2, 3, 24, 70).mT, make(1, 3, 70, 24).expand(2, 3, 70, 24), make(2, 3, 70, 48)[..., ::2]),
        label="any strides",
    )
    yield Sample(
        (40 * make(1, 2, 30, 64), make(1, 2, 140, 64), make(1, 2, 140, 64)), {"is_causal": True}, label="peaks"
    )
    spoiled = qkv(1, 1, 1, 5, 6, 8)
    spoiled[0][0, 0, 1, 2] = math.nan
    yield Sample(spoiled, label="NaN in a query")


def samples_of_sinks(inputs: Inputs) -> Iterator[Sample]:
    qkv, make = inputs.qkv, inputs.make
    yield Sample(qkv(2, 4, 2, 65, 130, 64), {"is_causal": True, "sinks": make(4)}, label="sinks, causal")
    yield Sample(
        qkv(1, 2, 2, 150, 150, 40, 130), {"is_causal": True, "window": 33, "sinks": make(2)}, label="sinks, window"
    )
    yield Sample(qkv(1, 8, 2, 3, 600, 64), {"sinks": make(8)}, label="sinks, few queries")
    yield Sample(qkv(1, 2, 2, 5, 0, 8), {"sinks": make(4)[::2]}, label="sinks alone")


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    inputs = Inputs(dtype, generator)
    yield from samples_of_sinks(inputs)
    yield from samples_of_sizes(inputs)
    yield from samples_of_few_queries(inputs)
    yield from masked_samples(inputs)
    yield from samples_of_layouts_and_values(inputs)


def sdpa_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for sample in samples(dtype, generator):
        beyond = {"softcap", "window", "sinks"} & set(sample.kwargs) or {"attn_mask", "is_causal"} <= set(sample.kwargs)
        if not beyond and "NaN" not in sample.label:  # PyTorch's own kernel, the fallback, returns finite numbers there
            yield Sample(
                sample.args,
                {**sample.kwargs, "enable_gqa": sample.args[0].shape[1] != sample.args[1].shape[1]},
                sample.label,
            )


def backward_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for sample in samples(dtype, generator):
        if sample.label in ("NaN in a query", "peaks") or "sinks" in sample.kwargs:
            continue
        wide = sample.map(lambda t: t.double() if t.is_floating_point() else t)
        out, lse = attention(*wide.args, **wide.kwargs)
        lse = lse if dtype == torch.float64 else lse.float()
        call = Sample(
            (normal(tuple(out.shape), dtype, generator), *sample.args, out.to(dtype), lse), sample.kwargs, sample.label
        )
        yield call
        if "128" in sample.label:
            yield Sample(call.args, {**call.kwargs, "deterministic": True}, f"{call.label}, deterministic")


def benchmarks(generator: torch.Generator) -> dict[str, Sample]:
    found = {}
    for dtype, name in ((torch.float32, ""), (torch.bfloat16, " bfloat16")):
        q, k, v = (normal((1, 8, 1024, 64), dtype, generator) for _ in range(3))
        found[f"1x8x1024x64{name}"] = Sample((q, k, v))
        found[f"1x8x1024x64 causal{name}"] = Sample((q, k, v), {"is_causal": True})
    return found


def eager(query: Tensor, key: Tensor, value: Tensor, is_causal: bool = False) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value, is_causal=is_causal)


SPECS = [
    OpSpec(
        "kpkg::attention",
        attention,
        samples,
        magnitude=magnitude,
        rounds_between=True,
        benchmarks=benchmarks,
        eager=eager,
    ),
    OpSpec("kpkg::scaled_dot_product_attention", sdpa, sdpa_samples, magnitude=sdpa_magnitude, rounds_between=True),
    OpSpec(
        "kpkg::attention_backward",
        backward,
        backward_samples,
        magnitude=backward_magnitude,
        accumulation=32.0,
        rounds_between=True,
        ordered=False,
    ),  # exponentials amplify the rounding of scores
]
