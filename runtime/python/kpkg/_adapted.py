"""Layers of other libraries that compute what an op of kpkg computes, and calls of PyTorch functions that do.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from kpkg import _default
from kpkg.nn import Layer, replacements

# Hugging Face names the same norm anew for each model; those that add to the weight or scale otherwise are not among these.
_RMS_NORMS = frozenset(
    f"{model}RMSNorm"
    for model in "Llama Mistral Mixtral Qwen2 Qwen2Moe Qwen3 Qwen3Moe Phi3 Cohere2 Deepseek DeepseekV2 DeepseekV3 Granite Olmo2 Starcoder2 "
    "InternLM2 Mllama MllamaText Pixtral Smol SmolLM3 Glm Glm4 Ernie4_5 Mamba Mamba2 Jamba Zamba".split()
) | {"T5LayerNorm", "MT5LayerNorm", "UMT5LayerNorm"}
_ACTIVATIONS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "GELUActivation": ("kpkg::gelu", ()),
    "SiLUActivation": ("kpkg::silu", ()),
    "NewGELUActivation": ("kpkg::gelu", ("tanh",)),
    "GELUTanh": ("kpkg::gelu", ("tanh",)),
    "PytorchGELUTanh": ("kpkg::gelu", ("tanh",)),
    "MishActivation": ("kpkg::mish", ()),
}


class _AdaptedRMSNorm(Layer):
    kpkg_ops = ("kpkg::rms_norm",)

    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        eps = self.variance_epsilon if hasattr(self, "variance_epsilon") else self.eps
        return input, self.weight.shape, self.weight, eps

    def _example_input(self) -> Tensor:
        return torch.empty(2, *self.weight.shape, device="meta")


class _AdaptedActivation(Layer):
    after: tuple[Any, ...] = ()

    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        return input, *self.after


@functools.cache
def counterpart(kind: type[nn.Module]) -> type[Layer] | None:
    """The layer that can stand for one of exactly this type; None without one."""
    known = replacements().get(kind)
    if known is not None:
        return known
    if not kind.__module__.startswith("transformers."):
        return None
    if kind.__name__ in _RMS_NORMS:
        return type(f"Kpkg{kind.__name__}", (_AdaptedRMSNorm, kind), {"torch_layer": kind, "__module__": __name__})
    if kind.__name__ in _ACTIVATIONS:
        op, after = _ACTIVATIONS[kind.__name__]
        contents = {"torch_layer": kind, "kpkg_ops": (op,), "after": after, "__module__": __name__}
        return type(f"Kpkg{kind.__name__}", (_AdaptedActivation, kind), contents)
    return None


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """torch.bmm by kpkg::gemm_batched. [B, M, K] and [B, K, N] to [B, M, N]."""
    return _default.ops["kpkg::gemm_batched"](input, mat2)  # type: ignore[no-any-return]


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
    """torch.nn.functional.scaled_dot_product_attention by kpkg::attention. [..., H, L, E], [..., S, E], [..., S, V] to [..., L, V].

    PyTorch runs with dropout, for heads above 256 elements, ranks other than 3 and 4, gradients of the mask, and what it would refuse.
    """
    tensors = (query, key, value)
    suits = (
        not dropout_p
        and query.dim() in (3, 4)
        and all(t.dim() == query.dim() and t.dtype == query.dtype and 0 < t.shape[-1] <= 256 and t.shape[:-3] == query.shape[:-3] for t in tensors)
        and key.shape[:-1] == value.shape[:-1]
        and (query.shape[-3] == key.shape[-3] or (enable_gqa and query.dim() == 4))
        and scale != 0
        and (attn_mask is None or not (is_causal or attn_mask.requires_grad) and attn_mask.dtype in (torch.bool, query.dtype))
    )
    if not suits:
        return F.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    q, k, v = (t if t.dim() == 4 else t.unsqueeze(0) for t in tensors)
    out: Tensor = _default.ops["kpkg::attention"](q, k, v, attn_mask, is_causal, scale or 0.0)[0]
    return out if query.dim() == 4 else out.squeeze(0)


# By PyTorch's function: what stands for it, and the ops that this needs.
CALLS: dict[Callable[..., Any], tuple[Callable[..., Tensor], tuple[str, ...]]] = {
    torch.bmm: (bmm, ("kpkg::gemm_batched",)),
    F.scaled_dot_product_attention: (scaled_dot_product_attention, ("kpkg::attention",)),
}


class Replacing(TorchFunctionMode):
    """Within it, calls of the functions in `table` are calls of their replacements."""

    def __init__(self, table: dict[Callable[..., Any], Callable[..., Any]]) -> None:
        super().__init__()
        self.table = table

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.table.get(func, func)(*args, **(kwargs or {}))


class Watching(TorchFunctionMode):
    """Tells `found(function, args, kwargs)` of each call of one of CALLS."""

    def __init__(self, found: Callable[[Any, Any, Any], None]) -> None:
        super().__init__()
        self.found = found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in CALLS:
            self.found(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))
