"""Prints a module with every example of the tile dialect's documentation, each in a kernel that gives it operands.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from op_examples import print_examples

PROLOGUE = """\
tile.kernel @example{number}(%x: !tile.view<2xf32>, %y: !tile.view<2xf32, mut>, %q: !tile.view<4xbf16, unit = 3>,
    %alpha: f32, %start: index, %r: index, %c: index, %batch: index, %head: index,
    %rows: index, %columns: index, %cond: i1) {{
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1 : i32
  %a = tile.splat %alpha : f32 -> tensor<4x8xf32>
  %e = tile.splat %alpha : f32 -> tensor<4x8xf32>
  %w = tile.splat %alpha : f32 -> tensor<8x16xf32>
  %acc = tile.splat %alpha : f32 -> tensor<4x16xf32>
  %row = tile.splat %alpha : f32 -> tensor<1x8xf32>
  %k = tile.splat %one : i32 -> tensor<4x8xi32>
  %i = tile.splat %r : index -> tensor<4x8xindex>
  %j = tile.splat %c : index -> tensor<4x8xindex>
  %mask = tile.splat %cond : i1 -> tensor<4x8xi1>
"""
#: Operands of one op's example, whose names other examples define.
OPERANDS = {"join": "  %b = tile.splat %alpha : f32 -> tensor<4x2xf32>\n"}


def kernel(op: str, file: str, number: int, example: str) -> str:
    if "tile.kernel" in example:
        return example
    end = "" if "tile.return" in example else "  tile.return\n"
    return PROLOGUE.format(number=number) + OPERANDS.get(op, "") + example + end + "}\n"


if __name__ == "__main__":
    sys.exit(print_examples("tile", Path(sys.argv[1]), 24, kernel))
