"""Reads blocks of experts of Hugging Face's models: their parameters, and how they route and gate.

transformers has had two layouts. From 5.0 on, a module has the stacked parameters of all experts. Before, each expert
was a module in a list, but for gpt-oss.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

#: Names of the projections of an expert that is a module of its own: gate, up and down.
_PROJECTIONS = (("gate_proj", "up_proj", "down_proj"), ("w1", "w3", "w2"))
_LIST_BLOCKS = frozenset({"MixtralSparseMoeBlock", "Qwen3MoeSparseMoeBlock", "DeepseekV3MoE"})
_MOST = 512  # experts
_BLOCK = 128  # rows and columns of the blocks with a scale


@dataclass
class Described:
    """Describes a block: parameters and options as of `kpkg.nn.MoE`."""

    gate_up: nn.Parameter
    down: nn.Parameter
    router_weight: nn.Parameter
    top_k: int
    activation: str = "silu"
    interleaved: bool = False
    transposed: bool = False
    alpha: float = 1.702
    limit: float = 7.0
    gate_up_bias: nn.Parameter | None = None
    down_bias: nn.Parameter | None = None
    gate_up_scale: nn.Parameter | None = None
    down_scale: nn.Parameter | None = None
    router_bias: nn.Parameter | None = None
    choice_bias: Tensor | None = None
    scoring: str = "softmax"
    groups: int = 1
    top_groups: int = 1
    normalised: bool = True
    scale: float = 1.0
    shared: nn.Module | None = None


def activation_of(layer: nn.Module) -> str | None:
    """Returns the op's name of the activation of an expert, or None for others."""
    kind = type(getattr(layer, "act_fn", None)).__name__
    if kind in ("SiLU", "SiLUActivation"):
        return "silu"
    function = getattr(layer, "act_fn", None)
    is_exact = kind == "GELUActivation" or isinstance(function, nn.GELU) and function.approximate == "none"
    return "gelu" if is_exact else None


def is_stacked(kind: type[nn.Module]) -> bool:
    """Returns whether modules of the type hold the stacked parameters of experts."""
    return kind.__name__ == "GptOssExperts" or kind.__name__.endswith("Experts") and hasattr(kind, "_apply_gate")


def is_fp8(kind: type[nn.Module]) -> bool:
    """Returns whether modules of the type hold experts of 8-bit floats with scales of blocks."""
    return kind.__name__ == "FP8Experts"


def is_list_block(kind: type[nn.Module]) -> bool:
    """Returns whether modules of the type are blocks with a list of experts."""
    prefix = kind.__name__.removesuffix("SparseMoeBlock").removesuffix("MoE")
    return kind.__name__ in _LIST_BLOCKS and not hasattr(sys.modules.get(kind.__module__), f"{prefix}Experts")


def reason_against_stacked(layer: Any) -> str:
    """Returns why the op cannot compute stacked experts, or ""."""
    if getattr(type(layer), "torch_layer", type(layer)).__name__ == "GptOssExperts":
        has = all(hasattr(layer, name) for name in ("gate_up_proj", "gate_up_proj_bias", "down_proj_bias", "limit"))
        return _reason_of_shapes(layer, True) if has else "its parameters have other names"
    options = {"has_gate": True, "has_bias": False, "is_transposed": False, "is_concatenated": True}
    for name, wanted in (options | {"has_post_expert_norm": False}).items():
        if getattr(layer, name, wanted) != wanted:
            return f"its {name} is {not wanted}"
    gate = type(layer)._apply_gate
    if getattr(gate, "__name__", "") != "_default_apply_gate":
        return "it has a gate of its own"
    if activation_of(layer) is None:
        return f"its activation is {type(getattr(layer, 'act_fn', None)).__name__}"
    return _reason_of_shapes(layer, False)


