"""Tests calls of PyTorch's functions that inject finds in forwards.

Compares each form of a call with PyTorch, and checks whose calls are replaced.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
import torch.nn.functional as F
from conftest import op_calls
from kpkg import _call_products, _calls, _measure
from kpkg._injection import Injection, Row
from torch import nn
from torch.testing import assert_close

pytestmark = [pytest.mark.usefixtures("default_ops", "fast")]


def randn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


W, B = randn(7, 5), randn(7)
IMAGES, TAPS = randn(2, 4, 9, 7), randn(6, 4, 3, 3)
CALLS = {
    "matmul": [
        lambda x: x @ W.T,
        lambda x: torch.matmul(x, randn(5, 3)),
        lambda x: x.matmul(x.mT),
        lambda x: x @ randn(5),
        lambda x: randn(6) @ x,
        lambda x: x[0] @ W.T,
        lambda x: x[:, None] @ randn(4, 5, 3),
        lambda x: x.mT @ x,
    ],
    "mm": [lambda x: torch.mm(x[0], W.T), lambda x: x[1].mm(x[0].T)],
    "bmm": [lambda x: torch.bmm(x, x.mT), lambda x: x.bmm(randn(2, 5, 1))],
    "addmm": [
        lambda x: torch.addmm(B, x[0], W.T),
        lambda x: torch.addmm(randn(6, 7), x[0], W.T, beta=0.5, alpha=-2),
        lambda x: randn(6, 1).addmm(x[0], W.T, beta=2),
    ],
    "baddbmm": [lambda x: torch.baddbmm(randn(2, 6, 6), x, x.mT, beta=0.25, alpha=3.0)],
    "einsum": [
        lambda x: torch.einsum("bij,kj->bik", x, W),
        lambda x: torch.einsum("bij,bkj->bik", x, x),
        lambda x: torch.einsum("b i j, b i k -> k b j", x, x),
        lambda x: torch.einsum("...j,kj->...k", x, W),
        lambda x: torch.einsum("bij,kj", x, W),
        lambda x: torch.einsum("bhwc,hkc->bhwk", x[None].expand(3, 2, 6, 5), randn(2, 4, 5)),
        lambda x: torch.einsum("bij,bij->b", x, x),
        lambda x: torch.einsum("ij,jk->ki", [x[0], W.T]),
    ],
    "linear": [lambda x: F.linear(x, W, B), lambda x: F.linear(x[0, 0], W)],
    "softmax": [
        lambda x: F.softmax(x, dim=-1),
        lambda x: x.softmax(1),
        lambda x: torch.softmax(x, 0),
        lambda x: F.softmax(x.bfloat16(), -1, dtype=torch.float32),
    ],
    "log_softmax": [lambda x: F.log_softmax(x, -1), lambda x: x.log_softmax(dim=1)],
    "layer_norm": [
        lambda x: F.layer_norm(x, (5,), randn(5), randn(5), 1e-3),
        lambda x: torch.layer_norm(x, [6, 5], None, None, 1e-5, False),
    ],
    "rms_norm": [lambda x: F.rms_norm(x, (5,)), lambda x: torch.rms_norm(x, (5,), randn(5), 1e-3)],
    "group_norm": [lambda x: F.group_norm(IMAGES, 2, randn(4), None, 1e-3)],
    "batch_norm": [lambda x: F.batch_norm(IMAGES, randn(4), randn(4).square() + 1, None, randn(4))],
    "instance_norm": [lambda x: F.instance_norm(IMAGES, eps=1e-3)],
    "gelu": [lambda x: F.gelu(x), lambda x: F.gelu(x, approximate="tanh")],
    "relu": [lambda x: F.relu(x), lambda x: torch.relu(x), lambda x: x.relu()],
    "silu": [lambda x: F.silu(x)],
    "mish": [lambda x: F.mish(x)],
    "sigmoid": [lambda x: torch.sigmoid(x), lambda x: F.sigmoid(x)],
    "tanh": [lambda x: torch.tanh(x), lambda x: F.tanh(x)],
    "elu": [lambda x: F.elu(x, 2)],
    "selu": [lambda x: F.selu(x)],
    "leaky_relu": [lambda x: F.leaky_relu(x, 0.2)],
    "hardtanh": [lambda x: F.hardtanh(x, -2, 0.5)],
    "relu6": [lambda x: F.relu6(4 * x)],
    "hardsigmoid": [lambda x: F.hardsigmoid(x)],
    "hardswish": [lambda x: F.hardswish(x)],
    "softplus": [lambda x: F.softplus(x, 2, 3)],
    "conv1d": [lambda x: F.conv1d(x, randn(3, 6, 3), padding="same")],
    "conv2d": [
        lambda x: F.conv2d(IMAGES, TAPS, randn(6), 2, 1),
        lambda x: torch.conv2d(IMAGES, TAPS[:, :2], None, (2, 1), (1, 0), 2, 2),
    ],
    "conv3d": [lambda x: F.conv3d(IMAGES[None], randn(3, 2, 2, 2, 3))],
    "conv_transpose2d": [lambda x: F.conv_transpose2d(IMAGES, randn(4, 3, 2, 2), None, 2, output_padding=1)],
    "max_pool2d": [lambda x: F.max_pool2d(IMAGES, 3, 2, 1), lambda x: torch.max_pool2d(IMAGES, 2)],
    "max_pool1d": [lambda x: F.max_pool1d(x, 2)],
    "avg_pool2d": [lambda x: F.avg_pool2d(IMAGES, (3, 2), ceil_mode=True, divisor_override=5)],
    "avg_pool1d": [lambda x: F.avg_pool1d(x, 2, 1, 1)],
    "adaptive_avg_pool2d": [lambda x: F.adaptive_avg_pool2d(IMAGES, (1, 1))],
    "scaled_dot_product_attention": [
        lambda x: F.scaled_dot_product_attention(x, x, x, scale=0.3),
        lambda x: F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], is_causal=True),
    ],
}
X = randn(2, 6, 5)


class Does(nn.Module):
    """Calls one function in its forward."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize("name", CALLS)
