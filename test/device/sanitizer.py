"""Runs the ops of packages under NVIDIA's compute-sanitizer.

Runs memcheck, racecheck, initcheck and synccheck, each over small samples of every op.

    test/device/sanitizer.py --package softmax.kpkg --package norm.kpkg --out sanitizer.json

Needs compute-sanitizer of the CUDA toolkit on the PATH, PyTorch with CUDA and the Python package `kpkg`. Only kpkg's
kernels are checked. Each group of ops and each tool runs in a process of its own with a time limit. Results are not
compared here; run.py does that.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from run import find_specs, on_gpu

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
DTYPES = ("bfloat16", "float32")
ELEMENTS = 1 << 16  # largest tensor of an accepted sample: instrumented kernels are slow
SUMMARY = re.compile(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", action="append", required=True)
    parser.add_argument("--op", action="append", help="only this op; may be repeated")
    parser.add_argument("--tool", action="append", choices=TOOLS, help="only this tool; may be repeated")
    parser.add_argument("--samples", type=int, default=6, help="of each op and dtype")
    parser.add_argument("--group", type=int, default=8, help="ops in one process")
    parser.add_argument("--limit", type=float, default=240, help="seconds for one process")
    parser.add_argument("--jobs", type=int, default=8, help="processes at a time")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def small(sample: Any) -> bool:
    tensors: list[Any] = []
    sample.map(lambda tensor: tensors.append(tensor) or tensor)
    return all(tensor.numel() <= ELEMENTS for tensor in tensors)


def worker(options: argparse.Namespace) -> int:
    """Calls each op of the group with its first small samples."""
    os.environ["KPKG_FALLBACK"] = "strict"
    find_specs()
    import kpkg
    import opspec
    import torch

    libraries = [kpkg.load(package) for package in options.package]
    specs = {spec.name: spec for spec in opspec.load_specs()}
    calls = 0
    for name in options.worker.split(","):
        spec = specs[name]
        ops = [op for library in libraries if (op := getattr(library, spec.family, None)) is not None]
        if not ops:
            continue
        for dtype in (getattr(torch, dtype) for dtype in DTYPES):
            if dtype not in spec.dtypes:
                continue
            samples = (sample for sample in spec.samples(dtype, torch.Generator().manual_seed(1)) if small(sample))
            for _, sample in zip(range(options.samples), samples):
                moved = sample.map(on_gpu)
                ops[-1](*moved.args, **moved.kwargs)
                torch.cuda.synchronize()
                calls += 1
    print(json.dumps({"calls": calls}))
    return 0


def run(options: argparse.Namespace, tool: str, group: list[str]) -> dict[str, Any]:
    command = [
        "compute-sanitizer",
        "--tool",
        tool,
        "--print-limit",
        "20",
        "--kernel-regex",
        "kns=__",
        "--target-processes",
        "application-only",
    ]
    command += ["--racecheck-report", "all"] if tool == "racecheck" else []
    command += [sys.executable, __file__, *sys.argv[1:], "--worker", ",".join(group)]
    environment = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    line: dict[str, Any] = {"tool": tool, "ops": group}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit, env=environment)
    except subprocess.TimeoutExpired:
        return {**line, "failure": f"no answer within {options.limit} s"}
    found = SUMMARY.search(done.stdout)
    calls = re.search(r'\{"calls": (\d+)\}', done.stdout)
    if not found or not calls:
        return {**line, "failure": (done.stdout + done.stderr)[-800:]}
    errors = int(found.group(1) or found.group(2))
    line |= {"calls": int(calls.group(1)), "errors": errors}
    return {**line, "report": done.stdout[:4000]} if errors else line


def main() -> int:
    options = arguments()
    if options.worker:
        return worker(options)
    find_specs()
    import opspec

    names = [spec.name for spec in opspec.load_specs() if not options.op or spec.name in options.op]
    groups = [names[start : start + options.group] for start in range(0, len(names), options.group)]
    cases = [(tool, group) for tool in options.tool or TOOLS for group in groups]
    lines = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for line in pool.map(lambda case: run(options, *case), cases):
            lines.append(line)
            print(
                line["tool"],
                line["ops"][0],
                "...",
                line.get("failure") or f"{line['calls']} calls, {line['errors']} errors",
                flush=True,
            )
            if options.out:
                options.out.write_text(json.dumps(lines, indent=1) + "\n")
    return 1 if any(line.get("failure") or line["errors"] for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
