"""PyTorch implementations of the ops that kpkg ships: what runs when a package has no kernel for a call.

Each takes the op's arguments and gives results of the same shapes and dtypes as the op. Their gradients are in `_vjp`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kpkg._aten_products import finished


def vector_add(a: Tensor, b: Tensor) -> Tensor:
    return a + b


def softmax(input: Tensor, dim: int = -1) -> Tensor:
    return torch.softmax(input, dim)


def log_softmax(input: Tensor, dim: int = -1) -> Tensor:
    return torch.log_softmax(input, dim)


def logsumexp(input: Tensor, dim: int = -1, keepdim: bool = False) -> Tensor:
    return torch.logsumexp(input, dim, keepdim)


def layer_norm(
    input: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    return F.layer_norm(input, normalized_shape, weight, bias, eps)


def native_layer_norm(
    input: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> tuple[Tensor, Tensor, Tensor]:
    out, mean, rstd = torch.native_layer_norm(input, normalized_shape, weight, bias, eps)
    statistics = torch.float64 if input.dtype == torch.float64 else torch.float32
    return out, mean.to(statistics), rstd.to(statistics)


def rms_norm(input: Tensor, normalized_shape: list[int], weight: Tensor | None = None, eps: float = 1e-6) -> Tensor:
    return F.rms_norm(input, normalized_shape, weight, eps)


def _widest(input: Tensor) -> torch.dtype:
    return torch.float64 if input.dtype == torch.float64 else torch.float32


def add(a: Tensor, b: Tensor, alpha: float = 1.0) -> Tensor:
    return torch.add(a, b if alpha == 1.0 else b * alpha)


def sub(a: Tensor, b: Tensor, alpha: float = 1.0) -> Tensor:
    return torch.sub(a, b if alpha == 1.0 else b * alpha)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    return F.gelu(input, approximate=approximate)


def swiglu(a: Tensor, b: Tensor) -> Tensor:
    return F.silu(a) * b


def geglu(a: Tensor, b: Tensor, approximate: str = "none") -> Tensor:
    return F.gelu(a, approximate=approximate) * b


def _over(function: Callable[..., Tensor], input: Tensor, dim: list[int], keepdim: bool) -> Tensor:
    return function(input, dim or list(range(input.dim())), keepdim).to(input.dtype)


def sum(input: Tensor, dim: list[int] = [], keepdim: bool = False) -> Tensor:
    return _over(torch.sum, input, dim, keepdim)


def mean(input: Tensor, dim: list[int] = [], keepdim: bool = False) -> Tensor:
    return _over(torch.mean, input, dim, keepdim)


def amax(input: Tensor, dim: list[int] = [], keepdim: bool = False) -> Tensor:
    return _over(torch.amax, input, dim, keepdim)


def amin(input: Tensor, dim: list[int] = [], keepdim: bool = False) -> Tensor:
    return _over(torch.amin, input, dim, keepdim)


def prod(input: Tensor, dim: list[int] = [], keepdim: bool = False) -> Tensor:
    for d in sorted((d % max(input.dim(), 1) for d in dim or range(input.dim())), reverse=True):
        input = torch.prod(input, d, keepdim=True).to(input.dtype)
    return input if keepdim else _without(input, dim)


def _without(input: Tensor, dim: list[int]) -> Tensor:
    dropped = {d % max(input.dim(), 1) for d in dim or range(input.dim())}
    return input.reshape([n for i, n in enumerate(input.shape) if i not in dropped])


def vector_norm(input: Tensor, ord: float = 2.0, dim: list[int] = [], keepdim: bool = False) -> Tensor:
    return torch.linalg.vector_norm(input, ord, dim or None, keepdim)


def _extreme_index(function: Callable[..., Tensor], input: Tensor, dim: list[int], keepdim: bool) -> Tensor:
    axes = sorted({d % max(input.dim(), 1) for d in dim or range(input.dim())})
    kept = [d for d in range(input.dim()) if d not in axes]
    flat = input.permute(kept + axes).reshape([input.shape[d] for d in kept] + [-1])
    index = function(flat, -1)
    return index.reshape([1 if d in axes else n for d, n in enumerate(input.shape)]) if keepdim else index


def argmax(input: Tensor, dim: list[int] = [], keepdim: bool = False) -> Tensor:
    return _extreme_index(torch.argmax, input, dim, keepdim)


def argmin(input: Tensor, dim: list[int] = [], keepdim: bool = False) -> Tensor:
    return _extreme_index(torch.argmin, input, dim, keepdim)


def cumsum(input: Tensor, dim: int) -> Tensor:
    return torch.cumsum(input, dim).to(input.dtype)


def cumprod(input: Tensor, dim: int) -> Tensor:
    return torch.cumprod(input, dim).to(input.dtype)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    return F.cross_entropy(
        input, target, weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing
    )


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    return F.kl_div(input, target, reduction=reduction, log_target=log_target)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    return F.group_norm(input, num_groups, weight, bias, eps)


def native_group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    samples, channels = input.shape[:2]
    inner = input.numel() // max(samples * channels, 1)
    out, mean, rstd = torch.native_group_norm(
        input.contiguous(), weight, bias, samples, channels, inner, num_groups, eps
    )
    return out, mean.to(_widest(input)), rstd.to(_widest(input))


def instance_norm(input: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    return F.group_norm(input, input.shape[1], weight, bias, eps)


def batch_norm(
    input: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    return F.batch_norm(input, running_mean, running_var, weight, bias, False, 0.0, eps)


def batch_norm_training(
    input: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    dims = [0, *range(2, input.dim())]
    variance, mean = torch.var_mean(input.to(_widest(input)), dims, correction=0)
    return torch.native_batch_norm(input, weight, bias, None, None, True, 0.0, eps)[0], mean, variance


def moved_statistics(
    running_mean: Tensor, running_var: Tensor, mean: Tensor, variance: Tensor, count: int, momentum: float = 0.1
) -> tuple[Tensor, Tensor]:
    unbiased = variance * (count / (count - 1))
    moved = running_mean * (1 - momentum) + mean * momentum, running_var * (1 - momentum) + unbiased * momentum
    return moved[0].to(running_mean.dtype), moved[1].to(running_var.dtype)


def residual_tanh_gated_rmsnorm(
    x: Tensor, x_res: Tensor, gate: Tensor, eps: float = 1e-6, exact_mode: bool = False
) -> Tensor:
    wide = x_res.to(_widest(x_res))
    normed = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)
    return x + normed * torch.tanh(gate)


def residual_rms_norm(
    x: Tensor, residual: Tensor, weight: Tensor | None = None, eps: float = 1e-6
) -> tuple[Tensor, Tensor]:
    total = x.to(_widest(x)) + residual
    scale = None if weight is None else weight.to(total.dtype)
    return F.rms_norm(total, total.shape[-1:], scale, eps).to(x.dtype), total.to(x.dtype)


def residual_layer_norm(
    x: Tensor, residual: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> tuple[Tensor, Tensor]:
    total = x.to(_widest(x)) + residual
    scale, shift = (None if t is None else t.to(total.dtype) for t in (weight, bias))
    return F.layer_norm(total, total.shape[-1:], scale, shift, eps).to(x.dtype), total.to(x.dtype)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float = 0.0,
    window: int = 0,
) -> tuple[Tensor, Tensor]:
    group = query.shape[1] // max(key.shape[1], 1)
    q, k, v = (
        t.to(_widest(query)) for t in (query, key.repeat_interleave(group, 1), value.repeat_interleave(group, 1))
    )
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = softcap * torch.tanh(scores / softcap) if softcap else scores
    if attn_mask is not None and attn_mask.dtype != torch.bool:
        scores = scores + attn_mask
    ahead = torch.arange(k.shape[2], device=q.device) - torch.arange(q.shape[2], device=q.device)[:, None]
    seen = torch.ones_like(ahead, dtype=torch.bool) if window == 0 else ahead.abs() < window
    seen = seen & (ahead <= 0) if is_causal else seen
    seen = (seen if attn_mask is None or attn_mask.dtype != torch.bool else seen & attn_mask).expand(scores.shape)
    # Queries that see nothing get zeros, in gradients too: a score that is seen by no one is no number.
    nothing = ~seen.any(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(~seen & ~nothing, float("-inf")), -1).masked_fill(nothing, 0.0)
    lse = torch.logsumexp(scores.masked_fill(~seen, float("-inf")), -1)
    return (weights @ v).to(query.dtype), lse


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


def _max_pool(rank: int, with_indices: bool) -> Callable[..., Any]:
    function = getattr(F, f"max_pool{rank}d")

    def pool(
        input: Tensor,
        kernel_size: list[int],
        stride: list[int] = [],
        padding: list[int] = [0],
        dilation: list[int] = [1],
        ceil_mode: bool = False,
    ) -> Any:
        return function(input, kernel_size, stride or None, padding, dilation, ceil_mode, with_indices)

    return pool


def _avg_pool(rank: int) -> Callable[..., Any]:
    function = getattr(F, f"avg_pool{rank}d")

    def pool(
        input: Tensor,
        kernel_size: list[int],
        stride: list[int] = [],
        padding: list[int] = [0],
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int = 0,
    ) -> Any:
        if rank > 1:
            return function(
                input, kernel_size, stride or None, padding, ceil_mode, count_include_pad, divisor_override or None
            )
        if not divisor_override:
            return function(input, kernel_size, stride or None, padding, ceil_mode, count_include_pad)
        # One dimension has no such argument; as a plane of height 1 it does.
        wide = F.avg_pool2d(
            input.unsqueeze(-2),
            [1, *kernel_size],
            [1, *(stride or kernel_size)],
            [0, *padding],
            ceil_mode,
            True,
            divisor_override,
        )
        return wide.squeeze(-2)

    return pool


def _conv(rank: int) -> Callable[..., Any]:
    # How PyTorch multiplies float32 in its own convolutions, its settings alone decide.
    function = getattr(F, f"conv{rank}d")

    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: list[int] = [1],
        padding: list[int] = [0],
        dilation: list[int] = [1],
        groups: int = 1,
        auto_pad: str = "",
        allow_tf32: bool = False,
    ) -> Any:
        return function(input, weight, bias, stride, auto_pad or padding, dilation, groups)

    return conv


def _conv_fused(rank: int) -> Callable[..., Any]:
    run = _conv(rank)

    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        residual: Tensor | None = None,
        stride: list[int] = [1],
        padding: list[int] = [0],
        dilation: list[int] = [1],
        groups: int = 1,
        auto_pad: str = "",
        activation: str = "none",
        allow_tf32: bool = False,
        pool: str = "none",
    ) -> Any:
        result = finished(run(input, weight, bias, stride, padding, dilation, groups, auto_pad), activation, residual)
        return result.mean(list(range(-rank, 0)), keepdim=True) if pool == "mean" else result

    return conv


def scaled_conv2d(
    input: Tensor,
    weight: Tensor,
    scale_input: Tensor,
    scale_weight: Tensor,
    out_dtype: torch.dtype,
    bias: Tensor | None = None,
    stride: list[int] = [1],
    padding: list[int] = [0],
    dilation: list[int] = [1],
    groups: int = 1,
    auto_pad: str = "",
    activation: str = "none",
) -> Tensor:
    scaled = weight.float() * scale_weight.reshape(-1, 1, 1, 1)
    added = None if bias is None else bias.float()
    result = F.conv2d(
        input.float() * scale_input.reshape(()), scaled, added, stride, auto_pad or padding, dilation, groups
    )
    return finished(result, activation).to(out_dtype)


def _conv_transpose(rank: int) -> Callable[..., Any]:
    function = getattr(F, f"conv_transpose{rank}d")

    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: list[int] = [1],
        padding: list[int] = [0],
        output_padding: list[int] = [0],
        groups: int = 1,
        dilation: list[int] = [1],
    ) -> Any:
        return function(input, weight, bias, stride, padding, output_padding, groups, dilation)

    return conv


FALLBACKS: dict[str, Callable[..., Any]] = {
    f"kpkg::{function.__name__}": function
    for function in (
        vector_add, softmax, log_softmax, logsumexp, layer_norm, native_layer_norm, rms_norm, scaled_conv2d, add, sub,
        gelu, swiglu, geglu,
        sum, mean, amax, amin, prod, vector_norm, argmax, argmin, cumsum, cumprod, cross_entropy, kl_div, group_norm,
        native_group_norm,
        instance_norm, batch_norm, batch_norm_training, moved_statistics, residual_tanh_gated_rmsnorm,
        residual_rms_norm, residual_layer_norm,
        attention, scaled_dot_product_attention,
    )
}  # fmt: skip
FALLBACKS |= {
    f"kpkg::{name}": getattr(torch, name) for name in "mul div minimum maximum exp log sqrt abs sigmoid tanh".split()
}
FALLBACKS |= {
    f"kpkg::{name}": getattr(F, name)
    for name in "relu leaky_relu silu elu selu softplus hardtanh hardsigmoid hardswish mish softsign".split()
}
for _rank in (1, 2, 3):
    FALLBACKS[f"kpkg::max_pool{_rank}d"] = _max_pool(_rank, False)
    FALLBACKS[f"kpkg::max_pool{_rank}d_with_indices"] = _max_pool(_rank, True)
    FALLBACKS[f"kpkg::avg_pool{_rank}d"] = _avg_pool(_rank)
    FALLBACKS[f"kpkg::conv{_rank}d"] = _conv(_rank)
    FALLBACKS[f"kpkg::conv{_rank}d_fused"] = _conv_fused(_rank)
    FALLBACKS[f"kpkg::conv_transpose{_rank}d"] = _conv_transpose(_rank)
