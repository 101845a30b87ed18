"""Collects ops as objects with a forward and a backward, and the functions that configure, compile and profile kernels.

    from kpkg.kernels import get_softmax
    softmax = get_softmax()
    y = softmax.forward(x)
    grad_input = softmax.backward(grad_output, y)

``get_NAME()`` returns the op NAME of ``kpkg.ops``. ``get_cuda_NAME()`` returns the same op: the device follows from the
arguments.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable

from kpkg._compiler import CompileError, Compiler, get_compiler
from kpkg._config import KernelConfig, PrecisionConfig
from kpkg._default import DefaultOp
from kpkg._default import ops as _ops
from kpkg._errors import DeviceError, KernelError
from kpkg._info import kernel_info
from kpkg._library import CustomOpLibrary, load
from kpkg._messages import missing as _missing
from kpkg._op import Op
from kpkg._profile import Profile, profile_kernel

__all__ = [
    "CompileError", "Compiler", "CustomOpLibrary", "DeviceError", "KernelConfig", "KernelError", "Op",
    "PrecisionConfig", "Profile", "get_compiler", "get_cuda_compiler", "kernel_info", "load", "profile_kernel",
]  # fmt: skip


def get_cuda_compiler() -> Compiler:
    """Returns ``kpkg.get_compiler()``: TORCH_CUDA_ARCH_LIST and `targets` choose what it compiles for.

    Raises:
        FileNotFoundError: There is no `kpkg` command.
    """
    return get_compiler()


def __getattr__(name: str) -> Callable[[], DefaultOp]:
    if name.startswith("get_"):
        op = name.removeprefix("get_").removeprefix("cuda_")
        if _ops.has(op):

            def get() -> DefaultOp:
                return getattr(_ops, op)

            get.__name__ = get.__qualname__ = name
            get.__doc__ = f"The op {op} of kpkg.ops, which has forward and backward."
            return get
    raise _missing("kpkg.kernels", name, __dir__())


def _names() -> set[str]:
    return {name.rpartition("::")[2] for name in _ops}


def __dir__() -> list[str]:
    return sorted({*__all__, "ops", *(f"get_{name}" for name in _names())})
