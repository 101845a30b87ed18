"""Measures errors and times of attention_varlen against PyTorch's varlen_attn (FlashAttention-2).

Launches run in shuffled order.

    python test/device/varlen.py attention_varlen.kpkg -o varlen.json

Prints a JSON object for each set of lengths, with errors against float64 in the last sequence and median microseconds.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import kpkg
import torch
from timing import times
from torch import Tensor

# query heads, key-value heads, lengths
CASES = [
    (16, 16, [4096] * 4), (16, 16, [2048] * 8), (32, 8, [8192, 4096, 2048, 1024, 512, 256, 128, 128]),
    (32, 8, [int(700 + 997 * i % 3301) for i in range(16)]),
    (16, 16, [100 + 37 * i % 251 for i in range(128)]),
]  # fmt: skip
SIZE = 128


def error(out: Tensor, q: Tensor, k: Tensor, v: Tensor, rows: slice, causal: bool) -> float:
    q, k, v, found = (t[rows, -1].double() for t in (q, k, v, out))
    s = q @ k.mT / SIZE**0.5
    if causal:
        s = s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu(1), float("-inf"))
    exact = torch.softmax(s, -1) @ v
    return float((found - exact).pow(2).mean().sqrt() / exact.pow(2).mean().sqrt())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("package", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    ops = kpkg.load(options.package)
    ops.set_fallback_policy("strict")
    rows = []
    for heads, kv_heads, lengths in CASES:
        for causal in (False, True):
            total = sum(lengths)
            q = torch.randn(total, heads, SIZE, device="cuda", dtype=torch.bfloat16)
            k, v = (torch.randn(total, kv_heads, SIZE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
            ends = torch.tensor([0, *accumulate(lengths)], dtype=torch.int32, device="cuda")
            calls: dict[str, Callable[[], Tensor]] = {
                "kpkg": lambda: ops.attention_varlen(q, k, v, ends, ends, causal)[0]
            }
            try:
                # PyTorch names its arguments differently from version to version. Key-value heads are repeated because
                # its op wants as many as there are query heads.
                wide_k, wide_v = (t.repeat_interleave(heads // kv_heads, 1) for t in (k, v))
                forward = torch.ops.aten._flash_attention_forward
                calls["flash"] = lambda: forward(
                    q, wide_k, wide_v, ends, ends, max(lengths), max(lengths), 0.0, causal, False
                )[0]
                calls["flash"]()
            except RuntimeError as reason:
                calls.pop("flash", None)
                print(str(reason).splitlines()[0])
            last = slice(total - lengths[-1], total)
            us = times(calls, 15)
            work = sum(4 * n * n * SIZE * heads for n in lengths) / (2 if causal else 1)
            row = {"heads": [heads, kv_heads], "lengths": lengths, "causal": causal, "us": us,
                   "tflops": {name: round(work / t / 1e6, 1) for name, t in us.items()},
                   "errors": {name: error(call(), q, k, v, last, causal) for name, call in calls.items()}}  # fmt: skip
            print(json.dumps(row), flush=True)
            rows.append(row)
    if options.output:
        options.output.write_text(
            json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, indent=1)
            + "\n"
        )


if __name__ == "__main__":
    main()