def test_each_form(name):
    for function in CALLS[name]:
        model = Does(function).eval()
        with torch.no_grad():
            expected = model(X)
            with kpkg.inject(model, sample_input=X, verbose=False) as injection:
                found = {row.layer: row.status for row in injection.rows}
                assert found[f"{name}()"] == "replaced", found
                made = model(X)
        assert made.shape == expected.shape and made.dtype == expected.dtype
        assert_close(made, expected, rtol=1e-4, atol=1e-4)
        assert "forward" not in model.__dict__


def test_the_table_is_tested():
    assert {call.name for call in _calls.CALLS.values()} - set(CALLS) == {
        "avg_pool3d",
        "max_pool3d",
        "adaptive_avg_pool1d",
        "adaptive_avg_pool3d",
        "conv_transpose1d",
        "conv_transpose3d",
    }  # fmt: skip  (of other ranks)


@pytest.mark.parametrize(
    "function, name",
    [
        (lambda x: torch.einsum("bii->bi", torch.einsum("bij,bkj->bik", x, x)), "einsum"),
        (lambda x: torch.einsum("bij,c->bc", x, randn(3)), "einsum"),
        (lambda x: (8 * x).long() @ (8 * x).long().mT, "matmul"),
        (lambda x: F.softmax(x, dim=None) if False else F.relu(x.clone(), inplace=True), "relu"),
        (lambda x: F.batch_norm(IMAGES, None, None, training=True), "batch_norm"),
        (lambda x: F.adaptive_avg_pool2d(IMAGES, 2), "adaptive_avg_pool2d"),
        (lambda x: x.new_ones(5) @ x.new_ones(5), "matmul"),
    ],
)
def test_other_forms_stay(function, name):
    model = Does(function).eval()
    expected = model(X)
    injection = kpkg.inject(model, include=name, sample_input=X, verbose=False)
    kept = [row for row in injection.rows if not row.is_replaced]
    assert kept and all(row.status == "kept: no op computes this form of the call" for row in kept) or name == "einsum"
    assert_close(model(X), expected)


def test_other_dtypes_later():
    """A forward gets dtypes that the sample did not have; PyTorch runs the calls that no op supports."""
    model = Does(lambda x: torch.matmul(x, x.mT)).eval()
    injection = kpkg.inject(model, sample_input=X, verbose=False)
    assert len(injection.replaced) == 1
    whole = (4 * X).long()
    assert torch.equal(model(whole), whole @ whole.mT)
    out = torch.empty(2, 6, 6)
    assert_close(Does(lambda x: torch.matmul(x, x.mT, out=out))(X), X @ X.mT)
    assert_close(model(X.double()), X.double() @ X.double().mT)


def test_einsum_plans():
    assert _call_products._plan("ij,jk->ik", (2, 2)) is not None
    for equation, ranks in [
        ("ij,jk,kl->il", (2, 2)), ("ii,ij->ij", (2, 2)), ("ij,kl->ijkl", (2, 2)), ("ij,jk->i", (2, 2)),
        ("ij,jk->ik", (3, 2)), ("ij->ji", (2, 2)), ("ij,jk->iik", (2, 2)),
    ]:  # fmt: skip
        assert _call_products._plan(equation, ranks) is None, equation
    one = Does(lambda x: torch.einsum("bij,bjk->bik", x, x[:1].mT)).eval()  # an extent of 1 that is broadcast
    expected = one(X)
    kpkg.inject(one, sample_input=X, verbose=False)
    assert_close(one(X), expected)


