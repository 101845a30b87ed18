"""Connects an op with its gradients through PyTorch's autograd.

The gradients are those of the package's backward op, or PyTorch's own.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from kpkg import _fallbacks, _vjp
from kpkg._errors import KernelError
from kpkg._native import GradientPlan, Recorder, needed
from kpkg._op import Op

_after_autograd = torch._C._after_autograd_keyset
_below_autograd = torch._C._AutoDispatchBelowAutograd
_requires_grad = torch._C._any_requires_grad


class _Recording(NamedTuple):
    """The objects with which calls of an op are recorded."""

    recorder: Recorder
    #: Records a call: PyTorch's nodes in Python, or nodes in C++ if kpkg has them and the package has the gradient.
    apply: Callable[..., Any]
    #: The description of the op for nodes in C++, or None without such nodes.
    state: Any


# By the dispatcher's name of an op. Registrations are permanent.
_recordings: dict[str, _Recording] = {}


@functools.cache
def nodes() -> ModuleType | None:
    """Returns autograd's nodes in C++ for this release of PyTorch, or None if kpkg was built without them.

    Their backward passes need neither Python nor its lock.
    """
    release = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)(\+.*)?", torch.__version__)
    try:
        return importlib.import_module(f"kpkg._nodes_{'_'.join(release.groups()[:3])}") if release else None
    except ImportError:
        return None


def note_registration() -> None:
    """Notes that names of the dispatcher may stand for other ops from now on."""
    if (found := nodes()) is not None:
        found.note_registration()


def register(name: str, op: Op, current: Callable[[], Op], fragment: torch.library.Library) -> None:
    """Makes autograd record calls of the dispatcher's op `name` with the gradient of `op`, which now has the name.

    The gradient is the package's, else PyTorch's if kpkg knows the PyTorch implementation. `current` returns the op
    that has the name at the time of a call.
    """
    _implement(name, current, fragment)
    recording, known = _recordings[name], _known(op) if op.gradient else ()
    recording.recorder.plan = GradientPlan(*known) if known else _ByPyTorch(op)
    if (found := nodes()) is not None:
        found.use(recording.state, *known)


def register_gradient(name: str, op: Op, current: Callable[[], Op], fragment: torch.library.Library) -> None:
    """Makes autograd record calls of an op that computes the gradients of another op.

    Second derivatives are PyTorch's, or an error if there are none.

    Without this registration, PyTorch would continue with missing gradients.
    """
    _implement(name, current, fragment)
    _recordings[name].recorder.plan = _Second(op)


def recorder(name: str) -> Callable[..., Any]:
    """Returns a function that records a plain call of op `name`: ``recorder(name)(call, *arguments)``.

    It is for calls that only autograd has to see.
    """
    return _recordings[name].apply


def _implement(name: str, current: Callable[[], Op], fragment: torch.library.Library) -> None:
    if name in _recordings:
        return
    namespace, _, local = name.partition("::")
    redispatch = getattr(getattr(torch.ops, namespace), local).default.redispatch
    recorder = Recorder()

    # This omits the part of torch.autograd.Function for functions that are no ops. The dispatcher has resolved
    # torch.func's transforms before an op's autograd kernel runs.
    class Recorded(_SingleLevelFunction):
        forward = staticmethod(recorder.forward)
        backward = staticmethod(Recorder.backward)

    Recorded._backward_cls.apply = Recorder.apply  # directly, without `backward`
    found = nodes()
    _recordings[name] = _Recording(
        recorder, *(found.recorder(Recorded.apply) if found is not None else (Recorded.apply, None))
    )

    def kernel(keyset: Any, *args: Any) -> Any:
        below = keyset & _after_autograd
        if forward_ad._current_level >= 0 and _has_tangent(args):
            return _with_tangents(current(), args)
        if torch.is_grad_enabled() and _requires_grad(*args):
            if not torch._C._are_functorch_transforms_active():
                return Recorded.apply(
                    partial(redispatch, below), *args
                )  # calls within record nothing, since gradients are disabled there

            def run(*args: Any) -> Any:
                with (
                    torch.enable_grad(),
                    forward_ad._set_fwd_grad_enabled(True),
                ):  # for outer transforms; the keys exclude autograd for this one
                    return redispatch(below, *args)

            with enable_single_level_autograd_function():
                return Recorded.apply(run, *args)
        with _below_autograd():
            return redispatch(below, *args)

    fragment.impl(local, kernel, "Autograd", with_keyset=True)


def _has_tangent(args: tuple[Any, ...]) -> bool:
    return any(isinstance(a, torch.Tensor) and forward_ad.unpack_dual(a).tangent is not None for a in args)


def _with_tangents(op: Op, args: tuple[Any, ...]) -> Any:
    """Computes forward-mode derivatives by PyTorch's implementation of the op."""
    run = _fallbacks.implementation(op)
    if run is None:
        raise KernelError(f"{op.name} has no forward-mode derivative: kpkg knows no implementation of it in PyTorch")
    op._native.count_fallback(
        f"{op.name} has no forward-mode derivative in its package: PyTorch's implementation runs for it"
    )
    return run(*args)


