"""Times products and softmax of random shapes on the CPU beside PyTorch: sizes at, above and below tile sizes.

Each case is checked against float64 first. Both sides take turns in one process. A figure is the minimum of its rounds.
A ratio is PyTorch's time divided by kpkg's. The seed is new in each run, and is in the result.

    tools/bench/cpu_random.py --packages build/test-packages --out bench/results/cpu-random.json

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SIZES = [1, 2, 5, 7, 31, 33, 63, 64, 65, 127, 128, 129, 191, 255, 256, 257, 300, 511, 513]
ROUND_SECONDS = 1e-3
Call = Callable[[], Any]


def least_times(ours: Call, theirs: Call, rounds: int) -> list[float]:
    """Returns the minimum seconds of a call of each side."""
    least = [math.inf, math.inf]
    for _ in range(rounds):
        for side, call in enumerate((ours, theirs)):
            repeats = 1 if least[side] == math.inf else max(1, int(ROUND_SECONDS / least[side]))
            start = time.perf_counter()
            for _ in range(repeats):
                call()
            least[side] = min(least[side], (time.perf_counter() - start) / repeats)
    return least


def product(torch: Any, library: Any, draw: random.Random) -> tuple[str, Call, Call]:
    m, n, k = (draw.choice(SIZES) for _ in range(3))
    dtype = draw.choice([torch.float32, torch.bfloat16])
    a, b = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype)
    exact, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    allowed = 1.01 * (2**-24 if dtype == torch.float32 else 2**-8) * exact.abs() + 64 * 2**-24 * size
    label = f"gemm {m}x{k}x{n} {str(dtype)[6:]}"
    assert ((library.gemm(a, b).double() - exact).abs() <= allowed).all(), label
    return label, lambda: library.gemm(a, b), lambda: a @ b


def softmax(torch: Any, library: Any, draw: random.Random) -> tuple[str, Call, Call]:
    rows, n = draw.choice(SIZES), draw.choice(SIZES)
    x = torch.randn(rows, n)
    label = f"softmax {rows}x{n} float32"
    assert (library.softmax(x, -1).double() - x.double().softmax(-1)).abs().max() < 1e-6, label
    return label, lambda: library.softmax(x, -1), lambda: x.softmax(-1)


def processor() -> str:
    """Returns the name of this machine's processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", type=Path, required=True, help="folder with gemm.kpkg and softmax.kpkg")
    parser.add_argument("--cases", type=int, default=50, help="of each op, for each number of threads")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    sys.path[:0] = [str((ROOT / os.environ.get("KPKG_BUILD_DIR", "build")).resolve() / "python")]
    import kpkg
    import torch

    draw = random.Random(options.seed)
    torch.manual_seed(options.seed)
    rows: list[dict[str, Any]] = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        kpkg.set_cpu_threads(threads)
        for name, make in (("gemm", product), ("softmax", softmax)):
            library = kpkg.load(options.packages / f"{name}.kpkg")
            for _ in range(options.cases):
                label, ours, theirs = make(torch, library, draw)
                mine, other = least_times(ours, theirs, 12)
                rows.append({"op": name, "case": label, "threads": threads, "kpkg_us": round(mine * 1e6, 2)})
                rows[-1] |= {"torch_us": round(other * 1e6, 2), "ratio": round(other / mine, 3)}
    means = {}
    for key in sorted({(row["op"], row["threads"]) for row in rows}):
        logs = [math.log(row["ratio"]) for row in rows if (row["op"], row["threads"]) == key]
        means[f"{key[0]}, threads {key[1]}"] = round(math.exp(sum(logs) / len(logs)), 3)
    result = {"date": datetime.date.today().isoformat(), "cpu": processor(), "torch": torch.__version__}
    result |= {"about": "random shapes on the CPU (tools/bench/cpu_random.py)", "seed": options.seed}
    result |= {"means": means, "rows": sorted(rows, key=lambda row: row["ratio"])}
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(means))
    return 0


if __name__ == "__main__":
    sys.exit(main())
