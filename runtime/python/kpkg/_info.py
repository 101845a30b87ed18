"""Reports the loaded ops and their calls: `kpkg.kernel_info()`, and its short table.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
from typing import Any

from kpkg import _default, _policy
from kpkg._messages import among, table


class KernelInfo(dict[str, Any]):
    """Prints as a short table: a line for each op, with the package of its kernels and its counts."""

    def table(self) -> str:
        """Returns the lines of the table: op, package, policy, calls, launches of kernels, fallbacks."""
        heads = ("op", "package", "policy", "calls", "launches", "fallbacks")
        shown = {name: each for name, each in self.items() if not name.endswith(("_autograd", "_reference"))}
        return "\n".join(table([heads, *((name, *_row(each)) for name, each in shown.items())], right=range(3, 6)))

    __str__ = table

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.table())


def _row(info: dict[str, Any]) -> tuple[str, ...]:
    package = info["package"] or "none: " + next(iter(info["fallback_reasons"]), "")
    return package, info["policy"], *(str(info.get(name, 0)) for name in ("calls", "launches", "fallbacks"))


def kernel_info(name: str | None = None) -> dict[str, Any]:
    """Returns, by op name, the loaded ops and their counts.

    An entry has the package, the schema, the policy, counters, the kernel instances, and fallbacks by reason:
    ``{"kpkg::softmax": {"package": ..., "schema": ..., "policy": "warn", "torch": True, "calls": 3, ...}}``. Printed,
    the dict is a short table.

    An op that several open packages have is listed for the package opened last. Packages that PyTorch knows precede
    others, such as those of ``kpkg.jax``. An op of ``kpkg.ops`` that no package has is listed with
    ``"package": None``. "policy" is the policy that applies to the op. "chain" lists the attempts of
    a call in order: packages, then, where the policy allows it, the fallback and the packaged reference implementation.
    If no package is open yet, this opens the packages of ``kpkg.ops``.

    Args:
        name: "kpkg::softmax" or "softmax", to get the entry of that op alone.

    Raises:
        KeyError: No open package has `name`, or several namespaces have it.
    """
    if not _policy.libraries:
        _default._packages.libraries()
    info = KernelInfo()
    for library in sorted(
        _policy.libraries, key=lambda each: (any(op._torch for op in each._ops.values()), each._order)
    ):
        for op in library._ops.values():
            policy, seen = _policy.policy_of(op.name, library.fallback_policy), json.loads(op._native.kernel_info())
            fallback = [] if policy == "strict" else [each for each in (op.fallback, op._native.reference) if each]
            info[op.name] = {
                "package": library.path,
                "schema": op.schema,
                "policy": policy,
                "chain": [*seen["packages"], *fallback],
                "torch": op._torch is not None,
                "promotions": dict(op.promotions),
                **seen,
            }
    for absent, (reasons, policy) in _policy.absent.items():
        if absent in info:
            seen = info[absent]
            seen["fallbacks"] += sum(reasons.values())
            seen["fallback_reasons"] = {**seen["fallback_reasons"], **reasons}
        else:
            chain = [] if policy == "strict" else [_policy.describe_fallback(absent)]
            info[absent] = {
                "package": None,
                "policy": policy,
                "chain": chain,
                "fallbacks": sum(reasons.values()),
                "fallback_reasons": dict(reasons),
            }
    return info if name is None else _entry(info, name)


def _entry(info: KernelInfo, name: str) -> dict[str, Any]:
    names = [full for full in info if full == name or full.rpartition("::")[2] == name]
    if f"kpkg::{name}" in names:
        names = [f"kpkg::{name}"]
    if len(names) != 1:
        raise KeyError(
            f"{name!r} is in several namespaces: {', '.join(names)}"
            if names
            else f"no open package has {name!r}{among(name, info)}"
        )
    return info[names[0]]
