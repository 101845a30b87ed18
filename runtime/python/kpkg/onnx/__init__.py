"""Runs ops of packages as nodes of ONNX Runtime, and rewrites nodes of models to them.

    import kpkg.onnx
    import onnxruntime

    options = onnxruntime.SessionOptions()
    kpkg.onnx.register(options, "softmax.kpkg")
    session = onnxruntime.InferenceSession("model.onnx", options)

Docs: docs/onnx.md.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpkg._messages import missing as _missing
from kpkg.onnx._register import ENTRY, LIBRARY, register

if TYPE_CHECKING:
    from kpkg.onnx._rewrite import Change as Change
    from kpkg.onnx._rewrite import Rewritten as Rewritten
    from kpkg.onnx._rewrite import rewrite as rewrite

# These need the package onnx.
_REWRITES = ("rewrite", "Rewritten", "Change")
__all__ = ["ENTRY", "LIBRARY", "register", "rewrite", "Change", "Rewritten"]


def __getattr__(name: str) -> Any:
    if name in _REWRITES:
        from kpkg.onnx import _rewrite

        return getattr(_rewrite, name)
    raise _missing("kpkg.onnx", name, __dir__())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
