"""Tests sort, argsort, top_k and histogram of tiles against PyTorch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import pytest
import torch
from conftest import load_source
from torch.testing import assert_close

SOURCE = """
@kernel
@specialize(T=[float32, float16, bfloat16, int32, int64, float64, uint8, bool], DOWN=[False, True])
def sort_rows[T: DType, DOWN: Bool](x: Tensor[T, 2], mut values: Tensor[T, 2], mut places: Tensor[int64, 2]):
    var v, p = sort_with_places(x.window[2, 32](0, 0).load(), descending=DOWN)
    values.window[2, 32](0, 0).store(v)
    places.window[2, 32](0, 0).store(p.cast[int64]())


@kernel
@specialize(T=[float32, float16, int64, uint8], DOWN=[False, True])
def sort_values[T: DType, DOWN: Bool](x: Tensor[T, 2], mut values: Tensor[T, 2]):
    values.window[2, 32](0, 0).store(sort(x.window[2, 32](0, 0).load(), -1, DOWN))


@kernel
@specialize(R=[1, 5, 256], C=[1, 6], AXIS=[0, 1])
def sort_axis[R: Int, C: Int, AXIS: Int](
    x: Tensor[float32, 2], mut values: Tensor[float32, 2], mut places: Tensor[int64, 2]
):
    var v = x.window[R, C](0, 0).load()
    values.window[R, C](0, 0).store(sort(v, axis=AXIS))
    places.window[R, C](0, 0).store(argsort(v, axis=AXIS).cast[int64]())


@kernel
@specialize(T=[bfloat16, float64])
def sort_keyed[T: DType](x: Tensor[T, 2], y: Tensor[T, 2], mut keys: Tensor[T, 2], mut values: Tensor[T, 2]):
    var k, v = sort_pairs(x.window[2, 32](0, 0).load(), y.window[2, 32](0, 0).load(), descending=True)
    keys.window[2, 32](0, 0).store(k)
    values.window[2, 32](0, 0).store(v)


@kernel
@specialize(T=[float32, int64], N=[5, 64], K=[1, 3, 5])
def top_of_rows[T: DType, N: Int, K: Int](x: Tensor[T, 2], mut values: Tensor[T, 2], mut places: Tensor[int64, 2]):
    var v, p = top_k(x.window[2, N](0, 0).load(), K)
    values.window[2, K](0, 0).store(v)
    places.window[2, K](0, 0).store(p.cast[int64]())


@kernel
@specialize(T=[int64, uint8], N=[7, 2048], BINS=[1, 100, 700])
def count[T: DType, N: Int, BINS: Int](x: Tensor[T, 1], mut counts: Tensor[int32, 1]):
    counts.window[BINS](0).store(histogram(x.window[N](0).load(), BINS))


@register.op("sorting::rows")
def rows(x: Tensor, down: Bool) raises -> Tuple[Tensor, Tensor]:
    var values = empty_like(x)
    var places = empty(x.shape, dtype=int64)
    launch sort_rows[T=x.dtype, DOWN=down](x, values, places, grid=1)
    return values, places


@register.op("sorting::values")
def values_of(x: Tensor, down: Bool) raises -> Tensor:
    var values = empty_like(x)
    launch sort_values[T=x.dtype, DOWN=down](x, values, grid=1)
    return values


@register.op("sorting::along")
def along(x: Tensor, axis: Int) raises -> Tuple[Tensor, Tensor]:
    if axis != 0 and axis != 1:
        raise Error("no such axis: {}", axis)
    var r = x.shape[0]
    var c = x.shape[1]
    if (r != 1 and r != 5 and r != 256) or (c != 1 and c != 6):
        raise Error("no such shape: {}", x.shape)
    var values = empty_like(x)
    var places = empty(x.shape, dtype=int64)
    launch sort_axis[R=r, C=c, AXIS=axis](x, values, places, grid=1)
    return values, places


@register.op("sorting::keyed")
def keyed(x: Tensor, y: Tensor) raises -> Tuple[Tensor, Tensor]:
    var keys = empty_like(x)
    var values = empty_like(x)
    launch sort_keyed[T=x.dtype](x, y, keys, values, grid=1)
    return keys, values


