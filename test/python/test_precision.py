"""Tests the precision of float32 products: an op's argument `precision`, a configuration, and PyTorch's switches.

The package has gemm's GPU kernels, compiled for this CPU. The CPU multiplies float32 exactly in either case, so that
tests check which kernel a call selects.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import kpkg
import pytest
import torch
from conftest import build_for_gpus
from torch import Tensor

LEVELS = ("highest", "high", "medium")
SHAPES = [(64, 64, 64), (5, 7, 3), (129, 257, 258), (70, 1, 300), (520, 515, 521), (6, 130, 0)]


@pytest.fixture(scope="module")
def products(libraries: Any) -> Any:
    """`libraries` are loaded first, so that PyTorch does not find the GPU package's ops by name."""
    return kpkg.load(build_for_gpus("gemm"))


@pytest.fixture(autouse=True)
def switches() -> Iterator[None]:
    """Restores the defaults of a new process."""
    yield
    torch.set_float32_matmul_precision("highest")


@contextmanager
def launched(op: Any) -> Iterator[dict[str, int]]:
    """Yields a dict that holds, after the block, how often `op` launched each kernel."""

    def counts() -> dict[str, int]:
        found: dict[str, int] = {}
        for each in json.loads(op._native.kernel_info())["instances"]:
            name = each["instance"].partition("[")[0]
            found[name] = found.get(name, 0) + each["launches"]
        return found

    before, made = counts(), {}
    yield made
    made |= {name: count - before.get(name, 0) for name, count in counts().items() if count > before.get(name, 0)}


def rounds(op: Any, *args: Any, **kwargs: Any) -> bool:
    """Returns whether the call may round factors."""
    with launched(op) as made:
        op(*args, **kwargs)
    return "gemm_rounded" in made


def factors(m: int, n: int, k: int, order: str = "nn") -> tuple[Tensor, Tensor]:
    a = torch.randn(k, m).T if order[0] == "t" else torch.randn(m, k)
    return a, torch.randn(n, k).T if order[1] == "t" else torch.randn(k, n)


@pytest.mark.parametrize("level", LEVELS)
def test_errors_are_within_what_a_level_allows(products: Any, level: str) -> None:
    for i, (m, n, k) in enumerate(SHAPES):
        a, b = factors(m, n, k, ("nn", "nt", "tn", "tt")[i % 4])
        bias, c = torch.randn(n), torch.randn(m, n)
        found = products.gemm(a, b, 0.5, 2.0, c=c, bias=bias, precision=level).double()
        expected = 0.5 * (a.double() @ b.double()) + 2.0 * c.double() + bias.double()
        size = a.double().abs() @ b.double().abs() + 2.0 * c.double().abs() + bias.double().abs()
        unit = 2.0**-20 if level == "highest" else 2.0**-10
        assert bool(((found - expected).abs() <= unit * size).all()), (m, n, k)


