"""Tests the rewriting of ONNX models: which nodes become ops, why others stay, and equal results in ONNX Runtime.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from conftest import BUILD

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
import kpkg.onnx  # noqa: E402
from kpkg.__main__ import main  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

FAMILIES = ("elementwise", "softmax", "norm", "channel_norm", "gemm", "conv", "attention")


def constant(name, *shape, dtype=np.float32):
    values = np.random.default_rng(len(name)).uniform(0.1, 1, shape)
    return numpy_helper.from_array(values.astype(dtype), name)


def model_of(nodes, shape, constants=(), opset=23, dtype=TensorProto.FLOAT):
    """Returns a model with the input x and the result y."""
    x = helper.make_tensor_value_info("x", dtype, shape)
    graph = helper.make_graph(nodes, "graph", [x], [onnx.ValueInfoProto(name="y")], list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def session_of(model, packages=()):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # its threads wait by spinning
    if packages:
        kpkg.onnx.register(options, *packages)
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(model, x, packages=()):
    return session_of(model, packages).run(None, {"x": x})[0]


def one(op, inputs=("x",), **attributes):
    return helper.make_node(op, inputs, ["y"], **attributes)


W = constant("w", 6)
IMAGE = ("N", 4, 9, 8)
# The op, its node, the shape of x, and its constants.
CASES = [
    *(
        (op.lower(), one(op), ("N", 7), ())
        for op in ("Relu", "Sigmoid", "Tanh", "Exp", "Abs", "Mish", "Softsign", "Softplus", "HardSwish")
    ),
    ("leaky_relu", one("LeakyRelu", alpha=0.3), ("N", 7), ()),
    ("leaky_relu", one("LeakyRelu"), ("N", 7), ()),
    ("elu", one("Elu", alpha=0.3), ("N", 7), ()),
    ("selu", one("Selu"), ("N", 7), ()),
    ("gelu", one("Gelu"), ("N", 7), ()),
    ("gelu", one("Gelu", approximate="tanh"), ("N", 7), ()),
    ("add", one("Add", ["x", "w"]), ("N", 6), [W]),
    ("sub", one("Sub", ["w", "x"]), ("N", 6), [W]),
    ("mul", one("Mul", ["x", "s"]), ("N", 6), [constant("s")]),
    ("div", one("Div", ["x", "w"]), ("N", 6), [W]),
    ("softmax", one("Softmax"), ("N", 7, 5), ()),
    ("softmax", one("Softmax", axis=1), ("N", 7, 5), ()),
    ("log_softmax", one("LogSoftmax", axis=0), ("N", 7), ()),
    ("layer_norm", one("LayerNormalization", ["x", "w", "b"], epsilon=1e-3), ("N", 6), [W, constant("b", 6)]),
    ("layer_norm", one("LayerNormalization", ["x", "m"], axis=-2), ("N", 5, 6), [constant("m", 5, 6)]),
    (
        "group_norm",
        one("GroupNormalization", ["x", "c", "b"], num_groups=2),
        IMAGE,
        [constant("c", 4), constant("b", 4)],
    ),
    ("instance_norm", one("InstanceNormalization", ["x", "c", "b"]), IMAGE, [constant("c", 4), constant("b", 4)]),
    (
        "batch_norm",
        one("BatchNormalization", ["x", "c", "b", "mean", "variance"], epsilon=1e-3),
        IMAGE,
        [constant(name, 4) for name in ("c", "b", "mean", "variance")],
    ),
    ("matmul", one("MatMul", ["x", "v"]), ("N", 3, 6), [constant("v", 6, 5)]),
    ("gemm", one("Gemm", ["x", "v"]), ("N", 6), [constant("v", 6, 5)]),
    ("gemm", one("Gemm", ["x", "v", "b"], transB=1, alpha=0.5), ("N", 6), [constant("v", 5, 6), constant("b", 5)]),
    ("gemm", one("Gemm", ["x", "v", "b"], transA=1, beta=0.5), (6, 3), [constant("v", 6, 5), constant("b", 3, 5)]),
    ("conv2d", one("Conv", ["x", "k"]), IMAGE, [constant("k", 5, 4, 3, 3)]),
    (
        "conv2d",
        one("Conv", ["x", "k", "b"], pads=[1, 2, 1, 2], strides=[2, 1], group=2),
        IMAGE,
        [constant("k", 6, 2, 3, 3), constant("b", 6)],
    ),
    ("conv1d", one("Conv", ["x", "k"], dilations=[2], auto_pad="VALID"), ("N", 4, 9), [constant("k", 5, 4, 3)]),
    (
        "conv_transpose2d",
        one("ConvTranspose", ["x", "k"], strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]),
        IMAGE,
        [constant("k", 4, 3, 3, 3)],
    ),
    ("scaled_dot_product_attention", one("Attention", ["x", "x", "x"], is_causal=1), (2, 3, 5, 8), ()),
    ("scaled_dot_product_attention", one("Attention", ["x", "x", "x"], scale=0.3), ("N", 3, 5, 8), ()),
]


FAMILY_OF = {
    **dict.fromkeys(("softmax", "log_softmax"), "softmax"),
    **dict.fromkeys(("layer_norm", "rms_norm"), "norm"),
    **dict.fromkeys(("group_norm", "instance_norm", "batch_norm"), "channel_norm"),
    **dict.fromkeys(("matmul", "gemm"), "gemm"),
    **dict.fromkeys(("conv1d", "conv2d", "conv_transpose2d"), "conv"),
    "scaled_dot_product_attention": "attention",
}


def side_by_side(cases):
    """Returns a model with the nodes of all cases, whose tensors have the number of the case in their names."""
    nodes, inputs, results, constants = [], [], [], []
    for i, (_, node, shape, own) in enumerate(cases):
        made = onnx.NodeProto()
        made.CopyFrom(node)
        made.input[:], made.output[:] = [f"{name}{i}" for name in node.input], [f"y{i}"]
        nodes.append(made)
        named = [f"N{i}" if extent == "N" else extent for extent in shape]
        inputs.append(helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, named))
        results.append(onnx.ValueInfoProto(name=f"y{i}"))
        constants += [numpy_helper.from_array(numpy_helper.to_array(each), f"{each.name}{i}") for each in own]
    graph = helper.make_graph(nodes, "graph", inputs, results, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


@pytest.mark.parametrize("family", FAMILIES)
def test_nodes_with_the_same_results(family, packages):
    cases = [case for case in CASES if FAMILY_OF.get(case[0], "elementwise") == family]
    model = side_by_side(cases)
    rewritten = kpkg.onnx.rewrite(model, [packages[family]])
    assert [(made.domain, made.op_type) for made in rewritten.model.graph.node] == [("kpkg", case[0]) for case in cases]
    ours, theirs = session_of(rewritten.model, [packages[family]]), session_of(model)
    for rows in (3, 1):
        draw = np.random.default_rng(rows)
        shapes = {f"x{i}": [rows if extent == "N" else extent for extent in case[2]] for i, case in enumerate(cases)}
        inputs = {name: draw.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        for case, result, expected in zip(cases, ours.run(None, inputs), theirs.run(None, inputs)):
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=2e-5, err_msg=str(case[1]))


@pytest.mark.parametrize("name", ["float16", "float64"])
def test_other_dtypes(name, packages):
    chosen = [packages["norm"], packages["softmax"]]
    dtype = np.dtype(name)
    constants = [constant("w", 6, dtype=dtype)]
    nodes = [helper.make_node("LayerNormalization", ["x", "w"], ["z"]), helper.make_node("Softmax", ["z"], ["y"])]
    model = model_of(nodes, ("N", 6), constants, dtype=helper.np_dtype_to_tensor_dtype(dtype))
    rewritten = kpkg.onnx.rewrite(model, chosen)
    assert [change.op for change in rewritten.changes] == ["kpkg::layer_norm", "kpkg::softmax"]
    x = np.random.default_rng(0).standard_normal((5, 6)).astype(dtype)
    limit = 2e-3 if name == "float16" else 1e-9
    np.testing.assert_allclose(run(rewritten.model, x, chosen), run(model, x), rtol=limit, atol=limit)


@pytest.mark.parametrize(
    ("node", "shape", "constants", "opset", "reason"),
    [
        (one("Softmax"), ("N", 7, 5), (), 11, "before opset 13 axis 1 also means the dimensions behind it"),
        (one("Selu", alpha=1.5), ("N", 7), (), 23, "alpha is 1.5, and kpkg's op has 1.67"),
        (one("LayerNormalization", ["x", "w"]), ("N", None), [W], 23, "an extent of 'x' is unknown: [None, None]"),
        (one("LayerNormalization", ["x", "s"]), ("N", 6), [constant("s", 1)], 23, "'s' is broadcast from [1] to [6]"),
        (
            one("Conv", ["x", "k"], pads=[0, 0, 1, 1]),
            IMAGE,
            [constant("k", 5, 4, 3, 3)],
            23,
            "pads [0, 0, 1, 1] differ at the two ends",
        ),
        (
            one("Conv", ["x", "k"], auto_pad="SAME_UPPER"),
            IMAGE,
            [constant("k", 5, 4, 3, 3)],
            23,
            "auto_pad is SAME_UPPER",
        ),
        (
            one("Gemm", ["x", "v", "s"]),
            ("N", 6),
            [constant("v", 6, 5), constant("s", 1)],
            23,
            "C of [1] is broadcast to [None, 5]",
        ),
        (one("Softmax"), None, (), 11, "the rank of 'x' is unknown"),
    ],
)
def test_reasons(node, shape, constants, opset, reason, packages):
    model = model_of([node], shape, constants, opset)
    rewritten = kpkg.onnx.rewrite(model, [packages["softmax"]])
    (change,) = rewritten.changes
    assert change.op is None and reason in change.reason, change
    assert f"1 x {node.op_type}: stays: " in str(rewritten) and rewritten.model == model


def test_dtypes_and_packages_without_a_kernel(packages):
    model = model_of([one("Relu")], ("N", 7), dtype=TensorProto.INT32)
    (change,) = kpkg.onnx.rewrite(model, [packages["elementwise"]]).changes
    assert change.reason == "its dtype is int32, and kpkg's op is for floats"
    (change,) = kpkg.onnx.rewrite(model_of([one("Relu")], ("N", 7)), [packages["softmax"]]).changes
    assert change.reason == "no package has kpkg::relu"


def test_used_results(packages):
    node = helper.make_node("LayerNormalization", ["x", "w"], ["y", "mean"])
    (change,) = kpkg.onnx.rewrite(model_of([node], ("N", 6), [W]), [packages["norm"]]).changes
    assert change.reason == "its result 'mean' is used"


def test_a_network_and_its_report(packages):
    all_packages = [packages[family] for family in ("conv", "elementwise", "gemm", "softmax")]
    nodes = [
        helper.make_node("Conv", ["x", "k", "b"], ["1"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["1"], ["2"]),
        helper.make_node("Flatten", ["2"], ["3"]),
        helper.make_node("Gemm", ["3", "v", "c"], ["4"]),
        helper.make_node("Relu", ["4"], ["5"]),
        helper.make_node("Softmax", ["5"], ["y"]),
    ]
    constants = [constant("k", 5, 4, 3, 3), constant("b", 5), constant("v", 5 * 72, 6), constant("c", 6)]
    model = model_of(nodes, IMAGE, constants)
    rewritten = kpkg.onnx.rewrite(model, all_packages)
    lines = str(rewritten).splitlines()
    assert sorted(lines[:-1]) == [
        "1 x Conv: kpkg::conv2d",
        "1 x Gemm: kpkg::gemm",
        "1 x Relu: kpkg::relu",
        "1 x Relu: kpkg::relu",
        "1 x Softmax: kpkg::softmax",
    ]
    assert lines[-1] == "no op of kpkg: 1 x Flatten"
    x = np.random.default_rng(0).standard_normal((3, 4, 9, 8)).astype(np.float32)
    np.testing.assert_allclose(run(rewritten.model, x, all_packages), run(model, x), rtol=1e-4, atol=1e-6)
    only = kpkg.onnx.rewrite(model, [packages["softmax"]], only=["Softmax"])
    assert [change.op for change in only.changes] == ["kpkg::softmax"]


def test_measured(packages, monkeypatch):
    """Which node is faster depends on the machine. What is kept must agree with the times."""
    from kpkg.onnx import _measure

    monkeypatch.setattr(_measure, "_SECONDS", 0.02)
    nodes = [helper.make_node("LayerNormalization", ["x", "w"], ["z"]), helper.make_node("Softmax", ["z"], ["y"])]
    model = model_of(nodes, ("rows", 6), [W])
    chosen = [packages["norm"], packages["softmax"]]
    with pytest.raises(ValueError, match="needs all extents of the model's inputs, and lacks 'rows'"):
        kpkg.onnx.rewrite(model, chosen, measure=True)
    rewritten = kpkg.onnx.rewrite(model, chosen, dims={"rows": 65}, measure=True)
    assert {change.op_type for change in rewritten.changes} == {"LayerNormalization", "Softmax"}
    for change in rewritten.changes:
        assert change.times is not None and change.times.difference is None
        assert change.op is None or change.times.is_not_slower()
        assert change.op or "slower" in change.reason
    kept = [change for change in rewritten.changes if change.op]
    assert bool(kept) == (rewritten.times is not None)
    x = np.random.default_rng(0).standard_normal((3, 6)).astype(np.float32)
    np.testing.assert_allclose(run(rewritten.model, x, chosen), run(model, x), rtol=1e-5, atol=1e-6)


def test_results_that_differ_are_found(packages, monkeypatch):
    from kpkg.onnx import _measure, _rules

    monkeypatch.setattr(_measure, "_SECONDS", 0.02)
    monkeypatch.setitem(_rules.RULES, "Softmax", lambda node: _rules.Call("log_softmax", node.inputs))
    rewritten = kpkg.onnx.rewrite(model_of([one("Softmax")], (3, 6)), [packages["softmax"]], measure=True)
    (change,) = rewritten.changes
    assert change.op is None and change.reason.startswith("the results differ by ")


def test_command(packages, tmp_path):
    source, target = tmp_path / "model.onnx", tmp_path / "rewritten.onnx"
    onnx.save(model_of([one("Softmax")], ("N", 6)), source)
    done = subprocess.run(
        [sys.executable, "-m", "kpkg", "onnx", source, packages["softmax"], "-o", target],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(BUILD / "python")},
    )
    assert (done.returncode, done.stdout) == (0, "1 x Softmax: kpkg::softmax\n"), done.stderr
    assert onnx.load(target).graph.node[0].domain == "kpkg"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["absent.onnx", "PACKAGE"], 3, "No such file"),
        (["damaged.onnx", "PACKAGE"], 3, "is no ONNX model"),
        (["model.onnx", "damaged.onnx"], 3, "has 5 bytes"),
        (["model.onnx", "PACKAGE", "--measure"], 3, "lacks 'N': dims={...}, or --dim NAME=N"),
        (["model.onnx", "PACKAGE", "--dim", "N"], 2, "--dim 'N' is not NAME=N, as batch=8"),
    ],
)
def test_messages_of_the_command(arguments, code, message, packages, tmp_path, monkeypatch, capsys):
    onnx.save(model_of([one("Softmax")], ("N", 6)), tmp_path / "model.onnx")
    (tmp_path / "damaged.onnx").write_text("hello")
    paths = [tmp_path / each if each.endswith(".onnx") else each for each in arguments]
    paths = [packages["softmax"] if each == "PACKAGE" else each for each in paths]
    monkeypatch.setattr(sys, "argv", ["kpkg", "onnx", *map(str, paths), "-o", str(tmp_path / "out.onnx")])
    assert main() == code
    assert message in capsys.readouterr().err
