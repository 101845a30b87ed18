"""Tests kernels for TPUs without one: in Pallas' interpreter against the specs, and lowered ahead of time.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import re

import kpkg
import numpy as np
import pytest
import torch
from conftest import BUILD, ROOT, build_package
from opspec import Sample, as_tuple, load_specs

pytest.importorskip("jax", reason="JAX is not installed")

import jax
import jax.numpy as jnp
import kpkg.jax
from kpkg.jax._pallas import Launch
from kpkg.jax._tile_kernel import KNOWN
from kpkg.jax._tile_memory import Tensor
from kpkg.jax._tile_program import read

SPECS = {spec.name: spec for spec in load_specs()}


@pytest.fixture(scope="module")
def tpu():
    """Returns ops of packages with float32 kernels for TPUs alone."""
    opened = {}

    def op(family, name):
        if family not in opened:
            package = BUILD / "test-packages" / "tpu" / f"{family}.kpkg"
            options = ("--target", "tpu", "--dtypes", "float32")
            opened[family] = kpkg.jax.load(build_package(ROOT / "kernels_src" / family, package, *options))
        return opened[family]["kpkg::" + name]

    return op


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def lowered(op, args):
    """Returns the program that JAX lowers for TPUs, as text. Arrays are its arguments."""
    arrays = [each for each in args if isinstance(each, jax.Array)]

    def run(*tensors):
        rest = iter(tensors)
        return op(*(next(rest) if isinstance(each, jax.Array) else each for each in args))

    return str(jax.export.export(jax.jit(run), platforms=["tpu"])(*arrays).mlir_module())


QKV = [normal(1, 2, 19, 40, seed=seed) for seed in range(3)]

# Family, op, and a call with odd shapes.
CALLS = {
    "elementwise": ("elementwise", "gelu", [normal(5, 1001)]),
    "softmax": ("softmax", "softmax", [normal(3, 300), -1]),
    "softmax of columns": ("softmax", "softmax", [normal(2, 37, 70), 1]),
    "softmax of nothing": ("softmax", "softmax", [normal(3, 0), 1]),
    "layer_norm": ("norm", "layer_norm", [normal(3, 333), [333], normal(333, seed=1), normal(333, seed=2)]),
    "linear": ("gemm", "linear", [normal(37, 70), normal(130, 70, seed=1), normal(130, seed=2)]),
    "reduction": ("reduction", "sum", [normal(37, 70), [0]]),
    "attention": ("attention", "attention", QKV),
}


@pytest.mark.parametrize("family, name, args", CALLS.values(), ids=CALLS)
def test_in_the_interpreter_and_lowered(family, name, args, tpu):
    op, arrays = tpu(family, name), [jnp.asarray(a.numpy()) if isinstance(a, torch.Tensor) else a for a in args]
    with kpkg.jax.tpu_interpreter():
        results = as_tuple(op(*arrays))
    SPECS[f"kpkg::{name}"].check(Sample(tuple(args)), tuple(torch.from_numpy(np.array(each)) for each in results))
    assert "tpu_custom_call" in lowered(op, arrays) or not args[0].numel()


def test_exported_programs_hold_the_kernels(tpu):
    softmax = jax.jit(tpu("softmax", "softmax"))
    exported = jax.export.export(softmax, platforms=["tpu"])(jnp.ones((4, 8)))
    again = jax.export.deserialize(exported.serialize())
    assert "tpu_custom_call" in again.mlir_module() and "kpkg_call" not in again.mlir_module()
    shape = jax.ShapeDtypeStruct(jax.export.symbolic_shape("n, 8"), jnp.float32)
    with pytest.raises(kpkg.KernelError, match=r"kpkg::softmax got a tensor of the symbolic shape \(n, 8\): packages"):
        jax.export.export(softmax, platforms=["tpu"])(shape)


def test_gradients_of_attention(tpu):
    op, arrays = tpu("attention", "attention"), [jnp.asarray(each.numpy()) for each in QKV]

    def gradients(*arrays):
        return jax.grad(lambda *a: (op(*a)[0] ** 2).sum(), argnums=(0, 1, 2))(*arrays)

    with kpkg.jax.tpu_interpreter():
        results = gradients(*arrays)
    exact = [each.double().requires_grad_() for each in QKV]
    (torch.nn.functional.scaled_dot_product_attention(*exact) ** 2).sum().backward()
    for result, leaf in zip(results, exact):
        np.testing.assert_allclose(np.asarray(result), leaf.grad.numpy(), rtol=1e-4, atol=1e-4)
    assert lowered(gradients, arrays).count("tpu_custom_call") > 2


def test_experts(tpu):
    """Their lists of tokens come from kernels with gathers, which run as XLA's own ops beside Pallas kernels."""
    spec = SPECS["kpkg::moe"]
    sample = next(iter(spec.samples(torch.float32, torch.Generator().manual_seed(0))))
    arrays = sample.map(lambda tensor: jnp.asarray(tensor.contiguous().numpy()))
    with kpkg.jax.tpu_interpreter():
        results = as_tuple(tpu("moe", "moe")(*arrays.args, **arrays.kwargs))
    spec.check(sample, tuple(torch.from_numpy(np.array(each)) for each in results))


