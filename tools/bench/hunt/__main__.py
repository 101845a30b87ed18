"""Hunts for slow and wrong calls: draws calls of all ops from a seed and runs kpkg beside PyTorch.

    tools/bench/hunt --packages build/h200 --seconds 600 --state hunt.jsonl --out bench/results/gpu-hunt.json
    tools/bench/hunt --packages build/packages --device cpu --count 500 --state hunt.jsonl --out hunt.json
    tools/bench/hunt --packages build/h200 --call '{"op": "softmax", "args": [...]}'
    tools/bench/hunt --page

Each call is checked against float64, then timed with a cold L2 cache. A ratio is the time of the best peer (eager
PyTorch, with --compile also torch.compile) divided by kpkg's. Calls that only a fallback runs are counted and have no
ratio. The state file has a line for each call; a run continues after its last line.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "expected-speed.md"
#: Maximum of elements of a drawn tensor.
MOST = {"cuda": 1 << 26, "cpu": 1 << 21}


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/bench/hunt", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--packages", type=Path, help="folder with .kpkg files")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--seed", type=int, help="default: a new one, which the result names")
    parser.add_argument("--first", type=int, default=0, help="number of the first call")
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--family", action="append", help="only this family; may be repeated")
    parser.add_argument("--compile", type=int, default=0, metavar="N", help="torch.compile every N-th call too")
    parser.add_argument("--state", type=Path, help="file with a line for each call that has run")
    parser.add_argument("--out", type=Path, help="the result file")
    parser.add_argument("--call", help="run this one call, as a result file has it")
    parser.add_argument("--page", action="store_true", help="write docs/expected-speed.md from the result files")
    options = parser.parse_args()
    if not options.page and options.packages is None:
        parser.error("--packages is needed")
    return options


def write_page() -> int:
    import report

    results = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*-hunt*.json"))]
    PAGE.write_text(report.page(results))
    return 0


def facts(options: argparse.Namespace) -> dict[str, Any]:
    """Returns date, machine and versions."""
    import datetime

    import cpu_random
    import gpu
    import torch

    if options.device == "cuda":
        return gpu.device_facts()
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": cpu_random.processor(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def ops_of(packages: Path) -> Callable[[str], Any]:
    """Returns a function that finds an op of the packages by its name."""
    import kpkg

    libraries = [kpkg.load(path) for path in sorted(packages.glob("*.kpkg"))]
    return {op.name.split("::")[-1]: op for library in libraries for op in library}.get


def past(state: Path | None) -> list[dict[str, Any]]:
    if state is None or not state.exists():
        return []
    return [json.loads(line) for line in state.read_text().splitlines()]


def hunt(options: argparse.Namespace) -> list[dict[str, Any]]:
    import torch
    from draw import draw_call
    from measure import Clock, kernels_of, measure
    from report import worst

    find, clock = ops_of(options.packages), Clock(options.device, 0.03 if options.device == "cuda" else 0.05)
    done = past(options.state)
    start, first = time.monotonic(), done[-1]["number"] + 1 if done else options.first
    for number in range(first, options.first + options.count):
        if time.monotonic() - start > options.seconds:
            break
        family, call = draw_call(options.seed, number, MOST[options.device], options.family)
        row: dict[str, Any] = {"number": number, "seed": options.seed, "family": family, "call": call}
        if (op := find(call["op"])) is None:
            row["left_out"] = "no package has this op"
        else:
            try:
                row |= measure(op, call, clock, number, options.compile > 0 and number % options.compile == 0)
            except torch.OutOfMemoryError as error:
                row["left_out"] = str(error)[:200]
        done.append(row)
        if options.state:
            with options.state.open("a") as lines:
                lines.write(json.dumps(row) + "\n")
        if options.device == "cuda" and number % 50 == 0:
            torch.cuda.empty_cache()
    for row in worst(done):
        if "ratio" in row and "kernels" not in row:
            row["kernels"] = kernels_of(find(row["call"]["op"]), row["call"], row["number"], options.device)
    return done


def main() -> int:
    options = options_of()
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    if options.page:
        return write_page()
    if not os.environ.get("PYTHONPATH"):
        sys.path[:0] = [str((ROOT / os.environ.get("KPKG_BUILD_DIR", "build")).resolve() / "python")]
    import report

    if options.call:
        from measure import Clock, measure

        call = {"kwargs": {}, "grad": False} | json.loads(options.call)
        print(json.dumps(measure(ops_of(options.packages)(call["op"]), call, Clock(options.device, 0.1), 0, False)))
        return 0
    known = past(options.state)
    if options.seed is None:
        options.seed = known[0]["seed"] if known else random.SystemRandom().randrange(1 << 30)
    rows = hunt(options)
    result = report.result({**facts(options), "seed": options.seed}, rows)
    for name, figures in result["families"].items():
        print(name, json.dumps(figures))
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
