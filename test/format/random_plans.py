"""Draws well-formed plans with all instructions, whose results and messages show every value.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import random
import struct

from format_reader.bytecode import Function, Instruction, Plan
from format_reader.page import DTYPES, OPCODES

STRINGS = [b"plan", b"scale", b"T", b"n", b"{} {{}} {} }{ {", b"mean", b"none", b"\xc3\xa9" * 300, b"\xc3\xa9" * 300]
INTEGERS = [0, 1, -1, 2, -2, 3, 4, 7, 63, 64, 2**31, -(2**63), 2**63 - 1]
FLOATS = [0.0, -0.0, 1.0, -1.5, 0.1, 1e-5, 1e16, 123456.75, 1e300, float("inf"), float("-inf"), float("nan"), 2.5]
PARAMETERS = "tttiIfFbBldv"
# Functions of C's library that may differ by a bit between machines, so that no test compares their digits.
INEXACT = {"exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf", "pow_float"}
CONTROL = {"jump", "branch_unless", "loop_for", "loop_while", "break_unless", "loop_end", "call", "ret", "raise"}
PLAIN = [(n, s) for n, s in OPCODES.values() if n not in CONTROL | INEXACT | {"launch"}]


class Drawer:
    """Makes one function, in which every register is assigned once but for counters."""

    def __init__(self, draw: random.Random, parameters: str):
        self.draw, self.types = draw, parameters
        names = [(f"a{k}", letter in "tv" and draw.random() < 0.3) for k, letter in enumerate(parameters)]
        self.function = Function("plan", names, "", "")
        self.known = list(range(len(parameters)))  # registers that are assigned here

    def new(self, letter: str) -> int:
        self.types += letter
        return len(self.types) - 1

    def emit(self, name: str, results: list[int], operands: list[int], immediates: list[int]) -> None:
        self.function.code.append(Instruction(name, results, operands, immediates))
        self.known += results

    def integer(self, value: int) -> int:
        register = self.new("i")
        self.emit("const_int", [register], [], [value])
        return register

    def register(self, letter: str) -> int:
        """Returns a register of this type: a known one, else a constant."""
        known = [register for register in self.known if self.types[register] == letter]
        if known and self.draw.random() < 0.8:
            return self.draw.choice(known[-6:])
        constants = {"i": "const_int", "f": "const_float", "b": "const_bool", "d": "const_dtype", "s": "const_string"}
        if letter in constants:
            register = self.new(letter)
            self.emit(constants[letter], [register], [], [self.immediate("#~#D$"["ifbds".index(letter)])])
            return register
        if letter == "l":
            operands = [self.integer(self.draw.choice([1, 2, 3, 4, -1])) for _ in range(self.draw.randrange(4))]
            return self.make("list", letter, operands)
        if letter == "v":
            return self.make("tensors", letter, [self.register("t") for _ in range(self.draw.randrange(4))])
        if letter in "IFB":
            name = {"I": "defer_int", "F": "defer_float", "B": "defer_bool"}[letter]
            return self.make(name, letter, [self.register(letter.lower())])
        if known:
            return self.draw.choice(known)
        return self.make("empty", "t", [self.register("l"), self.register("d")])

    def make(self, name: str, letter: str, operands: list[int]) -> int:
        register = self.new(letter)
        self.emit(name, [register], operands, [])
        return register

    def immediate(self, sign: str) -> int:
        match sign:
            case "~":
                return struct.unpack("<q", struct.pack("<d", self.draw.choice(FLOATS)))[0]
            case "$":
                return self.draw.randrange(len(STRINGS))
            case "D":
                return self.draw.choice([0, *DTYPES])
            case "m":
                return self.draw.randrange(16)
        return self.draw.choice(INTEGERS[:7] if self.draw.random() < 0.8 else INTEGERS)

    def plain(self) -> None:
        """Adds an instruction, more often than not one of tensors."""
        group = [(n, s) for n, s in PLAIN if s.startswith("t:") or s.endswith("t")]
        name, signature = self.draw.choice(group if self.draw.random() < 0.5 else PLAIN)
        results, _, rest = signature.partition(":")
        operands, _, immediates = rest.partition(";")
        operands = operands[0] * self.draw.randrange(5) if operands.endswith("*") else operands
        same = self.draw.choice("ifbtldsv")
        taken = [self.register(same if letter == "T" else letter) for letter in operands]
        if name in ("transpose", "slice", "drop", "unsqueeze", "squeeze", "unfold", "fold", "dim", "stride"):
            # Small numbers, because most others are refused.
            taken[1:] = [self.integer(self.draw.choice([0, 1, -1, 2, 3])) for _ in taken[1:]]
        made = [self.new(same if letter == "T" else letter) for letter in results]
        self.emit(name, made, taken, [self.immediate(sign) for sign in immediates])

    def block(self, size: int) -> None:
        """Adds instructions whose registers are not known behind them."""
        before = list(self.known)
        for _ in range(size):
            self.plain()
        self.known = before

    def branch(self) -> None:
        condition = self.register("b")
        at = len(self.function.code)
        self.emit("branch_unless", [], [condition], [0])
        self.block(self.draw.randrange(1, 3))
        self.function.code[at].immediates = [len(self.function.code)]

    def loop(self) -> None:
        counter, bound, step = (self.integer(self.draw.choice(c)) for c in ([0, 1, 2**63 - 3], [3, 5], [1, 2]))
        total, at = self.integer(0), len(self.function.code)
        self.emit("loop_for", [], [counter, bound, step], [0])
        self.emit("add_int", [total], [total, counter], [])
        self.block(self.draw.randrange(2))
        self.emit("loop_end", [], [], [at])
        self.function.code[at].immediates = [len(self.function.code)]

    def wait(self) -> None:
        """Adds a loop that counts to a bound by itself."""
        count, one, bound, at = self.integer(0), self.integer(1), self.integer(3), len(self.function.code)
        self.emit("loop_while", [], [], [0])
        below = self.new("b")
        self.emit("cmp_int", [below], [count, bound], [4])
        self.emit("break_unless", [], [below], [])
        self.emit("add_int", [count], [count, one], [])
        self.emit("loop_end", [], [], [at])
        self.function.code[at].immediates = [len(self.function.code)]
        self.known.remove(below)

    def launch(self) -> None:
        params = [self.register(self.draw.choice("ibfds")) for _ in range(self.draw.randrange(3))]
        least = [int(self.types[p] == "i" and self.draw.random() < 0.3) for p in params]
        args = [self.register(self.draw.choice("ttttifbIFB")) for _ in range(self.draw.randrange(1, 4))]
        written = [int(self.types[a] == "t" and self.draw.random() < 0.4) for a in args]
        grid = [self.integer(self.draw.choice([1, 2, 5, 7, 0, -1])) for _ in range(self.draw.choice([0, 1, 1, 2, 3]))]
        pairs = [value for flag in least for value in (self.draw.choice([2, 3]), flag)]
        self.emit("launch", [], params + args + grid, [1, len(params), *pairs, len(args), *written])

    def finish(self, results: list[int]) -> Function:
        self.function.results = "".join(self.types[r] for r in results)
        self.emit("ret", [], results, [])
        self.function.registers = self.types
        return self.function


def random_plan(draw: random.Random) -> Plan:
    """Returns a plan that fails with all its values, or returns tensors, with a function that it may call."""
    main = Drawer(draw, "".join(draw.choice(PARAMETERS) for _ in range(draw.randrange(1, 5))))
    inner = Drawer(draw, "ti")
    for _ in range(draw.randrange(1, 4)):
        inner.plain()
    tensor, number = inner.register("t"), inner.register("i")
    functions = [inner.finish([tensor, number])]
    for _ in range(draw.randrange(2, 9)):
        draw.choice([main.plain] * 8 + [main.launch] * 3 + [main.branch, main.loop, main.wait])()
    if draw.random() < 0.3:
        operands = [main.register("t"), main.register("i")]
        main.emit("call", [main.new("t"), main.new("i")], operands, [1])
    if draw.random() < 0.3:
        shown = [register for register in main.known if main.types[register] not in "IFB"][-12:]
        text = len(STRINGS)
        main.emit("raise", [], shown, [text])
    results = [main.register("t") for _ in range(draw.randrange(3))]
    return Plan([*STRINGS, b"{} | " * 13], [main.finish(results), *functions])
