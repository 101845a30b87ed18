"""Checks that ops refuse wrong arguments with a typed error before anything runs.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import numpy as np
import pytest
import torch
from kpkg import KernelError


def t(*shape, dtype=torch.float32):
    return torch.ones(shape, dtype=dtype)


REFUSED = [
    ("softmax", (t(2, 3), 2), {}, "dim"),
    ("softmax", (t(2, 3), -3), {}, "dim"),
    ("log_softmax", (t(), 1), {}, "dim"),
    ("vector_add", (t(3), t(4)), {}, "shapes differ"),
    ("vector_add", (t(3), t(3, dtype=torch.float64)), {}, "float64"),
    ("layer_norm", (t(2, 3), []), {}, "normalized_shape"),
    ("layer_norm", (t(2, 3), [2]), {}, "normalized_shape"),
    ("layer_norm", (t(3), [2, 3]), {}, "normalized_shape"),
    ("layer_norm", (t(2, 3), [3], t(4)), {}, "weight"),
    ("layer_norm", (t(2, 3), [3], t(3), t(2)), {}, "bias"),
    ("layer_norm", (t(2, 3), [3], t(3, dtype=torch.float64)), {}, "float64"),
    ("rms_norm", (t(2, 3), [3], t(1)), {}, "weight"),
    ("gemm", (t(2, 3), t(2, 3)), {}, "inner dimensions"),
    ("gemm", (t(3), t(3)), {}, "matrices"),
    ("gemm", (t(2, 3), t(3, 2, dtype=torch.float16)), {}, "float16"),
    ("gemm", (t(2, 3), t(3, 2)), {"c": t(3, 3)}, "expand"),
    ("gemm", (t(2, 3), t(3, 2)), {"c": t(1, 2, 2)}, ""),
    ("gemm", (t(2, 3), t(3, 2)), {"activation": "swish"}, "none, relu, gelu or silu"),
    ("linear", (t(2, 3), t(2, 4)), {}, "inner dimensions"),
    ("gemm_batched", (t(2, 2, 3), t(3, 3, 2)), {}, "broadcast"),
    ("gemm_batched", (t(3), t(3, 2)), {}, "matrices"),
]


@pytest.mark.parametrize("name, args, kwargs, says", REFUSED)
@pytest.mark.parametrize("kind", ["torch", "torch.ops", "numpy"])
def test_refused(name, args, kwargs, says, kind, ops):
    op = ops[f"kpkg::{name}"]
    error: type[Exception] = KernelError
    call = op
    if kind == "torch.ops":
        call, error = getattr(torch.ops.kpkg, name), RuntimeError
    if kind == "torch" and op.rules.promotion and says in ("float16", "float64"):
        pytest.skip("PyTorch tensors of two dtypes are promoted: test_promotion.py")
    if kind == "numpy":
        args = tuple(a.numpy() if isinstance(a, torch.Tensor) else a for a in args)
        kwargs = {k: v.numpy() if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    assert says.lower() in str(caught.value).lower()
    assert f"kpkg::{name}" in str(caught.value)


SCHEMA = [
    ("softmax", (t(2, 3),), {"dimension": 1}, "dimension"),
    ("softmax", (t(2, 3), "a"), {}, "'dim' is 'a', expected int"),
    ("softmax", (t(2, 3), 1.0), {}, "'dim' is 1.0, expected int"),
    ("softmax", (t(2, 3), 2**70), {}, "64 bits"),
    ("softmax", (t(2, 3), 1, None, False, 2), {}, "takes 4 arguments"),
    ("softmax", (t(2, 3),), {"out": np.ones((2, 3), np.float32)}, "`out` is of type ndarray"),
    ("layer_norm", (t(2, 3), 3.0), {}, "'normalized_shape' is 3.0, expected int\\[\\]"),
    ("gemm", (t(2, 3), [[1.0]]), {}, "'b' is"),
    ("gemm", (t(2, 3), t(3, 2)), {"activation": 1}, "'activation' is 1"),
]


@pytest.mark.parametrize("name, args, kwargs, says", SCHEMA)
def test_what_does_not_fit_the_schema_is_a_type_error(name, args, kwargs, says, ops):
    with pytest.raises(TypeError, match=says) as caught:
        ops[f"kpkg::{name}"](*args, **kwargs)
    assert f"kpkg::{name}" in str(caught.value)


def test_unsupported_dtype_lists_the_supported_ones(ops):
    with pytest.raises(KernelError, match="int64.*float32"):
        ops["kpkg::softmax"](t(2, 3, dtype=torch.int64), -1)


def test_out_of_another_shape_or_dtype(ops):
    x = t(2, 3)
    for out in (t(3, 2), t(2, 3, dtype=torch.float64)):
        with pytest.raises(KernelError):
            ops["kpkg::softmax"].out(x, out=out)


def test_out_may_have_strides_and_overlap_the_input(ops):
    x = torch.randn(4, 4)
    out = torch.empty(4, 8)[:, ::2]
    ops["kpkg::softmax"].out(x, out=out)
    torch.testing.assert_close(out, x.softmax(-1))
    shifted = torch.randn(20)
    source, target = shifted[:16].view(4, 4), shifted[4:].view(4, 4)
    expected = source.softmax(-1)
    ops["kpkg::softmax"].out(source, out=target)
    torch.testing.assert_close(target, expected)


@pytest.mark.parametrize(
    "args, kwargs",
    [
        ((), {}),
        ((1,), {}),
        ((np.ones(3), "x"), {}),
        ((np.ones(3),), {"axis": 0}),
        ((np.ones(3), 0), {"dim": 0}),
        ((np.ones(3), 0, None, False, 0), {}),
    ],
)
def test_arguments_that_do_not_fit_the_schema(args, kwargs, ops):
    with pytest.raises(TypeError, match="softmax|dim"):
        ops["kpkg::softmax"](*args, **kwargs)


def test_read_only_out(ops):
    out = np.ones(3, np.float32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        ops["kpkg::softmax"].out(np.ones(3, np.float32), out=out)


def test_packages_that_cannot_be_opened(tmp_path):
    with pytest.raises(OSError, match="nothing.kpkg"):
        kpkg.load(tmp_path / "nothing.kpkg")
    text = tmp_path / "text.kpkg"
    text.write_text("not a package")
    with pytest.raises(kpkg.PackageError, match="text.kpkg"):
        kpkg.load(text)


def test_damaged_package(packages, tmp_path):
    data = bytearray(packages["vector_add"].read_bytes())
    data[len(data) // 2] ^= 0xFF
    path = tmp_path / "damaged.kpkg"
    path.write_bytes(data)
    with pytest.raises((kpkg.PackageError, KernelError)):
        kpkg.CustomOpLibrary(path).vector_add(np.ones(3, np.float32), np.ones(3, np.float32))


def test_unknown_op(libraries):
    with pytest.raises(AttributeError, match="softmax"):
        libraries["softmax"].gelu
