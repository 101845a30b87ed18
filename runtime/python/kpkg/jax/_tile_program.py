"""Reads tile programs: the form in which packages hold kernels for TPUs.

docs/package-format.md describes it. A program comes from a file that anybody may have written. So it is checked here:
names of ops, numbers of values, types. Nothing of it is Python.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from typing import Any

from kpkg._errors import KernelError

_MOST_ELEMENTS = 1 << 24
_MOST_DIMENSIONS = 16
_ELEMENTS = ("f32", "bf16", "index", "i1", "i8", "i16", "i32", "i64")
_NUMBERS = (*_ELEMENTS, "f64")  # of scalars, which may come from the call


@dataclasses.dataclass(frozen=True)
class Type:
    """The type of a value. Views have a rank, tiles have a shape."""

    kind: str  # "view", "tile", "scalar"
    element: str
    shape: tuple[int, ...] = ()
    rank: int = 0


@dataclasses.dataclass(frozen=True)
class Block:
    """Ops that run one after the other. `arguments` are the numbers of its own values."""

    arguments: list[int]
    body: list[Op]


@dataclasses.dataclass(frozen=True)
class Op:
    """One operation. Values are numbered through the whole program."""

    name: str
    operands: list[int]
    attributes: dict[str, Any]
    results: list[int]
    blocks: list[Block]


@dataclasses.dataclass(frozen=True)
class Program:
    """A kernel: the types of all its values, by their numbers, and its block."""

    name: str
    types: list[Type]
    block: Block


def read(text: bytes, known: Collection[str]) -> Program:
    """Reads a program whose ops are all `known`. Raises KernelError for any other."""
    try:
        return _Reader(known).program(json.loads(text))
    except (KeyError, TypeError, ValueError, IndexError, RecursionError) as error:
        raise KernelError(f"a kernel for TPUs in the package is malformed: {error}") from None


class _Reader:
    def __init__(self, known: Collection[str]) -> None:
        self._known = known
        self._types: list[Type] = []

    def program(self, record: Any) -> Program:
        if record["version"] != 1:
            raise ValueError(f"version {record['version']} of tile programs is not known: update kpkg")
        block = self._block(record)
        return Program(str(record["name"]), self._types, block)

    def _block(self, record: Any) -> Block:
        if not record:
            return Block([], [])
        arguments = self._define(record["arguments"])
        return Block(arguments, [self._op(each) for each in record["body"]])

    def _op(self, record: Any) -> Op:
        name, operands, attributes, results, *rest = record
        if name not in self._known:
            raise ValueError(f"{name!r} is no op of tile programs")
        for number in operands:
            if not isinstance(number, int) or not 0 <= number < len(self._types):
                raise ValueError(f"{name} reads the value {number!r}, which is not defined")
        if not isinstance(attributes, dict):
            raise ValueError(f"{name} has no attributes")
        blocks = [self._block(each) for each in (rest[0] if rest else [])]
        return Op(name, list(operands), attributes, self._define(results), blocks)

    def _define(self, types: Any) -> list[int]:
        first = len(self._types)
        self._types += [_type(*each) for each in types]
        return list(range(first, len(self._types)))


def _type(kind: str, element: str, extent: Any = None) -> Type:
    if element not in (_NUMBERS if kind == "scalar" else _ELEMENTS):
        raise ValueError(f"{kind}s of {element} are not known")
    if kind == "scalar":
        return Type(kind, element)
    if kind == "view":
        if not 0 <= extent <= _MOST_DIMENSIONS:
            raise ValueError(f"a view of rank {extent}")
        return Type(kind, element, rank=int(extent))
    if kind != "tile":
        raise ValueError(f"{kind!r} is no kind of values")
    count = 1
    for each in extent:
        if not isinstance(each, int) or each < 1:
            raise ValueError(f"a tile of shape {extent}")
        count *= each
    if not 1 <= len(extent) <= _MOST_DIMENSIONS or count > _MOST_ELEMENTS:
        raise ValueError(f"a tile of shape {extent}")
    return Type(kind, element, tuple(extent))
