"""Sets the number of threads of large calls on CPUs.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from numbers import Integral

import kpkg._native as _native
from kpkg._messages import shown


def set_cpu_threads(count: int) -> None:
    """Sets how many threads a large call on the CPU uses from now on, in place of PyTorch's number.

    Args:
        count: The number of threads, from 1 to 1024.

    Raises:
        TypeError: `count` is no whole number.
        ValueError: `count` is not from 1 to 1024.
    """
    if isinstance(count, bool) or not isinstance(count, Integral):
        raise TypeError(f"set_cpu_threads takes a whole number of threads, not {shown(count)}")
    if not -(2**31) <= count < 2**31:  # the runtime takes 32 bits, and refuses all others with its own text
        raise ValueError(f"a large call uses 1 to 1024 threads, not {count}")
    _native.set_cpu_threads(int(count))
