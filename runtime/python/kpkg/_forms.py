"""Converts calls as users of other libraries write them to the form of an op's schema.

The rules go by the names and types of a schema's arguments and hold for every op that has them. They also hold for
PyTorch's implementation where no package has the op.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

from kpkg import _arrays

#: Names of arguments in other libraries, and in schemas of kpkg.
SYNONYMS = {"grad_output": "grad", "mask": "attn_mask"}


class CallForm:
    """Converts calls of one op that are written in another form than its schema.

    * Synonyms of arguments' names.
    * A number where the schema has a list of them: a list of one. None where the list has a default: the default.
    * ``padding="same"`` and ``"valid"`` where the schema has `auto_pad` for them.
    * `normalized_shape` left out before a weight, whose shape it is: ``layer_norm(x, weight, bias, eps)``. A gradient
      then takes `mean` and `var` in place of `mean` and `rstd`: ``layer_norm_backward(grad_output, x, weight, mean,
      var, eps=1e-5)``.
    """

    def __init__(self, op: str, parameters: Sequence[tuple[str, bool, Any]]) -> None:
        """Takes `parameters`: name, whether it is a list of numbers, and the default, ``...`` without one."""
        self.op = op
        self.names = tuple(name for name, _, _ in parameters)
        self.lists = tuple(i for i, (_, is_list, _) in enumerate(parameters) if is_list)
        self._defaults = tuple(default for _, _, default in parameters)
        #: The first argument whose form may differ. Calls with no more positional arguments than this need no check.
        self.first = min(self.lists, default=len(self.names))
        self.renamed = {other: own for other, own in SYNONYMS.items() if own in self.names and other not in self.names}
        self._shape = (
            self.names.index("normalized_shape") if {"normalized_shape", "weight"} <= set(self.names) else None
        )
        self._has_padding = {"padding", "auto_pad"} <= set(self.names)

    def fit(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns the call by the schema's names and types.

        Arguments that fit no rule stay as they are.

        Raises:
            TypeError: An argument is given twice.
        """
        if kwargs and self.renamed:
            kwargs = self._renamed(kwargs)
        if self._shape is not None:
            args, kwargs = self._with_shape(args, kwargs)
        if self._has_padding:
            args, kwargs = self._with_auto_pad(args, kwargs)
        for i in self.lists:
            name = self.names[i]
            if i < len(args):
                if not isinstance(args[i], (list, tuple)):
                    args = (*args[:i], self._as_list(i, args[i]), *args[i + 1 :])
            elif name in kwargs and not isinstance(kwargs[name], (list, tuple)):
                kwargs = {**kwargs, name: self._as_list(i, kwargs[name])}
        return args, kwargs

    def _renamed(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in kwargs.items():
            own = self.renamed.get(name, name)
            if own in found or (own != name and own in kwargs):
                raise TypeError(f"{self.op} got argument {own!r} twice, once as {name!r}")
            found[own] = value
        return found

    def _as_list(self, i: int, value: Any) -> Any:
        if value is None and self._defaults[i] is not ...:
            return self._defaults[i]
        is_number = isinstance(value, Integral) or type(value).__name__ == "SymInt"
        return [value] if is_number and not isinstance(value, bool) else value

    def _with_auto_pad(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        i = self.names.index("padding")
        value = args[i] if i < len(args) else kwargs.get("padding")
        if not isinstance(value, str):
            return args, kwargs
        if "auto_pad" in kwargs or len(args) > self.names.index("auto_pad"):
            raise TypeError(f"{self.op} got padding={value!r} and auto_pad, which is the same argument")
        if i < len(args):
            args = (*args[:i], self._defaults[i], *args[i + 1 :])
        kwargs = {name: given for name, given in kwargs.items() if name != "padding"}
        return args, {**kwargs, "auto_pad": value}

    def _with_shape(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        at = self._shape
        if at is None or "normalized_shape" in kwargs or (len(args) > at and not _arrays.is_array(args[at])):
            return args, kwargs
        after = ("weight", "mean", "var", "eps") if "rstd" in self.names else self.names[at + 1 :]
        given = dict(zip(after, args[at:]))
        if twice := given.keys() & kwargs.keys():
            raise TypeError(f"{self.op} got argument {min(twice)!r} twice")
        named = {**given, **kwargs}
        if named.get("weight") is None or len(args) - at > len(after):
            return args, kwargs
        if "rstd" in self.names and {"mean", "var"} <= named.keys():
            named["rstd"] = (_wide(named.pop("var")) + named.pop("eps", 1e-5)) ** -0.5
            named["mean"] = _wide(named["mean"])
        return args[:at], {**named, "normalized_shape": tuple(named["weight"].shape)}


def outputs_of(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments `out`, or `out0`, `out1` and so on, in order."""
    return {name: kwargs[name] for name in sorted(kwargs) if re.fullmatch(r"out\d?", name)}


def _wide(value: Any) -> Any:
    """Returns statistics of rows in the dtype that kernels use for them."""
    return value.float() if str(value.dtype) in ("torch.float16", "torch.bfloat16") else value


@functools.cache
def form_of_function(op: str, function: Callable[..., Any]) -> CallForm | None:
    """Returns the form of PyTorch's implementation of an op; None where Python cannot see its parameters."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return None
    lists = [str(p.annotation).lower().endswith("list[int]") for p in parameters]
    defaults = [... if p.default is p.empty else p.default for p in parameters]
    return CallForm(op, [(p.name, is_list, default) for p, is_list, default in zip(parameters, lists, defaults)])
