"""Tests ops of packages as nodes of ONNX Runtime on the CPU: values, shapes, dtypes, results, errors.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from conftest import BUILD, ROOT, load_source

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
import kpkg.onnx  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

PAGE = (ROOT / "docs" / "onnx.md").read_text()


def model_of(op, inputs, results=("y",), domain="kpkg", result_types=None, **attributes):
    """Returns a model with one node. `inputs` are (name, type, shape), where "" leaves an input out."""
    node = helper.make_node(op, [name for name, *_ in inputs], results, domain=domain, **attributes)
    types = result_types or [None] * len(results)
    graph = helper.make_graph(
        [node],
        "node",
        [helper.make_tensor_value_info(*one) for one in inputs if one[0]],
        [
            helper.make_tensor_value_info(name, dtype, None) if dtype else onnx.ValueInfoProto(name=name)
            for name, dtype in zip(results, types)
            if name
        ],
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(domain, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def session_of(model, *packages):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # its threads wait by spinning
    kpkg.onnx.register(options, *packages)
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(package, op, arrays, shapes=None, **rest):
    """Runs one node with arrays by input name."""
    shapes = shapes or {name: array.shape for name, array in arrays.items()}
    inputs = [(name, helper.np_dtype_to_tensor_dtype(array.dtype), shapes[name]) for name, array in arrays.items()]
    return session_of(model_of(op, inputs, **rest), package).run(None, arrays)


def drawn(*shape, dtype=np.float32):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (2, 3, 65), (7, 1000), (0, 4), (5,)])
def test_shapes(packages, shape):
    x = drawn(*shape)
    (y,) = run(packages["softmax"], "softmax", {"x": x})
    np.testing.assert_allclose(y, torch.from_numpy(x).softmax(-1).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_floats(packages, dtype):
    x = drawn(9, 33, dtype=dtype)
    (y,) = run(packages["softmax"], "softmax", {"x": x}, dim=0)
    assert y.dtype == dtype
    expected = torch.from_numpy(x).double().softmax(0).numpy()
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=2e-3 if dtype == "float16" else 1e-5, atol=1e-6)


COPY = """
@kernel
@specialize(T=[TYPES])
def copy_block[T: DType](x: Tensor[T, 1], mut y: Tensor[T, 1]):
    var i = block_idx.x
    y.tile[64](i).store(x.tile[64](i).load())

@register.op("onnxtest::copied")
def copied(x: Tensor) -> Tensor:
    \"\"\"Copies a tensor of one dimension.\"\"\"
    var y = empty_like(x)
    launch copy_block[T=x.dtype](x, y, grid=ceildiv(x.numel(), 64))
    return y
