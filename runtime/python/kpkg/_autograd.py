"""Gradients: connects an op with the backward op of its package, or with PyTorch's own gradient, through PyTorch's autograd.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from kpkg import _vjp
from kpkg._errors import KernelError
from kpkg._library import Op

# The ops by the dispatcher's name, whose registrations are here for good.
_registered: set[str] = set()

_after_autograd = torch._C._after_autograd_keyset
_below_autograd = torch._C._AutoDispatchBelowAutograd
_requires_grad = torch._C._any_requires_grad

Backward = Callable[[Any, Op, tuple[Any, ...]], tuple[Any, ...]]


def register(name: str, current: Callable[[], Op], fragment: torch.library.Library) -> None:
    """Makes autograd record op `name` of the dispatcher, with the gradient of the op that `current` says has the name now.

    Once per name; the name may change hands. That gradient is the package's, else PyTorch's where kpkg knows the PyTorch implementation.
    """
    _implement(name, current, _save, _backward, fragment)


def refuse_second(name: str, public: str, fragment: torch.library.Library) -> None:
    """Makes differentiating the backward op `name` an error; without it PyTorch would go on with gradients missing."""

    def refuse(ctx: Any, op: Op, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        raise KernelError(f"{public} has no second derivative: its backward cannot be differentiated")

    _implement(name, lambda: None, lambda *_: None, refuse, fragment)


def _implement(
    name: str, current: Callable[[], Any], save: Callable[..., None], backward: Backward, fragment: torch.library.Library
) -> None:
    if name in _registered:
        return
    _registered.add(name)
    namespace, _, local = name.partition("::")
    overload = getattr(getattr(torch.ops, namespace), local).default
    redispatch = overload.redispatch

    def differentiate(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return (None, *backward(ctx, ctx.op, grads))[: len(ctx.needs_input_grad)]

    class Recorded(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, keyset: Any, *args: Any) -> Any:
            output = redispatch(keyset, *args)  # below autograd by its keys; what it calls does not record, since gradients are disabled here
            ctx.op = op = current()
            save(ctx, op, args, output if isinstance(output, tuple) else (output,))
            return output

        backward = staticmethod(differentiate)

    def kernel(keyset: Any, *args: Any) -> Any:
        if torch.is_grad_enabled() and _requires_grad(*args):
            if torch._C._are_functorch_transforms_active():
                raise KernelError(f"{name} cannot be differentiated by torch.func; torch.autograd.grad and backward() can")
            return Recorded.apply(keyset & _after_autograd, *args)
        with _below_autograd():
            return redispatch(keyset & _after_autograd, *args)

    fragment.impl(local, kernel, "Autograd", with_keyset=True)


def _save(ctx: Any, op: Op, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
    if len(inputs) < len(op.arguments):  # the dispatcher leaves arguments out that equal their defaults
        inputs = (*inputs, *[argument.default for argument in op.arguments[len(inputs) :]])
    ctx.values = [None if isinstance(value, torch.Tensor) else value for value in inputs]
    if not op.backward:
        op._native.count_fallback(f"{op.name} has no gradient in its package: PyTorch's implementation runs again for it")
        ctx.save_for_backward(*(value for value in inputs if isinstance(value, torch.Tensor)))
        ctx.tensors = tuple(i for i, value in enumerate(inputs) if isinstance(value, torch.Tensor))
        ctx.mark_non_differentiable(*(out for out in outputs if isinstance(out, torch.Tensor) and not out.is_floating_point()))
        return
    plan = op._save_plan
    if plan is None:
        plan = op._save_plan = _plan(op)
    saved, differentiable = plan
    ctx.save_for_backward(*[outputs[i] if is_result else inputs[i] for is_result, i in saved])
    if differentiable < len(outputs):
        ctx.mark_non_differentiable(*outputs[differentiable:])
    if differentiable == 1:  # zeros for the others would only cost
        ctx.set_materialize_grads(False)


def _plan(op: Op) -> tuple[tuple[tuple[bool, int], ...], int]:
    """What is saved, (whether it is a result, its number), and how many results are differentiable."""
    saved = tuple((source == "result", i) for source, i in op.backward_arguments if _is_saved(op, source, i))
    return saved, sum(source == "gradient" for source, _ in op.backward_arguments)


def _is_saved(op: Op, source: str, index: int) -> bool:
    return source == "result" or (source == "argument" and op.arguments[index].is_tensor)


def _backward(ctx: Any, op: Op, grads: tuple[Any, ...]) -> tuple[Any, ...]:
    if all(gradient is None for gradient in grads):
        return tuple(None for _ in op.arguments)
    if not op.backward:
        return _backward_by_pytorch(ctx, op, grads)
    saved = iter(ctx.saved_tensors)
    needs = (*ctx.needs_input_grad[1:], *(False for _ in op.arguments))  # arguments that were left out of the call have no entry
    arguments: list[Any] = []
    for source, index in op.backward_arguments:
        if source == "gradient":
            arguments.append(grads[index])
        elif source == "needs":
            arguments.append(needs[index])
        else:
            arguments.append(next(saved) if _is_saved(op, source, index) else ctx.values[index])
    backward = op._library[op.backward]
    run: Callable[..., Any] = backward._torch_form({})
    if torch.is_grad_enabled():  # the gradients are to be differentiated again
        again = _vjp.fallback_of_gradient(backward, op)
        if again is not None:
            op._native.count_fallback(f"{op.name} has no second derivative in its package: PyTorch's gradient runs for it")
            run = again
    results = run(*arguments)
    found = iter(results if isinstance(results, tuple) else (results,))
    gradients = tuple(next(found) if argument.is_tensor else None for argument in op.arguments)
    return tuple(gradient if needed else None for gradient, needed in zip(gradients, needs))


def _backward_by_pytorch(ctx: Any, op: Op, grads: tuple[Any, ...]) -> tuple[Any, ...]:
    arguments = list(ctx.values)
    for i, tensor in zip(ctx.tensors, ctx.saved_tensors):
        arguments[i] = tensor
    wanted = [i for i in ctx.tensors if i + 1 < len(ctx.needs_input_grad) and ctx.needs_input_grad[i + 1]]
    run = _vjp.implementation(op.name)
    assert run is not None, "recorded only where there is one"
    found = dict(zip(wanted, _vjp.differentiate(run, arguments, wanted, grads)))
    return tuple(found.get(i) for i in range(len(op.arguments)))
