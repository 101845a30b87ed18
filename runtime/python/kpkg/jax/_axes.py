"""Tracks over which axes of a mesh values differ within jax.shard_map, for calls that JAX cannot look into.

JAX checks that (`check_vma`), and sums gradients of values that are equal everywhere.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import jax


def varying_axes(tensors: list[Any]) -> frozenset[Any]:
    """Returns the axes over which any of the tensors differs. Releases of JAX before 0.6 do not track them."""
    if not hasattr(jax, "typeof"):
        return frozenset()
    return frozenset[Any]().union(*(_axes_of(tensor) for tensor in tensors))


def _axes_of(tensor: Any) -> frozenset[Any]:
    kind = jax.typeof(tensor)
    known = getattr(kind, "manual_axis_type", None)
    axes: frozenset[Any] = getattr(kind, "vma", frozenset()) if known is None else known.varying
    return axes


def as_varying(tensors: list[Any], axes: frozenset[Any]) -> list[Any]:
    """Returns the tensors as values that differ over all of `axes`."""
    return [_cast(tensor, tuple(sorted(axes - _axes_of(tensor)))) for tensor in tensors] if axes else tensors


def _cast(tensor: Any, axes: tuple[Any, ...]) -> Any:
    if not axes:
        return tensor
    return jax.lax.pcast(tensor, axes, to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(tensor, axes)
