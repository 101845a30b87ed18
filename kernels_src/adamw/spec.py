"""No specs: these ops write to their arguments and return nothing. test/python/test_adamw.py tests them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from opspec import OpSpec

SPECS: list[OpSpec] = []
