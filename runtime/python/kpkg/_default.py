"""Provides `kpkg.ops`: ops by name, from all packages that are found.

Without a package, PyTorch's implementation runs, as the policy says.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kpkg import _policy
from kpkg._errors import FallbackWarning, KernelError, _caller_level
from kpkg._forms import form_of_function
from kpkg._installed import folder_of
from kpkg._library import CustomOpLibrary
from kpkg._messages import closest, elsewhere
from kpkg._op import CallableOp, Op


def package_files() -> list[Path]:
    """Returns the packages of ``kpkg.ops``: files and folders of KPKG_PATH in order, then those of kpkg-kernels.

    Missing files that KPKG_PATH names are among them. Opening them reports the error.
    """
    places = [Path(part) for part in os.environ.get("KPKG_PATH", "").split(":") if part]
    named = [file for place in places for file in (sorted(place.glob("*.kpkg")) if place.is_dir() else [place])]
    installed = folder_of("kpkg_kernels")
    return [*named, *(sorted(installed.glob("*.kpkg")) if installed else [])]


class _Packages:
    """Opens the packages of `package_files` at the first use.

    It stores the reason for a package that cannot be opened.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._libraries: list[CustomOpLibrary] | None = None
        self._names: dict[str, list[str]] = {}
        self.broken: dict[str, str] = {}

    def libraries(self) -> list[CustomOpLibrary]:
        with self._lock:
            if self._libraries is None:
                _policy.check_environment()
                opened = []
                for file in package_files():
                    try:
                        opened.append(CustomOpLibrary(file))
                    except (OSError, RuntimeError, ValueError) as error:  # does not affect the other files
                        self.broken[str(file)] = str(error)
                self._libraries = opened
                for name in sorted({name for library in opened for name in library._ops}):
                    self._names.setdefault(name.rpartition("::")[2], []).append(name)
            return self._libraries

    def find(self, name: str) -> tuple[Op | None, str]:
        """Returns the op of the full name from the first package that has it, or None and the reason."""
        for library in self.libraries():
            if name in library._ops:
                try:
                    if _has_torch():
                        library.register_torch()
                except (ImportError, OSError, RuntimeError) as error:
                    return None, f"{library.path} cannot be registered with PyTorch: {error}"
                return library[name], ""
        near = elsewhere(name) or closest(name, itertools.chain.from_iterable(self.names().values()))
        reason = f"no package has {name}{near}"
        if self.broken:
            reason += "; " + "; ".join(f"{file} cannot be opened: {error}" for file, error in self.broken.items())
        elif not self.libraries():
            reason += ": there are no packages in KPKG_PATH, and kpkg-kernels is not installed"
        return None, reason

    def names(self) -> dict[str, list[str]]:
        """Returns the full names of all ops of the packages, by their names without namespace."""
        self.libraries()
        return self._names


_packages = _Packages()


def _has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None


def _implementation(name: str) -> Callable[..., Any] | None:
    """Returns the user's function for the op, else PyTorch's implementation of a shipped op, else None."""
    if (own := _policy.fallbacks.get(name)) is not None or not _has_torch():
        return own
    from kpkg import _fallbacks

    return _fallbacks.shipped(name)


#: What `_find` found, by full name.
_found: dict[str, tuple[Op | None, str]] = {}


