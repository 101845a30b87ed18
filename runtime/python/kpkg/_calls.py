"""Calls of PyTorch's functions that an op of kpkg computes: which there are, and how they are watched and replaced.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from kpkg import _call_forms as forms
from kpkg import _call_products as products
from kpkg._call_forms import Call

# Whose frames stand between a call of a function and the code that calls it.
_BETWEEN = frozenset(
    {"torch.overrides", "torch.nn.functional", "torch.functional", "torch._jit_internal", "torch._tensor"}
)
# What calls functions within layers that inject takes as a whole.
_OF_LAYERS = ("torch.nn.modules.", "transformers.activations")


# A replacement, its ops, the functions of PyTorch that it stands for.
_Row = tuple[Callable[..., Any], tuple[str, ...], tuple[Any, ...]]


def _table() -> dict[Any, Call]:
    """By PyTorch's function: what stands for it. One function of PyTorch may have several names."""
    heavy: list[_Row] = [
        (products.matmul, ("gemm", "gemm_batched"), (torch.matmul, Tensor.matmul, Tensor.__matmul__)),
        (products.mm, ("gemm",), (torch.mm, Tensor.mm)),
        (products.bmm, ("gemm_batched",), (torch.bmm, Tensor.bmm)),
        (products.addmm, ("gemm",), (torch.addmm, Tensor.addmm)),
        (products.baddbmm, ("gemm_batched",), (torch.baddbmm, Tensor.baddbmm)),
        (products.einsum, ("gemm", "gemm_batched"), (torch.einsum,)),
        (products.linear, ("linear",), (F.linear,)),
        (products.scaled_dot_product_attention, ("attention",), (F.scaled_dot_product_attention,)),
    ]
    light: list[_Row] = [
        (forms.softmax_of_functional("softmax"), ("softmax",), (F.softmax,)),
        (forms.softmax_of_tensors("softmax"), ("softmax",), (torch.softmax, Tensor.softmax)),
        (forms.softmax_of_functional("log_softmax"), ("log_softmax",), (F.log_softmax,)),
        (forms.softmax_of_tensors("log_softmax"), ("log_softmax",), (torch.log_softmax, Tensor.log_softmax)),
        (forms.layer_norm, ("layer_norm",), (F.layer_norm, torch.layer_norm)),
        (forms.rms_norm, ("rms_norm",), (F.rms_norm, torch.rms_norm)),
        (forms.group_norm, ("group_norm",), (F.group_norm, torch.group_norm)),
        (forms.batch_norm, ("batch_norm",), (F.batch_norm,)),
        (forms.instance_norm, ("instance_norm",), (F.instance_norm,)),
        (forms.gelu, ("gelu",), (F.gelu,)),
        (forms.relu, ("relu",), (F.relu, torch.relu, Tensor.relu)),
        (forms.silu, ("silu",), (F.silu,)),
        (forms.mish, ("mish",), (F.mish,)),
        (forms.sigmoid, ("sigmoid",), (torch.sigmoid, Tensor.sigmoid)),
        (forms.tanh, ("tanh",), (torch.tanh, Tensor.tanh)),
        (forms.elu, ("elu",), (F.elu,)),
        (forms.selu, ("selu",), (F.selu, torch.selu)),
        (forms.leaky_relu, ("leaky_relu",), (F.leaky_relu,)),
        (forms.hardtanh, ("hardtanh",), (F.hardtanh,)),
        (forms.relu6, ("hardtanh",), (F.relu6,)),
        (forms.hardsigmoid, ("hardsigmoid",), (F.hardsigmoid,)),
        (forms.hardswish, ("hardswish",), (F.hardswish,)),
        (forms.softplus, ("softplus",), (F.softplus,)),
    ]
    for rank in (1, 2, 3):
        for make, name in (
            (forms.conv, f"conv{rank}d"),
            (forms.conv_transpose, f"conv_transpose{rank}d"),
            (forms.max_pool, f"max_pool{rank}d"),
            (forms.avg_pool, f"avg_pool{rank}d"),
        ):
            known = {id(f): f for f in (getattr(F, name), getattr(torch, name, None)) if f is not None}
            row: _Row = (make(rank), (name,), tuple(known.values()))
            (heavy if "conv" in name else light).append(row)
        pool = getattr(F, f"adaptive_avg_pool{rank}d")
        light.append((forms.adaptive_avg_pool(rank), ("mean",), (pool,)))
    found: dict[Any, Call] = {}
    for row in (*heavy, *light):
        run, ops, functions = row
        call = Call(run.__name__, tuple(f"kpkg::{op}" for op in ops), run, functions, row in heavy)
        found.update((function, call) for function in functions)
    return found


