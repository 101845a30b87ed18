"""Autocast and vmap: what dtypes ops compute in under torch.autocast, and how they run over a dimension more.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from kpkg._op import Op

# ---- autocast: as PyTorch does for its op of the same work -----------------------------------------------------------

_LOWER = {
    f"kpkg::{name}"
    for name in "gemm gemm_batched bmm matmul gemv linear gemm_grouped rnn_tanh_cell rnn_relu_cell".split()
}
# On CPUs PyTorch casts the products of these alone, so that states keep their dtype.
_LOWER_CUDA = {"kpkg::lstm_cell", "kpkg::gru_cell"}
_FLOAT32_CUDA = {
    f"kpkg::{name}"
    for name in "softmax log_softmax layer_norm native_layer_norm group_norm native_group_norm cross_entropy kl_div "
    "cumsum cumprod prod sum softplus vector_norm exp log logsumexp".split()
}
_FLOAT32_CPU = {f"kpkg::{name}" for name in "avg_pool3d cross_entropy".split()}
# Their tables may have more digits than their other arguments, which decide.
_MIXED = {f"kpkg::{name}" for name in "rotary_embedding rotary_embedding_backward".split()}


def casts(op: Op) -> tuple[Any, Any] | None:
    """The dtype of the op's float arguments under autocast, on the CPU and on CUDA devices.

    It is a dtype, a function that gives it, or None, which leaves them unless they have several dtypes. The whole is
    None for an op that autocast leaves alone.
    """
    if not any(a.is_tensor for a in op.arguments) or any(a.mutates for a in op.arguments) or op.name in _MIXED:
        return None
    if op.name in _LOWER:
        return partial(torch.get_autocast_dtype, "cpu"), partial(torch.get_autocast_dtype, "cuda")
    if op.name in _LOWER_CUDA:
        return None, partial(torch.get_autocast_dtype, "cuda")
    return torch.float32 if op.name in _FLOAT32_CPU else None, torch.float32 if op.name in _FLOAT32_CUDA else None


def _autocast_dtype(cast: Any, tensors: list[Tensor]) -> torch.dtype | None:
    """The dtype that float arguments are cast to; None leaves them. `cast` is that of `casts`."""
    if cast is not None:
        return cast() if callable(cast) else cast
    dtypes = {t.dtype for t in tensors if t.is_floating_point()}
    if len(dtypes) < 2:
        return None
    widest = torch.float16
    for dtype in dtypes:  # mixed arguments: the widest, as PyTorch's ops promote
        widest = torch.promote_types(widest, dtype) if widest in dtypes or dtype != torch.bfloat16 else dtype
    return widest


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, Tensor) and value.is_floating_point() and value.dtype not in (dtype, torch.float64):
        return value.to(dtype)
    return value


def register_autocast(name: str, op: Op, fragment: torch.library.Library) -> None:
    """Makes `name` of the dispatcher, which is `op`, follow torch.autocast on the CPU and on CUDA devices.

    Other namespaces' ops have mixed dtypes promoted.
    """
    namespace, _, local = name.partition("::")
    overload = getattr(getattr(torch.ops, namespace), local).default
    by_device = casts(op)
    if by_device is None:
        return

    def kernel(device: str, cast: Any) -> Callable[..., Any]:
        key = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, f"Autocast{device.upper()}"))

        def run(*args: Any) -> Any:
            dtype = _autocast_dtype(cast, [a for a in args if isinstance(a, Tensor)])
            with torch._C._ExcludeDispatchKeyGuard(key):
                return overload(*args) if dtype is None else overload(*(_cast(a, dtype) for a in args))

        return run

    for device, cast in zip(("cpu", "cuda"), by_device):
        fragment.impl(local, kernel(device, cast), f"Autocast{device.upper()}")


# ---- vmap ------------------------------------------------------------------------------------------------------------

_UNARY = {
    f"kpkg::{name}"
    for name in (
        "relu leaky_relu gelu silu sigmoid tanh elu selu softplus hardtanh hardsigmoid hardswish mish softsign "
        "exp log sqrt abs layer_norm native_layer_norm rms_norm silu_and_mul gelu_and_mul clamped_swiglu"
    ).split()
}  # of their first argument alone: a dimension before the others changes nothing
_ALONG = {
    f"kpkg::{name}" for name in "softmax log_softmax cumsum cumprod".split()
}  # along the dimension that the second argument names


def register_vmap(name: str, local: str, current: Callable[[], Op], fragment: torch.library.Library) -> None:
    """Makes op `name` run under torch.vmap.

    By the same op where one dimension more gives the same, else by a loop over the dimension.
    """
    namespace = name.partition("::")[0]
    overload = getattr(getattr(torch.ops, namespace), local).default
    public = f"{namespace.partition('__')[0]}::{local}"

    def rule(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
        op = current()
        values = [*args, *(a.default for a in op.arguments[len(args) :])]
        dims = [
            *(d if isinstance(d, int) else None for d in in_dims),
            *(None for _ in range(len(values) - len(in_dims))),
        ]
        only_first = dims[0] is not None and all(d is None for d in dims[1:])
        if only_first and public in _UNARY:
            result = overload(values[0].movedim(dims[0], 0), *values[1:])
        elif only_first and public in _ALONG and values[0].dim() > 1:
            dim = values[1] if values[1] < 0 else values[1] + 1
            result = overload(values[0].movedim(dims[0], 0), dim, *values[2:])
        else:
            return _loop(overload, info.batch_size, dims, values)
        return result, tuple(0 for _ in result) if isinstance(result, tuple) else 0

    torch.library.register_vmap(name, rule, lib=fragment)


def _loop(overload: Any, size: int, dims: list[int | None], values: list[Any]) -> tuple[Any, Any]:
    def one(i: int) -> Any:
        return overload(*(v if d is None else v.select(d, i) for d, v in zip(dims, values)))

    results = [one(i) for i in range(size)]
    if not results:
        raise RuntimeError(
            f"vmap over a dimension of extent 0: {overload} does not run, so that its result has no shape"
        )
    if isinstance(results[0], tuple):
        columns = tuple(None if column[0] is None else torch.stack(column) for column in zip(*results))
        return columns, tuple(None if column is None else 0 for column in columns)
    return torch.stack(results), 0
