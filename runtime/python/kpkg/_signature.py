"""Describes an op as its package declares it, and binds the arguments of calls to its schema.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import IntEnum
from numbers import Integral, Real
from typing import Any, NamedTuple

import kpkg._native as _native
from kpkg._errors import KernelError
from kpkg._forms import CallForm, outputs_of
from kpkg._messages import closest, shown


class Kind(IntEnum):
    """The kinds of arguments, with the numbers of kpkg.h."""

    TENSOR = 2
    INT = 3
    FLOAT = 4
    BOOL = 5
    LIST = 6
    DTYPE = 7
    STRING = 8
    TENSOR_LIST = 9


_ACCEPTED: dict[int, tuple[type, ...]] = {
    Kind.INT: (Integral,),
    Kind.FLOAT: (Real,),
    Kind.BOOL: (bool,),
    Kind.STRING: (str,),
}


class TorchRules(NamedTuple):
    """The declaration of one op. Words of later versions are ignored."""

    #: By "cpu" and "cuda": "lower", "float32", "promote", "first" or "keep".
    autocast: Mapping[str, str] = {}
    #: "elementwise", "last", "along", "trailing", "product" or "linear", or "" if not declared.
    dimensions: str = ""
    #: The argument that names the dimension of "along", or the extents of "trailing".
    extent: str = ""
    #: "default", "int_to_float" or "first", or "" for an op whose operands must have one dtype.
    promotion: str = ""
    #: The source of PyTorch's implementation, or "".
    fallback: str = ""

    @staticmethod
    def parse(text: str) -> TorchRules:
        """Parses the runtime's JSON. An empty text has no rules."""
        record = json.loads(text) if text else {}
        dimensions, _, extent = record.get("dimensions", "").partition(" ")
        return TorchRules(
            record.get("autocast", {}), dimensions, extent, record.get("promotion", ""), record.get("fallback", "")
        )


class Argument(NamedTuple):
    """One argument of an op's schema."""

    name: str
    type: str
    kind: int
    optional: bool
    mutates: bool
    has_default: bool
    default: Any

    @property
    def is_tensor(self) -> bool:
        return self.kind == Kind.TENSOR

    @property
    def is_tensor_list(self) -> bool:
        return self.kind == Kind.TENSOR_LIST

    @property
    def is_list(self) -> bool:
        return self.kind == Kind.LIST

    @property
    def is_dtype(self) -> bool:
        return self.kind == Kind.DTYPE


class Signature:
    """The declaration of one op: its schema, its gradient, and its rules for PyTorch."""

    def __init__(self, native: _native.Op) -> None:
        self._native = native
        self.name: str = native.name
        self.schema: str = native.schema
        self.arguments: tuple[Argument, ...] = tuple(Argument(*a) for a in native.arguments)
        self.result_types: tuple[str, ...] = tuple(native.result_types)
        self.gradient: str = native.backward  # autograd's op for gradients, or ""
        # The source of each argument of that op: ("gradient" | "result" | "argument" | "needs" | "deterministic",
        # index).
        sources = json.loads(native.kernel_info())["backward"]["arguments"] if self.gradient else ()
        self.backward_arguments: tuple[tuple[str, int], ...] = tuple((s, i) for s, i in sources)
        self.rules = TorchRules.parse(native.torch)  # PyTorch's treatment of the op
        self.has_tensor_lists = any(a.is_tensor_list for a in self.arguments)
        self._form = CallForm(
            self.name, [(a.name, a.is_list, a.default if a.has_default else ...) for a in self.arguments]
        )

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Returns a value for each argument of the schema, with ``...`` for defaults.

        Raises TypeError if the arguments do not fit it.
        """
        args, kwargs = self._form.fit(args, kwargs)
        if len(args) > len(self.arguments):
            raise TypeError(f"{self.name} takes {len(self.arguments)} arguments, got {len(args)}: {self.schema}")
        values: list[Any] = list(args) + [...] * (len(self.arguments) - len(args))
        names = [a.name for a in self.arguments]
        for name, value in kwargs.items():
            if name not in names:
                raise TypeError(f"{self.name} has no argument {name!r}{closest(name, names)}: {self.schema}")
            position = names.index(name)
            if position < len(args):
                raise TypeError(f"{self.name} got argument {name!r} twice")
            values[position] = value
        for argument, value in zip(self.arguments, values):
            if value is ... and not argument.has_default:
                raise TypeError(f"{self.name} needs argument {argument.name!r}: {self.schema}")
        return values

    def _check_types(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raises TypeError if arguments of a call with PyTorch tensors do not fit the schema."""
        import torch

        outputs = outputs_of(kwargs)
        named = {name: value for name, value in kwargs.items() if name not in outputs}
        for argument, value in zip(self.arguments, self.bind(args, named)):
            if value is ... or (value is None and argument.optional):
                continue
            kinds = _ACCEPTED.get(argument.kind, (object,))
            if isinstance(value, torch.Tensor) and argument.kind == Kind.TENSOR and value.layout != torch.strided:
                raise KernelError(
                    f"{self.name}: argument {argument.name!r} has the layout {value.layout}; kpkg takes dense "
                    "tensors: call .to_dense(), or pack a sparse weight by kpkg.sparse.pack"
                ) from None
            if argument.kind == Kind.TENSOR:
                fits = isinstance(value, torch.Tensor)
            elif argument.kind == Kind.TENSOR_LIST:
                fits = isinstance(value, (list, tuple)) and all(isinstance(item, torch.Tensor) for item in value)
            elif argument.kind == Kind.DTYPE:
                fits = isinstance(value, torch.dtype)
            elif argument.kind == Kind.LIST:
                fits = isinstance(value, (list, tuple)) and all(
                    isinstance(item, (Integral, torch.SymInt)) for item in value
                )
            else:
                fits = isinstance(value, (*kinds, torch.SymInt, torch.SymFloat, torch.SymBool))
            if not fits:
                raise TypeError(
                    f"{self.name}: argument {argument.name!r} is {shown(value)}, expected {argument.type}: "
                    f"{self.schema}"
                ) from None
            if argument.kind == Kind.INT and isinstance(value, Integral) and not -(2**63) <= int(value) < 2**63:
                raise TypeError(
                    f"{self.name}: argument {argument.name!r} is {value}, which has more than 64 bits"
                ) from None
        for name, value in outputs.items():
            if not isinstance(value, torch.Tensor):
                raise TypeError(
                    f"{self.name}: `{name}` is of type {type(value).__name__}, expected a PyTorch tensor"
                ) from None
