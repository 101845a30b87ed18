"""Checks that inject runs the model as a whole with its replacements before it returns.

Replacements that make the model raise or change its output are taken out again.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
import torch.nn.functional as F
from kpkg import _call_products, _calls, _whole
from kpkg._call_forms import Call
from torch import nn
from torch.testing import assert_close

pytestmark = [pytest.mark.usefixtures("default_ops", "fast")]
X = torch.randn(2, 6, 32, generator=torch.Generator().manual_seed(3))


class Attention(nn.Module):
    """Relies on the memory format of its input, as many models do."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(32, 96)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = (t.view(b, n, 4, 8).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).view(b, n, c)


def swap(monkeypatch, function, run):
    """Makes `run` replace calls of PyTorch's function."""
    call = _calls.CALLS[function]
    monkeypatch.setitem(_calls.CALLS, function, Call(call.name, call.ops, run, (function,)))


def other_order(*args, **kwargs):
    return _call_products.scaled_dot_product_attention(*args, **kwargs).contiguous()


def test_other_orders_of_memory(monkeypatch):
    swap(monkeypatch, F.scaled_dot_product_attention, other_order)
    model = nn.Sequential(*(Attention() for _ in range(5))).eval()
    with torch.no_grad():
        expected = model(X)
        injection = kpkg.inject(model, sample_input=X, verbose=False)
        status = {row.status for row in injection.rows if row.layer == "scaled_dot_product_attention()"}
        assert len(status) == 1 and status.pop().startswith(
            "kept: the model raises RuntimeError with it: view size is not compatible"
        )
        assert len(injection.replaced) == 5 and injection.error < 1e-5
        assert_close(model(X), expected)


def test_attention_keeps_its_order():
    """Uses kpkg's own attention; the model runs with any memory format that it returns."""
    model = nn.Sequential(Attention(), Attention()).eval()
    with torch.no_grad():
        expected = model(X)
        injection = kpkg.inject(model, sample_input=X, verbose=False)
        assert injection.error < 1e-5
        assert_close(model(X), expected)


class Reads(nn.Module):
    """Reads a tensor that its last layer may overwrite in place."""

    def __init__(self):
        super().__init__()
        self.up, self.act = nn.Linear(32, 32), nn.ReLU(inplace=True)

    def forward(self, x):
        h = self.up(x)
        self.act(h)
        return x + h


def test_only_culprits_go_out():
    model = nn.Sequential(nn.Linear(32, 32), Reads(), nn.LayerNorm(32), nn.Tanh()).eval()
    with torch.no_grad():
        expected = model(X)
        injection = kpkg.inject(model, include=["Linear", "ReLU", "LayerNorm", "Tanh"], sample_input=X, verbose=False)
        status = {row.name: row.status for row in injection.rows}
        culprits = {name for name, each in status.items() if each == "kept: the model's output differs with it"}
        assert culprits and culprits <= {"1.up + 1.act", "1.act"} and len(injection.replaced) >= 3
        assert_close(model(X), expected)


def test_what_raises_by_itself_stays_out(monkeypatch):
    def broken(self, input):
        raise IndexError("of the replacement")

    monkeypatch.setattr(kpkg.nn.LayerNorm, "forward", broken)

    def torn(input):
        raise ValueError("of the call")

    swap(monkeypatch, torch.tanh, torn)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.up = nn.LayerNorm(32), nn.Linear(32, 32)

        def forward(self, x):
            return torch.tanh(self.up(self.norm(x)))

    injection = kpkg.inject(Model().eval(), sample_input=X, verbose=False)
    assert {row.layer: row.status for row in injection.rows} == {
        "LayerNorm": "kept: it raises IndexError: of the replacement",
        "Linear": "replaced",
        "tanh()": "kept: it raises ValueError: of the call",
    }


class Random(nn.Module):
    """Returns a different result each time, with or without replacements."""

    def __init__(self):
        super().__init__()
        self.up, self.count = nn.Linear(32, 32), 0

    def forward(self, x):
        self.count += 1
        return self.up(x) * self.count


def test_models_that_differ_by_themselves():
    injection = kpkg.inject(Random().eval(), sample_input=X, verbose=False)
    assert [row.status for row in injection.rows] == ["replaced"] and injection.error > 0.4


def test_errors_in_backwards(monkeypatch):
    """Training runs are tried with their backward."""

    class Torn(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, whole):
            ctx.whole = whole
            return x.clamp(min=0)

        @staticmethod
        def backward(ctx, grad):
            if ctx.whole:
                raise RuntimeError("only in the model")
            return grad, None

    calls = []
    monkeypatch.setattr(
        _whole._Trial, "problem", lambda self, plain=_whole._Trial.problem: calls.append(1) or plain(self)
    )
    monkeypatch.setattr(kpkg.nn.ReLU, "forward", lambda self, x: Torn.apply(x, bool(calls)) if calls else torch.relu(x))
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32)).train()
    injection = kpkg.inject(model, sample_input=X, verbose=False)
    status = {row.name: row.status for row in injection.rows}
    assert status["1"] == "kept: the model raises RuntimeError with it: only in the model"
    assert status["0"] == status["2"] == "replaced"
