"""Checks parts of tiles and joined tiles against PyTorch, on a GPU or on the CPU.

    test/device/parts.py --kpkg build/bin/kpkg --target sm_90a --device cuda --out parts.json

Writes a module with one op for each form and shape, builds it, and compares all results bit by bit. Elements outside of
the results are poisoned before a call and must stay. Tiles reach beyond the inputs, so that parts have padding. Each
form is checked on a tile that is only loaded and stored, on a computed one, and in a loop. Needs PyTorch and the Python
package `kpkg`. Exits 1 if a result differs.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

FILL = 5
POISON = 77
BLOCKS = 3
DTYPES = ("float32", "float16", "int8", "int64", "float64", "bfloat16")
SHAPES = ((4, 8), (8, 64), (6, 10), (1, 256), (16, 33), (32, 128), (64, 64), (2, 1024))


@dataclass(frozen=True)
class Form:
    """An expression of a tile `v` of R x C elements, and the same for a tensor. `least` is the smallest shape."""

    kernel: str
    torch: Callable[[torch.Tensor], torch.Tensor]
    least: tuple[int, int] = (1, 2)


FORMS = {
    "even": Form("v[..., 0::2]", lambda v: v[..., 0::2]),
    "odd": Form("v[:, 1::2]", lambda v: v[:, 1::2]),
    "third": Form("v[1::3, 1:]", lambda v: v[1::3, 1:], (2, 2)),
    "column": Form("v[:, 1].reshape(1, R)", lambda v: v[:, 1].reshape(1, -1)),
    "row": Form("v[-1].reshape(1, C)", lambda v: v[-1].reshape(1, -1)),
    "left": Form("v[:, : C // 2]", lambda v: v[:, : v.shape[1] // 2]),
    "inner": Form("v[1 : R - 1, 2 : C - 1]", lambda v: v[1:-1, 2:-1], (3, 4)),
    "flip_columns": Form("flip(v, 1)", lambda v: v.flip(1)),
    "flip_rows": Form("flip(v, axis=0)", lambda v: v.flip(0)),
    "backwards": Form("v[:, ::-2]", lambda v: v.flip(1)[:, ::2]),
    "roll_columns": Form("roll(v, 3, axis=1)", lambda v: v.roll(3, 1)),
    "roll_rows": Form("roll(v, -1, 0)", lambda v: v.roll(-1, 0)),
    "concat_columns": Form("concat(v[:, C // 2 :], v, axis=1)", lambda v: torch.cat([v[:, v.shape[1] // 2 :], v], 1)),
    "concat_rows": Form("concat(v, flip(v, 1), axis=0)", lambda v: torch.cat([v, v.flip(1)])),
    "concat_three": Form("concat(v, v, v[:, 0:1], axis=1)", lambda v: torch.cat([v, v, v[:, 0:1]], 1)),
    "swap_halves": Form(
        "concat(v[:, C // 2 :], v[:, : C // 2], axis=1)",
        lambda v: torch.cat([v[:, v.shape[1] // 2 :], v[:, : v.shape[1] // 2]], 1),
    ),
    "pairs": Form(
        "stack(v[:, 1::2], v[:, 0 : C - C % 2 : 2], axis=-1).reshape(R, C - C % 2)",
        lambda v: torch.stack([v[:, 1::2], v[:, 0 : v.shape[1] // 2 * 2 : 2]], -1).reshape(v.shape[0], -1),
    ),
    "stack_first": Form("stack(v, flip(v, 0), axis=0).reshape(2 * R, C)", lambda v: torch.cat([v, v.flip(0)])),
    "stack_middle": Form(
        "stack(v, flip(v, 0), axis=1)[:, 1]",
        lambda v: v.flip(0),
    ),
    "split_rows": Form(
        "concat(split(v[: R - R % 2], 2, axis=0), axis=1)",
        lambda v: torch.cat(v[: v.shape[0] // 2 * 2].chunk(2), 1),
        (2, 2),
    ),
    "transposed": Form("v.T[1::2]", lambda v: v.T[1::2]),
    "sums": Form("v[:, 0::2].max(axis=1)", lambda v: v[:, 0::2].amax(1, keepdim=True)),
}

WAYS = {
    # The tile is only loaded and stored.
    "loaded": ("", "{form}"),
    # Arithmetic stands before and behind, and another op reads the whole tile.
    "computed": ("    v = v + v\n", "({form}) - full[T](1, {rows}, {columns})"),
    # A loop carries the tile, so that its layout is fixed.
    "carried": ("    for i in range(2):\n        v = v + v\n", "{form}"),
}


def result_shape(form: Form, shape: tuple[int, int]) -> tuple[int, int]:
    rows, columns = form.torch(torch.zeros(shape)).shape
    return rows, columns


def cases(shapes: tuple[tuple[int, int], ...]) -> list[tuple[str, str, tuple[int, int]]]:
    """Returns the form, the way and the shape of each case."""
    return [
        (name, way, shape)
        for name, form in FORMS.items()
        for way in WAYS
        for shape in shapes
        if shape[0] >= form.least[0] and shape[1] >= form.least[1]
    ]


def op_name(name: str, way: str, shape: tuple[int, int]) -> str:
    return f"{name}_{way}_{shape[0]}x{shape[1]}"


def source(shapes: tuple[tuple[int, int], ...], dtypes: tuple[str, ...]) -> str:
    """Returns a module with an op for each case."""
    text = ""
    for name, way, shape in cases(shapes):
        rows, columns = result_shape(FORMS[name], shape)
        before, value = WAYS[way]
        expression = value.format(form=FORMS[name].kernel, rows=rows, columns=columns)
        op = op_name(name, way, shape)
        text += f"""
