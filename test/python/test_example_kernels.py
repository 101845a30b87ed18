"""Compares kernels of examples/ with PyTorch in float64: odd shapes, strided inputs, poisoned results, gradients.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import functools
import math

import pytest
import torch
import torch.nn.functional as F
from conftest import BUILD, ROOT, build_package


@functools.cache
def example(name):
    import kpkg

    return kpkg.load(build_package(ROOT / "examples" / f"{name}.k", BUILD / "test-packages" / f"example-{name}.kpkg"))


def strided(x):
    """The same numbers in every other element of each dimension."""
    frame = torch.full([2 * n for n in x.shape], 3, dtype=x.dtype)
    view = frame[tuple(slice(None, None, 2) for _ in x.shape)]
    return view.copy_(x)


def check(op, expected, *arguments, error=1e-5):
    """Results of plain and of strided arguments are near, and every element of a result is written."""
    expected = expected if isinstance(expected, tuple) else (expected,)
    spread = [strided(a) if isinstance(a, torch.Tensor) and a.numel() else a for a in arguments]
    outs = tuple(torch.full_like(e, math.nan, dtype=arguments[0].dtype) for e in expected)
    op.out(*arguments, out=outs if len(outs) > 1 else outs[0])
    for found in (op(*arguments), op(*spread), outs):
        for got, wanted in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
            assert got.shape == wanted.shape
            scale = max(wanted.abs().max().item(), 1e-6) if wanted.numel() else 1.0
            torch.testing.assert_close(got.double(), wanted, rtol=0, atol=error * scale)


def error_of(dtype):
    return 2e-5 if dtype is torch.float32 else 2e-2


def matrix(rows, columns, density):
    dense = torch.where(torch.rand(rows, columns) < density, torch.randn(rows, columns), 0.0)
    dense[rows // 2 : rows // 2 + 1] = 0.0
    sparse = dense.to_sparse_csr()
    return dense.double(), sparse.values(), sparse.col_indices().int(), sparse.crow_indices().int()


@pytest.mark.parametrize("rows, columns, density", [(1, 1, 1.0), (50, 70, 0.1), (333, 501, 0.02), (40, 5000, 0.2)])
def test_sparse_products(rows, columns, density):
    dense, *parts = matrix(rows, columns, density)
    x = torch.randn(columns)
    check(example("csr").spmv, dense @ x.double(), *parts, x)
    for n in (0, 1, 130, 200):
        x = torch.randn(columns, n)
        check(example("csr").spmm, dense @ x.double(), *parts, x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("n", [1, 300, 1025])
def test_embedding_and_bags(dtype, n):
    weight = torch.randn(57, n, dtype=dtype)
    indices = torch.randint(0, 57, (5, 3))
    check(example("embed").embedding, weight[indices].double(), weight, indices, error=0)
    lengths = torch.tensor([0, 3, 17, 8, 0])
    indices, offsets = torch.randint(0, 57, (28,)), F.pad(lengths.cumsum(0), (1, 0))
    sums = torch.stack([part.sum(0) for part in weight[indices].double().split(lengths.tolist())])
    check(example("embed").embedding_bag, sums, weight, indices, offsets, error=error_of(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_of_tables(dtype):
    weight = torch.randn(31, 1030, dtype=dtype, requires_grad=True)
    exact = weight.detach().double().requires_grad_()
    indices, offsets = torch.randint(0, 31, (40,)), torch.tensor([0, 0, 7, 38, 40])
    for found, expected in (
        (example("embed").embedding(weight, indices), F.embedding(indices, exact)),
        (
            example("embed").embedding_bag(weight, indices, offsets),
            F.embedding_bag(indices, exact, offsets, mode="sum", include_last_offset=True),
        ),
    ):
        grad = strided(torch.randn(found.shape, dtype=dtype))
        (got,), (wanted,) = (
            torch.autograd.grad(found, weight, grad),
            torch.autograd.grad(expected, exact, grad.double()),
        )
        torch.testing.assert_close(got.double(), wanted, rtol=error_of(dtype), atol=10 * error_of(dtype))


SIZES = [(1, 1, 1), (5, 64, 300), (200, 130, 1000), (131, 72, 513), (3, 64, 17000)]


@pytest.mark.parametrize("rows, n, vocabulary", SIZES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_linear_cross_entropy(rows, n, vocabulary, dtype):
    h = torch.randn(rows, n).to(dtype).requires_grad_()
    w = (torch.randn(vocabulary, n) * n**-0.5).to(dtype).requires_grad_()
    target = torch.randint(0, vocabulary, (rows,))
    exact = [t.detach().double().requires_grad_() for t in (h, w)]
    logits = exact[0] @ exact[1].T
    loss, lse = example("flce").linear_cross_entropy(h, w, target)
    expected = F.cross_entropy(logits, target)
    torch.testing.assert_close(loss.double(), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(lse.double(), logits.logsumexp(1), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(example("flce").linear_cross_entropy(*map(strided, (h, w, target)))[0], loss)
    found = torch.autograd.grad(loss, (h, w))
    for got, wanted in zip(found, torch.autograd.grad(expected, exact), strict=True):
        torch.testing.assert_close(got.double(), wanted, rtol=0, atol=1e-2 * max(wanted.abs().max().item(), 1e-4))


IMAGES = [(2, 64, 128, 16, 32), (1, 3, 20, 13, 37), (1, 100, 64, 30, 30), (1, 8, 8, 2, 2)]


@pytest.mark.parametrize("n, channels, results, height, width", IMAGES)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_convolution_with_pooling(n, channels, results, height, width, layout):
    x = torch.randn(n, channels, height, width).bfloat16().contiguous(memory_format=layout)
    w = (torch.randn(results, channels, 3, 3) * (9 * channels) ** -0.5).bfloat16().contiguous(memory_format=layout)
    bias = torch.randn(results).bfloat16()
    expected = F.max_pool2d(F.relu(F.conv2d(x.double(), w.double(), bias.double(), padding=1)), 2)
    check(example("fused").conv_bias_relu_pool, expected, x, w, bias, error=1e-2)


@pytest.mark.parametrize("rows, k, n, groups", [(100, 64, 256, 8), (33, 200, 512, 32), (1, 8, 384, 3)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_product_with_group_norm(rows, k, n, groups, dtype):
    x, w = torch.randn(rows, k).to(dtype), (torch.randn(n, k) * k**-0.5).to(dtype)
    bias, weight, shift = torch.randn(3, n).to(dtype)
    y = F.linear(x.double(), w.double(), bias.double())
    expected = F.silu(F.group_norm(y, groups, weight.double(), shift.double()))
    check(example("fused").gemm_group_norm_swish, expected, x, w, bias, weight, shift, groups, error=1e-2)


@pytest.mark.parametrize("shape", [(1, 1), (37, 600), (130, 5), (1, 1, 1), (3, 9, 515), (5, 2, 70)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_heat(shape, dtype):
    x = torch.randn(shape, dtype=dtype)
    around = F.pad(x.double(), [1] * 2 * x.dim())
    expected = x.double() * (1 - 2 * x.dim() * 0.1)
    for dim in range(x.dim()):
        for side in (0, 2):
            window = [slice(1, -1)] * x.dim()
            window[dim] = slice(side, side + x.shape[dim])
            expected = expected + 0.1 * around[tuple(window)]
    check(example("heat").heat, expected, x, 0.1)


@pytest.mark.parametrize("size", [3, 5, 7])
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 3, 50, 270), (1, 2, 9, 33)])
def test_blur(size, shape):
    x = torch.randn(shape)
    check(example("image").box_blur, F.avg_pool2d(x.double(), size, 1, size // 2), x, size)


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 3, 50, 170)])
@pytest.mark.parametrize("height, width", [(100, 333), (20, 64), (50, 1), (1, 700)])
def test_resize(shape, height, width):
    x = torch.randn(shape)
    expected = F.interpolate(x.double(), (height, width), mode="bilinear", align_corners=False)
    check(example("image").resize_bilinear, expected, x, height, width, error=1e-4)


@pytest.mark.parametrize("rows, columns", [(1, 1), (33, 150), (7, 300)])
def test_points_of_grids(rows, columns):
    x, grid = torch.randn(2, 3, 50, 170), torch.rand(2, rows, columns, 2) * 2.4 - 1.2
    expected = F.grid_sample(x.double(), grid.double(), align_corners=False)
    check(example("image").grid_sample, expected, x, grid, error=1e-4)


@pytest.mark.parametrize("tokens, experts, n, m, k", [(37, 16, 256, 192, 4), (300, 4, 128, 128, 2), (5, 8, 72, 40, 8)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_experts(tokens, experts, n, m, k, dtype):
    x = torch.randn(tokens, n).to(dtype)
    w13, w2 = (torch.randn(experts, 2 * m, n) * n**-0.5).to(dtype), (torch.randn(experts, n, m) * m**-0.5).to(dtype)
    weights, chosen = torch.randn(tokens, experts).softmax(1).topk(k, 1)
    order = chosen.flatten().argsort(stable=True)
    places = order.argsort().int()
    ends = torch.bincount(chosen.flatten(), minlength=experts).cumsum(0).int()
    slots = torch.stack([w13[e].double() @ x[i // k].double() for i, e in zip(order, chosen.flatten()[order])])
    inner = F.silu(slots[:, :m]) * slots[:, m:]
    order = order.int()
    check(example("moe").moe_gate_up, inner, x, order, ends, w13, k, error=1e-2)
    rows = torch.stack([w2[e].double() @ v for v, e in zip(inner, chosen.flatten()[order.long()])])
    expected = (rows[places.long()].view(tokens, k, n) * weights[..., None].double()).sum(1)
    check(example("moe").moe_mlp, expected, x, order, places, ends, weights, w13, w2, error=2e-2)


def scanned(x, dt, a, b, c, d):
    """The recurrence of Mamba 2, one element after the other."""
    state, results = x.new_zeros(x.shape[0], x.shape[2], b.shape[3], x.shape[3]), []
    b, c = (t.repeat_interleave(x.shape[2] // t.shape[2], 2) for t in (b, c))
    for i in range(x.shape[1]):
        step = b[:, i, :, :, None] * (dt[:, i, :, None] * x[:, i])[:, :, None]
        state = state * (dt[:, i] * a).exp()[..., None, None] + step
        results.append((c[:, i, :, :, None] * state).sum(2) + d[:, None] * x[:, i])
    return torch.stack(results, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("length, heads, groups, p", [(1, 1, 1, 1), (64, 4, 2, 64), (200, 3, 1, 50)])
def test_mamba(dtype, length, heads, groups, p):
    x, b = torch.randn(2, length, heads, p).to(dtype), (torch.randn(2, length, groups, 128) * 128**-0.5).to(dtype)
    c = torch.randn(2, length, groups, 128).to(dtype)
    dt, a, d = torch.rand(2, length, heads) * 0.1, -torch.rand(heads) * 2 - 0.5, torch.randn(heads)
    inputs = (x, dt, a, b, c, d)
    check(example("ssd").mamba2, scanned(*(t.double() for t in inputs)), *inputs, error=error_of(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("length", [1, 64, 150])
def test_gated_attention(dtype, length):
    q, k, v = (torch.randn(2, 3, length, 64).to(dtype) for _ in range(3))
    gate = F.logsigmoid(torch.randn(2, 3, length, 64) + 1)
    state, results = torch.zeros(2, 3, 64, 64, dtype=torch.float64), []
    for i in range(length):
        state = state * gate[:, :, i, :, None].double().exp() + k[:, :, i, :, None].double() * v[:, :, i, None].double()
        results.append((q[:, :, i, :, None].double() * state).sum(2))
    check(example("ssd").gla, torch.stack(results, 2), q, k, v, gate, error=error_of(dtype))
