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
THREADS = """\
tile.kernel @thread{number}(%x: !tile.view<2xf32>, %value: f32, %distance: i32, %condition: i1, %rank: index,
    %i: index, %j: index, %k: index) attributes {{tile.threads = array<i64: 64, 1, 1>}} {{
  %memory = tile.scratch [64] : !tile.view<1xf32, mut, unit = 0, align = 16, index = 32>
  %m = tile.scratch [64] : !tile.view<1xf32, mut>
  %element = tile.drop %m [0] at (%k) : !tile.view<1xf32, mut> -> !tile.view<0xf32, mut>
"""
#: The parts of a product's operands.
FRAGMENTS = "".join(f"  %{name} = arith.constant 1.0 : f32\n" for name in "a0 a1 a2 a3 b0 b1 c0 c1 c2 c3".split())
#: Operands of one op's example, whose names other examples define.
OPERANDS = {"join": "  %b = tile.splat %alpha : f32 -> tensor<4x2xf32>\n"}


def kernel(op: str, file: str, number: int, example: str) -> str:
    if "tile.kernel" in example:
        return example
    end = "" if "tile.return" in example else "  tile.return\n"
    if file == "ThreadOps.td":
        return THREADS.format(number=number) + (FRAGMENTS if op == "thread_mma" else "") + example + end + "}\n"
    return PROLOGUE.format(number=number) + OPERANDS.get(op, "") + example + end + "}\n"


if __name__ == "__main__":
    sys.exit(print_examples("tile", Path(sys.argv[1]), 24, kernel))
