"""Prints a module with every example of the tile dialect's documentation, each in a kernel that gives it operands.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import re
import sys
from pathlib import Path

PROLOGUE = """\
tile.kernel @example{number}(%x: !tile.view<2xf32>, %y: !tile.view<2xf32, mut>, %q: !tile.view<4xbf16, unit = 3>,
    %alpha: f32, %start: index, %r: index, %c: index, %batch: index, %head: index, %rows: index, %columns: index, %cond: i1) {{
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1 : i32
  %a = tile.splat %alpha : f32 -> tensor<4x8xf32>
  %w = tile.splat %alpha : f32 -> tensor<8x16xf32>
  %acc = tile.splat %alpha : f32 -> tensor<4x16xf32>
  %row = tile.splat %alpha : f32 -> tensor<1x8xf32>
  %k = tile.splat %one : i32 -> tensor<4x8xi32>
  %i = tile.splat %r : index -> tensor<4x8xindex>
  %j = tile.splat %c : index -> tensor<4x8xindex>
  %mask = tile.splat %cond : i1 -> tensor<4x8xi1>
"""


def main() -> int:
    missing = []
    number = 0
    for path in sorted(Path(sys.argv[1]).glob("*Ops.td")):
        for record in re.split(r"\n(?=def |class )", path.read_text()):
            op = re.match(r'def Tile_(\w+) : Tile_\w*Op<"(\w+)"', record)
            if not op:
                continue
            examples = re.findall(r"```mlir\n(.*?)```", record, re.S)
            if not examples or f"tile.{op[2]}" not in examples[0]:
                missing.append(op[2])
            for example in examples:
                number += 1
                if "tile.kernel" not in example:
                    end = "" if "tile.return" in example else "  tile.return\n"
                    example = PROLOGUE.format(number=number) + example + end + "}\n"
                print(example)
                print("// -----")
    if missing:
        print(f"no example: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing or number < 24 else 0


if __name__ == "__main__":
    sys.exit(main())
