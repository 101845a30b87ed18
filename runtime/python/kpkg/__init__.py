"""kpkg: packages of compiled kernels as ops for NumPy, PyTorch and everything that speaks DLPack.

    import kpkg
    ops = kpkg.load("gemm.kpkg")
    y = ops.gemm(a, b, alpha=2.0)

Arrays in, arrays of the same kind out. With PyTorch imported, the ops are also ``torch.ops.kpkg.gemm`` and so on, usable in
``torch.compile`` and ``torch.export``. Importing this module imports neither PyTorch nor NumPy.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from kpkg._config import KernelConfig
from kpkg._errors import DeviceError, FallbackWarning, KernelError, KpkgWarning, PackageError
from kpkg._library import CustomOpLibrary, Op, kernel_info, load
from kpkg._native import cpu_targets, cpu_threads, version
from kpkg._policy import fallback_policy, get_fallback_policy, set_fallback, set_fallback_policy

__version__: str = version()

__all__ = [
    "CustomOpLibrary",
    "DeviceError",
    "FallbackWarning",
    "KernelConfig",
    "KernelError",
    "KpkgWarning",
    "Op",
    "PackageError",
    "cpu_targets",
    "cpu_threads",
    "fallback_policy",
    "get_fallback_policy",
    "kernel_info",
    "load",
    "set_fallback",
    "set_fallback_policy",
]
