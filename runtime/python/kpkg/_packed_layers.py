"""Finds layers of Hugging Face's models that hold weights of quantised checkpoints, and makes kpkg's in their place.

Layers are found by the names of their tensors, so that the package that made them need not be there.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from kpkg.nn import QuantizedLinear

_HALVES = (torch.float16, torch.bfloat16)
#: The tensors of weights in words, in the layouts of GPTQ and AWQ, and of compressed-tensors.
_FORMS = ({"qweight", "qzeros", "scales"}, {"weight_packed", "weight_scale", "weight_shape"})
_METHODS = ("gptq", "awq", "compressed-tensors", "fp8")


def holds_packed(layer: nn.Module) -> bool:
    """Returns whether a layer holds a quantised weight: tensors with the names that checkpoints have."""
    tensors = _tensors(layer)
    if any(form <= tensors.keys() for form in _FORMS):
        return True
    names = {"weight_scale", "weight_scale_inv"} & tensors.keys()
    return bool(names) and tensors.get("weight", torch.empty(0)).dtype in (torch.int8, torch.float8_e4m3fn)


def _tensors(layer: nn.Module) -> dict[str, Tensor]:
    found: dict[str, Tensor | None] = {**layer._parameters, **layer._buffers}
    return {name: tensor for name, tensor in found.items() if tensor is not None}


def _mapping(value: Any) -> Mapping[str, Any]:
    """Returns a configuration as a mapping: a dict, or an object of transformers."""
    if isinstance(value, Mapping):
        return value
    found = value.to_dict() if hasattr(value, "to_dict") else getattr(value, "__dict__", {})
    return found if isinstance(found, Mapping) else {}


def _text(value: Any) -> str:
    """Returns the text of a value that may be an item of an enumeration."""
    return str(getattr(value, "value", value)).lower()


def replacement(model: nn.Module, layer: nn.Module) -> QuantizedLinear:
    """Returns kpkg's layer in place of one that holds a quantised weight.

    Raises ValueError with the reason if there is none.
    """
    given = getattr(getattr(model, "config", None), "quantization_config", None)
    if given is None:
        raise ValueError("the model has no config.quantization_config")
    config = _mapping(given)
    method = _text(config.get("quant_method"))
    if method not in _METHODS:
        raise ValueError(f"quant_method is {method}, expected one of {', '.join(_METHODS)}")
    tensors = _tensors(layer)
    dtype = _dtype(model, tensors)
    if dtype not in _HALVES:
        raise ValueError(f"inputs are {dtype}, expected torch.float16 or torch.bfloat16")
    layout, bits = _layout(method, config, tensors)
    activations = _activations(config, tensors) if method == "compressed-tensors" else None
    return QuantizedLinear.from_checkpoint(layout, tensors, bits=bits, dtype=dtype, activations=activations)


def _dtype(model: nn.Module, tensors: Mapping[str, Tensor]) -> torch.dtype:
    """Returns the dtype of the layer's inputs: of the model's first wide parameter, else of the scales."""
    wide = (p.dtype for p in model.parameters() if p.is_floating_point() and p.element_size() > 1)
    scales = (tensors[name].dtype for name in ("scales", "weight_scale", "weight_scale_inv") if name in tensors)
    return next(wide, next(scales, torch.float32))


def _layout(method: str, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> tuple[str, int]:
    """Returns the layout of the tensors as `kpkg.quantized.pack` names it, and the bits of words."""
    if method == "fp8":
        return "fp8", 8
    if method == "compressed-tensors":
        if "weight_packed" not in tensors:
            return "compressed-tensors", 8
        return "compressed-tensors", _bits(tensors["weight_packed"].shape[1], int(tensors["weight_shape"][1]))
    n = tensors["scales"].shape[-1]
    bits = int(config.get("bits", config.get("w_bit", _bits(tensors["qzeros"].shape[-1], n))))
    if method == "awq":
        version = _text(config.get("version", config.get("format", "gemm")))
        if version != "gemm":
            raise ValueError(f"AWQ's layout is {version}, expected gemm")
        return "awq", bits
    return "gptq_v2" if _text(config.get("checkpoint_format", "gptq")) == "gptq_v2" else "gptq", bits


def _bits(words: int, numbers: int) -> int:
    """Returns the bits of numbers that fill so many words of 32 bits."""
    return 8 if words * 4 >= numbers and words * 8 >= 2 * numbers else 4


def _activations(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str | None:
    """Returns the dtype of activations that are quantised in each call, or None."""
    for group in _mapping(config.get("config_groups", {})).values():
        given = _mapping(group).get("input_activations")
        if given is None or "weight" not in tensors:
            return None
        wanted = _mapping(given)
        if wanted.get("num_bits") != 8 or not wanted.get("dynamic") or not wanted.get("symmetric", True):
            raise ValueError(f"input_activations are {dict(wanted)}, expected 8 bits, symmetric and dynamic")
        return "float8_e4m3fn" if tensors["weight"].dtype == torch.float8_e4m3fn else "int8"
    return None
