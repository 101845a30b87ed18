"""Represents an op as a function of JAX.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any, Final

import jax
import numpy as np

import kpkg.jax._axes as _axes
import kpkg.jax._batching as _batching
import kpkg.jax._gradients as _gradients
import kpkg.jax._integers as _integers
import kpkg.jax._platforms as _platforms
from kpkg._arrays import dtype_name
from kpkg._errors import KernelError
from kpkg._messages import shown
from kpkg._op import Op
from kpkg._signature import Argument, Kind
from kpkg.jax._tpu import TARGET as TPU
from kpkg.jax._tpu import Call
from kpkg.jax._transformed import Values

#: The name of kpkg's custom call in XLA's programs.
TARGET = "kpkg_call"

#: The mark of an array among the values of a call.
TENSOR: Final = object()

_ATTRIBUTES: dict[int, Callable[[Any], Any]] = {
    Kind.INT: np.int64,
    Kind.FLOAT: np.float64,
    Kind.BOOL: np.bool_,
    Kind.LIST: lambda entries: np.array(entries, np.int64),
}


class Function:
    """An op as a function of arrays, for ``jax.jit``, ``jax.grad``, ``jax.vmap`` and ``jax.shard_map``.

    Arguments are those of the schema, by position or by name. Arguments that are no tensors must be known when JAX
    traces the function. Returns an array, a tuple of several results, or None. An op that writes into arguments returns
    their new values instead, and leaves the arguments as they are.

    Raises KernelError if the op refuses the shapes or dtypes, and TypeError if the arguments do not fit the schema.
    JAX raises its own error if a kernel fails while a program runs.
    """

    def __init__(self, op: Op, name: str, section: Callable[[str], bytes] | None = None) -> None:
        """`section` reads the package's sections, of a package that has kernels for TPUs."""
        self.op = op
        self.name = name  # in XLA's programs
        self._section = section
        self._traced: dict[tuple[Values, bool], Callable[..., Any]] = {}
        #: The function that computes this one's gradients, and the one whose gradients this one computes.
        self.gradient: Function | None = None
        self.differentiates: Function | None = None
        self.__name__ = op.__name__
        self.__qualname__ = op.__name__
        self.__doc__ = op.__doc__
        self.__signature__ = inspect.Signature([_parameter(argument) for argument in op.arguments])

    def __repr__(self) -> str:
        return f"<kpkg function of JAX {self.op.schema}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.op.has_tensor_lists:
            raise TypeError(f"{self.op.name} takes a list of tensors, which functions of JAX do not: {self.op.schema}")
        given = [self._checked(a, v) for a, v in zip(self.op.arguments, self.op.bind(args, kwargs))]
        results = self.apply(given)
        return results[0] if len(results) == 1 else results or None

    def apply(self, given: list[Any]) -> tuple[Any, ...]:
        """Calls the op with a value for each argument: an array, None or a hashable value. Returns all results."""
        of_tensors = [a.is_tensor and v is not None for a, v in zip(self.op.arguments, given)]
        values = tuple(TENSOR if is_tensor else value for is_tensor, value in zip(of_tensors, given))
        tensors = [value for is_tensor, value in zip(of_tensors, given) if is_tensor]
        tensors = _axes.as_varying(tensors, _axes.varying_axes(tensors))
        results: tuple[Any, ...] = self.traced(values)(*tensors)
        return results

    def traced(self, values: Values) -> Callable[..., Any]:
        """Returns the function of the tensors alone. JAX transforms it by kpkg's rules."""
        key = values, _platforms.is_interpreting()
        if key not in self._traced:

            def run(*tensors: Any) -> tuple[Any, ...]:
                return self._call(values, tensors)

            run.__name__ = self.__name__
            self._traced[key] = jax.jit(
                _gradients.differentiable(self, values, _batching.batched(self, values, run)), inline=True
            )
        return self._traced[key]

    def _infer(self, values: Values, tensors: tuple[Any, ...]) -> list[Any]:
        """Returns (shape, strides, dtype, device type) for each result, or None for a result that is absent."""
        for tensor in tensors:
            if not all(isinstance(extent, (int, np.integer)) for extent in tensor.shape):
                raise KernelError(
                    f"{self.op.name} got a tensor of the symbolic shape {tensor.shape}: packages choose kernels by "
                    "numbers, so export a program for each shape"
                )
        results = self.op._native.infer(_metadata(values, tensors))
        for result in results:
            if result is not None and not isinstance(result, tuple):
                raise KernelError(f"{self.op.name} returns {result!r}: functions of JAX return arrays only")
        return list(results)

    def _call(self, values: Values, tensors: tuple[Any, ...]) -> tuple[Any, ...]:
        """Adds the custom call to JAX's program."""
        taken, results = _integers.accepted(tensors, lambda tensors: self._infer(values, tensors))
        places = [i for i, value in enumerate(values) if value is TENSOR]
        written = [k for k, i in enumerate(places) if self.op.arguments[i].mutates]
        kinds = [(result[0], result[2]) for result in results if result is not None]
        aliases = {k: len(kinds) + n for n, k in enumerate(written)}
        kinds += [(taken[k].shape, taken[k].dtype) for k in written]
        described = _metadata(values, taken)
        dtypes = [tensor.dtype for tensor in taken]
        given = zip(self.op.arguments, values)
        attributes = {a.name: _attribute(a, v) for a, v in given if v is not None and v is not TENSOR}

        def native(*tensors: Any) -> list[Any]:
            with _integers.wide():
                made = jax.ffi.ffi_call(
                    TARGET,
                    [jax.ShapeDtypeStruct(shape, np.dtype(dtype)) for shape, dtype in kinds],
                    vmap_method="sequential",
                    input_output_aliases=aliases,
                )(
                    *_integers.as_dtypes(dtypes, list(tensors)),
                    _op=self.name,
                    _form="".join("n" if value is None else "t" if value is TENSOR else "v" for value in values),
                    _results="".join("-" if result is None else "t" for result in results),
                    **attributes,
                )
            return list(made)

        made = self._on_platform(native, values, described, [places[k] for k in written], kinds)(*tensors)
        made = _integers.narrowed(self.op.name, made)
        rest = iter(_axes.as_varying(made, _axes.varying_axes(list(tensors))))
        return (*(None if result is None else next(rest) for result in results), *rest)

    def _on_platform(
        self,
        native: Callable[..., list[Any]],
        values: Values,
        described: list[Any],
        written: list[int],
        kinds: list[Any],
    ) -> Callable[..., list[Any]]:
        """Returns `native`, or a function that does the same on TPUs, too. `kinds` are shapes and dtypes of results."""
        section = self._section
        if section is None:
            if _platforms.is_interpreting():
                raise KernelError(f"{self.op.name}: its package has no kernels for TPUs: build it with --target tpu")
            return native

        def place(tensors: tuple[Any, ...]) -> list[Any]:
            rest = iter(tensors)
            return [next(rest) if value is TENSOR else value for value in values]

        def run(*tensors: Any) -> list[Any]:
            def make() -> Call:
                for argument, value in zip(self.op.arguments, place(tensors)):
                    if argument.is_tensor and value is not None and value.dtype == np.int64:
                        raise KernelError(
                            f"{self.op.name}: {argument.name} is int64, but TPUs have 32 bits of integers: give it as "
                            "int32, in place of int64"
                        )
                return Call(self.op._native.resolve(described, TPU), section)

            return _platforms.run(make, native, place, written, [np.dtype(dtype) for _, dtype in kinds])(*tensors)

        return run

    def _checked(self, argument: Argument, value: Any) -> Any:
        """Returns the value in the form of `apply`. Raises TypeError if it does not fit the schema."""
        if value is ...:
            value = argument.default
        if value is None and (argument.optional or argument.has_default):
            return None
        if argument.is_tensor:
            if isinstance(value, (jax.Array, np.ndarray)):
                return value
            raise TypeError(
                f"{self.op.name}: argument {argument.name!r} is {shown(value)}, expected an array of JAX or NumPy"
            )
        if isinstance(value, jax.core.Tracer):
            raise TypeError(
                f"{self.op.name}: argument {argument.name!r} is traced by JAX, but must be known when it traces the "
                f"function: give it to jax.jit by static_argnames, or close over it"
            )
        try:
            return _static(argument.kind, value)
        except (TypeError, ValueError):
            raise TypeError(
                f"{self.op.name}: argument {argument.name!r} is {shown(value)}, expected {argument.type}: "
                f"{self.op.schema}"
            ) from None


