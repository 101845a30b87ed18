"""Evaluates an op's shape plan over symbolic integers.

It computes the shapes, strides and dtypes of results, and checks the arguments.

The plan is the same bytecode that the runtime evaluates, read as plain data. Where the plan branches on a symbolic
value, both ways are evaluated. If they end with the same results (they chose between kernels), the graph holds for
either; else PyTorch records a guard. Memory is not modelled: a tensor is its dtype, shape, strides, and whether it is
an argument's memory.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import functools
import json
import math
import operator
import re
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

import kpkg._native as _native
from kpkg import _arrays, _views
from kpkg._errors import KernelError
from kpkg._op import Op, flattened
from kpkg._views import View

_FUEL = 100_000  # instructions per call; the runtime has its own limit, and this one is never the smaller in practice
_FORKS = 6  # nested branches of which both ways are evaluated
_ALL_FORKS = 16  # all such branches of a call: the rest of the plan runs for each way

SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


class _Instruction(NamedTuple):
    op: str
    results: tuple[int, ...]
    operands: tuple[int, ...]
    immediates: tuple[int, ...]


class _Function(NamedTuple):
    name: str
    parameters: int
    registers: str
    code: tuple[_Instruction, ...]


class _Module(NamedTuple):
    strings: tuple[str, ...]
    functions: tuple[_Function, ...]


@functools.cache
def _module(text: str) -> _Module:
    plan = json.loads(text)
    functions = tuple(
        _Function(
            f["name"],
            len(f["parameters"]),
            f["registers"],
            tuple(_Instruction(i[0], tuple(i[1]), tuple(i[2]), tuple(i[3])) for i in f["code"]),
        )
        for f in plan["functions"]
    )
    return _Module(tuple(plan["strings"]), functions)


def infer(op: Op, values: list[Any]) -> list[Any]:
    """Returns (shape, strides, dtype name) of each tensor result, and other results as values.

    `values` has a value or ``...`` for each argument of the schema.
    """
    arguments = []
    for argument, value in zip(op.arguments, values):
        if value is ...:
            value = argument.default
        if isinstance(value, torch.Tensor):
            value = _view_of(value)
        elif argument.is_tensor_list:
            value = [_view_of(tensor) for tensor in value]
        elif isinstance(value, torch.dtype):
            value = _arrays.dtype_name(value)
        elif value is None and argument.type == "float?":
            value = math.nan  # as in the runtime
        elif value is None and argument.type == "ScalarType?":
            value = "none"
        arguments.append(value)
    on_gpu = any(
        isinstance(value, torch.Tensor) and value.device.type == "cuda" for value in flattened(values, (list, tuple))
    )
    module = _module(op._native.plan_json(True, on_gpu))
    machine = _Machine(op.name, module)
    results = machine.run(0, arguments)
    return [(v.shape, v.strides, v.dtype) if isinstance(v, View) else v for v in map(_views.as_result, results)]


def _view_of(tensor: torch.Tensor) -> View:
    return View(_arrays.dtype_name(tensor.dtype), tuple(tensor.shape), tuple(tensor.stride()), True)


class _Machine:
    def __init__(self, op: str, module: _Module) -> None:
        self.op = op
        self.module = module
        self.fuel = _FUEL
        self.forks = self.all_forks = 0

    def run(self, index: int, arguments: list[Any]) -> list[Any]:
        function = self.module.functions[index]
        registers: list[Any] = [None] * len(function.registers)
        registers[: len(arguments)] = arguments
        return self._run_from(function, registers, 0)

    def _run_either(self, function: _Function, ways: list[tuple[list[Any], int]]) -> list[Any] | None:
        """Returns the results of the rest of the function if each (registers, position) gives the same, else None."""
        if (
            self.forks == _FORKS
            or self.all_forks == _ALL_FORKS
            or any(_only_raises(function, position) for _, position in ways)
        ):
            return None
        fuel = self.fuel
        self.forks += 1
        self.all_forks += 1
        try:
            first, *others = (self._run_from(function, registers, position) for registers, position in ways)
        except KernelError:  # the call may not take the way that raises
            self.fuel = fuel
            return None
        finally:
            self.forks -= 1
        return first if all(_are_same(first, other) for other in others) else None

    def _run_from(self, function: _Function, registers: list[Any], position: int) -> list[Any]:
        while True:
            self.fuel -= 1
            if self.fuel < 0:
                raise KernelError(f"{self.op}: its shape plan takes more than {_FUEL} steps")
            instruction = function.code[position]
            operands = [registers[r] for r in instruction.operands]
            name, immediates = instruction.op, instruction.immediates
            position += 1
            if name in ("branch_unless", "select") and isinstance(operands[0], torch.SymBool):
                if name == "select":
                    result = instruction.results[0]
                    ways = [
                        ([*registers[:result], value, *registers[result + 1 :]], position) for value in operands[1:]
                    ]
                else:
                    ways = [(list(registers), position), (list(registers), immediates[0])]
                either = self._run_either(function, ways)
                if either is not None:
                    return either
            if name in _PURE:
                registers[instruction.results[0]] = self._pure(name, operands)
            elif name in _CONSTANTS:
                registers[instruction.results[0]] = _CONSTANTS[name](self.module, immediates[0])
            elif name in ("cmp_int", "cmp_float"):
                registers[instruction.results[0]] = _compare(operands[0], operands[1], immediates[0])
            elif name == "jump":
                position = immediates[0]
            elif name == "branch_unless":
                if not bool(operands[0]):
                    position = immediates[0]
            elif name == "loop_for":
                counter, bound, step = operands
                if bool(step < 1):
                    raise KernelError(f"{self.op}: loop with step {step}, expected at least 1")
                if bool(counter >= bound):
                    position = immediates[0]
            elif name == "loop_end":
                begin = function.code[immediates[0]]
                if begin.op == "loop_while":
                    position = immediates[0] + 1
                else:  # the counter keeps its last value when the loop ends
                    counter, bound, step = (registers[r] for r in begin.operands)
                    if bool(counter + step < bound):
                        registers[begin.operands[0]] = counter + step
                        position = immediates[0] + 1
            elif name == "loop_while":
                pass
            elif name == "break_unless":
                if not bool(operands[0]):
                    position = _end_of_loop(function, position)
            elif name == "call":
                results = self.run(immediates[0], operands)
                for register, value in zip(instruction.results, results):
                    registers[register] = value
            elif name == "ret":
                return operands
            elif name == "raise":
                raise KernelError(_message(self.op, self.module.strings[immediates[0]], operands))
            elif name != "launch":  # launches have no result
                raise KernelError(
                    f"{self.op}: its shape plan has the instruction {name}, which this kpkg does not know"
                )

    def _pure(self, name: str, operands: list[Any]) -> Any:
        if operands and operands[0] is None and name not in ("is_none", "move", "tensors"):
            raise KernelError(f"{self.op}: {name} of None")
        try:
            return _PURE[name](*operands)
        except _views.ViewError as error:
            subject = operands[0].describe() if operands and isinstance(operands[0], View) else "the arguments"
            raise KernelError(f"{self.op}: {name} of {subject}: {error}") from None
        except (ZeroDivisionError, OverflowError) as error:
            raise KernelError(f"{self.op}: {name}: {error}") from None


def _are_same(first: Any, second: Any) -> bool:
    """Returns whether both are equal for every value of the symbols, without a guard."""
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return len(first) == len(second) and all(map(_are_same, first, second))
    if isinstance(first, SYMBOLIC) or isinstance(second, SYMBOLIC):
        return isinstance(first, SYMBOLIC) and isinstance(second, SYMBOLIC) and first.node.expr == second.node.expr
    return type(first) is type(second) and first == second


def _only_raises(function: _Function, position: int) -> bool:
    """Returns whether nothing but an error follows: the branch then checks the arguments, and chooses nothing."""
    for _ in range(len(function.code)):
        name = function.code[position].op
        if name == "raise":
            return True
        if name == "jump":
            position = function.code[position].immediates[0]
        elif name in _PURE or name in _CONSTANTS:
            position += 1
        else:
            return False
    return False


def _end_of_loop(function: _Function, position: int) -> int:
    """Returns the index after the innermost loop around `position`."""
    depth = 0
    for i in range(position, len(function.code)):
        if function.code[i].op in ("loop_for", "loop_while"):
            depth += 1
        elif function.code[i].op == "loop_end":
            if depth == 0:
                return i + 1
            depth -= 1
    raise AssertionError("break outside of a loop in verified bytecode")


def _message(op: str, text: str, values: list[Any]) -> str:
    shown = [
        v.describe()
        if isinstance(v, View)
        else f"a list of {len(v)} tensors"
        if isinstance(v, list) and any(isinstance(item, View) for item in v)
        else str(list(v))
        if isinstance(v, (list, tuple))
        else str(v)
        for v in values
    ]
    remaining = iter(shown)
    pieces = {"{{": lambda: "{", "}}": lambda: "}", "{}": lambda: next(remaining, "{}")}
    return f"{op}: " + re.sub(r"\{\{|\}\}|\{\}", lambda match: pieces[match.group()](), text)


def _compare(a: Any, b: Any, mask: int) -> Any:
    if isinstance(a, float) and isinstance(b, float) and (math.isnan(a) or math.isnan(b)):
        return bool(mask & 8)
    kinds: tuple[Callable[[Any, Any], Any], ...] = (
        *(lambda a, b: False, operator.eq, operator.gt, operator.ge),
        *(operator.lt, operator.le, operator.ne, lambda a, b: True),
    )
    return kinds[mask & 7](a, b)


def _truncated_quotient(a: Any, b: Any) -> Any:
    return a // b if bool((a >= 0) == (b > 0)) else -(-a // b)


def _get(values: list[Any], index: int) -> Any:
    if not -len(values) <= index < len(values):
        raise _views.ViewError(f"index {index} is out of range for a list of {len(values)}")
    return values[int(index)]


def _set(values: list[Any], index: int, value: Any) -> list[Any]:
    _get(values, index)
    copy = list(values)
    copy[int(index)] = value
    return copy


_DTYPE_BYTES = {name: (bits + 7) // 8 for name, bits, _ in _native.dtypes()}


_CONSTANTS: dict[str, Callable[[_Module, int], Any]] = {
    "const_int": lambda module, value: value,
    "const_float": lambda module, value: struct.unpack("<d", struct.pack("<q", value))[0],
    "const_bool": lambda module, value: bool(value),
    "const_dtype": lambda module, value: _views.DTYPES[value],
    "const_string": lambda module, value: module.strings[value],
}

_OF_INTS_AND_FLOATS = ("add", "sub", "mul", "mod", "pow", "abs")
_OF_VIEWS = "broadcast_shapes is_contiguous transpose permute expand drop unsqueeze squeeze unfold fold reshape".split()
_PURE: dict[str, Callable[..., Any]] = {
    **{f"{name}_{kind}": getattr(operator, name) for name in _OF_INTS_AND_FLOATS for kind in ("int", "float")},
    **{name: getattr(_views, name) for name in _OF_VIEWS},
    **dict.fromkeys(("move", "defer_int", "defer_float", "defer_bool"), lambda a: a),
    **dict.fromkeys(("eq_dtype", "eq_string"), operator.eq),
    **{name: getattr(math, name) for name in ("exp", "sin", "cos", "tanh", "erf")},
    "none": lambda: None,
    "processors": lambda: 16,  # any number will do: the compiler keeps it out of shapes and checks
    "select": lambda c, a, b: a if bool(c) else b,
    "floordiv_int": operator.floordiv,
    "ceildiv_int": lambda a, b: -(-a // b),
    "truncdiv_int": _truncated_quotient,
    "truncrem_int": lambda a, b: a - b * _truncated_quotient(a, b),
    "min_int": torch.sym_min,
    "max_int": torch.sym_max,
    "and_int": lambda a, b: int(a) & int(b),
    "or_int": lambda a, b: int(a) | int(b),
    "xor_int": lambda a, b: int(a) ^ int(b),
    "shl_int": lambda a, b: int(a) << int(b),
    "shr_int": lambda a, b: int(a) >> int(b),
    "int_to_float": torch.sym_float,
    "float_to_int": torch.sym_int,
    "bool_to_int": lambda a: int(bool(a)),
    "bool_to_float": lambda a: float(bool(a)),
    "and_bool": lambda a, b: bool(a) and bool(b),
    "or_bool": lambda a, b: bool(a) or bool(b),
    "xor_bool": lambda a, b: bool(a) != bool(b),
    "div_float": lambda a, b: (
        a / b if bool(b != 0) else math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)
    ),
    "min_float": lambda a, b: a if bool(a <= b) or a != a else b,
    "max_float": lambda a, b: a if bool(a >= b) or a != a else b,
    "fma_float": lambda a, b, c: a * b + c,
    "neg_float": operator.neg,
    "sqrt": lambda a: math.sqrt(a) if a >= 0 else math.nan,
    "rsqrt": lambda a: 1.0 / math.sqrt(a) if a > 0 else math.inf if a == 0 else math.nan,
    "exp2": lambda a: 2.0**a,
    "log": lambda a: math.log(a) if a > 0 else -math.inf if a == 0 else math.nan,
    "log2": lambda a: math.log2(a) if a > 0 else -math.inf if a == 0 else math.nan,
    "floor": lambda a: float(math.floor(a)),
    "ceil": lambda a: float(math.ceil(a)),
    "round": lambda a: float(round(a)),
    "dtype_size": _DTYPE_BYTES.__getitem__,
    "dtype_is_float": lambda a: "float" in a,
    "list": lambda *values: list(values),
    "list_len": len,
    "list_get": _get,
    "list_set": _set,
    "list_append": lambda values, value: [*values, value],
    "list_concat": lambda a, b: [*a, *b],
    "list_slice": lambda values, start, stop: list(values)[int(start) : int(stop)],
    "list_eq": lambda a, b: len(a) == len(b) and all(bool(x == y) for x, y in zip(a, b)),
    "tensors": lambda *values: list(values),
    "tensors_len": len,
    "tensors_get": _get,
    "tensors_append": lambda values, value: [*values, value],
    "tensors_concat": operator.add,
    "tensors_slice": lambda values, start, stop: values[int(start) : int(stop)],
    "dtype_of": lambda t: t.dtype,
    "rank": lambda t: len(t.shape),
    "dim": lambda t, i: t.shape[_views.wrap(i, len(t.shape))],
    "stride": lambda t, i: t.strides[_views.wrap(i, len(t.shape))],
    "shape": lambda t: list(t.shape),
    "strides": lambda t: list(t.strides),
    "numel": lambda t: math.prod(t.shape),
    "is_none": lambda t: t is None,
    "empty": lambda shape, dtype: _views.empty(shape, dtype),
    "empty_like": lambda t: _views.empty(t.shape, t.dtype),
    "slice": _views.cut,
    "contiguous": lambda t: t if _views.is_contiguous(t) else _views.empty(t.shape, t.dtype),
}
