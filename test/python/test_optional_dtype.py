"""Tests optional dtype arguments: absent and given, through PyTorch, NumPy, compile, and shape plans.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import numpy as np
import pytest
import torch
from conftest import load_source

SOURCE = '''
@kernel
@specialize(T=[float32, float16], R=[float32, float16, int32])
def convert_elements[T: DType, R: DType](x: Tensor[T, 1], mut y: Tensor[R, 1]):
    y.tile[64](block_idx.x).store(x.tile[64](block_idx.x).load().cast[R]())

def dtype_or(dtype: Optional[DType], otherwise: DType) -> DType:
    return dtype if dtype is not None else otherwise

@register.op("kpkg_test::converted")
def converted(x: Tensor, dtype: Optional[DType] = None) raises -> Tensor:
    """x, with elements of a dtype."""
    if x.rank != 1 or (dtype is not None and dtype.bits < 16):
        raise Error("x has rank {}, dtype is {}", x.rank, dtype_or(dtype, x.dtype))
    var wanted = dtype_or(dtype, x.dtype)
    if wanted == int64:
        raise Error("int64 is too wide")
    var y = empty(x.shape, dtype=wanted)
    launch convert_elements[T=x.dtype, R=wanted](x, y, grid=ceildiv(x.shape[0], 64))
    return y

@register.op("kpkg_test::unguarded")
def unguarded(x: Tensor, dtype: Optional[DType] = None) raises -> Tensor:
    """What reads `dtype` although it may be absent."""
    var y = empty(x.shape, dtype=dtype)
    launch convert_elements[T=x.dtype, R=dtype](x, y, grid=ceildiv(x.shape[0], 64))
    return y

@register.op("kpkg_test::converted_twice")
def converted_twice(x: Tensor, dtype: Optional[DType] = None) raises -> Tuple[Tensor, Tensor]:
    return converted(x, dtype), converted(x, None)
'''


@pytest.fixture(scope="module")
def library():
    return load_source("optional/converted", SOURCE)


@pytest.mark.parametrize("dtype", [None, torch.float32, torch.float16, torch.int32])
@pytest.mark.parametrize("own", [torch.float32, torch.float16])
def test_absent_and_given(library, own, dtype):
    x = torch.arange(1.0, 70.0, dtype=own)
    wanted = x.to(dtype or own)
    for result in (library.converted(x, dtype), library.converted(x, dtype=dtype)):
        assert result.dtype == wanted.dtype and torch.equal(result, wanted)
    assert [r.dtype for r in library.converted_twice(x, dtype)] == [wanted.dtype, own]
    found = library.converted(x.numpy(), None if dtype is None else str(dtype).removeprefix("torch."))
    assert np.array_equal(found, wanted.numpy()) and found.dtype == wanted.numpy().dtype


def test_the_schema_is_pytorchs(library):
    assert "ScalarType? dtype=None" in library.converted.schema
    assert torch.ops.kpkg_test.converted(torch.ones(2)).dtype == torch.float32
    assert torch.ops.kpkg_test.converted(torch.ones(2), dtype=torch.float16).dtype == torch.float16


def test_compiled_and_fake(library):
    call = torch.compile(lambda x, t: torch.ops.kpkg_test.converted(x, t), fullgraph=True, backend="aot_eager")
    for dtype in (None, torch.int32):
        assert torch.equal(call(torch.ones(5), dtype), torch.ones(5, dtype=dtype))
        assert torch.ops.kpkg_test.converted(torch.ones(5, device="meta"), dtype).dtype == (dtype or torch.float32)


def test_shape_plans_know_absent_dtypes(library):
    from kpkg import _fake, _symbolic

    for dtype, name in ((None, "float32"), (torch.float16, "float16")):
        values = library.converted.bind((torch.ones(3), dtype), {})
        assert [r[2] for r in _symbolic.infer(library.converted, values)] == [name]
        assert [r[2] for r in _fake._infer(library.converted, values)] == [name]
    with pytest.raises(kpkg.KernelError, match="rank 1, dtype is int8"):
        _symbolic.infer(library.converted, library.converted.bind((torch.ones(1), torch.int8), {}))


def test_a_dtype_that_is_absent_makes_no_tensor(library):
    assert torch.equal(library.unguarded(torch.ones(3), torch.int32), torch.ones(3, dtype=torch.int32))
    with pytest.raises(kpkg.KernelError, match="no dtype"):
        library.unguarded(torch.ones(3))
    with pytest.raises(kpkg.KernelError, match="no dtype"):
        from kpkg import _symbolic

        _symbolic.infer(library.unguarded, library.unguarded.bind((torch.ones(3),), {}))


def test_what_is_no_dtype(library):
    with pytest.raises(TypeError, match="argument 'dtype' names no dtype"):
        library.converted(np.ones(3, np.float32), "float99")
    with pytest.raises(kpkg.KernelError, match="int64 is too wide"):
        library.converted(torch.ones(3), torch.int64)
    with pytest.raises(kpkg.KernelError, match="float64"):
        library.converted(torch.ones(3), torch.float64)


def test_jax_and_tvm_ffi(library):
    jax, tvm_ffi = pytest.importorskip("jax"), pytest.importorskip("tvm_ffi")
    import kpkg.jax
    import kpkg.tvm_ffi

    x = np.arange(4, dtype=np.float32)
    op = kpkg.jax.load(library.path).converted
    for dtype in (None, "float16"):
        assert jax.jit(lambda x, dtype=dtype: op(x, dtype))(x).dtype == np.dtype(dtype or "float32")
    module = tvm_ffi.load_module(str(library.path))
    for dtype in (None, "float16"):
        converted = torch.from_dlpack(module.converted(torch.from_numpy(x), dtype))
        assert converted.dtype == getattr(torch, dtype or "float32")
