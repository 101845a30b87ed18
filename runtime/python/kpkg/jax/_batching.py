"""Runs ops under jax.vmap: one call with an additional leading dimension where the op allows it, else a loop.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from kpkg._errors import KernelError
from kpkg.jax._transformed import Transformed, Values

_ROWS = ("last", "along", "trailing")


def batched(function: Transformed, values: Values, run: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `run`, a call of `function` with these values, with its rule for vmap."""
    made = jax.custom_batching.custom_vmap(run)

    def rule(size: int, is_batched: list[bool], *tensors: Any) -> tuple[Any, Any]:
        results = _together(function, values, size, is_batched, tensors)
        if results is None:
            results = _in_turn(function, values, is_batched, tensors)
        return results, jax.tree.map(lambda _: True, results)

    made.def_vmap(rule)
    return made


def _together(
    function: Transformed, values: Values, size: int, is_batched: list[bool], tensors: tuple[Any, ...]
) -> tuple[Any, ...] | None:
    """Returns the results of one call, or None if what the package declares does not allow it.

    All tensors of an elementwise op get the dimension. Of an op over rows only the first tensor does.
    """
    kind, extent = function.op.rules.dimensions, function.op.rules.extent
    every = kind == "elementwise"
    if function.differentiates is not None and (rules := _of_gradient(function.differentiates)) is not None:
        kind, extent = rules
        every = True
    ranks = [tensor.ndim - is_there for tensor, is_there in zip(tensors, is_batched)]
    if every:
        shapes = {tensor.shape[is_there:] for tensor, is_there in zip(tensors, is_batched)}
        if len(shapes) > 1:
            return None
        tensors = tuple(
            tensor if is_there else jnp.broadcast_to(tensor, (size, *tensor.shape))
            for tensor, is_there in zip(tensors, is_batched)
        )
    elif not is_batched[0] or any(is_batched[1:]):
        return None
    elif kind == "linear":
        if max(ranks[2:], default=0) > 1:  # a residual, which has rows of its own
            return None
    elif kind not in _ROWS:
        return None
    if kind == "along":
        position = next(i for i, argument in enumerate(function.op.arguments) if argument.name == extent)
        if ranks[0] < 1:
            return None
        values = (*values[:position], values[position] + (values[position] >= 0), *values[position + 1 :])
    try:
        results: tuple[Any, ...] = function.traced(values)(*tensors)
    except KernelError:  # the op refuses tensors of that rank, or the single calls are wrong: they tell
        return None
    return results


def _of_gradient(forward: Transformed) -> tuple[str, str] | None:
    """Returns how the gradient op of `forward` goes over dimensions, or None if that is not known.

    Rows of tensors of one shape are independent. A parameter's gradient is a sum over all rows.
    """
    rules = forward.op.rules
    tensors = sum(argument.is_tensor for argument in forward.op.arguments)
    if rules.dimensions == "elementwise" or (rules.dimensions in _ROWS and tensors == 1):
        return rules.dimensions, rules.extent
    return None


def _in_turn(
    function: Transformed, values: Values, is_batched: list[bool], tensors: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Returns the stacked results of one call per entry of the dimension."""
    call = function.traced(values)

    def one(entries: list[Any]) -> Any:
        rest = iter(entries)
        return call(*(next(rest) if is_there else tensor for tensor, is_there in zip(tensors, is_batched)))

    return jax.lax.map(one, [t for t, is_there in zip(tensors, is_batched) if is_there])
