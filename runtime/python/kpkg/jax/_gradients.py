"""Differentiates ops in JAX by the gradients of their packages.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

import kpkg._policy as _policy
from kpkg._errors import KernelError
from kpkg.jax._transformed import Transformed, Values


def _flags_array(flags: tuple[bool, ...]) -> Any:
    """Returns an empty array whose shape says for which tensors of a call gradients are asked for.

    JAX traces a forward rule again if they change, but uses its last tree of saved values for all of them. A static
    node of that tree would then be wrong. The shape of a saved array is not.
    """
    return jnp.zeros((0, *map(int, flags)), jnp.bool_)


def _flags(array: Any) -> tuple[bool, ...]:
    return tuple(map(bool, array.shape[1:]))


def differentiable(function: Transformed, values: Values, run: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `run`, a call of `function` with these values, with its rule for reverse-mode derivatives."""
    made = jax.custom_vjp(run)

    def forward(*tensors: Any) -> tuple[Any, Any]:
        arrays = tuple(tensor.value for tensor in tensors)
        results = made(*arrays)
        flags = _flags_array(tuple(tensor.perturbed for tensor in tensors))
        dtypes = [jnp.zeros(0, array.dtype) for array in arrays]
        return results, (flags, _saved(function, values, arrays, results), dtypes)

    def backward(saved: Any, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        needs, arrays, dtypes = _flags(saved[0]), saved[1], saved[2]
        if all(gradient is None or isinstance(gradient, SymbolicZero) for gradient in gradients):
            return (None,) * len(needs)
        if function.gradient is None:
            raise KernelError(
                f"{function.op.name} has no gradient in its package: give it one by jax.custom_vjp, or call it with "
                "jax.lax.stop_gradient of its arguments"
            )
        found = _gradients(function, values, needs, iter(arrays), gradients)
        # An op with `dtype=` may leave it to the framework, as PyTorch's engine does, to convert to the input's dtype.
        return tuple(None if each is None else each.astype(like.dtype) for each, like in zip(found, dtypes))

    made.defvjp(forward, backward, symbolic_zeros=True)
    return made


def _saved(function: Transformed, values: Values, tensors: tuple[Any, ...], results: tuple[Any, ...]) -> list[Any]:
    """Returns the arrays that the gradient op reads, in the order of its arguments."""
    arguments = _in_places(function, values, tensors)
    of = {"argument": arguments, "result": results}
    read = (of[source][index] for source, index in function.op.backward_arguments if source in of)
    return [value for value in read if isinstance(value, jax.Array)]


def _in_places(function: Transformed, values: Values, tensors: tuple[Any, ...]) -> list[Any]:
    rest = iter(tensors)
    return [next(rest) if a.is_tensor and v is not None else v for a, v in zip(function.op.arguments, values)]


def _gradients(
    function: Transformed, values: Values, needed: tuple[bool, ...], saved: Iterator[Any], gradients: tuple[Any, ...]
) -> tuple[Any, ...]:
    assert function.gradient is not None, "the caller has checked it"
    arguments = function.op.arguments
    is_given = [a.is_tensor and v is not None for a, v in zip(arguments, values)]
    rest = iter(needed)
    needs = [given and next(rest) for given in is_given]

    def value(source: str, index: int) -> Any:
        if source == "gradient":
            return _array(gradients[index])
        if source == "needs":
            return needs[index]
        if source == "deterministic":
            return _policy.requires_deterministic()
        if source == "argument" and not is_given[index]:
            return values[index]
        return next(saved)

    found = iter(function.gradient.apply([value(*each) for each in function.op.backward_arguments]))
    of_arguments = [next(found) if argument.is_tensor else None for argument in arguments]
    answers = zip(of_arguments, needs, is_given)
    return tuple(gradient if need else None for gradient, need, given in answers if given)


def _array(gradient: Any) -> Any:
    return jnp.zeros(gradient.shape, gradient.dtype) if isinstance(gradient, SymbolicZero) else gradient
