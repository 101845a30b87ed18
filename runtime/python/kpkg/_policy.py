"""What happens when a package has no kernel for a call: the fallback policy, and fallbacks of one's own.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakSet

from kpkg._errors import KpkgWarning, _caller_level
from kpkg._messages import closest

if TYPE_CHECKING:
    from kpkg._library import CustomOpLibrary

Policy = Literal["strict", "warn", "silent"]
POLICIES: dict[str, int] = {"strict": 1, "warn": 2, "silent": 3}
_REQUIRABLE = ("deterministic", "batch_invariant", "exact")

libraries: WeakSet[CustomOpLibrary] = WeakSet()
fallbacks: dict[str, Callable[..., Any]] = {}
op_policies: dict[str, str] = {}  # by full name
# Ops that were asked for and that no package has: how often each reason made PyTorch's implementation run, and the
# policy then.
absent: dict[str, tuple[dict[str, int], str]] = {}
_current: str = "warn"


def check_policy(policy: str) -> int:
    """The runtime's number of a policy; ValueError for an unknown one."""
    if policy not in POLICIES:
        raise ValueError(
            f"unknown fallback policy {policy!r}{closest(str(policy), POLICIES)}; there are {', '.join(POLICIES)}"
        )
    return POLICIES[policy]


def _read_environment() -> None:
    """Reads KPKG_FALLBACK=warn,kpkg::softmax=strict.

    The runtime reads the parts with an op, and warns of unknown ones.
    """
    global _current
    for part in os.environ.get("KPKG_FALLBACK", "").split(","):
        if part in POLICIES:
            _current = part


_read_environment()


def check_environment() -> None:
    """Raises ValueError for a KPKG_REQUIRE that is not understood.

    No package can be opened then, and PyTorch must not run in their place in silence.
    """
    for flag in os.environ.get("KPKG_REQUIRE", "").split(","):
        if flag and flag not in _REQUIRABLE:
            raise ValueError(
                f"KPKG_REQUIRE has {flag!r}, which is not understood{closest(flag, _REQUIRABLE)}; there are "
                f"{', '.join(_REQUIRABLE)}"
            )


def check_op_names(known: Iterable[str]) -> None:
    """Warns of ops in KPKG_DISABLE or KPKG_FALLBACK that are not among the `known` full names."""
    names = list(known)
    valid = {*names, *(name.rpartition("::")[2] for name in names)}
    disabled = os.environ.get("KPKG_DISABLE", "")
    named = [("KPKG_DISABLE", name) for name in ([] if disabled in ("0", "1", "all") else disabled.split(","))]
    parts = os.environ.get("KPKG_FALLBACK", "").split(",")
    named += [("KPKG_FALLBACK", part.partition("=")[0]) for part in parts if "=" in part]
    for variable, name in named:
        if names and name and name not in valid:
            text = f"{variable} names {name!r}, which no package in KPKG_PATH or in kpkg has{closest(name, names)}"
            warnings.warn(text, KpkgWarning, stacklevel=_caller_level())


def get_fallback_policy() -> Policy:
    """The policy of all libraries that have none of their own: "strict", "warn" or "silent"."""
    return _current  # type: ignore[return-value]


def set_fallback_policy(policy: Policy | None, op: str | None = None) -> None:
    """Sets the policy for calls that no kernel of their package can run, for all libraries without one of their own.

    "strict" raises KernelError with what was tried; "warn", the default, runs PyTorch's implementation and warns once
    per op and reason (FallbackWarning); "silent" only counts. ``kpkg.kernel_info()`` shows the counts. With `op`
    ("kpkg::softmax") it is the policy of that op alone, in every library, and goes before all others; None gives it up
    again. The environment variable KPKG_FALLBACK sets the policy at start, also for single ops:
    ``KPKG_FALLBACK=warn,kpkg::softmax=strict``.

    Raises ValueError for an unknown policy, or None without `op`.
    """
    global _current
    if op is not None:
        _set_op_policy(op, policy)
        return
    if policy is None:
        raise ValueError("None gives up the policy of one op: name it by `op`")
    number = check_policy(policy)
    _current = policy
    for library in libraries:
        if library.fallback_policy is None:
            library._native.set_policy(number)


def _set_op_policy(op: str, policy: Policy | None) -> None:
    _check_name(op)
    if policy is None:
        op_policies.pop(op, None)
    else:
        check_policy(policy)
        op_policies[op] = policy
    for library in libraries:
        apply_op_policies(library, [op])


def policy_of(op: str, of_library: str | None = None) -> str:
    """The policy that holds for an op: its own, else that of its library, else that of all."""
    for part in os.environ.get("KPKG_FALLBACK", "").split(","):
        name, _, policy = part.partition("=")
        if name in (op, op.rpartition("::")[2]) and policy in POLICIES and op not in op_policies:
            return policy
    return op_policies.get(op, of_library or _current)


def describe_fallback(op: str) -> str:
    """What runs for an op that falls back, in words."""
    own = fallbacks.get(op)
    return f"{getattr(own, '__name__', own)}, given to set_fallback" if own is not None else "PyTorch's implementation"


def apply_op_policies(library: CustomOpLibrary, names: list[str]) -> None:
    """Tells the library's runtime the policies of those ops of `names` that it has."""
    for name in names:
        if name in library._ops:
            library._native.set_op_policy(name, POLICIES[op_policies[name]] if name in op_policies else 0)


def _check_name(op: str) -> None:
    if "::" not in op:
        raise ValueError(f"{op!r} is no op name; those look like 'kpkg::softmax'")


@contextlib.contextmanager
def fallback_policy(policy: Policy, op: str | None = None) -> Iterator[None]:
    """Sets the policy within a ``with`` block, for all ops or for one. Process-wide, as ``set_fallback_policy``.

    Raises ValueError for an unknown policy or an op name without namespace.
    """
    if op is not None:
        previous = op_policies.get(op)
        _set_op_policy(op, policy)
        try:
            yield
        finally:
            _set_op_policy(op, previous)  # type: ignore[arg-type]
        return
    before = _current
    set_fallback_policy(policy)
    try:
        yield
    finally:
        set_fallback_policy(before)  # type: ignore[arg-type]


def set_fallback(op: str, function: Callable[..., Any]) -> None:
    """Makes `function` what runs for `op` ("namespace::name") on PyTorch tensors when no kernel can.

    It takes the op's arguments and returns new tensors. To be set before the package is loaded. The ops that kpkg ships
    have theirs. Raises ValueError for a name without namespace. What the function raises comes out of the call as a
    KernelError.
    """
    _check_name(op)
    fallbacks[op] = function
