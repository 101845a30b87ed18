"""Every op under torch.autocast has the dtypes that PyTorch's op of the same work has there.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from kpkg import _transforms, _vjp
from opspec import Sample, as_tuple, load_specs

SPECS = load_specs()
#: Ops of PyTorch by the op of kpkg that does the same, where the name is another one.
ATEN = {
    "gemm": "mm", "gemm_batched": "bmm", "gemv": "mv", "softmax": "softmax.int", "log_softmax": "log_softmax.int",
    "vector_norm": "linalg_vector_norm", "conv_transpose2d": "conv_transpose2d.input",
    "conv_transpose3d": "conv_transpose3d.input", "add": "add.Tensor", "sub": "sub.Tensor", "mul": "mul.Tensor",
    "div": "div.Tensor", "sum": "sum.dim_IntList", "mean": "mean.dim",
}  # fmt: skip
#: Compositions in PyTorch, of which a part has the rule.
PARTS = {
    ("cross_entropy", "CPU"): "cross_entropy_loss",
    ("cross_entropy", "CUDA"): "nll_loss",
    ("rnn_tanh_cell", "CPU"): "linear",
    ("rnn_relu_cell", "CPU"): "linear",
}

#: Implementations that compose PyTorch's ops and choose dtypes of their own. Packed weights keep theirs.
_OWN = (
    "sparse_linear compressed_linear block_sparse_linear half_sparse_linear "
    "sparse_conv2d block_sparse_conv2d half_sparse_conv2d "
    "gemm gemm_batched linear_fused conv1d_fused conv2d_fused conv3d_fused prod attention attention_decode "
    "attention_latent attention_fp8 attention_alibi attention_relative attention_documents attention_varlen"
).split()
#: Calls of another meaning where the first tensor alone is narrow, or sums whose dtype PyTorch has no op for.
_NOT_MIXED = (
    "gemv moved_statistics scaled_conv2d residual_rms_norm residual_layer_norm softmax_backward log_softmax_backward "
    "grouped_gemm residual_rms_norm_quantize rotary_embedding rotary_embedding_backward"
).split()


def dtypes(results: object) -> list[torch.dtype]:
    return [result.dtype for result in as_tuple(results) if isinstance(result, torch.Tensor)]


def narrow_first(sample: Sample) -> Sample:
    """The call with its first tensor in bfloat16: activations beside parameters in float32."""
    rest = iter([True])

    def one(t: torch.Tensor) -> torch.Tensor:
        return t.bfloat16() if t.dtype == torch.float32 and next(rest, False) else t

    return sample.map(one)


def call_of(spec, form):
    dtype = torch.bfloat16 if form == "narrow" else torch.float32
    for sample in spec.samples(dtype if dtype in spec.dtypes else spec.dtypes[0], torch.Generator().manual_seed(4)):
        tensors = [v for v in (*sample.args, *sample.kwargs.values()) if isinstance(v, torch.Tensor)]
        if all(t.numel() for t in tensors) and 8 <= sum(t.numel() for t in tensors) < 50_000:
            return narrow_first(sample) if form == "mixed" else sample
    return None


def is_compared(name: str) -> bool:
    return name.partition("::")[2] not in _OWN and _vjp.implementation(name) is not None


@pytest.mark.parametrize("form", ["wide", "narrow", "mixed"])
@pytest.mark.parametrize("spec", [pytest.param(s, id=s.name) for s in SPECS if is_compared(s.name)])
def test_dtypes_on_the_cpu(spec, form, ops):
    sample, run = call_of(spec, form), _vjp.implementation(spec.name)
    if sample is None or (form == "mixed" and spec.name.partition("::")[2] in _NOT_MIXED):
        pytest.skip("no such call")
    with torch.autocast("cpu", dtype=torch.bfloat16), kpkg.fallback_policy("silent"):
        try:
            expected = dtypes(run(*sample.args, **sample.kwargs))
        except (RuntimeError, ValueError):
            pytest.skip("PyTorch refuses the call")
        assert dtypes(ops[spec.name](*sample.args, **sample.kwargs)) == expected


X, W = torch.randn(4, 8), torch.randn(6, 8)
IMAGES, KERNEL = torch.randn(1, 3, 5, 5), torch.randn(2, 3, 3, 3)
F = torch.nn.functional
Q = torch.randn(1, 2, 4, 8)
PAIRS = {
    "attention": ((Q, Q, Q), F.scaled_dot_product_attention),
    "gemm": ((X, W.T), torch.mm),
    "gemm_batched": ((X[None], W.T[None]), torch.bmm),
    "linear_fused": ((X, W), F.linear),
    "conv2d_fused": ((IMAGES, KERNEL), F.conv2d),
    "prod": ((X,), torch.prod),
    "conv2d": ((IMAGES.double(), KERNEL.double()), F.conv2d),
}


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_dtypes_of_others(name, narrow, ops):
    args, theirs = PAIRS[name]
    if narrow and args[0].dtype != torch.float64:
        args = (args[0].bfloat16(), *args[1:])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert dtypes(ops[f"kpkg::{name}"](*args))[:1] == dtypes(theirs(*args))


def test_a_refused_call_names_the_dtypes_that_were_given(ops):
    mat = torch.zeros(16, 16, dtype=torch.float8_e4m3fn)
    one = torch.ones(())
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(kpkg.KernelError, match="bfloat16"):
        ops["kpkg::scaled_gemm"](torch.ones(16, 16, dtype=torch.bfloat16), mat.t(), one, one, torch.bfloat16)


def test_gradients_have_the_dtypes_of_parameters(ops):
    """As PyTorch's: what is cast in the forward is cast back behind the backward."""
    x, w = torch.randn(2, 3, 5, 5, requires_grad=True), KERNEL.clone().requires_grad_()
    norm = torch.rand(2, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = torch.ops.kpkg.group_norm(torch.ops.kpkg.conv2d(x, w), 2, norm, norm)
    assert y.dtype == torch.bfloat16
    y.float().square().sum().backward()
    assert x.grad.dtype == w.grad.dtype == norm.grad.dtype == torch.float32


def test_rules_are_where_pytorch_has_some(ops):
    """Its dispatcher knows of which ops, also of those for GPUs."""
    compared = 0
    for name, op in ops.items():
        local = name.partition("::")[2]
        for device, rule in zip(("CPU", "CUDA"), _transforms.casts(op) or (None, None)):
            try:
                theirs = torch._C._dispatch_has_kernel_for_dispatch_key(
                    f"aten::{PARTS.get((local, device)) or ATEN.get(local, local)}", f"Autocast{device}"
                )
            except RuntimeError:
                continue  # no op of PyTorch
            compared += 1
            assert bool(theirs) == (rule is not None), f"{name} on {device}"
    assert compared > 150
