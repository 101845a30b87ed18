"""Offers ops as classes, for code that makes an object of an op and a library: ``SoftMaxOp(library).forward(x)``.

``NAMEOp`` is the class for the op `name` of ``kpkg.ops`` or of the given library: ``SoftMaxOp``, ``LayerNormOp``,
``GemmOp``.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import functools
from typing import Any

from kpkg._default import DefaultOp
from kpkg._default import ops as _ops
from kpkg._library import CustomOpLibrary
from kpkg._messages import closest as _closest
from kpkg._op import Op
from kpkg.kernels import _names


class OpOfLibrary:
    """Holds one op: of the library that is given, else of ``kpkg.ops``.

    Args:
        library: The library of the op; ``kpkg.ops`` by default.

    Raises:
        AttributeError: The library has no such op.
    """

    name: str

    def __init__(self, library: CustomOpLibrary | None = None) -> None:
        self.op: Op | DefaultOp = getattr(_ops if library is None else library, self.name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the op's results. Raises the exceptions of a call of the op."""
        return self.op(*args, **kwargs)

    __call__ = forward

    def backward(self, *args: Any, **kwargs: Any) -> Any:
        """Returns gradients, as ``Op.backward`` does. Raises the same exceptions."""
        return self.op.backward(*args, **kwargs)


@functools.cache
def _class_of(name: str, op: str) -> type[OpOfLibrary]:
    about = {"name": op, "__doc__": f"The op {op}, of a library or of kpkg.ops.", "__module__": __name__}
    return type(name, (OpOfLibrary,), about)


def __getattr__(name: str) -> type[OpOfLibrary]:
    wanted = name.removesuffix("Op").lower()
    if name.endswith("Op") and not name.startswith("_"):
        op = next((each for each in sorted(_names()) if each.replace("_", "") == wanted), wanted)
        if _ops.has(op):
            return _class_of(name, op)
    raise AttributeError(f"module 'kpkg.kernels.ops' has no attribute {name!r}{_closest(wanted, _names())}")
