"""Times kpkg's ops on a GPU against PyTorch eager, torch.compile and Triton, and writes the result as JSON.

A case is an op on `rows` rows of `n` elements in a dtype; `kernels_src/*/spec.py` creates its arguments. All peers of a
case, and a copy of the same size, are launched in shuffled order. The L2 cache is flushed before each launch. A figure
is the median.

Bytes are the necessary traffic of the op: every tensor argument and every result once. `share` is the op's rate divided
by the rate of the copy in the same rounds.

tools/bench/gpu.py --package build/softmax.kpkg --out result.json     # all ops, the default row lengths
tools/bench/gpu.py --package norm.kpkg --op kpkg::rms_norm --n 4096 --dtype bfloat16 --no-compile

Each op and dtype runs in a separate process with a time limit, so that a kernel that hangs costs one line of the table.
With --group, a process runs several ops.

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
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LENGTHS = (128, 1000, 1024, 3072, 3840, 4096, 5001, 5120, 8192, 12288, 16384, 32768, 131072)
MEBIBYTE = 1 << 20
FLUSH_BYTES = 512 * MEBIBYTE


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", action="append", required=True, help="a .kpkg file; may be repeated")
    parser.add_argument("--op", action="append", help="only this op; may be repeated")
    parser.add_argument("--dtype", action="append", help="default: bfloat16 and float32")
    parser.add_argument("--n", type=int, action="append", help="row length; may be repeated")
    parser.add_argument("--shape", action="append", help="ROWSxN instead of --n; may be repeated")
    parser.add_argument(
        "--mebibytes", type=int, default=128, help="size of one tensor; twice that above 65536 elements a row"
    )
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument(
        "--group",
        type=int,
        default=1,
        help="ops in one process: more saves starting PyTorch, and one that hangs costs the rest of its group",
    )
    parser.add_argument("--limit", type=float, default=120, help="seconds for one op and dtype")
    parser.add_argument("--out", type=Path, help="file for the result as JSON")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def shapes_of(options: argparse.Namespace, element_bytes: int) -> list[tuple[int, int]]:
    if options.shape:
        return [(int(rows), int(n)) for rows, n in (shape.split("x") for shape in options.shape)]
    shapes = []
    for n in options.n or LENGTHS:
        size = options.mebibytes * MEBIBYTE * (2 if n > 65536 else 1)
        rows = size // (n * element_bytes)
        shapes.append((max(1, rows - rows % 64), n))
    return shapes


def tensors_of(value: Any) -> list[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [tensor for part in value for tensor in tensors_of(part)]
    return []


def traffic(sample: Any, results: Any) -> int:
    """Returns the necessary traffic of the call in bytes: each argument and each result once."""
    tensors = tensors_of(list(sample.args)) + tensors_of(list(sample.kwargs.values())) + tensors_of(results)
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def medians(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Returns the median microseconds on the GPU of each call. L2 is flushed before each call, and the order is
    shuffled in each round."""
    import torch

    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    events: dict[str, list[Any]] = {name: [] for name in calls}
    for turn in range(rounds + 2):
        order = list(calls)
        random.shuffle(order)
        for name in order:
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush.zero_()
            start.record()
            calls[name]()
            stop.record()
            if turn >= 2:
                events[name].append((start, stop))
        torch.cuda.synchronize()
    return {
        name: statistics.median(start.elapsed_time(stop) for start, stop in pairs) * 1e3
        for name, pairs in events.items()
    }


