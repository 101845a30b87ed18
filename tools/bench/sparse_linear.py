"""Times linear layers with CSR weights on this CPU, beside dense ones of kpkg and PyTorch.

    KPKG_PATH=sparse.kpkg:gemm.kpkg tools/bench/sparse_linear.py --density 0.05 --threads 1

All calls of a shape take turns in one process. A figure is the minimum of all rounds. Errors are relative to the
largest element, against float64.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import kpkg
import torch
from kpkg import sparse
from torch.nn.functional import linear

SHAPES = [(rows, 1024, n) for n in (1024, 4096) for rows in (1, 32, 64, 256, 1024)] + [(37, 1000, 1001)]


def least_seconds(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    found = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            found[i] = min(found[i], time.perf_counter() - start)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--density", type=float, default=0.05)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--dtype", action="append", help="float32 and others; default: float32, bfloat16 and float16")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    for name in options.dtype or ("float32", "bfloat16", "float16"):
        dtype = getattr(torch, name)
        for rows, k, n in SHAPES:
            weight = (torch.randn(n, k) * (torch.rand(n, k) < options.density)).to(dtype)
            x, bias = torch.randn(rows, k).to(dtype), torch.randn(n).to(dtype)
            packed = sparse.pack(weight, format="csr")
            exact = linear(x.double(), weight.double(), bias.double())
            with torch.no_grad():
                error = (sparse.linear(x, packed, bias).double() - exact).abs().max() / exact.abs().max()
                calls = [
                    lambda: sparse.linear(x, packed, bias),
                    lambda: kpkg.ops.linear(x, weight, bias),
                    lambda: linear(x, weight, bias),
                ]
                mine, dense, eager = least_seconds(calls, options.rounds)
            print(
                f"{name:9}{rows:5} x {k} x {n}: sparse {mine * 1e3:.3f} ms, dense {dense * 1e3:.3f} ms "
                f"({dense / mine:.2f} x), "
                f"PyTorch's {eager * 1e3:.3f} ms ({eager / mine:.2f} x), error {error:.1e}",
                flush=True,
            )


if __name__ == "__main__":
    main()
