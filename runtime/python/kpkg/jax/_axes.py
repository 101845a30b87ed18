"""Tracks over which axes of a mesh values differ within jax.shard_map, for calls that JAX cannot look into.

JAX checks that (`check_vma`), and sums gradients of values that are equal everywhere.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.extend.core
import jax.interpreters.mlir


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


def like(tensor: Any) -> jax.ShapeDtypeStruct:
    """Returns the shape and dtype of a tensor, with the axes over which it differs where JAX tracks them."""
    kind = jax.typeof(tensor) if hasattr(jax, "typeof") else None
    known = {name: getattr(kind, name, None) for name in ("manual_axis_type", "vma")}
    given = next(({name: axes} for name, axes in known.items() if axes is not None), {})
    return jax.ShapeDtypeStruct(tensor.shape, tensor.dtype, **given)


def as_varying(tensors: list[Any], axes: frozenset[Any]) -> list[Any]:
    """Returns the tensors as values that differ over all of `axes`."""
    return [_cast(tensor, tuple(sorted(axes - _axes_of(tensor)))) for tensor in tensors] if axes else tensors


def _cast(tensor: Any, axes: tuple[Any, ...]) -> Any:
    if not axes:
        return tensor
    return jax.lax.pcast(tensor, axes, to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(tensor, axes)


def untracked(function: Callable[..., list[Any]], tensors: list[Any], kinds: list[jax.ShapeDtypeStruct]) -> list[Any]:
    """Calls a function of arrays whose ops JAX cannot track, and returns its results, of these `kinds`.

    They differ over all axes over which any of the tensors does.
    """
    axes = varying_axes(tensors)
    if not axes:
        return function(*tensors)
    results = _untracked.bind(*tensors, function=function, kinds=tuple((kind.shape, kind.dtype) for kind in kinds))
    return as_varying(list(results), axes)


_untracked = jax.extend.core.Primitive("kpkg_untracked")
_untracked.multiple_results = True
_untracked.def_abstract_eval(lambda *_, function, kinds: [jax.core.ShapedArray(*kind) for kind in kinds])


def _lower(context: Any, *operands: Any, function: Callable[..., list[Any]], kinds: Any) -> Any:
    plain = [jax.core.ShapedArray(kind.shape, kind.dtype) for kind in context.avals_in]
    lowering = jax.interpreters.mlir.lower_fun(function, multiple_results=True)
    return lowering(context.replace(avals_in=plain), *operands)


jax.interpreters.mlir.register_lowering(_untracked, _lower)
