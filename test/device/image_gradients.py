"""Times sampled, resized and averaged images on a GPU with their gradients, beside PyTorch and torchvision.

    kpkg build kernels_src/images --target sm_90a --dtypes f32,f16 -o images.kpkg
    python test/device/image_gradients.py images.kpkg [--device cpu --small] [-o results.json]

`forward` is a call, and `both` a call with its gradients; times are medians in milliseconds, of calls that wait for the
device. `error` is the greatest difference of the gradients from PyTorch's, as a part of the greatest gradient.
`torch` is null where torchvision is missing, or has no code for the dtype on the device.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kpkg
import torch
import torch.nn.functional as F

ROUNDS = 15
WHAT = "images and their gradients beside PyTorch and torchvision: milliseconds (test/device/image_gradients.py)"
Case = tuple[str, list[torch.Tensor], Callable[..., torch.Tensor], Callable[..., torch.Tensor] | None]


def torchvision_roi_align() -> Callable[..., torch.Tensor] | None:
    """Returns torchvision's op, or None without its compiled code: its Python version has other results outside."""
    try:
        import torchvision  # noqa: F401

        op: Callable[..., torch.Tensor] = torch.ops.torchvision.roi_align
        op.default
        return op
    except (ImportError, AttributeError, RuntimeError):
        return None


def cases(ops: Any, device: str, small: bool) -> Iterator[Case]:
    n, c, h, w = (1, 3, 12, 16) if small else (8, 64, 128, 128)
    theirs = torchvision_roi_align()
    for dtype in (torch.float32, torch.float16):
        for layout in (torch.contiguous_format, torch.channels_last):
            x = torch.randn(n, c, h, w, device=device).to(dtype).contiguous(memory_format=layout)
            grid = (torch.rand(n, h, w, 2, device=device) * 2 - 1).to(dtype)
            label = f"{n}x{c}x{h}x{w} {str(dtype)[6:]}{', channels last' if layout == torch.channels_last else ''}"
            for mode in ("bilinear", "bicubic"):
                yield (
                    f"grid_sample {mode} {label}",
                    [x, grid],
                    lambda x, grid, mode=mode: ops.grid_sample(x, grid, mode),
                    lambda x, grid, mode=mode: F.grid_sample(x, grid, mode, align_corners=False),
                )
            for mode, size, smooth in (
                ("nearest", [2 * h, 2 * w], False),
                ("bilinear", [2 * h, 2 * w], False),
                ("bicubic", [2 * h, 2 * w], False),
                ("bilinear", [h // 3, w // 3], True),
            ):
                corners = {} if mode == "nearest" else {"align_corners": False, "antialias": smooth}
                yield (
                    f"interpolate {mode} to {size}{', smoothed' if smooth else ''} {label}",
                    [x],
                    lambda x, a=(size, mode, False, smooth): ops.interpolate(x, *a),
                    lambda x, a=size, mode=mode, corners=corners: F.interpolate(x, a, mode=mode, **corners),
                )
            count = 4 if small else 512
            corner = torch.rand(count, 2, device=device) * (h * 0.7)
            sides = torch.rand(count, 2, device=device) * (h * 0.3)
            image = torch.arange(count, device=device).unsqueeze(1) % n
            boxes = torch.cat([image, corner, corner + sides], 1).to(dtype)
            yield (
                f"roi_align {count} boxes of 7x7, 2 samples {label}",
                [x],
                lambda x, boxes=boxes: ops.roi_align(x, boxes, [7, 7], 1.0, 2, True),
                None if theirs is None else lambda x, boxes=boxes: theirs(x, boxes, 1.0, 7, 7, 2, True),
            )


def milliseconds(run: Callable[[], Any], device: str) -> float:
    """Returns the median of calls, after two that warm up."""
    found = []
    for turn in range(ROUNDS + 2):
        begin = time.perf_counter()
        run()
        if device == "cuda":
            torch.cuda.synchronize()
        if turn > 1:
            found.append((time.perf_counter() - begin) * 1e3)
    return round(statistics.median(found), 4)


def measured(given: list[torch.Tensor], call: Callable[..., torch.Tensor], device: str) -> dict[str, Any]:
    leaves = [x.detach().requires_grad_() for x in given]
    torch.manual_seed(1)
    results = call(*given)
    direction = torch.randn(results.shape, device=device).to(results.dtype)
    result: dict[str, Any] = {
        "forward": milliseconds(lambda: call(*given), device),
        "both": milliseconds(lambda: torch.autograd.grad(call(*leaves), leaves, direction), device),
    }
    return result | {"gradients": torch.autograd.grad(call(*leaves), leaves, direction)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="tiny images, to try the script")
    parser.add_argument("-o", "--out", type=Path)
    options = parser.parse_args()
    torch.manual_seed(0)
    ops = kpkg.load(options.package)
    ops.set_fallback_policy("strict")
    name = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    rows: list[dict[str, Any]] = []
    for label, given, mine, theirs in cases(ops, options.device, options.small):
        own = measured(given, mine, options.device)
        gradients = own.pop("gradients")
        row: dict[str, Any] = {"call": label, "kpkg": own, "torch": None}
        try:
            row["torch"] = measured(given, theirs, options.device) if theirs is not None else None
        except NotImplementedError:  # PyTorch has no code for the dtype on this device
            pass
        if row["torch"]:
            pairs = zip(gradients, row["torch"].pop("gradients"))
            row["error"] = max(float(((a - b).abs().max() / b.abs().max()).float()) for a, b in pairs)
        rows.append(row)
        print(json.dumps(row), flush=True)
    if options.out:
        facts = {"device": name, "torch": torch.__version__, "what": WHAT}
        options.out.write_text(json.dumps({**facts, "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
