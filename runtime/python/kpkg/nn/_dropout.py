"""Defines the dropout layer of `kpkg.nn`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from kpkg.nn._layer import Layer


class Dropout(Layer, nn.Dropout, op="dropout"):
    """Sets elements to 0 with probability `p` while training.

    The mask follows from a seed that PyTorch's generator of the device draws, so `torch.manual_seed` fixes it. It is
    not stored: the gradient computes it again. The masks are others than those of torch.nn.Dropout, so that
    ``kpkg.inject`` leaves that layer. With ``inplace``, PyTorch runs.
    """

    def _arguments(self, input: Tensor, *more: Any) -> tuple[Any, ...]:
        if input.device.type == "meta":
            seed = torch.empty(1, dtype=torch.int64, device="meta")
        else:
            seed = torch.randint(2**62, (1,), dtype=torch.int64, device=input.device)
        return input, self.p, 0, 0, None, seed

    def _stands_back(self) -> bool:
        return self.inplace or not self.training
