"""Defines the losses of `kpkg.nn`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from kpkg.nn._layer import Layer


class CrossEntropyLoss(
    Layer, nn.CrossEntropyLoss, op="cross_entropy", options="weight ignore_index reduction label_smoothing"
):
    """Computes the cross entropy of scores [C], [N, C] or [N, C, ...] and int64 class indices.

    With class probabilities as target, PyTorch runs.
    """

    def forward(self, input: Tensor, target: Tensor) -> Any:
        """Returns the loss, a scalar unless ``reduction="none"``."""
        if target.is_floating_point():
            return self.torch_layer.forward(self, input, target)
        return super().forward(input, target)

    def _example_inputs(self) -> tuple[Tensor, ...]:
        scores = torch.empty(2, 8 if self.weight is None else self.weight.shape[0], device="meta")
        return scores, torch.empty(2, dtype=torch.int64, device="meta")


class KLDivLoss(Layer, nn.KLDivLoss, op="kl_div", options="reduction log_target"):
    """Computes the Kullback-Leibler divergence of a target from logarithms of probabilities.

    Both have any shape and a float dtype.
    """

    def forward(self, input: Tensor, target: Tensor) -> Any:
        """Returns the loss, a scalar unless ``reduction="none"``."""
        return super().forward(input, target)

    def _example_inputs(self) -> tuple[Tensor, ...]:
        return (*super()._example_inputs(), *super()._example_inputs())
