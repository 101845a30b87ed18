"""Promotes operands of several dtypes and Python numbers by PyTorch's rules.

It applies to ops that declare a `promotion`. All their tensors get one dtype. Numbers may replace tensors of
elementwise ops. Only calls that were refused are promoted, so that other calls have no overhead. Casts are counted in
``kernel_info()[name]["promotions"]``.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

from kpkg._signature import Signature

if TYPE_CHECKING:
    import torch


class Promoted(NamedTuple):
    """An equivalent call that the op accepts."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: torch.dtype | None  # if it differs from the operands' dtype
    casts: str  # "bfloat16, float32 -> float32"

    def run(self, call: Callable[..., Any]) -> Any:
        """Returns the results of `call`. The first of several results is cast to `result`. The others are
        statistics. Answers of comparisons stay bools."""
        results = call(*self.args, **self.kwargs)
        if self.result is None or _is_bool(results):
            return results
        if isinstance(results, tuple):
            return results[0].to(self.result), *results[1:]
        return results.to(self.result)


def promoted(
    op: Signature, args: tuple[Any, ...], kwargs: dict[str, Any], theirs: Callable[..., Any] | None = None
) -> Promoted | None:
    """Returns the call with operands of one dtype, by ``torch.result_type``.

    `theirs` is PyTorch's implementation. Returns None if the operands already have one dtype, or are not numbers and
    tensors. Raises PyTorch's error for bools that it refuses beside another dtype.
    """
    import torch

    names = [argument.name for argument in op.arguments]
    given = dict(zip(names, args)) | kwargs
    is_elementwise = op.rules.dimensions == "elementwise"
    parameters = {a.name for a in op.arguments if a.optional}
    operands = {a.name: given[a.name] for a in op.arguments if a.is_tensor and given.get(a.name) is not None}
    tensors = [value for value in operands.values() if isinstance(value, torch.Tensor)]
    numbers = [value for value in operands.values() if not isinstance(value, torch.Tensor)]
    if not tensors or (numbers and not (is_elementwise and all(isinstance(value, Real) for value in numbers))):
        return None
    dtype = _result_type(list(operands.values()))
    if op.rules.promotion == "int_to_float" and not dtype.is_floating_point and not dtype.is_complex:
        dtype = torch.get_default_dtype()
    wide = _accumulator(dtype)
    device = next((t.device for t in tensors if t.dim()), tensors[0].device)
    has_dimensions = any(t.dim() for t in tensors)
    # A number has the precision of the accumulator. Beside tensors without dimensions it would decide the dtype, so
    # these are widened.
    compute = wide if numbers and not has_dimensions else dtype
    changed: dict[str, Any] = {}
    for name, value in operands.items():
        if not isinstance(value, torch.Tensor):
            number = value if name in parameters else _converted(value, wide)
            changed[name] = torch.full((), number, dtype=wide, device=device)
        elif is_elementwise and value.dim() == 0 and has_dimensions:
            keeps = value.dtype in (dtype, wide) and value.device == device
            changed[name] = value if keeps else value.to(device=device, dtype=wide)
        else:
            changed[name] = value.to(compute)
    if all(changed[name] is operands[name] for name in operands):
        return None
    if theirs is not None and is_elementwise and dtype != torch.bool and any(map(_is_bool, operands.values())):
        _check_refusal(theirs, {name: given[name] for name in names if name in given}, operands)
    kinds = ", ".join(str(v.dtype)[6:] if isinstance(v, torch.Tensor) else "number" for v in operands.values())
    if op.rules.promotion == "first":
        dtype = tensors[0].dtype
    args = tuple(changed.get(name, value) for name, value in zip(names, args))
    kwargs = {name: changed.get(name, value) for name, value in kwargs.items()}
    return Promoted(args, kwargs, dtype if compute != dtype else None, f"{kinds} -> {str(dtype)[6:]}")


def _result_type(operands: list[Any]) -> torch.dtype:
    import torch

    first = torch.result_type(operands[0], operands[min(1, len(operands) - 1)])
    return reduce(lambda found, value: torch.result_type(torch.empty(1, dtype=found), value), operands[2:], first)


def _converted(value: Any, dtype: torch.dtype) -> Any:
    """Returns the value that a number has in a dtype beside tensors.

    PyTorch's integers wrap around, and its floats become infinite. `torch.full` refuses such numbers, as PyTorch does
    for numbers that are parameters.
    """
    import torch

    if dtype.is_floating_point:
        return math.copysign(math.inf, value) if abs(value) > torch.finfo(dtype).max else value
    if dtype == torch.bool or dtype.is_complex:
        return value
    limits = torch.iinfo(dtype)
    return (int(value) - limits.min) % (1 << limits.bits) + limits.min


def _is_bool(value: Any) -> bool:
    import torch

    return value.dtype == torch.bool if isinstance(value, torch.Tensor) else isinstance(value, bool)


def _check_refusal(theirs: Callable[..., Any], given: dict[str, Any], operands: dict[str, Any]) -> None:
    """Raises PyTorch's error for a call that it refuses, of which a cast of bools would hide the cause.

    Tensors have no elements in place of their own. PyTorch's functions without memory ("meta") check less.
    """
    import torch

    empty = {
        name: torch.empty([0] if value.dim() else [], dtype=value.dtype)
        if isinstance(value, torch.Tensor)
        else torch.tensor(value)
        for name, value in operands.items()
    }
    theirs(**given | empty)


def _accumulator(dtype: torch.dtype) -> torch.dtype:
    """Returns the dtype of accumulators for `dtype`. Operands without dimensions may have it."""
    import torch

    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
