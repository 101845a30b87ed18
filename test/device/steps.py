"""Times ops of a language model's step on a GPU beside PyTorch: caches, gates, states, weights of 4 bits, low-rank
adapters, experts in MXFP4.

    for family in rotary quantize causal_conv1d linear_attention fp4 gguf lora moe; do
        kpkg build kernels_src/$family --target sm_90a --dtypes bf16 -o packages/$family.kpkg
    done
    python test/device/steps.py packages [-o results.json]

bfloat16. Times are medians of calls in shuffled order behind an L2 flush, with the host ahead of the GPU. `copy` moves
as many bytes as the op has to. Results are compared by test/device/run.py and the tests of the ops, not here.

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
from timing import times, usable
from torch import Tensor
from torch.nn import functional as F

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "tools" / "bench")]

from gpu import device_facts  # noqa: E402

BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn
FAMILIES = ("rotary", "quantize", "causal_conv1d", "linear_attention", "fp4", "gguf", "lora", "moe")
ROUNDS = 15
WHAT = (
    "ops of a step of language models, bfloat16: microseconds behind an L2 flush; copy moves the op's bytes "
    "(test/device/steps.py)"
)
#: The call's name, the bytes that it moves (0: bound by arithmetic), and its contestants.
Case = tuple[str, int, dict[str, Callable[[], Any]]]


def drawn(*shape: int, dtype: torch.dtype = BF16) -> Tensor:
    return torch.randn(shape, device="cuda").to(dtype)


def uniform(*shape: int) -> Tensor:
    return torch.rand(shape, device="cuda")


def caches(ops: Any) -> Iterator[Case]:
    """Llama-3's heads: 32 of queries, 8 of keys and values, 128 elements each, in pages of 16."""
    for tokens in (64, 4096, 16384):
        qkv = drawn(tokens, 48, 128)
        q, k, v = qkv[:, :32], qkv[:, 32:40], qkv[:, 40:]
        angles = uniform(8192, 64)
        cos, sin, places = angles.cos(), angles.sin(), torch.arange(tokens, device="cuda") % 8192
        slots = torch.randperm(tokens, device="cuda").int()
        for dtype in (BF16, FP8):
            cache = [torch.empty(tokens // 16, 16, 8, 128, dtype=dtype, device="cuda") for _ in range(2)]
            scales = [None if dtype == BF16 else torch.ones((), device="cuda") for _ in range(2)]
            written = 2 * cache[0].numel() * cache[0].itemsize
            given = (q, k, v, cos, sin, places, *cache, slots, None, None, 1e-6, False, [], *scales)
            moved = 2 * q.numel() * 2 + 2 * k.numel() * 2 + written
            yield f"rotary_cache_ {tokens} {dtype}", moved, {"kpkg": lambda given=given: ops.rotary_cache_(*given)}
            given = (k, v, *cache, slots, *scales)
            moved = 2 * k.numel() * 2 + written
            yield f"cache_write_ {tokens} {dtype}", moved, {"kpkg": lambda given=given: ops.cache_write_(*given)}


def gates(ops: Any) -> Iterator[Case]:
    x = drawn(4096, 2 * 14336)
    for dtype in (FP8, torch.int8):
        for group in (0, 128):
            two = ops.quantize_per_group if group else ops.quantize_per_token
            calls = {
                "kpkg": lambda dtype=dtype, group=group: ops.silu_and_mul_quantize(x, dtype, group),
                "gate in PyTorch": lambda dtype=dtype, two=two: two(F.silu(x[:, :14336]) * x[:, 14336:], dtype),
            }
            yield f"silu_and_mul_quantize 4096x14336 {dtype} {group}", x.numel() * 2 + x.numel() // 2, calls


def states(ops: Any) -> Iterator[Case]:
    w, b = drawn(8192, 4), drawn(8192)
    for name, x in (("rows", drawn(4, 8192, 4096)), ("channels last", drawn(4, 4096, 8192).transpose(1, 2))):
        yield (
            f"causal_conv1d 4x8192x4096 {name}",
            4 * x.numel(),
            {
                "kpkg": lambda x=x: ops.causal_conv1d(x, w, b, None, "silu"),
                "torch": lambda x=x: F.silu(F.conv1d(F.pad(x, (3, 0)), w.unsqueeze(1), b, groups=8192)),
            },
        )
    q, k, v = (drawn(1, 32768, 16, 128) for _ in range(3))
    decay, beta = -uniform(1, 32768, 16) * 0.1, uniform(1, 32768, 16)
    rule = (q, k, v, decay, beta, None, None, True)
    yield "gated_delta_rule 32768x16x128", 0, {"kpkg": lambda: ops.gated_delta_rule(*rule)}
    yield "gated_linear_attention 32768x16x128", 0, {"kpkg": lambda: ops.gated_linear_attention(q, k, v, decay)}
    for x in (q, k, v, decay, beta):
        x.requires_grad_()
    for name, call, leaves in (
        ("gated_delta_rule", lambda: ops.gated_delta_rule(*rule)[0], (q, k, v, decay, beta)),
        ("gated_linear_attention", lambda: ops.gated_linear_attention(q, k, v, decay)[0], (q, k, v, decay)),
    ):
        o = call()
        given = torch.randn_like(o)
        yield (
            f"{name} 32768x16x128, gradients",
            0,
            {"kpkg": lambda o=o, x=leaves, y=given: torch.autograd.grad(o, x, y, retain_graph=True)},
        )
    x, dt, a = drawn(1, 8192, 64, 64), uniform(1, 8192, 64) * 0.1, -uniform(64)
    mamba = (x, dt, a, drawn(1, 8192, 1, 128), drawn(1, 8192, 1, 128), uniform(64), None, None, None, True)
    yield "mamba2_scan 8192x64x64, state 128", 0, {"kpkg": lambda: ops.mamba2_scan(*mamba)}
    leaves = [t.requires_grad_() for t in mamba[:6]]
    y = ops.mamba2_scan(*mamba)[0]
    given = torch.randn_like(y)
    yield (
        "mamba2_scan 8192x64x64, state 128, gradients",
        0,
        {"kpkg": lambda: torch.autograd.grad(y, leaves, given, retain_graph=True)},
    )
    state = drawn(64, 32, 128, 128, dtype=torch.float32)
    one = [drawn(64, 32, 128) for _ in range(3)]
    decay1, beta1 = -uniform(64, 32), uniform(64, 32)
    bytes_of_state = 2 * state.numel() * 4
    yield (
        "gated_delta_rule_step 64x32x128",
        bytes_of_state,
        {"kpkg": lambda: ops.gated_delta_rule_step(*one, decay1, beta1, state, None, True)},
    )
    yield (
        "gated_linear_attention_step 64x32x128",
        bytes_of_state,
        {"kpkg": lambda: ops.gated_linear_attention_step(*one, decay1, state)},
    )


def packed_weights(ops: Any) -> Iterator[Case]:
    """Draws words: any bits are a weight, and time does not depend on them."""
    for n, k in ((8192, 8192), (4096, 4096)):
        words = torch.randint(-(2**31), 2**31 - 1, (k // 64, 8 * n), dtype=torch.int32, device="cuda")
        dense = drawn(n, k)
        scales = {
            "mxfp4": torch.full((k // 32, n), 127, dtype=torch.uint8, device="cuda").view(torch.float8_e8m0fnu),
            "nvfp4": torch.ones(k // 16, n, device="cuda").to(FP8),
        }
        sizes = {"Q8_0": k // 32 * 34, "Q4_K": k // 256 * 144, "Q6_K": k // 256 * 210}
        raw = {kind: torch.zeros(n, size, dtype=torch.uint8, device="cuda") for kind, size in sizes.items()}
        for rows in (1, 16, 64, 256):
            x = drawn(rows, k)
            calls: dict[str, Callable[[], Any]] = {"torch bfloat16": lambda x=x, dense=dense: F.linear(x, dense)}
            for kind, scale in scales.items():
                calls[kind] = lambda x=x, words=words, scale=scale: ops.fp4_linear(x, words, scale)
            for kind, weight in raw.items():
                calls[kind] = lambda x=x, weight=weight, kind=kind: ops.gguf_linear(x, weight, kind)
            yield f"weights {n}x{k}, {rows} rows", 0, calls


def low_rank(ops: Any) -> Iterator[Case]:
    """Adapters of rank 16 and 64 on a layer of 4096 columns: rows of 8 requests, and of a request each."""
    for rank, rows, count in ((16, 1, 8), (16, 64, 64), (16, 256, 64), (16, 4096, 8), (64, 64, 64), (64, 4096, 8)):
        x, base = drawn(rows, 4096), drawn(rows, 4096)
        a, b = drawn(count, rank, 4096), drawn(count, 4096, rank)
        own = torch.arange(rows, device="cuda", dtype=torch.int32) % count
        moved = 2 * (3 * rows * 4096 + 2 * min(rows, count) * rank * 4096)

        def each(x: Tensor = x, a: Tensor = a, b: Tensor = b, own: Tensor = own, base: Tensor = base) -> Tensor:
            """Gathers the matrices of each row."""
            return torch.baddbmm(base.unsqueeze(2), b[own], a[own] @ x.unsqueeze(2)).squeeze(2)

        calls: dict[str, Callable[[], Any]] = {
            "kpkg": lambda x=x, a=a, b=b, own=own, base=base: ops.lora_linear(x, a, b, own, None, base),
            "one adapter, torch": lambda x=x, a=a, b=b, base=base: torch.addmm(base, x @ a[0].t(), b[0].t()),
        }
        if rows <= 256:
            calls["torch"] = each
        yield f"lora {rows} rows, rank {rank} of {count}", moved, calls


def packed_experts(ops: Any) -> Iterator[Case]:
    """Experts of gpt-oss-120b in MXFP4 beside the same in bfloat16, a quarter of them."""
    count, size, choices = 32, 2880, 4
    steps = size // 64

    def matrices(n: int) -> tuple[Tensor, Tensor]:
        """Draws words and exponents."""
        words = torch.randint(-(2**31), 2**31 - 1, (count, steps, 8 * n), dtype=torch.int32, device="cuda")
        exponents = torch.full((count, 2 * steps, n), 119, dtype=torch.uint8, device="cuda")
        return words, exponents.view(torch.float8_e8m0fnu)

    packed = (*matrices(2 * size), *matrices(size))
    dense = drawn(count, 2 * size, size), drawn(count, size, size)
    biases = drawn(count, 2 * size), drawn(count, size)
    gate = ("clamped_swiglu", True, 1.702, 7.0)
    for tokens in (1, 4, 16, 64, 512):
        weights, experts = uniform(tokens, count).softmax(1).topk(choices, 1)
        x, rest = drawn(tokens, size), (weights, experts.int(), *biases, *gate)
        moved = len(experts.unique()) * 3 * size * size * 17 // 32
        yield (
            f"experts {tokens} tokens, 4 of {count}",
            moved,
            {
                "kpkg": lambda x=x, rest=rest: ops.moe_packed(x, *packed, *rest),
                "kpkg bfloat16": lambda x=x, rest=rest: ops.moe(x, *dense, *rest),
            },
        )


def measured(ops: Any) -> Iterator[dict[str, Any]]:
    for part in (caches, gates, states, packed_weights, low_rank, packed_experts):
        for name, moved, calls in part(ops):
            if moved:
                source = torch.empty(moved // 2, dtype=torch.uint8, device="cuda")
                target = torch.empty_like(source)
                calls["copy"] = lambda source=source, target=target: target.copy_(source)
            calls, refused = usable(calls)
            row = {"call": name, "us": times(calls, ROUNDS, is_ahead=True)} | ({"refused": refused} if refused else {})
            if moved and "kpkg" in calls:
                row["of_copy"] = round(row["us"]["copy"] / row["us"]["kpkg"], 3)
            yield row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", type=Path)
    parser.add_argument("-o", "--out", type=Path)
    options = parser.parse_args()
    torch.manual_seed(0)
    for family in FAMILIES:
        kpkg.load(options.packages / f"{family}.kpkg").register_torch()
    rows = []
    for row in measured(torch.ops.kpkg):
        rows.append(row)
        print(json.dumps(row), flush=True)
    if options.out:
        options.out.write_text(json.dumps({**device_facts(), "what": WHAT, "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
