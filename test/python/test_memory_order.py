"""Tests that results have PyTorch's memory format.

It compares every op with its counterpart, on permuted and channels-last inputs.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from kpkg import _fallbacks
from opspec import as_tuple, channels_last, load_specs


def order(t: torch.Tensor) -> tuple[int, ...]:
    """Returns the strides of dimensions with more than one element. Strides of other dimensions have no meaning."""
    return tuple(stride for stride, extent in zip(t.stride(), t.shape) if extent > 1) if t.numel() else ()


def reversed_in_memory(x: torch.Tensor) -> torch.Tensor:
    """Returns x with its dimensions reversed in memory."""
    return x.permute(*range(x.dim())[::-1]).contiguous().permute(*range(x.dim())[::-1])


#: Transformations of inputs: for images (rank 4), and for other tensors as PyTorch's elementwise ops receive them.
def needs_bfloat16_kernels() -> None:
    """Skips convolutions in three dimensions where PyTorch's only kernels for bfloat16 have contiguous results."""
    if not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("PyTorch has no channels-last convolution of bfloat16 in three dimensions for this CPU")


FORMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "channels last": lambda x: channels_last(x) if x.dim() in (4, 5) else x,
    "transposed": lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2) if x.dim() > 1 else x,
    "heads behind": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2) if x.dim() > 2 else x,
    "reversed": lambda x: reversed_in_memory(x) if x.dim() > 1 else x,
}
#: Ops whose counterpart in PyTorch has different orders on GPUs and on CPUs, or an order that depends on its kernel.
UNLIKE = {
    "kpkg::rms_norm": "PyTorch's is several elementwise ops on CPUs, and one op with rows on GPUs",
    "kpkg::gru_cell": "PyTorch's is several elementwise ops on CPUs, and one op with rows on GPUs",
    "kpkg::attention": "PyTorch has no such op",
}


