"""Times recurrent layers beside PyTorch's, which are those of cuDNN: forward, and forward with gradients.

    kpkg build kernels_src/rnn --target sm_90a --dtypes f32,bf16,f16 -o packages/rnn.kpkg
    KPKG_PATH=packages python test/device/rnn.py [-o results.json]

Calls run in CUDA graphs, without host time. Rows also have the error of the output beside PyTorch's in float64.
`--device cpu` tries the script without a GPU, with small layers and a clock.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from kpkg import nn

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "tools" / "bench")]

from gpu import device_facts  # noqa: E402

# Steps, samples, elements of input and state, and layers.
SIZES = [(512, 64, 1024, 2), (512, 1, 1024, 2), (128, 256, 512, 1), (64, 16, 256, 2), (1024, 1, 256, 1)]
SMALL = [(4, 3, 16, 2), (5, 1, 8, 1)]
WHAT = "recurrent layers beside PyTorch's: milliseconds (test/device/rnn.py)"


def milliseconds(run: Callable[[], Any], device: str) -> float:
    """Returns the median of replays of a CUDA graph, or of calls on a CPU."""
    times = []
    if device == "cpu":
        for _ in range(3):
            begin = time.perf_counter()
            run()
            times.append(1e3 * (time.perf_counter() - begin))
        return sorted(times)[1]
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    graph.replay()
    for _ in range(7):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)[len(times) // 2]


def row(kind: type, size: tuple[int, int, int, int], dtype: torch.dtype, device: str) -> dict[str, Any]:
    steps, samples, hidden, layers = size
    theirs = kind.torch_layer(hidden, hidden, layers, device=device, dtype=dtype)
    mine = kind.from_torch(copy.deepcopy(theirs))
    x = torch.randn(steps, samples, hidden, device=device).to(dtype)
    with torch.no_grad():
        exact = copy.deepcopy(theirs).double()(x.double())[0]
        errors = {n: float((m(x)[0] - exact).abs().max()) for n, m in (("kpkg", mine), ("torch", theirs))}
    assert mine.use_kpkg and errors["kpkg"] <= 4 * errors["torch"] + 1e-5, errors
    result: dict[str, Any] = {
        "call": f"{kind.__name__} {steps} steps x {samples} x {hidden}, {layers} layers, {str(dtype)[6:]}",
        "error": errors,
        "forward_ms": {},
        "with_gradients_ms": {},
    }
    upstream = torch.randn_like(x)
    for name, layer in (("kpkg", mine), ("torch", theirs)):
        leaf = x.clone().requires_grad_()

        def forward(layer: Any = layer) -> None:
            with torch.no_grad():
                layer(x)

        def both(layer: Any = layer, leaf: torch.Tensor = leaf) -> None:
            torch.autograd.grad(layer(leaf)[0], [leaf, *layer.parameters()], upstream)

        for key, run in (("forward_ms", forward), ("with_gradients_ms", both)):
            try:
                result[key][name] = round(milliseconds(run, device), 4)
            except RuntimeError as error:  # such as a call that a graph cannot capture
                result[key][name] = str(error).splitlines()[0][:200]
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    options = parser.parse_args()
    torch.manual_seed(0)
    rows = []
    for kind in (nn.LSTM, nn.GRU):
        for size in SIZES if options.device == "cuda" else SMALL:
            for dtype in (torch.bfloat16, torch.float16, torch.float32):
                rows.append(row(kind, size, dtype, options.device))
                print(json.dumps(rows[-1]), flush=True)
    if options.out:
        facts = device_facts() if options.device == "cuda" else {}
        options.out.write_text(json.dumps({**facts, "what": WHAT, "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
