"""Defines exceptions and warnings, and turns the runtime's messages into Python warnings and log records.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import logging
import sys
import warnings

import kpkg._native as _native
from kpkg._native import CaptureError, DeviceError, KernelError, PackageError

__all__ = ["CaptureError", "DeviceError", "FallbackWarning", "KernelError", "KpkgWarning", "PackageError"]

KernelError.__doc__ = """An op refused its arguments, failed in a kernel, or has no kernel for them.

Attributes: ``op``, ``instance`` and ``argument`` name what the error is about, "" where that does not apply.
"""
CaptureError.__doc__ = (
    "A KernelError: what the call needs, mostly to load a kernel, cannot be done while a CUDA graph is captured. Call "
    "``library.prewarm`` before."
)
DeviceError.__doc__ = "A call of a device's driver failed; the message has the call, its error's name and text."
PackageError.__doc__ = "A package file is damaged, too new, or not trusted."


class KpkgWarning(UserWarning):
    """Warns of an action of kpkg that its user may not have wanted."""


class FallbackWarning(KpkgWarning):
    """Warns that no kernel of the package could run a call, and that PyTorch's implementation ran in its place."""


def restored(error: RuntimeError) -> Exception:
    """Returns an error that PyTorch's dispatcher has raised as a RuntimeError with its own type; other errors as they
    are."""
    status, message, op, instance, argument = _native.last_error()
    if not message or message not in str(error):
        return error
    made: Exception = {8: DeviceError, 12: CaptureError}.get(status, KernelError)(str(error))
    made.op, made.instance, made.argument = op, instance, argument  # type: ignore[attr-defined]
    return made


_LOGGER = logging.getLogger("kpkg")
_LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)


def _caller_level() -> int:
    """Returns how many frames up the first one outside of kpkg and PyTorch is, so that warnings point at user code."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("kpkg", "torch"):
        frame, level = frame.f_back, level + 1
    return level


def _receive(level: int, message: str) -> None:
    """Receives every message of the runtime.

    Warnings become Python warnings, and texts that kernels print are printed. The rest goes to the ``kpkg`` logger.
    """
    if level == 1:
        kind = FallbackWarning if "fallback" in message or "falls back" in message else KpkgWarning
        warnings.warn(message, kind, stacklevel=_caller_level())
    elif level == 4:  # the output of a kernel's print
        print(message)
    else:
        _LOGGER.log(_LEVELS[level], "%s", message)


# A kernel repository has a copy of this module. In a process with kpkg the messages stay with kpkg.
if __package__ == "kpkg" or "kpkg" not in sys.modules:
    _native.set_log(_receive)