class Inner(nn.Module):
    def forward(self, x):
        return torch.tanh(x @ W.T)


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.relu, self.linear = Inner(), nn.ReLU(), nn.Linear(5, 5)

    def forward(self, x):
        return self.inner(torch.relu(x @ x.mT @ x)) + F.linear(self.relu(self.linear(x)), W)


def test_only_calls_of_the_layer_itself():
    """Calls of inner layers have rows of their own; calls made by layers of torch.nn have none."""
    model = Outer().eval()
    expected = model(X)
    injection = kpkg.inject(model, sample_input=X, exclude=["inner", "ReLU", "Linear"], verbose=False)
    assert {(row.name, row.layer) for row in injection.rows} == {("", "matmul()"), ("", "relu()"), ("", "linear()")}
    with torch.no_grad():
        assert_close(model(X), expected)
    assert op_calls("relu", lambda: model(X)) == 1 and op_calls("linear", lambda: model(X)) == 1
    injection.restore()
    injection = kpkg.inject(model, sample_input=X, include=["matmul", "tanh"], verbose=False)
    assert [(row.name, row.layer) for row in injection.replaced] == [
        ("", "matmul()"), ("inner", "matmul()"), ("inner", "tanh()"),
    ]  # fmt: skip
    assert op_calls("tanh", lambda: model(X)) == 1 and op_calls("tanh", lambda: model.inner(X)) == 1
    inner = next(row for row in injection.rows if (row.name, row.layer) == ("inner", "matmul()"))
    injection._take_out(inner, "out")
    before = op_calls("gemm", lambda: model(X))
    injection._take_out(next(row for row in injection.replaced if row.layer == "matmul()"), "out")
    assert before == 0 and op_calls("gemm_batched", lambda: model(X)) == 0
    assert op_calls("tanh", lambda: model(X)) == 1
    injection.restore()
    assert "forward" not in model.__dict__ and "forward" not in model.inner.__dict__


def test_equal_calls_are_measured_once(monkeypatch):
    timed = []

    def interleaved(first, second, **_):
        timed.append(first)
        return 2.0, 1.0

    monkeypatch.setattr(_measure, "interleaved", interleaved)
    square = randn(5, 5)
    model = nn.Sequential(*(Does(lambda x: x @ square) for _ in range(4))).eval()
    injection = kpkg.inject(model, sample_input=X, verbose=False)
    assert [row.status for row in injection.rows] == ["replaced"] * 4
    assert len(timed) == 3  # once for the calls, then the model with all calls and without them
    twice = Does(lambda x: (x @ square) @ square).eval()
    row = kpkg.inject(twice, sample_input=X, verbose=False).rows[0]
    assert (row.original_us, row.kpkg_us) == (4.0, 2.0)


def test_functions_that_launches_do():
    """A function that is fused into a launch has no row."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(5, 9), nn.Linear(9, 5)

        def forward(self, x):
            return self.down(F.relu(self.up(x)))

    injection = kpkg.inject(Block().eval(), sample_input=X, verbose=False)
    assert [row.layer for row in injection.rows] == ["Linear + relu()", "Linear"]


def test_calls_in_training():
    torch.manual_seed(0)
    model = nn.Sequential(Outer()).train()
    other = nn.Sequential(Outer()).train()
    other.load_state_dict(model.state_dict())
    injection = kpkg.inject(model, sample_input=X, verbose=False)
    assert {row.layer for row in injection.replaced} >= {"matmul()", "tanh()", "linear()"}
    for each in (model, other):
        each(X).square().sum().backward()
    for mine, theirs in zip(model.parameters(), other.parameters()):
        assert_close(mine.grad, theirs.grad, rtol=1e-3, atol=1e-4)


def test_replaced_calls_compile():
    model = Outer().eval()
    expected = model(X)
    kpkg.inject(model, sample_input=X, verbose=False)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        assert_close(compiled(X), expected)


def test_shares():
    """Shares are fractions of the original's time; layers within a counted layer are not counted again."""
    injection = Injection(Outer())
    assert injection.share() is None
    injection.original_us = 10.0
    injection.rows = [
        Row("a", "Attention", "", "replaced", original_us=4.0),
        Row("a.up", "Linear", "", "replaced", original_us=3.0),
        Row("b", "Linear", "", "kept: kpkg is slower", original_us=1.0, calls=3),
        Row("", "relu()", "", "replaced", original_us=0.5),
        Row("c", "Linear", "", "kept: not used by the sample"),
    ]
    assert injection.share() == pytest.approx(0.75) and injection.share(injection.replaced) == pytest.approx(0.45)
