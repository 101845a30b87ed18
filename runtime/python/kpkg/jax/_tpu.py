"""Runs calls on TPUs: the steps that a package has for a call, with its kernels as Pallas kernels.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import kpkg.jax._axes as _axes
import kpkg.jax._pallas as _pallas
import kpkg.jax._tile_program as _tile_program
from kpkg._errors import KernelError
from kpkg.jax._tile_kernel import KNOWN
from kpkg.jax._tile_memory import Tensor
from kpkg.jax._tile_numbers import dtype_of

#: The name of the target in packages.
TARGET = "tpu"


class Call:
    """The steps of a call with arguments of some shapes and dtypes. `section` reads a section of the package.

    Raises KernelError if a launch has no kernel for TPUs, or TPUs cannot do what it does.
    """

    def __init__(self, resolved: str, section: Callable[[str], bytes]) -> None:
        record = json.loads(resolved)
        self._buffers = record["buffers"]
        self._steps = record["steps"]
        self._outputs = record["outputs"]
        self._programs = {step["section"]: _read(section(step["section"])) for step in self._steps if "kernel" in step}

    def __call__(self, values: list[Any], written: list[int], interpret: bool) -> tuple[list[Any], list[Any]]:
        """Returns the results, and the new values of the arguments `written`. `values` are those of all arguments.

        Tensors of int64 are those of int32, before and after.
        """
        axes = _axes.varying_axes([value for value in values if isinstance(value, jax.Array)])
        memory = _Memory(self._buffers, values, interpret, axes)
        for step in self._steps:
            if "kernel" in step:
                self._launch(step, memory, values, interpret)
            else:
                memory.write(step["to"], memory.read(step["from"]))
        results = [None if view is None else memory.read(view) for view in self._outputs]
        return results, [memory.argument(index) for index in written]

    def _launch(self, step: dict[str, Any], memory: _Memory, values: list[Any], interpret: bool) -> None:
        program = self._programs[step["section"]]
        if len(step["arguments"]) != len(program.block.arguments):
            raise KernelError(f"kernel {program.name} for TPUs takes other arguments than its launch gives")
        arguments: list[Any] = []
        arrays, views = {}, {}
        for i, given in enumerate(step["arguments"]):
            kind = program.types[program.block.arguments[i]]
            if "view" not in given:
                arguments.append(_number(given, values, kind.element))
                continue
            view = given["view"]
            if view is None:
                arguments.append(_pallas.Absent(kind.rank))
                continue
            array = memory.read(view)
            if kind.kind != "view" or kind.rank != array.ndim or dtype_of(kind.element) != array.dtype:
                raise KernelError(f"kernel {program.name} for TPUs takes another argument {i} than its launch gives")
            array = array.astype(jnp.int32) if array.dtype == jnp.bool_ else array
            arguments.append(Tensor(f"argument {i}", tuple(view["shape"]), array.dtype, given["mut"]))
            arrays[i], views[i] = array, view
        launch = _pallas.Launch(program, arguments, tuple(step["grid"] or (1, 1, 1)))
        for i, array in launch(arrays, interpret).items():
            memory.write(views[i], array)


@functools.lru_cache(256)
def _read(text: bytes) -> _tile_program.Program:
    return _tile_program.read(text, KNOWN)


def _number(given: dict[str, Any], values: list[Any], element: str) -> Any:
    if "float" in given:
        return float.fromhex(given["float"])
    value = values[given["argument"]] if "argument" in given else given["int"]
    if element == "i1":
        return bool(value)
    return float(value) if element[0] in "fb" else int(value)


class _Memory:
    """The buffers of a call, as flat arrays. Each write makes a new one."""

    def __init__(self, buffers: list[dict[str, Any]], values: list[Any], interpret: bool, axes: frozenset[Any]) -> None:
        self._records = buffers
        self._values = values
        self._interpret = interpret
        self._axes = axes
        self._flat: dict[int, Any] = {}

    def argument(self, index: int) -> Any:
        """Returns the tensor of an argument, with what was written to it."""
        for number, record in enumerate(self._records):
            if record.get("argument") == index and number in self._flat:
                return self._flat[number].reshape(self._values[index].shape)
        return self._values[index]

    def read(self, view: dict[str, Any]) -> Any:
        """Returns the elements of a view."""
        flat = self._array(view)
        order = _dense(view, flat.size)
        if order is None:
            return jnp.take(flat, _places(view), mode="clip")
        return flat.reshape([view["shape"][d] for d in order]).transpose(np.argsort(order))

    def write(self, view: dict[str, Any], array: Any) -> None:
        """Replaces the elements of a view."""
        flat = self._array(view)
        array = array.astype(flat.dtype)
        order = _dense(view, flat.size)
        if order is None:
            self._flat[view["buffer"]] = flat.at[_places(view)].set(array, mode="drop")
        else:
            self._flat[view["buffer"]] = array.transpose(order).reshape(-1)

    def _array(self, view: dict[str, Any]) -> Any:
        number = view["buffer"]
        if number not in self._flat:
            record = self._records[number]
            self._flat[number] = (
                jnp.ravel(self._values[record["argument"]])
                if "argument" in record
                else self._new(record["bytes"] // np.dtype(view["dtype"]).itemsize, _held(view["dtype"]))
            )
        if self._flat[number].dtype != _held(view["dtype"]):
            raise KernelError(f"memory of {self._flat[number].dtype} is seen as {view['dtype']}, which JAX cannot")
        return self._flat[number]

    def _new(self, count: int, dtype: Any) -> Any:
        """Returns new memory. The interpreter, which looks for mistakes, gets values that nobody expects."""
        value = 0 if not self._interpret else np.nan if jnp.issubdtype(dtype, jnp.floating) else 85
        (array,) = _axes.as_varying([jnp.full(count, value, dtype)], self._axes)
        return array


def _held(dtype: str) -> Any:
    """Returns the dtype of arrays that hold a tensor's elements: TPUs have 32 bits of integers."""
    return np.dtype("int32" if dtype == "int64" else dtype)


def _dense(view: dict[str, Any], size: int) -> list[int] | None:
    """Returns the order of dimensions in which the view is its whole buffer, element after element, or None."""
    shape, strides = view["shape"], view["strides"]
    if view["offset"] != 0 or math.prod(shape) != size:
        return None
    if size == 0:
        return list(range(len(shape)))
    order = sorted(range(len(shape)), key=lambda d: (shape[d] == 1, -strides[d], d))
    expected = size
    for d in order:
        if shape[d] == 1:
            break
        expected //= shape[d]
        if strides[d] != expected:
            return None
    return order


def _places(view: dict[str, Any]) -> Any:
    """Returns the index of each element of a view in its buffer."""
    shape = tuple(view["shape"])
    places = jnp.full(shape, view["offset"], jnp.int32)
    for d, stride in enumerate(view["strides"]):
        if shape[d] > 1:
            places += jax.lax.broadcasted_iota(jnp.int32, shape, d) * stride
    return places
