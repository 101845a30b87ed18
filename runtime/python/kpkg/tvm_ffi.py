"""Loads packages as modules of tvm-ffi. The import registers the loader.

    import kpkg.tvm_ffi
    import tvm_ffi

    ops = tvm_ffi.load_module("softmax.kpkg")
    y = ops.softmax(x, -1)

Docs: docs/tvm-ffi.md.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import tvm_ffi

from kpkg._errors import CaptureError, DeviceError, KernelError, PackageError

#: The library that loads packages, for programs without Python.
LIBRARY = Path(__file__).parent / "libkpkg_tvm_ffi.so"

for _error in (CaptureError, DeviceError, KernelError, PackageError, MemoryError, OSError):
    tvm_ffi.register_error(_error.__name__, _error)

if not LIBRARY.exists():
    raise ImportError(f"kpkg was built without apache-tvm-ffi: {LIBRARY} is missing")
_loaded = ctypes.CDLL(str(LIBRARY))

__all__ = ["LIBRARY"]
