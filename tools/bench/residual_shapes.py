"""Times residual_tanh_gated_rmsnorm on a GPU beside PyTorch's eager expression.

The inputs have 512, 1024 and 2048 rows of 3072 bfloat16 elements.

    python tools/bench/residual_shapes.py --package packages/residual.kpkg --out residual-shapes.json

Both sides are timed in turn, as replays of CUDA graphs (the device alone) and as calls (including the host). A figure
is the minimum of all rounds.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kpkg
import torch
from torch import Tensor

ROWS = (512, 1024, 2048)
COLUMNS = 3072


def eager(x: Tensor, x_res: Tensor, gate: Tensor, eps: float = 1e-6) -> Tensor:
    """Computes the expression that a model has without a fused op."""
    wide = x_res.float()
    return x + (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype) * torch.tanh(gate)


def elapsed(run: Callable[[], Any], times: int) -> float:
    """Returns the microseconds of one of `times` runs, between two events."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(times):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000 / times


def as_graph(run: Callable[[], Any], calls: int) -> torch.cuda.CUDAGraph:
    """Returns `calls` calls as one graph."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            run()
    return graph


def in_turn(sides: dict[str, Callable[[], Any]], times: int, rounds: int, runs_of_call: int = 1) -> dict[str, float]:
    """Returns the minimum time of each side in microseconds."""
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(rounds):
        for name, run in sides.items():
            best[name] = min(best[name], elapsed(run, times) / runs_of_call)
    return best


def measure(op: kpkg.Op, rows: int, exact: bool) -> dict[str, Any]:
    """Returns the times of both sides for one number of rows, and the difference of their results."""
    make = torch.Generator(device="cuda").manual_seed(rows)
    shapes = (rows, COLUMNS), (rows, COLUMNS), (COLUMNS,)
    arguments = [torch.randn(s, generator=make, device="cuda").bfloat16() for s in shapes]
    sides: dict[str, Callable[[], Any]] = {
        "kpkg": lambda: op(*arguments, 1e-6, exact),
        "eager": lambda: eager(*arguments),
    }
    found, expected = sides["kpkg"](), sides["eager"]()
    for run in sides.values():
        elapsed(run, 20)
    calls = 20
    graphs = {name: as_graph(run, calls) for name, run in sides.items()}
    device = in_turn({name: graph.replay for name, graph in graphs.items()}, 20, 15, calls)
    host = in_turn(sides, 200, 15)
    return {
        "rows": rows,
        "columns": COLUMNS,
        "exact_mode": exact,
        "device_us": device,
        "call_us": host,
        "speedup_device": device["eager"] / device["kpkg"],
        "speedup_call": host["eager"] / host["kpkg"],
        "differing": int((found != expected).sum()),
        "largest_difference": float((found.float() - expected.float()).abs().max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--package", required=True, help="a package of kernels_src/residual for this GPU")
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    options = parser.parse_args()
    library = kpkg.load(options.package)
    kpkg.set_fallback_policy("strict")
    library.prewarm("cuda")
    cases = [measure(library.residual_tanh_gated_rmsnorm, rows, exact) for rows in ROWS for exact in (False, True)]
    result = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "dtype": "bfloat16",
        "cases": cases,
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    for case in cases:
        print(
            f"{case['rows']} x {COLUMNS} exact={case['exact_mode']}: {case['speedup_device']:.2f}x device, "
            f"{case['speedup_call']:.2f}x call"
        )


if __name__ == "__main__":
    main()
