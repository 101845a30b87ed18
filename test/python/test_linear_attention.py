"""Tests linear attention: gradients, steps on states, sequences in parts, and wrong arguments.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
import torch.nn.functional as F
from conftest import BUILD, ROOT, build_package
from torch.testing import assert_close


@pytest.fixture(scope="module")
def ops():
    package = BUILD / "test-packages" / "linear_attention.kpkg"
    library = kpkg.load(build_package(ROOT / "kernels_src" / "linear_attention", package, "--target", "native"))
    library.register_torch()
    return {op.name.partition("::")[2]: op for op in library}


def drawn(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=torch.float64).to(dtype)


def heads(length, dtype=torch.float64):
    """Returns q, k, v, g and beta of two sequences with two key heads and four value heads."""
    q, k, v = drawn(2, length, 2, 20, dtype=dtype), drawn(2, length, 2, 20, dtype=dtype), drawn(2, length, 4, 24)
    return q, k, v.to(dtype), -drawn(2, length, 4).abs() * 0.3, torch.rand(2, length, 4, dtype=torch.float64)


def scan(length, dtype=torch.float64):
    """Returns x, dt, A, B, C, D, z and dt_bias for four heads in two groups."""
    x, z = drawn(2, length, 4, 24, dtype=dtype), drawn(2, length, 4, 24, dtype=dtype)
    b, c = drawn(2, length, 2, 20, dtype=dtype), drawn(2, length, 2, 20, dtype=dtype)
    return x, drawn(2, length, 4), -torch.rand(4, dtype=torch.float64), b, c, drawn(4), z, drawn(4)


def attended(q, k, v, g, beta, state, normed):
    """Returns the recurrence."""
    if normed:
        q, k = (x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6) for x in (q, k))
    q, k = q.repeat_interleave(2, 2), k.repeat_interleave(2, 2)
    out = []
    for i in range(q.shape[1]):
        state = state * g[:, i, :, None, None].exp()
        added = v[:, i] if beta is None else (v[:, i] - (k[:, i, :, None] @ state).squeeze(2)) * beta[:, i, :, None]
        state = state + k[:, i, :, :, None] * added[:, :, None]
        out.append((q[:, i, :, None] @ state).squeeze(2) * q.shape[3] ** -0.5)
    return torch.stack(out, 1), state


def check_gradients(call, name, dtype, length, strength, normed):
    """Compares gradients with those of the recurrence in float64. `strength` is the largest logarithm of a decay."""
    delta, wide = name == "gated_delta_rule", torch.float64 if dtype == torch.float64 else torch.float32
    q, k, v, _, beta = heads(length, dtype)
    g = -(torch.rand(2, length, 4, dtype=torch.float64) ** 4) * strength
    k = k if normed else F.normalize(k.double(), dim=-1).to(dtype)
    rows = (q, k, v, g.to(wide), drawn(2, 4, 20, 24, dtype=wide), *([beta.to(wide)] if delta else []))
    inputs = [t.detach().requires_grad_() for t in rows]
    rest = (inputs[5], None, inputs[4], normed) if delta else (None, inputs[4])
    found = call(*inputs[:4], *rest)
    upstream = [torch.randn_like(t) for t in found]
    exact = [t.detach().double().requires_grad_() for t in inputs]
    expected = attended(*exact[:4], exact[5] if delta else None, exact[4], normed)
    gradients = torch.autograd.grad(found, inputs, upstream)
    error = 1024 * torch.finfo(wide).eps if dtype == wide else 8 * torch.finfo(dtype).eps
    for gradient, wanted in zip(gradients, torch.autograd.grad(expected, exact, [t.double() for t in upstream])):
        size = float(wanted.abs().max())
        assert_close(gradient.double(), wanted, rtol=0, atol=error * size)


FORMS = [("gated_linear_attention", False), ("gated_delta_rule", False), ("gated_delta_rule", True)]


@pytest.mark.parametrize(
    "dtype, length, strength",
    [
        (torch.float64, 1, 0.1),
        (torch.float64, 65, 20),
        (torch.float32, 64, 0.1),
        (torch.float32, 197, 20),
        (torch.bfloat16, 63, 0.1),
        (torch.bfloat16, 65, 20),
    ],
)
@pytest.mark.parametrize("name, normed", FORMS)
def test_gradients_are_those_of_the_recurrence(ops, name, normed, dtype, length, strength):
    check_gradients(getattr(torch.ops.kpkg, name), name, dtype, length, strength, normed)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["gated_linear_attention", "gated_delta_rule"])
def test_gradients_of_short_decays_are_rounded(ops, name, dtype):
    """Decays and rates of 16 bits have the gradients of those of float32, rounded."""
    q, k, v, g, beta = (x.to(dtype) for x in heads(70))
    k = F.normalize(k.float(), dim=-1).to(dtype)
    numbers = (g, beta) if name == "gated_delta_rule" else (g,)
    upstream = torch.randn_like(v)
    found = []
    for wide in (dtype, torch.float32):
        inputs = [x.to(wide).requires_grad_() for x in numbers]
        with kpkg.fallback_policy("strict"):
            o, _ = getattr(torch.ops.kpkg, name)(q, k, v, *inputs)
            found.append(torch.autograd.grad(o, inputs, upstream))
    for short, exact in zip(*found):
        assert short.dtype == dtype and torch.equal(short, exact.to(dtype))


@pytest.mark.parametrize("name", ["gated_linear_attention", "gated_delta_rule"])
def test_gradients_of_empty_sequences(ops, name):
    q, k, v, g, beta = (x[:, :0].requires_grad_() for x in heads(1))
    state = drawn(2, 4, 20, 24).requires_grad_()
    rest = (beta, None, state) if name == "gated_delta_rule" else (None, state)
    _, last = getattr(torch.ops.kpkg, name)(q, k, v, g, *rest)
    assert torch.equal(torch.autograd.grad(last.sum(), state)[0], torch.ones_like(state))


@pytest.mark.parametrize("name", ["gated_linear_attention", "gated_delta_rule"])
def test_second_derivatives_differentiate_the_fallback(ops, name):
    q, k, v, g, beta = (x[:1, :, :2].requires_grad_() for x in heads(3))
    inputs = (q, k, v, g, beta) if name == "gated_delta_rule" else (q, k, v, g)
    with kpkg.fallback_policy("silent"):
        assert torch.autograd.gradgradcheck(lambda *x: getattr(torch.ops.kpkg, name)(*x)[0], inputs, fast_mode=True)


def test_second_derivatives_of_a_scan(ops):
    inputs = [(t[:1, :, :2] if t.dim() > 2 else t[:2]).requires_grad_() for t in scan(3)]
    with kpkg.fallback_policy("silent"):
        assert torch.autograd.gradgradcheck(lambda *x: torch.ops.kpkg.mamba2_scan(*x)[0], inputs, fast_mode=True)


def scanned(x, dt, a, b, c, d, z, bias, state, softplus):
    """Returns the recurrence of Mamba 2."""
    step = dt if bias is None else dt + bias
    step = F.softplus(step) if softplus else step
    state = x.new_zeros([2, 4, 24, 20]) if state is None else state
    y, last = attended(c * 20**0.5, b, x * step.unsqueeze(-1), step * a, None, state.mT, False)
    y = y if d is None else y + x * d[:, None]
    return y if z is None else y * F.silu(z), last.mT


def check_scan_gradients(call, dtype, length, strength, absent, softplus):
    """Compares gradients with those of the recurrence in float64, without the arguments `absent`. `strength` is the
    factor of dt, and so of decays."""
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    x, dt, a, b, c, d, z, bias = scan(length, dtype)
    bias, d = bias.to(wide), d.to(dtype)
    rows = [x, (dt.abs() * strength).to(wide), a.to(wide), b, c, d, z, bias, drawn(2, 4, 24, 20, dtype=wide)]
    names = ["x", "dt", "a", "b", "c", "d", "z", "bias", "state"]
    inputs = [None if name in absent else t.detach().requires_grad_() for name, t in zip(names, rows)]
    found = call(*inputs, softplus)
    upstream = [torch.randn_like(t) for t in found]
    exact = [t if t is None else t.detach().double().requires_grad_() for t in inputs]
    expected = scanned(*exact, softplus)
    leaves, exact = ([t for t in all_of if t is not None] for all_of in (inputs, exact))
    gradients = torch.autograd.grad(found, leaves, upstream)
    error = 1024 * torch.finfo(wide).eps if dtype == wide else 8 * torch.finfo(dtype).eps
    for leaf, gradient, wanted in zip(
        leaves, gradients, torch.autograd.grad(expected, exact, [t.double() for t in upstream])
    ):
        assert gradient.dtype == leaf.dtype
        assert_close(gradient.double(), wanted, rtol=0, atol=error * float(wanted.abs().max()))


@pytest.mark.parametrize(
    "dtype, length, strength, absent, softplus",
    [
        (torch.float64, 1, 1, "", True),
        (torch.float64, 65, 20, "", True),
        (torch.float64, 70, 1, ("z", "bias", "state"), False),
        (torch.float32, 197, 20, ("bias", "d"), False),
        (torch.float32, 64, 1, ("d", "z", "state"), True),
        (torch.bfloat16, 65, 20, "", True),
        (torch.bfloat16, 63, 0.1, ("d", "z", "bias", "state"), False),
    ],
)
def test_gradients_of_a_scan(ops, dtype, length, strength, absent, softplus):
    with kpkg.fallback_policy("strict"):
        check_scan_gradients(torch.ops.kpkg.mamba2_scan, dtype, length, strength, absent, softplus)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gradients_of_short_numbers_of_a_scan_are_rounded(ops, dtype):
    """Step sizes of 16 bits have the gradients of those of float32, rounded; A, D and dt_bias likewise."""
    x, dt, a, b, c, d, z, bias = (t.to(dtype) for t in scan(70))
    upstream = torch.randn_like(x)
    found = []
    for wide in (dtype, torch.float32):
        numbers = [t.to(wide).requires_grad_() for t in (dt, a, d, bias)]
        with kpkg.fallback_policy("strict"):
            y, _ = torch.ops.kpkg.mamba2_scan(x, *numbers[:2], b, c, numbers[2], z, numbers[3], None, True)
            found.append(torch.autograd.grad(y, numbers, upstream))
    for short, exact in zip(*found):
        assert short.dtype == dtype and torch.equal(short, exact.to(dtype))


def test_gradients_of_empty_scans(ops):
    x, dt, a, b, c, d, z, bias = (t[:, :0] if t.dim() > 1 else t for t in scan(1))
    state = drawn(2, 4, 24, 20).requires_grad_()
    leaves = [t.requires_grad_() for t in (x, a, d, bias)]
    _, last = torch.ops.kpkg.mamba2_scan(x, dt, a, b, c, d, z, bias, state, True)
    dx, da, dd, dbias, dstate = torch.autograd.grad(last.sum(), [*leaves, state])
    assert dx.shape == x.shape and torch.equal(dstate, torch.ones_like(state))
    assert not (da.any() or dd.any() or dbias.any())


def test_gradients_of_parts_of_a_projection(ops):
    """Heads before positions, B and C as parts of one tensor, and one number of dt for all heads."""
    packed, dt = drawn(2, 70, 136), drawn(2, 70, 1)
    x, a = drawn(2, 4, 70, 24).transpose(1, 2), -torch.rand(1, dtype=torch.float64)
    inputs = [t.requires_grad_() for t in (x, dt, a, packed)]

    def run(call, x, dt, a, packed):
        b, c = (packed[..., i : i + 40].unflatten(2, (2, 20)) for i in (0, 40))
        return call(x, dt.expand(2, 70, 4), a.expand(4), b, c, None, None, None, None, True)

    found, expected = run(torch.ops.kpkg.mamba2_scan, *inputs), run(scanned, *inputs)
    upstream = [torch.randn_like(t) for t in expected]
    assert_close(torch.autograd.grad(found, inputs, upstream), torch.autograd.grad(expected, inputs, upstream))


@pytest.mark.parametrize("name", ["gated_linear_attention", "gated_delta_rule"])
def test_steps_and_parts_continue_a_sequence(ops, name):
    q, k, v, g, beta = heads(150)
    inputs = (q, k, v, g, beta) if name == "gated_delta_rule" else (q, k, v, g)
    options = {"use_qk_l2norm": True} if name == "gated_delta_rule" else {}
    o, last = ops[name](*inputs, **options)
    parts, state = [], None
    for begin, end in ((0, 63), (63, 64), (64, 64), (64, 149)):
        part, state = ops[name](*(x[:, begin:end] for x in inputs), initial_state=state, **options)
        parts.append(part)
    parts.append(ops[f"{name}_step"](*(x[:, 149] for x in inputs), state, **options).unsqueeze(1))
    assert_close(torch.cat(parts, 1), o)
    assert_close(state, last)


def test_steps_continue_a_scan(ops):
    x, dt, a, b, c, d, z, bias = scan(70)
    y, last = ops["mamba2_scan"](x, dt, a, b, c, d, z, bias, None, True)
    cut = [t[:, :69] for t in (x, dt, b, c, z)]
    before, state = ops["mamba2_scan"](*cut[:2], a, *cut[2:4], d, cut[4], bias, None, True)
    step = ops["mamba2_step"](x[:, 69], state, dt[:, 69], a, b[:, 69], c[:, 69], d, z[:, 69], bias, True)
    assert_close(torch.cat([before, step.unsqueeze(1)], 1), y)
    assert_close(state, last)


def test_steps_write_states_that_are_parts(ops):
    q, k, v, g, beta = (x[:, 0] for x in heads(1))
    cache = drawn(3, 4, 24, 21)
    before = cache.clone()
    state = cache[1:, :, :, :20].mT
    alone = state.contiguous()
    assert_close(
        ops["gated_delta_rule_step"](q, k, v, g, beta, state), ops["gated_delta_rule_step"](q, k, v, g, beta, alone)
    )
    assert_close(state, alone)
    cache[1:, :, :, :20] = before[1:, :, :, :20]
    assert torch.equal(cache, before)


def test_equal_keys_without_decay(ops):
    """Powers of the triangular matrix would be as large as 2^63."""
    q, k, v, g, _ = heads(64, torch.float32)
    k = F.normalize(k[:, :1], dim=-1).expand_as(k)
    g, beta = torch.zeros_like(g), torch.ones_like(g)
    found, _ = ops["gated_delta_rule"](q, k, v, g.float(), beta.float())
    expected, _ = attended(*(x.double() for x in (q, k, v)), g, beta, drawn(2, 4, 20, 24) * 0, False)
    assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)


def test_autocast_keeps_decays(ops):
    q, k, v, g, beta = (x.float() for x in heads(5))
    with torch.autocast("cpu", torch.bfloat16):
        o, state = torch.ops.kpkg.gated_delta_rule(q, k, v, g, beta)
    assert o.dtype == torch.bfloat16 and state.dtype == torch.float32
    exact = ops["gated_delta_rule"](q.bfloat16(), k.bfloat16(), v.bfloat16(), g, beta)
    assert torch.equal(o, exact[0]) and torch.equal(state, exact[1])


def test_compiled(ops):
    inputs = heads(9)
    single = [x[:, 0] for x in inputs]

    def run(*inputs):
        o, state = torch.ops.kpkg.gated_delta_rule(*inputs)
        return o + torch.ops.kpkg.gated_delta_rule_step(*single, state).unsqueeze(1), state

    assert_close(torch.compile(run, fullgraph=True, backend="aot_eager")(*inputs), run(*inputs))


Q, V, G = torch.ones(2, 5, 2, 8), torch.ones(2, 5, 4, 6), torch.zeros(2, 5, 4)
LARGE = torch.ones(2, 5, 2, 129)
X, DT, A, B = torch.ones(2, 5, 4, 6), torch.ones(2, 5, 4), -torch.ones(4), torch.ones(2, 5, 2, 8)
WRONG = [
    ("gated_linear_attention", (Q[0], Q, V, G), r"q has shape \[5, 2, 8\], expected \[batch, length, heads, size\]"),
    ("gated_linear_attention", (Q, Q[:1], V, G), r"k has shape \[1, 5, 2, 8\], q \[2, 5, 2, 8\], expected one shape"),
    ("gated_linear_attention", (Q, Q, V[:1], G), r"v has shape \[1, 5, 4, 6\] for q"),
    ("gated_linear_attention", (Q, Q, V[:, :, :3], G), "3 heads of values cannot share 2 heads of keys"),
    ("gated_linear_attention", (LARGE, LARGE, V, G), "keys have 129 elements, expected 1 to 128"),
    ("gated_linear_attention", (Q, Q.double(), V, G), "q, k and v are float32, float64 and float32"),
    ("gated_linear_attention", (Q, Q, V, G[0]), r"g has shape \[5, 4\], expected \[2, 5, 4\]"),
    ("gated_linear_attention", (Q, Q, V, G.double()), "g is float64, expected float32 or float32"),
    ("gated_linear_attention", (Q, Q, V, G, None, Q), r"initial_state has shape .*, expected \[2, 4, 8, 6\]"),
    ("gated_delta_rule", (Q, Q, V, G, G[..., :2]), r"beta has shape \[2, 5, 2\], expected \[2, 5, 4\]"),
    ("gated_delta_rule_step", (Q, Q, V, G, G, Q), r"q has shape \[2, 5, 2, 8\], expected \[batch, heads, size\]"),
    (
        "gated_linear_attention_step",
        (Q[:, 0], Q[:, 0], V[:, 0], G[:, 0], torch.ones(2, 4, 8, 6).half()),
        "state is float16, expected float32",
    ),
    ("mamba2_scan", (X[0], DT, A, B, B), r"x has shape \[5, 4, 6\], expected \[batch, length, heads, p\]"),
    ("mamba2_scan", (X, DT[0], A, B, B), r"dt has shape \[5, 4\], expected \[2, 5, 4\]"),
    ("mamba2_scan", (X, DT, A[:2], B, B), r"A has shape \[2\], expected \[4\]"),
    ("mamba2_scan", (X, DT, A, B[0], B), r"B has shape \[5, 2, 8\] for x"),
    ("mamba2_scan", (X, DT, A, B, B[..., :1]), r"C has shape \[2, 5, 2, 1\], B .*, expected one shape"),
    ("mamba2_scan", (X[:, :, :3], DT[..., :3], A[:3], B, B), "3 heads cannot share 2 groups of B and C"),
    ("mamba2_scan", (X, DT, A, LARGE, LARGE), "the state has 129 elements for each value, expected 1 to 128"),
    ("mamba2_scan", (X, DT, A, B, B, A[:2]), r"D has shape \[2\], expected \[4\]"),
    ("mamba2_scan", (X, DT, A, B, B, None, DT), r"z is float32 of shape \[2, 5, 4\], expected float32 of"),
    ("mamba2_scan", (X, DT, A, B.half(), B), "B and C are float16 and float32, x is float32"),
    ("mamba2_step", (X, X, DT, A, B, B), r"x has shape \[2, 5, 4, 6\], expected \[batch, heads, p\]"),
]


@pytest.mark.parametrize("name, arguments, message", WRONG)
def test_wrong_arguments_are_named(ops, name, arguments, message):
    with pytest.raises(kpkg.KernelError, match=message):
        ops[name](*arguments)
