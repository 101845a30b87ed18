"""The ops of this family write to their arguments and have no results to compare: test/python/test_adamw.py tests them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from opspec import OpSpec

SPECS: list[OpSpec] = []
