"""Connects an op with its gradients through PyTorch's autograd.

The gradients are those of the package's backward op, or PyTorch's own.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import functools
import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from kpkg import _fallbacks, _policy, _vjp
from kpkg._errors import KernelError
from kpkg._op import Op

_after_autograd = torch._C._after_autograd_keyset
_below_autograd = torch._C._AutoDispatchBelowAutograd
_requires_grad = torch._C._any_requires_grad


@dataclass
class _Recording:
    """The means to record calls of an op."""

    #: Records a call: by nodes in C++ if kpkg has them and the package has the gradient, else by nodes in Python.
    apply: Callable[..., Any]
    #: The description of the op for nodes in C++, or None without such nodes.
    state: Any
    #: The current plan, for new nodes.
    plan: _Plan


# By the dispatcher's name of an op. Registrations are permanent.
_recordings: dict[str, _Recording] = {}


@functools.cache
def nodes() -> ModuleType | None:
    """Returns autograd's nodes in C++ for this release of PyTorch, or None if kpkg was built without them.

    Their backward passes need neither Python nor its lock.
    """
    release = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)(\+.*)?", torch.__version__)
    try:
        return importlib.import_module(f"{__package__}._nodes_{'_'.join(release.groups()[:3])}") if release else None
    except ImportError:
        return None


def note_registration() -> None:
    """Notes that names of the dispatcher may stand for other ops from now on."""
    if (found := nodes()) is not None:
        found.note_registration()


def register(name: str, op: Op, current: Callable[[], Op], fragment: torch.library.Library) -> None:
    """Makes autograd record calls of the dispatcher's op `name` with the gradient of `op`, which now has the name.

    The gradient is the package's, else PyTorch's if kpkg knows the PyTorch implementation. An op that computes the
    gradients of another one has PyTorch's second derivatives, or an error if there are none. Without this registration,
    PyTorch would continue with missing gradients. `current` returns the op that has the name at the time of a call.
    """
    plan: _Plan
    known: tuple[Any, ...] = ()
    if op.differentiates is not None:
        plan = _Second(op)
    elif op.gradient:
        plan, known = _ByPackage(op), _known(op)
    else:
        plan = _ByPyTorch(op)
    if name not in _recordings:
        _implement(name, plan, current, fragment)
    _recordings[name].plan = plan
    if (found := nodes()) is not None:
        found.use(_recordings[name].state, *known)


def recorder(name: str) -> Callable[..., Any]:
    """Returns a function that records a plain call of op `name`: ``recorder(name)(call, *arguments)``.

    It is for calls that only autograd has to see.
    """
    return _recordings[name].apply


def _implement(name: str, plan: _Plan, current: Callable[[], Op], fragment: torch.library.Library) -> None:
    namespace, _, local = name.partition("::")
    redispatch = getattr(getattr(torch.ops, namespace), local).default.redispatch

    # This omits the part of torch.autograd.Function for functions that are no ops. The dispatcher has resolved
    # torch.func's transforms before an op's autograd kernel runs.
    class Recorded(_SingleLevelFunction):
        @staticmethod
        def forward(node: Any, run: Callable[..., Any], *arguments: Any) -> Any:
            results = run(*arguments)
            node.plan = recording.plan
            node.plan.save(node, arguments, results if isinstance(results, tuple) else (results,))
            return results

        @staticmethod
        def backward(node: Any, *gradients: Any) -> Any:
            return node.plan.backward(node, gradients)

    found = nodes()
    apply, state = found.recorder(Recorded.apply) if found is not None else (Recorded.apply, None)
    recording = _recordings[name] = _Recording(apply, state, plan)

    def kernel(keyset: Any, *args: Any) -> Any:
        below = keyset & _after_autograd
        if forward_ad._current_level >= 0 and _has_tangent(args):
            return _with_tangents(current(), args)
        if torch.is_grad_enabled() and _requires_grad(*args):
            if not torch._C._are_functorch_transforms_active():
                # Calls within record nothing, since gradients are disabled there.
                return Recorded.apply(partial(redispatch, below), *args)

            def run(*args: Any) -> Any:
                # For outer transforms. The keys exclude autograd for this one.
                with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
                    return redispatch(below, *args)

            with enable_single_level_autograd_function():
                return Recorded.apply(run, *args)
        with _below_autograd():
            return redispatch(below, *args)

    fragment.impl(local, kernel, "Autograd", with_keyset=True)


def _has_tangent(args: tuple[Any, ...]) -> bool:
    return any(isinstance(a, Tensor) and forward_ad.unpack_dual(a).tangent is not None for a in args)


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
        op._library._ops[op.gradient],
        tuple(op.backward_arguments),
        [a.is_tensor for a in arguments],
        tuple(a.default for a in arguments),
    )


def _needed(node: Any) -> tuple[bool, ...]:
    """Returns, for each input of `node`, whether this run of the backward asks for its gradient.

    PyTorch's `needs_input_grad` is not enough. It names all inputs that require a gradient, even if torch.autograd.grad
    is called for others only.
    """
    needs: tuple[bool, ...] = node.needs_input_grad
    if sum(needs) < 2:  # the node only runs because its one gradient is asked for
        return needs
    # Tensors that require no gradient have an edge to None. The other edges are in the order of the inputs.
    edges = (following for following, _ in node.next_functions if following is not None)
    return tuple(need and _is_executed(next(edges, None)) for need in needs)


def _is_executed(node: Any) -> bool:
    """Returns whether autograd's engine, which runs now, will execute `node`."""
    try:
        return node is None or torch._C._will_engine_execute_node(node)
    except RuntimeError:  # PyTorch refuses leaves whose gradient is asked of torch.autograd.grad
        return True