def reason_against_fp8(layer: Any) -> str:
    """Returns why the op cannot compute experts of 8-bit floats, or ""."""
    if not layer.has_gate or layer.activation_scheme != "dynamic":
        return "it has no gate" if not layer.has_gate else f"its activation_scheme is {layer.activation_scheme}"
    if tuple(layer.block_size or ()) != (_BLOCK, _BLOCK):
        return f"its block_size is {layer.block_size}"
    if getattr(layer, "gate_softcap", None) is not None:
        return "its gate has a softcap"
    alpha, limit = getattr(layer, "swiglu_alpha", None), getattr(layer, "limit", None)
    if (alpha is None) != (limit is None):
        return "its gate is clamped in a way of its own"
    if alpha is None and activation_of(layer) != "silu":
        return f"its activation is {type(getattr(layer, 'act_fn', None)).__name__}"
    if reason := _reason_of_shapes(layer, False):
        return reason
    if layer.down_proj.dtype != torch.float8_e4m3fn or layer.down_proj_scale_inv.dtype != torch.float32:
        return f"its parameters are {layer.down_proj.dtype} with scales of {layer.down_proj_scale_inv.dtype}"
    return "" if layer.down_proj.shape[2] % _BLOCK == 0 else f"its inner size is no multiple of {_BLOCK}"


def gate_of_fp8(layer: Any) -> tuple[str, float, float] | tuple[str]:
    """Returns the op's arguments for the gate of experts of 8-bit floats."""
    if getattr(layer, "swiglu_alpha", None) is None:
        return ("silu",)
    return "clamped_swiglu", float(layer.swiglu_alpha), float(layer.limit)


def _reason_of_shapes(layer: Any, transposed: bool) -> str:
    up, down = getattr(layer, "gate_up_proj", None), getattr(layer, "down_proj", None)
    if not (isinstance(up, Tensor) and isinstance(down, Tensor)) or up.dim() != 3 or down.dim() != 3:
        return "its parameters are not stacked matrices"
    up, down = (up.mT, down.mT) if transposed else (up, down)
    if up.shape[0] > _MOST:
        return f"it has more than {_MOST} experts"
    if tuple(up.shape) != (down.shape[0], 2 * down.shape[2], down.shape[1]):
        return f"its parameters have shapes {tuple(up.shape)} and {tuple(down.shape)}"
    if not up.is_floating_point() or up.dtype != down.dtype:
        return f"its parameters are {up.dtype} and {down.dtype}"
    return ""


def projections(expert: nn.Module) -> tuple[nn.Linear, nn.Linear, nn.Linear] | None:
    """Returns gate, up and down of an expert that is a module, if these are linear layers without bias and hooks."""
    for names in _PROJECTIONS:
        found = [getattr(expert, name, None) for name in names]
        if all(_is_plain(each) for each in found) and set(expert._modules) <= {*names, "act_fn"}:
            return tuple(found)  # type: ignore[return-value]
    return None


def _is_plain(layer: Any) -> bool:
    is_linear = type(layer) is nn.Linear or getattr(type(layer), "torch_layer", None) is nn.Linear
    return is_linear and layer.bias is None and "forward" not in layer.__dict__ and not _has_hooks(layer)


def _has_hooks(layer: nn.Module) -> bool:
    return bool(layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks or layer._backward_pre_hooks)


def reason_against_list(block: Any) -> str:
    """Returns why the op cannot compute the experts of a block with a list of them, or ""."""
    experts = getattr(block, "experts", None)
    if not isinstance(experts, nn.ModuleList) or not 0 < len(experts) <= _MOST:
        return "its experts are no list of up to 512 modules"
    first = projections(experts[0])
    if first is None or activation_of(experts[0]) is None:
        return "its experts are not gate_proj, up_proj and down_proj with silu or gelu"
    for expert in experts:
        found = projections(expert)
        if type(expert) is not type(experts[0]) or found is None or _has_hooks(expert):
            return "its experts differ"
        if [(p.weight.shape, p.weight.dtype, p.weight.device) for p in found] != [
            (p.weight.shape, p.weight.dtype, p.weight.device) for p in first
        ]:
            return "its experts differ"
    if first[0].weight.is_meta:
        return "its parameters have no memory"
    return ""


