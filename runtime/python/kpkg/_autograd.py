"""Gradients: connects an op with the backward op of its package, or with PyTorch's own gradient, through PyTorch's autograd.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from kpkg import _vjp
from kpkg._errors import KernelError
from kpkg._library import Op

# The ops by the dispatcher's name, whose registrations are here for good.
_registered: set[str] = set()

_after_autograd = torch._C._after_autograd_keyset
_below_autograd = torch._C._AutoDispatchBelowAutograd
_requires_grad = torch._C._any_requires_grad

Save = Callable[[Any, Op, tuple[Any, ...], tuple[Any, ...]], None]
Backward = Callable[[Any, Op, tuple[Any, ...], tuple[bool, ...]], tuple[Any, ...]]


def register(name: str, current: Callable[[], Op], fragment: torch.library.Library) -> None:
    """Makes autograd record op `name` of the dispatcher, with the gradient of the op that `current` says has the name now.

    Once per name; the name may change hands. That gradient is the package's, else PyTorch's where kpkg knows the PyTorch implementation.
    """
    _implement(name, current, _save, _backward, lambda op: _vjp.implementation(op.name), fragment)


def register_gradient(name: str, current: Callable[[], Op], forward: Op, fragment: torch.library.Library) -> None:
    """The same for `name`, the op with the gradients of `forward`: second derivatives are PyTorch's, or an error where there are none.

    Without it PyTorch would go on with gradients missing.
    """

    def second(ctx: Any, op: Op, grads: tuple[Any, ...], needs: tuple[bool, ...]) -> tuple[Any, ...]:
        run = _vjp.fallback_of_gradient(op, forward)
        if run is None:
            raise KernelError(f"{forward.name} has no second derivative: its backward cannot be differentiated")
        forward._native.count_fallback(f"{forward.name} has no second derivative in its package: PyTorch's gradient runs for it")
        return _by_pytorch(run, ctx, op, grads, needs)

    def implementation(op: Op) -> Callable[..., Any] | None:
        if torch._C._are_functorch_transforms_active() and not _vjp.has_formula(forward.name):
            return None  # it would have to be found by another transform, in the middle of this one
        return _vjp.fallback_of_gradient(op, forward)

    _implement(name, current, _save_all, second, implementation, fragment)


def recorder(name: str) -> Callable[..., Any]:
    """What records a plain call of op `name`, one that nothing but autograd has to see, in less time than the way through the dispatcher takes."""
    return _recorders[name]


_recorders: dict[str, Callable[..., Any]] = {}


def _implement(
    name: str,
    current: Callable[[], Op],
    save: Save,
    backward: Backward,
    implementation: Callable[[Op], Callable[..., Any] | None],
    fragment: torch.library.Library,
) -> None:
    if name in _registered:
        return
    _registered.add(name)
    namespace, _, local = name.partition("::")
    overload = getattr(getattr(torch.ops, namespace), local).default
    redispatch = overload.redispatch

    # `_SingleLevelFunction` is torch.autograd.Function without the part for functions that are no ops: the dispatcher has taken torch.func's
    # transforms apart before an op's autograd kernel runs.
    class Recorded(_SingleLevelFunction):
        @staticmethod
        def forward(ctx: Any, keyset: Any, *args: Any) -> Any:
            if torch._C._are_functorch_transforms_active():
                with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):  # for transforms further out; this one is below autograd by its keys
                    output = redispatch(keyset, *args)
            else:
                output = redispatch(keyset, *args)  # what it calls does not record, since gradients are disabled here
            ctx.op = op = current()
            save(ctx, op, args, output if isinstance(output, tuple) else (output,))
            return output

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
            needs = ctx.needs_input_grad
            return (None, *backward(ctx, ctx.op, grads, needs[1:]))[: len(needs)]

    class RecordedDirectly(_SingleLevelFunction):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            output = overload._op(*args)
            ctx.op = op = current()
            save(ctx, op, args, output if isinstance(output, tuple) else (output,))
            return output

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
            needs = ctx.needs_input_grad
            return backward(ctx, ctx.op, grads, needs)[: len(needs)]

    _recorders[name] = RecordedDirectly.apply

    def kernel(keyset: Any, *args: Any) -> Any:
        if forward_ad._current_level >= 0 and _has_tangent(args):
            return _with_tangents(current(), implementation(current()), args)
        if torch.is_grad_enabled() and _requires_grad(*args):
            if torch._C._are_functorch_transforms_active():
                with enable_single_level_autograd_function():
                    return Recorded.apply(keyset & _after_autograd, *args)
            return Recorded.apply(keyset & _after_autograd, *args)
        with _below_autograd():
            return redispatch(keyset & _after_autograd, *args)

    fragment.impl(local, kernel, "Autograd", with_keyset=True)


def _has_tangent(args: tuple[Any, ...]) -> bool:
    return any(isinstance(a, torch.Tensor) and forward_ad.unpack_dual(a).tangent is not None for a in args)


def _with_tangents(op: Op, run: Callable[..., Any] | None, args: tuple[Any, ...]) -> Any:
    """Forward-mode derivatives are PyTorch's, by its implementation `run` of the op."""
    if run is None:
        raise KernelError(f"{op.name} has no forward-mode derivative; for second derivatives take torch.func.jacrev twice")
    op._native.count_fallback(f"{op.name} has no forward-mode derivative in its package: PyTorch's implementation runs for it")
    return run(*args)