def _is_deterministic() -> bool:
    return _policy.requires_deterministic() or torch.are_deterministic_algorithms_enabled()


class _Plan(ABC):
    """Saves a recorded call in autograd's node, and computes its gradients. Nodes keep the plan of their call.

    The first input of a node makes the call. The op's arguments are the inputs behind it.
    """

    def __init__(self, op: Op) -> None:
        self.op = op

    @abstractmethod
    def save(self, node: Any, arguments: tuple[Any, ...], results: tuple[Any, ...]) -> None:
        """Saves the values that `backward` reads. `arguments` may lack values of the last arguments."""

    @abstractmethod
    def backward(self, node: Any, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        """Returns the gradients of the node's inputs."""

    def _filled(self, arguments: tuple[Any, ...]) -> list[Any]:
        """Adds defaults: callers and the dispatcher leave out arguments that equal them."""
        return [*arguments, *(argument.default for argument in self.op.arguments[len(arguments) :])]

    @staticmethod
    def _keep(node: Any, values: list[Any]) -> None:
        # Lists are copied, since the caller may change them.
        node.values = [None if isinstance(v, Tensor) else tuple(v) if type(v) is list else v for v in values]
        node.places = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
        node.save_for_backward(*(values[i] for i in node.places))

    @staticmethod
    def _kept(node: Any) -> list[Any]:
        values = list(node.values)
        for i, tensor in zip(node.places, node.saved_tensors):
            values[i] = tensor
        return values


class _ByPackage(_Plan):
    """Computes gradients by the backward op of the package."""

    def __init__(self, op: Op) -> None:
        super().__init__(op)
        self.sources = op.backward_arguments
        self.differentiable = sum(source == "gradient" for source, _ in self.sources)

    def save(self, node: Any, arguments: tuple[Any, ...], results: tuple[Any, ...]) -> None:
        of = {"argument": self._filled(arguments), "result": results}
        self._keep(node, [of[source][index] for source, index in self.sources if source in of])
        node.mark_non_differentiable(*(result for result in results[self.differentiable :] if result is not None))
        if self.differentiable == 1:  # the backward reads no other gradient, so zeros for it would only cost time
            node.set_materialize_grads(False)

    def backward(self, node: Any, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        needs = _needed(node)
        if all(gradient is None for gradient in gradients):
            return tuple(None for _ in needs)
        kept = iter(self._kept(node))

        def value(source: str, index: int) -> Any:
            if source == "gradient":
                return gradients[index]
            if source == "needs":
                return index + 1 < len(needs) and needs[index + 1]
            return _is_deterministic() if source == "deterministic" else next(kept)

        op = self.op._library._ops[self.op.gradient]
        call = op._default if op._default is not None else op._torch_form({})
        results = call(*(value(*each) for each in self.sources))
        found = iter(results if isinstance(results, tuple) else (results,))
        of_inputs = [next(found) if argument.is_tensor else None for argument in self.op.arguments[: len(needs) - 1]]
        return (None, *(gradient if need else None for gradient, need in zip(of_inputs, needs[1:])))


class _ByPyTorch(_Plan):
    """Runs and differentiates PyTorch's implementation of an op that has no gradient in its package."""

    def save(self, node: Any, arguments: tuple[Any, ...], results: tuple[Any, ...]) -> None:
        self.op._native.count_fallback(
            f"{self.op.name} has no gradient in its package: PyTorch's implementation runs again for it"
        )
        self._save_all(node, arguments, results)

    def _save_all(self, node: Any, arguments: tuple[Any, ...], results: tuple[Any, ...]) -> None:
        self._keep(node, self._filled(arguments))
        node.mark_non_differentiable(
            *(out for out in results if isinstance(out, Tensor) and not out.is_floating_point())
        )

    def implementation(self) -> Callable[..., Any]:
        run = _fallbacks.implementation(self.op)
        assert run is not None, "recorded only where there is one"
        return run

    def backward(self, node: Any, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        needs = _needed(node)[1:]
        wanted = [i for i in node.places if i < len(needs) and needs[i]]
        found = dict(zip(wanted, _vjp.differentiate(self.implementation(), self._kept(node), wanted, gradients)))
        return (None, *map(found.get, range(len(needs))))


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
