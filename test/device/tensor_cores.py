"""Measures tensor-core products and attention from plain kernels against cuBLAS and cuDNN: errors, then times.

    kpkg build test/device/kernels/products.k -o products.kpkg --target sm_90a      # and attention.k
    kpkg build kernels_src/gemm -o gemm.kpkg --target sm_90a
    test/device/tensor_cores.py --products products.kpkg --attention attention.kpkg --gemm gemm.kpkg --out result.json

tune.py writes the tuning tables of the shipped packages. product_peers.py measures peers other than cuBLAS, and
scaled.py measures 8-bit products.

All peers of a shape are launched in shuffled order with an L2 flush before each launch; a figure is the median. Errors
are relative Frobenius norms against float64, beside the peer's error on the same inputs. Each call is made twice and
must give the same bits.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import random
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kpkg
import torch
from product_shapes import BATCHED, LARGE, MEDIUM, ODD, WEIGHTS
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

DEVICE = "cuda"
CHECKED = [(128, 256, 64), (1000, 1032, 1000), (64, 8, 8), (777, 1000, 72), (1, 8, 64), (300, 264, 4104), (129, 264, 0)]
GEMM_CHECKED = [
    (100, 75, 333),
    (4097, 129, 65),
    (520, 515, 521),
    (64, 72, 4100),
    (16, 520, 1032),
    (2, 1000, 520),
    (512, 512, 8192),
]
TIMED = [*LARGE, *MEDIUM]
SMALL = [(m, n, k) for n, k in WEIGHTS for m in (1, 2, 4, 8, 16, 32, 64, 128)]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "silu": torch.nn.functional.silu,
}
ATTENTION_CHECKED = [
    (1, 128, 1),
    (3, 384, 1),
    (16, 1024, 1),
    (4, 512, 8),
]  # heads, sequence length, factor of the queries (a large factor gives a peaked softmax)
ATTENTION_TIMED = [(4, 16, 4096), (8, 16, 2048), (1, 16, 16384), (16, 16, 1024)]


def normal(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    return torch.randn(*shape, device=DEVICE, dtype=dtype)


def matrix(rows: int, columns: int, order: str, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """Returns a matrix that is contiguous along its columns (n) or its rows (t)."""
    return normal(rows, columns, dtype=dtype) if order == "n" else normal(columns, rows, dtype=dtype).t()


def error(result: Tensor, reference: Tensor) -> float:
    size = reference.norm().item()
    return (result.double() - reference).norm().item() / size if size else result.double().norm().item()


def check(what: Any, call: Callable[[], Tensor], peer: Callable[[], Tensor], reference: Tensor) -> dict[str, Any]:
    first, second = call(), call()
    line = {
        "what": what,
        "error": error(first, reference),
        "peer_error": error(peer(), reference),
        "same_bits": torch.equal(first, second),
    }
    line["holds"] = line["same_bits"] and line["error"] <= 1.1 * line["peer_error"] + 1e-7
    return line


def time(calls: dict[str, Callable[[], Any]], rounds: int, flush: Tensor) -> dict[str, float]:
    """Returns the median milliseconds of each call."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name in random.sample(list(calls), len(calls)):
            flush.zero_()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            calls[name]()
            end.record()
            torch.cuda.synchronize()
            times[name].append(begin.elapsed_time(end))
    return {name: statistics.median(line) for name, line in times.items()}


def rates(what: Any, operations: float, times: dict[str, float], peer: str) -> dict[str, Any]:
    line = {
        "what": what,
        "tflops": {name: operations / t / 1e9 for name, t in times.items()},
        "ratio": times[peer] / times["kpkg"],
    }
    print(what, {name: round(rate) for name, rate in line["tflops"].items()}, f"{line['ratio']:.3f}", flush=True)
    return line


def products(rounds: int, flush: Tensor) -> dict[str, Any]:
    op = torch.ops.device.product
    checks, timed = [], []
    for m, n, k in CHECKED:
        for order in ("nn", "nt", "tn", "tt"):
            if m % 8 and order[0] == "t":
                continue  # no tensor map can describe it
            a, b = matrix(m, k, order[0]), matrix(k, n, order[1])
            checks.append(check([m, n, k, order], lambda: op(a, b), lambda: a @ b, a.double() @ b.double()))
    for m, n, k in TIMED:
        for order in ("nn", "nt"):
            a, b = matrix(m, k, order[0]), matrix(k, n, order[1])
            timed.append(
                rates(
                    [m, n, k, order],
                    2 * m * n * k,
                    time({"kpkg": lambda: op(a, b), "cublas": lambda: a @ b}, rounds, flush),
                    "cublas",
                )
            )
    return {"checks": checks, "timed": timed}


