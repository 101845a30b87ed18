"""Softmax, norms and losses with PyTorch's signatures, computed by kpkg.

The functions refuse the arguments that PyTorch refuses; they raise LeftToPyTorch for calls that kpkg does not support.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from opinfo.libraries import LeftToPyTorch, library


def _along(op: str, input: Tensor, dim: int, dtype: torch.dtype | None) -> Tensor:
    result: Tensor = getattr(library("softmax"), op)(input, dim, dtype)
    return result


def softmax(input: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    return _along("softmax", input, dim, dtype)


def log_softmax(input: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    return _along("log_softmax", input, dim, dtype)


def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    result: Tensor = library("norm").layer_norm(input, list(normalized_shape), weight, bias, eps)
    return result


def native_layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    out, mean, rstd = library("norm").native_layer_norm(input, list(normalized_shape), weight, bias, eps)
    if input.device.type == "cpu":  # PyTorch rounds the statistics to the input's dtype on CPUs
        mean, rstd = mean.to(input.dtype), rstd.to(input.dtype)
    return out, mean, rstd


def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    if eps is None:
        eps = torch.finfo(torch.float64 if input.dtype == torch.float64 else torch.float32).eps
    result: Tensor = library("norm").rms_norm(input, list(normalized_shape), weight, eps)
    return result


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    result: Tensor = library("channel_norm").group_norm(input, num_groups, weight, bias, eps)
    return result


def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5
) -> Tensor:  # fmt: skip
    if running_mean is not None or not use_input_stats:
        raise LeftToPyTorch("running statistics are PyTorch's")
    result: Tensor = library("channel_norm").instance_norm(input, weight, bias, eps)
    return result


def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5
) -> Tensor:  # fmt: skip
    if training or running_mean is None or running_var is None:
        if input.dim() < 2:
            raise LeftToPyTorch("a vector has no channels")
        torch.nn.functional._verify_batch_size(input.shape)
        trained: Tensor = library("channel_norm").batch_norm_training(input, weight, bias, eps)[0]
        return trained
    result: Tensor = library("channel_norm").batch_norm(input, running_mean, running_var, weight, bias, eps)
    return result


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    if target.is_floating_point():
        raise LeftToPyTorch("targets are class numbers")
    result: Tensor = library("cross_entropy").cross_entropy(
        input, target, weight, ignore_index, reduction, label_smoothing
    )
    return result
