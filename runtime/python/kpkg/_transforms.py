"""Autocast and vmap: what dtypes ops compute in under torch.autocast, and how they run over a dimension more.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import torch
from torch import Tensor

from kpkg import _promotion
from kpkg._op import Op

# ---- autocast: as PyTorch does for its op of the same work -----------------------------------------------------------


def _named(names: str) -> frozenset[str]:
    return frozenset(f"kpkg::{name}" for name in names.split())


#: Products, convolutions and attention: in the dtype of autocast.
_LOWER = _named(
    "gemm gemm_batched bmm matmul linear linear_fused rnn_tanh_cell rnn_relu_cell "
    "conv1d conv2d conv3d conv1d_fused conv2d_fused conv3d_fused conv_transpose1d conv_transpose2d conv_transpose3d "
    "scaled_dot_product_attention attention attention_varlen attention_decode attention_latent attention_documents"
)
#: On CPUs PyTorch casts the products of these cells alone, so that states keep their dtype, and of `mv` nothing.
_LOWER_CUDA = _named("lstm_cell gru_cell gemv")
_FLOAT32_CUDA = _named(
    "softmax log_softmax layer_norm native_layer_norm rms_norm group_norm cross_entropy kl_div "
    "cumsum cumprod prod sum softplus vector_norm exp log logsumexp"
)
_FLOAT32_CPU = _named("avg_pool3d max_pool3d cross_entropy kl_div prod")


def casts(op: Op) -> tuple[Any, Any] | None:
    """The dtype of the op's float arguments under autocast, on the CPU and on CUDA devices.

    It is a dtype, a function that gives it, or None, which leaves them unless they have several dtypes. The whole is
    None for an op that autocast leaves alone.
    """
    if not any(a.is_tensor for a in op.arguments) or any(a.mutates for a in op.arguments):
        return None
    if op.name in _LOWER:
        return partial(torch.get_autocast_dtype, "cpu"), partial(torch.get_autocast_dtype, "cuda")
    if op.name in _LOWER_CUDA:
        return None, partial(torch.get_autocast_dtype, "cuda")
    is_wide_on_gpus = op.name in _FLOAT32_CUDA and (op.name != "kpkg::rms_norm" or _casts_rms_norm())
    return torch.float32 if op.name in _FLOAT32_CPU else None, torch.float32 if is_wide_on_gpus else None


def _casts_rms_norm() -> bool:
    """Whether this PyTorch's autocast has a rule for it on GPUs. Older ones have none."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key("aten::rms_norm", "AutocastCUDA"))


def _autocast_dtype(cast: Any, tensors: list[Tensor]) -> torch.dtype | None:
    """The dtype that float arguments are cast to; None leaves them. `cast` is that of `casts`."""
    if cast is not None:
        return cast() if callable(cast) else cast
    dtypes = {t.dtype for t in tensors if is_cast(t)}
    if len(dtypes) < 2:
        return None
    return reduce(torch.promote_types, dtypes)


def is_cast(value: Any) -> bool:
    """Whether autocast changes the dtype of such an argument: not of float64, and not of 8-bit floats."""
    return isinstance(value, Tensor) and value.is_floating_point() and value.dtype in _CAST


_CAST = (torch.float32, torch.float16, torch.bfloat16)


def _cast(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype) if is_cast(value) and value.dtype != dtype else value


def register_autocast(name: str, op: Op, fragment: torch.library.Library) -> None:
    """Makes `name` of the dispatcher, which is `op`, follow torch.autocast on the CPU and on CUDA devices.

    Mixed dtypes of other ops are promoted where their kernels do not take them, as PyTorch's ops do by themselves.
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
                if dtype is None:
                    return overload(*args)
                if cast is None and op.name in _promotion.OPS:
                    call = _promotion.promoted(op, args, {})
                    return overload(*args) if call is None else call.run(overload)
                promoted = tuple(_cast(a, dtype) for a in args)
                if cast is not None:
                    return overload(*promoted)
                try:
                    return overload(*args)
                except RuntimeError:  # it refuses mixed dtypes
                    try:
                        return overload(*promoted)
                    except RuntimeError:
                        return overload(*args)  # fails again, with the dtypes that were given

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
