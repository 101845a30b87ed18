"""Measures errors and times of FP8 attention against bfloat16 attention; launches run in shuffled order.

    python test/device/attention_fp8.py attention_fp8.kpkg attention.kpkg -o attention_fp8.json

Prints one JSON object for each shape. It holds each implementation's error against float64 on the dequantised inputs,
over a part of the heads. It also holds the median time in microseconds; the L2 cache is flushed before each launch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import kpkg
import torch
from attention import error
from timing import times

# batch, query heads, key-value heads, sequence length, head size
SHAPES = [
    (4, 16, 16, 4096, 128),
    (8, 16, 16, 2048, 128),
    (16, 16, 16, 1024, 128),
    (1, 64, 8, 8192, 128),
    (1, 16, 16, 16384, 128),
    (2, 8, 8, 4096, 256),
]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("package", type=Path)
    parser.add_argument("bf16", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    ops, wide = kpkg.load(options.package), kpkg.load(options.bf16)
    for library in (ops, wide):
        library.set_fallback_policy("strict")
    rows = []
    for batch, heads, kv_heads, sequence, size in SHAPES:
        for causal in (False, True):
            q, k, v = (
                torch.randn(batch, n, sequence, size, device="cuda").to(torch.float8_e4m3fn)
                for n in (heads, kv_heads, kv_heads)
            )
            bf16 = [t.to(torch.bfloat16) for t in (q, k, v)]
            one = torch.ones(1, device="cuda")
            calls = {
                "fp8": lambda: ops.attention_fp8(q, k, v, torch.bfloat16, one, one, one, causal)[0],
                "bf16": lambda: wide.attention(*bf16, None, causal)[0],
            }
            row = {"shape": [batch, heads, kv_heads, sequence, size], "causal": causal}
            row["errors"] = {name: error(call(), *bf16, causal) for name, call in calls.items()}
            row["us"] = times(calls, 15)
            print(json.dumps(row), flush=True)
            rows.append(row)
    result = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