@kernel
@specialize(T=[{", ".join(dtypes)}], R=[{shape[0]}], C=[{shape[1]}])
def {op}_tiles[T: DType, R: Int, C: Int](x: Tensor[T, 3], mut y: Tensor[T, 3]):
    var v = x[block_idx.x].tile[R, C](0, 0).load(fill={FILL})
{before}    y[block_idx.x].tile[{rows}, {columns}](0, 0).store({expression})


@register.op("parts::{op}")
def {op}(mut y: Tensor, x: Tensor):
    launch {op}_tiles[T=x.dtype, R={shape[0]}, C={shape[1]}](x, y, grid=x.shape[0])

"""
    return text


def expected(name: str, way: str, tile: torch.Tensor) -> torch.Tensor:
    if way == "computed":
        tile = tile + tile
    if way == "carried":
        tile = tile * 4
    result = FORMS[name].torch(tile)
    return result - 1 if way == "computed" else result


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the elements as integers, so that zeros of both signs differ."""
    integers = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.contiguous().view(integers[tensor.element_size()])


def is_right(ops: Any, name: str, way: str, shape: tuple[int, int], dtype: str, device: str) -> bool:
    rows, columns = shape
    element = getattr(torch, dtype)
    generator = torch.Generator().manual_seed(rows * columns)
    x = torch.randint(-6, 7, (BLOCKS, max(1, rows - 1), columns - 1), generator=generator).to(element)
    if element.is_floating_point:
        x = torch.where(x == 3, -torch.zeros((), dtype=element), x)
    padded = torch.full((BLOCKS, rows, columns), FILL, dtype=element)
    padded[:, : x.shape[1], : x.shape[2]] = x
    results = [expected(name, way, tile) for tile in padded]
    wanted = torch.full((BLOCKS, results[0].shape[0] + 1, results[0].shape[1] + 3), POISON, dtype=element)
    wanted[:, :-1, :-3] = torch.stack(results)
    y = torch.full_like(wanted, POISON, device=device)
    # The tile of the result ends where its margin of poison begins.
    getattr(ops, op_name(name, way, shape))(y[:, :-1, :-3], x.to(device))
    return torch.equal(bits(y.cpu()), bits(wanted))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kpkg", type=Path, required=True, help="the command")
    parser.add_argument("--target", default="native", help="as for kpkg build")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", action="append", choices=DTYPES, help="only this dtype; may be repeated")
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="so many of the shapes")
    parser.add_argument("--jobs", type=int, default=16, help="threads of the build")
    parser.add_argument("--folder", type=Path, default=Path("parts"), help="for the module and its package")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    dtypes, shapes = tuple(options.dtype or DTYPES), SHAPES[: options.shapes]
    options.folder.mkdir(parents=True, exist_ok=True)
    module, package = options.folder / "parts.k", options.folder / "parts.kpkg"
    module.write_text(source(shapes, dtypes))
    command = [str(options.kpkg), "build", str(module), "-o", str(package), "--target", options.target]
    subprocess.run([*command, f"-j{options.jobs}"], check=True)
    import kpkg

    ops = kpkg.load(package)
    wrong, count = [], 0
    for name, way, shape in cases(shapes):
        for dtype in dtypes:
            count += 1
            if not is_right(ops, name, way, shape, dtype, options.device):
                wrong.append(f"{op_name(name, way, shape)} {dtype}")
    report = {"device": options.device, "cases": count, "wrong": wrong}
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"{count} cases, {len(wrong)} wrong", *wrong[:40], sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
