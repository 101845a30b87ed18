"""Tests ops as functions of JAX on the CPU: values, transformations, errors, and memory that is not copied.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import kpkg
import ml_dtypes
import numpy as np
import pytest
from conftest import BUILD, ROOT, load_source

pytest.importorskip("jax", reason="JAX is not installed")

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

jax.config.update("jax_num_cpu_devices", 2)


@pytest.fixture(scope="module")
def ops(packages):
    """Returns the packages of the families, open for JAX."""
    return {family: kpkg.jax.load(path) for family, path in packages.items()}


def drawn(*shape, seed=0, dtype=np.float32):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def close(actual, expected, tolerance=1e-5):
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(actual), jax.tree.leaves(expected)):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(np.asarray(one, np.float64), np.asarray(other, np.float64), tolerance, tolerance)


def layer_norm(x, weight, bias, eps=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + eps) * weight + bias


def attention(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
    visible = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(visible, scores, -jnp.inf)), v)


def conv2d(x, w, b):
    sums = jax.lax.conv_general_dilated(x, w, (2, 1), ((1, 1), (0, 0)))
    return sums + b[:, None, None]


def max_pool2d(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "VALID")


def cross_entropy(x, target):
    return -jnp.take_along_axis(jax.nn.log_softmax(x), target[:, None], 1).mean()


def rms_norm(x, weight):
    return x / jnp.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * weight


TARGET = jnp.asarray([3, 0, 6, 2, 2], jnp.int32)

# Family, the op with its other arguments, the same in JAX, and the arrays.
CASES = {
    "softmax": ("softmax", lambda op: lambda x: op.softmax(x, 1), lambda x: jax.nn.softmax(x, 1), [(3, 5, 7)]),
    "log_softmax": ("softmax", lambda op: op.log_softmax, jax.nn.log_softmax, [(5, 7)]),
    "logsumexp": ("softmax", lambda op: op.logsumexp, lambda x: jax.nn.logsumexp(x, -1), [(5, 7)]),
    "layer_norm": ("norm", lambda op: lambda x, w, b: op.layer_norm(x, [7], w, b), layer_norm, [(5, 7), (7,), (7,)]),
    "rms_norm": ("norm", lambda op: lambda x, w: op.rms_norm(x, [7], w), rms_norm, [(3, 5, 7), (7,)]),
    "gemm": ("gemm", lambda op: op.gemm, lambda a, b: a @ b, [(5, 7), (7, 3)]),
    "linear": ("gemm", lambda op: op.linear, lambda x, w, b: x @ w.T + b, [(2, 5, 7), (3, 7), (3,)]),
    "bmm": ("gemm", lambda op: op.bmm, lambda a, b: a @ b, [(2, 5, 7), (2, 7, 3)]),
    "attention": (
        "attention",
        lambda op: lambda q, k, v: op.scaled_dot_product_attention(q, k, v, is_causal=True),
        attention,
        [(2, 3, 9, 16)] * 3,
    ),
    "conv2d": (
        "conv",
        lambda op: lambda x, w, b: op.conv2d(x, w, b, stride=[2, 1], padding=[1, 0]),
        conv2d,
        [(2, 3, 9, 11), (5, 3, 3, 2), (5,)],
    ),
    "max_pool2d": ("pooling", lambda op: lambda x: op.max_pool2d(x, 3, stride=2), max_pool2d, [(2, 3, 9, 11)]),
    "silu": ("elementwise", lambda op: op.silu, jax.nn.silu, [(3, 5)]),
    "swiglu": ("elementwise", lambda op: op.swiglu, lambda a, b: jax.nn.silu(a) * b, [(3, 5), (3, 5)]),
    "cumsum": ("scan", lambda op: lambda x: op.cumsum(x, 0), lambda x: jnp.cumsum(x, 0), [(5, 7)]),
    "cross_entropy": (
        "cross_entropy",
        lambda op: lambda x: op.cross_entropy(x, TARGET),
        lambda x: cross_entropy(x, TARGET),
        [(5, 7)],
    ),
}


@pytest.fixture(params=CASES)
def case(request, ops):
    """Returns a call of kpkg, the same in JAX, and arrays for both."""
    family, call, reference, shapes = CASES[request.param]
    return call(ops[family]), reference, [drawn(*shape, seed=seed) for seed, shape in enumerate(shapes)]


def test_values(case):
    call, reference, arrays = case
    close(call(*arrays), reference(*arrays))
    close(jax.jit(call)(*arrays), reference(*arrays))


def test_gradients(case):
    call, reference, arrays = case
    weights = drawn(*jax.eval_shape(reference, *arrays).shape, seed=9)
    places = tuple(range(len(arrays)))

    def gradients(function, *arrays):
        return jax.grad(lambda *arrays: (function(*arrays) * weights).sum(), places)(*arrays)

    close(gradients(call, *arrays), gradients(reference, *arrays), 1e-4)
    close(jax.jit(lambda *arrays: gradients(call, *arrays))(*arrays), gradients(reference, *arrays), 1e-4)


def test_vmap(case):
    call, reference, arrays = case
    stacked = [jnp.stack([array, 2 * array], axis=1) for array in arrays]
    close(jax.vmap(call, in_axes=1)(*stacked), jax.vmap(reference, in_axes=1)(*stacked), 1e-4)
    axes = (1, *[None] * (len(arrays) - 1))
    close(jax.vmap(call, axes)(stacked[0], *arrays[1:]), jax.vmap(reference, axes)(stacked[0], *arrays[1:]), 1e-4)


def test_gradients_under_vmap(case):
    call, reference, arrays = case
    stacked = [jnp.stack([array, 2 * array]) for array in arrays]

    def gradients(function):
        return jax.vmap(jax.grad(lambda *arrays: (function(*arrays) ** 2).sum(), tuple(range(len(arrays)))))

    close(gradients(call)(*stacked), gradients(reference)(*stacked), 1e-3)


def custom_calls(function, *arrays):
    return str(jax.make_jaxpr(function)(*arrays)).count("ffi_call[")


def test_vmap_makes_one_call_where_the_op_allows_it(ops):
    x, w = drawn(4, 5, 7), drawn(3, 7)
    for call in (
        lambda x: ops["softmax"].softmax(x, 0),
        lambda x: ops["softmax"].softmax(x, -1),
        lambda x: ops["norm"].rms_norm(x, [7]),
        lambda x: ops["elementwise"].swiglu(x, jnp.ones((5, 7))),
        lambda x: ops["gemm"].linear(x, w),
        jax.grad(lambda x: ops["softmax"].softmax(x, 0)[0].sum()),
        jax.grad(lambda x: ops["elementwise"].silu(x).sum()),
    ):
        program = str(jax.make_jaxpr(jax.vmap(call))(x))
        assert "ffi_call[" in program and "scan[" not in program and "while[" not in program
    assert "scan[" in str(jax.make_jaxpr(jax.vmap(lambda x: ops["gemm"].gemm(x, w.T)))(x))


def test_gradients_are_asked_for_anew_at_each_trace(ops):
    x, w, b = drawn(5, 7), drawn(7, seed=1), drawn(7, seed=2)

    @jax.jit
    def loss(x, w, b):
        return (ops["norm"].layer_norm(x, [7], w, b) ** 2).sum()

    every = jax.grad(lambda *arrays: (layer_norm(*arrays) ** 2).sum(), (0, 1, 2))(x, w, b)
    for places in ((0, 1, 2), (0,), (0, 1), (2,), (0, 1, 2)):
        close(jax.grad(loss, places)(x, w, b), tuple(every[i] for i in places), 1e-4)


def test_gradient_without_those_that_are_not_needed(ops):
    x, w, b = drawn(5, 7), drawn(7, seed=1), drawn(7, seed=2)
    program = str(jax.make_jaxpr(jax.grad(lambda x: ops["norm"].layer_norm(x, [7], w, b).sum()))(x))
    assert "('needs_weight', np.False_)" in program


def test_shard_map(ops):
    mesh = jax.make_mesh((2,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
    rows, whole = PartitionSpec("rows"), PartitionSpec()
    x, w, b = drawn(6, 7), drawn(7, seed=1), drawn(7, seed=2)

    def loss(function):
        def of_part(x, w, b):
            return jax.lax.psum((function(x, w, b) ** 2).sum(), "rows")

        return jax.shard_map(of_part, mesh=mesh, in_specs=(rows, whole, whole), out_specs=whole)

    def call(x, w, b):
        return ops["norm"].layer_norm(x, [7], w, b)

    sharded = jax.shard_map(ops["softmax"].softmax, mesh=mesh, in_specs=rows, out_specs=rows)
    close(jax.jit(sharded)(x), jax.nn.softmax(x))
    assert len(jax.jit(sharded)(x).sharding.device_set) == 2
    close(jax.jit(loss(call))(x, w, b), loss(layer_norm)(x, w, b))
    close(jax.grad(loss(call), (0, 1, 2))(x, w, b), jax.grad(loss(layer_norm), (0, 1, 2))(x, w, b), 1e-4)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_short_floats(ops, dtype):
    x = drawn(5, 7).astype(dtype)
    close(ops["softmax"].softmax(x), jax.nn.softmax(x.astype(np.float32)).astype(dtype), 1e-2)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
def test_integers_wrap_around(ops, dtype):
    limits = jnp.iinfo(dtype)
    a, b = jnp.asarray([limits.min, limits.max, 7], dtype), jnp.asarray([limits.max, 5, 0], dtype)
    close(jax.jit(ops["elementwise"].mul)(a, b), a * b)
    close(ops["elementwise"].sub(a, b), a - b)


def test_8_bit_floats_and_named_dtypes(ops):
    x = drawn(5, 32)
    for dtype in ("float8_e4m3fn", jnp.float8_e4m3fn):
        values, scales = ops["quantize"].quantize_per_token(x, dtype)
        assert values.dtype == jnp.float8_e4m3fn
        close(values.astype(np.float32) * scales, x, 0.1)


def test_64_bits(ops):
    with jax.enable_x64(True):
        x = drawn(5, 7, dtype=np.float64)
        close(ops["softmax"].softmax(x), jax.nn.softmax(x), 1e-12)
        assert ops["reduction"].argmax(x, [1]).dtype == np.int64


def test_indices_are_32_bits_without_x64(ops):
    x = drawn(5, 7)
    close(ops["reduction"].argmax(x, 1), jnp.argmax(x, 1).astype(np.int32))
    close(jax.vmap(lambda x: ops["reduction"].argmax(x, 0))(x), jnp.argmax(x, 1).astype(np.int32))
    values, indices = ops["scan"].cummax(x, 1)
    close(values, jax.lax.cummax(x, 1))
    close(jnp.take_along_axis(x, indices, 1), values)
    close(jax.grad(lambda x: ops["scan"].cummax(x, 1)[0].sum())(x), jax.grad(lambda x: jax.lax.cummax(x, 1).sum())(x))


def test_an_index_has_no_gradient(ops):
    x = drawn(5, 7)
    close(jax.grad(lambda x: x.sum() * ops["reduction"].argmax(x, 1).sum())(x), x * 0 + jnp.argmax(x, 1).sum())


def test_absent_tensors_and_results(ops):
    x = drawn(5, 7)
    close(ops["norm"].layer_norm(x, [7]), layer_norm(x, 1, 0))
    residual_sum = ops["residual"].residual_rms_norm(x, x)[1]
    close(residual_sum, 2 * x)


def test_writing_ops_return_new_values(ops, packages):
    arrays = [abs(drawn(11, seed=seed)) for seed in range(4)]
    expected = [np.array(array) for array in arrays]
    kpkg.load(packages["adamw"]).adamw_(*expected, 3)
    before = np.array(arrays[0])
    param, first, second = ops["adamw"].adamw_(*arrays, 3)
    assert (np.array(arrays[0]) == before).all(), "the argument is as it was"
    close([param, first, second], [jnp.asarray(expected[i]) for i in (0, 2, 3)])


def test_donated_arrays_are_written_in_place(ops):
    arrays = [abs(drawn(11, seed=seed)) for seed in range(4)]
    step = jax.jit(lambda *arrays: ops["adamw"].adamw_(*arrays, 3), donate_argnums=(0, 2, 3))
    address = arrays[0].unsafe_buffer_pointer()
    assert step(*arrays)[0].unsafe_buffer_pointer() == address


def test_nothing_is_copied(ops, packages):
    x, w, b = drawn(64, 40), drawn(40), drawn(40)
    function = ops["norm"].layer_norm
    before = function.op.stats()
    jax.block_until_ready(jax.jit(lambda x, w, b: function(x, [40], w, b))(x, w, b))
    after = function.op.stats()
    assert after["calls"] == before["calls"] + 1
    assert after["copies"] == before["copies"] and after["copied_bytes"] == before["copied_bytes"]


def test_several_threads(ops):
    call = jax.jit(lambda x: ops["softmax"].softmax(x) @ x.T)
    arrays = [drawn(17, 33, seed=seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for x, result in zip(arrays * 8, pool.map(call, arrays * 8)):
            close(result, jax.nn.softmax(x) @ x.T, 1e-4)


def test_empty_arrays(ops):
    assert ops["elementwise"].silu(jnp.zeros((0, 3))).shape == (0, 3)


def test_numpy_arrays_are_taken(ops):
    x = np.ones((2, 4), np.float32)
    close(ops["softmax"].softmax(x), jnp.full((2, 4), 0.25, np.float32))


def test_signature_and_help(ops):
    function = ops["softmax"].softmax
    assert list(inspect.signature(function).parameters) == ["input", "dim", "dtype", "batch_invariant"]
    assert inspect.signature(function).parameters["dim"].default == -1
    assert function.__doc__.startswith("softmax(Tensor input, int dim=-1, ScalarType? dtype=None, bool batch_inv")
    assert "softmax" in dir(ops["softmax"]) and ops["softmax"]["kpkg::softmax"] is function


def test_a_package_is_opened_once(packages):
    assert kpkg.jax.load(packages["softmax"]) is kpkg.jax.load(str(packages["softmax"]))


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ((jnp.ones((2, 3)), 5), kpkg.KernelError, "dimension 5 is out of range"),
        ((jnp.ones((2, 3)), 1.5), TypeError, "argument 'dim' is 1.5, expected int"),
        ((3.0,), TypeError, "argument 'input' is 3.0, expected an array of JAX or NumPy"),
        ((), TypeError, "needs argument 'input'"),
        ((jnp.ones((2, 3), np.int32),), RuntimeError, "dtype int32 is not supported by kpkg::softmax"),
    ],
)
def test_refused_arguments(ops, arguments, error, text):
    with pytest.raises(error, match=text):
        jax.block_until_ready(ops["softmax"].softmax(*arguments))


def test_ops_with_lists_of_tensors_are_refused():
    text = """