@pytest.mark.parametrize("order", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("straight", ["0", "1"])
def test_both_forms_of_the_product(products: Any, order: str, straight: str) -> None:
    a, b = factors(132, 200, 68, order)
    c, bias = torch.randn(132, 200), torch.randn(200)
    with products.gemm.configure(kpkg.KernelConfig(params={"STRAIGHT": straight}, precision="high")):
        found = products.gemm(a, b), products.gemm(a, b, c=c, bias=bias, activation="silu")
    torch.testing.assert_close(found[0], a @ b, rtol=1e-4, atol=1e-4)
    expected = torch.nn.functional.silu(a @ b + c + bias)
    torch.testing.assert_close(found[1], expected, rtol=1e-4, atol=1e-4)


def test_large_products_of_odd_extents_are_copied_for_alignment(products: Any) -> None:
    a, b = factors(517, 515, 521)
    c, bias = torch.randn(515), torch.randn(515)
    with launched(products.gemm) as made:
        found = products.gemm(a, b, c=c, bias=bias, precision="high")
    assert made["gemm_rounded"] == 1 and made["copy_blocks"] >= 4
    torch.testing.assert_close(found, a @ b + c + bias, rtol=1e-4, atol=1e-3)


def test_the_argument_chooses_the_kernel(products: Any) -> None:
    a, b = factors(64, 48, 32)
    assert [rounds(products.gemm, a, b, precision=level) for level in ("", *LEVELS)] == [False, False, True, True]
    assert [rounds(products.linear, a, b.T, precision=level) for level in LEVELS] == [False, True, True]
    assert [rounds(products.linear_fused, a, b.T, precision=level) for level in LEVELS] == [False, True, True]
    assert [rounds(products.matmul, a, b, precision=level) for level in LEVELS] == [False, True, True]
    assert [rounds(products.bmm, a[None], b[None], precision=level) for level in LEVELS] == [False, True, True]
    assert [rounds(products.gemm_batched, a, b[None], precision=level) for level in LEVELS] == [False, True, True]
    assert not rounds(products.gemm, a.double(), b.double(), precision="high")
    assert not rounds(products.gemm, a[:3], b, precision="high")  # few rows: memory bandwidth limits them


def test_pytorchs_switches_are_followed(products: Any) -> None:
    a, b = factors(64, 48, 32)
    for level in LEVELS:
        torch.set_float32_matmul_precision(level)
        assert rounds(products.gemm, a, b) is (level != "highest")
        assert not rounds(products.gemm, a, b, precision="highest")
        assert ("gemm_rounded[" in products.gemm.explain(a, b)) is (level != "highest")
        assert not rounds(products.gemm, a.numpy(), b.numpy())  # not a call from PyTorch
    torch.backends.mkldnn.matmul.fp32_precision = "tf32"
    assert rounds(products.matmul, a, b)
    torch.backends.mkldnn.matmul.fp32_precision = "ieee"
    assert not rounds(products.matmul, a, b)


def test_switches_for_gpus_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from kpkg import _precision

    cuda = 2
    assert _precision.of_device(cuda) == "highest"
    torch.backends.cuda.matmul.allow_tf32 = True
    assert (_precision.of_device(cuda), _precision.of_device(1)) == ("high", "highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    assert _precision.of_device(cuda) == "highest"
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    assert _precision.of_device(cuda) == "high"
    monkeypatch.setattr(_precision, "_read", _precision._read_backends)
    assert _precision.of_device(cuda) == "high"
    torch.backends.cuda.matmul.fp32_precision = "ieee"
    assert _precision.of_device(cuda) == "highest"


def test_gradients_follow(products: Any) -> None:
    for name in ("gemm", "matmul", "linear", "bmm"):
        a, b = (x.requires_grad_() for x in factors(64, 48, 32))
        op, backward = products[f"kpkg::{name}"], products[f"kpkg::{name}_autograd"]
        given = (a[None], b[None]) if name == "bmm" else (a, b.T if name == "linear" else b)
        for level in ("highest", "high"):
            with launched(backward) as made:
                op(*given, precision=level).sum().backward()
            assert made.get("gemm_rounded", 0) == (2 if level == "high" else 0), name
        torch.set_float32_matmul_precision("high")
        with launched(backward) as made:
            op(*given).sum().backward()
        assert made["gemm_rounded"] == 2
        torch.set_float32_matmul_precision("highest")
        ones = torch.ones(64, 48)
        torch.testing.assert_close(a.grad, 3 * (ones @ b.detach().T), rtol=1e-4, atol=1e-4)


def test_a_configuration_goes_before_the_switch_and_an_argument_before_both(products: Any) -> None:
    a, b = factors(64, 48, 32)
    torch.set_float32_matmul_precision("high")
    with products.gemm.configure(kpkg.KernelConfig(precision="highest")):
        assert not rounds(products.gemm, a, b)
        assert rounds(products.gemm, a, b, precision="high")
    torch.set_float32_matmul_precision("highest")
    for level in (kpkg.PrecisionConfig.HIGH, kpkg.PrecisionConfig.MEDIUM, "High"):
        with products.gemm.configure(kpkg.KernelConfig(precision=level)):
            assert rounds(products.gemm, a, b)
            assert rounds(products.gemm, a.numpy(), b.numpy())
            assert not rounds(products.gemm, a, b, precision="highest")
    with products.gemm.configure(kpkg.KernelConfig(precision="default")):
        assert not rounds(products.gemm, a, b)


def test_an_unknown_level_is_refused_by_its_name(products: Any, libraries: dict[str, Any]) -> None:
    a, b = factors(8, 8, 8)
    for library in (products, libraries["gemm"]):
        with pytest.raises(kpkg.KernelError, match="precision is 'fast', expected highest, high, medium"):
            library.gemm(a, b, precision="fast")
    with pytest.raises(ValueError, match="precision is 'fast'"):
        kpkg.KernelConfig(precision="fast")
    with pytest.raises(ValueError, match="precision 'fast', expected highest, high or medium"):
        products._native.restrict("kpkg::gemm", '{"precision": "fast"}')


def test_compiled_models_read_the_switch_when_they_run(products: Any) -> None:
    a, b = factors(64, 48, 32)
    op = products.gemm
    compiled = torch.compile(lambda a, b: op(a, b) + 1, backend="eager", fullgraph=True)
    assert not rounds(op, a, b)
    compiled(a, b)
    torch.set_float32_matmul_precision("high")
    with launched(op) as made:
        compiled(a, b)
    assert made == {"gemm_rounded": 1}
