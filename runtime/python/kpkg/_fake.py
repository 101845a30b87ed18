"""Implements fake kernels: an op's results without data, from its plan.

The runtime evaluates concrete shapes, and `_symbolic` evaluates symbolic ones.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from kpkg import _arrays, _symbolic
from kpkg._errors import KernelError
from kpkg._forms import outputs_of
from kpkg._op import Op


def run(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Returns the results of ``op(*args, **kwargs)`` as empty tensors on the device of the first tensor."""
    values = op.bind(args, kwargs)
    _refuse_grad(op, values)
    device = _device_of(op, values)
    results = _symbolic.infer(op, values) if _is_symbolic(values) else _infer(op, values)
    made = tuple(
        torch.empty_strided(r[0], r[1], dtype=getattr(torch, r[2]), device=device) if isinstance(r, tuple) else r
        for r in results
    )
    return made[0] if len(made) == 1 else made if made else None


def run_out(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Checks the tensors of the out= form against the results of `run`."""
    count = len(op.result_types)
    outputs = [kwargs.pop(name) for name in outputs_of(kwargs)]
    if len(outputs) != count:
        raise KernelError(f"{op.name}: {len(outputs)} out tensors for {count} results")
    results = run(op, args, kwargs)
    for output, result in zip(outputs, results if count > 1 else (results,)):
        check_out(op.name, output, result)


def check_out(name: str, output: torch.Tensor, result: torch.Tensor) -> None:
    """Raises KernelError if the tensor given for a result has another shape or dtype."""
    if output.shape != result.shape or output.dtype != result.dtype:
        raise KernelError(
            f"{name}: out is {output.dtype} {tuple(output.shape)}, the result is {result.dtype} {tuple(result.shape)}"
        )


def _tensors_of(op: Op, values: list[Any]) -> Iterable[tuple[str, torch.Tensor]]:
    """Returns the tensors among the arguments with their names, those of lists as "params[3]"."""
    for argument, value in zip(op.arguments, values):
        if isinstance(value, torch.Tensor):
            yield argument.name, value
        elif argument.is_tensor_list:
            yield from ((f"{argument.name}[{i}]", tensor) for i, tensor in enumerate(value))


def _device_of(op: Op, values: list[Any]) -> torch.device:
    """Returns the device of the tensors.

    Raises KernelError for tensors on different devices, as the call itself would.
    """
    placed = [(name, tensor.device) for name, tensor in _tensors_of(op, values)]
    for name, device in placed:
        if device != placed[0][1]:
            raise KernelError(f"{op.name}: argument '{name}' is on {device}, but '{placed[0][0]}' is on {placed[0][1]}")
    return placed[0][1] if placed else torch.device("cpu")


def _refuse_grad(op: Op, values: list[Any]) -> None:
    if (
        not op._is_recorded
        and torch.is_grad_enabled()
        and any(tensor.requires_grad for _, tensor in _tensors_of(op, values))
    ):
        raise KernelError(f"{op.name} has no backward: call it under torch.no_grad() or on detached tensors")


def _is_symbolic(values: list[Any]) -> bool:
    def parts(value: Any) -> Iterable[Any]:
        if isinstance(value, torch.Tensor):
            return *value.shape, *value.stride()
        return [part for item in value for part in parts(item)] if isinstance(value, (list, tuple)) else (value,)

    return any(isinstance(part, _symbolic.SYMBOLIC) for part in parts(values))


def _infer(op: Op, values: list[Any]) -> list[Any]:
    def lowered(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return _arrays.describe(value)
        if isinstance(value, (list, tuple)):
            return [lowered(item) for item in value]
        return _arrays.dtype_name(value) if isinstance(value, torch.dtype) else value

    return list(op._native.infer([lowered(value) for value in values]))
