"""Defines the cross entropy of a linear layer of `kpkg.nn`, as PyTorch has it from 2.13 on.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from kpkg.nn._layer import Layer


class LinearCrossEntropyLoss(Layer, nn.LinearCrossEntropyLoss, op="linear_cross_entropy"):
    """Computes the cross entropy of logits that a linear layer would give, a chunk of them at a time.

    Input: [..., in_features]; target: int64 [...]. While training, the gradient of the input comes from the pass that
    computes the loss. With class weights, ``out_features`` or class probabilities, PyTorch runs.
    """

    def forward(self, input: Tensor, target: Tensor) -> Any:
        """Returns the loss, a scalar unless ``reduction="none"``."""
        if target.is_floating_point():
            return self.torch_layer.forward(self, input, target)
        found = super().forward(input, target)
        return found[0] if isinstance(found, (tuple, list)) else found

    def _arguments(self, input: Tensor, *more: Any) -> tuple[Any, ...]:
        (target,) = more
        ignored = -100 if self.ignore_index is None else self.ignore_index
        wants_gradient = torch.is_grad_enabled() and input.requires_grad
        options = self.linear.bias, self.reduction, ignored, self.label_smoothing, 0.0, wants_gradient
        return input, self.linear.weight, target, *options

    def _example_inputs(self) -> tuple[Tensor, ...]:
        input = torch.empty(2, self.linear.in_features, device="meta")
        return input, torch.empty(2, dtype=torch.int64, device="meta")

    def _stands_back(self) -> bool:
        return self.weight is not None or bool(self.out_features)
