"""Attention of a package for this GPU against cuDNN, FlashAttention-2 and the efficient kernel of PyTorch: error and time, launches in shuffled order.

    python test/device/attention.py attention.kpkg -o attention.json [--quick]

Prints one JSON object: for each shape the error of every implementation against float64 (a part of the heads) and the median of its times in
microseconds, with a flush of the second-level cache before each launch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

import kpkg
from timing import Calls, times, usable

# batch, heads, heads of keys, queries, keys, head size
SHAPES = [
    (4, 16, 16, 4096, 4096, 128), (8, 16, 16, 2048, 2048, 128), (1, 16, 16, 16384, 16384, 128), (16, 16, 16, 1024, 1024, 128),
    (1, 64, 8, 2048, 2048, 128), (1, 64, 8, 8192, 8192, 128), (1, 64, 8, 32768, 32768, 128), (4, 32, 32, 4096, 4096, 64), (2, 8, 8, 4096, 4096, 256),
    (4, 16, 16, 4096, 4096, 96), (4, 16, 16, 4096, 4096, 80),
]  # fmt: skip
LIBRARIES = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION}


def forward_calls(ops: kpkg.CustomOpLibrary, q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Calls:
    def library(backend: SDPBackend) -> Callable[[], Any]:
        def call() -> Tensor:
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])

        return call

    return {"kpkg": lambda: ops.attention(q, k, v, None, causal)[0], **{name: library(backend) for name, backend in LIBRARIES.items()}}


def backward_calls(forward: Calls, leaves: list[Tensor], grad: Tensor) -> Calls:
    """What is timed is the gradient alone: the forward pass has been recorded before."""

    def gradient(call: Callable[[], Any]) -> Callable[[], Any]:
        result = call()
        return lambda: torch.autograd.grad([result], leaves, [grad], retain_graph=True)

    return {name: gradient(call) for name, call in forward.items()}


def error(out: Tensor, q: Tensor, k: Tensor, v: Tensor, causal: bool) -> float:
    """Root mean square of the error of the last head's last 1024 queries, relative to that of the result."""
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
    options = parser.parse_args()
    ops = kpkg.load(options.package)
    ops.set_fallback_policy("strict")
    rounds = 7 if options.quick else 31
    rows = []
    for batch, heads, kv_heads, queries, keys, size in SHAPES:
        if options.quick and queries > 4096:
            continue
        for causal in (False, True):
            q = torch.randn(batch, heads, queries, size, device="cuda", dtype=torch.bfloat16)
            k, v = (torch.randn(batch, kv_heads, keys, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
            calls, refused = usable(forward_calls(ops, q, k, v, causal))
            row = {"shape": [batch, heads, kv_heads, queries, keys, size], "causal": causal, "refused": refused}
            row["errors"] = {name: error(call(), q, k, v, causal) for name, call in calls.items()}
            row["forward_us"] = times(calls, rounds)
            leaves = [t.requires_grad_() for t in (q, k, v)]
            gradients, refused = usable(backward_calls(calls, leaves, torch.randn_like(q)))
            row["refused_backward"], row["backward_us"] = refused, times(gradients, rounds)
            print(json.dumps(row), flush=True)
            rows.append(row)
    result = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
