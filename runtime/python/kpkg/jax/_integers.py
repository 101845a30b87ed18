"""Passes 64-bit integers to ops in a JAX that has only 32-bit ones, unless `jax_enable_x64` is set.

JAX then holds indices as int32. Ops of packages may demand int64 indices, and return them. TPUs have 32 bits only, so
that ops take int32 for int64 in every JAX.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.experimental
import numpy as np

from kpkg._errors import KernelError


def wide() -> AbstractContextManager[Any]:
    """Returns a context in which JAX has all dtypes."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return jax.experimental.enable_x64()


def accepted(tensors: tuple[Any, ...], infer: Callable[[tuple[Any, ...]], list[Any]]) -> tuple[tuple[Any, ...], Any]:
    """Returns the tensors that the op takes, and what `infer` returns for them.

    They are the given ones, or their int32 tensors as int64 if the op refuses int32. Raises the KernelError of `infer`.
    """
    try:
        return tensors, infer(tensors)
    except KernelError as error:
        narrow = [tensor.dtype == np.int32 for tensor in tensors]
        if not any(narrow):
            raise
        with wide():
            cast = tuple(_as(np.int64, t) if is_narrow else t for t, is_narrow in zip(tensors, narrow))
        try:
            return cast, infer(cast)
        except KernelError:
            raise error from None


def as_dtypes(dtypes: list[Any], tensors: list[Any]) -> list[Any]:
    """Returns tensors with these dtypes, which may have 64 bits in a JAX that has none."""
    return [tensor if tensor.dtype == dtype else _as(dtype, tensor) for dtype, tensor in zip(dtypes, tensors)]


def narrowed(op: str, results: list[Any]) -> list[Any]:
    """Returns results with int64 as JAX's integers. Raises KernelError for another dtype that this JAX lacks."""
    return [_narrowed(op, result) for result in results]


def _narrowed(op: str, result: Any) -> Any:
    if jax.config.jax_enable_x64 or result.dtype.itemsize < 8:
        return result
    if result.dtype == np.int64:
        return _as(np.int32, result)
    raise KernelError(
        f"{op} returns {result.dtype}, which this JAX has disabled: set jax.config.update('jax_enable_x64', True), or "
        "the environment variable JAX_ENABLE_X64=1"
    )


def _as(dtype: Any, tensor: Any) -> Any:
    with wide():
        return jax.lax.convert_element_type(tensor, dtype)
