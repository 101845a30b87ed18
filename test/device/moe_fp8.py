"""Times kpkg::moe_fp8 on a GPU beside kpkg::moe and PyTorch's grouped products, both in bfloat16.

    kpkg build kernels_src/moe_fp8 --target sm_90a -o moe_fp8.kpkg
    kpkg build kernels_src/moe --target sm_90a -o moe.kpkg
    python test/device/moe_fp8.py moe_fp8.kpkg moe.kpkg [-o results.json]

Experts are those of Qwen3-235B and DeepSeek-V3. PyTorch has no grouped products with scales of blocks, so bfloat16 is
what it offers. Each result is compared with float32 products of the same numbers and the same rounding first. Times are
medians of calls in shuffled order behind an L2 flush. TB/s counts the weights of experts that are used, TFLOP/s the
products. Exits 1 if a result is wrong.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import kpkg
import torch
from moe import CHOICES, MODELS, ROUNDS, TOKENS, grouped
from timing import times, usable
from torch import Tensor
from torch.nn import functional as F

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "tools" / "bench")]

from gpu import device_facts  # noqa: E402

FP8 = torch.float8_e4m3fn
#: Sums of tensor cores have some 14 bits, so a few per cent of the hidden numbers round to a neighbour, 2^-4 away.
TOLERANCE = 4e-2
WHAT = (
    "kpkg::moe_fp8, scales of blocks of 128 x 128, 8 experts of each token, beside kpkg::moe and torch._grouped_mm in "
    "bfloat16: microseconds behind an L2 flush (test/device/moe_fp8.py)"
)


def matrices(count: int, rows: int, columns: int) -> tuple[Tensor, Tensor]:
    x = torch.empty(count, rows, columns, dtype=FP8, device="cuda")
    for e in range(count):
        x[e] = torch.randn(rows, columns, device="cuda").to(FP8)
    return x, (torch.rand(count, rows // 128, columns // 128, device="cuda") + 0.5) * columns**-0.5


def dense(x: Tensor, scale: Tensor) -> Tensor:
    return x.float() * scale.repeat_interleave(128, -2).repeat_interleave(128, -1)


def rounded(x: Tensor) -> Tensor:
    parts = x.float().unflatten(1, (-1, 128))
    scale = (parts.abs().amax(2, keepdim=True) / 448).clamp(min=2.0**-126)
    return ((parts / scale).to(FP8).float() * scale).flatten(1)


def exact(x: Tensor, up: Any, down: Any, weights: Tensor, experts: Tensor) -> Tensor:
    x = rounded(x)
    out = torch.zeros_like(x)
    for e in range(len(up[0])):
        token, choice = torch.where(experts == e)
        if len(token):
            gate, value = F.linear(x[token], dense(up[0][e], up[1][e])).chunk(2, -1)
            rows = F.linear(rounded(F.silu(gate) * value), dense(down[0][e], down[1][e]))
            out.index_add_(0, token, rows * weights[token, choice, None])
    return out


def rows_of(op: Any, wide: Any) -> list[dict[str, Any]]:
    found = []
    for model, (count, hidden, inner) in MODELS.items():
        up, down = matrices(count, 2 * inner, hidden), matrices(count, hidden, inner)
        both = [torch.empty(x.shape, dtype=torch.bfloat16, device="cuda") for x, _ in (up, down)]
        for out, (x, scale) in zip(both, (up, down)):
            for e in range(count):
                out[e] = dense(x[e], scale[e])
        for tokens in TOKENS:
            x = torch.randn(tokens, hidden, device="cuda").bfloat16()
            weights, experts = torch.randn(tokens, count, device="cuda").softmax(1).topk(CHOICES, 1)
            chosen = weights, experts.int()
            calls = {
                "kpkg": lambda x=x, up=up, down=down, chosen=chosen: op(x, *up, *down, *chosen),
                "kpkg bfloat16": lambda x=x, both=both, chosen=chosen: wide(x, *both, *chosen),
                "grouped_mm": lambda x=x, both=both, chosen=chosen: grouped(x, *both, *chosen),
            }
            calls, refused = usable(calls)
            expected = exact(x, up, down, *chosen)
            error = ((calls["kpkg"]().float() - expected).norm() / expected.norm()).item()
            us = times(calls, ROUNDS, is_ahead=True)
            best = min(us[name] for name in us if name != "kpkg")
            each = 3 * hidden * inner * 1e-6 / us["kpkg"]
            found.append(
                {"call": f"{model} {tokens} tokens", "error": error, "is_right": error < TOLERANCE, "us": us,
                 "ratio": round(best / us["kpkg"], 3), "tflops": round(2 * tokens * CHOICES * each, 1),
                 "tb_per_s": round(len(experts.unique()) * each, 2)}
                | ({"refused": refused} if refused else {})
            )  # fmt: skip
            print(json.dumps(found[-1]), flush=True)
        del up, down, both, calls
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("moe_fp8", type=Path)
    parser.add_argument("moe", type=Path)
    parser.add_argument("-o", "--out", type=Path)
    options = parser.parse_args()
    torch.manual_seed(0)
    rows = rows_of(kpkg.load(options.moe_fp8).moe_fp8, kpkg.load(options.moe).moe)
    if options.out:
        options.out.write_text(json.dumps({**device_facts(), "what": WHAT, "rows": rows}, indent=1) + "\n")
    return 0 if all(row["is_right"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
