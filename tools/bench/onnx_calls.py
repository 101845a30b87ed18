"""Measures what a node of kpkg takes in ONNX Runtime beside ONNX Runtime's own node.

Both compute relu on the CPU, with one thread. A call is `session.run` of a model with one node. The cost of a node is
the difference of chains of 101 nodes and of one node, without the call from Python. Graph optimisations are off.

    python tools/bench/onnx_calls.py [--json bench/results/onnx-calls.json]

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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("KPKG_BUILD_DIR", "build")).resolve()
sys.path.insert(0, str(BUILD / "python"))

import kpkg.onnx  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

#: Limit of the difference of a node, in microseconds.
BAR = 1.0
CHAIN = 101
SIZES = {"64 numbers": 64, "a million numbers": 1 << 20}


def chain(count: int, ours: bool) -> onnx.ModelProto:
    """Returns a model of `count` nodes, each of which takes the result of the one before."""
    op, domain = ("relu", "kpkg") if ours else ("Relu", "")
    nodes = [helper.make_node(op, [f"x{i}"], [f"x{i + 1}"], domain=domain) for i in range(count)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N"]) for name in ("x0", f"x{count}")]
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("kpkg", 1)]
    return helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=imports, ir_version=10)


def session_of(model: onnx.ModelProto, package: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    kpkg.onnx.register(options, package)
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def timed(session: Any, inputs: dict[str, Any]) -> float:
    """Returns the microseconds of one call, which is short enough to run without interruption."""
    start = time.perf_counter()
    session.run(None, inputs)
    return (time.perf_counter() - start) * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=Path, default=BUILD / "test-packages" / "elementwise.kpkg")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    kpkg.set_cpu_threads(1)
    keys = [(ours, count) for ours in (True, False) for count in (1, CHAIN)]
    sessions = {(ours, count): session_of(chain(count, ours), options.package) for ours, count in keys}
    figures = {}
    for name, size in SIZES.items():
        inputs = {"x0": np.random.default_rng(0).standard_normal(size).astype(np.float32)}
        best = dict.fromkeys(keys, float("inf"))
        for _ in range(options.rounds if size > 1000 else 40 * options.rounds):
            for key in keys:
                best[key] = min(best[key], timed(sessions[key], inputs))
        nodes = {ours: (best[ours, CHAIN] - best[ours, 1]) / (CHAIN - 1) for ours in (True, False)}
        figures[name] = {
            "call": {"kpkg_us": round(best[True, 1], 2), "onnxruntime_us": round(best[False, 1], 2)},
            "node": {"kpkg_us": round(nodes[True], 3), "onnxruntime_us": round(nodes[False], 3)},
        }
        print(name, figures[name])
    if options.json:
        record = {
            "date": datetime.date.today().isoformat(),
            "cpu": next(r.split(": ")[1] for r in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in r),
            "about": "relu as a node of kpkg in ONNX Runtime beside its Relu, one thread: least times of all rounds",
            "versions": {
                "onnxruntime": onnxruntime.__version__,
                "onnx": onnx.__version__,
                "kpkg": kpkg.version(),
            },
            "load": round(os.getloadavg()[0], 1),
            "rounds": options.rounds,
            "calls": figures,
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    node = figures["64 numbers"]["node"]
    return 0 if node["kpkg_us"] - node["onnxruntime_us"] <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
