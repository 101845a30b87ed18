"""Chooses what runs if a package has no kernel for a call: the fallback policy, and the user's own fallbacks.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, Literal
from weakref import WeakSet

from kpkg._config import REQUIREMENTS
from kpkg._messages import closest
from kpkg._op import Library

Policy = Literal["strict", "warn", "silent"]
POLICIES: dict[str, int] = {"strict": 1, "warn": 2, "silent": 3}

libraries: WeakSet[Library] = WeakSet()
fallbacks: dict[str, Callable[..., Any]] = {}
op_policies: dict[str, str] = {}  # by full name
# Ops in whose place PyTorch's implementation ran before a package was asked, mostly since none has them. Each has its
# counts by reason, and the policy of the last time.
absent: dict[str, tuple[dict[str, int], str]] = {}
# KPKG_FALLBACK=warn,kpkg::softmax=strict sets it. The runtime reads the parts with an op, and warns of unknown ones.
_current: str = next(
    (part for part in reversed(os.environ.get("KPKG_FALLBACK", "").split(",")) if part in POLICIES), "warn"
)


def check_policy(policy: str) -> int:
    """Returns the runtime's number of a policy; raises ValueError for an unknown one."""
    if policy not in POLICIES:
        raise ValueError(
            f"unknown fallback policy {policy!r}{closest(str(policy), POLICIES)}; there are {', '.join(POLICIES)}"
        )
    return POLICIES[policy]


def _required() -> list[str]:
    return os.environ.get("KPKG_REQUIRE", "").split(",")


def requires_deterministic() -> bool:
    """Returns whether KPKG_REQUIRE asks for results that are equal bit for bit in every call."""
    return "deterministic" in _required()


def requires_batch_invariance() -> bool:
    """Returns whether KPKG_REQUIRE asks for rows that are rounded alike beside any number of other rows."""
    return "batch_invariant" in _required()


def check_environment() -> None:
    """Raises ValueError for a KPKG_REQUIRE with unknown flags.

    No package can be opened then, and PyTorch must not silently run in their place.
    """
    for flag in _required():
        if flag and flag not in REQUIREMENTS:
            raise ValueError(
                f"KPKG_REQUIRE has {flag!r}, which is not understood{closest(flag, REQUIREMENTS)}; there are "
                f"{', '.join(REQUIREMENTS)}"
            )


def get_fallback_policy() -> Policy:
    """Returns the policy of all libraries that have none of their own: "strict", "warn" or "silent"."""
    return _current  # type: ignore[return-value]


def set_fallback_policy(policy: Policy | None, op: str | None = None) -> None:
    """Sets the policy for calls that no kernel of their package can run.

    It holds for all libraries without a policy of their own. ``kpkg.kernel_info()`` shows the counts of fallbacks. The
    environment variable KPKG_FALLBACK sets the policy at start, also for single ops:
    ``KPKG_FALLBACK=warn,kpkg::softmax=strict``.

    Args:
        policy: "strict" raises KernelError with the attempts. "warn", the default, runs PyTorch's implementation and
            warns once per op and reason (FallbackWarning). "silent" only counts. With `op`, None removes the policy of
            that op.
        op: The full name of an op ("kpkg::softmax"), to set the policy of that op alone. It holds in every library, and
            precedes all others.

    Raises:
        ValueError: The policy is unknown, the op name has no namespace, or `policy` is None without `op`.
    """
    global _current
    if op is None and policy is None:
        raise ValueError("None gives up the policy of one op: name it by `op`")
    if op is not None:
        _check_name(op)
    number = 0 if policy is None else check_policy(policy)
    if op is None:
        _current = str(policy)
    elif policy is None:
        op_policies.pop(op, None)
    else:
        op_policies[op] = policy
    for library in libraries:
        if op is not None:
            apply_op_policies(library, [op])
        elif library.fallback_policy is None:
            library._native.set_policy(number)


def policy_of(op: str, of_library: str | None = None) -> str:
    """Returns the policy that holds for an op: its own, else that of its library, else that of all."""
    for part in os.environ.get("KPKG_FALLBACK", "").split(","):
        name, _, policy = part.partition("=")
        if name in (op, op.rpartition("::")[2]) and policy in POLICIES and op not in op_policies:
            return policy
    return op_policies.get(op, of_library or _current)


def describe_fallback(op: str) -> str:
    """Describes in words the function that runs for an op that falls back."""
    own = fallbacks.get(op)
    return f"{getattr(own, '__name__', own)}, given to set_fallback" if own is not None else "PyTorch's implementation"


def apply_op_policies(library: Library, names: list[str]) -> None:
    """Sets, in the library's runtime, the policies of the ops in `names` that the library has."""
    for name in names:
        if name in library._ops:
            library._native.set_op_policy(name, POLICIES[op_policies[name]] if name in op_policies else 0)


def _check_name(op: str) -> None:
    if "::" not in op:
        raise ValueError(f"{op!r} is no op name; those look like 'kpkg::softmax'")


@contextlib.contextmanager
def fallback_policy(policy: Policy, op: str | None = None) -> Iterator[None]:
    """Sets the policy within a ``with`` block, for all ops or for one.

    It holds for the whole process, as that of ``set_fallback_policy`` does.

    Args:
        policy: "strict", "warn" or "silent".
        op: The full name of an op, to set the policy of that op alone.

    Raises:
        ValueError: The policy is unknown, or the op name has no namespace.
    """
    before = _current if op is None else op_policies.get(op)
    set_fallback_policy(policy, op)
    try:
        yield
    finally:
        set_fallback_policy(before, op)  # type: ignore[arg-type]


def set_fallback(op: str, function: Callable[..., Any]) -> None:
    """Makes `function` run for an op on PyTorch tensors when no kernel can.

    Call this before the package is loaded. The ops that kpkg ships have fallbacks already.

    Args:
        op: The full name, "namespace::name".
        function: Takes the op's arguments and returns new tensors. Its exceptions come out of the call as a
            KernelError.

    Raises:
        ValueError: The name has no namespace.
    """
    _check_name(op)
    fallbacks[op] = function
