"""Checks packed weights of 4-bit floats: the layouts of checkpoints, messages for bad input, gradients, compiled code.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import kpkg.quantized
import pytest
import torch
from conftest import BUILD, ROOT, build_package

VALUES = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0])


@pytest.fixture(scope="module")
def fp4_linear():
    package = BUILD / "test-packages" / "fp4.kpkg"
    library = kpkg.load(build_package(ROOT / "kernels_src" / "fp4", package, "--target", "native"))
    library.register_torch()
    return {op.name.partition("::")[2]: op for op in library}["fp4_linear"]


def numbers_of(pairs: torch.Tensor) -> torch.Tensor:
    """Returns the numbers of bytes [..., m] as [..., 2 * m]: first the low half of a byte."""
    found = torch.empty(*pairs.shape[:-1], 2 * pairs.shape[-1])
    found[..., 0::2] = VALUES[(pairs % 16).long()]
    found[..., 1::2] = VALUES[(pairs // 16).long()]
    return found


def drawn(n: int, k: int, group: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(0, 256, (n, k // 2), dtype=torch.uint8, generator=generator)
    x = torch.randn(3, k, generator=generator).bfloat16()
    if group == 32:
        return x, pairs, torch.randint(120, 130, (n, k // 32), dtype=torch.uint8, generator=generator)
    return x, pairs, torch.randn(n, k // 16, generator=generator).to(torch.float8_e4m3fn)


def close(found: torch.Tensor, x: torch.Tensor, dense: torch.Tensor, bias: torch.Tensor | float = 0.0) -> None:
    exact = x.double() @ dense.double().t() + bias
    size = x.double().abs() @ dense.double().abs().t()
    assert ((found.double() - exact).abs() <= 2**-8 * exact.abs() + 1e-5 * size).all()


@pytest.mark.parametrize(("n", "k"), [(16, 64), (40, 96), (130, 32), (1, 608), (33, 1088)])
def test_mxfp4_of_gpt_oss(n, k, fp4_linear):
    x, pairs, exponents = drawn(n, k, 32, n)
    dense = numbers_of(pairs) * 2.0 ** (exponents.float() - 127).repeat_interleave(32, 1)
    for blocks in (pairs.unflatten(1, (-1, 16)), pairs, pairs.view(torch.float4_e2m1fn_x2)):
        packed = kpkg.quantized.pack_mxfp4(blocks, exponents)
        assert packed.scales.dtype == torch.float8_e8m0fnu and packed.scale == 1
        close(fp4_linear(x, *packed), x, dense)
    again = kpkg.quantized.pack_mxfp4(pairs, exponents.view(torch.float8_e8m0fnu))
    assert torch.equal(again.weight, packed.weight)


@pytest.mark.parametrize(("n", "k"), [(16, 64), (40, 80), (130, 16), (1, 608), (33, 1088)])
def test_nvfp4(n, k, fp4_linear):
    x, pairs, scales = drawn(n, k, 16, n)
    dense = numbers_of(pairs) * scales.float().repeat_interleave(16, 1)
    of_modelopt = kpkg.quantized.pack_nvfp4(pairs, scales, weight_scale_2=torch.tensor(0.125))
    of_tensors = kpkg.quantized.pack_nvfp4(pairs, scales, weight_global_scale=torch.tensor([8.0]))
    for packed in (of_modelopt, of_tensors):
        bias = torch.randn(n).bfloat16()
        close(fp4_linear(x, *packed, bias), x, dense / 8, bias.double())
        close(fp4_linear(x, *packed), x, dense / 8)


def test_weights_of_experts_are_packed_together(fp4_linear):
    x, pairs, exponents = drawn(6 * 32, 64, 32, 5)
    experts = kpkg.quantized.pack_mxfp4(pairs.unflatten(0, (6, 32)), exponents.unflatten(0, (6, 32)))
    for i in range(6):
        alone = kpkg.quantized.pack_mxfp4(pairs[32 * i : 32 * i + 32], exponents[32 * i : 32 * i + 32])
        assert torch.equal(experts.weight[i], alone.weight)
        assert torch.equal(fp4_linear(x, experts.weight[i], experts.scales[i]), fp4_linear(x, *alone))


P, E = torch.zeros(8, 32, dtype=torch.uint8), torch.full((8, 2), 127, dtype=torch.uint8)
S = torch.ones(8, 4).to(torch.float8_e4m3fn)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kpkg.quantized.pack_mxfp4(P.int(), E), r"blocks is torch.int32 \[8, 32\], expected uint8"),
        (
            lambda: kpkg.quantized.pack_mxfp4(P, E.int()),
            r"scales is torch.int32 \[8, 2\], expected uint8 or float8_e8m0",
        ),
        (lambda: kpkg.quantized.pack_mxfp4(P, E[:, :1]), r"scales has shape \[8, 1\], expected \[8, 2\]"),
        (
            lambda: kpkg.quantized.pack_mxfp4(P[:, :24], E[:, :1]),
            "blocks have rows of 48 columns, expected a multiple of 32",
        ),
        (lambda: kpkg.quantized.pack_nvfp4(P, S.float()), "weight_scale is torch.float32, expected float8_e4m3fn"),
        (lambda: kpkg.quantized.pack_nvfp4(P, S[:4]), r"weight_scale has shape \[4, 4\], expected \[8, 4\]"),
        (
            lambda: kpkg.quantized.pack_nvfp4(P, S, weight_global_scale=1.0, weight_scale_2=1.0),
            "weight_global_scale and weight_scale_2 are both given",
        ),
        (
            lambda: kpkg.quantized.pack_nvfp4(P, S, weight_scale_2=torch.ones(8)),
            r"has shape \[8\], expected one number",
        ),
        (lambda: kpkg.quantized.pack_nvfp4(P, S, weight_scale_2=0.0), "is 0.0, expected a positive number"),
    ],
)
def test_messages_of_packing(call, message):
    with pytest.raises(ValueError, match=message):
        call()


X = torch.zeros(2, 64, dtype=torch.bfloat16)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, w, s: (x, w, s.view(torch.uint8)), "scales are uint8, expected float8_e8m0fnu .* or float8_e4m3fn"),
        (lambda x, w, s: (x, w.long(), s), "weight is int64 .*, expected int32"),
        (lambda x, w, s: (x, w[:, :64], s), r"weight has shape \[1, 64\], expected \[k / 64, 128\] for 8 columns"),
        (lambda x, w, s: (torch.zeros(2, 128).bfloat16(), w, s), r"input has shape \[2, 128\]: weight has 1 \* 64"),
        (lambda x, w, s: (x, w, s[:1]), r"input has shape \[2, 64\], which 1 groups of 32 columns do not fit"),
        (lambda x, w, s: (x.float(), w, s), "input is float32, expected float16 or bfloat16"),
        (lambda x, w, s: (x, w, s, 1.0, torch.zeros(7).bfloat16()), r"bias is bfloat16 \[7\], expected bfloat16 \[8\]"),
    ],
)
def test_messages(change, message, fp4_linear):
    packed = kpkg.quantized.pack_mxfp4(P, E)
    with pytest.raises(kpkg.KernelError, match=message):
        fp4_linear(*change(X, packed.weight, packed.scales))


def test_gradient_of_the_input(fp4_linear):
    x, pairs, exponents = drawn(24, 96, 32, 9)
    x = x.requires_grad_()
    grad = torch.randn(3, 24).bfloat16()
    with kpkg.fallback_policy("silent"):
        fp4_linear(x, *kpkg.quantized.pack_mxfp4(pairs, exponents)).backward(grad)
    dense = numbers_of(pairs) * 2.0 ** (exponents.float() - 127).repeat_interleave(32, 1)
    torch.testing.assert_close(x.grad.float(), grad.float() @ dense, rtol=2e-2, atol=0.5)


def test_compiled(fp4_linear):
    x, pairs, exponents = drawn(24, 96, 32, 9)
    packed = kpkg.quantized.pack_mxfp4(pairs, exponents)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def layer(x):
        return fp4_linear(x, packed.weight, packed.scales) * 2

    assert torch.equal(layer(x), 2 * fp4_linear(x, *packed))


def test_packed_tensors_of_pytorch_are_refused_by_name(fp4_linear):
    with pytest.raises((kpkg.KernelError, TypeError), match="weight"):
        fp4_linear(X, torch.zeros(1, 128, dtype=torch.uint8).view(torch.float4_e2m1fn_x2), E.t())
