"""Measures host time on a GPU: eager calls through torch.ops against ATen, the first call after load, the import.

    KPKG_PATH=packages python3 test/device/host_time.py --out host_time.json

Times how long a call blocks the host. Inputs are small, the host waits for the GPU only between rounds, and kpkg and
ATen take turns.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# us above ATen's op of the same work; ms of a first call; ms that the import adds to that of torch.
LIMITS = {"call_us": 2.0, "first_call_ms": 10.0, "import_ms": 150.0}

FIRST = """
import sys, time, torch, kpkg
x, w = torch.randn(64, 1024, device="cuda", dtype=torch.bfloat16), torch.ones(1024, device="cuda", dtype=torch.bfloat16)
torch.cuda.synchronize()
a = time.perf_counter()
op = getattr(kpkg.ops, sys.argv[1])
assert op.is_available, op.reason
b = time.perf_counter()
y = op(x, [1024], w) if "norm" in sys.argv[1] else op(x, x, transpose_b=True) if sys.argv[1] == "gemm" else op(x)
c = time.perf_counter()
torch.cuda.synchronize()
d = time.perf_counter()
y = op(x, [1024], w) if "norm" in sys.argv[1] else op(x, x, transpose_b=True) if sys.argv[1] == "gemm" else op(x)
e = time.perf_counter()
stats = op.op.stats()
assert stats["launches"] >= 2 and stats["fallbacks"] == 0, stats
code = kpkg.kernel_info()[op.name]["process_code"]
assert code["loads"] >= 1 and code["compilations"] == 0, code
print((b - a) * 1e3, (c - b) * 1e3, (d - c) * 1e3, (e - d) * 1e6)
"""
IMPORT = "import time, torch; a = time.perf_counter(); import kpkg; print((time.perf_counter() - a) * 1e3)"


def per_call(function: Callable[[], Any], calls: int) -> float:
    import torch

    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        function()
    elapsed = (time.perf_counter() - start) / calls * 1e6
    torch.cuda.synchronize()
    return elapsed


def compare(mine: Callable[[], Any], theirs: Callable[[], Any], rounds: int, calls: int) -> dict[str, float]:
    for function in (mine, theirs):
        per_call(function, calls)
    pairs = []
    for i in range(rounds):
        order = (mine, theirs) if i % 2 else (theirs, mine)
        times = {function: per_call(function, calls) for function in order}
        pairs.append((times[mine], times[theirs]))
    median = statistics.median
    return {
        "kpkg_us": round(median(a for a, _ in pairs), 2),
        "aten_us": round(median(b for _, b in pairs), 2),
        "difference_us": round(median(a - b for a, b in pairs), 2),
    }


def in_process(script: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return done.stdout


def compared_calls() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Returns small calls of kpkg and of ATen that do the same work."""
    import kpkg
    import torch

    dtype = torch.bfloat16
    x, w = torch.randn(32, 64, device="cuda", dtype=dtype), torch.randn(64, device="cuda", dtype=dtype)
    square = torch.randn(64, 64, device="cuda", dtype=dtype)
    leaf = x.clone().requires_grad_()

    def gradient(y: torch.Tensor) -> Any:
        return torch.autograd.grad(y, leaf, x)

    def autocast(softmax: Callable[..., Any], input: torch.Tensor) -> Any:
        with torch.autocast("cuda", dtype=dtype):
            return softmax(input, -1)

    mine, aten = torch.ops.kpkg, torch.ops.aten
    return {
        "softmax": (lambda: mine.softmax(x, -1), lambda: aten._softmax(x, -1, False)),
        "layer_norm": (lambda: mine.layer_norm(x, [64], w, w, 1e-5), lambda: aten.layer_norm(x, [64], w, w, 1e-5)),
        "mm": (lambda: mine.gemm(x, square), lambda: aten.mm(x, square)),
        "add": (lambda: mine.add(x, x), lambda: aten.add(x, x)),
        "softmax.default": (lambda: mine.softmax.default(x, -1), lambda: aten._softmax.default(x, -1, False)),
        "softmax, library.op": (lambda: kpkg.ops.softmax.op(x, -1), lambda: torch.softmax(x, -1)),  # type: ignore[misc]
        "softmax, recorded": (lambda: mine.softmax(leaf, -1), lambda: torch.softmax(leaf, -1)),
        "softmax, recorded, with its backward": (
            lambda: gradient(mine.softmax(leaf, -1)),
            lambda: gradient(torch.softmax(leaf, -1)),
        ),
        "layer_norm, recorded, with its backward": (
            lambda: gradient(mine.layer_norm(leaf, [64], w, w, 1e-5)),
            lambda: gradient(aten.layer_norm(leaf, [64], w, w, 1e-5)),
        ),
        "softmax, recorded, autocast": (lambda: autocast(mine.softmax, leaf), lambda: autocast(torch.softmax, leaf)),
    }


def first_call(name: str) -> dict[str, float]:
    """Times the first call of an op in a process of its own."""
    opened, first, device, second = (float(part) for part in in_process(FIRST, name).split())
    print(
        f"{name}: packages opened and registered {opened:.1f} ms, first call {first:.2f} ms, done "
        f"{device:.2f} ms later, second {second:.1f} us",
        flush=True,
    )
    return {
        "open_and_register_ms": opened,
        "first_call_ms": first,
        "until_done_ms": device,
        "second_call_us": second,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    import kpkg
    import torch

    kpkg.set_fallback_policy("strict")
    for name in ("softmax", "layer_norm", "gemm", "rms_norm", "add"):
        assert kpkg.ops[f"kpkg::{name}"].is_available, kpkg.ops[f"kpkg::{name}"].reason
    found: dict[str, Any] = {
        "torch": torch.__version__,
        "kpkg": kpkg.__version__,
        "device": torch.cuda.get_device_name(),
        "limits": LIMITS,
        "calls": {},
    }
    for mode in ("plain", "inference_mode"):
        for name, (kpkg_call, aten_call) in compared_calls().items():
            if mode == "inference_mode" and "recorded" in name:
                continue
            with torch.inference_mode(mode == "inference_mode"):
                row = found["calls"][f"{name} ({mode})"] = compare(kpkg_call, aten_call, options.rounds, options.calls)
            print(
                f"{name + ' (' + mode + ')':40} kpkg {row['kpkg_us']:6.2f} us  aten {row['aten_us']:6.2f} us  "
                f"{row['difference_us']:+6.2f} us",
                flush=True,
            )
    found["first"] = {name: first_call(name) for name in ("softmax", "layer_norm", "gemm")}
    found["import_ms"] = min(float(in_process(IMPORT)) for _ in range(3))
    print(f"import kpkg after torch: {found['import_ms']:.0f} ms")
    held = {
        "call_us": max(found["calls"][f"{name} (plain)"]["difference_us"] for name in ("softmax", "layer_norm", "mm")),
        "first_call_ms": max(row["first_call_ms"] for row in found["first"].values()),
        "import_ms": found["import_ms"],
    }
    failed = [name for name, limit in LIMITS.items() if held[name] > limit]
    for name, limit in LIMITS.items():
        print(f"{name}: {held[name]:.2f}, limit {limit:g}: {'holds' if name not in failed else 'DOES NOT HOLD'}")
    if options.out:
        options.out.write_text(json.dumps({**found, "held": held}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
