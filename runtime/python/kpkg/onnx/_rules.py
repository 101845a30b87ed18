"""Says which op of kpkg computes exactly what a node of the ONNX standard computes.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from onnx import TensorProto

from kpkg.onnx._graph import Node, Unfit

FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


@dataclass
class Call:
    """A node of the domain `kpkg`."""

    op: str
    inputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)


Rule = Callable[[Node], Call]


def call_of(node: Node) -> Call:
    """Returns the call that replaces the node. Raises Unfit with the reason if there is none."""
    if node.dtype() not in FLOATS:
        name = TensorProto.DataType.Name(node.dtype())
        raise Unfit(f"its dtype is {name.lower()}, and kpkg's op is for floats")
    return RULES[node.proto.op_type](node)


def _demand(node: Node, name: str, default: Any, wanted: Any) -> None:
    value = node.attribute(name, default)
    if value != wanted:
        raise Unfit(f"{name} is {value}, and kpkg's op has {wanted}")


def _unary(op: str, **renamed: tuple[str, float]) -> Rule:
    """Makes the rule of an elementwise op. `renamed` gives the kpkg's name and ONNX's default of attributes."""

    def rule(node: Node) -> Call:
        return Call(op, node.inputs[:1], {ours: node.attribute(name, it) for name, (ours, it) in renamed.items()})

    return rule


def _binary(op: str) -> Rule:
    def rule(node: Node) -> Call:
        if node.opset < 7:
            raise Unfit("before opset 7 it broadcasts in another way")
        return Call(op, node.inputs)

    return rule


def _gelu(node: Node) -> Call:
    return Call("gelu", node.inputs, {"approximate": node.attribute("approximate", "none")})


def _softplus(node: Node) -> Call:
    if node.dtype() == TensorProto.DOUBLE:
        raise Unfit("kpkg's op is linear above 20, which float64 shows")
    return Call("softplus", node.inputs)


def _selu(node: Node) -> Call:
    for name, wanted in (("alpha", 1.67326319217681884765625), ("gamma", 1.05070102214813232421875)):
        _demand(node, name, wanted, wanted)
    return Call("selu", node.inputs)


def _swish(node: Node) -> Call:
    _demand(node, "alpha", 1.0, 1.0)
    return Call("silu", node.inputs)


def _softmax(op: str) -> Rule:
    def rule(node: Node) -> Call:
        axis = node.attribute("axis", -1 if node.opset >= 13 else 1)
        if node.opset < 13 and axis not in (-1, node.rank() - 1):
            raise Unfit(f"before opset 13 axis {axis} also means the dimensions behind it")
        return Call(op, node.inputs, {"dim": axis})

    return rule


def _normalised(node: Node) -> tuple[list[int], float]:
    """Returns normalized_shape and eps of LayerNormalization and RMSNormalization."""
    node.only_result()
    _demand(node, "stash_type", 1, 1)
    shape = node.extents(0, node.attribute("axis", -1))
    for parameter in range(1, len(node.inputs)):
        if node.has(parameter) and list(node.shape(parameter)) != shape:
            raise Unfit(f"{node.inputs[parameter]!r} is broadcast from {list(node.shape(parameter))} to {shape}")
    return shape, node.attribute("epsilon", 1e-5)


def _layer_norm(node: Node) -> Call:
    shape, eps = _normalised(node)
    return Call("layer_norm", node.inputs, {"normalized_shape": shape, "eps": eps})


def _rms_norm(node: Node) -> Call:
    shape, eps = _normalised(node)
    return Call("rms_norm", node.inputs, {"normalized_shape": shape, "eps": eps})


def _group_norm(node: Node) -> Call:
    if node.opset < 21:
        raise Unfit("before opset 21 it has one weight for each group")
    _demand(node, "stash_type", 1, 1)
    attributes = {"num_groups": node.attribute("num_groups", 0), "eps": node.attribute("epsilon", 1e-5)}
    return Call("group_norm", node.inputs, attributes)


def _instance_norm(node: Node) -> Call:
    return Call("instance_norm", node.inputs, {"eps": node.attribute("epsilon", 1e-5)})


def _batch_norm(node: Node) -> Call:
    _demand(node, "training_mode", 0, 0)
    _demand(node, "spatial", 1, 1)
    node.only_result()
    x, scale, bias, mean, variance = node.inputs
    return Call("batch_norm", [x, mean, variance, scale, bias], {"eps": node.attribute("epsilon", 1e-5)})


def _matmul(node: Node) -> Call:
    return Call("matmul", node.inputs)


def _gemm(node: Node) -> Call:
    beta = node.attribute("beta", 1.0)
    attributes = {
        "alpha": node.attribute("alpha", 1.0),
        "transpose_a": node.attribute("transA", 0),
        "transpose_b": node.attribute("transB", 0),
    }
    if not node.has(2):
        return Call("gemm", node.inputs[:2], attributes)
    a, b, c = node.inputs
    rows = node.shape(0)[1 if attributes["transpose_a"] else 0]
    columns = node.shape(1)[0 if attributes["transpose_b"] else 1]
    shape = node.shape(2)
    if columns is not None and shape == (columns,) and beta == 1.0:
        return Call("gemm", [a, b, "", c], attributes)
    if None not in (rows, columns) and shape == (rows, columns):
        return Call("gemm", [a, b, c], attributes | {"beta": beta})
    raise Unfit(f"C of {list(shape)} is broadcast to {[rows, columns]}, or scaled by {beta}")


def _windows(node: Node) -> dict[str, Any]:
    """Returns the attributes that convolutions share."""
    spatial = node.rank() - 2
    if spatial not in (1, 2, 3):
        raise Unfit(f"it has {spatial} spatial dimensions, and kpkg's ops have 1 to 3")
    auto = node.attribute("auto_pad", "NOTSET")
    if auto not in ("NOTSET", "VALID"):
        raise Unfit(f"auto_pad is {auto}")
    pads = node.attribute("pads", None) if auto == "NOTSET" else None
    pads = pads or [0] * (2 * spatial)
    if pads[:spatial] != pads[spatial:]:
        raise Unfit(f"pads {list(pads)} differ at the two ends")
    return {
        "stride": node.attribute("strides", [1] * spatial),
        "padding": pads[:spatial],
        "dilation": node.attribute("dilations", [1] * spatial),
        "groups": node.attribute("group", 1),
    }


def _conv(node: Node) -> Call:
    attributes = _windows(node)
    return Call(f"conv{node.rank() - 2}d", node.inputs, attributes)


def _conv_transpose(node: Node) -> Call:
    if node.attribute("output_shape", None):
        raise Unfit("output_shape is given")
    attributes = _windows(node)
    spatial = node.rank() - 2
    attributes["output_padding"] = node.attribute("output_padding", [0] * spatial)
    return Call(f"conv_transpose{spatial}d", node.inputs, attributes)


def _attention(node: Node) -> Call:
    node.only_result()
    if any(node.has(index) for index in range(4, len(node.inputs))):
        raise Unfit("it has a cache")
    if node.rank() != 4:
        raise Unfit("its heads are not a dimension of their own")
    for name in ("softcap", "qk_matmul_output_mode", "softmax_precision"):
        _demand(node, name, 0, 0)
    is_causal = node.attribute("is_causal", 0)
    if is_causal and (node.has(3) or node.extents(0, 2)[0] != node.extents(1, 2)[0]):
        raise Unfit("a causal mask beside another, or for queries and keys of two lengths")
    heads, key_heads = node.extents(0, 1)[0], node.extents(1, 1)[0]
    attributes = {"is_causal": is_causal, "enable_gqa": int(heads != key_heads)}
    if node.attribute("scale", None) is not None:
        attributes["scale"] = node.attribute("scale", None)
    return Call("scaled_dot_product_attention", node.inputs, attributes)


#: Rules by the type of the node, in the domain of the standard.
RULES: dict[str, Rule] = {
    **{
        name: _unary(name.lower())
        for name in ("Relu", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Abs", "Mish", "Softsign", "HardSwish")
    },
    "LeakyRelu": _unary("leaky_relu", alpha=("negative_slope", 0.01)),
    "Elu": _unary("elu", alpha=("alpha", 1.0)),
    "Gelu": _gelu,
    "Softplus": _softplus,
    "Selu": _selu,
    "Swish": _swish,
    **{name: _binary(name.lower()) for name in ("Add", "Sub", "Mul", "Div")},
    "Softmax": _softmax("softmax"),
    "LogSoftmax": _softmax("log_softmax"),
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm,
    "BatchNormalization": _batch_norm,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Attention": _attention,
}