def _known(op: Op) -> tuple[Any, ...]:
    """Returns the description of a package's gradient of `op` for nodes in C++."""
    arguments = op.arguments
    return (
        op._library[op.gradient],
        tuple(op.backward_arguments),
        [a.is_tensor for a in arguments],
        tuple(a.default for a in arguments),
    )


class _ByPyTorch:
    """Runs and differentiates PyTorch's implementation of an op that has no gradient in its package."""

    def __init__(self, op: Op) -> None:
        self.op = op

    def save(self, node: Any, arguments: tuple[Any, ...], results: tuple[Any, ...]) -> None:
        self.op._native.count_fallback(
            f"{self.op.name} has no gradient in its package: PyTorch's implementation runs again for it"
        )
        self._save_all(node, arguments, results)

    def _save_all(self, node: Any, arguments: tuple[Any, ...], results: tuple[Any, ...]) -> None:
        # Callers and the dispatcher leave out arguments that equal their defaults. Lists are copied, since the
        # caller may change them.
        arguments = (*arguments, *[argument.default for argument in self.op.arguments[len(arguments) :]])
        arguments = tuple(tuple(value) if type(value) is list else value for value in arguments)
        node.values = [None if isinstance(value, torch.Tensor) else value for value in arguments]
        node.tensors = tuple(i for i, value in enumerate(arguments) if isinstance(value, torch.Tensor))
        node.save_for_backward(*(arguments[i] for i in node.tensors))
        node.mark_non_differentiable(
            *(out for out in results if isinstance(out, torch.Tensor) and not out.is_floating_point())
        )

    def implementation(self) -> Callable[..., Any]:
        run = _fallbacks.implementation(self.op)
        assert run is not None, "recorded only where there is one"
        return run

    def backward(self, node: Any, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        needs = needed(node)
        arguments = list(node.values)
        for i, tensor in zip(node.tensors, node.saved_tensors):
            arguments[i] = tensor
        wanted = [i for i in node.tensors if i + 1 < len(needs) and needs[i + 1]]
        found = dict(zip(wanted, _vjp.differentiate(self.implementation(), arguments, wanted, gradients)))
        return (None, *(found.get(i) for i in range(len(needs) - 1)))


class _Second(_ByPyTorch):
    """Runs and differentiates PyTorch's implementation of an op that computes the gradients of another."""

    save = _ByPyTorch._save_all

    def implementation(self) -> Callable[..., Any]:
        run, forward = _fallbacks.implementation(self.op), self.op.differentiates
        assert forward is not None, "this op has its gradients"
        if run is None:
            raise KernelError(f"{forward.name} has no second derivative: its backward cannot be differentiated")
        forward._native.count_fallback(
            f"{forward.name} has no second derivative in its package: PyTorch's gradient runs for it"
        )
        return run
