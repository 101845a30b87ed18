"""Represents packages as Python objects.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

import kpkg._native as _native
from kpkg import _policy
from kpkg._messages import among
from kpkg._op import Op

_COUNTER = itertools.count()


class Named(Protocol):
    """An op under its name without the namespace."""

    __name__: str


AnyOp = TypeVar("AnyOp", bound=Named)


class OpsByName(Generic[AnyOp]):
    """The ops of one package, as attributes, ``library.softmax``, and by full name, ``library["kpkg::softmax"]``.

    An attribute that the library has already stays, and the op of that name has its full name only.
    """

    def __init__(self, path: str, ops: Mapping[str, AnyOp]) -> None:
        self.path = path
        self._ops = dict(ops)
        self._short: dict[str, list[AnyOp]] = {}
        for op in ops.values():
            self._short.setdefault(op.__name__, []).append(op)
        for name, found in self._short.items():
            if len(found) == 1 and not hasattr(type(self), name):
                self.__dict__.setdefault(name, found[0])  # later look-ups need no __getattr__

    def __getattr__(self, name: str) -> AnyOp:
        ops = self.__dict__.get("_ops", {})  # empty while an instance is made
        found = next((full for full in ops if full.rpartition("::")[2] == name), None)
        if found is not None:
            raise AttributeError(f"{name} is in several namespaces: use library[{found!r}]")
        raise AttributeError(f"{self.__dict__.get('path')} has no op {name!r}{among(name, ops)}")

    def __getitem__(self, name: str) -> AnyOp:
        """Returns the op of the full name, "kpkg::softmax". Raises KeyError."""
        if name not in self._ops:
            raise KeyError(f"{self.path} has no op {name!r}{among(name, self._ops)}")
        return self._ops[name]

    def __iter__(self) -> Iterator[AnyOp]:
        return iter(self._ops.values())

    def __len__(self) -> int:
        return len(self._ops)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._short})


class CustomOpLibrary(OpsByName[Op]):
    """An open package. Its ops are attributes, ``library.softmax``, and ``list(library)`` returns all ops.

    ``library.path`` is the file. ``library.fallback_policy`` is its own policy, or None for the process-wide one.
    """

    def __init__(
        self, path: str | os.PathLike[str], policy: str | None = None, lock: str | os.PathLike[str] | None = None
    ) -> None:
        self.path: str = os.fsdecode(path)
        self._trust = (policy, None if lock is None else os.fsdecode(lock))
        self.fallback_policy: str | None = None
        #: The namespace in which PyTorch gets the ops, in place of that of the package.
        self.torch_namespace: str | None = None
        self._order = next(_COUNTER)
        self._native = _open(self.path, *self._trust)
        self._native.set_policy(_policy.check_policy(_policy.get_fallback_policy()))
        ops = [Op(native, self) for native in self._native.ops()]
        super().__init__(self.path, {op.name: op for op in ops})
        for op in ops:
            if op.gradient:
                self._ops[op.gradient].differentiates = op
        _policy.apply_op_policies(self, list(_policy.op_policies))
        _policy.libraries.add(self)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], policy: str | None = None, lock: str | os.PathLike[str] | None = None
    ) -> CustomOpLibrary:
        """Opens the package at `path`, and checks its header and manifest. Runs none of its code.

        If PyTorch has been imported, the ops are registered with it at once (``torch.ops.kpkg.softmax``). Otherwise the
        first call with a PyTorch tensor, or ``register_torch()``, registers them. The library loaded last has the
        public names. Ops of earlier libraries continue to run their own package.

        Raises FileNotFoundError if the file is missing, and OSError if it cannot be read. Raises PackageError if it is
        no package, damaged, too new or not trusted.

        ``policy`` says which packages may be opened: ``"any"``, ``"digest"`` or ``"signed-by:<key>,<key>"``. The
        default is ``KPKG_TRUST``, else ``"digest"``. ``lock`` is a file of ``kpkg lock`` that must list the package,
        and so must the file that ``KPKG_LOCK`` names. Raises ValueError for another policy.
        """
        library = cls(path, policy, lock)
        if "torch" in sys.modules:
            library.register_torch()
        return library

    def __reduce__(self) -> Any:
        """Pickles the path, the policy and the lock. Unpickling opens the package of that path again."""
        return load, (self.path, *self._trust)

    def __copy__(self) -> CustomOpLibrary:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CustomOpLibrary:
        return self  # like modules and functions, which models also refer to

    def __repr__(self) -> str:
        return f"<kpkg library {self.path}: {', '.join(self._ops)}>"

    @property
    def manifest(self) -> dict[str, Any]:
        """Returns the package's description: producer, kernels, instances, ops, sections."""
        return json.loads(self._native.manifest)

    def verify(self) -> None:
        """Checks every section's digest and every plan. Raises PackageError."""
        self._native.verify()

    def prewarm(self, device: str = "cpu") -> None:
        """Loads all code that calls on a device can need, so that later calls load nothing.

        It is needed before the first call in a CUDA graph.

        ``device`` is ``"cpu"``, ``"cuda"`` (device 0) or ``"cuda:1"``. Raises ValueError for another text, and
        DeviceError if the driver fails.
        """
        kind, _, index = device.partition(":")
        if kind not in ("cpu", "cuda") or (index and not index.isdecimal()):
            raise ValueError(f"device must be 'cpu', 'cuda' or 'cuda:N', not {device!r}")
        self._native.prewarm(1 if kind == "cpu" else 2, int(index or 0))

    def set_fallback_policy(self, policy: _policy.Policy | None) -> None:
        """Sets this library's own policy, or with None the process-wide one. See ``kpkg.set_fallback_policy``.

        Raises ValueError for an unknown policy.
        """
        self._native.set_policy(_policy.check_policy(policy or _policy.get_fallback_policy()))
        self.fallback_policy = policy

    def register_torch(self, op: Op | None = None) -> None:
        """Imports PyTorch and registers the ops with it.

        Packaged references are left out, as most are never called with PyTorch's tensors. `op` may name one of them.

        Raises ImportError without PyTorch, and RuntimeError if a name is taken.
        """
        from kpkg import _torch

        _torch.register(self)
        if op is not None and op._torch is None:
            _torch.register_reference(op)


def _open(path: str, policy: str | None, lock: str | None) -> _native.Library:
    """Opens the package in native code. If the file is a source instead of a package, the error says so."""
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, "there is no package", path)
    try:
        return _native.Library(path, policy, lock)
    except _native.PackageError as error:
        if path.endswith((".k", ".mojo", ".cu")):
            error.args = (f"{error}: it is a source; `kpkg build {path}` makes a package of a .k file",)
        raise


#: ``ops = kpkg.load("gemm.kpkg")``, then ``ops.gemm(a, b)``.
load = CustomOpLibrary.load
