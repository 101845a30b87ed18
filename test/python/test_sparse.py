"""Compares packed sparse weights and their products with the dense weight.

Also checks that the format is chosen by measurement.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from kpkg import sparse
from torch.nn.functional import conv2d, linear


def pruned(n: int, k: int, share: float, block: int = 1, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    keep = torch.rand(n // block, k // block) < share
    return torch.randn(n, k, dtype=dtype) * keep.repeat_interleave(block, 0).repeat_interleave(block, 1)


@pytest.mark.parametrize("format", ["elements", "csr", "blocks", "dense"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_are_those_of_the_dense_weight(format, dtype, default_ops):
    weight = pruned(96, 160, 0.3, 32, dtype)
    packed = sparse.pack(weight, format=format, block=32 if format == "blocks" else None)
    assert (
        packed.format == format
        and packed.shape == (96, 160)
        and packed.density == pytest.approx(float((weight != 0).float().mean()))
    )
    assert torch.equal(packed.dense(), weight)
    x, bias = torch.randn(3, 7, 160, dtype=dtype), torch.randn(96, dtype=dtype)
    expected = linear(x.double(), weight.double(), bias.double())
    torch.testing.assert_close(
        sparse.linear(x, packed, bias).double(),
        expected,
        rtol=1e-2 if dtype == torch.bfloat16 else 1e-5,
        atol=2e-2 if dtype == torch.bfloat16 else 1e-4,
    )


@pytest.mark.parametrize("n, k", [(5, 31), (33, 65), (1, 1), (40, 128), (7, 0)])
def test_elements_of_any_size(n, k, default_ops):
    weight = pruned(n, k, 0.4)
    packed = sparse.pack(weight, format="elements")
    assert torch.equal(packed.dense(), weight)
    x = torch.randn(4, k)
    torch.testing.assert_close(sparse.linear(x, packed), linear(x, weight))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("n, k, rows", [(5, 31, 1), (33, 65, 17), (1, 1, 40), (130, 129, 300), (7, 0, 4), (0, 7, 4)])
def test_compressed_rows_of_any_size(n, k, rows, dtype, default_ops):
    weight = pruned(n, k, 0.2, dtype=dtype)
    packed = sparse.pack(weight, format="csr")
    assert torch.equal(packed.dense(), weight) and all(t.dtype == torch.int32 for t in packed.tensors[:2])
    x, bias = torch.randn(rows, k, dtype=dtype), torch.randn(n, dtype=dtype)
    expected = linear(x.double(), weight.double(), bias.double())
    tolerance = {torch.bfloat16: 1e-2, torch.float16: 2e-3}.get(dtype, 1e-5)
    found = sparse.linear(x, packed, bias)
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)
    y = x.clone().requires_grad_()
    with kpkg.fallback_policy("silent"):
        sparse.linear(y, packed, bias).sum().backward()
    torch.testing.assert_close(y.grad.double(), weight.double().sum(0).expand(rows, k), rtol=2e-2, atol=0.1)


def test_compressed_rows_whose_numbers_lie_outside_count_as_zero(default_ops):
    x = torch.ones(3, 8)
    crow = torch.tensor([-5, 2, 2**31 - 1], dtype=torch.int32)
    col = torch.tensor([0, -1, 2**31 - 1, 7], dtype=torch.int32)
    found = kpkg.ops.compressed_linear(x, crow, col, torch.tensor([1.0, 2.0, 4.0, 8.0]))
    assert found.tolist() == [[1.0, 8.0]] * 3


def test_what_compressed_rows_cannot_be_is_refused(default_ops):
    with pytest.raises(ValueError, match=r"csr is for matrices"):
        sparse.pack(torch.ones(4, 4, 3, 3), format="csr")
    crow, col, values = sparse.pack(torch.eye(4), format="csr").tensors
    for arguments, message in [
        ((torch.ones(2, 4), crow.long(), col, values), "crow and col must be int32"),
        ((torch.ones(2, 4), crow, col[:3], values), "values has shape"),
        ((torch.ones(2, 4).bfloat16(), crow, col, values), "input is bfloat16 and values is float32"),
    ]:
        with pytest.raises(kpkg.KernelError, match=message):
            kpkg.ops.compressed_linear(*arguments)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    "n, k, share", [(64, 128, 0.05), (130, 260, 0.2), (33, 31, 1.0), (257, 512, 0.5), (40, 128, 0.0)]
)
def test_elements_of_16_bits_are_two_of_four_and_a_rest(n, k, share, dtype, default_ops):
    weight = pruned(n, k, share, dtype=dtype)
    weight[n // 2] = torch.randn(k)  # a dense row
    packed = sparse.pack(weight, format="elements")
    values, positions, columns, starts = packed.tensors
    own = -(-k // 128)
    assert (
        values.dtype == dtype
        and len(columns) == 128 * (own + int(starts[-1]))
        and values.shape == (n, 64 * (own + int(starts.diff().max())))
    )
    assert torch.equal(packed.dense(), weight) and f"{128 * int(starts[-1])} columns more" in repr(packed)
    x, bias = torch.randn(70, k, dtype=dtype), torch.randn(n, dtype=dtype)
    expected = linear(x.double(), weight.double(), bias.double())
    torch.testing.assert_close(
        sparse.linear(x, packed, bias).double(), expected, rtol=1e-2, atol=0.2 if dtype == torch.bfloat16 else 0.05
    )
    y = x.clone().requires_grad_()
    with kpkg.fallback_policy("silent"):
        sparse.linear(y, packed, bias).sum().backward()
    torch.testing.assert_close(y.grad.double(), weight.double().sum(0).expand(70, k), rtol=2e-2, atol=0.2)


def test_columns_stand_in_an_order_that_keeps_elements_apart():
    weight = torch.zeros(300, 256, dtype=torch.bfloat16)
    weight[:, 8:12] = 1  # all four neighbours in each row
    values, _, columns, starts = sparse.pack(weight, format="elements").tensors
    assert starts.tolist() == [0, 0, 0] and values.shape == (300, 128)
    assert sorted(columns.tolist()) == list(range(256)) and all(
        column // 128 == j // 128 for j, column in enumerate(columns.tolist())
    )


def test_long_rows_of_blocks_come_first(default_ops):
    weight = torch.zeros(96, 128)
    weight[32:64] = torch.randn(32, 128)
    weight[64:, :64] = 1
    packed = sparse.pack(weight, format="blocks", block=32)
    assert packed.tensors[3].tolist() == [1, 1, -2]
    x = torch.randn(5, 128)
    torch.testing.assert_close(sparse.linear(x, packed), linear(x, weight), rtol=1e-4, atol=1e-4)


def two_of_four(n: int, k: int, dtype: torch.dtype, share: float = 0.9) -> torch.Tensor:
    """Returns a random weight with 2:4 sparsity, in which a `share` of the selected elements is non-zero."""
    places = torch.rand(n, k // 4, 4).argsort(2)[:, :, :2]
    keep = torch.zeros(n, k // 4, 4).scatter(2, places, 1.0) * (torch.rand(n, k // 4, 4) < share)
    return (torch.randn(n, k // 4, 4) * keep).view(n, k).to(dtype)


@pytest.mark.parametrize("n, k", [(64, 128), (5, 4), (130, 260), (33, 392), (256, 512)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_two_of_four(n, k, dtype, default_ops):
    weight = two_of_four(n, k, dtype)
    packed = sparse.pack(weight, format="2:4")
    assert torch.equal(packed.dense(), weight) and packed.tensors[0].shape == (n, k // 2)
    x, bias = torch.randn(3, 7, k, dtype=dtype), torch.randn(n, dtype=dtype)
    expected = linear(x.double(), weight.double(), bias.double())
    torch.testing.assert_close(sparse.linear(x, packed, bias).double(), expected, rtol=1e-2, atol=5e-2)
    assert "2:4" in sparse.pack(weight, sample_input=x).times


WALKS = [{"padding": 1}, {"stride": 2, "padding": (1, 0)}, {"stride": (1, 3), "padding": 2, "dilation": (2, 1)}]


@pytest.mark.parametrize("how", WALKS, ids=str)
@pytest.mark.parametrize(
    "format, dtype, channels",
    [
        ("elements", torch.float32, 40),
        ("elements", torch.bfloat16, 64),
        ("blocks", torch.float32, 32),
        ("blocks", torch.bfloat16, 64),
        ("2:4", torch.float16, 72),
        ("2:4", torch.bfloat16, 6),
        ("dense", torch.float32, 5),
    ],
)
def test_convolutions_are_those_of_the_dense_weight(format, dtype, channels, how, default_ops):
    n = 64 if format == "blocks" else 40
    if format == "2:4":
        weight = (
            two_of_four(n * 6, -(-channels // 4) * 4, dtype)[:, :channels]
            .reshape(n, 3, 2, channels)
            .permute(0, 3, 1, 2)
        )
    else:
        weight = (
            pruned(n, channels * 6, 0.3, 32 if format == "blocks" else 1, dtype)
            .view(n, 3, 2, channels)
            .permute(0, 3, 1, 2)
        )
    packed = sparse.pack(weight, format=format)
    assert packed.format == format and packed.shape == weight.shape and torch.equal(packed.dense(), weight)
    x, bias = torch.randn(2, channels, 9, 11, dtype=dtype), torch.randn(n, dtype=dtype)
    expected = conv2d(x.double(), weight.double(), bias.double(), **how)
    for images in (x, x.contiguous(memory_format=torch.channels_last)):
        found = sparse.conv2d(images, packed, bias, **how)
        torch.testing.assert_close(
            found.double(),
            expected,
            rtol=1e-5 if dtype == torch.float32 else 1e-2,
            atol=1e-4 if dtype == torch.float32 else 8e-2,
        )


def test_gradients_of_convolutions(default_ops):
    weight = pruned(32, 32 * 9, 0.3).view(32, 3, 3, 32).permute(0, 3, 1, 2)
    for format in ("elements", "blocks"):
        packed = sparse.pack(weight, format=format)
        x = torch.randn(1, 32, 6, 6, requires_grad=True)
        with kpkg.fallback_policy("silent"):
            sparse.conv2d(x, packed, padding=1).square().sum().backward()
        y = x.detach().requires_grad_()
        conv2d(y, weight, padding=1).square().sum().backward()
        torch.testing.assert_close(x.grad, y.grad, rtol=1e-4, atol=1e-3)


def test_form_of_a_convolution_with_a_sample_is_the_fastest(default_ops):
    packed = sparse.pack(pruned(64, 64 * 9, 0.1).view(64, 64, 3, 3), sample_input=torch.randn(1, 64, 8, 8), padding=1)
    assert set(packed.times) == {"elements", "blocks", "dense"}
    assert packed.times[packed.format] == min(packed.times.values())
    with pytest.raises(ValueError, match="one of a convolution"):
        sparse.linear(torch.randn(2, 64), packed)
    with pytest.raises(ValueError, match="none of a convolution"):
        sparse.conv2d(torch.randn(1, 64, 8, 8), sparse.pack(torch.randn(4, 64)))


def test_form_without_a_sample():
    weight = torch.zeros(128, 256)
    weight[:64, 128:192] = 1
    assert sparse.pack(weight).format == "blocks"
    assert sparse.pack(weight).tensors[2].shape == (1, 64, 64)  # the largest blocks that leave out as much
    assert sparse.pack(pruned(128, 256, 0.05)).format == "dense"
    assert sparse.pack(torch.randn(128, 256)).format == "dense"


@pytest.mark.parametrize("format", ["elements", "blocks"])
def test_gradients_are_those_of_the_dense_product(format, default_ops):
    weight = pruned(64, 96, 0.3, 32)
    packed = sparse.pack(weight, format=format)
    x = torch.randn(5, 96, requires_grad=True)
    with kpkg.fallback_policy("silent"):
        sparse.linear(x, packed).square().sum().backward()
    torch.testing.assert_close(x.grad, 2 * linear(x.detach(), weight) @ weight, rtol=1e-4, atol=1e-4)
    with pytest.raises(kpkg.KernelError):  # strict
        sparse.linear(x, packed).sum().backward()


def test_form_with_a_sample_is_the_fastest(default_ops):
    packed = sparse.pack(pruned(64, 128, 0.1), sample_input=torch.randn(3, 128))
    assert set(packed.times) == {"elements", "csr", "blocks", "dense"}
    assert packed.times[packed.format] == min(packed.times.values())
    assert packed.format in repr(packed) and "us" in repr(packed)


@pytest.mark.parametrize(
    "weight, options, message",
    [
        (torch.zeros(3), {}, "matrix of floats"),
        (torch.zeros(3, 3, 3), {}, "four dimensions"),
        (torch.zeros(3, 3, dtype=torch.int32), {}, "matrix of floats"),
        (torch.zeros(32, 32), {"format": "coo"}, "expected one of"),
        (torch.zeros(32, 32), {"block": 24}, "16"),
        (torch.zeros(32, 40), {"block": 16}, "do not divide"),
        (torch.zeros(30, 40), {"format": "blocks"}, "no block size"),
        (torch.zeros(30, 40), {"format": "2:4"}, "is not 2:4"),
        (torch.zeros(30, 42, dtype=torch.float16), {"format": "2:4"}, "is not 2:4"),
        (torch.ones(30, 40, dtype=torch.float16), {"format": "2:4"}, "is not 2:4"),
    ],
)
def test_what_cannot_be_packed(weight, options, message):
    with pytest.raises(ValueError, match=message):
        sparse.pack(weight, **options)


def test_packed_tensors_that_lie_are_not_followed(default_ops):
    """Invalid offsets, columns and ends read zeros beyond the packed values; loops end with the existing blocks."""
    x = torch.randn(4, 64)
    masks = torch.full((2, 8), -1, dtype=torch.int32)
    assert torch.equal(
        kpkg.ops.sparse_linear(x, masks, torch.full((2, 8), 2**31 - 1, dtype=torch.int32), torch.ones(5)),
        torch.zeros(4, 8),
    )
    halves, positions = torch.ones(8, 32).half(), torch.full((1, 1, 512), 0x4444, dtype=torch.int16)
    wide, places = torch.ones(8, 192).half(), positions.expand(1, 3, 512).contiguous()
    columns = torch.tensor([-(2**31), 2**31 - 1, 64, -1], dtype=torch.int32).repeat(64)
    for starts in ([0, 1], [-(2**31), 2**31 - 1], [2**31 - 1, -(2**31)]):
        found = kpkg.ops.half_sparse_linear(
            x.half(), wide, places, None, columns, torch.tensor(starts, dtype=torch.int32)
        )
        assert torch.equal(found, torch.zeros(4, 8).half())
    with pytest.raises(kpkg.KernelError, match="belong together"):
        kpkg.ops.half_sparse_linear(x.half(), halves, positions, None, columns)
    crow, values = torch.tensor([0, 2**31 - 1], dtype=torch.int32), torch.ones(2, 32, 32)
    found = kpkg.ops.block_sparse_linear(x, crow, torch.tensor([-(2**31), 2**31 - 1], dtype=torch.int32), values)
    assert torch.equal(found, torch.zeros(4, 32))


@pytest.mark.parametrize("how", [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": [2, 1]}])
def test_elements_of_images_are_two_of_four_and_a_rest(how, default_ops):
    weight = (torch.randn(300, 130, 3, 2) * (torch.rand(300, 130, 3, 2) < 0.02)).bfloat16()
    weight[7, 4:8, 1, 1] = 1.0  # four neighbours
    weight[290, 120:124] = 1.0
    packed = sparse.pack(weight, format="elements")
    values, positions, columns, starts = packed.tensors
    assert columns.shape == (3, 128 * int(starts[-1])) and len(starts) == 3 and int(starts.diff().min()) > 0
    assert torch.equal(packed.dense(), weight)
    images, bias = torch.randn(2, 130, 9, 11).bfloat16(), torch.randn(300).bfloat16()
    expected = conv2d(images.double(), weight.double(), bias.double(), **how)
    torch.testing.assert_close(sparse.conv2d(images, packed, bias, **how).double(), expected, rtol=1e-2, atol=0.1)


def test_images_of_many_elements_keep_a_bit_for_each(default_ops):
    weight = (torch.randn(256, 128, 1, 1) * (torch.rand(256, 128, 1, 1) < 0.6)).bfloat16()
    packed = sparse.pack(weight, format="elements")
    assert len(packed.tensors) == 3 and torch.equal(packed.dense(), weight)


@pytest.mark.parametrize("layout", ["to_sparse_coo", "to_sparse_csr", "to_sparse_bsr"])
def test_sparse_layouts_of_torch_are_packed(layout, default_ops):
    weight = pruned(64, 128, 0.2, 32)
    given = weight.to_sparse_bsr((32, 32)) if layout == "to_sparse_bsr" else getattr(weight, layout)()
    packed = sparse.pack(given, format="blocks", block=32)
    assert torch.equal(packed.dense(), weight)
    x = torch.randn(5, 128)
    torch.testing.assert_close(sparse.linear(x, packed), linear(x, weight))
