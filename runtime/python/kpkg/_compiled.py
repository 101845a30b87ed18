"""Decorates functions of PyTorch tensors with the kernels that compute them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from kpkg import _policy
from kpkg._compiler import get_compiler
from kpkg._errors import FallbackWarning, _caller_level
from kpkg._library import CustomOpLibrary
from kpkg._op import Op

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(
    source: str, targets: Sequence[str] | str | None = None, options: Sequence[str] = ()
) -> Callable[[Function], Function]:
    """Decorates a function of PyTorch tensors with the text of its kernels.

    The text has an op of the function's name and arguments. The decorator compiles it as `compile_from_source` does,
    and returns the op. The function is the op's fallback: it runs where no kernel can, by the fallback policy, and
    autograd differentiates it. It also runs, with a FallbackWarning, where there is no `kpkg` command to compile with.

    Args:
        source: The text of a `.k` file.
        targets: Targets as for ``kpkg build --target``, which also defines the default.
        options: Further arguments of ``kpkg build``.

    Raises:
        TypeError: The text has no such op, or the op has other arguments.
        FileNotFoundError: There is no `kpkg` command, and the fallback policy is "strict".

    Raises the other errors of `compile_from_source`.
    """

    def decorate(function: Function) -> Function:
        try:
            compiler = get_compiler()
        except FileNotFoundError as error:
            if _policy.get_fallback_policy() == "strict":
                raise
            if _policy.get_fallback_policy() == "warn":
                text = f"{function.__name__} runs as it is, without kernels: {error}"
                warnings.warn(text, FallbackWarning, stacklevel=_caller_level())
            return function
        file = compiler.package_of_source(source, function.__name__, targets, options)
        library = CustomOpLibrary(file)
        op = _op_of(library, function)
        _policy.set_fallback(op.name, function)
        if "torch" in sys.modules:
            library.register_torch()
        return cast(Function, op)

    return decorate


def _op_of(library: CustomOpLibrary, function: Callable[..., Any]) -> Op:
    """Returns the op with the name and the arguments of a function."""
    name = function.__name__
    found = [op for op in library if op.__name__ == name]
    if len(found) != 1:
        names = ", ".join(op.name for op in library) or "none"
        raise TypeError(f"the text of {name} needs one op of that name; its ops are {names}")
    expected, written = [argument.name for argument in found[0].arguments], list(inspect.signature(function).parameters)
    if expected != written:
        raise TypeError(f"{name} takes {', '.join(written) or 'nothing'}, but its op is {found[0].schema}")
    return found[0]
