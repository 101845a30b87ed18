"""Calls ops with PyTorch tensors of the host without PyTorch's dispatcher.

This works only if kpkg was built for this release of PyTorch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch

from kpkg import _autograd
from kpkg._op import Op

# Direct callables before PyTorch's forms of an op, by the dispatcher's name of the op.
_placed: dict[str, list[Any]] = {}


def make(op: Op, following: Any) -> Any:
    """Returns a callable that runs `op` directly where the dispatcher would do nothing else.

    It calls `following` in all other cases. If `following` is None, it returns NotImplemented then.

    Returns None for ops without direct calls: ops that write to arguments or take no tensors.
    """
    found = _autograd.nodes()
    if found is None or any(a.mutates for a in op.arguments) or not any(a.is_tensor for a in op.arguments):
        return None
    positional = sum(not argument.kwarg_only for argument in op._default._schema.arguments)
    return found.DirectCall(following, op._native.address, positional)


def attach(op: Op) -> None:
    """Makes calls of `op` itself run directly where they can."""
    op._is_compiling = torch.compiler.is_dynamo_compiling
    if op._direct is None:
        op._direct = make(op, None)
    else:
        op._direct.use(op._native.address)


def detach(op: Op) -> None:
    """Ends direct calls until the op is attached again."""
    if op._direct is not None:
        op._direct.use(0)


def place(name: str, op: Op) -> None:
    """Puts a direct callable before the callables of PyTorch's forms of `op`.

    `name` is the dispatcher's name of the op.
    """
    for form in (op._torch, op._default):
        if (call := make(op, form._op)) is not None:
            form._op = call
            _placed.setdefault(name, []).append(call)


def replace(name: str, op: Op) -> None:
    """Makes the callables placed for `name` run `op`, which has the name from now on."""
    for call in _placed.get(name, ()):
        call.use(op._native.address)
