"""Measures attention over KV caches against PyTorch's kernels and against a copy of as many bytes.

Reports errors and times; launches run in shuffled order.

    python test/device/decode.py attention_cache.kpkg -o decode.json [--quick]

Prints a JSON object for each shape, with errors against float64 and median GPU times in microseconds. The host runs
ahead of the GPU, and the L2 cache is flushed before each launch. `share` is the read rate of the cache divided by the
rate of the copy.

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
from timing import Calls, times, usable
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

# batch, query heads, key-value heads, query tokens, keys, head size. For a head size of 576, the values are the first
# 512 elements of the keys (multi-head latent attention).
SHAPES = [
    (1, 64, 8, 1, 131072, 128), (4, 64, 8, 1, 65536, 128), (32, 64, 8, 1, 8192, 128), (128, 64, 8, 1, 2048, 128),
    (1, 64, 8, 1, 1024, 128),
    (1, 64, 8, 1, 16384, 128), (32, 64, 8, 1, 1024, 128), (128, 64, 8, 1, 1024, 128), (32, 16, 16, 1, 4096, 128),
    (8, 64, 8, 4, 32768, 128),
    (32, 64, 8, 1, 16384, 64),
    (128, 128, 1, 1, 4096, 576), (128, 16, 1, 1, 4096, 576), (32, 128, 1, 2, 8192, 576),
]  # fmt: skip
LATENT, LATENT_VALUES = 576, 512
LIBRARIES = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}


def paged(cache: Tensor, page: int) -> tuple[Tensor, Tensor]:
    """Returns the cache as a paged cache with pages in a random order, and its page table."""
    batch, heads, keys, size = cache.shape
    blocks = keys // page
    order = torch.randperm(batch * blocks, device=cache.device)
    pages = cache.reshape(batch, heads, blocks, page, size).transpose(1, 2).reshape(batch * blocks, heads, page, size)
    mixed = torch.empty_like(pages)
    mixed[order] = pages
    return mixed, order.reshape(batch, blocks).int()


def calls_of(ops: kpkg.CustomOpLibrary, q: Tensor, k: Tensor, v: Tensor, pages: tuple[int, ...]) -> Calls:
    def library(backend: SDPBackend) -> Callable[[], Tensor]:
        def call() -> Tensor:
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, enable_gqa=q.shape[1] != k.shape[1])

        return call

    def in_pages(page: int) -> Callable[[], Tensor]:
        torch.manual_seed(page)
        key_pages, table = paged(k, page)
        torch.manual_seed(page)
        if is_latent:
            return lambda: ops.attention_latent(q, key_pages, lengths, table)[0]
        value_pages = paged(v, page)[0]
        return lambda: ops.attention_decode(q, key_pages, value_pages, lengths, table)[0]

    is_latent = v.shape[3] < k.shape[3]
    lengths = torch.full((q.shape[0],), k.shape[2], dtype=torch.int32, device="cuda")
    calls: Calls = {
        "kpkg": lambda: (
            ops.attention_latent(q, k, lengths)[0] if is_latent else ops.attention_decode(q, k, v, lengths)[0]
        )
    }
    calls |= {f"pages of {page}": in_pages(page) for page in pages}
    if q.shape[2] == 1:  # PyTorch aligns a causal mask with the first key, not the last
        calls |= {name: library(backend) for name, backend in LIBRARIES.items()}
    caches = 1 if is_latent else 2
    half = torch.empty(k.numel() * k.element_size() * caches // 2, dtype=torch.int8, device="cuda")
    target = torch.empty_like(half)
    return calls | {"copy": lambda: target.copy_(half)}


def error(out: Tensor, q: Tensor, k: Tensor, v: Tensor) -> float:
    """Returns the RMS error of the last head, relative to the RMS of the result."""
    tokens, keys = q.shape[2], k.shape[2]
    s = q[-1, -1].double() @ k[-1, -1].double().mT / q.shape[3] ** 0.5
    s = s.masked_fill(
        torch.ones(tokens, keys, device=q.device, dtype=torch.bool).triu(keys - tokens + 1), float("-inf")
    )
    exact = torch.softmax(s, -1) @ v[-1, -1].double()
    return float((out[-1, -1].double() - exact).pow(2).mean().sqrt() / exact.pow(2).mean().sqrt())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("package", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--pages", type=int, nargs="*", default=[16, 64, 256])
    options = parser.parse_args()
    ops = kpkg.load(options.package)
    ops.set_fallback_policy("strict")
    rows = []
    for batch, heads, kv_heads, tokens, keys, size in SHAPES:
        q = torch.randn(batch, heads, tokens, size, device="cuda", dtype=torch.bfloat16)
        k, v = (torch.randn(batch, kv_heads, keys, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        if size == LATENT:
            v = k[..., :LATENT_VALUES]
        calls, refused = usable(calls_of(ops, q, k, v, tuple(options.pages)))
        row: dict[str, Any] = {"shape": [batch, heads, kv_heads, tokens, keys, size], "refused": refused}
        row["errors"] = {name: error(call(), q, k, v) for name, call in calls.items() if name != "copy"}
        row["us"] = times(calls, 7 if options.quick else 31, is_ahead=True)
        row["share"] = {name: round(row["us"]["copy"] / us, 4) for name, us in row["us"].items()}
        row["tflops"] = {
            name: round(2e-6 * batch * heads * tokens * keys * (size + v.shape[3]) / us, 1)
            for name, us in row["us"].items()
            if name != "copy"
        }
        print(json.dumps(row), flush=True)
        rows.append(row)
    result = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
