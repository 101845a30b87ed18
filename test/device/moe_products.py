"""Times kpkg::moe on a GPU beside Hugging Face's loop over experts and PyTorch's grouped products, compiled or not.

    kpkg build kernels_src/moe --target sm_90a -o moe.kpkg
    kpkg build kernels_src/experts --target sm_90a -o experts.kpkg
    python test/device/moe_products.py moe.kpkg experts.kpkg [-o results.json]

Experts are those of Qwen3-235B and DeepSeek-V3, bfloat16. Each result is compared with float32 products of the same
numbers first. Times are medians of calls in shuffled order behind an L2 flush, with the host ahead of the GPU where it
can be. TB/s counts the weights of experts that are used, TFLOP/s the products. Exits 1 if a result is wrong.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import kpkg
import torch
from timing import times, usable
from torch import Tensor
from torch.nn import functional as F

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "tools" / "bench")]

from gpu import device_facts  # noqa: E402

#: Experts, hidden size, inner size.
MODELS = {"Qwen3-235B": (128, 4096, 1536), "DeepSeek-V3": (256, 7168, 2048)}
TOKENS = [1, 16, 64, 512, 4096]
CHOICES = 8
ROUNDS = 9
TOLERANCE = 1e-2
WHAT = (
    "kpkg::moe, bfloat16, 8 experts of each token, beside Hugging Face's loop and torch._grouped_mm, compiled or not; "
    "routing of 384 experts and combining: microseconds behind an L2 flush (test/device/moe_products.py)"
)


def loop(x: Tensor, up: Tensor, down: Tensor, weights: Tensor, experts: Tensor) -> Tensor:
    """Computes the experts as Hugging Face's models do without kernels of their own."""
    out = torch.zeros_like(x)
    mask = F.one_hot(experts.long(), len(up)).permute(2, 1, 0)
    for e in mask.sum((1, 2)).nonzero().flatten().tolist():
        choice, token = torch.where(mask[e])
        gate, value = F.linear(x[token], up[e]).chunk(2, -1)
        rows = F.linear(F.silu(gate) * value, down[e]) * weights[token, choice, None]
        out.index_add_(0, token, rows.to(x.dtype))
    return out


def grouped(x: Tensor, up: Tensor, down: Tensor, weights: Tensor, experts: Tensor) -> Tensor:
    """Computes the experts by PyTorch's grouped products of sorted rows."""
    flat = experts.flatten()
    order = flat.argsort()
    ends = torch.histc(flat.float(), len(up), 0, len(up) - 1).cumsum(0).int()
    rows = torch._grouped_mm(x[order // experts.shape[1]], up.mT, offs=ends)
    gate, value = rows.chunk(2, -1)
    rows = torch._grouped_mm(F.silu(gate) * value, down.mT, offs=ends)
    rows = rows * weights.flatten()[order].unsqueeze(1)
    return rows[order.argsort()].view(*experts.shape, -1).sum(1).to(x.dtype)


def exact(x: Tensor, up: Tensor, down: Tensor, weights: Tensor, experts: Tensor) -> Tensor:
    out = torch.zeros_like(x, dtype=torch.float32)
    for e in range(len(up)):
        token, choice = torch.where(experts == e)
        if len(token):
            gate, value = F.linear(x[token].float(), up[e].float()).chunk(2, -1)
            rows = F.linear(F.silu(gate) * value, down[e].float())
            out.index_add_(0, token, rows * weights[token, choice, None])
    return out


def moe_rows(op: Any, end: float) -> list[dict[str, Any]]:
    found = []
    for model, (count, hidden, inner) in MODELS.items():
        up = torch.empty(count, 2 * inner, hidden, dtype=torch.bfloat16, device="cuda").normal_(0, hidden**-0.5)
        down = torch.empty(count, hidden, inner, dtype=torch.bfloat16, device="cuda").normal_(0, inner**-0.5)
        for tokens in TOKENS:
            x = torch.randn(tokens, hidden, device="cuda").bfloat16()
            weights, experts = torch.randn(tokens, count, device="cuda").softmax(1).topk(CHOICES, 1)
            given = (x, up, down, weights, experts.int())
            torch._dynamo.reset()  # each shape is compiled anew, and there is a limit
            compiled = torch.compile(grouped, dynamic=False)
            calls = {
                "kpkg": lambda given=given: op(*given),
                "grouped_mm": lambda given=given: grouped(*given),
                "compile": lambda given=given, compiled=compiled: compiled(*given),
                "loop": lambda given=given: loop(*given),
            }
            if time.monotonic() > end:
                del calls["compile"]
            calls, refused = usable(calls)
            expected = exact(*given)
            error = ((calls["kpkg"]().float() - expected).norm() / expected.norm()).item()
            us = times(calls, ROUNDS, is_ahead=True)
            best = min(us[name] for name in us if name != "kpkg")
            each = 3 * hidden * inner * 2e-6 / us["kpkg"]
            found.append(
                {"call": f"{model} {tokens} tokens", "error": error, "is_right": error < TOLERANCE, "us": us,
                 "ratio": round(best / us["kpkg"], 3), "tflops": round(tokens * CHOICES * each, 1),
                 "tb_per_s": round(len(experts.unique()) * each, 2)}
                | ({"refused": refused} if refused else {})
            )  # fmt: skip
            print(json.dumps(found[-1]), flush=True)
        del up, down, given, calls
    return found


def small_rows(ops: Any) -> list[dict[str, Any]]:
    """Times routing, and combining, whose bytes are those of the rows and of the result."""
    found = []
    for tokens in (1, 4096):
        logits = torch.randn(tokens, 384, device="cuda")
        us = times({"kpkg": lambda logits=logits: ops.moe_routing(logits, top_k=CHOICES)}, ROUNDS, is_ahead=True)
        found.append({"call": f"routing {tokens}x384", "us": us})
    for tokens, hidden in ((4096, 4096), (4096, 7168), (512, 7168)):
        rows = torch.randn(tokens * CHOICES, hidden, device="cuda").bfloat16()
        places = torch.randperm(tokens * CHOICES, device="cuda").int().view(tokens, CHOICES)
        weights = torch.rand(tokens, CHOICES, device="cuda")
        calls = {"kpkg": lambda given=(rows, places, weights): ops.moe_combine(*given)}
        us = times(calls, ROUNDS, is_ahead=True)
        traffic = (CHOICES + 1) * tokens * hidden * 2e-6
        speed = round(traffic / us["kpkg"], 2)
        found.append({"call": f"combining {tokens}x{hidden}", "us": us, "tb_per_s": speed})
    for row in found:
        print(json.dumps(row), flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("moe", type=Path)
    parser.add_argument("experts", type=Path)
    parser.add_argument("--seconds", type=float, default=120, help="compile nothing after so many seconds")
    parser.add_argument("-o", "--out", type=Path)
    options = parser.parse_args()
    torch.manual_seed(0)
    end = time.monotonic() + options.seconds
    rows = small_rows(kpkg.load(options.experts)) + moe_rows(kpkg.load(options.moe).moe, end)
    if options.out:
        options.out.write_text(json.dumps({**device_facts(), "what": WHAT, "rows": rows}, indent=1) + "\n")
    return 0 if all(row.get("is_right", True) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