def _static(kind: int, value: Any) -> Any:
    if kind == Kind.LIST:
        return tuple(operator.index(entry) for entry in value)
    if kind == Kind.DTYPE:
        return value if isinstance(value, str) else np.dtype(value).name
    if kind == Kind.FLOAT:
        return float(value)
    if kind == Kind.INT:
        return operator.index(value)
    if not isinstance(value, (bool, np.bool_) if kind == Kind.BOOL else str):
        raise TypeError
    return bool(value) if kind == Kind.BOOL else value


def _attribute(argument: Argument, value: Any) -> Any:
    return _ATTRIBUTES.get(argument.kind, dtype_name)(value)


def _metadata(values: Values, tensors: tuple[Any, ...]) -> list[Any]:
    """Returns the values of a call with descriptions of its tensors."""
    rest = iter(tensors)
    return [_described(next(rest)) if value is TENSOR else value for value in values]


def _described(tensor: Any) -> tuple[tuple[int, ...], tuple[int, ...], str, int]:
    """Describes an array as the custom call gets it: dense, last dimension fastest."""
    strides, size = [], 1
    for extent in reversed(tensor.shape):
        strides.append(size)
        size *= max(extent, 1)
    return tuple(tensor.shape), tuple(reversed(strides)), tensor.dtype.name, 1


def _parameter(argument: Argument) -> inspect.Parameter:
    default = argument.default if argument.has_default else inspect.Parameter.empty
    return inspect.Parameter(
        argument.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=argument.type
    )