def stack_experts(block: Any, share: bool) -> tuple[Tensor, Tensor]:
    """Returns the stacked parameters of a block with a list of experts: gate and up, and down.

    With `share`, the parameters of each expert become views of the stacked ones, so that both stay equal and memory is
    not spent twice.
    """
    found = [projections(expert) for expert in block.experts]
    assert None not in found, "reason_against_list has checked this"
    with torch.no_grad():
        up = torch.stack([torch.cat((gate.weight, value.weight)) for gate, value, _ in found])  # type: ignore[misc]
        down = torch.stack([last.weight for _, _, last in found])  # type: ignore[misc]
        if share:
            rows = down.shape[2]
            for e, (gate, value, last) in enumerate(found):  # type: ignore[misc]
                gate.weight.data, value.weight.data, last.weight.data = up[e, :rows], up[e, rows:], down[e]
    return up, down


def places_of(block: Any) -> tuple[int, ...]:
    """Returns where the parameters of the experts in a list are in memory."""
    return tuple(p.weight.data_ptr() for expert in block.experts for p in (projections(expert) or ()))


def describe(block: nn.Module) -> Described | str:
    """Returns the description of a block of experts, or why the op cannot compute it."""
    given: Any = block
    kind = type(block).__name__
    router = getattr(block, "router", None) if kind == "GptOssMLP" else getattr(block, "gate", None)
    if kind not in (*_LIST_BLOCKS, "GptOssMLP") or router is None:
        return "it is no block of Mixtral, Qwen3-MoE, DeepSeek-V3 or gpt-oss"
    if isinstance(given.experts, nn.ModuleList):
        if reason := reason_against_list(given):
            return reason
        up, down = (nn.Parameter(each) for each in stack_experts(given, share=False))
        activation = activation_of(given.experts[0])
    elif is_fp8(type(given.experts)):
        if reason := reason_against_fp8(given.experts):
            return reason
        up, down = given.experts.gate_up_proj, given.experts.down_proj
        activation = gate_of_fp8(given.experts)[0]
    else:
        if reason := reason_against_stacked(given.experts):
            return reason
        up, down = given.experts.gate_up_proj, given.experts.down_proj
        activation = "clamped_swiglu" if kind == "GptOssMLP" else activation_of(given.experts)
    assert activation is not None, "the reasons have checked this"
    top_k = getattr(router, "top_k", None) or given.top_k
    found = Described(up, down, router.weight, top_k, activation)
    found.router_bias = getattr(router, "bias", None)
    if is_fp8(type(given.experts)):
        found.gate_up_scale, found.down_scale = given.experts.gate_up_proj_scale_inv, given.experts.down_proj_scale_inv
        if activation == "clamped_swiglu":
            found.alpha, found.limit = gate_of_fp8(given.experts)[1:]  # type: ignore[misc]
    if kind == "GptOssMLP":
        experts = given.experts
        found.interleaved = found.transposed = True
        found.alpha, found.limit = float(experts.alpha), float(experts.limit)
        found.gate_up_bias, found.down_bias = experts.gate_up_proj_bias, experts.down_proj_bias
    elif kind.startswith("DeepseekV3"):
        found.scoring, found.choice_bias = "sigmoid", router.e_score_correction_bias
        found.groups, found.top_groups = (
            _first(router, names) for names in (("num_group", "n_group"), ("topk_group",))
        )
        found.normalised, found.scale = router.norm_topk_prob, float(router.routed_scaling_factor)
        found.shared = given.shared_experts
    elif kind.startswith("Mixtral"):
        if getattr(given, "jitter_noise", 0):
            return "its jitter_noise is not 0"
    else:
        found.normalised = _first(router, ("norm_topk_prob",), given)
    return found


def _first(owner: Any, names: tuple[str, ...], other: Any = None) -> Any:
    """Returns the first attribute that one of both has."""
    return next(getattr(each, name) for each in (owner, other) for name in names if hasattr(each, name))