CALLS: dict[Any, Call] = _table()


def _is_of_a_layer() -> bool:
    """Whether the function is called by a layer that stands for itself.

    Then a frame further up is that of the function mode.
    """
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name not in _BETWEEN:
            return bool(name.startswith(_OF_LAYERS))
        frame = frame.f_back  # type: ignore[assignment]
    return False


class Replacing(TorchFunctionMode):
    """Replaces calls of the functions in `table` within a block.

    Only calls whose form the replacement has.
    """

    def __init__(self, table: dict[Any, Call]) -> None:
        super().__init__()
        self.table = table

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        call = self.table.get(func)
        kwargs = kwargs or {}
        is_wanted = call is not None and "out" not in kwargs
        is_compiling = torch.compiler.is_compiling()
        if is_wanted and (call.when_compiled if is_compiling else not _is_of_a_layer()):  # type: ignore[union-attr]
            result = call.run(*args, **kwargs)  # type: ignore[union-attr]
            if result is not NotImplemented:
                return result
        return func(*args, **kwargs)


class Watching(TorchFunctionMode):
    """Tells `found(call, function, args, kwargs)` of each call of one of CALLS that no layer makes for itself."""

    def __init__(self, found: Callable[[Call, Any, Any, Any], None]) -> None:
        super().__init__()
        self.found = found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        call = CALLS.get(func)
        kwargs = kwargs or {}
        if call is not None and "out" not in kwargs and not _is_of_a_layer():
            self.found(call, func, args, kwargs)
        return func(*args, **kwargs)


class _Active(threading.local):
    """The function mode of the replaced forward that a thread is in."""

    mode: Replacing | None = None


_active = _Active()


class Place:
    """The forward of `owner` while calls of functions in it, or in a layer around it, are replaced.

    Only calls that the owner makes itself are: each layer within that makes some, too, has a place with a table of its
    own.
    """

    def __init__(self, owner: nn.Module) -> None:
        self.owner = owner
        self._table: dict[Any, Call] = {}
        self._holds = 0

    @property
    def is_free(self) -> bool:
        """Whether the layer's own forward runs, or this one."""
        return "forward" not in self.owner.__dict__ or self._holds > 0

    def put(self, call: Call) -> None:
        """From now on `call` stands for its functions."""
        self.hold()
        self._table.update((function, call) for function in call.functions)

    def take_out(self, call: Call) -> None:
        """And no longer."""
        for function in call.functions:
            del self._table[function]
        self.release()

    def hold(self) -> None:
        """The table of this place holds within the layer, also an empty one."""
        if self._holds == 0:
            self.owner.forward = self._forward()
        self._holds += 1

    def release(self) -> None:
        """As often as held: the layer's own forward runs."""
        self._holds -= 1
        if self._holds == 0:
            self.owner.__dict__.pop("forward")

    def _forward(self) -> Callable[..., Any]:
        owner, table = self.owner, self._table

        def forward(*args: Any, **kwargs: Any) -> Any:
            plain = type(owner).forward  # looked up now: launches exchange the layer's class
            if torch.compiler.is_compiling():
                with Replacing(table):
                    return plain(owner, *args, **kwargs)
            outer = _active.mode
            if outer is not None:  # one mode for all layers: each costs time for every function of PyTorch
                before, outer.table = outer.table, table
                try:
                    return plain(owner, *args, **kwargs)
                finally:
                    outer.table = before
            if not table:
                return plain(owner, *args, **kwargs)
            with Replacing(table) as mode:
                _active.mode = mode
                try:
                    return plain(owner, *args, **kwargs)
                finally:
                    _active.mode = None

        return forward
