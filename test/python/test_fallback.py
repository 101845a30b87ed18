"""What happens when a package has no kernel for a call: PyTorch's implementation, seen and counted, or an error.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import warnings
from pathlib import Path

import kpkg
import numpy as np
import pytest
import torch
from conftest import build_package, load_source
from torch.testing import assert_close

# Each op of kernels_src for one dtype only, so that every other one falls back.
SOURCE = '''
@kernel
@specialize(T=[float32])
def copy[T: DType](x: Tensor[T, 1], mut y: Tensor[T, 1]):
    y.tile[64](block_idx.x).store(x.tile[64](block_idx.x).load())

@register.op("kpkg_test::negate_twice")
def negate_twice(input: Tensor) raises -> Tensor:
    """The input itself."""
    var out = empty_like(input)
    launch copy[T=input.dtype](input.reshape(input.numel()), out.reshape(out.numel()), grid=ceildiv(input.numel(), 64))
    return out


@kernel
@specialize(T=[float16, float32])
def times[T: DType](x: Tensor[T, 1], rates: Tensor[accumulator(T), 1], mut y: Tensor[T, 1]):
    var products = x.tile[64](block_idx.x).load().cast[accumulator(T)]() * rates.tile[64](block_idx.x).load()
    y.tile[64](block_idx.x).store(products.cast[T]())

@register.op("kpkg_test::rated")
def rated(input: Tensor, rates: Tensor) raises -> Tensor:
    """The product with numbers of the accumulator's dtype."""
    var out = empty_like(input)
    launch times[T=input.dtype](input, rates, out, grid=ceildiv(input.numel(), 64))
    return out