PICKED = """
@kernel
def pick(x: Tensor[float32, 1], at: Tensor[int64, 1], mut y: Tensor[float32, 1], mut z: Tensor[int64, 1], skipped: Int):
    var i = at.tile[128](block_idx.x).load()
    var inside = (i >= 0) & (i < x.shape[0])
    y.tile[128](block_idx.x).store(select(i == skipped * 8, -1.0, x.gather(i, mask=inside, fill=nan)))
    z.tile[128](block_idx.x).store(i)

@register.op("demo::picked")
def picked(x: Tensor, at: Tensor, skipped: Int) raises -> Tuple[Tensor, Tensor]:
    if at.dtype != int64:
        raise Error("at is {}, expected int64", at.dtype)
    var y = empty(at.shape, dtype=x.dtype)
    var z = empty_like(at)
    launch pick(x, at, y, z, skipped, grid=ceildiv(at.numel(), 128))
    return y, z
"""


def test_indices_of_64_bits_are_those_of_32(tmp_path):
    (tmp_path / "picked.k").write_text(PICKED)
    picked = kpkg.jax.load(build_package(tmp_path / "picked.k", tmp_path / "picked.kpkg", "--target", "tpu")).picked
    x = jnp.arange(5, dtype=jnp.float32)
    at = jnp.asarray([4, 0, -1, 5, 2, 2**31 - 1, -(2**31), 3, *[1] * 130], jnp.int32)
    exact = np.array([4, -1, np.nan, np.nan, 2, np.nan, np.nan, 3, *[1] * 130], np.float32)
    for is_wide in (False, True):
        with jax.enable_x64(is_wide):
            with kpkg.jax.tpu_interpreter():
                y, z = picked(x, at, 0)
            np.testing.assert_array_equal(y, exact)
            np.testing.assert_array_equal(z, at)
            assert z.dtype == (jnp.int64 if is_wide else jnp.int32)
            lowered(lambda x, at: picked(x, at, 0), [x, at])
    for skipped, message in [(1 << 30, "the number 1073741824 is over 2^29"), (1 << 29, "with the number 4294967296")]:
        with kpkg.jax.tpu_interpreter(), pytest.raises(kpkg.KernelError, match=re.escape(message)):
            picked(x, at, skipped)
    with jax.enable_x64(True), pytest.raises(kpkg.KernelError, match="at is int64, but TPUs have 32 bits of integers"):
        lowered(lambda x, at: picked(x, at, 0), [x, at.astype(jnp.int64)])


ASSERTED = """
@kernel
def half(x: Tensor[float32, 1], mut y: Tensor[float32, 1], divisor: Int):
    debug_assert(divisor > 0, "the divisor is positive")
    var v = x.tile[128](block_idx.x).load()
    debug_assert(v >= 0, "elements are positive")
    y.tile[128](block_idx.x).store(v / divisor.cast[float32]())

@register.op("demo::half_of")
def half_of(x: Tensor, divisor: Int) -> Tensor:
    var y = empty_like(x)
    launch half(x, y, divisor, grid=ceildiv(x.numel(), 128))
    return y
"""


def test_assertions_about_numbers_are_checked(tmp_path):
    (tmp_path / "half.k").write_text(ASSERTED)
    half = kpkg.jax.load(build_package(tmp_path / "half.k", tmp_path / "half.kpkg", "--target", "tpu")).half_of
    with kpkg.jax.tpu_interpreter():
        np.testing.assert_array_equal(half(jnp.asarray([3.0, -4.0]), 2), [1.5, -2])
        with pytest.raises(kpkg.KernelError, match="half: the divisor is positive"):
            half(jnp.ones(2), 0)
    lowered(lambda x: half(x, 2), [jnp.ones(2)])


def test_argmax(tpu):
    x = jnp.asarray(normal(37, 70).numpy())
    with kpkg.jax.tpu_interpreter():
        np.testing.assert_array_equal(tpu("reduction", "argmax")(x, 1), jnp.argmax(x, 1))