@register.op("sorting::top")
def top(x: Tensor, k: Int) raises -> Tuple[Tensor, Tensor]:
    if (k != 1 and k != 3 and k != 5) or (x.shape[1] != 5 and x.shape[1] != 64):
        raise Error("no such k: {}", k)
    var values = empty(x.shape[0], k, dtype=x.dtype)
    var places = empty(x.shape[0], k, dtype=int64)
    launch top_of_rows[T=x.dtype, N=x.shape[1], K=k](x, values, places, grid=1)
    return values, places


@register.op("sorting::counts")
def counts(x: Tensor, bins: Int) raises -> Tensor:
    if (bins != 1 and bins != 100 and bins != 700) or (x.shape[0] != 7 and x.shape[0] != 2048):
        raise Error("no such bins: {}", bins)
    var found = empty(bins, dtype=int32)
    launch count[T=x.dtype, N=x.shape[0], BINS=bins](x, found, grid=1)
    return found
"""

DTYPES = (
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int32,
    torch.int64,
    torch.float64,
    torch.uint8,
    torch.bool,
)


@pytest.fixture(scope="module")
def sorting():
    return load_source("tile_sorting", SOURCE)


def drawn(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Draws numbers with duplicates and the extremes of the dtype, for floats also infinities, NaN and zeros."""
    x = torch.randint(-9 if dtype.is_signed else 0, 9, shape, generator=torch.Generator().manual_seed(2)).to(dtype)
    if dtype == torch.bool:
        return x
    limits = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    extremes = [limits.max, limits.min]
    if dtype.is_floating_point:
        extremes += [torch.inf, -torch.inf, torch.nan, -torch.nan, 0.0, -0.0, 0.0, -0.0, limits.smallest_normal / 2]
    for at, value in enumerate(extremes):
        x[0, 2 * at + 1] = value
    return x


def assert_same(found: torch.Tensor, expected: torch.Tensor) -> None:
    """Asserts equal numbers with equal signs of zeros."""
    assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    if found.dtype.is_floating_point:
        number = ~expected.isnan()
        assert torch.equal(found.signbit()[number], expected.signbit()[number])


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_are_sorted_stably(sorting, dtype, down):
    x = drawn(dtype, 2, 32)
    expected = x.sort(dim=1, stable=True, descending=down)
    values, places = sorting.rows(x, down)
    assert_same(values, expected.values)
    assert_close(places, expected.indices)


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8], ids=str)
def test_values_alone_are_sorted(sorting, dtype, down):
    x = drawn(dtype, 2, 32)
    expected = x.sort(dim=1, descending=down).values
    assert_close(sorting.values(x, down), expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (5, 1), (5, 6), (256, 1), (256, 6)])
@pytest.mark.parametrize("axis", [0, 1])
def test_axes_of_any_extent(sorting, shape, axis):
    x = torch.randint(-40, 40, shape, generator=torch.Generator().manual_seed(3)).float()
    expected = x.sort(dim=axis, stable=True)
    values, places = sorting.along(x, axis)
    assert_close(values, expected.values)
    assert_close(places, expected.indices)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
def test_values_follow_their_keys(sorting, dtype):
    x, y = drawn(dtype, 2, 32), torch.randn(2, 32).to(dtype)
    expected = x.sort(dim=1, stable=True, descending=True)
    keys, values = sorting.keyed(x, y)
    assert_same(keys, expected.values)
    assert_close(values, y.gather(1, expected.indices), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=str)
@pytest.mark.parametrize("n", [5, 64])
@pytest.mark.parametrize("k", [1, 3, 5])
def test_greatest_come_first(sorting, dtype, n, k):
    x = drawn(dtype, 2, 64)[:, :n].contiguous()
    expected = x.sort(dim=1, stable=True, descending=True)
    values, places = sorting.top(x, k)
    assert_same(values, expected.values[:, :k])
    assert_close(places, expected.indices[:, :k])


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8], ids=str)
@pytest.mark.parametrize("n", [7, 2048])
@pytest.mark.parametrize("bins", [1, 100, 700])
def test_numbers_outside_count_nowhere(sorting, dtype, n, bins):
    low, high = (-3, 2 * bins) if dtype.is_signed else (0, 255)
    x = torch.randint(low, high, (n,), generator=torch.Generator().manual_seed(4)).to(dtype)
    kept = x[(x >= 0) & (x.long() < bins)].long()
    assert_close(sorting.counts(x, bins), torch.bincount(kept, minlength=bins).int())
