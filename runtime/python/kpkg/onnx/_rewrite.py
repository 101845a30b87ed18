"""Rewrites nodes of ONNX models to ops of packages, and says of each what became of it.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from kpkg._library import CustomOpLibrary
from kpkg._op import Op
from kpkg.onnx._graph import STANDARD, Graph, Node, Unfit
from kpkg.onnx._measure import Times, compare_models, compare_nodes
from kpkg.onnx._rules import RULES, Call, call_of

DOMAIN = "kpkg"
#: Stands for extents without a number where only the dtypes matter.
_ANY_EXTENT = 8


@dataclass
class Change:
    """What became of nodes of one kind."""

    op_type: str
    #: Names of the nodes, or of their first results.
    nodes: list[str]
    #: Full name of the op in their place, or None.
    op: str | None
    #: Why they stay.
    reason: str | None = None
    times: Times | None = None

    def __str__(self) -> str:
        text = f"{len(self.nodes)} x {self.op_type}: " + (self.op if self.op else f"stays: {self.reason}")
        return f"{text} ({self.times})" if self.times else text


@dataclass
class Rewritten:
    """A model with nodes of kpkg."""

    model: onnx.ModelProto
    changes: list[Change]
    #: Types of nodes that have no rule, with their numbers.
    others: dict[str, int]
    #: Of the whole model, if measured.
    times: Times | None = None

    def __str__(self) -> str:
        lines = [str(change) for change in self.changes]
        if self.others:
            lines.append("no op of kpkg: " + ", ".join(f"{count} x {name}" for name, count in self.others.items()))
        if self.times:
            lines.append(f"the whole model: {self.times}")
        return "\n".join(lines)


@dataclass
class _Kind:
    """Nodes with the same call, dtypes and shapes."""

    call: Call
    nodes: list[Node] = field(default_factory=list)
    times: Times | None = None

    def name(self) -> str:
        return self.nodes[0].proto.op_type

    def gain(self) -> float:
        return 0.0 if self.times is None else (self.times.theirs - self.times.ours) * len(self.nodes)


def rewrite(
    model: onnx.ModelProto | str | os.PathLike[str],
    packages: Sequence[str | os.PathLike[str]],
    dims: Mapping[str, int] | None = None,
    measure: bool = False,
    only: Sequence[str] | None = None,
) -> Rewritten:
    """Returns the model with nodes of kpkg where the packages have an op that computes exactly what a node computes.

    Args:
        model: A model, or the path of one. Nodes of its main graph are rewritten.
        packages: The packages, files. A session needs the same ones: ``kpkg.onnx.register``.
        dims: Extents of inputs that have only a name. Measuring needs all of them.
        measure: Whether to run both nodes on the CPU. A node then stays if the results differ, or if kpkg is slower.
            At last both models run. Kinds of nodes stay until the whole model is not slower.
        only: Types of nodes, such as "Softmax"; the others stay.

    Raises ValueError if an extent that measuring needs is missing. Raises PackageError and OSError for packages that
    cannot be opened.
    """
    if not isinstance(model, onnx.ModelProto):
        model = onnx.load(model)
    return _Rewriting(model, packages, dims or {}, measure, only).run()


class _Rewriting:
    def __init__(
        self,
        model: onnx.ModelProto,
        packages: Sequence[str | os.PathLike[str]],
        dims: Mapping[str, int],
        measure: bool,
        only: Sequence[str] | None,
    ) -> None:
        self.model, self.measure, self.only = model, measure, only
        self.paths = [os.fspath(path) for path in packages]
        self.ops: dict[str, Op] = {}
        for path in packages:
            for op in CustomOpLibrary(path):
                self.ops.setdefault(op.name, op)
        self.graph = Graph(model, dims)
        if measure and self.graph.unknown:
            names = ", ".join(repr(name) if name else "one without a name" for name in sorted(self.graph.unknown))
            raise ValueError(
                f"measuring needs all extents of the model's inputs, and lacks {names}: dims={{...}}, or --dim NAME=N"
            )

    def run(self) -> Rewritten:
        taken, changes, others = self._sort()
        if self.measure:
            taken = [kind for kind in taken if self._is_good(kind, changes)]
        times = None
        while True:
            rewritten = self._write(taken)
            if not self.measure or not taken:
                break
            times = compare_models(self.graph.model, self._write(taken, self.graph.model), self.paths)
            if times.difference is None and times.is_not_slower():
                break
            worst = min(taken, key=_Kind.gain)
            taken.remove(worst)
            reason = times.difference or f"with it the whole model is slower, {times}"
            changes.append(self._change(worst, reason))
            times = None
        changes = [self._change(kind) for kind in taken] + changes
        return Rewritten(rewritten, changes, others, times)

    def _sort(self) -> tuple[list[_Kind], list[Change], dict[str, int]]:
        """Sorts the nodes: kinds that an op fits, those that stay, and numbers of types without a rule."""
        kinds: dict[str, _Kind] = {}
        stay: dict[tuple[str, str], Change] = {}
        others: dict[str, int] = {}
        for proto in self.model.graph.node:
            if proto.domain not in STANDARD or proto.op_type not in RULES:
                others[proto.op_type] = others.get(proto.op_type, 0) + 1
                continue
            if self.only is not None and proto.op_type not in self.only:
                continue
            node = Node(proto, self.graph)
            try:
                call = call_of(node)
                self._check(call)
            except Unfit as unfit:
                change = Change(proto.op_type, [], None, str(unfit))
                stay.setdefault((proto.op_type, str(unfit)), change).nodes.append(_name(node))
                continue
            types = [self.graph.types.get(name) for name in call.inputs]
            constant = [name in self.graph.constants for name in call.inputs]
            kinds.setdefault(repr((call.op, call.attributes, types, constant)), _Kind(call)).nodes.append(node)
        return list(kinds.values()), list(stay.values()), others

    def _check(self, call: Call) -> None:
        """Refuses calls that no kernel of the packages can run."""
        name = f"{DOMAIN}::{call.op}"
        op = self.ops.get(name)
        if op is None:
            raise Unfit(f"no package has {name}")
        tensors = iter([self._example(name) for name in call.inputs])
        given: dict[str, Any] = {}
        for argument in op.arguments:
            if argument.type.startswith("Tensor"):
                given[argument.name] = next(tensors, None)
            elif argument.name in call.attributes:
                value = call.attributes[argument.name]
                given[argument.name] = bool(value) if argument.type == "bool" else value
        if not op.supports(**{key: value for key, value in given.items() if value is not None}):
            raise Unfit(f"{name} has no kernel for {self._described(call)}")

    def _example(self, name: str) -> Any:
        """Returns an array of the tensor's dtype and shape, without contents."""
        if not name:
            return None
        dtype, shape = self.graph.types.get(name, (onnx.TensorProto.UNDEFINED, None))
        if dtype == onnx.TensorProto.UNDEFINED or shape is None:
            raise Unfit(f"the dtype and the rank of {name!r} are unknown")
        extents = [_ANY_EXTENT if extent is None else extent for extent in shape]
        return np.empty(extents, helper.tensor_dtype_to_np_dtype(dtype))

    def _described(self, call: Call) -> str:
        parts = []
        for name in filter(None, call.inputs):
            dtype, shape = self.graph.types[name]
            parts.append(f"{onnx.TensorProto.DataType.Name(dtype).lower()}{list(shape or ())}")
        return ", ".join(parts)

    def _is_good(self, kind: _Kind, changes: list[Change]) -> bool:
        """Measures nodes of one kind. Those that stay go to the changes."""
        node = kind.nodes[0]
        kind.times = compare_nodes(self.graph, node.proto, _made(node, kind.call), self.paths)
        reason = kind.times.difference
        if reason is None and not kind.times.is_not_slower():
            reason = "slower"
        if reason is not None:
            changes.append(self._change(kind, reason))
        return reason is None

    @staticmethod
    def _change(kind: _Kind, reason: str | None = None) -> Change:
        op = None if reason else f"{DOMAIN}::{kind.call.op}"
        return Change(kind.name(), [_name(node) for node in kind.nodes], op, reason, kind.times)

    def _write(self, kinds: list[_Kind], model: onnx.ModelProto | None = None) -> onnx.ModelProto:
        """Returns a copy of the model with these kinds rewritten."""
        model = model or self.model
        places = {one.output[0]: i for i, one in enumerate(model.graph.node) if one.output}
        written = onnx.ModelProto()
        written.CopyFrom(model)
        for kind in kinds:
            for node in kind.nodes:
                call = Call(kind.call.op, call_of(node).inputs, kind.call.attributes)
                written.graph.node[places[node.proto.output[0]]].CopyFrom(_made(node, call))
        if kinds and all(one.domain != DOMAIN for one in written.opset_import):
            written.opset_import.append(helper.make_opsetid(DOMAIN, 1))
        return written


def _made(node: Node, call: Call) -> onnx.NodeProto:
    inputs = list(call.inputs)
    while inputs and not inputs[-1]:
        inputs.pop()
    results = list(node.proto.output)
    while len(results) > 1 and not results[-1]:
        results.pop()
    return helper.make_node(call.op, inputs, results, node.proto.name, domain=DOMAIN, **call.attributes)


def _name(node: Node) -> str:
    return node.proto.name or node.proto.output[0]
