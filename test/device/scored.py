"""Measures errors and times of attention with score functions and masks against FlexAttention.

Launches run in shuffled order.

    python test/device/scored.py attention_scored.kpkg attention.kpkg -o scored.json

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import kpkg
import torch
from timing import times
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

SHAPE = (4, 16, 4096, 128)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("scored", type=Path, help="the package of kernels_src/attention_scored")
    parser.add_argument(
        "attention", type=Path, help="that of kernels_src/attention: softcap and windows are arguments of its ops"
    )
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    ops, plain = kpkg.load(options.scored), kpkg.load(options.attention)
    for package in (ops, plain):
        package.set_fallback_policy("strict")
    batch, heads, length, _ = SHAPE
    q, k, v = (torch.randn(SHAPE, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    slopes = (2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)).cuda()
    documents = (torch.arange(length) // 700).int().expand(batch, length).contiguous().cuda()
    flex = torch.compile(flex_attention, dynamic=False)

    def same_document(b: Tensor, h: Tensor, row: Tensor, key: Tensor) -> Tensor:
        return documents[b, row] == documents[b, key]

    def alibi(s: Tensor, b: Tensor, h: Tensor, row: Tensor, key: Tensor) -> Tensor:
        return s - slopes[h] * (row - key).abs()

    def capped(s: Tensor, b: Tensor, h: Tensor, row: Tensor, key: Tensor) -> Tensor:
        return 30.0 * torch.tanh(s / 30.0)

    blocks = create_block_mask(same_document, batch, None, length, length)
    causal = create_block_mask(lambda b, h, row, key: row >= key, None, None, length, length)
    window = create_block_mask(lambda b, h, row, key: (row >= key) & (row - key < 1024), None, None, length, length)
    cases: dict[str, dict[str, Callable[[], Tensor]]] = {
        "alibi": {
            "kpkg": lambda: ops.attention_alibi(q, k, v, slopes)[0],
            "flex": lambda: flex(q, k, v, score_mod=alibi),
        },
        "causal alibi": {
            "kpkg": lambda: ops.attention_alibi(q, k, v, slopes, True)[0],
            "flex": lambda: flex(q, k, v, score_mod=alibi, block_mask=causal),
        },
        "documents of 700": {
            "kpkg": lambda: ops.attention_documents(q, k, v, documents)[0],
            "flex": lambda: flex(q, k, v, block_mask=blocks),
        },
        "softcap": {
            "kpkg": lambda: plain.attention(q, k, v, softcap=30.0)[0],
            "flex": lambda: flex(q, k, v, score_mod=capped),
        },
        "causal, window of 1024": {
            "kpkg": lambda: plain.attention(q, k, v, is_causal=True, window=1024)[0],
            "flex": lambda: flex(q, k, v, block_mask=window),
        },
    }  # fmt: skip
    rows = []
    for name, calls in cases.items():
        found = {peer: call() for peer, call in calls.items()}
        row = {"case": name, "us": times(calls, 11), "difference": float((found["kpkg"] - found["flex"]).abs().max())}
        print(json.dumps(row), flush=True)
        rows.append(row)
    if options.output:
        options.output.write_text(
            json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, indent=1)
            + "\n"
        )


if __name__ == "__main__":
    main()
