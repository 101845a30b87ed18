"""Draws calls from a seed: call i depends only on the seed and i.

Extents are log-uniform, and one in three is a multiple of 8 or near a power of two. Some calls are layers of public
models with drawn numbers of rows and pictures.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from calls import Call, elements, tensor
from models import CONVOLUTIONS, DECODERS

HALVES = ("bfloat16", "float16")


class Draw(random.Random):
    """A random number generator with the distributions of calls."""

    def extent(self, low: int, high: int) -> int:
        """Returns a log-uniform extent from low to high. Some are multiples of 8, or within one of a power of two."""
        value = round(math.exp(self.uniform(math.log(low), math.log(high))))
        kind = self.random()
        if kind < 0.3 and value >= 8:
            value -= value % 8
        elif kind < 0.45 and value >= 8:
            value = (1 << round(math.log2(value))) + self.choice((-1, 0, 0, 1))
        return min(max(value, low), high)

    def dtype(self, wide: float = 0.25) -> str:
        """Returns a 16-bit dtype, or float32 in the share `wide` of all calls."""
        return "float32" if self.random() < wide else self.choice(HALVES)

    def shape(self, rank: int, most: int) -> list[int]:
        """Returns extents with at most `most` elements in all."""
        total = self.extent(min(64, most), most)
        shape = [1] * rank
        for d in self.sample(range(rank), rank):
            shape[d] = self.extent(1, max(1, total))
            total //= shape[d]
        return shape

    def order(self, rank: int, plain: float = 0.7) -> list[int]:
        """Returns dimensions in memory order, contiguous in the share `plain` of all calls."""
        return list(range(rank)) if self.random() < plain else self.sample(range(rank), rank)


def products(draw: Draw, most: int) -> Call:
    dtype = draw.dtype()
    kind = draw.random()
    if kind < 0.35:
        model = draw.choice(DECODERS)
        pairs = [
            (model.heads * model.head + 2 * model.key_heads * model.head, model.width),
            (model.width, model.heads * model.head),
            (2 * model.inner, model.width),
            (model.width, model.inner),
            (model.vocabulary, model.width),
        ]
        n, k = draw.choice(pairs)
        m = draw.extent(1, max(1, min(8192, most // max(n, k))))
    else:
        n, k, m = (draw.extent(1, 16384) for _ in range(3))
    if kind < 0.6:
        bias = tensor([n], dtype) if draw.random() < 0.5 else None
        return {"op": "linear", "args": [tensor([m, k], dtype), tensor([n, k], dtype), bias]}
    if kind < 0.8:
        flipped = [draw.choice(([0, 1], [1, 0])) for _ in range(2)]
        return {"op": "matmul", "args": [tensor([m, k], dtype, flipped[0]), tensor([k, n], dtype, flipped[1])]}
    b, m, n, k = draw.extent(2, 512), draw.extent(1, 1024), draw.extent(1, 1024), draw.extent(1, 1024)
    return {"op": "bmm", "args": [tensor([b, m, k], dtype), tensor([b, k, n], dtype)]}


def rows(draw: Draw, most: int) -> Call:
    dtype, op = draw.dtype(), draw.choice(("softmax", "log_softmax", "layer_norm", "rms_norm", "cumsum"))
    if draw.random() < 0.3:
        model = draw.choice(DECODERS)
        n = draw.choice((model.width, model.inner, model.vocabulary, model.head))
        shape = [draw.extent(1, max(1, most // n)), n]
    else:
        shape = draw.shape(draw.randint(1, 4), most)
    if op in ("layer_norm", "rms_norm"):
        inner = shape[-1:] if draw.random() < 0.8 else shape[-2:]
        weights = [tensor(inner, dtype) for _ in range(2 if op == "layer_norm" else 1)]
        return {"op": op, "args": [tensor(shape, dtype), inner, *weights, 1e-5]}
    dim = len(shape) - 1 if draw.random() < 0.5 else draw.randrange(len(shape))
    return {"op": op, "args": [tensor(shape, dtype, draw.order(len(shape))), dim]}


def losses(draw: Draw, most: int) -> Call:
    classes = draw.choice(DECODERS).vocabulary if draw.random() < 0.4 else draw.extent(2, 200000)
    count = draw.extent(1, max(1, min(65536, most // classes)))
    target = tensor([count], "int64", fill=f"below {classes}")
    return {"op": "cross_entropy", "args": [tensor([count, classes], draw.dtype()), target]}


REDUCTIONS = ("sum", "mean", "amax", "amin", "prod", "argmax", "vector_norm", "var", "std", "var_mean")


def reductions(draw: Draw, most: int) -> Call:
    shape = draw.shape(draw.randint(1, 4), most)
    x = tensor(shape, draw.dtype(), draw.order(len(shape)))
    op, keep = draw.choice(REDUCTIONS), draw.random() < 0.5
    dims = sorted(draw.sample(range(len(shape)), draw.randint(1, len(shape))))
    if op in ("prod", "argmax"):
        dims = dims[:1]
    first = [draw.choice((0.0, 1.0, 2.0, 2.0, 3.0, float("inf"), -1.0))] if op == "vector_norm" else []
    last = [1.0, keep] if op in ("var", "std", "var_mean") else [keep]
    return {"op": op, "args": [x, *first, dims, *last]}


UNARY = ("relu", "gelu", "silu", "sigmoid", "tanh", "elu", "softplus", "hardswish", "mish", "leaky_relu")


def elementwise(draw: Draw, most: int) -> Call:
    dtype, shape = draw.dtype(), draw.shape(draw.randint(1, 4), most)
    order = draw.order(len(shape))
    x = tensor(shape, dtype, order)
    if draw.random() < 0.5:
        return {"op": draw.choice(UNARY), "args": [x]}
    op = draw.choice(("add", "sub", "mul", "div", "swiglu"))
    other, fill = list(shape), "positive" if op == "div" else "normal"
    if op != "swiglu" and draw.random() < 0.4:
        other = [1 if draw.random() < 0.5 else extent for extent in shape]
    return {"op": op, "args": [x, tensor(other, dtype, order if draw.random() < 0.7 else None, fill)]}


def channel_order(draw: Draw, rank: int) -> list[int]:
    """Returns channels-first or channels-last order."""
    return [0, *range(2, rank), 1] if draw.random() < 0.5 else list(range(rank))


def pooling(draw: Draw, most: int) -> Call:
    spatial = draw.choice((1, 2, 2, 2, 3))
    size = [draw.extent(4, {1: 4096, 2: 256, 3: 48}[spatial]) for _ in range(spatial)]
    window = [min(each, draw.choice((2, 2, 3, 3, 5, 7))) for each in size]
    stride = [draw.choice((1, 2, each)) for each in window]
    padding = [draw.choice((0, each // 2)) for each in window]
    pictures, channels = draw.extent(1, 64), draw.extent(1, 512)
    pictures = max(1, min(pictures, most // (channels * math.prod(size))))
    x = tensor([pictures, channels, *size], draw.dtype(), channel_order(draw, spatial + 2))
    return {"op": f"{draw.choice(('max', 'avg'))}_pool{spatial}d", "args": [x, window, stride, padding]}


def channel_norms(draw: Draw, most: int) -> Call:
    spatial, dtype = draw.choice((1, 2, 2, 3)), draw.dtype()
    size = [draw.extent(1, {1: 4096, 2: 256, 3: 48}[spatial]) for _ in range(spatial)]
    groups = draw.choice((1, 2, 8, 16, 32))
    channels = groups * draw.extent(1, 64)
    pictures = max(1, min(draw.extent(1, 64), most // (channels * math.prod(size))))
    x = tensor([pictures, channels, *size], dtype, channel_order(draw, spatial + 2))
    weights = [tensor([channels], dtype) for _ in range(2)]
    if draw.random() < 0.5:
        return {"op": "group_norm", "args": [x, groups, *weights, 1e-5]}
    statistics = [tensor([channels], dtype), tensor([channels], dtype, fill="positive")]
    return {"op": "batch_norm", "args": [x, *statistics, *weights, 1e-5]}


def convolutions(draw: Draw, most: int) -> Call:
    dtype = draw.dtype(0.35)
    if draw.random() < 0.4:
        layer = draw.choice(CONVOLUTIONS)
        spatial, groups, inputs, outputs = 2, layer.groups, layer.inputs, layer.outputs
        size, window, stride, dilation = [layer.size] * 2, [layer.window] * 2, [layer.stride] * 2, [1, 1]
        padding = [layer.window // 2 if layer.window != layer.stride else 0] * 2
    else:
        spatial = draw.choice((1, 2, 2, 2, 3))
        size = [draw.extent(4, {1: 8192, 2: 224, 3: 48}[spatial]) for _ in range(spatial)]
        window = [min(each, draw.choice((1, 1, 2, 3, 3, 3, 4, 5, 7))) for each in size]
        groups = draw.choice((1, 1, 1, 1, 2, 8, 0))
        inputs = max(1, groups) * draw.extent(1, 512 if groups < 2 else 64)
        groups = groups or inputs  # depthwise
        outputs = groups * draw.extent(1, max(1, 512 // groups))
        stride = [draw.choice((1, 1, 1, 2))] * spatial
        dilation = [draw.choice((1, 1, 1, 1, 2)) if 2 * (w - 1) < s else 1 for w, s in zip(window, size, strict=True)]
        padding = [draw.choice((0, d * (w // 2))) for w, d in zip(window, dilation, strict=True)]
    pictures = max(1, min(draw.extent(1, 64), most // (max(inputs, outputs) * math.prod(size))))
    order = channel_order(draw, spatial + 2)
    bias = tensor([outputs], dtype) if draw.random() < 0.5 else None
    if draw.random() < 0.15:
        weight = tensor([inputs, outputs // groups, *window], dtype, order)
        args = [tensor([pictures, inputs, *size], dtype, order), weight, bias, stride, [0] * spatial, [0] * spatial]
        return {"op": f"conv_transpose{spatial}d", "args": [*args, groups, [1] * spatial]}
    weight = tensor([outputs, inputs // groups, *window], dtype, order)
    args = [tensor([pictures, inputs, *size], dtype, order), weight, bias, stride, padding, dilation, groups]
    return {"op": f"conv{spatial}d", "args": args}


def attention(draw: Draw, most: int) -> Call:
    model = draw.choice(DECODERS)
    heads, key_heads, head = model.heads, model.key_heads, model.head
    if draw.random() < 0.3:
        heads = key_heads = draw.extent(1, 64)
        head = draw.choice((16, 32, 40, 64, 72, 80, 96, 128, 160, 192, 256))
    keys = draw.extent(1, 16384)
    queries = keys if draw.random() < 0.6 else draw.choice((1, 1, draw.extent(1, keys)))
    batch = max(1, min(draw.extent(1, 64), most // (heads * head * keys)))
    dtype = draw.dtype(0.1)
    q, k = [batch, heads, queries, head], [batch, key_heads, keys, head]
    order = [0, 2, 1, 3] if draw.random() < 0.5 else None
    args = [tensor(q, dtype, order), tensor(k, dtype, order), tensor(k, dtype, order)]
    kwargs = {"is_causal": queries == keys and draw.random() < 0.5, "enable_gqa": heads != key_heads}
    return {"op": "scaled_dot_product_attention", "args": args, "kwargs": kwargs}


#: By family, a function that draws a call, and its share of all calls.
FAMILIES: dict[str, tuple[Callable[[Draw, int], Call], float]] = {
    "products": (products, 0.2),
    "rows": (rows, 0.15),
    "losses": (losses, 0.05),
    "reductions": (reductions, 0.12),
    "elementwise": (elementwise, 0.13),
    "pooling": (pooling, 0.07),
    "channel_norms": (channel_norms, 0.06),
    "convolutions": (convolutions, 0.15),
    "attention": (attention, 0.07),
}
NO_GRADIENT = {"argmax", "batch_norm"}
SHARE_OF_GRADIENTS = 0.3


def draw_call(seed: int, number: int, most: int, families: list[str] | None = None) -> tuple[str, Call]:
    """Returns the family and the call of that number. Its tensors have at most about `most` elements each."""
    draw = Draw(f"{seed}:{number}")
    names = families or list(FAMILIES)
    while True:
        (name,) = draw.choices(names, [FAMILIES[each][1] for each in names])
        call = {"kwargs": {}, "grad": False} | FAMILIES[name][0](draw, most)
        call["grad"] = call["op"] not in NO_GRADIENT and draw.random() < SHARE_OF_GRADIENTS
        if elements(call) <= 4 * most:
            return name, call
