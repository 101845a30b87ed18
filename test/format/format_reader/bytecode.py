"""Reads and writes plan bytecode, and checks that plans are well-formed.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from format_reader.page import DTYPES, OPCODES, Refused, limit

NUMBERS = {name: number for number, (name, _) in OPCODES.items()}
TYPES = "ifbtldsIFBv"
PASSED = "IFB"
BINARY = struct.Struct


@dataclass
class Instruction:
    name: str
    results: list[int] = field(default_factory=list)
    operands: list[int] = field(default_factory=list)
    immediates: list[int] = field(default_factory=list)


@dataclass
class Function:
    name: str
    parameters: list[tuple[str, bool]]
    results: str
    registers: str
    code: list[Instruction] = field(default_factory=list)


@dataclass
class Plan:
    strings: list[bytes]
    functions: list[Function]


@dataclass
class Launch:
    """The parts of a launch's immediates."""

    kernel: int
    params: list[tuple[int, int]]
    written: list[int]
    extents: int


def launch_of(instruction: Instruction) -> Launch | None:
    """Returns the parts of a launch, unless its immediates do not fit its operands."""
    values, operands = instruction.immediates, len(instruction.operands)
    if len(values) < 2 or not 0 <= values[1] <= operands or len(values) < 3 + 2 * values[1]:
        return None
    params = values[1]
    args = values[2 + 2 * params]
    if args < 0 or params + args > operands or len(values) != 3 + 2 * params + args:
        return None
    pairs = [(values[2 + 2 * k], values[3 + 2 * k]) for k in range(params)]
    extents = operands - params - args
    return Launch(values[0], pairs, values[3 + 2 * params :], extents) if extents <= 3 else None


