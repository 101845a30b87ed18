"""Gradients: connects an op with the backward op of its package through PyTorch's autograd.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from kpkg._errors import KernelError
from kpkg._library import Op

# The ops by the dispatcher's name, whose registrations are here for good.
_registered: set[str] = set()


def register(name: str, current: Callable[[], Op], fragment: torch.library.Library) -> None:
    """Gives op `name` of the dispatcher the backward of the op that `current` says has the name now. Once per name; the name may change hands."""
    if name in _registered:
        return
    _registered.add(name)

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _save(ctx, current(), inputs, output if isinstance(output, tuple) else (output,))

    torch.library.register_autograd(name, _backward, setup_context=setup, lib=fragment)


def refuse_second(name: str, public: str, fragment: torch.library.Library) -> None:
    """Makes differentiating the backward op `name` an error; without it PyTorch would go on with gradients missing."""
    if name in _registered:
        return
    _registered.add(name)

    def refuse(ctx: Any, *grads: Any) -> Any:
        raise KernelError(f"{public} has no second derivative: its backward cannot be differentiated")

    torch.library.register_autograd(name, refuse, lib=fragment)


def _save(ctx: Any, op: Op, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
    sources = op.backward_arguments
    ctx.op = op
    ctx.values = tuple(None if isinstance(value, torch.Tensor) else value for value in inputs)
    ctx.save_for_backward(*(inputs[i] if source == "argument" else outputs[i] for source, i in sources if _is_saved(op, source, i)))
    differentiable = sum(source == "gradient" for source, _ in sources)
    ctx.mark_non_differentiable(*outputs[differentiable:])
    if differentiable == 1:  # zeros for the others would only cost
        ctx.set_materialize_grads(False)


def _is_saved(op: Op, source: str, index: int) -> bool:
    return source == "result" or (source == "argument" and op.arguments[index].is_tensor)


def _backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
    op: Op = ctx.op
    if all(gradient is None for gradient in grads):
        return tuple(None for _ in op.arguments)
    saved = iter(ctx.saved_tensors)
    # Arguments that were left out of the call have no entry.
    needs = (*ctx.needs_input_grad, *(False for _ in op.arguments))
    arguments: list[Any] = []
    for source, index in op.backward_arguments:
        if source == "gradient":
            arguments.append(grads[index])
        elif source == "needs":
            arguments.append(needs[index])
        else:
            arguments.append(next(saved) if _is_saved(op, source, index) else ctx.values[index])
    results = op._library[op.backward]._torch_form({})(*arguments)
    found = iter(results if isinstance(results, tuple) else (results,))
    gradients = tuple(next(found) if argument.is_tensor else None for argument in op.arguments)
    return tuple(gradient if needed else None for gradient, needed in zip(gradients, needs))
