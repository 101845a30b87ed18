"""Times matrix products on a GPU against peers that tensor_cores.py does not time.

Peers are Triton (torch.compile max-autotune), torch.compile for linear + bias + gelu, and torch._grouped_mm. For
products with one row, it compares the read rate of the weights with the rate of a copy.

    test/device/product_peers.py --gemm gemm.kpkg --grouped grouped_gemm.kpkg --seconds 200 --out peers.json

Triton compiles for seconds a shape; shapes that do not start within `--seconds` are listed under `left_out`. Every
result is first checked against float64. This command shows the tensor-core utilisation:

    ncu -k regex:gemm_tiles \\
        --metrics sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active \\
        --metrics sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active \\
        python test/device/product_peers.py --gemm gemm.kpkg --only-8192

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from product_shapes import LARGE
from timing import times, usable
from torch import Tensor

DEVICE = "cuda"
LINEAR = [(4096, 4096, 4096), (8192, 8192, 1024), (4096, 14336, 4096), (2048, 2048, 2048)]
WEIGHTS = [(8192, 8192), (14336, 4096), (57344, 7168)]
EXPERTS, COLUMNS, DEPTH = 256, 4096, 6144
Calls = dict[str, Callable[[], Tensor]]


def normal(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    return torch.randn(*shape, device=DEVICE).to(dtype)


def error(result: Tensor, reference: Tensor) -> float:
    return ((result.double() - reference).norm() / reference.norm()).item()


def line(what: Any, calls: Calls, reference: Tensor, rounds: int) -> dict[str, Any]:
    """Returns errors and times of all calls that run; `ratios` are the peers' times divided by kpkg's."""
    calls, refused = usable(calls)
    errors = {name: error(call(), reference) for name, call in calls.items()}
    microseconds = times(calls, rounds)
    found = {"what": what, "errors": errors, "us": microseconds, "refused": refused}
    if "kpkg" in microseconds:
        found["ratios"] = {
            name: round(us / microseconds["kpkg"], 3) for name, us in microseconds.items() if name != "kpkg"
        }
        found["holds"] = errors["kpkg"] <= 1.1 * min(errors.values()) + 1e-7
    print(what, microseconds, found.get("ratios"), "" if found.get("holds") else "WRONG", refused or "", flush=True)
    return found


def compiled(function: Callable[..., Tensor], triton_only: bool) -> Callable[..., Tensor]:
    torch._dynamo.reset()
    torch._inductor.config.max_autotune_gemm_backends = "TRITON" if triton_only else "ATEN,TRITON"
    return torch.compile(function, mode="max-autotune-no-cudagraphs", dynamic=False)


def against_triton(rounds: int, deadline: float, left_out: list[Any]) -> list[dict[str, Any]]:
    lines = []
    for order in "nt":
        for m, n, k in LARGE:
            if time.monotonic() > deadline:
                left_out.append(["triton", m, n, k, order])
                continue
            a, b = normal(m, k), normal(k, n) if order == "n" else normal(n, k).t()
            triton = compiled(torch.mm, triton_only=True)
            calls: Calls = {
                "kpkg": lambda: torch.ops.kpkg.gemm(a, b),
                "triton": lambda: triton(a, b),
                "cublas": lambda: a @ b,
            }
            lines.append(line(["gemm", m, n, k, "n" + order], calls, a.double() @ b.double(), rounds))
    return lines


def linear_gelu(rounds: int, deadline: float, left_out: list[Any]) -> list[dict[str, Any]]:
    lines = []
    for m, n, k in LINEAR:
        if time.monotonic() > deadline:
            left_out.append(["linear + bias + gelu", m, n, k])
            continue
        x, w, bias = normal(m, k), normal(n, k), normal(n)
        inductor = compiled(lambda x, w, bias: F.gelu(F.linear(x, w, bias)), triton_only=False)
        calls: Calls = {
            "kpkg": lambda: torch.ops.kpkg.gemm(x, w, transpose_b=True, bias=bias, activation="gelu"),
            "compile": lambda: inductor(x, w, bias),
            "eager": lambda: F.gelu(F.linear(x, w, bias)),
        }
        lines.append(
            line(["linear + bias + gelu", m, n, k], calls, F.gelu(x.double() @ w.double().t() + bias.double()), rounds)
        )
    return lines


def grouped(rounds: int) -> list[dict[str, Any]]:
    lines = []
    b = normal(EXPERTS, COLUMNS, DEPTH).transpose(1, 2)
    for rows in (1024, 8192):
        weights = torch.arange(EXPERTS, 0, -1, device=DEVICE, dtype=torch.float64) ** 2
        shares = {
            "even": torch.full((EXPERTS,), rows // EXPERTS, device=DEVICE),
            "skewed": (weights / weights.sum() * rows).floor().long(),
        }
        for name, counts in shares.items():
            counts[0] += rows - counts.sum()
            offs = counts.cumsum(0).to(torch.int32)
            a = normal(rows, DEPTH)
            ends = [0, *offs.tolist()]
            reference = torch.cat(
                [a[first:last].double() @ b[i].double() for i, (first, last) in enumerate(zip(ends, ends[1:]))]
            )
            calls: Calls = {
                "kpkg": lambda: torch.ops.kpkg.grouped_gemm(a, b, offs),
                "torch": lambda: torch._grouped_mm(a, b, offs=offs),
            }
            lines.append(line(["grouped", rows, name], calls, reference, rounds))
    return lines


def one_row(rounds: int) -> list[dict[str, Any]]:
    """Times products with one row against a copy of as many bytes.

    `share`: weight bytes per second divided by the copy's bytes per second, reads and writes together. `share_clean`:
    the same after a flush by reads. The last writes of a copy stay in the cache, so that it moves fewer bytes than are
    counted. The effect grows as the weights get smaller.
    """
    lines = []
    for n, k in WEIGHTS:
        for order in "nt":
            a, b = normal(1, k), normal(k, n) if order == "n" else normal(n, k).t()
            half = torch.empty(n * k, dtype=torch.uint8, device=DEVICE)
            target = torch.empty_like(half)
            calls: Calls = {"kpkg": lambda: torch.ops.kpkg.gemm(a, b), "cublas": lambda: a @ b}
            found = line(["one row", n, k, "n" + order], calls, a.double() @ b.double(), rounds)
            for key, is_clean in (("share", False), ("share_clean", True)):
                both = times({"kpkg": calls["kpkg"], "copy": lambda: target.copy_(half)}, rounds, is_clean)
                found[key] = round(both["copy"] / both["kpkg"], 4)
            print(
                "  share of a copy's rate", found["share"], "behind a flush by reads", found["share_clean"], flush=True
            )
            lines.append(found)
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gemm", required=True, help="the package of kernels_src/gemm")
    parser.add_argument("--grouped", help="the package of kernels_src/grouped_gemm")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=200, help="after which no more is compiled by torch.compile")
    parser.add_argument("--only-8192", action="store_true", help="one product of 8192 x 8192 x 8192, for a profiler")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    os.environ["KPKG_FALLBACK"] = "strict"
    import kpkg

    deadline = time.monotonic() + options.seconds
    kpkg.load(options.gemm)
    if options.only_8192:
        torch.ops.kpkg.gemm(normal(8192, 8192), normal(8192, 8192))
        torch.cuda.synchronize()
        return 0
    left_out: list[Any] = []
    lines = one_row(options.rounds)
    if options.grouped:
        kpkg.load(options.grouped)
        lines += grouped(options.rounds)
    lines += linear_gelu(options.rounds, deadline, left_out) + against_triton(options.rounds, deadline, left_out)
    means = {}
    for kind, peer in (
        ("gemm", "triton"),
        ("linear + bias + gelu", "compile"),
        ("grouped", "torch"),
        ("one row", "cublas"),
    ):
        ratios = [
            found["ratios"][peer] for found in lines if found["what"][0] == kind and peer in found.get("ratios", {})
        ]
        if ratios:
            means[f"{kind} to {peer}"] = {
                "geometric_mean": round(statistics.geometric_mean(ratios), 3),
                "least": min(ratios),
                "count": len(ratios),
            }
    print(means, "left out:", left_out)
    result = {
        "date": datetime.date.today().isoformat(),
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "means": means,
        "lines": lines,
        "left_out": left_out,
    }
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if all(found.get("holds") for found in lines) else 1


if __name__ == "__main__":
    raise SystemExit(main())
