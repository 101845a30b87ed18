"""Measures attention against cuDNN, FlashAttention-2 and PyTorch's memory-efficient kernel.

Reports errors and times; launches run in shuffled order. The package must be built for this GPU.

    python test/device/attention.py attention.kpkg -o attention.json [--quick] [--shapes long|odd|few|latent]
        [--sustained 1.0]

Prints one JSON object. It holds for each shape the error of every implementation against float64, over a part of the
heads. It also holds the median time in microseconds; the L2 cache is flushed before each launch. `--sustained` adds the
time of back-to-back launches. Gradients are timed for long and odd sequences only. For few queries, `by head` is kpkg's
attention without heads that share a tile.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kpkg
import torch
import torch.nn.functional as F
from timing import Calls, sustained, times, usable
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

# batch, query heads, key-value heads, queries, keys, head size of queries and keys, head size of values
SHAPES = {
    "long": [
        (4, 16, 16, 4096, 4096, 128, 128), (8, 16, 16, 2048, 2048, 128, 128), (1, 16, 16, 16384, 16384, 128, 128),
        (16, 16, 16, 1024, 1024, 128, 128),
        (1, 64, 8, 2048, 2048, 128, 128), (1, 64, 8, 8192, 8192, 128, 128), (1, 64, 8, 32768, 32768, 128, 128),
        (4, 32, 32, 4096, 4096, 64, 64),
        (2, 8, 8, 4096, 4096, 256, 256), (4, 16, 16, 4096, 4096, 96, 96), (4, 16, 16, 4096, 4096, 80, 80),
    ],
    "odd": [
        (4, 16, 16, 1001, 1001, 128, 128), (2, 8, 8, 3999, 3999, 128, 128), (4, 16, 16, 1001, 1001, 64, 64),
        (16, 16, 16, 777, 777, 128, 128),
    ],
    "few": [
        (1, 64, 8, 4, 4096, 128, 128), (1, 64, 8, 16, 4096, 128, 128), (1, 64, 8, 64, 4096, 128, 128),
        (1, 64, 8, 4, 32768, 128, 128),
        (1, 64, 8, 16, 32768, 128, 128), (1, 64, 8, 64, 32768, 128, 128), (16, 64, 8, 16, 4096, 128, 128),
        (1, 16, 16, 64, 32768, 128, 128),
    ],
    "latent": [
        (4, 16, 16, 4096, 4096, 192, 128), (1, 16, 16, 16384, 16384, 192, 128), (16, 16, 16, 1024, 1024, 192, 128),
    ],
}  # fmt: skip
LIBRARIES = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}


def forward_calls(ops: kpkg.CustomOpLibrary, q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Calls:
    def library(backend: SDPBackend) -> Callable[[], Any]:
        def call() -> Tensor:
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])

        return call

    calls: Calls = {
        "kpkg": lambda: ops.attention(q, k, v, None, causal)[0],
        **{name: library(backend) for name, backend in LIBRARIES.items()},
    }
    if q.shape[2] <= 64:
        calls["by head"] = lambda: ops.attention(q, k, v, None, causal, 0.0, 0.0, 2 * k.shape[2])[
            0
        ]  # a window that hides no key
    return calls


def backward_calls(forward: Calls, leaves: list[Tensor], grad: Tensor) -> Calls:
    """Times the backward pass alone, on the device: the forward pass has been recorded before."""

    def gradient(call: Callable[[], Any]) -> Callable[[], Any]:
        result = call()
        return lambda: torch.autograd.grad([result], leaves, [grad], retain_graph=True)

    return {name: gradient(call) for name, call in forward.items()}


def error(out: Tensor, q: Tensor, k: Tensor, v: Tensor, causal: bool) -> float:
    """Returns the RMS error of the last head's last 1024 queries, relative to the RMS of the result."""
    part = slice(max(q.shape[2] - 1024, 0), None)
    s = q[-1, -1, part].double() @ k[-1, -1].double().mT / q.shape[3] ** 0.5
    if causal:
        rows = torch.arange(q.shape[2], device=q.device)[part, None]
        s = s.masked_fill(torch.arange(k.shape[2], device=q.device) > rows, float("-inf"))
    exact = torch.softmax(s, -1) @ v[-1, -1].double()
    return float((out[-1, -1, part].double() - exact).pow(2).mean().sqrt() / exact.pow(2).mean().sqrt())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("package", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--quick", action="store_true", help="few rounds, shapes of at most 4096 queries")
    parser.add_argument("--shapes", choices=list(SHAPES), default="long")
    parser.add_argument(
        "--sustained",
        type=float,
        metavar="SECONDS",
        help="also the time of each in rows of launches that last so long, at the clock that the limit of power leaves",
    )
    options = parser.parse_args()
    ops = kpkg.load(options.package)
    ops.set_fallback_policy("strict")
    rounds = 7 if options.quick else 31
    rows = []
    for shape in SHAPES[options.shapes]:
        batch, heads, kv_heads, queries, keys, size, value_size = shape
        if options.quick and queries > 4096:
            continue
        for causal in (False,) if options.shapes == "few" else (False, True):
            q = torch.randn(batch, heads, queries, size, device="cuda", dtype=torch.bfloat16)
            k = torch.randn(batch, kv_heads, keys, size, device="cuda", dtype=torch.bfloat16)
            v = torch.randn(batch, kv_heads, keys, value_size, device="cuda", dtype=torch.bfloat16)
            calls, refused = usable(forward_calls(ops, q, k, v, causal))
            row = {"shape": list(shape), "causal": causal, "refused": refused}
            row["errors"] = {name: error(call(), q, k, v, causal) for name, call in calls.items()}
            row["forward_us"] = times(calls, rounds)
            if options.sustained:
                row["forward_sustained_us"] = sustained(calls, options.sustained)
            if options.shapes in ("long", "odd"):
                leaves = [t.requires_grad_() for t in (q, k, v)]
                gradients, refused = usable(backward_calls(calls, leaves, torch.randn_like(q)))
                row["refused_backward"], row["backward_us"] = refused, times(gradients, rounds, is_ahead=True)
                if options.sustained:
                    row["backward_sustained_us"] = sustained(gradients, options.sustained)
            print(json.dumps(row), flush=True)
            rows.append(row)
    result = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
