"""Lists the different elements of a tensor, with the interface of `torch.unique`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from kpkg._default import ops


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Returns the different elements of a tensor in ascending order, like ``torch.unique``.

    The results are those of ``kpkg.ops.unique_padded`` without its padding, so that the host waits for their number.
    With `dim`, for a dtype without kernel, or without a package, ``torch.unique`` runs as the fallback policy of that
    op says.

    Args:
        input: A tensor of any shape.
        sorted: As in PyTorch. Elements are sorted in either case, unless ``torch.unique`` runs.
        return_inverse: Also returns where in the values each element is: int64, of the input's shape.
        return_counts: Also returns how often each value occurs: int64.
        dim: Compares slices along this dimension, in PyTorch.

    Raises:
        TypeError: `input` is no tensor.
        KernelError: ``torch.unique`` would have to run, and the policy is "strict".
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"input must be a tensor, not {type(input).__name__}")
    op = ops["kpkg::unique_padded"]
    reason = _why_not(op.op, input, dim)
    if reason is not None:
        op.note_fallback(reason)
        return torch.unique(input, sorted, return_inverse, return_counts, dim)
    values, inverse, counts, number = op(input)
    n = int(number)
    found = [_first(values, n)]
    if return_inverse:
        found.append(inverse)
    if return_counts:
        found.append(_first(counts, n))
    return found[0] if len(found) == 1 else tuple(found)


def _first(padded: Tensor, n: int) -> Tensor:
    """Returns the first elements in memory of their own, so that the rest of the memory is freed."""
    return padded if n == len(padded) else padded[:n].clone()


def _why_not(op: Any, input: Tensor, dim: int | None) -> str | None:
    """Returns why no kernel runs such a call, "" where no package has the op, or None if one runs."""
    if op is None:
        return ""
    if dim is not None:
        return "it compares elements, not slices along dim"
    if not _has_kernel(op, input.dtype, input.device):
        return f"no kernel takes {input.dtype} on {input.device.type}"
    return None


@functools.lru_cache
def _has_kernel(op: Any, dtype: torch.dtype, device: torch.device) -> bool:
    return bool(op.supports(torch.empty(2, dtype=dtype, device=device)))
