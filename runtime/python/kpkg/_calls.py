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


# Functions of PyTorch by the names of their ops, with their arguments in order.
_LIGHT = {
    "layer_norm": "input normalized_shape weight bias eps cudnn_enable",
    "group_norm": "input num_groups weight bias eps cudnn_enabled",
    "batch_norm": "input running_mean running_var weight bias training momentum eps",
    "instance_norm": "input running_mean running_var weight bias use_input_stats momentum eps",
    **dict.fromkeys(("relu", "silu", "mish", "selu", "hardsigmoid", "hardswish"), "input inplace"),
    **dict.fromkeys(("sigmoid", "tanh"), "input"),
    "gelu": "input approximate",
    "elu": "input alpha inplace",
    "leaky_relu": "input negative_slope inplace",
    "hardtanh": "input min_val max_val inplace",
    "softplus": "input beta threshold",
}
_CONVOLUTIONS = {
    "conv{}d": "input weight bias stride padding dilation groups",
    "conv_transpose{}d": "input weight bias stride padding output_padding groups dilation",
}
_POOLS = {
    "max_pool{}d": "input kernel_size stride padding dilation ceil_mode return_indices",
    "avg_pool{}d": "input kernel_size stride padding ceil_mode count_include_pad divisor_override",
}


def _functions(name: str, *owners: Any) -> tuple[Any, ...]:
    """Returns PyTorch's functions of the name, each once: several modules may have the same one."""
    found = (getattr(owner, name, None) for owner in owners)
    return tuple({id(function): function for function in found if function is not None}.values())


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
        (forms.rms_norm, ("rms_norm",), (F.rms_norm, torch.rms_norm)),
        (forms.relu6, ("hardtanh",), (F.relu6,)),
    ]
    for name in ("softmax", "log_softmax"):
        light.append((forms.softmax(name, "input dim _stacklevel dtype"), (name,), (getattr(F, name),)))
        light.append((forms.softmax(name, "input dim dtype"), (name,), _functions(name, torch, Tensor)))
    for name, arguments in _LIGHT.items():
        has_one_order = name not in ("batch_norm", "instance_norm")  # torch has these with another order of arguments
        owners = (F, torch, Tensor) if has_one_order else (F,)
        light.append((forms.forwarded(name, arguments), (name,), _functions(name, *owners)))
    for rank in (1, 2, 3):
        for pattern, arguments in (_CONVOLUTIONS | _POOLS).items():
            name = pattern.format(rank)
            row: _Row = (forms.forwarded(name, arguments), (name,), _functions(name, F, torch))
            (heavy if pattern in _CONVOLUTIONS else light).append(row)
        light.append((forms.adaptive_avg_pool(rank), ("mean",), (getattr(F, f"adaptive_avg_pool{rank}d"),)))
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
