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


def _softmax(name: str, input: Any, dim: Any, dtype: Any) -> Any:
    if dtype is not None and isinstance(input, Tensor) and input.dtype != dtype and dtype in _FLOATS:
        input = input.to(dtype)
    return op(name)(input, dim) if isinstance(dim, int) and alike(input) else NotImplemented


def softmax_of_functional(name: str) -> Callable[..., Any]:
    """Returns softmax or log_softmax with the signature of torch.nn.functional."""

    def run(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: torch.dtype | None = None) -> Any:
        return _softmax(name, input, dim, dtype)

    run.__name__ = name
    return run


def softmax_of_tensors(name: str) -> Callable[..., Any]:
    """Returns softmax or log_softmax with the signature of torch and of Tensor's methods."""

    def run(input: Tensor, dim: int, dtype: torch.dtype | None = None) -> Any:
        return _softmax(name, input, dim, dtype)

    run.__name__ = name
    return run


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:
    if not alike(input, weight, bias):
        return NotImplemented
    return op("layer_norm")(input, list(normalized_shape), weight, bias, eps)


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Any:
    if not alike(input, weight):
        return NotImplemented
    return op("rms_norm")(
        input, list(normalized_shape), weight, torch.finfo(input.dtype).eps if eps is None else float(eps)
    )


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Any:
    return op("group_norm")(input, num_groups, weight, bias, eps) if alike(input, weight, bias) else NotImplemented


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    if training or running_mean is None or running_var is None:
        return NotImplemented
    if not alike(input, running_mean, running_var, weight, bias):
        return NotImplemented
    return op("batch_norm")(input, running_mean, running_var, weight, bias, eps)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    if not use_input_stats or running_mean is not None or running_var is not None or not alike(input, weight, bias):
        return NotImplemented
    return op("instance_norm")(input, weight, bias, eps) if input.dim() > 2 else NotImplemented


def _activation(name: str, input: Tensor, *settings: Any) -> Any:
    return op(name)(input, *settings) if alike(input) else NotImplemented


def gelu(input: Tensor, approximate: str = "none") -> Any:
    return _activation("gelu", input, approximate)


def sigmoid(input: Tensor) -> Any:
    return _activation("sigmoid", input)


def tanh(input: Tensor) -> Any:
    return _activation("tanh", input)


def relu(input: Tensor, inplace: bool = False) -> Any:
    return NotImplemented if inplace else _activation("relu", input)


def silu(input: Tensor, inplace: bool = False) -> Any:
    return NotImplemented if inplace else _activation("silu", input)


def mish(input: Tensor, inplace: bool = False) -> Any:
    return NotImplemented if inplace else _activation("mish", input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Any:
    return NotImplemented if inplace else _activation("elu", input, float(alpha))


def selu(input: Tensor, inplace: bool = False) -> Any:
    return NotImplemented if inplace else _activation("selu", input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    return NotImplemented if inplace else _activation("leaky_relu", input, float(negative_slope))


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    return NotImplemented if inplace else _activation("hardtanh", input, float(min_val), float(max_val))


def relu6(input: Tensor, inplace: bool = False) -> Any:
    return hardtanh(input, 0.0, 6.0, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Any:
    return NotImplemented if inplace else _activation("hardsigmoid", input)


def hardswish(input: Tensor, inplace: bool = False) -> Any:
    return NotImplemented if inplace else _activation("hardswish", input)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Any:
    return _activation("softplus", input, float(beta), float(threshold))


def _each(value: Any, rank: int) -> list[int]:
    """Returns one number for each dimension of an image, and an empty list for None."""
    return [] if value is None else [value] * rank if isinstance(value, int) else list(value)


def conv(rank: int) -> Callable[..., Any]:
    name = f"conv{rank}d"

    def run(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        if not alike(input, weight, bias):
            return NotImplemented
        named = isinstance(padding, str)
        each = [_each(value, rank) for value in (stride, 0 if named else padding, dilation)]
        return op(name)(input, weight, bias, *each, groups, padding if named else "", _allows_tf32(input))

    run.__name__ = name
    return run


def conv_transpose(rank: int) -> Callable[..., Any]:
    name = f"conv_transpose{rank}d"

    def run(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Any:
        if not alike(input, weight, bias):
            return NotImplemented
        each = [_each(value, rank) for value in (stride, padding, output_padding)]
        return op(name)(input, weight, bias, *each, groups, _each(dilation, rank))

    run.__name__ = name
    return run


def max_pool(rank: int) -> Callable[..., Any]:
    name = f"max_pool{rank}d"

    def run(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        if return_indices or not alike(input):
            return NotImplemented
        return op(name)(input, *(_each(value, rank) for value in (kernel_size, stride, padding, dilation)), ceil_mode)

    run.__name__ = name
    return run


def avg_pool(rank: int) -> Callable[..., Any]:
    name = f"avg_pool{rank}d"

    def run(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        if not alike(input):
            return NotImplemented
        each = [_each(value, rank) for value in (kernel_size, stride, padding)]
        return op(name)(input, *each, ceil_mode, count_include_pad, divisor_override or 0)

    run.__name__ = name
    return run


def adaptive_avg_pool(rank: int) -> Callable[..., Any]:
    """Returns adaptive average pooling to one mean for each channel."""

    def run(input: Tensor, output_size: Any) -> Any:
        if _each(output_size, rank) != [1] * rank or not alike(input) or input.dim() <= rank:
            return NotImplemented
        return op("mean")(input, list(range(-rank, 0)), True)

    run.__name__ = f"adaptive_avg_pool{rank}d"
    return run
