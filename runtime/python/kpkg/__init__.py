"""kpkg: packages of compiled kernels as ops for NumPy, PyTorch and every other library that speaks DLPack.

    import kpkg
    ops = kpkg.load("gemm.kpkg")
    y = ops.gemm(a, b, alpha=2.0)

Ops take arrays and return arrays of the same kind. With PyTorch imported, they are also ``torch.ops.kpkg.gemm`` and so
on, usable in ``torch.compile`` and ``torch.export``. Importing this module imports neither PyTorch nor NumPy.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kpkg import _interpreter as _interpreter  # before all that import the native module
from kpkg._compiled import compiled
from kpkg._compiler import CompileError, Compiler, compile_from_source, get_compiler
from kpkg._config import KernelConfig, PrecisionConfig
from kpkg._default import ops
from kpkg._development import get_cmake_dir, get_include, get_pkgconfig_dir
from kpkg._errors import CaptureError, DeviceError, FallbackWarning, KernelError, KpkgWarning, PackageError
from kpkg._info import kernel_info
from kpkg._library import CustomOpLibrary, load
from kpkg._messages import missing as _missing
from kpkg._native import cpu_targets, cpu_threads, version
from kpkg._native import cpu_threads as get_cpu_threads
from kpkg._op import Op
from kpkg._policy import fallback_policy, get_fallback_policy, set_fallback, set_fallback_policy
from kpkg._profile import Profile, profile_kernel
from kpkg._threads import set_cpu_threads

if TYPE_CHECKING:
    from kpkg import jax as jax
    from kpkg import kernels as kernels
    from kpkg import nn as nn
    from kpkg import onnx as onnx
    from kpkg import optim as optim
    from kpkg import quantized as quantized
    from kpkg import sparse as sparse
    from kpkg import tvm_ffi as tvm_ffi
    from kpkg._inject import Injection as Injection
    from kpkg._inject import inject as inject
    from kpkg._measure import benchmark_op as benchmark_op
    from kpkg._rotary_tables import rotary_tables as rotary_tables
    from kpkg._sharding import register_sharding as register_sharding
    from kpkg._unique import unique as unique

_MODULES = ("jax", "kernels", "nn", "onnx", "optim", "quantized", "sparse", "tvm_ffi")
# Names whose modules need PyTorch. The first use of one imports PyTorch.
_LAZY = {
    "register_sharding": "_sharding",
    "inject": "_inject",
    "Injection": "_inject",
    "benchmark_op": "_measure",
    "rotary_tables": "_rotary_tables",
    "unique": "_unique",
}


def __getattr__(name: str) -> Any:
    """Imports modules and names at their first use.

    The ops of ``kpkg.ops`` can be imported by name, too: ``from kpkg import softmax``.
    """
    if name in _MODULES:
        return importlib.import_module(f"kpkg.{name}")
    if name in _LAZY:
        return getattr(importlib.import_module(f"kpkg.{_LAZY[name]}"), name)
    if not name.startswith("_") and ops.has(name):
        return getattr(ops, name)
    raise _missing("kpkg", name, __dir__())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *(name.rpartition("::")[2] for name in ops)})


def load_ipython_extension(shell: Any) -> None:
    """Registers the cell magic ``%%kpkg``, which compiles a cell of kernels, for ``%load_ext kpkg``.

    Args:
        shell: The IPython shell.

    Raises nothing.
    """
    from kpkg._notebook import register

    register(shell)


__version__: str = version()

__all__ = [
    "CaptureError", "CompileError", "Compiler", "CustomOpLibrary", "DeviceError", "FallbackWarning", "Injection",
    "KernelConfig", "KernelError", "KpkgWarning", "Op", "PackageError", "PrecisionConfig", "Profile", "benchmark_op",
    "compile_from_source", "compiled", "cpu_targets", "cpu_threads", "fallback_policy", "get_cmake_dir", "get_compiler",
    "get_cpu_threads", "get_fallback_policy", "get_include", "get_pkgconfig_dir", "inject", "kernel_info", "kernels",
    "load", "nn", "ops", "optim", "profile_kernel", "quantized", "register_sharding", "rotary_tables",
    "set_cpu_threads", "set_fallback", "set_fallback_policy", "sparse", "unique",
]  # fmt: skip
