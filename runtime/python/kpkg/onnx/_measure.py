"""Runs nodes and models of ONNX beside those of kpkg, and compares results and times.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from kpkg.onnx._graph import Graph
from kpkg.onnx._register import register

#: Seconds for each pair of nodes or models, and rounds of it.
_SECONDS, _ROUNDS = 0.4, 20
#: Largest difference, relative to the largest result.
_TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 5e-3, "bfloat16": 4e-2}


@dataclass
class Times:
    """Least times of a call in microseconds."""

    ours: float
    theirs: float
    #: Says how the results differ, or that ONNX Runtime refuses the node.
    difference: str | None = None

    def is_not_slower(self) -> bool:
        return self.ours <= self.theirs

    def __str__(self) -> str:
        return f"{self.ours:.1f} us, ONNX Runtime's {self.theirs:.1f} us"


def compare_nodes(graph: Graph, theirs: onnx.NodeProto, ours: onnx.NodeProto, packages: Sequence[str]) -> Times:
    """Compares two nodes with the same tensors."""
    return compare_models(_alone(graph, theirs), _alone(graph, ours), packages)


def compare_models(theirs: onnx.ModelProto, ours: onnx.ModelProto, packages: Sequence[str]) -> Times:
    """Compares two models with the same inputs and results."""
    try:
        their_session = onnxruntime.InferenceSession(
            theirs.SerializeToString(), _options(), providers=["CPUExecutionProvider"]
        )
        inputs = _inputs(theirs)
        expected = their_session.run(None, inputs)
    except Exception as error:
        return Times(0.0, 0.0, f"ONNX Runtime does not run it: {_first_line(error)}")
    options = _options()
    register(options, *packages)
    try:
        our_session = onnxruntime.InferenceSession(
            ours.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        results = our_session.run(None, inputs)
    except Exception as error:
        return Times(0.0, 0.0, f"kpkg does not run it: {_first_line(error)}")
    difference = next(filter(None, map(_difference, results, expected)), None)
    best = [float("inf")] * 2
    sessions = (our_session, their_session)
    calls = [_calls_in(session, inputs, _SECONDS / 2 / _ROUNDS) for session in sessions]
    for _ in range(_ROUNDS):
        for which, session in enumerate(sessions):
            start = time.perf_counter()
            for _ in range(calls[which]):
                session.run(None, inputs)
            best[which] = min(best[which], (time.perf_counter() - start) / calls[which])
    return Times(best[0] * 1e6, best[1] * 1e6, difference)


def _options() -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are raised
    return options


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _calls_in(session: Any, inputs: dict[str, Any], seconds: float) -> int:
    start = time.perf_counter()
    session.run(None, inputs)
    return max(1, int(seconds / max(time.perf_counter() - start, 1e-6)))


def _inputs(model: onnx.ModelProto) -> dict[str, Any]:
    """Makes inputs: normally distributed floats, and zeros and ones."""
    draw = np.random.default_rng(0)
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = {}
    for value in model.graph.input:
        if value.name in constants:
            continue
        tensor = value.type.tensor_type
        shape, dtype = [one.dim_value for one in tensor.shape.dim], helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        is_float = onnx.TensorProto.DataType.Name(tensor.elem_type).startswith(("FLOAT", "DOUBLE", "BFLOAT"))
        inputs[value.name] = (draw.standard_normal(shape) if is_float else draw.integers(0, 2, shape)).astype(dtype)
    return {
        name: onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, 16)
        if array.dtype.name == "bfloat16"
        else array
        for name, array in inputs.items()
    }


def _difference(result: Any, expected: Any) -> str | None:
    """Says how results differ, or returns None."""
    if result.shape != expected.shape or result.dtype != expected.dtype:
        return f"kpkg gives {result.dtype}{list(result.shape)}, ONNX Runtime {expected.dtype}{list(expected.shape)}"
    if result.dtype.name not in _TOLERANCES:
        return None if np.array_equal(result, expected) else "the results differ"
    ours, theirs = result.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(theirs)
    if not np.array_equal(ours[~finite], theirs[~finite], equal_nan=True):
        return "NaN or infinities of the results differ"
    most = float(np.abs(ours - theirs)[finite].max(initial=0.0))
    limit = _TOLERANCES[result.dtype.name] * max(1.0, float(np.abs(theirs[finite]).max(initial=0.0)))
    return f"the results differ by {most:.2g}" if most > limit else None


def _alone(graph: Graph, node: onnx.NodeProto) -> onnx.ModelProto:
    """Returns a model of one node. Its constants are those of the graph, as the compiled session knows them."""
    inputs, constants = [], []
    for name in dict.fromkeys(filter(None, node.input)):
        if name in graph.constants:
            tensor = onnx.TensorProto()
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(graph.constants[name]), name))
            constants.append(tensor)
        else:
            dtype, shape = graph.types[name]
            inputs.append(helper.make_tensor_value_info(name, dtype, shape))
    results = [onnx.ValueInfoProto(name=name) for name in filter(None, node.output)]
    body = helper.make_graph([node], "node", inputs, results, constants)
    imports = [*graph.model.opset_import]
    if all(one.domain != "kpkg" for one in imports):
        imports.append(helper.make_opsetid("kpkg", 1))
    return helper.make_model(body, opset_imports=imports, ir_version=graph.model.ir_version)
