"""Represents calls of ops as JSON values, and computes them with PyTorch.

A call is {"op": name, "args": [...], "kwargs": {...}, "grad": bool}. A tensor is {"shape", "dtype", "order", "fill"}.
`order` lists dimensions from the outermost in memory to the innermost, and `fill` is the kind of its numbers. "grad"
selects the gradient of the call for all floating-point tensors.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Call = dict[str, Any]


def tensor(shape: list[int], dtype: str, order: list[int] | None = None, fill: str = "normal") -> Call:
    """Returns the description of a tensor. `fill`: "normal", "positive", or "below N" for integers from 0 to N - 1."""
    return {"shape": shape, "dtype": dtype, "order": order or list(range(len(shape))), "fill": fill}


def is_tensor(value: Any) -> bool:
    return isinstance(value, dict) and "shape" in value


def elements(call: Call) -> int:
    """Returns the number of elements of all tensors in the call."""
    return sum(math.prod(each["shape"]) for each in tensors_in(call))


def tensors_in(call: Call) -> list[Call]:
    return [each for each in [*call["args"], *call.get("kwargs", {}).values()] if is_tensor(each)]


def make(described: Call, generator: torch.Generator) -> Tensor:
    shape, order, fill = described["shape"], described["order"], described["fill"]
    dtype, device = getattr(torch, described["dtype"]), generator.device
    stored = [shape[d] for d in order]
    if fill.startswith("below "):
        values = torch.randint(int(fill[6:]), stored, generator=generator, device=device, dtype=dtype)
    else:
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        values = torch.randn(stored, generator=generator, device=device, dtype=wide)
        values = (values.abs() + 0.5 if fill == "positive" else values).to(dtype)
    return values.permute([order.index(d) for d in range(len(order))])


def arguments(call: Call, generator: torch.Generator) -> tuple[list[Any], dict[str, Any]]:
    """Returns the call's arguments, with new tensors."""
    made = [make(each, generator) if is_tensor(each) else each for each in call["args"]]
    named = {k: make(v, generator) if is_tensor(v) else v for k, v in call.get("kwargs", {}).items()}
    return made, named


def _batch_norm(x: Tensor, mean: Tensor, variance: Tensor, w: Tensor, b: Tensor, eps: float = 1e-5) -> Tensor:
    return F.batch_norm(x, mean, variance, w, b, False, 0.1, eps)


def _convolution(name: str) -> Callable[..., Tensor]:
    function = getattr(F, name)
    return lambda x, w, b, stride, padding, dilation, groups: function(x, w, b, stride, padding, dilation, groups)


def _transposed(name: str) -> Callable[..., Tensor]:
    function = getattr(F, name)
    return lambda x, w, b, stride, padding, extra, groups, dilation: function(
        x, w, b, stride, padding, extra, groups, dilation
    )


def _pool(name: str) -> Callable[..., Tensor]:
    return getattr(F, name)  # type: ignore[no-any-return]


def _reduction(name: str) -> Callable[..., Tensor]:
    function = getattr(torch, name)
    return lambda x, dims, keep: function(x, dims, keepdim=keep)


def _spread(name: str) -> Callable[..., Any]:
    function = getattr(torch, name)
    return lambda x, dims, correction, keep: function(x, dims, correction=correction, keepdim=keep)


def _over_one(name: str) -> Callable[..., Tensor]:
    function = getattr(torch, name)
    return lambda x, dims, keep: function(x, dims[0], keepdim=keep)


#: By op, the equivalent PyTorch function, with the arguments of kpkg's op.
PEERS: dict[str, Callable[..., Any]] = {
    "linear": F.linear,
    "matmul": torch.matmul,
    "bmm": torch.bmm,
    "softmax": F.softmax,
    "log_softmax": F.log_softmax,
    "layer_norm": F.layer_norm,
    "rms_norm": F.rms_norm,
    "cross_entropy": F.cross_entropy,
    "cumsum": torch.cumsum,
    "group_norm": F.group_norm,
    "batch_norm": _batch_norm,
    "sum": _reduction("sum"),
    "mean": _reduction("mean"),
    "amax": _reduction("amax"),
    "amin": _reduction("amin"),
    "prod": _over_one("prod"),
    "argmax": _over_one("argmax"),
    **{name: _spread(name) for name in ("var", "std", "var_mean")},
    "vector_norm": lambda x, order, dims, keep: torch.linalg.vector_norm(x, order, dims, keep),
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "swiglu": lambda a, b: F.silu(a) * b,
    "scaled_dot_product_attention": lambda q, k, v, is_causal, enable_gqa: F.scaled_dot_product_attention(
        q, k, v, is_causal=is_causal, enable_gqa=enable_gqa
    ),
    **{f"conv{n}d": _convolution(f"conv{n}d") for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _transposed(f"conv_transpose{n}d") for n in (1, 2, 3)},
    **{f"{kind}_pool{n}d": _pool(f"{kind}_pool{n}d") for kind in ("max", "avg") for n in (1, 2, 3)},
    **{
        name: getattr(F, name)
        for name in (
            "relu",
            "gelu",
            "silu",
            "elu",
            "selu",
            "softplus",
            "hardswish",
            "hardsigmoid",
            "mish",
            "leaky_relu",
        )
    },
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}
