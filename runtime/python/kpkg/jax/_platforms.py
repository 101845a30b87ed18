"""Chooses, when JAX lowers a program, between kpkg's custom call and the kernels of a package for TPUs.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.extend.core
import jax.interpreters.mlir

import kpkg.jax._axes as _axes
import kpkg.jax._integers as _integers
from kpkg._errors import KernelError
from kpkg.jax._tpu import Call

_interpreting = contextvars.ContextVar("kpkg_interpreting", default=False)


@contextlib.contextmanager
def tpu_interpreter() -> Iterator[None]:
    """Runs ops that are traced in this context by their kernels for TPUs, in Pallas' interpreter of TPUs.

    It is slow and needs no TPU. Memory that nobody has written holds NaN. Raises KernelError where a TPU would lack a
    kernel.
    """
    token = _interpreting.set(True)
    try:
        yield
    finally:
        _interpreting.reset(token)


def is_interpreting() -> bool:
    return _interpreting.get()


def run(
    make: Callable[[], Call],
    native: Callable[..., list[Any]],
    place: Callable[[Any], list[Any]],
    written: list[int],
    dtypes: list[Any],
) -> Callable[..., list[Any]]:
    """Returns the function of tensors that runs `native`, or on TPUs the call that `make` makes.

    `place` returns the values of all arguments of the op from the tensors. `written` are those that the op
    writes. `dtypes` are those of all results.
    """

    def of_tpu(interpret: bool, *tensors: Any) -> list[Any]:
        results, values = make()(place(tensors), written, interpret)
        return _integers.as_dtypes(dtypes, [*(result for result in results if result is not None), *values])

    def lowered_for_tpus(*tensors: Any) -> list[Any]:
        try:
            results = of_tpu(False, *tensors)
        except KernelError as error:
            kinds = tuple(jax.eval_shape(native, *tensors))
            results = list(_refused.bind(*tensors, message=str(error), kinds=kinds))
        return varying(results, tensors)

    def lowered_for_others(*tensors: Any) -> list[Any]:
        return varying(native(*tensors), tensors)

    def varying(results: list[Any], tensors: tuple[Any, ...]) -> list[Any]:
        """Gives results the type that JAX demands of all platforms alike."""
        return _axes.as_varying(results, _axes.varying_axes(list(tensors)))

    if is_interpreting():
        return lambda *tensors: of_tpu(True, *tensors)
    return lambda *tensors: jax.lax.platform_dependent(*tensors, tpu=lowered_for_tpus, default=lowered_for_others)


# A call that a TPU cannot run is an error only where JAX lowers the program for a TPU.
_refused = jax.extend.core.Primitive("kpkg_refused")
_refused.multiple_results = True
_refused.def_abstract_eval(lambda *_, message, kinds: [jax.core.ShapedArray(kind.shape, kind.dtype) for kind in kinds])


def _refuse(*_: Any, message: str, **__: Any) -> Any:
    raise KernelError(message)


jax.interpreters.mlir.register_lowering(_refused, _refuse)