def test_what_a_package_lacks_is_an_error_where_it_runs(tpu, packages):
    x = jnp.ones((3, 5), jnp.int32)
    op = tpu("reduction", "argmax")
    with kpkg.jax.tpu_interpreter(), pytest.raises(kpkg.KernelError, match="search_integers has no instance for tpu"):
        op(x)
    with pytest.raises(kpkg.KernelError, match="search_integers has no instance for tpu; building with --target tpu"):
        lowered(op, [x])
    x = jnp.ones((3, 5))
    with kpkg.jax.tpu_interpreter(), pytest.raises(kpkg.KernelError, match="its package has no kernels for TPUs"):
        kpkg.jax.load(packages["softmax"]).softmax(x)


def program(body, arguments=(["view", "f32", 2], ["view", "f32", 2])):
    return json.dumps({"version": 1, "name": "k", "arguments": arguments, "body": body}).encode()


INDEX, TILE = ["scalar", "index"], ["tile", "f32", [8, 192]]


@pytest.mark.parametrize(
    "text, message",
    [
        (program([["os.system", [], {}, []]]), "'os.system' is no op of tile programs"),
        (program([["tile.dim", [2], {"dimension": 0}, [INDEX]]]), "tile.dim reads the value 2, which is not defined"),
        (program([], [["view", "f64", 2]]), "views of f64 are not known"),
        (program([["tile.iota", [], {}, [["tile", "f32", [1 << 40]]]]]), "a tile of shape"),
        (b'{"version": 2}', "version 2 of tile programs is not known"),
        (b"[" * 100000, "malformed"),
    ],
)
def test_malformed_programs_are_refused(text, message):
    with pytest.raises(kpkg.KernelError, match=re.escape(message)):
        read(text, KNOWN)


def copies(tile, step):
    """Returns a program that copies tiles of this shape, at multiples of `step` columns."""
    constants = [["arith.constant", [], {"value": value}, [INDEX]] for value in (0, step)]
    kind = ["tile", "f32", list(tile)]
    body = [
        *constants,
        ["tile.block_id", [], {"axis": 0}, [INDEX]],
        ["arith.muli", [4, 3], {}, [INDEX]],
        ["arith.constant", [], {"value": "0x0p+0"}, [["scalar", "f32"]]],
        ["tile.load", [0, 2, 5, 6], {}, [kind]],
        ["tile.store", [7, 1, 2, 5], {}, []],
        ["tile.return", [], {}, []],
    ]
    return read(program(body), KNOWN)


def test_sizes_that_may_need_more_than_32_bits_are_errors():
    views = [["view", "i64", 1], ["scalar", "index"]]
    written = read(program([["tile.return", [], {}, []]], views), KNOWN)
    for extent, number, text in [(1 << 29, 0, "argument 0 has 2^29 elements or more"), (4, 1 << 30, "the number")]:
        tensor = Tensor("argument 0", (extent,), np.dtype(np.int32), True)
        with pytest.raises(kpkg.KernelError, match=re.escape(f"kernel k: {text}")):
            Launch(written, [tensor, number], (1, 1, 1))


def launched(tile, step, shape=(8, 1000)):
    tensors = [Tensor(f"argument {i}", shape, np.dtype(np.float32), i == 1) for i in range(2)]
    x = jnp.arange(np.prod(shape), dtype=jnp.float32).reshape(shape)
    launch = Launch(copies(tile, step), tensors, (-(-shape[1] // step), 1, 1))
    return x, launch({0: x, 1: jnp.full(shape, jnp.nan)}, interpret=True)[1]


def test_tiles_of_other_widths_than_the_tiling_are_arranged_in_blocks():
    x, y = launched((8, 192), 192)
    np.testing.assert_array_equal(x, y)


def test_tiles_that_tpus_cannot_copy_are_errors():
    with pytest.raises(
        kpkg.KernelError, match="kernel k: argument 0 is accessed by tiles of 192 elements at multiples of 64 along"
    ):
        launched((8, 192), 64)
    with pytest.raises(kpkg.KernelError, match="kernel k: its tiles take 33554432 bytes of VMEM, of which a kernel"):
        launched((4096, 2048), 2048)


def test_the_page_the_compiler_and_the_evaluator_have_the_same_ops():
    listed = re.findall(r'OP\("(.*)"\)', (ROOT / "compiler" / "codegen" / "tile_program" / "Ops.def").read_text())
    page = (
        (ROOT / "docs" / "tpu.md").read_text().partition("## What the target takes")[2].partition("\n\nThe target")[0]
    )
    assert sorted(listed) == sorted(KNOWN) == sorted(set(re.findall(r"`((?:tile|arith|math|scf)\.\w+)`", page)))
