"""Measures what a call of an op through tvm-ffi takes beside a plain function of tvm-ffi.

Both compute relu of 64 numbers on the CPU. The plain function is compiled here, by tvm_ffi.cpp. Its results come from
the same allocator.

    python tools/bench/tvm_ffi_calls.py [--json bench/results/tvm-ffi-calls.json]

The figures are the least times of all rounds, since the machine may be busy.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("KPKG_BUILD_DIR", "build")).resolve()
sys.path.insert(0, str(BUILD / "python"))

import kpkg.tvm_ffi  # noqa: E402
import torch  # noqa: E402
import tvm_ffi.cpp  # noqa: E402

#: Limit of the difference, in microseconds.
BAR = 0.5
CALLS = 1000

PLAIN = """
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
void relu_out(tvm::ffi::TensorView y, tvm::ffi::TensorView x) {
  auto *from = static_cast<const float *>(x.data_ptr());
  auto *to = static_cast<float *>(y.data_ptr());
  for (int64_t i = 0; i < x.numel(); ++i)
    to[i] = from[i] > 0 ? from[i] : 0;
}
tvm::ffi::Tensor relu(tvm::ffi::TensorView x) {
  auto y = tvm::ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, x.shape(), x.dtype(), x.device());
  relu_out(y, x);
  return y;
}
"""


def least(function: Callable[..., Any], arguments: tuple[Any, ...], best: float) -> float:
    """Returns the microseconds of a call in one round, or `best` if that is less."""
    start = time.perf_counter()
    for _ in range(CALLS):
        function(*arguments)
    return min(best, (time.perf_counter() - start) / CALLS * 1e6)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=Path, default=BUILD / "test-packages" / "elementwise.kpkg")
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    ops = tvm_ffi.load_module(options.package)
    plain = tvm_ffi.cpp.load_inline("plain_relu", cpp_sources=PLAIN, functions=["relu", "relu_out"])
    x, y = torch.randn(8, 8), torch.empty(8, 8)
    cases = {
        "returned": (ops.relu, plain.relu, (x,)),
        "into a tensor": (ops["relu.out"], plain.relu_out, (y, x)),
    }
    best = {name: [float("inf"), float("inf")] for name in cases}
    for _ in range(options.rounds):
        for name, (op, function, arguments) in cases.items():
            best[name] = [least(op, arguments, best[name][0]), least(function, arguments, best[name][1])]
    figures = {
        name: {"kpkg_us": round(op, 3), "plain_us": round(function, 3), "difference_us": round(op - function, 3)}
        for name, (op, function) in best.items()
    }
    for name, figure in figures.items():
        print(name, figure)
    if options.json:
        record = {
            "date": datetime.date.today().isoformat(),
            "cpu": next(r.split(": ")[1] for r in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in r),
            "about": "relu of 64 numbers through tvm-ffi beside a plain function of tvm-ffi: least times of all rounds",
            "versions": {"torch": torch.__version__, "tvm-ffi": tvm_ffi.__version__, "kpkg": kpkg.version()},
            "load": round(os.getloadavg()[0], 1),
            "rounds": options.rounds,
            "calls": figures,
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0 if all(figure["difference_us"] <= BAR for figure in figures.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
