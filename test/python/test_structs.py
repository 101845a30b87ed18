"""Tests structs across modules, functions, kernels and launches against PyTorch in float64.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import subprocess

import kpkg
import pytest
import torch
from conftest import BUILD, COMMAND, load_source

WINDOW = '''"""Windows along rows."""


struct Step:
    var stride: Int = 1
    var dilation: Int = 1

    def span(self, size: Int) -> Int:
        """Returns the elements that a window of `size` taps reaches over."""
        return (size - 1) * self.dilation + 1


struct Window[SIZE: Int]:
    """SIZE taps of a row."""
    var step: Step
    var scale: Float64 = 1.0
    var shift: Float32 = 0.0

    def count(self, length: Int) -> Int:
        return (length - self.step.span(SIZE)) // self.step.stride + 1

    def finished(self, v: Tile) -> Tile:
        return v * self.scale + self.shift


def tap_of(w: Window, first: Tile, tap: Int) -> Tile:
    return first * w.step.stride + tap * w.step.dilation
'''

SOURCE = '''
import struct_windows
from struct_windows import Step, Window, tap_of

comptime PLAIN = Step()
comptime TAPS = Window[SIZE=4](PLAIN, scale=0.25)


struct Sums[T: DType, N: Int]:
    """Running sums, which loops carry."""
    var total: Tile[T, N]
    var greatest: Tile[T, N]
    var seen: Int = 0

    def with_tap(self, v: Tile) -> Self:
        return Self(self.total + v, max(self.greatest, v), self.seen + 1)


struct Rows[T: DType]:
    var source: Tensor[T, 2]
    var target: Tensor[T, 2]


def kept(s: Sums, top: Bool) -> Sums:
    if top:
        return Sums[s.T, s.N](s.greatest, s.greatest, s.seen)
    return s


@kernel
@specialize(T=[float32, float64, bfloat16], w.SIZE=[3, 4], TOP=[False, True])
def reduce_windows[T: DType, TOP: Bool](rows: Rows[T], w: Window, mut y: Tensor[T, 2]):
    comptime A = accumulator(T)
    var first = block_idx.x * 64 + iota[64]()
    var sums = Sums[A, 64](zeros[A](64), full[A](-inf, 64))
    for tap in range(w.SIZE):
        var place = tap_of(w, first, tap)
        var v = rows.source[block_idx.y, :].gather(place, mask=place < rows.source.shape[1]).cast[A]()
        if tap % 2 == 0:
            sums = sums.with_tap(v)
        else:
            sums.total += v
            sums.greatest = max(v, sums.greatest)
            sums.seen += 1
    var result = kept(sums, TOP)
    var mean = result.total / result.seen if not TOP else result.total
    y[block_idx.y, :].tile[64](block_idx.x).store(w.finished(mean).cast[T]())


def reduced[SIZE: Int](x: Tensor, w: Window[SIZE], top: Bool) raises -> Tensor:
    if x.rank != 2 or w.count(x.shape[1]) < 1:
        raise Error("no window of {} in {}", SIZE, x.shape)
    var y = empty(x.shape[0], w.count(x.shape[1]), dtype=x.dtype)
    launch reduce_windows[T=x.dtype, TOP=top](
        Rows[T=x.dtype](x, x), w, y, grid=(ceildiv(y.shape[1], 64), x.shape[0])
    )
    return y


@register.op("kpkg_test::windows3")
def windows3(x: Tensor, stride: Int, dilation: Int, scale: Float64, shift: Float64, top: Bool = False) raises -> Tensor:
    if stride < 1 or dilation < 1:
        raise Error("wrong window")
    var step = Step(dilation=dilation, stride=1)
    if stride > 1:
        step.stride = stride
    return reduced(x, Window[SIZE=3](step, scale, shift), top)


@register.op("kpkg_test::windows4")
def windows4(x: Tensor) raises -> Tensor:
    return reduced(x, TAPS, False)


@kernel
@specialize(T=[float32, float64])
def swap_rows[T: DType](mut rows: Rows[T], half: struct_windows.Step):
    var v = rows.source[block_idx.y, :].tile[64](block_idx.x).load() * half.stride
    rows.source[block_idx.y, :].tile[64](block_idx.x).store(rows.target[block_idx.y, :].tile[64](block_idx.x).load())
    rows.target[block_idx.y, :].tile[64](block_idx.x).store(v)


@register.op("kpkg_test::swap_")
def swapped(mut x: Tensor, mut y: Tensor) raises:
    if x.rank != 2 or x.shape != y.shape:
        raise Error("shapes differ")
    launch swap_rows(Rows[T=x.dtype](x, target=y), Step(stride=2), grid=(ceildiv(x.shape[1], 64), x.shape[0]))


@kernel
@specialize(T=[float32], BIASED=[False, True], KEPT=[False, True])
def add_bias[T: DType, BIASED: Bool, KEPT: Bool](
    x: Tensor[T, 1], bias: Optional[Tensor[T, 1]], mut y: Tensor[T, 1], mut copy: Optional[Tensor[T, 1]]
):
    var v = x.tile[64](block_idx.x).load()
    comptime if KEPT:
        copy.tile[64](block_idx.x).store(v)
    comptime if BIASED:
        v = v + bias.tile[64](block_idx.x).load()
    y.tile[64](block_idx.x).store(v)


struct Added:
    var bias: Optional[Tensor]
    var factor: Optional[Float64] = None


def added(x: Tensor, a: Added) raises -> Tensor:
    var y = empty_like(x)
    launch add_bias[T=x.dtype, BIASED=a.bias is not None, KEPT=False](x, a.bias, y, None, grid=ceildiv(x.shape[0], 64))
    return y


@register.op("kpkg_test::biased")
def biased(x: Tensor, bias: Optional[Tensor] = None) raises -> Tensor:
    if x.rank != 1:
        raise Error("rank")
    return added(x, Added(bias))


@register.op("kpkg_test::twice")
def twice(x: Tensor) raises -> Tuple[Tensor, Tensor]:
    if x.rank != 1:
        raise Error("rank")
    var y = added(x, Added(None))
    var z = empty_like(x)
    launch add_bias[T=x.dtype, BIASED=False, KEPT=True](x, None, y, z, grid=ceildiv(x.shape[0], 64))
    return y, z
'''


@pytest.fixture(scope="module")
def structs():
    folder = BUILD / "test-packages" / "structs"
    folder.mkdir(parents=True, exist_ok=True)
    module = folder / "struct_windows.k"
    if not module.exists() or module.read_text() != WINDOW:
        module.write_text(WINDOW)
    return load_source("structs/structs", SOURCE)


def reduced(x: torch.Tensor, size: int, stride: int, dilation: int, top: bool) -> torch.Tensor:
    """Reduces windows of rows in float64."""
    span = (size - 1) * dilation + 1
    windows = x.double().unfold(1, span, stride)[..., ::dilation]
    return windows.amax(-1) if top else windows.mean(-1)


TOLERANCES = {torch.float32: 1e-6, torch.float64: 1e-14, torch.bfloat16: 1e-2}


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("shape", [(1, 3), (3, 67), (2, 129), (5, 1000)])
@pytest.mark.parametrize("stride, dilation", [(1, 1), (2, 1), (3, 1)])
@pytest.mark.parametrize("top", [False, True])
def test_windows(structs, dtype, shape, stride, dilation, top):
    torch.manual_seed(1)
    x = torch.randn(shape).to(dtype)
    y = structs.windows3(x, stride, dilation, 1.5, 0.25, top)
    expected = reduced(x, 3, stride, dilation, top) * 1.5 + 0.25
    torch.testing.assert_close(y.double(), expected, rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype])


def test_strided_rows_and_dilation(structs):
    x = torch.randn(300, 7, dtype=torch.float64).T[::2]
    y = structs.windows3(x, 2, 5, -1.0, 0.0)
    torch.testing.assert_close(y, -reduced(x, 3, 2, 5, False), rtol=1e-14, atol=1e-14)


def test_a_struct_that_is_known_while_compiling(structs):
    x = torch.randn(3, 200, dtype=torch.float64)
    torch.testing.assert_close(structs.windows4(x), reduced(x, 4, 1, 1, False) * 0.25, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("shape", [(1, 1), (3, 65), (2, 128)])
def test_tensors_of_a_mut_struct_are_written(structs, shape):
    x, y = torch.randn(shape), torch.randn(shape)
    before, after = x.clone(), y.clone()
    structs.swap_(x, y)
    assert torch.equal(x, after) and torch.equal(y, 2 * before)


def test_the_launch_checks_the_tensors_of_a_struct(structs):
    with pytest.raises(kpkg.KernelError, match="`rows.target` has dtype float64, expected float32"):
        structs.swap_(torch.ones(2, 2), torch.ones(2, 2, dtype=torch.float64))


def test_optional_tensors_of_functions_and_kernels(structs):
    x, bias = torch.randn(130), torch.randn(130)
    assert torch.equal(structs.biased(x), x)
    assert torch.equal(structs.biased(x, bias), x + bias)
    y, z = structs.twice(x)
    assert torch.equal(y, x) and torch.equal(z, x)


def test_packages_name_the_fields(structs):
    package = BUILD / "test-packages" / "structs" / "structs.kpkg"
    done = subprocess.run([COMMAND, "info", package, "--json"], capture_output=True, text=True, check=True)
    kernel = next(one for one in json.loads(done.stdout)["kernels"] if one["name"] == "reduce_windows")
    names = ["rows.source", "rows.target", "w.step.stride", "w.step.dilation", "w.scale", "w.shift", "y"]
    assert [argument["name"] for argument in kernel["args"]] == names
    assert [parameter["name"] for parameter in kernel["params"]] == ["T", "TOP", "w.SIZE"]
