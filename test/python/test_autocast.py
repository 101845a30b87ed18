"""Tests that ops return the dtypes of their counterparts in PyTorch under torch.autocast, on CPUs and on CUDA devices.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import logging

import kpkg
import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

F32, LOW = torch.float32, torch.bfloat16


class Of:
    """A tensor of positive numbers, with the dtype of inputs or of parameters."""

    def __init__(self, *shape, is_parameter=False):
        self.shape, self.is_parameter = shape, is_parameter

    def make(self, input, parameter):
        return torch.rand(self.shape).add(0.1).to(parameter if self.is_parameter else input)


def par(*shape):
    return Of(*shape, is_parameter=True)


def labels(count, high):
    return torch.arange(count) % high


PAIR = (Of(4, 8), par(4, 8))
#: PyTorch's function for each op, and arguments that both take.
COUNTERPARTS = {
    **{
        name: (getattr(F, name), (Of(4, 8),))
        for name in ("relu leaky_relu silu elu selu softplus hardtanh hardsigmoid hardswish mish softsign gelu".split())
    },
    **{name: (getattr(torch, name), (Of(4, 8),)) for name in "sigmoid tanh exp log sqrt abs neg sign square".split()},
    **{name: (getattr(torch, name), PAIR) for name in "add sub mul div minimum maximum".split()},
    **{name: (getattr(torch, name), PAIR) for name in "eq ne lt le gt ge clamp".split()},
    **{name: (getattr(torch, name), PAIR) for name in "floor_divide remainder fmod".split()},
    **{name: (getattr(torch, name), PAIR) for name in "logical_and logical_or logical_xor".split()},
    "logical_not": (torch.logical_not, (Of(4, 8),)),
    **{f"bitwise_{name}": (getattr(torch, f"bitwise_{name}"), (labels(8, 3),) * 2) for name in ("and", "or", "xor")},
    **{
        f"bitwise_{name}_shift": (getattr(torch, f"bitwise_{name}_shift"), (labels(8, 3),) * 2)
        for name in ("left", "right")
    },
    "bitwise_not": (torch.bitwise_not, (labels(8, 3),)),
    "where": (torch.where, (labels(32, 2).bool().reshape(4, 8), *PAIR)),
    "masked_fill": (torch.masked_fill, (Of(4, 8), labels(32, 2).bool().reshape(4, 8), 1.0)),
    "vector_add": (torch.add, (Of(8), par(8))),
    "swiglu": (lambda a, b: F.silu(a) * b, PAIR),
    "geglu": (lambda a, b: F.gelu(a) * b, PAIR),
    **{
        name: (getattr(torch, name), (Of(4, 8), 1))
        for name in "softmax log_softmax logsumexp cumsum cumprod cummax".split()
    },
    **{name: (getattr(torch, name), (Of(4, 8), [1])) for name in "sum mean amax amin var std".split()},
    **{
        name: (lambda x, dim, f=getattr(torch, name): f(x, dim)[0], (Of(4, 8), [1]))
        for name in ("var_mean", "std_mean")
    },
    **{name: (lambda x, dim, f=getattr(torch, name): f(x, dim[0]), (Of(4, 8), [1])) for name in ("argmax", "argmin")},
    **{name: (getattr(torch, name), (Of(4, 8), 1)) for name in ("sort", "argsort")},
    "grid_sample": (F.grid_sample, (Of(1, 2, 4, 4), par(1, 3, 3, 2), "bilinear", "zeros", False)),
    "interpolate": (F.interpolate, (Of(1, 2, 4, 4), [3, 5])),
    "pixel_shuffle": (F.pixel_shuffle, (Of(1, 4, 2, 2), 2)),
    "pixel_unshuffle": (F.pixel_unshuffle, (Of(1, 1, 4, 4), 2)),
    "topk": (torch.topk, (Of(4, 8), 2, 1)),
    "histc": (torch.histc, (Of(4, 8), 5, -1.0, 1.0)),
    "bincount": (lambda x, bins: torch.zeros(bins, dtype=torch.int64), (labels(3, 5), 3)),
    "prod": (lambda x, dim: torch.prod(x, dim[0]), (Of(4, 8), [1])),
    "vector_norm": (torch.linalg.vector_norm, (Of(4, 8), 2.0, [1])),
    "layer_norm": (F.layer_norm, (Of(4, 8), [8], par(8), par(8))),
    "native_layer_norm": (lambda *a: torch.native_layer_norm(*a, 1e-5)[0], (Of(4, 8), [8], par(8), par(8))),
    "rms_norm": (F.rms_norm, (Of(4, 8), [8], par(8))),
    "group_norm": (F.group_norm, (Of(2, 4, 8), 2, par(4), par(4))),
    "native_group_norm": (
        lambda x, groups, w, b: torch.native_group_norm(x, w, b, 2, 4, 8, groups, 1e-5)[0],
        (Of(2, 4, 8), 2, par(4), par(4)),
    ),
    "instance_norm": (lambda x, w, b: F.instance_norm(x, weight=w, bias=b), (Of(2, 4, 8), par(4), par(4))),
    "batch_norm": (F.batch_norm, (Of(2, 4, 8), *(par(4) for _ in range(4)))),
    "batch_norm_training": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        (Of(2, 4, 8), par(4), par(4)),
    ),
    "cross_entropy": (F.cross_entropy, (Of(4, 3), labels(4, 3))),
    "dropout": (F.dropout, (Of(4, 8),)),
    # The loss has the dtype of the logits.
    "linear_cross_entropy": (lambda x, w, t: F.linear(x, w), (Of(4, 8), par(3, 8), labels(4, 3))),
    "kl_div": (lambda x, t, kind: F.kl_div(x, t, reduction=kind), (Of(4, 3), par(4, 3), "batchmean")),
    "bmm": (torch.bmm, (Of(2, 4, 4), par(2, 4, 4))),
    "matmul": (torch.matmul, (Of(4, 4), par(4, 4))),
    "gemm": (torch.mm, (Of(4, 4), par(4, 4))),
    "gemm_batched": (torch.matmul, (Of(2, 4, 4), par(2, 4, 4))),
    "gemv": (torch.mv, (Of(4, 4), par(4))),
    "linear": (F.linear, (Of(4, 8), par(3, 8), par(3))),
    "linear_fused": (F.linear, (Of(4, 8), par(3, 8), par(3))),
    "scaled_dot_product_attention": (F.scaled_dot_product_attention, (Of(1, 2, 4, 8), *2 * (par(1, 2, 4, 8),))),
    "embedding": (lambda weight, indices: F.embedding(indices, weight), (Of(5, 4), labels(3, 5))),
    "embedding_bag": (lambda weight, indices: F.embedding_bag(indices, weight), (Of(5, 4), labels(6, 5).reshape(2, 3))),
    **{
        name: (getattr(torch, name), (Of(2, 4), Of(2, 3), par(3, 4), par(3, 3), par(3), par(3)))
        for name in ("rnn_tanh_cell", "rnn_relu_cell")
    },
    "gru_cell": (torch.gru_cell, (Of(2, 4), Of(2, 3), par(9, 4), par(9, 3), par(9), par(9))),
    "lstm_cell": (
        lambda x, h, c, *rest: torch.lstm_cell(x, [h, c], *rest),
        (Of(2, 4), Of(2, 3), Of(2, 3), par(12, 4), par(12, 3), par(12), par(12)),
    ),
    **{
        name: (
            lambda x, h, *rest, f=getattr(torch, name): f(x, h[None], rest, True, 1, 0.0, False, False, False),
            (Of(5, 2, 4), Of(2, 3), par(3 * gates, 4), par(3 * gates, 3), par(3 * gates), par(3 * gates)),
        )
        for name, gates in (("rnn_tanh", 1), ("rnn_relu", 1), ("gru", 3))
    },
    "lstm": (
        lambda x, h, c, *rest: torch.lstm(x, [h[None], c[None]], rest, True, 1, 0.0, False, False, False),
        (Of(5, 2, 4), Of(2, 3), Of(2, 3), par(12, 4), par(12, 3), par(12), par(12)),
    ),
}
for _rank in (1, 2, 3):
    _image, _window = (2, 3, *(6,) * _rank), (3,) * _rank
    _conv = (getattr(F, f"conv{_rank}d"), (Of(*_image), par(4, 3, *_window), par(4)))
    COUNTERPARTS |= {
        f"conv{_rank}d": _conv,
        f"conv{_rank}d_fused": _conv,
        f"conv_transpose{_rank}d": (
            getattr(F, f"conv_transpose{_rank}d"),
            (Of(*_image), par(3, 4, *_window), par(4)),
        ),
        f"avg_pool{_rank}d": (getattr(F, f"avg_pool{_rank}d"), (Of(*_image), [2] * _rank)),
        f"max_pool{_rank}d": (getattr(F, f"max_pool{_rank}d"), (Of(*_image), [2] * _rank)),
        f"max_pool{_rank}d_with_indices": (
            lambda x, size, f=getattr(F, f"max_pool{_rank}d"): f(x, size, return_indices=True),
            (Of(*_image), [2] * _rank),
        ),
    }
MIXES = {"float32": (F32, F32), "bfloat16": (LOW, LOW), "low input": (LOW, F32), "low parameters": (F32, LOW)}


def dtypes(results):
    return [r.dtype for r in (results if isinstance(results, tuple) else (results,))]


def made(args, mix):
    return [a.make(*MIXES[mix]) if isinstance(a, Of) else a for a in args]


@contextlib.contextmanager
def cuda_autocast():
    """Enables autocast like torch.autocast("cuda"), which requires a GPU."""
    torch.set_autocast_dtype("cuda", LOW)
    torch.set_autocast_enabled("cuda", True)
    try:
        yield
    finally:
        torch.set_autocast_enabled("cuda", False)


def test_all_ops_that_pytorch_has_are_compared(ops):
    hidden = {op._native.reference for op in ops.values()} | {op.gradient for op in ops.values()}
    public = {op.__name__ for op in ops.values() if op.name not in hidden and not op.name.endswith("_backward")}
    assert COUNTERPARTS.keys() <= public
    missing = [name for name in public - COUNTERPARTS.keys() if hasattr(torch, name) or hasattr(F, name)]
    assert not missing, f"PyTorch has {missing}: add them to COUNTERPARTS, with arguments that both take"


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("name", COUNTERPARTS)
def test_dtypes_on_cpus(name, mix, ops):
    theirs, args = COUNTERPARTS[name]
    args = made(args, mix)
    with torch.autocast("cpu", dtype=LOW), kpkg.fallback_policy("silent"):
        try:
            expected = dtypes(theirs(*args))
        except RuntimeError as error:
            pytest.skip(f"PyTorch refuses these dtypes: {error}")
        found = dtypes(getattr(torch.ops.kpkg, name)(*args))
    assert found[: len(expected)] == expected


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("name", COUNTERPARTS)
def test_dtypes_on_cuda_devices(name, mix, ops):
    """Tests dtypes without a GPU: tensors have no memory, so that only the computation of dtypes runs."""
    if name in ("gru_cell", "grid_sample", "rnn_tanh", "rnn_relu", "gru", "lstm"):
        pytest.skip("PyTorch asks for the GPU's kernel before it makes the results")
    if mix == "low parameters" and name.startswith("batch_norm"):
        pytest.skip("PyTorch's kernels refuse these dtypes, which tensors without memory do not show")
    theirs, args = COUNTERPARTS[name]
    args = made(args, mix)
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)
    with FakeTensorMode(allow_non_fake_inputs=True), cuda_autocast():
        args = [torch.empty(a.shape, dtype=a.dtype, device="cuda") if isinstance(a, torch.Tensor) else a for a in args]
        expected = dtypes(theirs(*args))
        found = dtypes(getattr(torch.ops.kpkg, name)(*args))
    assert found[: len(expected)] == expected


def test_arguments_that_autocast_leaves_alone(ops):
    """Tests that slopes stay float32 beside queries, keys and values in the lower dtype."""
    query = torch.randn(1, 2, 16, 32)
    with torch.autocast("cpu", dtype=LOW), kpkg.fallback_policy("silent"):
        out, lse = torch.ops.kpkg.attention_alibi(query, query, query, torch.rand(2))
    assert out.dtype == LOW and lse.dtype == F32
