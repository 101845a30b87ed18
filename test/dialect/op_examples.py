"""Prints a module with every example of a dialect's documentation; each dialect's doc_examples.py gives them operands.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path


def print_examples(dialect: str, folder: Path, least: int, kernel: Callable[[str, str, int, str], str]) -> int:
    """Prints the examples of all files *Ops.td in `folder`, each in a kernel.

    Returns 1 if an op has no example, or if there are fewer than `least`. `kernel(op, file, number, example)` returns
    the kernel that contains the example.
    """
    missing = []
    number = 0
    for path in sorted(folder.glob("*Ops.td")):
        for record in re.split(r"\n(?=def |class )", path.read_text()):
            op = re.match(rf'def {dialect.capitalize()}_(\w+) : {dialect.capitalize()}_\w*Op<"(\w+)"', record)
            if not op:
                continue
            examples = re.findall(r"```mlir\n(.*?)```", record, re.S)
            if not examples or f"{dialect}.{op[2]}" not in examples[0]:
                missing.append(op[2])
            for example in examples:
                number += 1
                print(kernel(op[2], path.name, number, example) + "\n// -----")
    if missing:
        print(f"no example: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing or number < least else 0
