"""Times kpkg's ops on the CPU against PyTorch in one process, and writes the result as JSON.

The calls are those of `kernels_src/*/spec.py`. Both sides run in turns with the same number of threads, on the same
inputs. A figure is the median of its rounds. A ratio above 1 means that kpkg is faster.

    tools/dev bench                        # everything, result on the terminal
    tools/dev bench --op kpkg::gemm --write   # one op, result also to bench/results/

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
WARM_SECONDS = 50e-3
ROUND_SECONDS = 20e-3
BUILD = ROOT / os.environ.get("KPKG_BUILD_DIR", "build")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", action="append", help="only this op; may be repeated")
    parser.add_argument("--case", action="append", help="only cases with this label; may be repeated")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15, help="timed rounds of each call")
    parser.add_argument("--write", action="store_true", help="write bench/results/cpu.json")
    return parser.parse_args()


def seconds_of(call: Callable[[], Any], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def compare(ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """Returns the median seconds of both, measured in turns.

    A round takes at least 20 ms; very slow calls run three times. Before a round, the side to be timed runs untimed for
    a while. The reason is that libgomp's workers, which PyTorch uses, spin after their last task and occupy a core, and
    sleeping threads wake slowly.
    """
    ours(), theirs()
    slowest = max(seconds_of(theirs, 1), seconds_of(ours, 1), 1e-7)
    repeats = max(1, math.ceil(ROUND_SECONDS / slowest))
    rounds = 3 if slowest > 0.1 else rounds
    samples: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds):
        order = ((0, ours), (1, theirs)) if turn % 2 else ((1, theirs), (0, ours))
        for side, call in order:
            if slowest < 0.1:
                warmed = time.perf_counter() + WARM_SECONDS
                while time.perf_counter() < warmed:
                    call()
            samples[side].append(seconds_of(call, repeats))
    return statistics.median(samples[0]), statistics.median(samples[1])


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def build_packages(folder: Path, families: set[str]) -> list[Path]:
    packages = []
    for family in sorted(families):
        package = folder / f"{family}.kpkg"
        subprocess.run([BUILD / "bin" / "kpkg", "build", ROOT / "kernels_src" / family, "-o", package], check=True)
        packages.append(package)
    return packages


def write_result(options: argparse.Namespace, cases: list[dict[str, Any]]) -> Path:
    """Writes the result so far in the format of bench/results/cpu.json."""
    import torch

    today = datetime.date.today().isoformat()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    result = {
        "date": today,
        "commit": commit,
        "cpu": processor(),
        "threads": options.threads,
        "rounds": options.rounds,
        "load": os.getloadavg()[0],
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cases": cases,
    }
    path = ROOT / "bench" / "results" / "cpu.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path


def keep_freed_memory() -> None:
    """Restarts the program with glibc configured to keep freed memory.

    By default, glibc returns large results to the system or not, depending on their position in the heap. Allocating 16
    MB again costs a millisecond of page faults, as long as the op, on either side.
    """
    settings = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}
    if any(os.environ.get(name) != value for name, value in settings.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **settings})


def main() -> int:
    options = arguments()
    keep_freed_memory()
    os.environ["KPKG_NUM_THREADS"] = str(options.threads)
    os.environ["KPKG_FALLBACK"] = "strict"  # otherwise PyTorch could be compared with itself
    sys.path[:0] = [str(BUILD / "python"), str(ROOT / "kernels_src")]
    import kpkg
    import opspec
    import torch

    torch.set_num_threads(options.threads)
    specs = [s for s in opspec.load_specs() if s.benchmarks and s.eager and (not options.op or s.name in options.op)]
    if not specs:
        print("no such op has a benchmark", file=sys.stderr)
        return 2
    families = {path.parent.name for path in (ROOT / "kernels_src").glob("*/spec.py")}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        ops: dict[str, Any] = {}
        for package in build_packages(Path(folder), families):
            library = kpkg.load(package)
            for spec in specs:
                short = spec.name.partition("::")[2]
                if hasattr(library, short):
                    ops[spec.name] = getattr(library, short)
        for spec in specs:
            for label, sample in spec.benchmarks(torch.Generator().manual_seed(1)).items():
                if options.case and label not in options.case:
                    continue
                ours, theirs = compare(
                    lambda: ops[spec.name](*sample.args, **sample.kwargs),
                    lambda: spec.eager(*sample.args, **sample.kwargs),
                    options.rounds,
                )
                rows.append(
                    {
                        "op": spec.name,
                        "case": label,
                        "kpkg_us": ours * 1e6,
                        "torch_us": theirs * 1e6,
                        "ratio": theirs / ours,
                    }
                )
                print(
                    f"{spec.name:26} {label:24} kpkg {ours * 1e6:10.1f} us   torch {theirs * 1e6:10.1f} us   "
                    f"ratio {theirs / ours:5.2f}",
                    flush=True,
                )
                if options.write:
                    write_result(options, rows)
    if options.write:
        print(f"wrote {write_result(options, rows).relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
