"""Runs the random kernels of a folder (kpkg-random-kernels --torch) with PyTorch and compares with the interpreter.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import itertools
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import tile_on_torch
import torch
from tile_on_torch import DTYPES, View


def buffer(data: bytes, start: int, count: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.frombuffer(bytearray(data[start : start + count * dtype.itemsize]), dtype=dtype)


def difference(name: str, have: torch.Tensor, want: torch.Tensor, allowed: np.ndarray) -> str | None:
    """Returns the first element whose distance from the interpreter's exceeds the tolerance.

    Zeros of both signs are equal.
    """
    if not have.is_floating_point() and have.dtype != torch.bool:
        wrong = (have != want).numpy() & (allowed == 0)
    else:
        a, b = have.double().numpy(), want.double().numpy()
        equal = (a == b) | (np.isnan(a) & np.isnan(b))
        wrong = ~equal & ~(np.abs(a - b) <= allowed) & ~np.isinf(allowed)
    if not wrong.any():
        return None
    i = int(wrong.argmax())
    return (
        f"{name}, element {i}: {have[i].item()} in PyTorch, {want[i].item()} in the interpreter, {allowed[i]} allowed"
    )


def run_call(function, call: dict, data: bytes) -> str | None:
    arguments = []
    for argument in call["arguments"]:
        dtype = DTYPES[argument["dtype"]]
        if "value" in argument:
            arguments.append(torch.tensor(argument["value"], dtype=dtype))
        else:
            memory = buffer(data, argument["initial"], argument["count"], dtype)
            arguments.append(View(memory, argument["offset"], argument["shape"], argument["strides"]))
    grid = call["grid"]
    for z, y, x in itertools.product(*(range(n) for n in reversed(grid))):
        function((x, y, z), grid, *arguments)
    for index, argument in enumerate(call["arguments"]):
        if "value" in argument:
            continue
        want = buffer(data, argument["expected"], argument["count"], DTYPES[argument["dtype"]])
        start = argument["allowed"]
        allowed = np.frombuffer(data[start : start + 8 * argument["count"]], dtype=np.float64)
        if found := difference(f"argument {index}", arguments[index].buffer, want, allowed):
            return found
    return None


def main() -> int:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    torch.set_num_threads(1)
    count, failures = 0, []
    for path in sorted(Path(sys.argv[1]).glob("*.json")):
        functions = vars(tile_on_torch).copy()
        exec(compile(path.with_suffix(".py").read_text(), str(path.with_suffix(".py")), "exec"), functions)
        data = path.with_suffix(".bin").read_bytes()
        for call in json.loads(path.read_text()):
            count += 1
            try:
                found = run_call(functions[call["symbol"]], call, data)
            except Exception as error:  # an error in an op of this file is a failure too
                found = f"{type(error).__name__}: {error}"
            if found:
                failures.append(f"{call['symbol']}: {found}")
    print(*failures, sep="\n")
    print(f"{count} kernels, {len(failures)} differ")
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main())