def instance_norm(input: torch.Tensor, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> torch.Tensor:
    return F.instance_norm(input, weight=weight, bias=bias, eps=eps)


def is_comparable(name: str) -> bool:
    """Returns whether the op falls back to a single op of PyTorch. PyTorch promises no order for gradients."""
    return name.partition("::")[2] not in _OWN and name not in UNLIKE and not name.endswith("_backward")


#: Ops that only kpkg has. Their fallbacks are compositions with orders of their own.
_OWN = (
    "attention_varlen attention_decode attention_latent attention_alibi attention_relative attention_documents "
    "attention_fp8 scaled_gemm scaled_conv2d grouped_gemm moe moe_fp8 moe_packed int4_linear int8_linear fp8_linear "
    "sparse_linear block_sparse_linear half_sparse_linear sparse_conv2d block_sparse_conv2d half_sparse_conv2d "
    "residual_tanh_gated_rmsnorm residual_rms_norm causal_conv1d gated_linear_attention gated_delta_rule mamba2_scan "
    "residual_layer_norm native_group_norm conv1d_fused conv2d_fused conv3d_fused linear_fused "
    "batch_norm_training moved_statistics gemm gemm_batched linear vector_norm "
    "rotary_embedding silu_and_mul gelu_and_mul clamped_swiglu "
    "quantize_per_token quantize_per_group rms_norm_quantize residual_rms_norm_quantize embedding "
    "silu_and_mul_quantize gelu_and_mul_quantize clamped_swiglu_quantize gguf_linear gguf_dequantize fp4_linear"
).split()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("spec", [pytest.param(s, id=s.name) for s in load_specs() if is_comparable(s.name)])
def test_order_of_results(spec, form, ops):
    if spec.name in ("kpkg::conv3d", "kpkg::conv_transpose3d"):
        needs_bfloat16_kernels()
    is_instance_norm, compared = spec.name == "kpkg::instance_norm", 0
    run = instance_norm if is_instance_norm else _fallbacks.implementation(ops[spec.name])
    of_floats = any(dtype.is_floating_point for dtype in spec.dtypes)
    dtype = torch.float32 if of_floats else spec.dtypes[0]

    def formed(t: torch.Tensor) -> torch.Tensor:
        return FORMS[form](t) if t.is_floating_point() == of_floats and t.numel() < 50_000 else t

    for sample in spec.samples(dtype, torch.Generator().manual_seed(3)):
        call = sample.map(formed)
        if any(isinstance(a, torch.Tensor) and a.numel() == 0 for a in call.args):
            continue
        if spec.name in ("kpkg::conv3d", "kpkg::conv_transpose3d"):
            call = call.map(lambda t: t.bfloat16())  # few float32 elements have a kernel with contiguous results
        if "attention" in spec.name and call.args[0].shape[-1] != call.args[2].shape[-1]:
            continue  # PyTorch has kernels for one head size, and contiguous results for others
        try:
            expected = as_tuple(run(*call.args, **call.kwargs))
        except (RuntimeError, ValueError):
            continue  # calls that PyTorch refuses, such as a group of one element
        found = as_tuple(ops[spec.name](*call.args, **call.kwargs))
        for mine, theirs in zip(found, expected):
            assert order(mine) == order(theirs), (
                f"{sample.label}: {[a.stride() for a in call.args if isinstance(a, torch.Tensor)]}, shape "
                f"{tuple(mine.shape)}"
            )
        compared += 1
    assert compared > 0


def test_attention_goes_on_as_pytorchs_does(ops):
    """Tests the common idiom: heads are views of one product, and the result is viewed as one matrix."""
    b, n, heads, size = 2, 24, 4, 16
    for options in ({}, {"is_causal": True}, {"attn_mask": torch.ones(n, n, dtype=torch.bool)}):
        q, k, v = (t.view(b, n, heads, size).transpose(1, 2) for t in torch.randn(b, n, 3 * heads * size).chunk(3, -1))
        out = ops["kpkg::scaled_dot_product_attention"](q, k, v, **options)
        expected = F.scaled_dot_product_attention(q, k, v, **options)
        assert out.stride() == expected.stride()
        torch.testing.assert_close(
            out.transpose(1, 2).view(b, n, heads * size), expected.transpose(1, 2).view(b, n, heads * size)
        )
    few = torch.randn(1, 3, 8, size).transpose(1, 2)
    keys = torch.randn(1, 8, 700, size)
    assert ops["kpkg::scaled_dot_product_attention"](few, keys, keys).stride()[1:] == few.stride()[1:]
    shared = ops["kpkg::scaled_dot_product_attention"](few, keys[:, :2], keys[:, :2], enable_gqa=True)
    assert shared.stride()[1:] == few.stride()[1:]


def images(dims: int) -> torch.Tensor:
    return channels_last(torch.randn(2, 8, *(6, 7, 5)[:dims]))


@pytest.mark.parametrize("dims", [2, 3])
def test_chains_of_layers_stay_in_channels_last(ops, dims):
    x, weight = images(dims), torch.randn(8)
    mean, variance = torch.randn(8), torch.rand(8) + 0.5
    kinds = torch.channels_last if dims == 2 else torch.channels_last_3d
    results = {
        "batch_norm": ops["kpkg::batch_norm"](x, mean, variance, weight, weight),
        "batch_norm_training": ops["kpkg::batch_norm_training"](x, weight, weight)[0],
        "group_norm": ops["kpkg::group_norm"](x, 2, weight, weight),
        "max_pool": ops[f"kpkg::max_pool{dims}d"](x, [2], [1]),
        "odd max_pool": ops[f"kpkg::max_pool{dims}d"](x, [3], [2], [1]),
        "maxima": ops[f"kpkg::max_pool{dims}d_with_indices"](x, [2])[0],
        "relu": ops["kpkg::relu"](x),
        "add": ops["kpkg::add"](x, weight.reshape(-1, *[1] * dims)),
    }
    for name, result in results.items():
        assert result.is_contiguous(memory_format=kinds), name


def convolved(run: Callable[..., Any], x: torch.Tensor, w: torch.Tensor, grad: str) -> tuple[torch.Tensor, ...]:
    """Returns the result, and its gradients for an incoming gradient in the order `grad`."""
    x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
    y = run(x, w)
    return y, *torch.autograd.grad(y, (x, w), FORMS[grad](torch.ones(y.shape, dtype=y.dtype)))


@pytest.mark.parametrize("kind", ["conv", "conv_transpose"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_order_of_convolutions_and_their_gradients(ops, kind, rank):
    """Tests that results and gradients are channels-last if input or weight is.

    The order of the incoming gradient does not matter.
    """
    if rank == 3:
        needs_bfloat16_kernels()
    mine, theirs = ops[f"kpkg::{kind}{rank}d"], getattr(F, f"{kind}{rank}d")
    for window in (1, 3):
        x = torch.randn(2, 4, *(6, 5, 7)[:rank]).bfloat16()
        w = torch.randn(6, 4, *[window] * rank).bfloat16() if kind == "conv" else torch.randn(4, 6, *[window] * rank)
        for form_of_x in FORMS:
            for form_of_w in FORMS:
                a, b = FORMS[form_of_x](x), FORMS[form_of_w](w.bfloat16())
                for grad in ("channels last", "reversed"):
                    pairs = zip(convolved(mine, a, b, grad), convolved(theirs, a, b, grad))
                    for name, (found, expected) in zip(("result", "input", "weight"), pairs):
                        assert order(found) == order(expected), (window, form_of_x, form_of_w, grad, name)
