"""Converts arrays for the arguments and results of an op, without PyTorch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import sys
from typing import Any

import kpkg._native as _native

# Dtypes that NumPy has only through ml_dtypes, and the integers that carry their bits.
_EXTENSION_DTYPES = {name: f"uint{bits}" for name, bits, in_numpy in _native.dtypes() if bits and not in_numpy}


def lower(array: Any) -> tuple[Any, str | None]:
    """Returns `array` in the form of the native module: an array, and a dtype name or None.

    The name is given where the type of the array's memory does not say it.
    """
    name = getattr(getattr(array, "dtype", None), "name", None)
    if name in _EXTENSION_DTYPES and "numpy" in sys.modules and isinstance(array, sys.modules["numpy"].ndarray):
        return array.view(_EXTENSION_DTYPES[name]), name
    return array, None


_UNKNOWN_KINDS = "cOSUVMm"  # kinds of NumPy dtypes: complex numbers, objects, texts, records, times


def is_known(value: Any) -> bool:
    """Returns False for an array, in the form of `lower`, whose dtype kpkg does not have."""
    if not isinstance(value, tuple) or value[1] is not None:
        return True
    return getattr(getattr(value[0], "dtype", None), "kind", "f") not in _UNKNOWN_KINDS


def dtype_name(dtype: Any) -> str:
    """Returns the name of a dtype: of "float32", ``numpy.float32``, ``numpy.dtype("float32")`` or ``torch.float32``.

    Names of Paddle's dtypes have capital letters.
    """
    if isinstance(dtype, str):
        return dtype
    text = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return str(text).rpartition(".")[2].lower()


def raise_result(array: Any, name: str) -> Any:
    """Returns a result of the native module as an array of the dtype `name`."""
    if name not in _EXTENSION_DTYPES:
        return array
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(
            f"a result is {name}, which NumPy has only with the package ml_dtypes: install it, or use PyTorch tensors"
        ) from None
    return array.view(getattr(ml_dtypes, name))


def is_array(value: Any) -> bool:
    """Returns whether `value` can be a tensor argument."""
    return hasattr(value, "__dlpack__") or hasattr(value, "__array_interface__")


def describe(value: Any) -> tuple[tuple[int, ...], tuple[int, ...], str, int]:
    """Returns shape, strides in elements, dtype name and device type of an array."""
    name = dtype_name(value.dtype)
    shape = tuple(int(n) for n in value.shape)
    if callable(getattr(value, "stride", None)):  # PyTorch
        return shape, tuple(value.stride()), name, {"cpu": 1, "meta": 1, "cuda": 2}.get(value.device.type, 0)
    strides = tuple(int(s) // value.itemsize for s in value.strides)
    return shape, strides, name, 1
