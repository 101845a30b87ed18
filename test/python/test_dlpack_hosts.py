"""Tests calls with arrays of NumPy, Paddle and CuPy, by DLPack: of Python, and of C through tvm-ffi.

Paddle and CuPy are large, and no requirement of the tests: without them, their tests are skipped.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import numpy as np
import pytest


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def drawn():
    return np.random.default_rng(0).standard_normal((5, 33)).astype(np.float32)


@pytest.fixture
def ops(packages):
    return kpkg.load(packages["softmax"])


@pytest.fixture
def module(packages):
    """Returns the package as a module of tvm-ffi, which takes arrays by DLPack's exchange in C."""
    tvm_ffi = pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed")
    pytest.importorskip("kpkg.tvm_ffi", reason="this build has no apache-tvm-ffi", exc_type=ImportError)
    return tvm_ffi.load_module(packages["softmax"])


def test_numpy(ops, module):
    x = drawn()
    y = ops.softmax(x.T[::2])
    assert type(y) is np.ndarray
    np.testing.assert_allclose(y, softmax(x.T[::2]), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(np.from_dlpack(module.softmax(x)), softmax(x), rtol=1e-5, atol=1e-7)


def test_paddle(ops, module):
    paddle = pytest.importorskip("paddle", reason="paddlepaddle is not installed")
    x, out = paddle.to_tensor(drawn(), place="cpu"), paddle.zeros([5, 33])
    np.testing.assert_allclose(ops.softmax(x), softmax(drawn()), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(ops.softmax(x.T), softmax(drawn().T), rtol=1e-5, atol=1e-7)
    assert ops.softmax.supports(x) and not ops.softmax.supports(x.astype("int32"))
    assert ops.softmax(x, out=out) is out
    np.testing.assert_allclose(out.numpy(), softmax(drawn()), rtol=1e-5, atol=1e-7)
    with pytest.raises(kpkg.KernelError, match="dtype int32 is not supported"):
        ops.softmax(x.astype("int32"))
    y = module.softmax(x, -1)
    assert type(y) is paddle.Tensor
    np.testing.assert_allclose(y.numpy(), softmax(drawn()), rtol=1e-5, atol=1e-7)


@pytest.mark.cuda
def test_cupy(ops, module):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    if not cupy.is_available():
        pytest.skip("no NVIDIA GPU")
    x, out = cupy.asarray(drawn()), cupy.full((5, 33), cupy.nan, cupy.float32)
    ops.softmax(x, out=out)
    np.testing.assert_allclose(cupy.asnumpy(out), softmax(drawn()), rtol=1e-5, atol=1e-7)
    with pytest.raises(kpkg.KernelError, match="results on a device other than the host need `out`"):
        ops.softmax(x)
    y = cupy.from_dlpack(module.softmax(x, -1))
    np.testing.assert_allclose(cupy.asnumpy(y), softmax(drawn()), rtol=1e-5, atol=1e-7)
