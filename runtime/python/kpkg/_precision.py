"""Reads PyTorch's switches for products of float32, in the words of an op's argument `precision`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from kpkg._signature import Argument

_CUDA = 2  # of kpkg_device_type
_MEANT = {"tf32": "high", "bf16": "medium"}


def _read_backends(backend: str, op: str) -> str:
    switches = torch.backends.cuda if backend == "cuda" else torch.backends.mkldnn
    return str(getattr(switches, op).fp32_precision)


# The function behind the properties of torch.backends, in a tenth of their time: each product of float32 calls it.
_read = getattr(torch._C, "_get_fp32_precision_getter", _read_backends)


def of_device(device: int) -> str:
    """Returns "highest", "high" or "medium" for products on a device of this type, a number of kpkg.h.

    All switches of PyTorch have an effect here: torch.set_float32_matmul_precision, and allow_tf32 and fp32_precision
    of torch.backends.
    """
    return _MEANT.get(_read("cuda" if device == _CUDA else "mkldnn", "matmul"), "highest")


def of_tensors(values: Iterable[Any]) -> str:
    """Returns the precision for an op with these arguments, whose first tensor decides.

    It is "" for dtypes other than float32.
    """
    first = next((value for value in values if isinstance(value, torch.Tensor)), None)
    if first is None or first.dtype != torch.float32:
        return ""
    return of_device(_CUDA if first.is_cuda else 1)


def follow(arguments: Sequence[Argument], values: list[Any]) -> None:
    """Fills in an empty argument `precision`, as a call with tensors of PyTorch does."""
    for i, argument in enumerate(arguments):
        if argument.name == "precision" and values[i] in (..., ""):
            values[i] = of_tensors(values)
