"""Offers functions of `torch.nn.utils` over gradients: their norm, and clipping, without waiting for the device.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from kpkg import _default


def get_total_norm(tensors: Iterable[Tensor] | Tensor, norm_type: float = 2.0) -> Any:
    """Returns the norm of all tensors as one vector, on their device.

    Args:
        tensors: Tensors of one device.
        norm_type: The order of the norm, above 0 or infinite.
    """
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not listed:
        return torch.tensor(0.0)
    return _default.ops["kpkg::gradient_norm"]([t.detach() for t in listed], float(norm_type))


@torch.no_grad()
def clip_grad_norm_(parameters: Iterable[Tensor] | Tensor, max_norm: float, norm_type: float = 2.0) -> Any:
    """Scales gradients in place so that their norm is at most `max_norm`, and returns the norm before.

    Sums have a fixed order, and the host waits for nothing. A norm that is not finite scales as in PyTorch.

    Args:
        parameters: Parameters of one device; those without gradients are left out.
        max_norm: The greatest norm.
        norm_type: The order of the norm, above 0 or infinite.
    """
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    grads = [p.grad for p in listed if p.grad is not None]
    norm = get_total_norm(grads, norm_type)
    if grads:
        _default.ops["kpkg::clip_gradients_"](grads, norm, float(max_norm))
    return norm
