"""Checks that every op of kernels_src has a fallback with the same results, also for its gradient.

PyTorch's own checks of registrations must pass.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import itertools

import kpkg
import opspec
import pytest
import torch
from kpkg import _fallbacks
from torch.testing import assert_close

SPECS = {spec.name: spec for spec in opspec.load_specs()}
NOWHERE = kpkg.KernelConfig(target="sm_80")
HALVES = (torch.float16, torch.bfloat16)
#: Ops that are parts of others, that write to their arguments (test_rotary.py, test_cache_write.py, test_adamw.py,
#: test_causal_conv1d.py, test_linear_attention.py), and that take lists (test_optimizers.py).
TESTED_ELSEWHERE = {
    f"kpkg::{name}"
    for name in (
        "max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices rotary_embedding_ rotary_cache_ "
        "cache_write_ adamw_ adamw_master_ causal_conv1d_update gated_delta_rule_step gated_linear_attention_step "
        "mamba2_step fused_adamw_ fused_lion_ fused_sgd_ gradient_norm clip_gradients_"
    ).split()
}


def sample_of(name, number=0, dtype=torch.float32):
    """Returns a call of the op with more than one element, but few."""
    samples = SPECS[name].samples(
        dtype if dtype in SPECS[name].dtypes else SPECS[name].dtypes[0], torch.Generator().manual_seed(0)
    )

    def tensors(sample):
        return [v for v in (*sample.args, *sample.kwargs.values()) if isinstance(v, torch.Tensor)]

    def size(sample):
        return max(t.numel() for t in tensors(sample))

    small, large = [], []
    for sample in itertools.islice(samples, 100):
        if all(t.numel() for t in tensors(sample)) and size(sample) > 1:
            (small if size(sample) <= 4096 else large).append(sample)
        if len(small) > number:
            break
    small = small or sorted(large, key=size)
    return small[min(number, len(small) - 1)]


def names(ops, with_gradients_only=False):
    return [name for name, op in ops.items() if name in SPECS and (op.gradient or not with_gradients_only)]


def test_specs_cover_all_ops(ops):
    references = {op._native.reference for op in ops.values()}
    gradients = {op.gradient for op in ops.values()}
    untested = {
        name
        for name in ops
        if name not in SPECS and name not in references | gradients and not name.endswith("_backward")
    }
    assert untested <= TESTED_ELSEWHERE, untested - TESTED_ELSEWHERE


@pytest.mark.parametrize("name", sorted(SPECS))
def test_fallback_gives_what_the_kernel_gives(name, ops):
    op, fallen = ops[name], 0  # calls that launch nothing do not fall back
    for number in range(3):
        sample = sample_of(name, number)
        found = opspec.as_tuple(op(*sample.args, **sample.kwargs))
        with kpkg.fallback_policy("silent"), op.configure(NOWHERE):
            before = op.stats()["fallbacks"]
            fallback = opspec.as_tuple(op(*sample.args, **sample.kwargs))
            fallen += op.stats()["fallbacks"] - before
        assert len(found) == len(fallback)
        for a, b in zip(found, fallback):
            assert a.shape == b.shape and a.dtype == b.dtype, (a.shape, b.shape, a.dtype, b.dtype)
            if a.dtype == torch.float8_e4m3fn:
                # Adjacent values differ by an eighth, and PyTorch compares these floats by their bits alone.
                assert_close(a.float(), b.float(), atol=2.0**-9, rtol=0.125)
                continue
            tolerance = 2e-4 if a.dtype not in HALVES else 2 * torch.finfo(a.dtype).eps
            assert_close(a, b, atol=tolerance, rtol=tolerance, equal_nan=True)
    assert 1 <= fallen <= 3


@pytest.mark.parametrize("name", sorted(SPECS))
def test_gradient_falls_back_too(name, ops):
    op = ops[name]
    if not op.gradient:
        pytest.skip("no gradient in the package")
    backward, fallen = op._library[op.gradient], 0

    def run(sample):
        call = sample.map(lambda t: t.clone().requires_grad_() if t.is_floating_point() else t)
        leaves = [v for v in (*call.args, *call.kwargs.values()) if isinstance(v, torch.Tensor) and v.requires_grad]
        results = [r for r in opspec.as_tuple(op(*call.args, **call.kwargs)) if r.requires_grad]
        generator = torch.Generator().manual_seed(1)
        upstream = [torch.randn(r.shape, generator=generator, dtype=r.dtype) for r in results]
        return torch.autograd.grad(results, leaves, upstream, allow_unused=True)

    for number in range(1, 20):  # the gradient of a sum of equal shapes launches nothing
        sample = sample_of(name, number)
        found = run(sample)
        with kpkg.fallback_policy("silent"), backward.configure(NOWHERE):
            before = backward.stats()["fallbacks"]
            fallback = run(sample)
            fallen += backward.stats()["fallbacks"] - before
        for a, b in zip(found, fallback):
            assert (a is None) == (b is None)
            if a is not None:
                assert_close(a, b, atol=2e-4, rtol=2e-3, equal_nan=True)
        if fallen:
            break
    assert fallen == 1


def test_all_have_fallbacks(ops):
    references = {op._native.reference for op in ops.values()}
    without = [name for name, op in ops.items() if name not in references and not _fallbacks.implementation(op)]
    assert not without
    for op in ops.values():
        if op.rules.fallback:
            _fallbacks.compiled(_fallbacks.Declaration.of(op))  # which refuses a text that is none


@pytest.mark.parametrize("name", sorted(SPECS))
def test_opcheck(name, ops):
    """Runs all of PyTorch's registration checks, with gradients wherever the op has some."""
    op = ops[name]
    sample = sample_of(name, 1)
    if op.gradient:
        sample = sample.map(lambda t: t.clone().requires_grad_() if t.is_floating_point() else t)
    utils = ["test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"]
    without_product = (torch.float8_e4m3fn, torch.float8_e8m0fnu)
    if any(isinstance(a, torch.Tensor) and a.dtype in without_product for a in sample.args):
        utils.remove("test_schema")  # this check multiplies by such numbers, which PyTorch does not support
    torch.library.opcheck(op._torch.default, sample.args, sample.kwargs, test_utils=utils)


