"""Measures the host overhead of a call.

torch.ops.kpkg ops run against the equivalent ATen ops on tiny tensors, interleaved in one run.

    python tools/bench/overhead.py [--json bench/results/torch-overhead.json]

The figure of a pair is the median over rounds of (time per kpkg call - time per ATen call) within one round.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("KPKG_BUILD_DIR", "build")).resolve()
sys.path.insert(0, str(BUILD / "python"))

import kpkg  # noqa: E402
import torch  # noqa: E402

LIMIT_US = 3.0


def per_call(function: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls * 1e6


def measure(kpkg_call: Callable[[], Any], aten_call: Callable[[], Any], rounds: int, calls: int) -> dict[str, float]:
    for function in (kpkg_call, aten_call):
        per_call(function, calls)
    pairs = []
    for i in range(rounds):
        order = (kpkg_call, aten_call) if i % 2 else (aten_call, kpkg_call)
        times = {function: per_call(function, calls) for function in order}
        pairs.append((times[kpkg_call], times[aten_call]))
    return {
        "kpkg_us": round(statistics.median(p[0] for p in pairs), 2),
        "aten_us": round(statistics.median(p[1] for p in pairs), 2),
        "difference_us": round(statistics.median(p[0] - p[1] for p in pairs), 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--packages",
        type=Path,
        default=BUILD / "test-packages",
        help="folder with softmax.kpkg, norm.kpkg, gemm.kpkg, vector_add.kpkg",
    )
    parser.add_argument("--rounds", type=int, default=401)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()

    for family in ("vector_add", "softmax", "norm", "gemm"):
        kpkg.load(options.packages / f"{family}.kpkg").set_fallback_policy("strict")
    x, w = torch.randn(4, 8), torch.randn(8)
    square = torch.randn(8, 8)
    mine, aten = torch.ops.kpkg, torch.ops.aten
    pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "vector_add / add": (lambda: mine.vector_add.default(x, x), lambda: aten.add.Tensor(x, x)),
        "softmax / _softmax": (lambda: mine.softmax.default(x, -1), lambda: aten._softmax.default(x, -1, False)),
        "log_softmax / _log_softmax": (
            lambda: mine.log_softmax.default(x, -1),
            lambda: aten._log_softmax.default(x, -1, False),
        ),
        "layer_norm / layer_norm": (
            lambda: mine.layer_norm.default(x, [8], w, w, 1e-5),
            lambda: aten.layer_norm.default(x, [8], w, w, 1e-5),
        ),
        "native_layer_norm / native_layer_norm": (
            lambda: mine.native_layer_norm.default(x, [8], w, w, 1e-5),
            lambda: aten.native_layer_norm.default(x, [8], w, w, 1e-5),
        ),
        "gemm with c / addmm": (
            lambda: mine.gemm.default(x, square, 1.0, 1.0, False, False, w),
            lambda: aten.addmm.default(w, x, square),
        ),
        "gemm / mm": (lambda: mine.gemm.default(x, square), lambda: aten.mm.default(x, square)),
    }
    rows = {}
    with torch.inference_mode():
        for name, (kpkg_call, aten_call) in pairs.items():
            rows[name] = measure(kpkg_call, aten_call, options.rounds, options.calls)
            print(
                f"{name:40s} kpkg {rows[name]['kpkg_us']:6.2f} us   aten {rows[name]['aten_us']:6.2f} us   "
                f"difference {rows[name]['difference_us']:+6.2f} us"
            )
    worst = max(row["difference_us"] for row in rows.values())
    print(f"worst difference {worst:+.2f} us (limit {LIMIT_US:.0f} us)")
    if options.json:
        meta = {
            "kpkg": kpkg.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "threads": torch.get_num_threads(),
        }
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"meta": meta, "limit_us": LIMIT_US, "rows": rows}, indent=1) + "\n")
    return 0 if worst <= LIMIT_US else 1


if __name__ == "__main__":
    sys.exit(main())
