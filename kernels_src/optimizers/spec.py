"""No specs: these ops take lists of tensors. test/python/test_optimizers.py tests them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from opspec import OpSpec

SPECS: list[OpSpec] = []
