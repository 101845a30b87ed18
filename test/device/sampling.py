"""Times ops of sampling, sorting and images on a GPU beside PyTorch's, and the time to read their input.

    kpkg build kernels_src/sampling --target sm_90a -o sampling.kpkg
    python test/device/sampling.py sampling.kpkg [sorting.kpkg images.kpkg] [-o results.json]

Times are medians of calls in shuffled order behind an L2 flush by reads, with the host ahead of the GPU. `read` is the
input's bytes at 3.35 TB/s, and `amax` what PyTorch takes to reduce it. Beside roi_align, which PyTorch lacks, `torch`
copies the input. A call is captured into a CUDA graph first: its replay must give the result of the call, or the script
exits 1.

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
import torch.nn.functional as F
from timing import times, usable

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "tools" / "bench")]

from gpu import device_facts  # noqa: E402

BYTES_PER_MICROSECOND = 3.35e6
ROUNDS = 15
WHAT = (
    "sampling, sorting and image ops beside PyTorch: microseconds behind an L2 flush; read is the input at 3.35 TB/s "
    "(test/device/sampling.py)"
)
Case = tuple[str, torch.Tensor, Callable[[], Any], Callable[[], Any]]


def torch_sample(logits: torch.Tensor, k: torch.Tensor | None, p: torch.Tensor | None) -> torch.Tensor:
    """Draws as vLLM does in PyTorch: it sorts for filters, and divides probabilities by exponential noise."""
    x = logits.float()
    if k is not None or p is not None:
        ordered, places = x.sort(dim=1)
        if k is not None:
            least = ordered.gather(1, x.shape[1] - k.long().unsqueeze(1))
            ordered = ordered.masked_fill(ordered < least, -torch.inf)
        if p is not None:
            drops = ordered.softmax(1).cumsum(1) <= 1 - p.unsqueeze(1)
            drops[:, -1] = False
            ordered = ordered.masked_fill(drops, -torch.inf)
        x = ordered.scatter(1, places, ordered)
    probabilities = x.softmax(1)
    return probabilities.div_(torch.empty_like(probabilities).exponential_(1)).argmax(1)


def sampling(ops: Any) -> Iterator[Case]:
    shapes = [(1, 128256), (16, 128256), (128, 128256), (128, 131072), (128, 50257), (128, 151936), (64, 262144)]
    for dtype in (torch.bfloat16, torch.float32):
        for rows, n in shapes:
            x = (torch.randn(rows, n, device="cuda") * 3).to(dtype)
            t = torch.full((rows,), 0.8, device="cuda")
            k, p = torch.full((rows,), 50, dtype=torch.int32, device="cuda"), torch.full((rows,), 0.9, device="cuda")
            label = f"{rows}x{n} {str(dtype)[6:]}"
            for name, chosen in (
                ("temperature", (None, None)),
                ("top-k", (k, None)),
                ("top-p", (None, p)),
                ("both", (k, p)),
            ):
                if name != "temperature" and n not in (128256, 262144):
                    continue
                yield (
                    f"sample {name} {label}",
                    x,
                    lambda x=x, t=t, c=chosen: ops.sample(x, t, *c),
                    lambda x=x, c=chosen: torch_sample(x / 0.8, *c),
                )
    x = torch.randn(128, 128256, device="cuda")
    tokens = torch.randint(0, 128256, (128, 2000), device="cuda")
    ones = torch.full((128,), 1.1, device="cuda")

    def penalised() -> torch.Tensor:
        counts = torch.zeros(128, 128257, dtype=torch.int64, device="cuda")
        count = counts.scatter_add_(1, tokens, torch.ones_like(tokens))[:, :-1]
        factor = torch.where(count > 0, ones.unsqueeze(1), 1.0)
        return torch.where(x > 0, x / factor, x * factor) - ones.unsqueeze(1) * count - ones.unsqueeze(1) * (count > 0)

    yield (
        "penalties 128x128256, 2000 tokens",
        x,
        lambda: ops.apply_penalties(x, tokens, None, ones, ones, ones),
        penalised,
    )


def sorting(ops: Any) -> Iterator[Case]:
    shapes = [(65536, 256), (16384, 1024), (4096, 4096), (1024, 16384), (128, 128256), (1, 1 << 24)]
    for dtype in (torch.float32, torch.bfloat16):
        for rows, n in shapes:
            x = torch.randn(rows, n, device="cuda").to(dtype)
            label = f"{rows}x{n} {str(dtype)[6:]}"
            yield f"sort {label}", x, lambda x=x: ops.sort(x), lambda x=x: x.sort(stable=True)
            if n > 1024:
                yield f"topk 50 of {label}", x, lambda x=x: ops.topk(x, 50), lambda x=x: x.topk(50)
    x = torch.randint(0, 1000, (1 << 24,), device="cuda")
    yield "bincount 2^24 of 1000", x, lambda: ops.bincount(x, 1000), lambda: x.bincount(minlength=1000)
    y = torch.randn(1 << 24, device="cuda")
    yield "histc 2^24 in 100", y, lambda: ops.histc(y, 100, -4.0, 4.0), lambda: y.histc(100, -4.0, 4.0)


def images(ops: Any) -> Iterator[Case]:
    for dtype in (torch.float32, torch.float16):
        x = torch.randn(8, 64, 128, 128, device="cuda").to(dtype)
        grid = (torch.rand(8, 128, 128, 2, device="cuda") * 2 - 1).to(dtype)
        label = str(dtype)[6:]
        for mode in ("bilinear", "bicubic"):
            yield (
                f"grid_sample {mode} 8x64x128x128 {label}",
                x,
                lambda x=x, grid=grid, mode=mode: ops.grid_sample(x, grid, mode),
                lambda x=x, grid=grid, mode=mode: F.grid_sample(x, grid, mode, align_corners=False),
            )
            for size, smooth in (([256, 256], False), ([48, 48], True)):
                yield (
                    f"interpolate {mode} 8x64x128x128 to {size}{', smoothed' if smooth else ''} {label}",
                    x,
                    lambda x=x, a=(size, mode, False, smooth): ops.interpolate(x, *a),
                    lambda x=x, a=(size, None, mode, False, None, smooth): F.interpolate(x, *a),
                )
        yield (
            f"pixel_shuffle 8x64x128x128 {label}",
            x,
            lambda x=x: ops.pixel_shuffle(x, 2),
            lambda x=x: F.pixel_shuffle(x, 2),
        )
        corner = torch.rand(512, 2, device="cuda") * 90
        sides = torch.rand(512, 2, device="cuda") * 38
        boxes = torch.cat([torch.arange(512, device="cuda").unsqueeze(1) % 8, corner, corner + sides], 1).to(dtype)
        yield (
            f"roi_align 512 boxes of 7x7, 2 samples {label}",
            x,
            lambda x=x, boxes=boxes: ops.roi_align(x, boxes, [7, 7], 1.0, 2, True),
            x.clone,
        )


FAMILIES = {"sampling": sampling, "sorting": sorting, "images": images}


def is_replayed(call: Callable[[], Any]) -> bool:
    """Returns whether the replay of a captured call gives the results of the call."""
    expected = call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = call()
    graph.replay()
    torch.cuda.synchronize()
    pairs = zip(expected, found) if isinstance(found, tuple) else [(expected, found)]
    return all(torch.equal(a, b) for a, b in pairs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", type=Path, nargs="+")
    parser.add_argument("-o", "--out", type=Path)
    options = parser.parse_args()
    torch.manual_seed(0)
    rows: list[dict[str, Any]] = []
    for package in options.packages:
        for label, x, mine, theirs in FAMILIES[package.stem](kpkg.load(package)):
            calls, refused = usable({"kpkg": mine, "torch": theirs, "amax": x.amax})
            row: dict[str, Any] = {"call": label, "is_replayed": is_replayed(mine)}
            row["us"] = times(calls, ROUNDS, is_clean=True, is_ahead=True)
            row["read"] = round(x.numel() * x.element_size() / BYTES_PER_MICROSECOND, 2)
            rows.append(row | ({"refused": refused} if refused else {}))
            print(json.dumps(rows[-1]), flush=True)
    if options.out:
        options.out.write_text(json.dumps({**device_facts(), "what": WHAT, "rows": rows}, indent=1) + "\n")
    return 0 if all(row["is_replayed"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
