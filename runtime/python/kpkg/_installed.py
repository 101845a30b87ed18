"""Finds the files of the wheels kpkg-compiler and kpkg-kernels.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib.util
from pathlib import Path


def folder_of(package: str) -> Path | None:
    """Returns the folder of an installed Python package, without importing it, or None if it is not installed."""
    found = importlib.util.find_spec(package)
    return Path(found.origin).parent if found and found.origin else None
