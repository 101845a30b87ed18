"""Evaluates plans: from dtypes, shapes, strides and scalars of a call to its launches, copies and results.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from format_reader import views
from format_reader.bytecode import PASSED, Function, Instruction, Plan, launch_of
from format_reader.lists import LISTS, TENSOR_LISTS, Tensors
from format_reader.memory import Launch, Memory, Resolution
from format_reader.page import DTYPES, limit
from format_reader.views import INT64, Failed, View

HOST_PROCESSORS = 16
C_MATH = ctypes.CDLL(ctypes.util.find_library("m"))


@dataclass(frozen=True)
class Tensor:
    """What a plan sees of a tensor; no strides mean dense ones."""

    dtype: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None


@dataclass(frozen=True)
class DType:
    number: int


@dataclass(frozen=True)
class Passed:
    """The scalar of an argument that the plan does not know."""

    argument: int


def double(bits: int) -> float:
    return struct.unpack("<d", struct.pack("<q", bits))[0]


def from_c(name: str, count: int = 1) -> Callable[..., float]:
    """Returns a function of C, which has no exceptions for infinite results."""
    function = getattr(C_MATH, name)
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * count
    return function


def fits(value: int) -> int:
    if value not in INT64:
        raise Failed("a result does not fit Int, which has 64 bits")
    return value


def divisor(value: int) -> int:
    if value == 0:
        raise Failed("division by zero")
    return value


def truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(divisor(b))
    return quotient if (a < 0) == (b < 0) else -quotient


def power(a: int, b: int) -> int:
    if b < 0:
        raise Failed("a negative power")
    if b > 63 and abs(a) > 1:
        raise Failed("a power does not fit Int")
    return a ** (b if b < 64 else 64 + b % 2) if abs(a) > 1 or b < 64 else a ** (2 + b % 2)


def shift(b: int) -> int:
    if not 0 <= b <= 63:
        raise Failed("shifted by less than 0 or more than 63 bits")
    return b


def divided(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)


def modulo(a: float, b: float) -> float:
    rest = from_c("fmod", 2)(a, b)
    return rest + b if rest != 0 and (rest < 0) != (b < 0) else rest


def least(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else b if b < a else a


def greatest(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else b if a < b else a


def to_int(a: float) -> int:
    if not math.isfinite(a):
        raise Failed(f"{a} does not fit an Int")
    return fits(math.trunc(a))


def relation(a: float, b: float) -> int:
    return 1 if a == b else 2 if a > b else 4 if a < b else 8


SCALARS: dict[str, Callable[..., Any]] = {
    "move": lambda a: a,
    "defer_int": lambda a: a,
    "defer_float": lambda a: a,
    "defer_bool": lambda a: a,
    "select": lambda a, b, c: b if a else c,
    "add_int": lambda a, b: fits(a + b),
    "sub_int": lambda a, b: fits(a - b),
    "mul_int": lambda a, b: fits(a * b),
    "floordiv_int": lambda a, b: fits(a // divisor(b)),
    "ceildiv_int": lambda a, b: fits(-(-a // divisor(b))),
    "truncdiv_int": lambda a, b: fits(truncated(a, b)),
    "truncrem_int": lambda a, b: a - truncated(a, b) * b,
    "mod_int": lambda a, b: a % divisor(b),
    "pow_int": lambda a, b: fits(power(a, b)),
    "min_int": min,
    "max_int": max,
    "and_int": lambda a, b: a & b,
    "or_int": lambda a, b: a | b,
    "xor_int": lambda a, b: a ^ b,
    "shl_int": lambda a, b: fits(a << shift(b)),
    "shr_int": lambda a, b: a >> shift(b),
    "abs_int": lambda a: fits(abs(a)),
    "int_to_float": float,
    "float_to_int": to_int,
    "bool_to_int": int,
    "bool_to_float": float,
    "and_bool": lambda a, b: a and b,
    "or_bool": lambda a, b: a or b,
    "xor_bool": lambda a, b: a != b,
    "add_float": lambda a, b: a + b,
    "sub_float": lambda a, b: a - b,
    "mul_float": lambda a, b: a * b,
    "div_float": divided,
    "mod_float": modulo,
    "pow_float": from_c("pow", 2),
    "min_float": least,
    "max_float": greatest,
    "neg_float": lambda a: -a,
    "abs_float": abs,
    "rsqrt": lambda a: divided(1.0, from_c("sqrt")(a)),
    "round": from_c("nearbyint"),
    "fma_float": from_c("fma", 3),
    **{
        name: from_c(name)
        for name in ("sqrt", "exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf", "floor", "ceil")
    },
    "eq_dtype": lambda a, b: a == b,
    "dtype_size": lambda a: (DTYPES[a.number][1] + 7) // 8 if a.number else 0,
    "dtype_is_float": lambda a: a.number != 0 and DTYPES[a.number][2] == "Float",
}
QUERIES: dict[str, Callable[..., Any]] = {
    "dtype_of": lambda t: DType(t.dtype),
    "rank": lambda t: t.rank,
    "dim": lambda t, d: t.shape[views.wrap(d, t.rank)],
    "stride": lambda t, d: t.strides[views.wrap(d, t.rank)],
    "shape": lambda t: t.shape,
    "strides": lambda t: t.strides,
    "numel": lambda t: t.elements,
    "is_contiguous": views.is_contiguous,
}
VIEWS: dict[str, Callable[..., View]] = {
    "transpose": views.transpose,
    "permute": views.permute,
    "expand": views.expand,
    "drop": views.drop,
    "slice": views.slice_,
    "unsqueeze": views.unsqueeze,
    "squeeze": views.squeeze,
    "unfold": views.unfold,
}


def float_text(value: float) -> str:
    """Spells a Float in a message."""
    return repr(value).removesuffix(".0")


def as_text(value: Any) -> bytes:
    match value:
        case bool() | int() | None:
            text = str(value)
        case float():
            text = float_text(value)
        case tuple():
            text = "[" + ", ".join(map(str, value)) + "]"
        case DType():
            text = DTYPES[value.number][0] if value.number else "none"
        case Tensors():
            text = f"a list of {len(value.items)} tensors"
        case View():
            text = DTYPES[value.dtype][0] + str(list(value.shape))
        case _:
            return value
    return text.encode()


def message(text: bytes, values: list[Any]) -> bytes:
    """Puts values into the text of a `raise`."""
    made, at, rest = b"", 0, iter(values)
    left = len(values)
    while at < len(text):
        pair = text[at : at + 2]
        if pair == b"{}" and left:
            made += as_text(next(rest))
            left -= 1
            at += 2
        else:
            made += pair[:1]
            at += 2 if pair in (b"{{", b"}}") else 1
    return made


class Evaluation:
    def __init__(self, plan: Plan, processors: int):
        self.plan = plan
        self.processors = min(max(processors, 1), 65535)
        self.memory = Memory()
        self.left = limit("steps")
        self.entries = 0
        self.tensors_listed = self.tensor_lists = 0

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise Failed("more than 2^20 steps")

    def made_list(self, items: tuple[int, ...]) -> tuple[int, ...]:
        self.entries += len(items)
        if len(items) > limit("entries of a list") or self.entries > limit("entries of all lists"):
            raise Failed("a list is too long")
        return items

    def made_tensors(self, items: Tensors) -> Tensors:
        self.tensors_listed += len(items.items)
        self.tensor_lists += 1
        if len(items.items) > limit("length of a list of tensors"):
            raise Failed("a list of tensors is too long")
        if self.tensors_listed > limit("entries of all lists") or self.tensor_lists > limit("lists of tensors"):
            raise Failed("too many lists of tensors")
        return items

    def bind(self, values: list[Any]) -> list[Any]:
        """Returns the registers of the parameters of function 0."""
        entry_ = self.plan.functions[0]
        if len(values) != len(entry_.parameters):
            raise Failed(f"{len(values)} arguments, expected {len(entry_.parameters)}")
        return [self.bind_one(k, value) for k, value in enumerate(values)]

    def bind_one(self, k: int, value: Any) -> Any:
        letter, (name, written) = self.plan.functions[0].registers[k], self.plan.functions[0].parameters[k]
        if value is None and letter in "tfFd":
            return {"t": None, "d": DType(0)}.get(letter, math.nan)
        kinds = {"t": Tensor, "i": int, "f": float, "b": bool, "l": tuple, "d": DType, "s": bytes, "v": list}
        if type(value) is not kinds[letter.lower()]:
            raise Failed(f"argument `{name}` is of another type")
        if letter in PASSED:
            return Passed(k)
        if letter == "t":
            return self.memory.argument(k, value.dtype, value.shape, value.strides, written)
        if letter == "v":
            made = [
                self.memory.argument((k, e), each.dtype, each.shape, each.strides, written)
                for e, each in enumerate(value)
            ]
            return self.made_tensors(Tensors(tuple(made)))
        return self.made_list(value) if letter == "l" else value

    def run(self, values: list[Any]) -> Resolution:
        for view in self.call(0, self.bind(values)):
            self.memory.result(view)
        return self.memory.finish()

    def call(self, index: int, arguments: list[Any]) -> list[Any]:
        """Runs a function and returns its results."""
        function = self.plan.functions[index]
        registers = dict[int, Any](enumerate(arguments))
        at, ends = 0, list[int]()
        while True:
            self.spend(1)
            i = function.code[at]
            operands = [registers[r] for r in i.operands]
            at += 1
            match i.name:
                case "jump":
                    at = i.immediates[0]
                case "branch_unless":
                    at = at if operands[0] else i.immediates[0]
                case "loop_for":
                    if operands[2] < 1:
                        raise Failed("a loop's step is below 1")
                    at = i.immediates[0] if operands[0] >= operands[1] else at
                case "loop_while":
                    ends.append(i.immediates[0])
                case "break_unless":
                    at = at if operands[0] else ends.pop()
                case "loop_end":
                    at = self.next_round(function.code[i.immediates[0]], i.immediates[0], at, registers)
                case "call":
                    callee = i.immediates[0]
                    self.spend(len(self.plan.functions[callee].registers) // 16)
                    registers.update(zip(i.results, self.call(callee, operands), strict=True))
                case "ret":
                    return operands
                case "raise":
                    text = message(self.plan.strings[i.immediates[0]], operands).decode(errors="replace")
                    raise Failed(text, text)
                case "launch":
                    self.launch(i, function, operands)
                case _:
                    registers[i.results[0]] = self.value(i, operands)

    def next_round(self, begin: Instruction, start: int, at: int, registers: dict[int, Any]) -> int:
        """Returns where a loop goes on."""
        if begin.name == "loop_while":
            return start + 1
        counter, bound, step = (registers[r] for r in begin.operands)
        if counter + step not in INT64 or counter + step >= bound:
            return at
        registers[begin.operands[0]] = counter + step
        return start + 1

    def value(self, i: Instruction, operands: list[Any]) -> Any:
        """Returns the result of an instruction that has one."""
        name, immediate = i.name, i.immediates[0] if i.immediates else 0
        match name:
            case "const_int":
                return immediate
            case "const_float":
                return double(immediate)
            case "const_bool":
                return immediate != 0
            case "const_dtype":
                return DType(immediate)
            case "const_string":
                return self.plan.strings[immediate]
            case "none":
                return None
            case "processors":
                return self.processors
            case "cmp_int" | "cmp_float":
                return relation(*operands) & immediate != 0
            case "eq_string":
                self.spend(min(map(len, operands)) // 256)
                return operands[0] == operands[1]
            case "is_none":
                return operands[0] is None
            case "empty":
                return self.memory.allocate(operands[0], operands[1].number)
        if name in SCALARS:
            return SCALARS[name](*operands)
        if name in LISTS:
            made = LISTS[name](*operands)
        elif name in TENSOR_LISTS:
            found = TENSOR_LISTS[name](*operands)
            return self.made_tensors(found) if isinstance(found, Tensors) else found
        elif operands[0] is None:
            raise Failed(f"{name} of None")
        elif name in QUERIES:
            made = QUERIES[name](*operands)
        else:
            return self.tensor(name, *operands)
        return self.made_list(made) if isinstance(made, tuple) else made

    def tensor(self, name: str, source: View, *operands: Any) -> View:
        """Returns a tensor that is made of another one."""
        if name == "empty_like":
            return self.memory.allocate(source.shape, source.dtype)
        if name == "contiguous":
            return source if views.is_contiguous(source) else self.memory.copy(source)
        if name in VIEWS:
            return self.memory.made(VIEWS[name](source, *operands))
        shape = views.folded(source, *operands) if name == "fold" else views.reshaped(source, *operands)
        made = views.reshape(source, shape)
        if made is None:
            made = views.reshape(self.memory.copy(source), shape)
        assert made
        return self.memory.made(made)

    def launch(self, i: Instruction, function: Function, operands: list[Any]) -> None:
        parts = launch_of(i)
        assert parts
        params, args = len(parts.params), len(parts.written)
        letters = [function.registers[register] for register in i.operands]
        grid, blocks = operands[params + args :], 1
        for extent in grid:
            blocks *= max(extent, 1)
            if extent < 0 or blocks not in INT64:
                raise Failed("a grid extent is negative or too large")
        if 0 in grid:
            return
        strings = self.plan.strings
        launch = Launch(strings[parts.kernel].decode(), [], [], tuple(grid + [1] * (3 - len(grid))) if grid else None)
        for k, (name, at_least) in enumerate(parts.params):
            launch.params.append((strings[name].decode(), at_least != 0, letters[k], operands[k]))
        for k, written in enumerate(parts.written):
            launch.args.append((written != 0, letters[params + k], operands[params + k]))
        self.memory.launch(launch)


def evaluate(plan: Plan, values: list[Any], processors: int = HOST_PROCESSORS) -> Resolution:
    """Returns the steps and results of a call. Raises Failed where the plan or a rule of the page refuses it."""
    return Evaluation(plan, processors).run(values)
