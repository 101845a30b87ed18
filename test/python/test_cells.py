"""Cells of recurrent networks: results and gradients beside PyTorch's, layers, injection, and what they refuse.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from kpkg import nn

pytestmark = pytest.mark.usefixtures("default_ops")

KINDS = {
    "tanh": (nn.RNNCell, {}),
    "relu": (nn.RNNCell, {"nonlinearity": "relu"}),
    "lstm": (nn.LSTMCell, {}),
    "gru": (nn.GRUCell, {}),
}
# Samples (None: no batch), elements of input and of the state.
SIZES = [(5, 7, 13), (1, 1, 1), (None, 6, 9), (0, 4, 5), (3, 40, 270)]
ROUND_OFF = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


def pair(kind, i, h, dtype=torch.float32, bias=True):
    torch.manual_seed(3)
    layer, options = KINDS[kind]
    theirs = layer.torch_layer(i, h, bias=bias, dtype=dtype, **options)
    return layer.from_torch(theirs), theirs


def step(layer, tensors, has_state):
    """Results, and gradients of a sum of them for tensors and parameters."""
    leaves = [t.detach().clone().requires_grad_() for t in tensors]
    x, h, c = leaves
    state = None if not has_state else (h, c) if isinstance(layer, torch.nn.LSTMCell) else h
    results = layer(x, state)
    results = results if isinstance(results, tuple) else (results,)
    total = sum(
        (r.double() * torch.arange(r.numel()).view(r.shape).cos() * (k + 1)).sum() for k, r in enumerate(results)
    )
    grads = torch.autograd.grad(total, [*leaves, *layer.parameters()], allow_unused=True)
    return [*results, *grads]


@pytest.mark.parametrize("dtype", ROUND_OFF, ids=lambda dtype: str(dtype)[6:])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("kind", KINDS)
def test_cells(kind, bias, dtype):
    """Results and gradients are as near to float64 as PyTorch's are."""
    for n, i, h in SIZES:
        mine, theirs = pair(kind, i, h, dtype, bias)
        assert mine.use_kpkg
        exact = type(theirs)(i, h, bias=bias, dtype=torch.float64, **KINDS[kind][1])
        exact.load_state_dict(theirs.state_dict())
        rows = () if n is None else (n,)
        tensors = [torch.randn(*rows, size).to(dtype) for size in (i, h, h)]
        for has_state in (True, False):
            expected = step(exact, [t.double() for t in tensors], has_state)
            both = zip(step(mine, tensors, has_state), step(theirs, tensors, has_state), expected)
            for found, other, reference in both:
                assert (found is None) == (other is None)
                if found is None or found.numel() == 0:
                    continue
                assert found.shape == other.shape and found.dtype == other.dtype
                size = 1 + float(reference.detach().abs().max())
                errors = [float((t.detach().double() - reference.detach()).abs().max()) / size for t in (found, other)]
                assert errors[0] <= 2 * errors[1] + 16 * ROUND_OFF[dtype], (n, i, h, has_state)


@pytest.mark.parametrize("kind", KINDS)
def test_gradcheck(kind, default_ops):
    name = {"tanh": "rnn_tanh_cell", "relu": "rnn_relu_cell", "lstm": "lstm_cell", "gru": "gru_cell"}[kind]
    gates = {"lstm": 4, "gru": 3}.get(kind, 1)
    torch.manual_seed(1)

    def leaf(*shape):
        return torch.randn(*shape, dtype=torch.float64, requires_grad=True)

    states = [leaf(2, 4) for _ in range(2 if kind == "lstm" else 1)]
    weights = [leaf(4 * gates, 3), leaf(4 * gates, 4), leaf(4 * gates), leaf(4 * gates)]
    assert torch.autograd.gradcheck(default_ops[f"kpkg::{name}"], (leaf(2, 3), *states, *weights))


