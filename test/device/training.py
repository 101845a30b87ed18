"""Times ops of training beside PyTorch's: optimizers over lists, clipping, dropout, losses of linear layers.

    for family in optimizers dropout linear_cross_entropy; do
        kpkg build kernels_src/$family --target sm_90a --dtypes f32,bf16 -o packages/$family.kpkg
    done
    KPKG_PATH=packages python test/device/training.py packages [-o results.json]

Optimizers and norms run in CUDA graphs where they can, without host time. Results are compared by the tests of the ops.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kpkg
import torch
import torch.nn.functional as F

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "tools" / "bench")]

from gpu import device_facts  # noqa: E402

AT_ONCE = 500  # parameters of a call
MEGA = 1_000_000
WHAT = (
    "optimizers over lists, norms, dropout and losses of linear layers beside PyTorch: milliseconds "
    "(test/device/training.py)"
)


def milliseconds(run: Callable[[], Any], replay: bool = True) -> float:
    """Returns the median of calls, or of replays of a CUDA graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        run()
    torch.cuda.synchronize()
    if replay:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        run = graph.replay
    run()
    times = []
    for _ in range(7):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)[len(times) // 2]


def copy_rate() -> float:
    """Returns the bytes per millisecond of a large copy."""
    source, target = torch.empty(2, 1 << 30, device="cuda")
    return 8 * source.numel() / milliseconds(lambda: target.copy_(source))


def optimizers(ops: Any) -> Iterator[dict[str, Any]]:
    """A thousand parameters of a million elements."""
    rate, step = copy_rate(), torch.ones((), device="cuda")
    for dtype in (torch.float32, torch.bfloat16):
        params, grads = ([torch.randn(MEGA, device="cuda").to(dtype) for _ in range(1000)] for _ in range(2))
        states = [[torch.zeros(MEGA, device="cuda") for _ in range(1000)] for _ in range(2)]
        masters = [p.float() for p in params] if dtype == torch.bfloat16 else []
        lists = params, grads, *states, masters

        def update(lists: tuple[list[torch.Tensor], ...] = lists) -> None:
            for i in range(0, 1000, AT_ONCE):
                ops.fused_adamw_(*(tensors[i : i + AT_ONCE] for tensors in lists), step)

        ms = {"kpkg": milliseconds(update)}
        of_copy = 1e9 * (30 if masters else 28) / ms["kpkg"] / rate
        if not masters:
            leaves = [torch.nn.Parameter(p) for p in params]
            for leaf, grad in zip(leaves, grads):
                leaf.grad = grad
            ms["torch fused"] = milliseconds(torch.optim.AdamW(leaves, fused=True).step, replay=False)
            mine = kpkg.optim.AdamW(leaves)
            ms["kpkg.optim, eager"] = milliseconds(mine.step, replay=False)
            norm = {
                "kpkg": milliseconds(lambda grads=grads: ops.gradient_norm(grads)),
                "torch": milliseconds(lambda grads=grads: torch.nn.utils.get_total_norm(grads), replay=False),
            }
            yield {"call": "gradient_norm 1000 x 1M float32", "ms": norm}
        yield {"call": f"adamw 1000 x 1M {dtype}", "ms": ms, "of_copy": round(of_copy, 3)}


def dropouts(ops: Any) -> Iterator[dict[str, Any]]:
    for dtype in (torch.bfloat16, torch.float32):
        x = torch.randn(1 << 27, device="cuda").to(dtype)
        ms = {
            "kpkg": milliseconds(lambda x=x: ops.dropout(x, 0.3, 1)),
            "torch": milliseconds(lambda x=x: F.dropout(x, 0.3)),
        }
        yield {"call": f"dropout 128M {dtype}", "ms": ms}


def losses(ops: Any) -> Iterator[dict[str, Any]]:
    x = torch.randn(8192, 4096, device="cuda").bfloat16()
    w = (torch.randn(128256, 4096, device="cuda") / 64).bfloat16()
    t = torch.randint(0, w.shape[0], (x.shape[0],), device="cuda")
    leaf, weight = x.clone().requires_grad_(), w.clone().requires_grad_()
    compiled = torch.compile(lambda x, w: F.cross_entropy(F.linear(x, w), t))
    kinds = {
        "forward": (lambda: ops.linear_cross_entropy(x, w, t), lambda: F.cross_entropy(F.linear(x, w), t), None),
        "forward and gradient of input": (
            lambda: ops.linear_cross_entropy(x, w, t, input_gradient=True),
            lambda: torch.autograd.grad(F.cross_entropy(F.linear(leaf, w), t), leaf),
            lambda: torch.autograd.grad(compiled(leaf, w), leaf),
        ),
        "forward and both gradients": (
            lambda: torch.autograd.grad(
                ops.linear_cross_entropy(leaf, weight, t, input_gradient=True)[0], (leaf, weight)
            ),
            lambda: torch.autograd.grad(F.cross_entropy(F.linear(leaf, weight), t), (leaf, weight)),
            lambda: torch.autograd.grad(compiled(leaf, weight), (leaf, weight)),
        ),
    }
    for kind, runs in kinds.items():
        names = ("kpkg", "eager", "compile")
        ms = {name: milliseconds(run, replay=False) for name, run in zip(names, runs) if run is not None}
        yield {"call": f"linear_cross_entropy 8192x4096 to 128256 bfloat16, {kind}", "ms": ms}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", type=Path)
    parser.add_argument("-o", "--out", type=Path)
    options = parser.parse_args()
    torch.manual_seed(0)
    for family in ("optimizers", "dropout", "linear_cross_entropy"):
        kpkg.load(options.packages / f"{family}.kpkg").register_torch()
    ops = torch.ops.kpkg
    rows = []
    for part in (optimizers, dropouts, losses):
        for row in part(ops):
            rows.append(row)
            print(json.dumps(row), flush=True)
    if options.out:
        options.out.write_text(json.dumps({**device_facts(), "what": WHAT, "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
