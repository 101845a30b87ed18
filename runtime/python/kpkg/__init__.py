"""kpkg: packages of compiled kernels as ops for NumPy, PyTorch and everything that speaks DLPack.

    import kpkg
    ops = kpkg.load("gemm.kpkg")
    y = ops.gemm(a, b, alpha=2.0)

Arrays in, arrays of the same kind out. With PyTorch imported, the ops are also ``torch.ops.kpkg.gemm`` and so on, usable in
``torch.compile`` and ``torch.export``. Importing this module imports neither PyTorch nor NumPy.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kpkg._compiler import CompileError, Compiler, get_compiler
from kpkg._config import KernelConfig
from kpkg._default import ops
from kpkg._errors import CaptureError, DeviceError, FallbackWarning, KernelError, KpkgWarning, PackageError
from kpkg._library import CustomOpLibrary, Op, kernel_info, load
from kpkg._native import cpu_targets, cpu_threads, version
from kpkg._policy import fallback_policy, get_fallback_policy, set_fallback, set_fallback_policy
from kpkg._profile import Profile, profile_kernel

if TYPE_CHECKING:
    from kpkg import nn as nn
    from kpkg import sparse as sparse
    from kpkg._inject import Injection as Injection
    from kpkg._inject import inject as inject
    from kpkg._measure import benchmark_op as benchmark_op
    from kpkg._sharding import register_sharding as register_sharding

# Names of modules that need PyTorch, which is imported with the first of them.
_LAZY = {"register_sharding": "_sharding", "inject": "_inject", "Injection": "_inject", "benchmark_op": "_measure"}


def __getattr__(name: str) -> Any:
    if name in ("nn", "sparse"):
        return importlib.import_module(f"kpkg.{name}")
    if name in _LAZY:
        return getattr(importlib.import_module(f"kpkg.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'kpkg' has no attribute {name!r}")


__version__: str = version()

__all__ = [
    "CaptureError",
    "CompileError",
    "Compiler",
    "CustomOpLibrary",
    "DeviceError",
    "FallbackWarning",
    "Injection",
    "KernelConfig",
    "KernelError",
    "KpkgWarning",
    "Op",
    "PackageError",
    "Profile",
    "cpu_targets",
    "cpu_threads",
    "benchmark_op",
    "fallback_policy",
    "get_compiler",
    "get_fallback_policy",
    "inject",
    "kernel_info",
    "load",
    "nn",
    "ops",
    "profile_kernel",
    "register_sharding",
    "set_fallback",
    "set_fallback_policy",
    "sparse",
]
