"""Reads nodes of ONNX models with what is known of their tensors.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
from onnx import helper

#: Extents of a tensor. None is an extent that only the call knows.
Shape = tuple[int | None, ...]
STANDARD = ("", "ai.onnx")


class Graph:
    """The main graph of a model: dtypes, shapes and constants by name."""

    def __init__(self, model: onnx.ModelProto, dims: Mapping[str, int]) -> None:
        """Infers the shapes. `dims` gives extents of inputs that have only a name."""
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self.unknown: set[str] = set()
        for value in self.model.graph.input:
            for extent in value.type.tensor_type.shape.dim:
                if extent.HasField("dim_param") and extent.dim_param in dims:
                    extent.dim_value = dims[extent.dim_param]
                elif not extent.HasField("dim_value"):
                    self.unknown.add(extent.dim_param)
        graph = onnx.shape_inference.infer_shapes(self.model, data_prop=True).graph
        self.constants = {tensor.name: tensor for tensor in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant" and node.domain in STANDARD:
                self.constants |= {node.output[0]: one.t for one in node.attribute if one.name == "value"}
        self.types: dict[str, tuple[int, Shape | None]] = {}
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.type.HasField("tensor_type"):
                self.types[value.name] = _type_of(value.type.tensor_type)
        for name, tensor in self.constants.items():
            self.types[name] = tensor.data_type, tuple(tensor.dims)
        self.opset = next((one.version for one in model.opset_import if one.domain in STANDARD), 1)


def _type_of(tensor: Any) -> tuple[int, Shape | None]:
    if not tensor.HasField("shape"):
        return tensor.elem_type, None
    return tensor.elem_type, tuple(d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim)


class Unfit(Exception):
    """Says why a node stays as it is."""


class Node:
    """A node with its tensors' dtypes and shapes."""

    def __init__(self, proto: onnx.NodeProto, graph: Graph) -> None:
        self.proto = proto
        self.graph = graph
        self.opset = graph.opset
        self.inputs = list(proto.input)
        self._attributes = {one.name: helper.get_attribute_value(one) for one in proto.attribute}

    def attribute(self, name: str, default: Any) -> Any:
        value = self._attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def has(self, index: int) -> bool:
        return index < len(self.inputs) and self.inputs[index] != ""

    def only_result(self) -> None:
        """Refuses nodes whose further results are used."""
        if any(self.proto.output[1:]):
            raise Unfit(f"its result {self.proto.output[1] or self.proto.output[2]!r} is used")

    def dtype(self, index: int = 0) -> int:
        return self.graph.types.get(self.inputs[index], (onnx.TensorProto.UNDEFINED, None))[0]

    def maybe_shape(self, index: int = 0) -> Shape | None:
        return self.graph.types.get(self.inputs[index], (0, None))[1]

    def shape(self, index: int = 0) -> Shape:
        shape = self.maybe_shape(index)
        if shape is None:
            raise Unfit(f"the rank of {self.inputs[index]!r} is unknown")
        return shape

    def rank(self, index: int = 0) -> int:
        return len(self.shape(index))

    def extents(self, index: int, first: int) -> list[int]:
        """Returns the extents of an input from the dimension `first` on, which may count from the end."""
        rank = self.rank(index)
        extents = self.shape(index)[first if first >= 0 else first + rank :]
        if None in extents:
            raise Unfit(f"an extent of {self.inputs[index]!r} is unknown: {list(self.shape(index))}")
        return [extent for extent in extents if extent is not None]