'''


@pytest.fixture(scope="module")
def library():
    kpkg.set_fallback("kpkg_test::negate_twice", lambda input: -(-input))
    kpkg.set_fallback("kpkg_test::rated", lambda input, rates: input * rates)
    return load_source("fallback/narrow", SOURCE)


def test_strict_raises_with_what_was_tried(library):
    with kpkg.fallback_policy("strict"), pytest.raises(kpkg.KernelError, match="float64.*float32"):
        library.negate_twice(torch.ones(3, dtype=torch.float64))


def test_warn_warns_once_per_reason_and_counts(library):
    x = torch.randn(5, dtype=torch.float64)
    with kpkg.fallback_policy("warn"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        before = library.negate_twice.stats()["fallbacks"]
        for _ in range(3):
            assert_close(library.negate_twice(x), x)
        assert_close(library.negate_twice(x.to(torch.int32)), x.to(torch.int32))
        assert library.negate_twice.stats()["fallbacks"] == before + 4
    texts = [str(w.message) for w in caught if issubclass(w.category, kpkg.FallbackWarning)]
    assert len(texts) == 2, texts
    assert "float64" in texts[0] and "kpkg_test::negate_twice" in texts[0]
    assert "fallback" in str(kpkg.kernel_info()["kpkg_test::negate_twice"])


def test_kernel_info_says_what_is_tried_and_by_which_policy(library, ops):
    name, path = "kpkg_test::negate_twice", library.path
    with kpkg.fallback_policy("warn"):
        info = kpkg.kernel_info()[name]
        assert info["policy"] == "warn" and info["chain"] == [path, "<lambda>, given to set_fallback"]
        assert kpkg.kernel_info()["kpkg::softmax"]["chain"][1:] == [
            "PyTorch's implementation",
            "kpkg::softmax_reference",
        ]
        with kpkg.fallback_policy("strict", op=name):  # before those of the library and of all
            info = kpkg.kernel_info()[name]
            assert info["policy"] == "strict" and info["chain"] == [path]
        library.set_fallback_policy("silent")
        try:
            assert kpkg.kernel_info()[name]["policy"] == "silent"
        finally:
            library.set_fallback_policy(None)


def build_narrow(folder: Path, name: str, *options: str) -> kpkg.CustomOpLibrary:
    """Builds the source with another name of its op, for two dtypes before options restrict them."""
    source = folder / f"{name}.k"
    source.write_text(SOURCE.replace("negate_twice", name).replace("[float32]", "[float32, float64]"))
    return kpkg.load(build_package(source, source.with_suffix(".kpkg"), "--target", "native", *options))


def test_reasons_name_dtypes_that_the_build_left_out(tmp_path):
    kpkg.set_fallback("kpkg_test::left_out", lambda input: input + 0)
    narrow = build_narrow(tmp_path, "left_out", "--fast", "--dtypes=f32")
    x = torch.randn(5, dtype=torch.float64)
    reason = "float64 is not supported.*the package was built with --dtypes=float32"
    with kpkg.fallback_policy("warn"), pytest.warns(kpkg.FallbackWarning, match=reason):
        assert_close(narrow.left_out(x), x)
    with kpkg.fallback_policy("strict"):
        assert_close(narrow.left_out(x.float()), x.float())
        with pytest.raises(kpkg.KernelError, match=reason):
            narrow.left_out(x)


def test_a_dtype_without_an_instance_falls_back_whatever_follows_from_it(library):
    x, rates = torch.randn(70), torch.randn(70)
    with kpkg.fallback_policy("strict"):
        assert_close(library.rated(x, rates), x * rates)
        with pytest.raises(kpkg.KernelError, match="dtype float64 is not supported.*float16, float32"):
            library.rated(x.double(), rates.double())
    with kpkg.fallback_policy("warn"), pytest.warns(kpkg.FallbackWarning, match="dtype float64 is not supported"):
        assert_close(library.rated(x.double(), rates.double()), x.double() * rates.double())
    with kpkg.fallback_policy("silent"), pytest.raises(kpkg.KernelError, match="'rates' is float64, expected float32"):
        library.rated(x, rates.double())  # a wrong argument of a dtype that has instances


def test_failed_checks_never_fall_back(tmp_path):
    kpkg.set_fallback("kpkg_test::checked", lambda input: input + 0)
    checked = build_narrow(tmp_path, "checked", "--sanitize=nan")
    x = torch.ones(5)
    with kpkg.fallback_policy("warn"):
        assert_close(checked.checked(x), x)
        with pytest.raises(kpkg.KernelError, match=r"checked\.k:5: in `copy`: NaN is written to `y`"):
            checked.checked(x * float("nan"))


def test_silent_is_silent(library):
    with kpkg.fallback_policy("silent"), warnings.catch_warnings():
        warnings.simplefilter("error")
        library.negate_twice(torch.ones(3, dtype=torch.uint8))


def test_library_policy_overrides(library):
    with kpkg.fallback_policy("silent"):
        library.set_fallback_policy("strict")
        try:
            with pytest.raises(kpkg.KernelError):
                library.negate_twice(torch.ones(3, dtype=torch.uint8))
        finally:
            library.set_fallback_policy(None)
        library.negate_twice(torch.ones(3, dtype=torch.uint8))


def test_out_form_falls_back_too(library):
    x = torch.randn(4, dtype=torch.float64)
    out = torch.empty(4, dtype=torch.float64)
    with kpkg.fallback_policy("silent"):
        assert library.negate_twice.out(x, out=out) is out
        assert_close(out, x)
        with pytest.raises(kpkg.KernelError, match="out is"):
            library.negate_twice.out(x, out=torch.empty(5, dtype=torch.float64))


def test_bad_arguments_never_fall_back(ops):
    with kpkg.fallback_policy("silent"), pytest.raises(kpkg.KernelError):
        ops["kpkg::gemm"](torch.ones(2, 3), torch.ones(2, 3))


def test_errors_of_the_fallback_keep_their_text(ops):
    with kpkg.fallback_policy("silent"), pytest.raises(kpkg.KernelError, match="not implemented for"):
        ops["kpkg::softmax"](torch.ones(2, 3, dtype=torch.int64))


def test_numpy_has_no_fallback(library):
    with kpkg.fallback_policy("silent"), pytest.raises(kpkg.KernelError):
        library.negate_twice(np.ones(3))


SHIPPED = {
    "vector_add": lambda x: (x, x),
    "softmax": lambda x: (x, 0),
    "log_softmax": lambda x: (x, 1),
    "layer_norm": lambda x: (x, [4]),
    "native_layer_norm": lambda x: (x, [4], x[0], x[1]),
    "rms_norm": lambda x: (x, [4], x[0]),
    "gemm": lambda x: (x, x, 2.0, 1.0, True, False),
    "gemm_batched": lambda x: (x, x),
    "linear": lambda x: (x, x, x[0]),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_op_has_a_fallback_of_the_same_results(name, ops):
    """The fallback of each op gives what the kernel gives: same shapes, dtypes and values."""
    from kpkg import _fallbacks

    x = torch.randn(4, 4)
    args = SHIPPED[name](x)
    kernel, fallback = ops[f"kpkg::{name}"](*args), _fallbacks.implementation(ops[f"kpkg::{name}"])(*args)
    assert_close(kernel, fallback)


def test_policies_are_checked():
    with pytest.raises(ValueError, match="strict, warn, silent"):
        kpkg.set_fallback_policy("never")