@pytest.mark.parametrize("kind", KINDS)
def test_fallback_gives_the_same(kind, default_ops):
    """Also with one bias alone, which PyTorch's own functions do not take."""
    from kpkg import _fallbacks

    gates = {"lstm": 4, "gru": 3}.get(kind, 1)
    name = {"tanh": "rnn_tanh_cell", "relu": "rnn_relu_cell", "lstm": "lstm_cell", "gru": "gru_cell"}[kind]
    for biases in [(True, True), (True, False), (False, True), (False, False)]:
        for rows in [(3,), ()]:
            states = [torch.randn(*rows, 5) for _ in range(2 if kind == "lstm" else 1)]
            weights = [torch.randn(5 * gates, 4), torch.randn(5 * gates, 5)]
            given = [torch.randn(5 * gates) if wanted else None for wanted in biases]
            args = (torch.randn(*rows, 4), *states, *weights, *given)
            op = default_ops[f"kpkg::{name}"].op
            found, expected = op(*args), _fallbacks.implementation(op)(*args)
            torch.testing.assert_close(found, expected)


def test_networks_of_cells_are_injected():
    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.gru, self.rnn = (
                torch.nn.LSTMCell(6, 8),
                torch.nn.GRUCell(8, 8),
                torch.nn.RNNCell(8, 4, nonlinearity="relu"),
            )

        def forward(self, x):
            state = h = None
            for step in x:
                state = self.lstm(step, state)
                h = self.gru(state[0], h)
            return self.rnn(h)

    model, x = Network().eval(), torch.randn(5, 3, 6)
    with torch.no_grad():
        expected = model(x)
        with kpkg.inject(model, verbose=False) as injection:
            assert {type(layer) for layer in model.children()} == {nn.LSTMCell, nn.GRUCell, nn.RNNCell}
            torch.testing.assert_close(model(x), expected)
        assert len(injection.rows) == 3 and type(model.lstm) is torch.nn.LSTMCell
        with kpkg.inject(model, sample_input=x, verbose=False) as injection:
            torch.testing.assert_close(model(x), expected)
            assert all(row.error is not None and row.error < 1e-5 for row in injection.rows)


def test_cells_compile():
    mine, theirs = pair("lstm", 5, 6)
    x, state = torch.randn(3, 5), (torch.randn(3, 6), torch.randn(3, 6))
    compiled = torch.compile(mine, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, state), theirs(x, state))


@pytest.mark.parametrize("kind", KINDS)
def test_autocast_gives_pytorchs_dtypes(kind):
    mine, theirs = pair(kind, 4, 5)
    with torch.autocast("cpu", torch.bfloat16):
        found, expected = (layer(torch.randn(3, 4)) for layer in (mine, theirs))
    found, expected = (t if isinstance(t, tuple) else (t,) for t in (found, expected))
    assert [t.dtype for t in found] == [t.dtype for t in expected]


@pytest.mark.parametrize(
    "shapes, message",
    [
        (((2, 3, 4), (2, 5), (5, 4), (5, 5)), "input has shape"),
        (((2, 4), (2, 6), (5, 4), (5, 5)), r"hx has shape \[2, 6\], expected \[2, 5\]"),
        (((2, 4), (3, 5), (5, 4), (5, 5)), r"hx has shape \[3, 5\], expected \[2, 5\]"),
        (((2, 4), (5,), (5, 4), (5, 5)), "hx has shape"),
        (((2, 7), (2, 5), (5, 4), (5, 5)), r"input has shape \[2, 7\], expected 4"),
        (((2, 4), (2, 5), (6, 4), (5, 5)), r"w_ih has shape \[6, 4\]"),
        (((2, 4), (2, 5), (5, 4), (5, 6)), r"w_hh has shape \[5, 6\]"),
        (((2, 4), (2, 5), (5, 4), (5, 5), (6,)), r"b_ih has shape \[6\], expected \[5\]"),
    ],
)
def test_messages(default_ops, shapes, message):
    with pytest.raises(kpkg.KernelError, match=message):
        default_ops.rnn_tanh_cell(*(torch.randn(*shape) for shape in shapes))


def test_layers_name_themselves():
    with pytest.raises(kpkg.KernelError, match=r"GRUCell\(4, 5.*input has shape \[2, 3\]"):
        nn.GRUCell(4, 5)(torch.randn(2, 3))
    with pytest.raises(kpkg.KernelError, match="hx is float64 and its weight is float32"):
        nn.GRUCell(4, 5)(torch.randn(2, 4), torch.randn(2, 5).double())
    with pytest.raises(kpkg.KernelError, match="cx has shape"):
        nn.LSTMCell(4, 5)(torch.randn(2, 4), (torch.randn(2, 5), torch.randn(2, 6)))
