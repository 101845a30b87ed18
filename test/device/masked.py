"""Measures attention with masks against PyTorch's implementations.

Reports errors and times; launches run in shuffled order. The package must be built for this GPU.

    python test/device/masked.py attention.kpkg -o masked.json [--quick]

A mask is a padding mask per batch, a boolean mask per query, or a bias added to the scores. Lengths include rows that
are not multiples of a vector. Prints one JSON object a line for each mask. It holds errors of the result and of the
three gradients against float64, for the last batch and head. It also holds median times in microseconds; the L2 cache
is flushed before each launch.

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
from attention import LIBRARIES, backward_calls
from timing import Calls, times, usable
from torch import Tensor
from torch.nn.attention import sdpa_kernel

#: batch, heads, queries, keys, head size
SHAPES = [(4, 16, 1024, 1024, 128), (4, 16, 1001, 1001, 128), (8, 16, 512, 1500, 64), (2, 8, 2047, 2047, 64)]
MASKS: dict[str, Callable[[int, int, int, int], Tensor]] = {
    "padding": lambda b, h, m, n: (
        torch.arange(n, device="cuda") < torch.randint(n // 2, n, (b, 1, 1, 1), device="cuda")
    ),
    "seen": lambda b, h, m, n: torch.rand(m, n, device="cuda") > 0.2,
    "added": lambda b, h, m, n: torch.randn(1, h, m, n, device="cuda", dtype=torch.bfloat16),
}


def calls_of(ops: kpkg.CustomOpLibrary, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Calls:
    def library(backend: Any) -> Callable[[], Any]:
        def call() -> Tensor:
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

        return call

    return {
        "kpkg": lambda: ops.attention(q, k, v, mask)[0],
        **{name: library(backend) for name, backend in LIBRARIES.items() if name != "flash"},
    }


def errors(call: Callable[[], Any], leaves: list[Tensor], mask: Tensor, grad: Tensor) -> list[float]:
    """Returns the RMS errors of the result and of the gradients, relative to the exact ones."""
    out = call()
    found = [out, *torch.autograd.grad(out, leaves, grad)]
    q, k, v = (t[-1, -1].detach().double().requires_grad_() for t in leaves)
    rows = mask.expand(grad.shape[0], grad.shape[1], q.shape[0], k.shape[0])[-1, -1]
    s = q @ k.mT / q.shape[1] ** 0.5
    s = s.masked_fill(~rows, float("-inf")) if rows.dtype == torch.bool else s + rows
    exact = torch.softmax(s, -1) @ v
    exact = [exact, *torch.autograd.grad(exact, (q, k, v), grad[-1, -1].double())]
    return [
        float((a[-1, -1].double() - b).pow(2).mean().sqrt() / b.pow(2).mean().sqrt())
        for a, b in zip(found, exact, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("package", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    options = parser.parse_args()
    ops = kpkg.load(options.package)
    ops.set_fallback_policy("strict")
    rounds, rows = 7 if options.quick else 31, []
    for batch, heads, queries, keys, size in SHAPES:
        for name, make in MASKS.items():
            q, k, v = (
                torch.randn(batch, heads, n, size, device="cuda", dtype=torch.bfloat16).requires_grad_()
                for n in (queries, keys, keys)
            )
            mask, grad = make(batch, heads, queries, keys), torch.randn_like(q)
            calls, refused = usable(calls_of(ops, q, k, v, mask))
            gradients, refused_backward = usable(backward_calls(calls, [q, k, v], grad))
            row = {
                "shape": [batch, heads, queries, keys, size],
                "mask": name,
                "refused": refused,
                "refused_backward": refused_backward,
            }
            row["errors"] = {each: errors(calls[each], [q, k, v], mask, grad) for each in gradients}
            row["forward_us"], row["backward_us"] = times(calls, rounds), times(gradients, rounds, is_ahead=True)
            print(json.dumps(row), flush=True)
            rows.append(row)
    if options.output:
        options.output.write_text(
            json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, indent=1)
            + "\n"
        )


if __name__ == "__main__":
    main()
