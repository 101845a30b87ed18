"""Scaffolds what a contributor adds most often: `tools/dev new op NAME`, `tools/dev new pass FOLDER NAME`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

OP_SOURCE = '''"""Say in one sentence what NAME computes."""


@kernel
@specialize(T=[float32, float64, float16, bfloat16])
fn NAME_blocks[T: DType](x: Tensor[T, 1], mut y: Tensor[T, 1]):
    """One block computes 4096 neighbouring elements."""
    comptime N = 4096
    var i = block_idx.x
    y.tile[N](i).store(x.tile[N](i).load())


@register.op("kpkg::NAME")
fn NAME(input: Tensor) raises -> Tensor:
    """What comes out, with shape and dtype."""
    var out = empty_like(input)
    var n = input.numel()
    launch NAME_blocks[T=input.dtype](input.reshape(n), out.reshape(n), grid=ceildiv(n, 4096))
    return out
'''

PASS_SOURCE = """// Say in one sentence what the pass does.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before:
//   ...
// After:
//   ...
//
// On entry: ...
// On exit: ...
#include "FOLDER/Passes.h"

namespace kpkg::DIALECT {
#define GEN_PASS_DEF_UPPER
#include "FOLDER/Passes.h.inc"

namespace {
struct NAME final : impl::NAMEBase<NAME> {
  void runOnOperation() override {}
};
} // namespace
} // namespace kpkg::DIALECT
"""

PASS_RECORD = """
def NAME : Pass<"FLAG"> {
  let summary = "Say in one line what it does";
}
"""

PASS_TEST = """// RUN: kpkg-opt --FLAG %s | FileCheck %s

// CHECK-LABEL: case_named_for_what_it_shows
"""


def write_new(path: Path, text: str) -> None:
    if path.exists():
        sys.exit(f"{path.relative_to(ROOT)} exists already")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    print(f"wrote {path.relative_to(ROOT)}")


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)
    print(f"extended {path.relative_to(ROOT)}")


def kebab(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def new_op(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        sys.exit(f"an op's name is lower case with underscores, got {name}")
    write_new(ROOT / "kernels_src" / name / f"{name}.k", OP_SOURCE.replace("NAME", name))
    print(f"next: kernels_src/{name}/spec.py, after the pattern of kernels_src/softmax/spec.py")


def new_pass(folder: str, name: str) -> None:
    """`folder` is that of the passes, such as dialect/tile/transforms; `name` is CamelCase."""
    if not (ROOT / folder / "Passes.td").exists():
        sys.exit(f"{folder} has no Passes.td")
    dialect = folder.split("/")[1]
    flag = f"{dialect}-{kebab(name)}"
    fill = {"FOLDER": folder, "DIALECT": dialect, "FLAG": flag, "UPPER": name.upper(), "NAME": name}

    def filled(text: str) -> str:
        for key, value in fill.items():
            text = text.replace(key, value)
        return text

    write_new(ROOT / folder / f"{name}.cpp", filled(PASS_SOURCE))
    append(ROOT / folder / "Passes.td", filled(PASS_RECORD))
    write_new(ROOT / "test" / "dialect" / dialect / f"{kebab(name)}.mlir", filled(PASS_TEST))
    print(f"next: add {name}.cpp to {folder}/CMakeLists.txt")


def main() -> None:
    match sys.argv[1:]:
        case ["op", name]:
            new_op(name)
        case ["pass", folder, name]:
            new_pass(folder, name)
        case _:
            sys.exit("usage: tools/dev new op NAME | tools/dev new pass FOLDER NAME")


if __name__ == "__main__":
    main()
