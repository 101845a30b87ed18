"""Adapts layers of other libraries that compute the same as an op of kpkg.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor, nn

from kpkg import _experts, _latent, _moe_layers
from kpkg.nn import Layer, replacements

# Hugging Face gives the same norm a new name for each model. Norms that add a constant to the weight, or scale in
# another way, are left out.
_RMS_NORMS = frozenset(
    f"{model}RMSNorm"
    for model in "Llama Mistral Mixtral Qwen2 Qwen2Moe Qwen3 Qwen3Moe Phi3 Cohere2 Deepseek DeepseekV2 DeepseekV3 "
    "Granite Olmo2 Starcoder2 InternLM2 Mllama MllamaText Pixtral Smol SmolLM3 Glm Glm4 Ernie4_5 Mamba Mamba2 Jamba "
    "Zamba".split()
) | {"T5LayerNorm", "MT5LayerNorm", "UMT5LayerNorm"}
_ACTIVATIONS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "GELUActivation": ("kpkg::gelu", ()),
    "SiLUActivation": ("kpkg::silu", ()),
    "NewGELUActivation": ("kpkg::gelu", ("tanh",)),
    "GELUTanh": ("kpkg::gelu", ("tanh",)),
    "PytorchGELUTanh": ("kpkg::gelu", ("tanh",)),
    "MishActivation": ("kpkg::mish", ()),
}


class _AdaptedRMSNorm(Layer, op="rms_norm"):
    def _arguments(self, input: Tensor, *more: Any) -> tuple[Any, ...]:
        eps = self.variance_epsilon if hasattr(self, "variance_epsilon") else self.eps
        return input, self.weight.shape, self.weight, eps

    def _example_inputs(self) -> tuple[Tensor, ...]:
        return (torch.empty(2, *self.weight.shape, device="meta"),)


class _AdaptedActivation(Layer):
    after: tuple[Any, ...] = ()

    def _arguments(self, input: Tensor, *more: Any) -> tuple[Any, ...]:
        return input, *self.after


@functools.cache
def counterpart(kind: type[nn.Module]) -> type[Layer] | None:
    """Returns the layer type that can replace layers of exactly this type, or None."""
    known = replacements().get(kind)
    if known is not None:
        return known
    if not kind.__module__.startswith("transformers."):
        return None
    contents: dict[str, Any] = {"__module__": __name__}
    if kind.__name__ in _RMS_NORMS:
        base: type[Layer] = _AdaptedRMSNorm
    elif kind.__name__ in _ACTIVATIONS:
        base, (op, after) = _AdaptedActivation, _ACTIVATIONS[kind.__name__]
        contents |= {"kpkg_ops": (op,), "after": after}
    elif kind.__name__ in _latent.KINDS and _latent.suits(kind):
        base = _latent.LatentAttention
    elif _experts.is_fp8(kind):
        base = _moe_layers.Fp8Experts
    elif _experts.is_stacked(kind):
        base = _moe_layers.StackedExperts
    elif _experts.is_list_block(kind):
        base = _moe_layers.ListedExperts
    else:
        return None
    return type(f"Kpkg{kind.__name__}", (base, kind), contents)