"""
TYPES = (
    "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, "
    "float8_e4m3fn, float8_e5m2"
)
ALL = "BOOL INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 FLOAT16 BFLOAT16 FLOAT DOUBLE FLOAT8E4M3FN FLOAT8E5M2"


def test_every_dtype_in_a_domain_of_its_own():
    session_types = {}
    for name in ALL.split():
        dtype = getattr(TensorProto, name)
        model = model_of("copied", [("x", dtype, ["N"])], domain="onnxtest")
        session = session_of(model, load_source("onnx_copied", COPY.replace("TYPES", TYPES)).path)
        array = (np.arange(70) % 2).astype(helper.tensor_dtype_to_np_dtype(dtype))
        bits = array.view(f"uint{8 * array.itemsize}")
        value = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, dtype)
        (y,) = session.run_with_ort_values(None, {"x": value})
        session_types[name] = y.element_type()
        binding = session.io_binding()
        out = np.zeros_like(bits)
        binding.bind_ortvalue_input("x", value)
        binding.bind_ortvalue_output("y", onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(out, dtype))
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(out, bits)
    assert session_types == {name: getattr(TensorProto, name) for name in ALL.split()}


def test_results_go_to_the_memory_that_the_caller_binds(packages):
    x = drawn(64, 64)
    session = session_of(model_of("relu", [("x", TensorProto.FLOAT, ["N", "M"])]), packages["elementwise"])
    out = np.full_like(x, np.nan)
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y", "cpu", 0, np.float32, out.shape, out.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(out, np.maximum(x, 0))


def test_several_results_of_two_dtypes(packages):
    x = drawn(6, 9)
    values, indices = run(packages["sorting"], "topk", {"x": x}, results=("v", "i"), k=3)
    expected = torch.from_numpy(x).topk(3)
    np.testing.assert_array_equal(values, expected[0].numpy())
    np.testing.assert_array_equal(indices, expected[1].numpy())


@pytest.mark.parametrize(("results", "kept"), [(("v",), 0), (("", "i"), 1)])
def test_results_that_the_node_leaves_out(packages, results, kept):
    x = drawn(6, 9)
    (one,) = run(packages["sorting"], "topk", {"x": x}, results=results, k=3)
    np.testing.assert_array_equal(one, torch.from_numpy(x).topk(3)[kept].numpy())


def test_optional_inputs(packages):
    x, w, bias = drawn(5, 7), drawn(7, 3), drawn(3)
    inputs = [("a", TensorProto.FLOAT, [5, 7]), ("b", TensorProto.FLOAT, [7, 3]), ("", 0, None)]
    model = model_of("gemm", [*inputs, ("bias", TensorProto.FLOAT, [3])], alpha=0.5, activation="relu")
    (y,) = session_of(model, packages["gemm"]).run(None, {"a": x, "b": w, "bias": bias})
    np.testing.assert_allclose(y, np.maximum(0.5 * (x @ w) + bias, 0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run(packages["gemm"], "gemm", {"a": x, "b": w})[0], x @ w, rtol=1e-5, atol=1e-6)


def test_lists_and_numbers_as_attributes(packages):
    x, w = drawn(1, 4, 9, 8), drawn(4, 2, 3, 3)
    (y,) = run(packages["conv"], "conv2d", {"x": x, "w": w}, stride=[2, 1], padding=[1, 0], groups=2)
    expected = torch.nn.functional.conv2d(torch.from_numpy(x), torch.from_numpy(w), None, (2, 1), (1, 0), groups=2)
    np.testing.assert_allclose(y, expected.numpy(), rtol=1e-4, atol=1e-5)
    (y,) = run(packages["norm"], "layer_norm", {"x": drawn(3, 8)}, normalized_shape=[8], eps=1)  # an int for a float
    np.testing.assert_allclose(
        y, torch.nn.functional.layer_norm(torch.from_numpy(drawn(3, 8)), [8], eps=1.0), atol=1e-6
    )


@pytest.mark.parametrize(
    ("op", "family", "shape", "attributes", "expected"),
    [
        ("softmax", "softmax", ["N", "M"], {}, ["N", "M"]),
        ("softmax", "softmax", [3, "M"], {}, [3, "M"]),
        ("topk", "sorting", ["N", 9], {"k": 2}, ["N", 2]),
        ("logsumexp", "softmax", ["N", "M"], {"dim": 0}, ["M"]),
    ],
)
def test_shapes_are_inferred_with_names(packages, op, family, shape, attributes, expected):
    results = ("y", "i") if op == "topk" else ("y",)
    session = session_of(model_of(op, [("x", TensorProto.FLOAT, shape)], results, **attributes), packages[family])
    assert session.get_outputs()[0].shape == expected
    for rows in (3, 3, 2):  # the second call has the shapes of the first
        x = drawn(3 if shape[0] == 3 else rows, 9)
        y = torch.from_numpy(session.run(None, {"x": x})[0])
        x = torch.from_numpy(x)
        torch.testing.assert_close(
            y, {"softmax": x.softmax(-1), "topk": x.topk(min(2, 9))[0], "logsumexp": x.logsumexp(0)}[op]
        )


def test_extents_that_follow_others_have_names_of_their_own(packages):
    inputs = [("x", TensorProto.FLOAT, ["N", 3, "H", 16]), ("w", TensorProto.FLOAT, [4, 3, 3, 3])]
    session = session_of(model_of("conv2d", inputs, stride=[2, 2]), packages["conv"])
    rows, channels, height, width = session.get_outputs()[0].shape
    assert (rows, channels, width) == ("N", 4, 7) and height.startswith("kpkg_extent_")
    inputs = [("a", TensorProto.FLOAT, ["N"]), ("b", TensorProto.FLOAT, ["M"])]  # must be equal, or 1
    session = session_of(model_of("add", inputs), packages["elementwise"])
    np.testing.assert_array_equal(session.run(None, {"a": drawn(5), "b": drawn(1)})[0], drawn(5) + drawn(1))


def test_inputs_without_a_rank(packages):
    session = session_of(model_of("softmax", [("x", TensorProto.FLOAT, None)]), packages["softmax"])
    np.testing.assert_allclose(session.run(None, {"x": drawn(2, 3, 4)})[0].sum(-1), np.ones((2, 3)), rtol=1e-5)


@pytest.mark.parametrize(
    ("op", "attributes", "message"),
    [
        (
            "softmax",
            {"dim": 7},
            "kpkg::softmax: `input` (float32[3, 5]): dimension 7 is out of range, expected -2 to 1",
        ),
        (
            "softmax",
            {"dim": 1.5},
            "kpkg::softmax: attribute 'dim' has another type, expected int: softmax(Tensor input",
        ),
        ("softmax", {"dim": [1]}, "attribute 'dim' has another type, expected int"),
        ("layer_norm", {}, "kpkg::layer_norm: attribute 'normalized_shape' is missing: layer_norm(Tensor input"),
        ("layer_norm", {"normalized_shape": 5}, "attribute 'normalized_shape' has another type, expected int[]"),
    ],
)
def test_bad_attributes(packages, op, attributes, message):
    family = {"softmax": "softmax", "layer_norm": "norm"}[op]
    with pytest.raises(Exception, match=re.escape(message)):
        run(packages[family], op, {"x": drawn(3, 5)}, **attributes)


def test_bad_inputs(packages):
    with pytest.raises(Exception, match="NOT_IMPLEMENTED.*dtype int64 is not supported by kpkg::softmax"):
        run(packages["softmax"], "softmax", {"x": np.ones((3, 5), np.int64)})
    with pytest.raises(Exception, match="INVALID_ARGUMENT.*kpkg::gemm"):
        run(packages["gemm"], "gemm", {"a": drawn(3, 5), "b": drawn(6, 2)}, {"a": ["N", "K"], "b": ["L", "M"]})
    inputs = [("x", TensorProto.FLOAT, None)]
    model = model_of("topk", inputs, ("v", "i"), k=2, result_types=[TensorProto.FLOAT, TensorProto.FLOAT])
    with pytest.raises(Exception, match="result 1 has dtype int64, and the model takes it for float32"):
        session_of(model, packages["sorting"]).run(None, {"x": drawn(3, 5)})


def test_ops_that_nodes_cannot_express(packages):
    """Nodes never write into their inputs."""
    inputs = [(name, TensorProto.FLOAT, [4]) for name in "pgmv"]
    with pytest.raises(Exception, match="adamw_.* is not a registered function/op"):
        session_of(model_of("adamw_", inputs, step=1), packages["adamw"])


def test_packages_that_cannot_be_opened(packages, tmp_path, monkeypatch):
    damaged = tmp_path / "damaged.kpkg"
    damaged.write_text("hello")
    with pytest.raises(Exception, match="has 5 bytes"):
        kpkg.onnx.register(onnxruntime.SessionOptions(), damaged)
    with pytest.raises(Exception, match=r"cannot read '.*absent\.kpkg'"):
        kpkg.onnx.register(onnxruntime.SessionOptions(), tmp_path / "absent.kpkg")
    monkeypatch.delenv("KPKG_PATH", raising=False)
    with pytest.raises(Exception, match="no packages: set the session's config entry 'kpkg.packages', or KPKG_PATH"):
        kpkg.onnx.register(onnxruntime.SessionOptions())
    with pytest.raises(ValueError, match="has a colon"):
        kpkg.onnx.register(onnxruntime.SessionOptions(), "a:b.kpkg")
    options = onnxruntime.SessionOptions()
    kpkg.onnx.register(options, packages["softmax"])
    with pytest.raises(ValueError, match="have packages already, name all of them in one call"):
        kpkg.onnx.register(options, packages["gemm"])


def test_folders_and_the_environment(packages, tmp_path, monkeypatch):
    (tmp_path / "softmax.kpkg").symlink_to(packages["softmax"])
    model, x = model_of("softmax", [("x", TensorProto.FLOAT, [3, 5])]), drawn(3, 5)
    session_of(model, tmp_path).run(None, {"x": x})
    monkeypatch.setenv("KPKG_PATH", str(tmp_path))
    np.testing.assert_allclose(session_of(model).run(None, {"x": x})[0].sum(-1), np.ones(3), rtol=1e-5)


def test_many_sessions_and_threads(packages):
    model = model_of("softmax", [("x", TensorProto.FLOAT, ["N", 8])])
    session = session_of(model, packages["softmax"])
    for _ in range(3):
        session_of(model, packages["softmax"]).run(None, {"x": drawn(2, 8)})
        gc.collect()
    xs = [drawn(i % 5 + 1, 8) for i in range(64)]
    with ThreadPoolExecutor(4) as pool:
        for x, (y,) in zip(xs, pool.map(lambda x: session.run(None, {"x": x}), xs)):
            np.testing.assert_allclose(y, torch.from_numpy(x).softmax(-1).numpy(), rtol=1e-5)


def test_without_torch_and_without_the_library_kept_open(packages, tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(model_of("softmax", [("x", TensorProto.FLOAT, [3, 5])]), path)
    program = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "import numpy as np, onnxruntime, kpkg.onnx\n"
        "for _ in range(2):\n"
        "    options = onnxruntime.SessionOptions()\n"
        f"    kpkg.onnx.register(options, {str(packages['softmax'])!r})\n"
        f"    session = onnxruntime.InferenceSession({str(path)!r}, options)\n"
        "    print(session.run(None, {'x': np.ones((3, 5), np.float32)})[0][0, 0] == np.float32(0.2))\n"
        "    del session, options\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={"PYTHONPATH": str(BUILD / "python")}
    )
    assert done.stdout == "True\nTrue\n", done.stderr


def test_page(packages, tmp_path, monkeypatch):
    for family in ("softmax", "elementwise", "norm"):
        (tmp_path / f"{family}.kpkg").symlink_to(packages[family])
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    for example in re.findall(r"<!-- run -->\n```python\n(.*?)```", PAGE, re.S):
        exec(example, scope)
    np.testing.assert_allclose(scope["y"], scope["expected"], rtol=1e-5, atol=1e-6)