def gemm_checks() -> list[dict[str, Any]]:
    """Checks all layouts of factors, odd sizes and epilogues, each with the dtypes that tensor cores multiply."""
    gemm, batched = torch.ops.kpkg.gemm, torch.ops.kpkg.gemm_batched
    checks = []
    for dtype in (torch.bfloat16, torch.float16):
        for m, n, k in [*CHECKED, *GEMM_CHECKED]:
            for order in ("nn", "nt", "tn", "tt"):
                a, b = matrix(m, k, order[0], dtype), matrix(k, n, order[1], dtype)
                checks.append(
                    check([str(dtype), m, n, k, order], lambda: gemm(a, b), lambda: a @ b, a.double() @ b.double())
                )
            a, b, c, bias = (normal(*shape, dtype=dtype) for shape in ((m, k), (k, n), (m, n), (n,)))
            plain = 0.5 * (a.double() @ b.double()) + 2.0 * c.double() + bias.double()
            for name, function in ACTIVATIONS.items():
                peer = lambda: function(torch.addmm(c, a, b, beta=2.0, alpha=0.5) + bias)  # noqa: E731
                ours = lambda: gemm(a, b, alpha=0.5, beta=2.0, c=c, bias=bias, activation=name)  # noqa: E731
                checks.append(check([str(dtype), m, n, k, name], ours, peer, function(plain)))
        a, b = normal(3, 129, 72, dtype=dtype), normal(3, 72, 264, dtype=dtype)
        checks.append(check([str(dtype), "batched"], lambda: batched(a, b), lambda: a @ b, a.double() @ b.double()))
    return checks


def gemm(rounds: int, flush: Tensor) -> dict[str, Any]:
    """Times the shipped package against cuBLAS; the shapes run in another order each time."""
    op, many = torch.ops.kpkg.gemm, torch.ops.kpkg.gemm_batched
    large = [
        (dtype, shape, order) for dtype in (torch.bfloat16, torch.float16) for shape in TIMED for order in ("nn", "nt")
    ]
    small = [(torch.bfloat16, shape, order) for shape in [*SMALL, *ODD] for order in ("nn", "nt")]
    cases: list[tuple[torch.dtype, tuple[int, ...], str]] = (
        large + small + [(torch.bfloat16, shape, "nn") for shape in BATCHED]
    )
    timed = []
    for dtype, shape, order in random.sample(cases, len(cases)):
        m, n, k = shape[-3:]
        if len(shape) == 4:
            a, b = normal(shape[0], m, k, dtype=dtype), normal(shape[0], k, n, dtype=dtype)
            calls = {"kpkg": lambda: many(a, b), "cublas": lambda: torch.bmm(a, b)}
        else:
            a, b = matrix(m, k, order[0], dtype), matrix(k, n, order[1], dtype)
            calls = {"kpkg": lambda: op(a, b), "cublas": lambda: a @ b}
        what = [str(dtype)[6:], *shape, order]
        timed.append(rates(what, 2 * math.prod(shape), time(calls, rounds, flush), "cublas"))
    groups = {"large": TIMED, "small": SMALL, "odd": ODD, "batched": BATCHED}
    means = {}
    for name, shapes in groups.items():
        ratios = [line["ratio"] for line in timed if tuple(line["what"][1:-1]) in shapes]
        means[name] = {"geometric_mean": statistics.geometric_mean(ratios), "least": min(ratios)}
    print(means, flush=True)
    return {"checks": gemm_checks(), "timed": timed, "means": means}


def attention(rounds: int, flush: Tensor) -> dict[str, Any]:
    op, scale = torch.ops.device.attention, 1 / math.sqrt(128)

    def library(backend: SDPBackend, *operands: Tensor) -> Tensor:
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(*operands)

    checks, timed = [], []
    for heads, length, factor in ATTENTION_CHECKED:
        q, k, v = normal(heads, length, 128) * factor, normal(heads, length, 128), normal(heads, length, 128)
        reference = torch.softmax(q.double() @ k.double().transpose(1, 2) * scale, -1) @ v.double()
        peer = lambda: library(SDPBackend.CUDNN_ATTENTION, q[None], k[None], v[None])[0]  # noqa: E731
        checks.append(check([heads, length, factor], lambda: op(q, k, v, scale), peer, reference))
    for batch, heads, length in ATTENTION_TIMED:
        q, k, v = (normal(batch * heads, length, 128) for _ in range(3))
        split = [x.view(batch, heads, length, 128) for x in (q, k, v)]
        calls = {
            "kpkg": lambda: op(q, k, v, scale),
            "cudnn": lambda: library(SDPBackend.CUDNN_ATTENTION, *split),
            "flash_attention_2": lambda: library(SDPBackend.FLASH_ATTENTION, *split),
        }
        timed.append(
            rates([batch, heads, length], 4 * batch * heads * length**2 * 128, time(calls, rounds, flush), "cudnn")
        )
    return {"checks": checks, "timed": timed}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--products", help="the package of kernels/products.k")
    parser.add_argument("--attention", help="the package of kernels/attention.k")
    parser.add_argument("--gemm", help="the package of kernels_src/gemm")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    flush = torch.empty(256 << 20, device="cuda", dtype=torch.uint8)
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=True,
    )
    result: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "gpu": torch.cuda.get_device_name(),
        "driver": driver.stdout.strip(),
        "torch": torch.__version__,
        "rounds": options.rounds,
    }
    for name, package, run in (
        ("products", options.products, products),
        ("attention", options.attention, attention),
        ("gemm", options.gemm, gemm),
    ):
        if package:
            kpkg.load(package)
            result[name] = run(options.rounds, flush)
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    wrong = [
        line
        for name in ("products", "attention", "gemm")
        if name in result
        for line in result[name]["checks"]
        if not line["holds"]
    ]
    for line in wrong:
        print("wrong:", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
