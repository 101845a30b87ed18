"""Lists PyTorch's functions that an op of kpkg computes, and watches and replaces calls of them.

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

# Modules whose frames are between the function mode and the code that calls a function.
_BETWEEN = frozenset(
    {"torch.overrides", "torch.nn.functional", "torch.functional", "torch._jit_internal", "torch._tensor"}
)
# Modules whose layers inject replaces as a whole: calls that these layers make are not replaced.
_OF_LAYERS = ("torch.nn.modules.", "transformers.activations")


# A replacement, its ops, and the functions of PyTorch that it replaces.
_Row = tuple[Callable[..., Any], tuple[str, ...], tuple[Any, ...]]


def _table() -> dict[Any, Call]:
    """Returns the replacement of each function of PyTorch, which may have several names."""
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
    """Returns whether the call comes from a layer that inject replaces as a whole.

    The search begins above the frame of the function mode, which calls this function.
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

    PyTorch's function runs for a form of the call that the replacement does not compute.
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
    """Calls `found(call, function, args, kwargs)` for each call of a function in CALLS.

    Calls from layers that inject replaces as a whole are not reported.
    """

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
    """Holds the function mode of the replaced forward that a thread is in."""

    mode: Replacing | None = None


_active = _Active()


class Place:
    """Replaces calls of functions in the forward of `owner`, also while a layer around it has replaced calls.

    Only calls that the owner makes itself are replaced. Each layer within that makes some has a place and a table of
    its own.
    """

    def __init__(self, owner: nn.Module) -> None:
        self.owner = owner
        self._table: dict[Any, Call] = {}
        self._holds = 0

    @property
    def is_free(self) -> bool:
        """Returns whether the layer's own forward runs, or this place's."""
        return "forward" not in self.owner.__dict__ or self._holds > 0

    def put(self, call: Call) -> None:
        """Replaces the functions of `call` from now on."""
        self.hold()
        self._table.update((function, call) for function in call.functions)

    def take_out(self, call: Call) -> None:
        """Ends the replacement of the functions of `call`."""
        for function in call.functions:
            del self._table[function]
        self.release()

    def hold(self) -> None:
        """Makes the table of this place hold within the layer, even if it is empty."""
        if self._holds == 0:
            self.owner.forward = self._forward()
        self._holds += 1

    def release(self) -> None:
        """Undoes one `hold`; the last one restores the layer's own forward."""
        self._holds -= 1
        if self._holds == 0:
            self.owner.__dict__.pop("forward")

    def _forward(self) -> Callable[..., Any]:
        owner, table = self.owner, self._table

        def forward(*args: Any, **kwargs: Any) -> Any:
            plain = type(owner).forward  # looked up in each call: launches exchange the layer's class
            if torch.compiler.is_compiling():
                with Replacing(table):
                    return plain(owner, *args, **kwargs)
            outer = _active.mode
            if outer is not None:  # one mode for all layers: each mode slows down every function of PyTorch
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
