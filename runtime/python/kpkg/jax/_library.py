"""Opens packages for JAX.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import threading

import jax

import kpkg._default as _default
import kpkg._native as _native
from kpkg._errors import KernelError
from kpkg._library import CustomOpLibrary, OpsByName
from kpkg.jax._function import TARGET, Function
from kpkg.jax._tpu import TARGET as TPU

_OLDEST_JAX = (0, 5)


class Library(OpsByName[Function]):
    """An open package whose ops are functions of JAX: ``library.softmax``. ``list(library)`` returns all of them."""

    def __init__(self, library: CustomOpLibrary, digest: str) -> None:
        instances = json.loads(library._native.manifest).get("instances", [])
        section = library._native.section if any(each["target"] == TPU for each in instances) else None
        functions = [Function(op, f"{digest}:{op.name}", section) for op in library]
        super().__init__(library.path, {function.op.name: function for function in functions})
        for function in functions:
            _native.xla_name_op(function.name, function.op._native)
            if function.op.gradient:
                gradient = self._ops[function.op.gradient]
                function.gradient, gradient.differentiates = gradient, function

    def __repr__(self) -> str:
        return f"<kpkg library of JAX {self.path}: {', '.join(self._ops)}>"


# By the digest of the manifest. Compiled programs may call these ops as long as the process lives.
_libraries: dict[str, Library] = {}
_lock = threading.Lock()


def load(
    path: str | os.PathLike[str], policy: str | None = None, lock: str | os.PathLike[str] | None = None
) -> Library:
    """Opens the package at `path` for JAX. A package that is open already is the same library.

    `policy` and `lock`, and the errors, are those of ``kpkg.load``. Raises ImportError for a JAX older than 0.5.
    """
    _register_handlers()
    opened = CustomOpLibrary(path, policy, lock)
    digest = hashlib.sha256(opened._native.manifest.encode()).hexdigest()[:32]
    with _lock:
        if digest not in _libraries:
            _libraries[digest] = Library(opened, digest)
        return _libraries[digest]


@functools.cache
def _register_handlers() -> None:
    if jax.__version_info__[:2] < _OLDEST_JAX:
        raise ImportError(f"kpkg needs JAX >= {'.'.join(map(str, _OLDEST_JAX))}, this is {jax.__version__}")
    for platform, handler in _native.xla_handlers().items():
        jax.ffi.register_ffi_target(TARGET, handler, platform=platform)


class Ops:
    """Functions by name from the packages of ``kpkg.ops``: those of KPKG_PATH, and those that kpkg has itself.

    Packages are opened at the first use of an op. A file that cannot be opened does not affect the others.
    """

    def __getattr__(self, name: str) -> Function:
        if name.startswith("_"):
            raise AttributeError(name)
        function = self.__dict__[name] = self[_default.ops._full_name(name)]
        return function

    def __getitem__(self, name: str) -> Function:
        """Returns the function of the full name, "kpkg::softmax". Raises KernelError if no package has the op."""
        for library in _default._packages.libraries():
            if name in library._ops:
                return load(library.path)[name]
        raise KernelError(_default._packages.find(name)[1])

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_default._packages.names()})