def _while_tracing(function: Callable[[str], str]) -> Callable[[str], str]:
    """Has TorchDynamo call the function when it traces a call, and take the result for a constant.

    It cannot trace how packages are opened and registered. `torch.compiler.assume_constant_result` does the same, but
    is in PyTorch. The result must be a string: TorchDynamo has no guards for objects from such a function.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


@_while_tracing
def _find(name: str) -> str:
    _found[name] = _packages.find(name)
    return name


@_while_tracing
def _make(name: str) -> str:
    if name not in ops._known:
        ops._known[name] = DefaultOp(name)
    return name


@_while_tracing
def _make_attribute(name: str) -> str:
    full = f"kpkg::{name}"
    return _make(full if full in ops._known else ops._full_name(name))


class DefaultOp(CallableOp):
    """Calls an op by name, ``kpkg.ops.softmax``, like the op of a package with PyTorch tensors.

    If no package has it, or its package cannot be opened, the function given to ``kpkg.set_fallback`` runs, else
    PyTorch's implementation of a shipped op. Under "warn" one FallbackWarning says why. Under "strict" the call raises
    KernelError.
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
        """Returns the op of the first package that has it, or None."""
        if self._op is None and self._reason is None:
            self._op, reason = _found[_find(self.name)]
            self._reason = reason or None
            if self._op is not None:
                self._is_compiling, self._direct = self._op._is_compiling, self._op._direct
            else:
                self._implementation = _implementation(self.name)
        return self._op

    @property
    def is_available(self) -> bool:
        """Returns whether a package has the op."""
        return self.op is not None

    @property
    def reason(self) -> str:
        """Returns the reason why no package has the op, or "" if one has it."""
        return "" if self.op is not None else self._reason or ""

    def supports(self, *args: Any, **kwargs: Any) -> bool:
        """Returns whether a kernel of a package can run such a call. See ``Op.supports``.

        Raises TypeError for arguments that do not fit the schema.
        """
        op = self.op
        return op is not None and op.supports(*args, **kwargs)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the op like ``Op.__call__``.

        Raises the same errors. Raises KernelError if no package has the op, and no function of the user is set or
        allowed.
        """
        op = self._op
        if op is None:
            op = self.op
            if op is None:
                run = self._implementation
                if run is None:
                    absent = "" if elsewhere(self.name) else ", and kpkg knows no implementation in PyTorch"
                    raise KernelError(f"{self.name}: {self._reason}{absent}")
                if _policy.requires_batch_invariance() or kwargs.get("batch_invariant"):
                    raise KernelError(
                        f"{self.name}: {self._reason} (no fallback runs, because none is batch_invariant)"
                    )
                self.note_fallback()
                form = form_of_function(self.name, run)
                args, kwargs = (args, kwargs) if form is None else form.fit(args, kwargs)
                return run(*args, **kwargs)
        return op._call(args, kwargs)

    def _recover(self, error: RuntimeError, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        assert self._op is not None, "what failed was its call"
        return self._op._recover(error, args, kwargs)

    def backward(self, *args: Any, **kwargs: Any) -> Any:
        """Computes gradients by the backward op, like ``Op.backward``.

        Without a package, it calls the op NAME_backward. Raises the same errors.
        """
        op = self.op
        return ops[f"{self.name}_backward"](*args, **kwargs) if op is None else op.backward(*args, **kwargs)

    def note_fallback(self, reason: str = "") -> None:
        """Counts a fallback to PyTorch in place of the op, and warns once. Raises KernelError under "strict".

        The reason is that no package has the op, unless another one is given.
        """
        policy = _policy.policy_of(self.name)
        reason = reason or self._reason or ""
        if policy == "strict":
            raise KernelError(f"{self.name}: {reason} (the policy is strict)")
        reasons, _ = _policy.absent.setdefault(self.name, ({}, policy))
        first = reason not in reasons
        reasons[reason] = reasons.get(reason, 0) + 1
        if first and policy == "warn":
            warnings.warn(f"op {self.name} runs its fallback: {reason}", FallbackWarning, stacklevel=_caller_level())


class Ops:
    """The ops of all packages: ``kpkg.ops.softmax(x, -1)``, or by full name ``kpkg.ops["kpkg::softmax"]``.

    Packages come from KPKG_PATH and from the Python package kpkg-kernels. They are opened at the first use of an op,
    not at import.
    """

    def __init__(self) -> None:
        self._known: dict[str, DefaultOp] = {}
        self._named: set[str] = set()  # names that are attributes, found without __getattr__

    def __getitem__(self, name: str) -> DefaultOp:
        """Returns the op of the full name, "kpkg::softmax".

        Raises nothing for a name that no package has. See ``DefaultOp.is_available``.
        """
        return self._known[_make(name)]

    def __getattr__(self, name: str) -> DefaultOp:
        if name.startswith("_"):
            raise AttributeError(name)
        full = _make_attribute(name)
        self._named.add(name)
        op = self.__dict__[name] = self._known[full]
        return op

    def _full_name(self, name: str) -> str:
        """Returns the full name for a name without namespace: kpkg's op, else the only op of that name.

        Raises AttributeError if several namespaces have it.
        """
        full = f"kpkg::{name}"
        there = _packages.names().get(name, [full])
        if full in there:
            return full
        if len(there) > 1:
            raise AttributeError(
                f"{name} is in several namespaces: use kpkg.ops[{there[0]!r}]; there are {', '.join(there)}"
            )
        return there[0]

    def has(self, name: str) -> bool:
        """Whether ``kpkg.ops.name`` can be called: a package has it, or a function can run for it.

        Raises nothing.
        """
        try:
            full = self._full_name(name)
        except AttributeError:
            return False
        return name in _packages.names() or _implementation(full) is not None

    def __iter__(self) -> Iterator[str]:
        """Yields the full names of all ops of the packages."""
        return iter(sorted(itertools.chain.from_iterable(_packages.names().values())))

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_packages.names()})

    def reload(self) -> None:
        """Searches the current KPKG_PATH for packages again. Without this call, ops that were found do not change."""
        global _packages
        _packages = _Packages()
        _found.clear()
        for op in self._known.values():
            op._op, op._reason, op._implementation, op._direct = None, None, None, None
        for name in self._named:
            del self.__dict__[name]
        self._named.clear()


ops = Ops()
