"""What happens when a package has no kernel for a call: the fallback policy, and fallbacks of one's own.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakSet

if TYPE_CHECKING:
    from kpkg._library import CustomOpLibrary

Policy = Literal["strict", "warn", "silent"]
POLICIES: dict[str, int] = {"strict": 1, "warn": 2, "silent": 3}

libraries: WeakSet[CustomOpLibrary] = WeakSet()
fallbacks: dict[str, Callable[..., Any]] = {}
_current: str = os.environ.get("KPKG_FALLBACK", "warn")


def check_policy(policy: str) -> int:
    """The runtime's number of a policy; ValueError for an unknown one."""
    if policy not in POLICIES:
        raise ValueError(f"unknown fallback policy {policy!r}; there are {', '.join(POLICIES)}")
    return POLICIES[policy]


check_policy(_current)


def get_fallback_policy() -> Policy:
    """The policy of all libraries that have none of their own: "strict", "warn" or "silent"."""
    return _current  # type: ignore[return-value]


def set_fallback_policy(policy: Policy) -> None:
    """Sets the policy for calls that no kernel of their package can run, for all libraries without one of their own.

    "strict" raises KernelError with what was tried; "warn", the default, runs PyTorch's implementation and warns once per op
    and reason (FallbackWarning); "silent" only counts. ``kpkg.kernel_info()`` shows the counts. The environment variable
    KPKG_FALLBACK sets the policy at start.
    """
    global _current
    number = check_policy(policy)
    _current = policy
    for library in libraries:
        if library.fallback_policy is None:
            library._native.set_policy(number)


@contextlib.contextmanager
def fallback_policy(policy: Policy) -> Iterator[None]:
    """Sets the policy within a ``with`` block. Process-wide, as ``set_fallback_policy``."""
    before = _current
    set_fallback_policy(policy)
    try:
        yield
    finally:
        set_fallback_policy(before)  # type: ignore[arg-type]


def set_fallback(op: str, function: Callable[..., Any]) -> None:
    """Makes `function` what runs for `op` ("namespace::name") on PyTorch tensors when no kernel can.

    It takes the op's arguments and returns new tensors. To be set before the package is loaded. The ops that kpkg ships have theirs.
    """
    if "::" not in op:
        raise ValueError(f"{op!r} is no op name; those look like 'kpkg::softmax'")
    fallbacks[op] = function