def _filled(op: Op, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Callers, and the dispatcher, leave arguments out that equal their defaults."""
    return (*inputs, *[argument.default for argument in op.arguments[len(inputs) :]])


def _save(ctx: Any, op: Op, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
    if not op.backward:
        op._native.count_fallback(f"{op.name} has no gradient in its package: PyTorch's implementation runs again for it")
        _save_all(ctx, op, inputs, outputs)
        return
    if len(inputs) < len(op.arguments):
        inputs = _filled(op, inputs)
    plan = op._save_plan
    if plan is None:
        plan = op._save_plan = _plan(op)
    saved, others, differentiable = plan
    ctx.values = [_kept(inputs[i]) for i in others]
    ctx.save_for_backward(*[outputs[i] if is_result else inputs[i] for is_result, i in saved])
    if differentiable < len(outputs):
        ctx.mark_non_differentiable(*outputs[differentiable:])
    if differentiable == 1:  # zeros for the others would only cost
        ctx.set_materialize_grads(False)


def _save_all(ctx: Any, op: Op, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
    """For `_by_pytorch`."""
    inputs = tuple(_kept(value) for value in _filled(op, inputs))
    ctx.values = [None if isinstance(value, torch.Tensor) else value for value in inputs]
    ctx.save_for_backward(*(value for value in inputs if isinstance(value, torch.Tensor)))
    ctx.tensors = tuple(i for i, value in enumerate(inputs) if isinstance(value, torch.Tensor))
    ctx.mark_non_differentiable(*(out for out in outputs if isinstance(out, torch.Tensor) and not out.is_floating_point()))


def _kept(value: Any) -> Any:
    return tuple(value) if type(value) is list else value  # the caller may change it


def _plan(op: Op) -> tuple[tuple[tuple[bool, int], ...], tuple[int, ...], int]:
    """What is saved, (whether it is a result, its number), which arguments are kept as they are, and how many results are differentiable."""
    saved = tuple((source == "result", i) for source, i in op.backward_arguments if _is_saved(op, source, i))
    others = tuple(i for source, i in op.backward_arguments if source == "argument" and not op.arguments[i].is_tensor)
    return saved, others, sum(source == "gradient" for source, _ in op.backward_arguments)


def _is_saved(op: Op, source: str, index: int) -> bool:
    return source == "result" or (source == "argument" and op.arguments[index].is_tensor)


def _backward(ctx: Any, op: Op, grads: tuple[Any, ...], needs: tuple[bool, ...]) -> tuple[Any, ...]:
    if all(gradient is None for gradient in grads):
        return tuple(None for _ in op.arguments)
    if not op.backward:
        run = _vjp.implementation(op.name)
        assert run is not None, "recorded only where there is one"
        return _by_pytorch(run, ctx, op, grads, needs)
    saved, others = iter(ctx.saved_tensors), iter(ctx.values)
    needs = (*needs, *(False for _ in op.arguments))  # arguments that were left out of the call have no entry
    arguments: list[Any] = []
    for source, index in op.backward_arguments:
        if source == "gradient":
            arguments.append(grads[index])
        elif source == "needs":
            arguments.append(needs[index])
        else:
            arguments.append(next(saved if _is_saved(op, source, index) else others))
    results = op._library[op.backward]._torch_form({})(*arguments)
    found = iter(results if isinstance(results, tuple) else (results,))
    gradients = tuple(next(found) if argument.is_tensor else None for argument in op.arguments)
    return tuple(gradient if needed else None for gradient, needed in zip(gradients, needs))


def _by_pytorch(
    run: Callable[..., Any], ctx: Any, op: Op, grads: tuple[Any, ...], needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    """Gradients of `run`, PyTorch's implementation of the op."""
    arguments = list(ctx.values)
    for i, tensor in zip(ctx.tensors, ctx.saved_tensors):
        arguments[i] = tensor
    wanted = [i for i in ctx.tensors if i < len(needs) and needs[i]]
    found = dict(zip(wanted, _vjp.differentiate(run, arguments, wanted, grads)))
    return tuple(found.get(i) for i in range(len(op.arguments)))
