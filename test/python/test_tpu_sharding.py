"""Tests kernels for TPUs under shard_map, on several devices of the CPU, which a new process gets.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT, build_package

pytest.importorskip("jax", reason="JAX is not installed")

# The callbacks of Pallas' interpreter wait for arrays on threads of XLA, of which NPROC sets the number.
DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "NPROC": "16"}

START = """
import sys

import jax
import jax.numpy as jnp
import kpkg
import kpkg.jax
import numpy as np
from jax.sharding import PartitionSpec

ops = {name: kpkg.jax.load(path) for name, path in (each.split("=") for each in sys.argv[1:])}
mesh = jax.make_mesh((4,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
rows, whole = PartitionSpec("rows"), PartitionSpec()
x = jnp.asarray(np.random.default_rng(0).standard_normal((4, 70)), jnp.float32)

def sharded(call, *specs, out=rows):
    return jax.jit(jax.shard_map(call, mesh=mesh, in_specs=specs, out_specs=out))

def lowered(call, arrays, *specs):
    arrays = [
        jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=jax.sharding.NamedSharding(mesh, spec))
        for array, spec in zip(arrays, specs)
    ]
    return str(jax.export.export(sharded(call, *specs), platforms=["tpu"])(*arrays).mlir_module())
"""


def run(code, **packages):
    """Runs a test in a process with four devices, which has opened these packages for TPUs."""
    environment = {**os.environ, "PYTHONPATH": ":".join([str(BUILD / "python"), *sys.path]), **DEVICES}
    given = [f"{name}={path}" for name, path in packages.items()]
    command = [sys.executable, "-c", START + code, *given]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr


def family(name):
    options = ("--target", "tpu", "--dtypes", "float32")
    return build_package(ROOT / "kernels_src" / name, BUILD / "test-packages" / "tpu" / f"{name}.kpkg", *options)


def test_values_and_gradients():
    code = """
from jax.nn import softmax

with kpkg.jax.tpu_interpreter():
    y = sharded(ops["softmax"].softmax, rows)(x)
    np.testing.assert_allclose(y, softmax(x), rtol=1e-5, atol=1e-6)
    assert len(y.sharding.device_set) == 4

def norm(x, weight, bias):
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias

def gradients(function, *arrays):
    def loss(x, weight, bias):
        return jax.lax.psum((function(x, weight, bias) ** 2).sum(), "rows")

    return jax.grad(sharded(loss, rows, whole, whole, out=whole), argnums=(0, 1, 2))(*arrays)

arrays = x, jnp.linspace(0.5, 1.5, 70), jnp.linspace(-1.0, 1.0, 70)
with kpkg.jax.tpu_interpreter():
    made = gradients(lambda x, weight, bias: ops["norm"].layer_norm(x, [70], weight, bias), *arrays)
for one, other in zip(made, gradients(norm, *arrays)):
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
"""
    run(code, softmax=family("softmax"), norm=family("norm"))


def test_lowering():
    code = """
doubled = ops["doubled"].doubled
np.testing.assert_array_equal(sharded(doubled, rows)(x.ravel()), 2 * x.ravel())  # on CPUs
assert "tpu_custom_call" in lowered(doubled, [x.ravel()], rows)

# Lists of tokens come from kernels with gathers, which run as XLA's own ops.
tokens, weights, experts = jnp.ones((8, 64)), jnp.ones((8, 2)), jnp.ones((8, 2), jnp.int32)
arrays = [tokens, jnp.ones((4, 64, 64)), jnp.ones((4, 64, 32)), weights, experts]
assert "tpu_custom_call" in lowered(ops["moe"].moe, arrays, rows, whole, whole, rows, rows)

numbers, argmax = x.astype(jnp.int32), lambda x: ops["reduction"].argmax(x, 1)
assert "tpu_custom_call" in lowered(argmax, [x], rows)
jax.make_jaxpr(sharded(argmax, rows))(numbers)
try:
    lowered(argmax, [numbers], rows)
except kpkg.KernelError as error:
    assert "search_integers has no instance for tpu" in str(error)
else:
    raise AssertionError("the kernel is there")
"""
    source = ROOT / "test" / "tools" / "kpkg" / "inputs" / "doubled.k"
    package = BUILD / "test-packages" / "tpu" / "doubled.kpkg"
    doubled = build_package(source, package, "--target", "native,tpu")
    run(code, doubled=doubled, moe=family("moe"), reduction=family("reduction"))
