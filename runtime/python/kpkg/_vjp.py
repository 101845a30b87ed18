"""Computes gradients of functions by PyTorch's autograd, also within a kernel and within transforms of torch.func.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._functorch.eager_transforms import enable_inplace_requires_grad
from torch.autograd import forward_ad


@contextlib.contextmanager
def _recorded() -> Iterator[None]:
    """Makes autograd record, also within a kernel, below autograd."""
    include = torch._C._dispatch_tls_local_include_set()
    exclude = torch._C._dispatch_tls_local_exclude_set()
    for key in "AutogradOther AutogradCPU AutogradCUDA AutogradMeta AutogradNestedTensor ADInplaceOrView".split():
        exclude = exclude - torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
    with torch._C._ForceDispatchKeyGuard(include, exclude), torch.enable_grad():
        yield


def differentiate(
    function: Callable[..., Any], arguments: Sequence[Any], wanted: Sequence[int], grads: Sequence[Tensor | None]
) -> list[Tensor]:
    """Computes the gradients of ``function(*arguments)`` for the tensor arguments with the indices `wanted`.

    `grads` are the gradients of its first ``len(grads)`` results.

    A gradient is zero if the results do not depend on the argument. If gradients are enabled, the results can be
    differentiated again.
    """
    has_tangents = forward_ad._current_level >= 0 and any(_tangent(value) is not None for value in (*arguments, *grads))
    if torch._C._are_functorch_transforms_active() and not has_tangents:
        return _differentiate_functionally(function, arguments, wanted, grads)
    again = torch.is_grad_enabled()

    def leaf(i: int, value: Any) -> Any:
        if not isinstance(value, Tensor) or (again and (value.requires_grad or i not in wanted)):
            return value
        tangent = _tangent(value)  # detach() removes it
        fresh = value.detach().requires_grad_(i in wanted)
        return fresh if tangent is None else forward_ad.make_dual(fresh, tangent)

    with _recorded(), enable_inplace_requires_grad(True):  # for leaves that transforms of torch.func do not see
        leaves = [leaf(i, value) for i, value in enumerate(arguments)]
        results = function(*leaves)
        results = results if isinstance(results, tuple) else (results,)
        pairs = [(r, g) for r, g in zip(results, grads) if g is not None and r is not None and r.requires_grad]
        inputs = [leaves[i] for i in wanted]
        if not pairs or not inputs:
            return [torch.zeros_like(x) for x in inputs]
        found = torch.autograd.grad(
            [r for r, _ in pairs], inputs, [g.expand(r.shape) for r, g in pairs], allow_unused=True, create_graph=again
        )
    return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found)]


def _tangent(value: Any) -> Tensor | None:
    is_dual = isinstance(value, Tensor) and forward_ad._current_level >= 0
    return forward_ad.unpack_dual(value).tangent if is_dual else None


def _differentiate_functionally(
    function: Callable[..., Any], arguments: Sequence[Any], wanted: Sequence[int], grads: Sequence[Tensor | None]
) -> list[Tensor]:
    """Computes the same within transforms of torch.func, which have no leaves."""
    grads = [g if g is not None and g.is_floating_point() else None for g in grads]  # integers have no gradient
    if not wanted or all(g is None for g in grads):
        return [torch.zeros_like(arguments[i]) for i in wanted]

    def of_wanted(*values: Tensor) -> tuple[Tensor, ...]:
        given = list(arguments)
        for i, value in zip(wanted, values):
            given[i] = value
        results = function(*given)
        results = results if isinstance(results, tuple) else (results,)
        return tuple(r for r, g in zip(results, grads) if g is not None and r is not None)

    results, pull = torch.func.vjp(of_wanted, *(arguments[i] for i in wanted))
    return list(pull(tuple(g.expand(r.shape) for r, g in zip(results, (g for g in grads if g is not None)))))


def gradients(
    function: Callable[..., Any], inputs: Sequence[Any], grads: Sequence[Any], wanted: Sequence[bool] | None = None
) -> Any:
    """Computes the gradients of ``function(*inputs)`` for `inputs`, given the gradients of its first results.

    Returns one gradient, or a tuple of several. A gradient is None if the input is no tensor, or if `wanted` is false
    for it.
    """
    asked = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and (wanted is None or wanted[i])]
    found = dict(zip(asked, differentiate(function, inputs, asked, grads)))
    results = tuple(found.get(i) for i in range(len(inputs)))
    return results[0] if len(results) == 1 else results
