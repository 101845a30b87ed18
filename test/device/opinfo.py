"""Runs PyTorch's OpInfo samples of every op that kpkg covers on a GPU.

Compares results with PyTorch's op in float64, and checks that error inputs are refused.

    test/device/opinfo.py --packages build/packages --out opinfo.json

`--packages` is the folder with softmax.kpkg, norm.kpkg, ... Needs PyTorch with CUDA and the Python package `kpkg`;
compiles nothing. Each op runs in a process of its own with a time limit. `--device cpu` tries the script itself on a
machine without a GPU.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "kernels_src"), str(ROOT / "test" / "python")]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", type=Path, required=True)
    parser.add_argument("--op", action="append", help="only this op, by PyTorch's name; may be repeated")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one op")
    parser.add_argument("--jobs", type=int, default=8, help="processes at a time")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def worker(name: str, device: str) -> None:
    from opinfo import samples

    passed, unsupported, failures = 0, {}, []
    for dtype in samples.DTYPES:
        counts = samples.run(name, dtype, device)
        passed += counts.passed
        unsupported.update(counts.unsupported)
        failures += [f"{dtype} {failure}" for failure in counts.failures]
    failures += [f"not refused: {call}" for call in samples.accepted_errors(name, device)]
    print(json.dumps({"op": name, "passed": passed, "unsupported": unsupported, "failures": failures}))


def result_of(options: argparse.Namespace, name: str) -> dict[str, Any]:
    """Runs one op in a process of its own and returns its findings."""
    environment = os.environ | {"KPKG_ADAPTER_PACKAGES": str(options.packages.resolve()), "KPKG_FALLBACK": "strict"}
    command = [sys.executable, __file__, *sys.argv[1:], "--worker", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit, env=environment)
    except subprocess.TimeoutExpired:
        return {"op": name, "passed": 0, "unsupported": {}, "failures": [f"no answer within {options.limit} s"]}
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return found[-1] if found else {"op": name, "passed": 0, "unsupported": {}, "failures": [done.stderr[-600:]]}


def main() -> int:
    options = arguments()
    if options.worker:
        worker(options.worker, options.device)
        return 0
    import torch
    from opinfo.cases import CASES

    names = options.op or list(CASES)
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda name: result_of(options, name), names))
    for result in results:
        print(f"{result['op']:30} {result['passed']:5} passed  {len(result['failures'])} failed", flush=True)
        for failure in result["failures"][:4]:
            print("   ", failure[:400], flush=True)
    device = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    options.out.write_text(json.dumps({"device": device, "torch": torch.__version__, "ops": results}, indent=1) + "\n")
    return 1 if any(result["failures"] or not result["passed"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
