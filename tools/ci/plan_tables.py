"""Makes the tables of docs/package-format.md about plans from the runtime's sources: opcodes, dtypes, limits.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re
from pathlib import Path

OPCODES = "runtime/plan/Opcodes.def"
DTYPES = "runtime/include/kpkg/dtypes.def"
# Each limit's meaning, the file that declares it, and its name there. Limits of bytes come first.
LIMITS = [
    ("bytes of a plan", "runtime/plan/Limits.h", "bytes"),
    ("strings", "runtime/plan/Limits.h", "strings"),
    ("bytes of a string", "runtime/plan/Limits.h", "stringBytes"),
    ("functions", "runtime/plan/Limits.h", "functions"),
    ("parameters of a function", "runtime/plan/Limits.h", "parameters"),
    ("results of a function", "runtime/plan/Limits.h", "results"),
    ("registers of a function", "runtime/plan/Limits.h", "registers"),
    ("instructions of a function", "runtime/plan/Limits.h", "instructions"),
    ("operands of an instruction, and immediates three times as many and 3", "runtime/plan/Limits.h", "operands"),
    ("loops in one another", "runtime/plan/Limits.h", "loopDepth"),
    ("functions that call one another", "runtime/plan/Limits.h", "callDepth"),
    ("steps", "runtime/plan/Interpreter.cpp", "maxSteps"),
    ("dimensions of a tensor", "runtime/plan/Evaluate.h", "maxRank"),
    ("entries of a list", "runtime/plan/Evaluate.h", "maxList"),
    ("entries of all lists that are made", "runtime/plan/Interpreter.cpp", "maxPool"),
    ("length of a list of tensors", "runtime/plan/Evaluate.h", "maxTensorList"),
    ("lists of tensors", "runtime/plan/Interpreter.cpp", "maxTensorLists"),
    ("tensors, arguments and views counted", "runtime/plan/Memory.cpp", "maxTensors"),
    ("launches and copies", "runtime/plan/Memory.cpp", "maxSteps"),
    ("parameters and arguments of all launches", "runtime/plan/Memory.cpp", "maxLaunchArgs"),
    ("pairs of arguments whose memory is compared", "runtime/plan/Memory.cpp", "maxOverlapChecks"),
    ("copies of copies", "runtime/plan/Memory.cpp", "maxCopyChain"),
]


def constant(text: str, name: str) -> int:
    """Returns the number that a C++ source gives a constant: digits, maybe shifted."""
    found = re.search(rf"\b{name} = (\d+)u?(?: << (\d+))?[,;]", text)
    assert found, name
    return int(found[1]) << int(found[2] or 0)


def spelled(value: int) -> str:
    """Returns 4096 as "4096", and 1 << 20 as "2^20"."""
    return f"2^{value.bit_length() - 1}" if value > 1 << 12 and value & (value - 1) == 0 else str(value)


def limits_table(root: Path) -> str:
    """Returns the table of limits of bytes and evaluations."""
    rows = [f"| {meaning} | {spelled(constant((root / file).read_text(), name))} |" for meaning, file, name in LIMITS]
    return "\n".join(["| limit | most |", "|---|---|", *rows])


def opcodes_table(root: Path) -> str:
    """Returns the table of instructions, whose meanings are the comments of their macros."""
    text = (root / OPCODES).read_text()
    macro = r'^KPKG_OPCODE\((\w+), (\d+), "([^"]*)"\)((?:\s*[ ]// .*)*)$'
    rows = []
    for name, number, signature, comment in re.findall(macro, text, re.M):
        meaning = " ".join(part.strip() for part in comment.split("//")[1:])
        kind = "its own" if signature == "!" else f"`{signature}`"
        rows.append(f"| {number} | `{name}` | {kind} | {meaning} |")
    assert len(rows) == text.count("\nKPKG_OPCODE(")
    return "\n".join(["| number | instruction | signature | result or effect |", "|---|---|---|---|", *rows])


def dtypes_table(root: Path) -> str:
    """Returns the table of dtypes: number, name, bits, kind."""
    row = r"^KPKG_DTYPE_ROW\(\w+, \w+, (\w+), (\d+), (\d+), (\w+),"
    rows = re.findall(row, (root / DTYPES).read_text(), re.M)
    lines = [f"| {number} | `{name}` | {bits} | {kind} |" for name, number, bits, kind in rows]
    return "\n".join(["| number | dtype | bits | kind |", "|---|---|---|---|", *lines])


TABLES = {"plan_limits": limits_table, "opcodes": opcodes_table, "dtypes": dtypes_table}
SOURCES = [OPCODES, DTYPES, *dict.fromkeys(file for _, file, _ in LIMITS)]
