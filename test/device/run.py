"""Runs the specs of kernels_src on a GPU.

Uses fresh random inputs, odd shapes and strides and poisoned outputs; two runs must be bitwise equal.

    test/device/run.py --package softmax.kpkg --package norm.kpkg --out device.json

Needs PyTorch with CUDA and the Python package `kpkg`; compiles nothing. Each op and dtype runs in a process of its own
with a time limit.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", action="append", required=True)
    parser.add_argument("--op", action="append", help="only this op; may be repeated")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one op and dtype")
    parser.add_argument("--jobs", type=int, default=4, help="processes at a time")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def find_specs() -> None:
    """Lets specs import each other. Scripts of this folder have names of families, such as moe, so it must not be
    searched."""
    sys.path[0] = str(ROOT / "kernels_src")


def poisoned(result: Any) -> Any:
    import torch

    return torch.full_like(result, float("nan") if result.is_floating_point() else 77)


def comparable(result: Any) -> Any:
    """Replaces NaN, which equals nothing, by a number. PyTorch has no nan_to_num for 8-bit floats."""
    wide = result.float() if result.is_floating_point() and result.itemsize == 1 else result
    return wide.nan_to_num(nan=12345.0)


def check_sample(spec: Any, op: Any, original: Any) -> str | None:
    """Checks the op's results for the sample on a GPU; returns an error text or None. The reference runs on the CPU."""
    import torch
    from opspec import as_tuple

    sample = original.map(on_gpu)
    first = as_tuple(op(*sample.args, **sample.kwargs))
    try:
        spec.check(original, tuple(result.cpu() for result in first), gpu=True)
    except AssertionError as error:
        return str(error)
    outs = tuple(poisoned(result) for result in first)
    op.out(*sample.args, **sample.kwargs, out=outs[0] if len(outs) == 1 else outs)
    if not sample.kwargs.get("deterministic", spec.ordered):
        try:
            spec.check(original, tuple(again.cpu() for again in outs), gpu=True)
        except AssertionError as error:
            return f"{error}, in a second run into poisoned memory"
        return None
    for again, result in zip(outs, first):
        if not torch.equal(comparable(again), comparable(result)):
            return f"{spec.name} {sample.label}: a second run into poisoned memory differs"
    return None


def worker(options: argparse.Namespace) -> int:
    os.environ["KPKG_FALLBACK"] = "strict"
    find_specs()
    import kpkg
    import opspec
    import torch

    # References of many small steps crawl where the threads of all processes wait for each other.
    torch.set_num_threads(max((os.cpu_count() or 1) // options.jobs, 1))
    name, dtype_name = options.worker.split("|")
    dtype = getattr(torch, dtype_name)
    spec = next(spec for spec in opspec.load_specs() if spec.name == name)
    op = next(op for package in options.package for op in kpkg.load(package) if op.name == name)
    seed = random.randrange(1 << 31)
    passed, failures = 0, []
    for sample in spec.samples(dtype, torch.Generator().manual_seed(seed)):
        try:
            failure = check_sample(spec, op, sample)
        except Exception as error:  # any failure becomes a line of the report
            failure = f"{sample.label}: {type(error).__name__}: {str(error)[:300]}"
        if failure:
            failures.append(failure)
        else:
            passed += 1
        print(json.dumps({"at": sample.label}), flush=True)
    print(
        json.dumps({"op": name, "dtype": dtype_name, "seed": seed, "passed": passed, "failures": failures}), flush=True
    )
    return 0


def on_gpu(tensor: Any) -> Any:
    """Copies the tensor to the GPU with its strides and storage offset."""
    import torch

    storage = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage()).to("cuda")
    return torch.as_strided(storage, tensor.size(), tensor.stride(), tensor.storage_offset())


def main() -> int:
    options = arguments()
    if options.worker:
        return worker(options)
    find_specs()
    import kpkg
    import opspec

    packaged = {op.name for package in options.package for op in kpkg.load(package)}
    cases = [
        (spec.name, str(dtype).removeprefix("torch."))
        for spec in opspec.load_specs()
        for dtype in spec.dtypes
        if spec.name in packaged and (not options.op or spec.name in options.op)
    ]
    lines = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(lambda case: result_of(options, *case), cases):
            lines.append(result)
            print(
                f"{result['op']:28} {result['dtype']:10} {result['passed']:4} passed  {len(result['failures'])} failed",
                flush=True,
            )
            for failure in result["failures"][:4]:
                print("   ", failure, flush=True)
            if options.out:
                options.out.write_text(json.dumps(lines, indent=1) + "\n")
    return 1 if any(line["failures"] for line in lines) else 0


def result_of(options: argparse.Namespace, op: str, dtype: str) -> dict[str, Any]:
    """Runs one op and dtype in a process of its own and returns its findings."""
    command = [sys.executable, __file__, *sys.argv[1:], "--worker", f"{op}|{dtype}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit)
        output, trouble = done.stdout, done.stderr[-600:] if done.returncode else ""
    except subprocess.TimeoutExpired as expired:
        output, trouble = (expired.stdout or b"").decode(), f"no answer within {options.limit} s"
    found = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    result = next((line for line in found if "op" in line), {"op": op, "dtype": dtype, "passed": 0, "failures": []})
    if trouble:
        result["failures"] = [*result.get("failures", []), f"{trouble} (last sample: {found[-1] if found else None})"]
    return result


if __name__ == "__main__":
    sys.exit(main())
