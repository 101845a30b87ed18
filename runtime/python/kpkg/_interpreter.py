"""Refuses to be imported in interpreters that the native module cannot serve: subinterpreters.

Types of the native module are those of the process. A second import would define them anew, and the first interpreter
could not use its libraries any more.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib
from typing import Any


def is_main() -> bool:
    """Returns whether this is the process's main interpreter."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # of Python 3.13 and later, and of those before
        try:
            interpreters: Any = importlib.import_module(name)
        except ImportError:
            continue
        return bool(interpreters.get_current() == interpreters.get_main())
    return True


if not is_main():
    raise ImportError("kpkg works in the main interpreter alone: use threads or processes, not subinterpreters")