@register.op("kpkg_jax::first")
def first(xs: List[Tensor]) raises -> Tensor:
    return zeros_like(xs[0])
"""
    first = kpkg.jax.load(load_source("jax/lists", text).path)["kpkg_jax::first"]
    with pytest.raises(TypeError, match="kpkg_jax::first takes a list of tensors, which functions of JAX do not"):
        first([jnp.ones(3)])


def test_traced_number(ops):
    x = jnp.ones((2, 3))
    with pytest.raises(TypeError, match="'dim' is traced by JAX.*static_argnames"):
        jax.jit(ops["softmax"].softmax)(x, 1)
    close(jax.jit(ops["softmax"].softmax, static_argnames="dim")(x, dim=0), jnp.full((2, 3), 0.5))


def test_op_without_gradient(ops):
    with pytest.raises(kpkg.KernelError, match="kpkg::gemm_batched has no gradient.*jax.custom_vjp"):
        jax.grad(lambda x: ops["gemm"].gemm_batched(x, x).sum())(drawn(2, 3, 3))


def test_unknown_op(ops):
    with pytest.raises(AttributeError, match="has no op 'softmx'"):
        ops["softmax"].softmx


def test_a_program_of_a_package_that_is_not_open():
    x = jnp.ones((3, 5))
    call = jax.ffi.ffi_call("kpkg_call", jax.ShapeDtypeStruct(x.shape, x.dtype))
    with pytest.raises(RuntimeError, match="has not loaded the package of 0:kpkg::softmax: call kpkg.jax.load"):
        jax.block_until_ready(call(x, _op="0:kpkg::softmax", _form="tv", _results="t", dim=np.int64(1)))


def test_kernel_info_lists_the_package_that_torch_calls(packages, tmp_path):
    torch = pytest.importorskip("torch")
    library = kpkg.load(packages["vector_add"])
    copy = tmp_path / "copy.kpkg"
    shutil.copy(packages["vector_add"], copy)
    later = kpkg._library.CustomOpLibrary(copy)  # as kpkg.jax opens packages
    library.vector_add(torch.ones(3), torch.ones(3))
    entry = kpkg.kernel_info("vector_add")
    assert (entry["package"], entry["calls"]) == (library.path, 1)
    assert later.path == str(copy)


def run_python(code, **variables):
    """Runs a script in a new process, and returns its output."""
    environment = {"PYTHONPATH": ":".join([str(BUILD / "python"), *sys.path]), **variables}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_works_without_torch(packages):
    code = f"""
import sys, kpkg
assert "jax" not in sys.modules
softmax = kpkg.jax.load({str(packages["softmax"])!r}).softmax
import numpy as np
print(softmax(np.ones((1, 4), "float32"))[0, 0])
assert "torch" not in sys.modules
"""
    assert run_python(code) == "0.25\n"


def test_ops_of_all_packages(packages):
    code = "import kpkg.jax, jax.numpy as jnp; print(kpkg.jax.ops.softmax(jnp.ones((1, 4)))[0, 0])"
    assert run_python(code, KPKG_PATH=str(packages["softmax"])) == "0.25\n"


def test_page(packages, tmp_path):
    """Runs every marked example of docs/jax.md in order."""
    examples = re.findall(r"<!-- run -->\n```python\n(.*?)```", (ROOT / "docs" / "jax.md").read_text(), re.S)
    assert len(examples) >= 3
    shutil.copy(packages["softmax"], tmp_path)
    assert "softmax" in run_python("\n".join([f"import os; os.chdir({str(tmp_path)!r})", *examples]))