def recorded_calls(op, sample):
    """Returns the calls of gradient ops that the backward of a call of `op` makes."""
    from torch.utils._python_dispatch import TorchDispatchMode

    made = []

    class Calls(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            made.append((func, args, kwargs or {}))
            return func(*args, **(kwargs or {}))

    call = sample.map(lambda t: t.clone().requires_grad_() if t.is_floating_point() else t)
    results = [r for r in opspec.as_tuple(op(*call.args, **call.kwargs)) if r is not None and r.requires_grad]
    with Calls():
        torch.autograd.backward(results, [torch.randn_like(r) for r in results])
    name = op.gradient.rpartition("::")[2]  # in any namespace: another package may have taken the public names
    return [entry for entry in made if str(entry[0]).split(".")[1] == name]


@pytest.mark.parametrize("name", sorted(SPECS))
def test_opcheck_of_gradients(name, ops):
    if not ops[name].gradient:
        pytest.skip("no gradient in the package")
    calls = recorded_calls(ops[name], sample_of(name, 1))
    assert calls
    utils = ["test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"]
    # The last check takes ten seconds or more for each of these, whose plans equal those of conv1d and remainder.
    if "conv" in name and name != "kpkg::conv1d" or name == "kpkg::fmod":
        utils.pop()
    for func, args, kwargs in calls:
        torch.library.opcheck(
            func, tuple(a.detach() if isinstance(a, torch.Tensor) else a for a in args), kwargs, test_utils=utils
        )


# PyTorch lacks these second derivatives; the error is its own.
WITHOUT_SECOND = {
    "kpkg::hardsigmoid": "hardsigmoid_backward",
    "kpkg::hardsigmoid_backward": "hardsigmoid_backward",
    "kpkg::scaled_dot_product_attention": "flash_attention",
}
#: PyTorch lacks the forward mode of these.
WITHOUT_FORWARD = {"kpkg::grid_sample": "grid_sampler_2d"}
# Their gradients need equal shapes, so that samples with broadcasting do not fit.
ONE_SHAPE = ("kpkg::swiglu", "kpkg::geglu")


def call_in_float64(name):
    """Returns the smallest sample in float64 as a function of its first tensor, or None if there is none."""
    spec = SPECS[name]
    if torch.float64 not in spec.dtypes:
        return None
    samples = []
    for sample in itertools.islice(spec.samples(torch.float64, torch.Generator().manual_seed(0)), 40):
        tensors = [v for v in (*sample.args, *sample.kwargs.values()) if isinstance(v, torch.Tensor)]
        same = len({t.shape for t in tensors}) == 1
        plain = all(t.is_contiguous() and bool(torch.isfinite(t).all()) for t in tensors)
        if (
            plain
            and tensors
            and tensors[0] is sample.args[0]
            and tensors[0].is_floating_point()
            and tensors[0].numel() >= 8
            and (same or name not in ONE_SHAPE)
        ):
            samples.append((sum(t.numel() for t in tensors), len(samples), sample))
    return min(samples)[2] if samples else None


@pytest.mark.parametrize("name", sorted(SPECS))
def test_second_derivatives_are_pytorchs(name, ops):
    """Compares reverse over reverse and forward over reverse (a Hessian-vector product) with PyTorch."""
    sample = call_in_float64(name)
    if sample is None or name in ("kpkg::argmax", "kpkg::argmin"):
        pytest.skip("no real argument or result")
    if name == "kpkg::cross_entropy_backward":
        pytest.skip("PyTorch 2.13 has an internal error for it: grad_input must be contiguous")
    if name in ("kpkg::embedding_bag", "kpkg::floor_divide", "kpkg::sign"):
        pytest.skip("PyTorch has no second derivative of it")
    if _fallbacks.implementation(ops[name]) is None:
        pytest.skip("PyTorch has no implementation of the op")
    x, rest = sample.args[0], sample.args[1:]
    direction = torch.randn(x.shape, dtype=x.dtype, generator=torch.Generator().manual_seed(3))

    def energy(op):
        return lambda x: opspec.as_tuple(op(x, *rest, **sample.kwargs))[0].square().sum()

    def reversed_twice(function):
        leaf = x.clone().requires_grad_()
        if not function(leaf).requires_grad:
            pytest.skip("PyTorch's implementation has no gradient")
        (first,) = torch.autograd.grad(function(leaf), leaf, create_graph=True)
        return torch.autograd.grad((first * direction).sum(), leaf)[0]

    def forward_of_reverse(function):
        return torch.func.jvp(torch.func.grad(function), (x,), (direction,))[1]

    mine, theirs = energy(ops[name]._torch.default), energy(_fallbacks.implementation(ops[name]))
    with kpkg.fallback_policy("silent"):
        if name in WITHOUT_SECOND:
            for way in (reversed_twice, forward_of_reverse):
                with pytest.raises((NotImplementedError, RuntimeError), match=WITHOUT_SECOND[name]):
                    way(mine)
            return
        expected = reversed_twice(theirs)
        assert_close(reversed_twice(mine), expected, atol=1e-7, rtol=1e-6)
        if name in WITHOUT_FORWARD:
            with pytest.raises((NotImplementedError, RuntimeError), match=WITHOUT_FORWARD[name]):
                forward_of_reverse(mine)
            return
        assert_close(forward_of_reverse(mine), expected, atol=1e-7, rtol=1e-6)


def test_second_derivative_under_strict(ops):
    x = torch.randn(3, 4, dtype=torch.float64).requires_grad_()
    with pytest.raises(kpkg.KernelError, match="kpkg::softmax has no second derivative.*strict"):
        (first,) = torch.autograd.grad(ops["kpkg::softmax"](x).square().sum(), x, create_graph=True)
        first.sum().backward()


def test_gradient_of_an_op_without_one(ops):
    """PyTorch's gradient runs and is counted as a fallback; under strict it is an error."""
    op = next(op for name, op in ops.items() if name in ("kpkg::mul", "kpkg::gemm_batched") and not op.gradient)
    x = torch.randn(2, 3, 3, dtype=torch.float64).requires_grad_()
    with kpkg.fallback_policy("silent"):
        before = op.stats()["fallbacks"]
        assert torch.autograd.gradcheck(op, (x, x.detach().clone().requires_grad_()))
        assert op.stats()["fallbacks"] > before
        compiled = torch.compile(lambda a, b: op(a, b), fullgraph=True, backend="aot_eager")
        (found,) = torch.autograd.grad(compiled(x, x.detach()).sum(), x)
        (expected,) = torch.autograd.grad(op(x, x.detach()).sum(), x)
        assert_close(found, expected)
    with pytest.raises(kpkg.KernelError, match="has no gradient in its package.*strict"):
        op(x, x)


# ---- torch.func and forward mode -------------------------------------------------------------------------------------

T = torch.func
D = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
TRANSFORMS = {
    "grad": lambda f, x: T.grad(lambda x: f(x).square().sum())(x),
    "vmap of grad": lambda f, x: T.vmap(T.grad(lambda x: f(x).square().sum()))(x),
    "jacrev": lambda f, x: T.jacrev(f)(x),
    "jacfwd": lambda f, x: T.jacfwd(f)(x),
    "jvp": lambda f, x: T.jvp(f, (x,), (x + 1,)),
    "hessian": lambda f, x: T.hessian(lambda x: f(x).square().sum())(x),
    "jacrev twice": lambda f, x: T.jacrev(T.jacrev(lambda x: f(x).square().sum()))(x),
    "grad of grad": lambda f, x: T.grad(lambda x: T.grad(lambda x: f(x).square().sum())(x).square().sum())(x),
    "an inner level that sees constants": lambda f, x: T.grad(
        lambda x: T.grad(lambda z: (z * f(x)).sum())(x.detach() * 2).square().sum()
    )(x),
}
FIRST_ORDER = ("grad", "vmap of grad", "jacrev")


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", ["softmax", "layer_norm", "linear"])
def test_torch_func(name, transform, ops):
    weight = torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    mine, theirs = {
        "softmax": (lambda x: torch.ops.kpkg.softmax(x, -1), lambda x: x.softmax(-1)),
        "layer_norm": (
            lambda x: torch.ops.kpkg.layer_norm(x, [5], weight[0]),
            lambda x: torch.nn.functional.layer_norm(x, [5], weight[0]),
        ),
        "linear": (lambda x: torch.ops.kpkg.linear(x, weight), lambda x: torch.nn.functional.linear(x, weight)),
    }[name]
    with kpkg.fallback_policy("strict" if transform in FIRST_ORDER else "silent"):
        assert_close(TRANSFORMS[transform](mine, D), TRANSFORMS[transform](theirs, D))


def test_strict_forward_mode_is_an_error(ops):
    with pytest.raises(kpkg.KernelError, match="kpkg::softmax has no forward-mode derivative.*strict"):
        T.jvp(torch.ops.kpkg.softmax, (D,), (D,))


def test_dual_tensors(ops):
    forward = torch.autograd.forward_ad

    def tangent(function):
        with forward.dual_level():
            return forward.unpack_dual(function(forward.make_dual(D, D + 1))).tangent

    with kpkg.fallback_policy("silent"):
        assert_close(tangent(lambda x: ops["kpkg::softmax"](x, -1)), tangent(lambda x: x.softmax(-1)))


def test_first_derivative_that_could_be_differentiated_again_is_the_packages(ops):
    x = D.clone().requires_grad_()
    (first,) = torch.autograd.grad(torch.ops.kpkg.softmax(x).square().sum(), x, create_graph=True)
    assert_close(first, torch.autograd.grad(x.softmax(-1).square().sum(), x)[0])
    assert first.requires_grad


def test_lists_of_a_recorded_call(ops):
    """The caller may change the lists after the call."""
    x, shape = D.clone().requires_grad_(), [5]
    y = torch.ops.kpkg.layer_norm(x, shape)
    shape[0] = 7
    y.square().sum().backward()
    (expected,) = torch.autograd.grad(torch.nn.functional.layer_norm(x, [5]).square().sum(), x)
    assert_close(x.grad, expected)


def test_modes_see_recorded_calls(ops):
    """Calls take the dispatcher, not the direct path, while a mode is active."""
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Functions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    class Calls(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = D.clone().requires_grad_()
    for mode in (Functions, Calls):
        seen.clear()
        with mode():
            y = torch.ops.kpkg.softmax(x)
        assert len([f for f in seen if "softmax" in str(f)]) == 1 and y.requires_grad, seen
    with torch.autocast("cpu", dtype=torch.bfloat16), kpkg.fallback_policy("silent"):
        assert torch.ops.kpkg.gemm(x.float(), x.float().T).dtype == torch.bfloat16


# ---- autocast --------------------------------------------------------------------------------------------------------

F = torch.nn.functional
X, W = torch.randn(4, 8), torch.randn(8)
LOW = X.bfloat16()
AUTOCAST = [
    ("gemm", (X, X.T), torch.mm, (X, X.T)),
    ("gemm_batched", (X[None], X.T[None]), torch.bmm, (X[None], X.T[None])),
    ("softmax", (LOW, -1), F.softmax, (LOW, -1)),
    ("softmax", (X, -1), F.softmax, (X, -1)),
    ("layer_norm", (LOW, [8], W, W), F.layer_norm, (LOW, [8], W, W)),
    ("gelu", (LOW,), F.gelu, (LOW,)),
    ("add", (LOW, X), torch.add, (LOW, X)),
    ("cross_entropy", (LOW, torch.tensor([1, 2, 3, 0])), F.cross_entropy, (LOW, torch.tensor([1, 2, 3, 0]))),
]


@pytest.mark.parametrize("name, args, theirs, their_args", AUTOCAST)
def test_autocast(name, args, theirs, their_args, ops):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, expected = getattr(torch.ops.kpkg, name)(*args), theirs(*their_args)
    assert found.dtype == expected.dtype
    assert_close(found, expected, atol=3e-2, rtol=3e-2)


def test_autocast_in_training(ops):
    x, w = X.clone().requires_grad_(), torch.randn(8, 3, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16), kpkg.fallback_policy("silent"):
        y = torch.ops.kpkg.softmax(torch.ops.kpkg.gemm(x, w))
    assert y.dtype == torch.bfloat16
    y.float().square().sum().backward()
    assert x.grad.dtype == torch.float32 and w.grad.dtype == torch.float32


# ---- vmap ------------------------------------------------------------------------------------------------------------

B = torch.randn(5, 4, 8)
VMAP = [
    ("unary", lambda op: lambda x: op.gelu(x), lambda x: F.gelu(x), 0),
    ("along the last", lambda op: lambda x: op.softmax(x, -1), lambda x: x.softmax(-1), 1),
    ("along the first", lambda op: lambda x: op.softmax(x, 0), lambda x: x.softmax(0), 2),
    ("of single rows", lambda op: lambda x: op.softmax(x[0], 0), lambda x: x[0].softmax(0), 0),
    ("norm", lambda op: lambda x: op.layer_norm(x, [8], W, W), lambda x: F.layer_norm(x, [8], W, W), 0),
    ("a loop", lambda op: lambda x: op.gemm(x, x, 1.0, 1.0, False, True), lambda x: x @ x.T, 0),
    (
        "several results",
        lambda op: lambda x: op.native_layer_norm(x, [8])[1],
        lambda x: torch.native_layer_norm(x, [8], None, None, 1e-5)[1],
        0,
    ),
]


@pytest.mark.parametrize("mine, theirs, dim", [case[1:] for case in VMAP], ids=[case[0] for case in VMAP])
def test_vmap(mine, theirs, dim, ops):
    assert_close(torch.vmap(mine(torch.ops.kpkg), in_dims=dim)(B), torch.vmap(theirs, in_dims=dim)(B))


def test_vmap_over_weights(ops):
    weights = torch.randn(3, 8)
    found = torch.vmap(lambda w: torch.ops.kpkg.layer_norm(X, [8], w))(weights)
    assert_close(found, torch.stack([F.layer_norm(X, [8], w) for w in weights]))


def test_inference_mode_and_no_grad_record_nothing(ops):
    x = X.clone().requires_grad_()
    with torch.no_grad():
        assert not torch.ops.kpkg.softmax(x).requires_grad
    with torch.inference_mode():
        assert torch.ops.kpkg.softmax(x).is_inference()
    assert torch.ops.kpkg.softmax(x).requires_grad