class Bytes:
    """Takes little-endian numbers off the front of a plan."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def take(self, form: str) -> tuple[int, ...]:
        size = struct.calcsize("<" + form)
        if self.at + size > len(self.data):
            raise Refused(f"ends at byte {len(self.data)} within a field")
        self.at += size
        return struct.unpack_from("<" + form, self.data, self.at - size)

    def count(self, what: str, most: int, unit: int) -> int:
        (value,) = self.take("I")
        if value > most:
            raise Refused(f"{value} {what}, more than {most}")
        if value * unit > len(self.data) - self.at:
            raise Refused(f"{value} {what} do not fit the {len(self.data) - self.at} bytes that follow")
        return value

    def text(self, what: str, most: int) -> bytes:
        size = self.count(what, most, 1)
        self.at += size
        return self.data[self.at - size : self.at]

    def types(self, what: str, most: int) -> str:
        types = self.text(what, most).decode("latin-1")
        for letter in types:
            if letter not in TYPES:
                raise Refused(f"unknown register type {ord(letter)}")
        return types


def decode(data: bytes) -> Plan:
    """Returns the plan of these bytes; checks their form only."""
    try:
        return _decode(data)
    except Refused as refused:
        raise Refused(f"plan bytecode is refused: {refused}") from None


def _decode(data: bytes) -> Plan:
    if len(data) > limit("bytes of a plan"):
        raise Refused(f"{len(data)} bytes, more than {limit('bytes of a plan')}")
    if data[:4] != b"KPLN":
        raise Refused("it does not begin with KPLN")
    bytes_ = Bytes(data)
    bytes_.at = 4
    major, minor = bytes_.take("HH")
    if major != 1:
        raise Refused(f"version {major}.{minor}, this runtime reads 1.x")
    count = bytes_.count("strings", limit("strings"), 4)
    strings = [bytes_.text("bytes in a string", limit("bytes of a string")) for _ in range(count)]
    functions = bytes_.count("functions", limit("functions"), 20)
    if not functions:
        raise Refused("it has no function")
    plan = Plan(strings, [_function(bytes_, strings) for _ in range(functions)])
    if bytes_.at != len(data):
        raise Refused(f"bytes after the end, at {bytes_.at} of {len(data)}")
    return plan


def _string(bytes_: Bytes, strings: list[bytes]) -> str:
    (index,) = bytes_.take("I")
    if index >= len(strings):
        raise Refused(f"string {index} of {len(strings)}")
    return strings[index].decode(errors="replace")


def _function(bytes_: Bytes, strings: list[bytes]) -> Function:
    name = _string(bytes_, strings)
    count = bytes_.count("parameters", limit("parameters of"), 5)
    parameters = [(_string(bytes_, strings), bytes_.take("B")[0] != 0) for _ in range(count)]
    results = bytes_.types("results", limit("results"))
    registers = bytes_.types("registers", limit("registers"))
    if len(parameters) > len(registers):
        raise Refused("fewer registers than parameters")
    count = bytes_.count("instructions", limit("instructions"), 6)
    function = Function(name, parameters, results, registers)
    function.code = [_instruction(bytes_, len(registers)) for _ in range(count)]
    return function


def _instruction(bytes_: Bytes, registers: int) -> Instruction:
    opcode, results, operands, immediates = bytes_.take("BBHH")
    most = limit("operands of an instruction")
    if opcode not in OPCODES:
        raise Refused(f"unknown opcode {opcode}; a newer runtime may know it")
    if operands > most or immediates > 3 * most + 3:
        raise Refused(f"{operands} operands and {immediates} immediates in one instruction")
    taken = bytes_.take(f"{results + operands}H")
    for register in taken:
        if register >= registers:
            raise Refused(f"register {register} of {registers}")
    values = list(bytes_.take(f"{immediates}q"))
    return Instruction(OPCODES[opcode][0], list(taken[:results]), list(taken[results:]), values)


def encode(plan: Plan) -> bytes:
    """The inverse of decode()."""
    strings = list(plan.strings)

    def index(text: str) -> bytes:
        if text.encode() not in strings:
            strings.append(text.encode())
        return struct.pack("<I", strings.index(text.encode()))

    body = b""
    for function in plan.functions:
        body += index(function.name) + struct.pack("<I", len(function.parameters))
        for name, written in function.parameters:
            body += index(name) + bytes([written])
        for types in (function.results, function.registers):
            body += struct.pack("<I", len(types)) + types.encode("latin-1")
        body += struct.pack("<I", len(function.code))
        for one in function.code:
            counts = (len(one.results), len(one.operands), len(one.immediates))
            body += struct.pack("<BBHH", NUMBERS.get(one.name, 255), *counts)
            body += struct.pack(f"<{counts[0] + counts[1]}H", *one.results, *one.operands)
            body += struct.pack(f"<{counts[2]}q", *one.immediates)
    head = b"KPLN" + struct.pack("<HHI", 1, 0, len(strings))
    texts = b"".join(struct.pack("<I", len(text)) + text for text in strings)
    return head + texts + struct.pack("<I", len(plan.functions)) + body


class Checker:
    """Checks one function: one pass, with the registers that each path to an instruction has assigned."""

    def __init__(self, plan: Plan, index: int, depths: dict[int, int]):
        self.plan, self.index, self.depths = plan, index, depths
        self.function = plan.functions[index]
        self.assigned = set(range(len(self.function.parameters)))
        self.reachable, self.depth = True, 1
        self.pending = dict[int, set[int]]()
        self.loops = list[tuple[int, int, bool]]()

    def type_of(self, register: int) -> str:
        return self.function.registers[register]

    def meet(self, target: int) -> None:
        if self.reachable:
            self.pending[target] = self.pending.get(target, self.assigned) & self.assigned

    def run(self) -> None:
        function = self.function
        for k, (_, written) in enumerate(function.parameters):
            if written and self.type_of(k) not in "tv":
                raise Refused(f"parameter {k} is mut but has type {self.type_of(k)}")
        for letter in function.results:
            if letter in PASSED or (self.index == 0 and letter != "t"):
                raise Refused(f"a result has type {letter}")
        for at, instruction in enumerate(function.code):
            if at in self.pending:
                state = self.pending.pop(at)
                self.assigned = self.assigned & state if self.reachable else state
                self.reachable = True
            try:
                self.check(at, instruction)
            except Refused as refused:
                raise Refused(f"instruction {at} ({instruction.name}): {refused}") from None
        if self.loops:
            raise Refused("a loop has no end")
        if not function.code or function.code[-1].name not in ("ret", "raise"):
            raise Refused("its end can be reached without a return")

    def check(self, at: int, i: Instruction) -> None:
        getattr(self, "check_" + i.name, self.check_signature)(i)
        for register in i.operands:
            if self.reachable and register not in self.assigned:
                raise Refused(f"register {register} is read but not assigned on every path")
        self.assigned = self.assigned | set(i.results)
        if i.name in ("jump", "branch_unless", "loop_for", "loop_while", "break_unless", "loop_end"):
            self.control(at, i)
        if i.name in ("jump", "ret", "raise"):
            self.reachable = False

    def control(self, at: int, i: Instruction) -> None:
        most = (self.loops[-1][1] if self.loops else len(self.function.code)) - 1
        match i.name:
            case "jump" | "branch_unless":
                if not at < i.immediates[0] <= most:
                    raise Refused(f"jump to {i.immediates[0]}, expected {at + 1} to {most}")
                self.meet(i.immediates[0])
            case "loop_for" | "loop_while":
                end = i.immediates[0]
                if not at + 1 < end <= most:
                    raise Refused(f"loop ends at {end}, expected {at + 2} to {most}")
                if any(at < target < end for target in self.pending):
                    raise Refused("a jump leads into the loop")
                if len(self.loops) == limit("loops in one another"):
                    raise Refused("loops nest deeper than 16")
                self.loops.append((at, end, i.name == "loop_while"))
                if i.name == "loop_for":
                    self.meet(end)
            case "break_unless":
                if not self.loops or not self.loops[-1][2]:
                    raise Refused("break outside of a while loop")
                self.meet(self.loops[-1][1])
            case "loop_end":
                if not self.loops or self.loops[-1][:2] != (i.immediates[0], at + 1):
                    raise Refused("the end of a loop does not fit its beginning")
                self.loops.pop()
                self.reachable = False

    def check_signature(self, i: Instruction) -> None:
        signature = OPCODES[NUMBERS[i.name]][1]
        results, _, rest = signature.partition(":")
        operands, _, immediates = rest.partition(";")
        if operands.endswith("*"):
            operands = operands[0] * len(i.operands)
        wanted = (len(results), len(operands), len(immediates))
        if (len(i.results), len(i.operands), len(i.immediates)) != wanted:
            raise Refused(f'results, operands, immediates do not fit "{signature}"')
        same = {self.type_of(r) for letter, r in zip(operands + results, i.operands + i.results) if letter == "T"}
        for letter, register in zip(operands + results, i.operands + i.results, strict=True):
            if letter != "T" and self.type_of(register) != letter or len(same) > 1:
                raise Refused(f'a register has type {self.type_of(register)}, expected "{signature}"')
        for letter, value in zip(immediates, i.immediates, strict=True):
            self.check_immediate(letter, value)

    def check_immediate(self, letter: str, value: int) -> None:
        if letter == "$" and not 0 <= value < len(self.plan.strings):
            raise Refused(f"string {value} of {len(self.plan.strings)}")
        if letter == "D" and value != 0 and value not in DTYPES:
            raise Refused(f"dtype {value}")
        if letter == "m" and not 0 <= value <= 15:
            raise Refused(f"comparison mask {value}")

    def check_call(self, i: Instruction) -> None:
        if len(i.immediates) != 1:
            raise Refused("call needs one immediate")
        callee, most = i.immediates[0], len(self.plan.functions) - 1
        if not self.index < callee <= most:
            raise Refused(f"function {self.index} calls {callee}, expected {self.index + 1} to {most}")
        other = self.plan.functions[callee]
        taken = other.registers[: len(other.parameters)]
        if (len(i.operands), len(i.results)) != (len(taken), len(other.results)):
            raise Refused(f"call with {len(i.operands)} arguments and {len(i.results)} results, expected")
        for register, letter in zip(i.operands + i.results, taken + other.results, strict=True):
            if self.type_of(register) != letter:
                raise Refused(f"has type {self.type_of(register)}, expected {letter}")
        self.depth = max(self.depth, 1 + self.depths[callee])
        if self.depth > limit("functions that call"):
            raise Refused(f"calls nest deeper than {limit('functions that call')}")

    def check_ret(self, i: Instruction) -> None:
        if i.results or i.immediates or len(i.operands) != len(self.function.results):
            raise Refused(f"returns {len(i.operands)} values, expected {len(self.function.results)}")
        for register, letter in zip(i.operands, self.function.results, strict=True):
            if self.type_of(register) != letter:
                raise Refused(f"returns type {self.type_of(register)}, expected {letter}")

    def check_raise(self, i: Instruction) -> None:
        if i.results or len(i.immediates) != 1:
            raise Refused("raise needs one immediate and no result")
        if any(self.type_of(register) in PASSED for register in i.operands):
            raise Refused("raise with a pass-through value")
        self.check_immediate("$", i.immediates[0])

    def check_launch(self, i: Instruction) -> None:
        launch = launch_of(i)
        if i.results or not launch:
            raise Refused("launch is not well-formed")
        for string in [launch.kernel, *(name for name, _ in launch.params)]:
            self.check_immediate("$", string)
        params, args = len(launch.params), len(launch.written)
        for k, register in enumerate(i.operands):
            allowed = "ibfds" if k < params else "tifbIFB" if k < params + args else "i"
            if self.type_of(register) not in allowed:
                raise Refused(f"launch operand {k} has type {self.type_of(register)}, expected one of {allowed}")
        for k, (_, at_least) in enumerate(launch.params):
            if at_least and self.type_of(i.operands[k]) != "i":
                raise Refused(f"parameter {k} is at_least a value of type {self.type_of(i.operands[k])}")
        for k, written in enumerate(launch.written):
            if written and self.type_of(i.operands[params + k]) != "t":
                raise Refused(f"argument {k} is mut but has type {self.type_of(i.operands[params + k])}")


def load(data: bytes) -> Plan:
    """Returns the plan of these bytes, if it is well-formed."""
    plan = decode(data)
    depths = dict[int, int]()
    for index in range(len(plan.functions) - 1, -1, -1):
        checker = Checker(plan, index, depths)
        try:
            checker.run()
        except Refused as refused:
            name = plan.functions[index].name
            raise Refused(f"plan bytecode is refused: function `{name}`: {refused}") from None
        depths[index] = checker.depth
    return plan
