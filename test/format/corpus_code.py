"""Lists plans and host objects that the page forbids, with the cause that readers give.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable, Iterator

from format_reader import bytecode
from format_reader.bytecode import Function, Instruction, Plan
from format_reader.host_object import Image

Case = tuple[str, str, str, bytes]


def plan_bytes(plan: Plan) -> Iterator[Case]:
    whole = bytecode.encode(plan)
    for name, cause, data in [
        ("magic", "it does not begin with KPLN", b"KPLM" + whole[4:]),
        ("major", "version 2.0, this runtime reads 1.x", whole[:4] + b"\x02" + whole[5:]),
        ("cut", "within a field", whole[:-1]),
        ("behind", "bytes after the end", whole + b"\0"),
        ("strings", "strings, more than 4096", whole[:8] + struct.pack("<I", 4097) + whole[12:]),
        ("string-long", "bytes in a string, more than 65536", whole[:12] + struct.pack("<I", 65537) + whole[16:]),
        ("no-function", "it has no function", b"KPLN\x01\0\0\0" + bytes(8)),
    ]:
        yield "plan-" + name, cause, "Bytes of a plan", data
    yield "good-plan-minor", "", "Bytes of a plan", whole[:6] + b"\x07" + whole[7:]


def plan_rules(plan: Plan) -> Iterator[Case]:
    def case(name: str, cause: str, change: Callable[[Function], object], rule: str = "Well-formed plans") -> Case:
        made = copy.deepcopy(plan)
        change(made.functions[0])
        return "plan-" + name, cause, rule, bytecode.encode(made)

    def insert(*code: Instruction, types: str = "") -> Callable[[Function], object]:
        def change(function: Function) -> None:
            function.registers += types
            function.code[1:1] = code

        return change

    one = Instruction
    yield case("opcode", "unknown opcode 255", insert(one("unknown")))
    yield case("register", "register 9 of 2", insert(one("rank", [0], [9])))
    yield case("register-type", "unknown register type 120", lambda f: setattr(f, "registers", "txx"))
    yield case("few-registers", "fewer registers than parameters", lambda f: setattr(f, "registers", ""))
    yield case("type", 'expected "i:t"', insert(one("rank", [1], [0])))
    yield case("same-type", 'expected "T:T"', insert(one("move", [2], [0]), types="i"))
    yield case("operands", 'do not fit "i:t"', insert(one("rank", [2], []), types="i"))
    yield case("unassigned", "is read but not assigned on every path", insert(one("move", [1], [2]), types="t"))
    yield case("dtype", "dtype 99", insert(one("const_dtype", [2], [], [99]), types="d"))
    yield case("string", "string 99 of 2", insert(one("const_string", [2], [], [99]), types="s"))
    mask = [one("const_int", [2], [], [1]), one("cmp_int", [3], [2, 2], [16])]
    yield case("mask", "comparison mask 16", insert(*mask, types="ib"))
    yield case("result-type", "a result has type i", lambda f: setattr(f, "results", "i"))
    yield case("mut", "parameter 0 is mut but has type i", written)
    yield case("returns", "returns 0 values, expected 1", lambda f: f.code[-1].operands.clear())
    yield case("end", "its end can be reached without a return", lambda f: f.code.pop())
    yield case("jump-back", "jump to 1, expected 2 to 2", insert(one("jump", [], [], [1])))
    yield case("jump-far", "jump to 9, expected 2 to 2", insert(one("jump", [], [], [9])))
    yield case("recursion", "function 0 calls 0", insert(one("call", [1], [0], [0])))
    yield case("break", "break outside of a while loop", insert(*truth(), one("break_unless", [], [2]), types="b"))
    yield case("loop-open", "loop ends at 9", insert(one("loop_while", [], [], [9])))
    yield case("loop-end", "the end of a loop does not fit its beginning", insert(one("loop_end", [], [], [0])))
    into = [*truth(), one("branch_unless", [], [2], [4]), one("loop_while", [], [], [5]), one("loop_end", [], [], [3])]
    yield case("loop-jump", "a jump leads into the loop", insert(*into, types="b"))
    nested = [one("loop_while", [], [], [35 - k]) for k in range(17)]
    nested += [one("loop_end", [], [], [17 - k]) for k in range(17)]
    yield case("loop-deep", "loops nest deeper than 16", insert(*nested))
    yield case(
        "raise-passed", "raise with a pass-through value", insert(*passed(), one("raise", [], [3], [0]), types="iI")
    )
    yield case("launch", "launch is not well-formed", insert(one("launch", [], [0], [0, 0, 2, 0])))
    yield case("launch-grid", "has type t, expected one of i", insert(one("launch", [], [0, 0], [0, 0, 1, 0])))
    yield case(
        "launch-mut", "is mut but has type i", insert(*passed()[:1], one("launch", [], [2], [0, 0, 1, 1]), types="i")
    )
    yield case("launch-least", "is at_least a value of type b", at_least, "Instructions")


def at_least(function: Function) -> None:
    function.registers += "b"
    function.code[1:1] = [*truth(), Instruction("launch", [], [2], [0, 1, 1, 1, 0])]


def written(function: Function) -> None:
    function.parameters, function.registers = [("x", True)], "it"


def truth() -> list[Instruction]:
    return [Instruction("const_bool", [2], [], [1])]


def passed() -> list[Instruction]:
    return [Instruction("const_int", [2], [], [1]), Instruction("defer_int", [3], [2])]


def plan_cases(plan: Plan) -> Iterator[Case]:
    yield from plan_bytes(plan)
    yield from plan_rules(plan)
    inner = Function(
        "inner", [("x", False)], "t", "tt", [Instruction("call", [1], [0], [0]), Instruction("ret", [], [1])]
    )
    made = copy.deepcopy(plan)
    made.functions += [copy.deepcopy(inner) for _ in range(16)]
    for index, function in enumerate(made.functions):
        function.code = [Instruction("call", [1], [0], [index + 1]), Instruction("ret", [], [1])]
    made.functions[-1].code = [Instruction("ret", [], [0])]
    yield "plan-calls-deep", "calls nest deeper than 16", "Well-formed plans", bytecode.encode(made)


def code_cases() -> Iterator[Case]:
    good = Image().bytes()
    for name, cause, data in [
        ("short", "it is too short for an ELF header", good[:63]),
        ("class", "it is not a 64-bit little-endian ELF file", good[:4] + b"\x01" + good[5:]),
        ("type", "it is not a shared object", Image(type=2).bytes()),
        ("needs", "it needs another library", Image(entries=[(1, 1)]).bytes()),
        ("relocations", "it has dynamic relocations", Image(entries=[(7, 0x1000)]).bytes()),
        ("initialiser", "it has code that runs when it is loaded or unloaded", Image(entries=[(12, 0x1000)]).bytes()),
        ("undefined", "symbol 'printf' is undefined", Image([(b"printf", 2, 0)]).bytes()),
        ("thread-local", "it has thread-local data", Image(headers=[(7, 4, 8)]).bytes()),
        ("interpreter", "it asks for an interpreter", Image(headers=[(3, 4, 8)]).bytes()),
        ("stack", "it asks for an executable stack", Image(headers=[(0x6474E551, 7, 0)]).bytes()),
        ("writable-code", "a segment is writable and executable", Image(code_flags=7).bytes()),
        ("writable-data", "it has writable data", Image(headers=[(1, 6, 8)]).bytes()),
        ("data-code", "function 'entry' is not in executable memory", Image(code_flags=4).bytes()),
        ("name-long", "a symbol's name is longer than 4096 bytes", Image([(b"n" * 4097, 2, 1)]).bytes()),
        ("run-time-symbol", "is thread-local or resolved at run time", Image([(b"entry", 10, 1)]).bytes()),
        ("large", "it is larger than the limit of 1073741824 bytes", large()),
        ("symbol", "'entry'", Image([(b"other", 2, 1)]).bytes()),
    ]:
        yield "code-" + name, cause, "Host objects", data


def large() -> bytes:
    """Returns an image with a segment of more memory than an image may take, and of no bytes in the file."""
    image = bytearray(Image(headers=[(1, 4, 8)]).bytes())
    struct.pack_into("<QQ", image, 64 + 3 * 56 + 32, 0, 2**30 + 1)
    return bytes(image)
