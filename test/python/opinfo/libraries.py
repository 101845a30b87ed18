"""Opens the packages that compute the ops with PyTorch's own signatures.

`KPKG_ADAPTER_PACKAGES` names their folder; the default is the folder that the tests build.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]
_BUILD = (_ROOT / os.environ.get("KPKG_BUILD_DIR", "build")).resolve()
if (_BUILD / "python").is_dir() and str(_BUILD / "python") not in sys.path:
    sys.path.insert(0, str(_BUILD / "python"))

import kpkg  # noqa: E402


class LeftToPyTorch(NotImplementedError):
    """Raised for a call that kpkg's op does not support; any other exception of an op is a failure."""


@functools.cache
def library(family: str) -> kpkg.CustomOpLibrary:
    folder = Path(os.environ.get("KPKG_ADAPTER_PACKAGES", _BUILD / "test-packages"))
    found = kpkg.load(folder / f"{family}.kpkg")
    found.set_fallback_policy("strict")  # an answer from PyTorch would prove nothing
    return found
