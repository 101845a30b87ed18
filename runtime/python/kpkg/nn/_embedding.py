"""Defines the embedding layer of `kpkg.nn`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from kpkg.nn._layer import Layer


class Embedding(Layer, nn.Embedding, op="embedding"):
    """Returns rows of a table by index.

    Input: (...) of int64 or int32; output: (..., embedding_dim) of the weight's dtype. With ``max_norm``,
    ``scale_grad_by_freq`` or ``sparse``, PyTorch runs.
    """

    def _arguments(self, input: Tensor, *more: Any) -> tuple[Any, ...]:
        return self.weight, input, -1 if self.padding_idx is None else self.padding_idx

    def _example_inputs(self) -> tuple[Tensor, ...]:
        return (torch.empty(2, dtype=torch.int64, device="meta"),)

    def _example(self, device: torch.device, dtype: torch.dtype) -> tuple[Any, ...]:
        return super()._example(device, dtype if dtype.is_floating_point else self.weight.dtype)

    def _stands_back(self) -> bool:
        return self.max_norm is not None or self.scale_grad_by_freq or self.sparse
