"""Replaces PyTorch's softmax, norms, activations, convolutions and pooling by ops of kpkg.

Each function takes the arguments of PyTorch's function of the same name. It returns NotImplemented for a call that no
op computes.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from kpkg import _default
from kpkg.nn._convolutions import _allows_tf32

_FLOATS = frozenset({torch.float32, torch.float16, torch.bfloat16, torch.float64})
_DEVICES = frozenset({"cpu", "cuda"})


@dataclass(frozen=True, eq=False)
class Call:
    """Describes the replacement of some functions of PyTorch, which all take the same arguments."""

    name: str
    #: Full names of the ops that the replacement calls.
    ops: tuple[str, ...]
    run: Callable[..., Any]
    functions: tuple[Any, ...]
    #: Whether compiled code calls the replacement, too. PyTorch fuses other functions into its own kernels.
    when_compiled: bool = True


def op(name: str) -> _default.DefaultOp:
    return _default.ops[f"kpkg::{name}"]


def alike(first: Any, *others: Any) -> bool:
    """Returns whether all are dense tensors of one float dtype on one device.

    Any but the first may be None.
    """
    if type(first) not in (Tensor, nn.Parameter) or first.dtype not in _FLOATS or first.layout != torch.strided:
        return False
    if first.device.type not in _DEVICES:
        return False
    for each in others:
        if each is None:
            continue
        if type(each) not in (Tensor, nn.Parameter) or each.dtype != first.dtype or each.device != first.device:
            return False
        if each.layout != torch.strided:
            return False
    return True


# Arguments that no op has, with the values for which an op computes the call.
_NEUTRAL = {"inplace": False, "return_indices": False, "training": False, "use_input_stats": True}
# Arguments that have no effect on such calls.
_WITHOUT_EFFECT = frozenset({"momentum", "cudnn_enable", "cudnn_enabled"})


def forwarded(name: str, arguments: str) -> Callable[..., Any]:
    """Returns the replacement of PyTorch's function `name`, whose op has the same arguments by the same names.

    `arguments` are those of the function, in its order.
    """
    names = arguments.split()

    def run(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(names, args)) | kwargs
        found = op(name)
        if found.op is None:
            return NotImplemented
        if isinstance(given.get("padding"), str):
            given["auto_pad"] = given.pop("padding")
        values: list[Any] = []
        for argument in found.op.arguments:
            value = given.pop(argument.name, None)
            if argument.name == "allow_tf32":
                value = _allows_tf32(values[0])
            elif value is None and not argument.has_default:
                return NotImplemented
            elif value is None:
                value = argument.default
            elif argument.is_list and isinstance(value, int):
                value = [value]
            values.append(value)
        for other, value in given.items():
            if other not in _WITHOUT_EFFECT and value is not None and value != _NEUTRAL.get(other):
                return NotImplemented
        tensors = [value for value, argument in zip(values, found.op.arguments) if argument.is_tensor]
        return found(*values) if alike(*tensors) else NotImplemented

    run.__name__ = name
    return run


def softmax(name: str, arguments: str) -> Callable[..., Any]:
    """Returns softmax or log_softmax with these arguments: torch.nn.functional has others than torch."""
    names = arguments.split()

    def run(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(names, args)) | kwargs
        input, dim, dtype = given["input"], given.get("dim"), given.get("dtype")
        if not isinstance(dim, int) or not alike(input) or dtype not in (None, *_FLOATS):
            return NotImplemented
        return op(name)(input, dim, dtype)

    run.__name__ = name
    return run


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Any:
    if not alike(input, weight):
        return NotImplemented
    return op("rms_norm")(input, normalized_shape, weight, torch.finfo(input.dtype).eps if eps is None else float(eps))


def relu6(input: Tensor, inplace: bool = False) -> Any:
    return op("hardtanh")(input, 0.0, 6.0) if not inplace and alike(input) else NotImplemented


def adaptive_avg_pool(rank: int) -> Callable[..., Any]:
    """Returns adaptive average pooling to one mean for each channel."""

    def run(input: Tensor, output_size: Any) -> Any:
        each = [output_size] * rank if isinstance(output_size, int) else list(output_size)
        if each != [1] * rank or not alike(input) or input.dim() <= rank:
            return NotImplemented
        return op("mean")(input, list(range(-rank, 0)), True)

    run.__name__ = f"adaptive_avg_pool{rank}d"
    return run