def measure(
    spec: Any, op: Callable[..., Any], shape: tuple[int, int], dtype: Any, options: argparse.Namespace
) -> dict[str, Any]:
    """Returns one line of the table; `error` says why there is none."""
    import torch
    from triton_peers import triton_peer

    generator = torch.Generator(device="cuda").manual_seed(shape[1])
    sample = spec.rows(shape[0], shape[1], dtype, generator)
    results = op(*sample.args, **sample.kwargs)
    spec.check(sample, results, gpu=True)
    calls: dict[str, Callable[[], Any]] = {
        "kpkg": lambda: op(*sample.args, **sample.kwargs),
        "eager": lambda: spec.eager(*sample.args, **sample.kwargs),
    }
    skipped = {}
    if not options.no_compile:
        torch._dynamo.reset()
        compiled = torch.compile(spec.eager, dynamic=False)
        try:
            compiled(*sample.args, **sample.kwargs)
            calls["compile"] = lambda: compiled(*sample.args, **sample.kwargs)
        except Exception as error:  # a peer that cannot run this case is a result, not a failure of the benchmark
            skipped["compile"] = str(error)[:120]
    if peer := triton_peer(spec.name, sample):
        calls["triton"] = peer
    moved = traffic(sample, results)
    half = torch.empty(moved // 2, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(half)
    calls["copy"] = lambda: target.copy_(half)
    del results
    microseconds = medians(calls, options.rounds)
    rates = {name: moved / us / 1e3 for name, us in microseconds.items()}
    peers = {name: us for name, us in microseconds.items() if name not in ("kpkg", "copy")}
    best = min(peers, key=lambda name: peers[name])
    return {
        "op": spec.name,
        "dtype": str(dtype).removeprefix("torch."),
        "shape": list(shape),
        "bytes": moved,
        "us": {name: round(us, 2) for name, us in microseconds.items()},
        "gb_per_s": {name: round(rate) for name, rate in rates.items()},
        "share": round(rates["kpkg"] / rates["copy"], 4),
        "best_peer": best,
        "ratio_to_best": round(peers[best] / microseconds["kpkg"], 4),
        "ratio_to_eager": round(peers["eager"] / microseconds["kpkg"], 4),
        "instances": launched(op, sample),
        **({"skipped": skipped} if skipped else {}),
    }


def launched(op: Any, sample: Any) -> list[str]:
    """Returns the kernel instances that the call runs, the longest first."""
    import kpkg

    with kpkg.profile_kernel() as taken:
        op(*sample.args, **sample.kwargs)
    return [row["instance"] for row in taken.kernels()]


def worker(options: argparse.Namespace) -> int:
    """Measures one op in one dtype, and prints a JSON line for each shape."""
    os.environ["KPKG_FALLBACK"] = "strict"  # otherwise PyTorch could be compared with itself
    sys.path[:0] = [str(ROOT / "kernels_src"), str(Path(__file__).parent)]
    import kpkg
    import opspec
    import torch

    names, dtype_name = options.worker.split("|")
    specs = {spec.name: spec for spec in opspec.load_specs()}
    libraries = [kpkg.load(package) for package in options.package]
    done = 0
    for name in names.split(","):
        ops = [op for library in libraries if (op := getattr(library, specs[name].family, None)) is not None]
        if not ops:
            print(json.dumps({"op": name, "dtype": dtype_name, "error": "no package has this op"}))
            continue
        for shape in shapes_of(options, getattr(torch, dtype_name).itemsize):
            print(json.dumps({"starts": [name, list(shape)]}), flush=True)
            try:
                line = measure(specs[name], ops[-1], shape, getattr(torch, dtype_name), options)
            except (AssertionError, RuntimeError, ValueError) as error:
                line = {"op": name, "dtype": dtype_name, "shape": list(shape), "error": str(error)[:400]}
            print(json.dumps(line), flush=True)
            torch.cuda.empty_cache()
            done += 1
    return 0 if done else 1


def run_worker(options: argparse.Namespace, names: list[str], dtype: str) -> list[dict[str, Any]]:
    """Returns the lines of a group of ops in one dtype. After a hang or crash, one line names the op and shape."""
    command = [sys.executable, __file__, *sys.argv[1:], "--worker", f"{','.join(names)}|{dtype}"]
    limit = options.limit * len(names)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        output, failure = done.stdout, done.stderr[-400:] if done.returncode else ""
    except subprocess.TimeoutExpired as expired:
        output, failure = (expired.stdout or b"").decode(), f"no answer within {limit} s"
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    results = [line for line in lines if "starts" not in line]
    if failure:
        name, shape = ([line["starts"] for line in lines if "starts" in line] or [[names[0], None]])[-1]
        results.append({"op": name, "dtype": dtype, "shape": shape, "error": failure})
    return results


def show(line: dict[str, Any]) -> None:
    shape = "x".join(map(str, line.get("shape") or ["?"]))
    head = f"{line['op']:28} {line['dtype']:9} {shape:14}"
    if "error" in line:
        print(f"{head} {line['error']}", flush=True)
        return
    rates = "  ".join(f"{name} {rate}" for name, rate in line["gb_per_s"].items())
    print(
        f"{head} share {line['share']:.3f}  x{line['ratio_to_best']:.2f} {line['best_peer']}  "
        f"x{line['ratio_to_eager']:.2f} eager   GB/s: {rates}",
        flush=True,
    )


def device_facts() -> dict[str, Any]:
    """Returns the date, the GPU and the versions that a file of results names."""
    import torch
    import triton

    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(query, capture_output=True, text=True).stdout.strip().splitlines()
    return {
        "date": datetime.date.today().isoformat(),
        "gpu": torch.cuda.get_device_name(),
        "driver": driver[0] if driver else "unknown",
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
        "commit": os.environ.get("KPKG_COMMIT", "unknown"),
    }


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def main() -> int:
    options = arguments()
    if options.worker:
        return worker(options)
    sys.path[:0] = [str(ROOT / "kernels_src")]
    import opspec

    specs = [
        spec for spec in opspec.load_specs() if spec.rows and spec.eager and (not options.op or spec.name in options.op)
    ]
    if not specs:
        print("no such op has a row benchmark", file=sys.stderr)
        return 2
    result: dict[str, Any] = {**device_facts(), "rounds": options.rounds, "cases": []}
    names = [spec.name for spec in specs]
    for start in range(0, len(names), options.group):
        for dtype in options.dtype or ("bfloat16", "float32"):
            for line in run_worker(options, names[start : start + options.group], dtype):
                show(line)
                result["cases"].append(line)
                if options.out:
                    options.out.write_text(json.dumps(result, indent=1) + "\n")
    timed = [line for line in result["cases"] if "error" not in line]
    for key in ("ratio_to_best", "ratio_to_eager"):
        print(f"geometric mean of {key}: {geometric_mean([line[key] for line in timed]):.3f} over {len(timed)} cases")
    return 1 if len(timed) < len(result["cases"]) else 0


if __name__ == "__main__":
    sys.exit(main())
