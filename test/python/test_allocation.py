"""Tests tensors that ops fill and convert: zeros, full and .to, eagerly, without memory and under torch.compile.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import subprocess

import kpkg
import numpy as np
import pytest
import torch
from conftest import BUILD, compile_cpp, load_source
from torch._subclasses.fake_tensor import FakeTensorMode

SOURCE = '''
@kernel
@specialize(T=[float32, float16])
def add_tiles[T: DType](x: Tensor[T, 1], mut y: Tensor[T, 1]):
    var i = block_idx.x
    y.tile[1024](i).store(y.tile[1024](i).load() + x.tile[1024](i).load())


@register.op("allocation::zeros")
def zeros_of(device: Tensor, n: Int, m: Int, dtype: DType) -> Tensor:
    return zeros(n, m, dtype=dtype)


@register.op("allocation::full_int")
def full_of_int(device: Tensor, value: Int, shape: List[Int], dtype: DType) -> Tensor:
    return full(value, shape, dtype=dtype)


@register.op("allocation::full_float")
def full_of_float(device: Tensor, value: Float64, shape: List[Int], dtype: DType) -> Tensor:
    return full(value, shape, dtype=dtype)


@register.op("allocation::flags")
def flags(device: Tensor, value: Bool, n: Int) -> Tensor:
    return full(value, n, dtype=bool)


@register.op("allocation::halves_like")
def halves_like(x: Tensor) -> Tensor:
    return full_like(x, 0.5, dtype=float16)


@register.op("allocation::twice")
def twice(x: Tensor) raises -> Tensor:
    """x + x, added to zeros."""
    if x.rank != 1 or x.dtype not in [float32, float16]:
        raise Error("x does not fit")
    var y = zeros_like(x)
    for i in range(2):
        launch add_tiles[T=x.dtype](x, y, grid=ceildiv(x.shape[0], 1024))
    return y


@register.backward("allocation::twice", saves=[])
def twice_gradient(grad: Tensor) raises -> Tensor:
    if grad.dtype not in [float32, float16]:
        raise Error("grad does not fit")
    var dx = zeros(grad.shape, dtype=grad.dtype)
    for i in range(2):
        launch add_tiles[T=grad.dtype](grad, dx, grid=ceildiv(grad.shape[0], 1024))
    return dx


@register.op("allocation::converted")
def converted(x: Tensor, dtype: DType) raises -> Tensor:
    if x.dtype not in [bool, uint8, float8_e5m2, float32]:
        raise Error("x is {}", x.dtype)
    return x.to(dtype)


@register.op("allocation::rounded")
def rounded(x: Tensor) raises -> Tensor:
    """x, rounded to bfloat16 and back."""
    if x.dtype != float32:
        raise Error("x is {}", x.dtype)
    return x.to(bfloat16).to(float32)
'''

PROGRAM = """
#include <kpkg/kpkg.hpp>
#include <cstdio>
int main(int, char **arguments) {
  auto library = kpkg::Library::open(arguments[1]).value();
  float numbers[] = {1, 2.5f, -3};
  kpkg::Tensor x(numbers, kpkg::DType::Float32, {3});
  auto twice = library.op("twice").value().call({}, {x}).value();
  auto rounded = library.op("rounded").value().call({}, {x}).value();
  for (int i = 0; i < 3; ++i)
    std::printf("%g %g ", twice[0].as<float>()[i], rounded[0].as<float>()[i]);
}
"""

DTYPES = [
    torch.bool,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
]
CPU = torch.empty(0)
FLOATS = [dtype for dtype in DTYPES if dtype.is_floating_point]


@pytest.fixture(scope="module")
def library():
    return load_source("allocation", SOURCE)


def same(found: torch.Tensor, expected: torch.Tensor) -> None:
    """Compares bytes, so that no dtype needs a comparison of its own."""
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert torch.equal(found.contiguous().view(torch.uint8), expected.contiguous().view(torch.uint8))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(3, 5), (0, 7), (129, 257)], ids=str)
def test_zeros_and_ints_of_every_dtype(library, dtype, shape):
    same(library.zeros(CPU, *shape, dtype), torch.zeros(shape, dtype=dtype))
    same(library.full_int(CPU, 1, list(shape), dtype), torch.ones(shape, dtype=dtype))


@pytest.mark.parametrize("value", [-1, 2**31 - 1, -(2**63)])
def test_int64_is_exact(library, value):
    same(library.full_int(CPU, value, [5], torch.int64), torch.full((5,), value))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("value", [0.1, -0.0, -3.5, float("nan")])
def test_floats(library, dtype, value):
    found = library.full_float(CPU, value, [2, 3, 4], dtype)
    expected = torch.full((2, 3, 4), value, dtype=torch.float32).to(dtype)
    if dtype == torch.float64:
        expected = torch.full((2, 3, 4), value, dtype=dtype)
    if value != value:
        assert found.float().isnan().all() and found.dtype == dtype
    else:
        same(found, expected)


def test_a_dtype_without_the_value_is_refused(library):
    with pytest.raises(kpkg.KernelError, match="dtype int32 is not supported by allocation::full_float"):
        library.full_float(CPU, 0.5, [3], torch.int32)


def test_negative_extents_are_refused(library):
    with pytest.raises(kpkg.KernelError, match=r"shape \[-1, 3\] is negative"):
        library.zeros(CPU, -1, 3, torch.float32)


def test_flags_and_like(library):
    same(library.flags(CPU, True, 5), torch.ones(5, dtype=torch.bool))
    x = torch.randn(4, 6).T
    same(library.halves_like(x), torch.full((6, 4), 0.5, dtype=torch.float16))


def test_a_filled_tensor_is_written_later(library):
    x = torch.randn(3000)
    same(library.twice(x), x + x)


def test_gradients_are_filled(library):
    x = torch.randn(3000, requires_grad=True)
    for _ in range(3):
        poison = [torch.full((3000,), torch.nan) for _ in range(4)]
        del poison
        x.grad = None
        library.twice(x).backward(torch.arange(3000.0))
        assert torch.equal(x.grad, 2 * torch.arange(3000.0))


@pytest.mark.parametrize("target", DTYPES, ids=str)
@pytest.mark.parametrize("source", [torch.bool, torch.uint8, torch.float8_e5m2, torch.float32], ids=str)
def test_conversions(library, source, target):
    x = torch.randint(0, 2 if source == torch.bool else 100, (37, 65)).to(source)
    same(library.converted(x, target), x.to(target))
    same(library.converted(x.T, target), x.T.to(target).contiguous() if target != source else x.T)


def test_the_same_dtype_needs_no_launch(library):
    op, x = library["allocation::converted"], torch.randn(3, 4)
    same(op(x, torch.float32), x)
    assert "convert_elements" not in str(op.explain(x, torch.float32))
    assert "convert_elements" in str(op.explain(x, torch.float16))


def test_rounding(library):
    x = torch.randn(1000)
    same(library.rounded(x), x.bfloat16().float())
    assert np.array_equal(library.rounded(x.numpy()), x.bfloat16().float().numpy())


def test_shapes_without_memory(library):
    with FakeTensorMode():
        x = torch.empty(5, 7)
        assert library.converted(x, torch.bfloat16).dtype == torch.bfloat16
        assert library.zeros(x, 2, 3, torch.int32).shape == (2, 3)
        assert library.halves_like(x).shape == (5, 7)


def test_compiled(library):
    def run(x):
        return torch.ops.allocation.twice(x) + torch.ops.allocation.rounded(x)

    x = torch.randn(2000)
    compiled = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")
    assert torch.equal(compiled(x), run(x))


def test_the_launch_is_named(library):
    assert "fill_ints" in str(library["allocation::twice"].explain(torch.randn(10)))


def test_from_cpp(library, tmp_path):
    source = tmp_path / "allocation.cpp"
    source.write_text(PROGRAM)
    compile_cpp(source, tmp_path / "allocation")
    command = [tmp_path / "allocation", BUILD / "test-packages" / "allocation.kpkg"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "2 1 5 2.5 -6 -3 "
