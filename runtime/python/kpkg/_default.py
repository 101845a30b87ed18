"""`kpkg.ops`: ops by name, from whatever packages are there; without one, PyTorch's implementation runs, as the policy says.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kpkg import _policy
from kpkg._errors import FallbackWarning, KernelError, _caller_level
from kpkg._library import CustomOpLibrary, Op


def package_files() -> list[Path]:
    """Where ``kpkg.ops`` looks: the files and folders of KPKG_PATH in order, then the packages that came with kpkg."""
    places = [Path(part) for part in os.environ.get("KPKG_PATH", "").split(":") if part]
    places.append(Path(__file__).parent / "packages")
    return [file for place in places for file in (sorted(place.glob("*.kpkg")) if place.is_dir() else [place] if place.exists() or place.suffix else [])]


class _Packages:
    """The packages of `package_files`, opened by the first who asks. One that cannot be opened is remembered with the reason."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._libraries: list[CustomOpLibrary] | None = None
        self.broken: dict[str, str] = {}

    def libraries(self) -> list[CustomOpLibrary]:
        with self._lock:
            if self._libraries is None:
                opened = []
                for file in package_files():
                    try:
                        opened.append(CustomOpLibrary(file))
                    except (OSError, RuntimeError, ValueError) as error:  # any reason not to open one file leaves the others
                        self.broken[str(file)] = str(error)
                self._libraries = opened
            return self._libraries

    def find(self, name: str) -> tuple[Op | None, str]:
        """The op of the full name from the first package that has it; else why there is none."""
        for library in self.libraries():
            if name in library._ops:
                try:
                    library.register_torch()
                except (ImportError, OSError, RuntimeError) as error:
                    return None, f"{library.path} cannot be registered with PyTorch: {error}"
                return library[name], ""
        reason = f"no package has {name}"
        if self.broken:
            reason += "; " + "; ".join(f"{file} cannot be opened: {error}" for file, error in self.broken.items())
        elif not self.libraries():
            reason += ": there are no packages in KPKG_PATH or in kpkg itself"
        return None, reason


_packages = _Packages()


class DefaultOp:
    """An op by name, ``kpkg.ops.softmax``: called like the op of a package, with PyTorch tensors.

    Where no package has it, or its package cannot be opened, PyTorch's implementation runs: under "warn" with one FallbackWarning that
    says why, under "strict" it is a KernelError.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._op: Op | None = None
        self._reason: str | None = None
        self._implementation: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return f"<kpkg op {self.name}>"

    @property
    def op(self) -> Op | None:
        """The op of the package that has it, None without one."""
        if self._op is None and self._reason is None:
            self._op, reason = _packages.find(self.name)
            self._reason = reason or None
            if self._op is None:
                from kpkg import _vjp

                self._implementation = _vjp.implementation(self.name)
        return self._op

    @property
    def is_available(self) -> bool:
        """Whether a package has the op."""
        return self.op is not None

    @property
    def reason(self) -> str:
        """Why there is no package for it; "" where there is one."""
        return "" if self.op is not None else self._reason or ""

    def supports(self, *args: Any, **kwargs: Any) -> bool:
        """Whether a kernel of a package can run such a call; see ``Op.supports``. Raises TypeError for arguments that do not fit the schema."""
        op = self.op
        return op is not None and op.supports(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As ``Op.__call__``. Raises the same, and KernelError where no package has the op and PyTorch's implementation may not run or is not known."""
        op = self._op
        if op is None:
            op = self.op
            if op is None:
                self.note_fallback()
                if self._implementation is None:
                    raise KernelError(f"{self.name}: {self._reason}, and PyTorch has no implementation of it that kpkg knows")
                return self._implementation(*args, **kwargs)
        return op(*args, **kwargs)

    def note_fallback(self) -> None:
        """Counts that PyTorch runs in place of the absent op, and warns once. Raises KernelError under "strict"."""
        policy = _policy.policy_of(self.name)
        reason = self._reason or ""
        if policy == "strict":
            raise KernelError(f"{self.name}: {reason} (the policy is strict)")
        reasons, _ = _policy.absent.setdefault(self.name, ({}, policy))
        first = reason not in reasons
        reasons[reason] = reasons.get(reason, 0) + 1
        if first and policy == "warn":
            warnings.warn(f"op {self.name} runs its fallback: {reason}", FallbackWarning, stacklevel=_caller_level())


class Ops:
    """``kpkg.ops``: ``kpkg.ops.softmax(x, -1)``, or by full name ``kpkg.ops["kpkg::softmax"]``.

    Packages come from KPKG_PATH and from kpkg's own folder; they are opened at the first use of an op, not at import.
    """

    def __init__(self) -> None:
        self._known: dict[str, DefaultOp] = {}

    def __getitem__(self, name: str) -> DefaultOp:
        """The op of the full name, "kpkg::softmax". Raises nothing for a name that no package has: see ``DefaultOp.is_available``."""
        if name not in self._known:
            self._known[name] = DefaultOp(name)
        return self._known[name]

    def __getattr__(self, name: str) -> DefaultOp:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[f"kpkg::{name}"]

    def __iter__(self) -> Iterator[str]:
        """The full names of all ops that the packages have."""
        return iter(sorted({name for library in _packages.libraries() for name in library._ops}))

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name.partition("::")[2] for name in self if name.startswith("kpkg::"))})

    def reload(self) -> None:
        """Looks for packages anew, in KPKG_PATH as it is now. Ops that were found stay as they are until then."""
        global _packages
        _packages = _Packages()
        for op in self._known.values():
            op._op, op._reason, op._implementation = None, None, None


ops = Ops()
