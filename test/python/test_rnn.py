"""Recurrent layers: results and gradients beside PyTorch's, layers, injection, and what they refuse.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import pickle

import kpkg
import pytest
import torch
import torch._dynamo
from kpkg import nn
from kpkg.nn._recurrent import LONGEST
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

pytestmark = pytest.mark.usefixtures("default_ops")

KINDS = {
    "tanh": (nn.RNN, {}),
    "relu": (nn.RNN, {"nonlinearity": "relu"}),
    "lstm": (nn.LSTM, {}),
    "gru": (nn.GRU, {}),
}
OPS = {"tanh": "rnn_tanh", "relu": "rnn_relu", "lstm": "lstm", "gru": "gru"}
ROUND_OFF = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
# Steps, samples (None: no batch), elements of input and of the state, and options of the layer.
CASES = [
    (5, 3, 7, 13, {}),
    (1, 1, 1, 1, {"num_layers": 2}),
    (4, None, 6, 9, {"bidirectional": True}),
    (6, 2, 5, 66, {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    (3, 17, 9, 10, {"bias": False, "num_layers": 2}),
    (2, 65, 3, 5, {"bias": False, "bidirectional": True, "batch_first": True}),
    (3, 0, 4, 5, {}),
]


def pair(kind, i, h, dtype=torch.float32, **options):
    torch.manual_seed(3)
    layer, own = KINDS[kind]
    theirs = layer.torch_layer(i, h, dtype=dtype, **own, **options)
    return layer.from_torch(theirs), theirs


def shapes_of(steps, n, i, h, options):
    places = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    if n is None:
        return (steps, i), (places, h)
    return ((n, steps, i) if options.get("batch_first") else (steps, n, i)), (places, n, h)


def flat(results):
    return [t for r in results for t in (r if isinstance(r, tuple) else (r,))]


def step(layer, tensors, has_state):
    """Results, and gradients of a sum of them for tensors and parameters."""
    leaves = [t.detach().clone().requires_grad_() for t in tensors]
    x, h, c = leaves
    state = None if not has_state else (h, c) if layer.mode == "LSTM" else h
    results = flat(layer(x, state))
    total = sum(
        (r.double() * torch.arange(r.numel()).view(r.shape).cos() * (k + 1)).sum() for k, r in enumerate(results)
    )
    grads = torch.autograd.grad(total, [*leaves, *layer.parameters()], allow_unused=True)
    return [*results, *grads]


@pytest.mark.parametrize("dtype", ROUND_OFF, ids=lambda dtype: str(dtype)[6:])
@pytest.mark.parametrize("kind", KINDS)
def test_layers(kind, dtype):
    """Results and gradients are as near to float64 as PyTorch's are."""
    for case in CASES:
        steps, n, i, h, options = case
        mine, theirs = pair(kind, i, h, dtype, **options)
        assert mine.use_kpkg
        exact = type(theirs)(i, h, dtype=torch.float64, **KINDS[kind][1], **options)
        exact.load_state_dict(theirs.state_dict())
        input_shape, state_shape = shapes_of(*case)
        tensors = [torch.randn(*shape).to(dtype) for shape in (input_shape, state_shape, state_shape)]
        for has_state in (True, False):
            expected = step(exact, [t.double() for t in tensors], has_state)
            both = zip(step(mine, tensors, has_state), step(theirs, tensors, has_state), expected)
            for found, other, reference in both:
                assert (found is None) == (other is None)
                if found is None:
                    continue
                assert found.shape == other.shape and found.dtype == other.dtype
                if found.numel() == 0:
                    continue
                size = 1 + float(reference.detach().abs().max())
                errors = [float((t.detach().double() - reference.detach()).abs().max()) / size for t in (found, other)]
                assert errors[0] <= 2 * errors[1] + 32 * ROUND_OFF[dtype], (case, has_state)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_gradcheck(kind, reverse, default_ops):
    torch.manual_seed(1)
    gates = {"lstm": 4, "gru": 3}.get(kind, 1)

    def leaf(*shape):
        return torch.randn(*shape, dtype=torch.float64, requires_grad=True)

    states = [leaf(2, 3) for _ in range(2 if kind == "lstm" else 1)]
    weights = [leaf(3 * gates, 2), leaf(3 * gates, 3), leaf(3 * gates), leaf(3 * gates)]
    op = default_ops[f"kpkg::{OPS[kind]}"]
    assert torch.autograd.gradcheck(lambda *args: op(*args, reverse), (leaf(3, 2, 2), *states, *weights))


@pytest.mark.parametrize("kind", KINDS)
def test_fallback_gives_the_same(kind, default_ops):
    """Also with one bias alone, which PyTorch's own functions do not take."""
    from kpkg import _fallbacks

    gates = {"lstm": 4, "gru": 3}.get(kind, 1)
    for number, biases in enumerate([(True, True), (True, False), (False, True), (False, False)]):
        states = [torch.randn(3, 5) for _ in range(2 if kind == "lstm" else 1)]
        weights = [torch.randn(5 * gates, 4), torch.randn(5 * gates, 5)]
        given = [torch.randn(5 * gates) if wanted else None for wanted in biases]
        args = (torch.randn(6, 3, 4), *states, *weights, *given, number % 2 == 1)
        op = default_ops[f"kpkg::{OPS[kind]}"].op
        torch.testing.assert_close(op(*args), _fallbacks.implementation(op)(*args))


@pytest.mark.parametrize("kind", KINDS)
def test_sequences_in_parts(kind, monkeypatch):
    """Sequences longer than an op takes."""
    monkeypatch.setattr("kpkg.nn._recurrent.LONGEST", 4)
    mine, theirs = pair(kind, 3, 5, bidirectional=True)
    x = torch.randn(11, 2, 3)
    torch.testing.assert_close(mine(x), theirs(x))


def test_many_steps(default_ops):
    x, weights = torch.randn(LONGEST, 1, 1), [torch.randn(4, 1), torch.randn(4, 1)]
    state = torch.zeros(1, 1)
    leaves = [t.requires_grad_() for t in weights]
    out, _, cell = default_ops.lstm(x, state, state, *leaves)
    expected, _, their_cell = torch.lstm(x, [state[None], state[None]], leaves, False, 1, 0.0, False, False, False)
    torch.testing.assert_close((out, cell), (expected, their_cell[0]))
    torch.testing.assert_close(
        torch.autograd.grad(out.sum(), leaves), torch.autograd.grad(expected.sum(), leaves), rtol=1e-3, atol=1e-3
    )
    with pytest.raises(kpkg.KernelError, match=f"input has {LONGEST + 1} steps, expected 1 to {LONGEST}"):
        default_ops.lstm(torch.randn(LONGEST + 1, 1, 1), state, state, *weights)


def test_dropout_between_layers():
    mine, theirs = pair("lstm", 4, 5, num_layers=3, dropout=0.5)
    x = torch.randn(6, 2, 4)
    results = []
    for layer in (mine, theirs):
        torch.manual_seed(5)
        results.append(layer(x))
    torch.testing.assert_close(*results)
    torch.testing.assert_close(mine.eval()(x), theirs.eval()(x))


def packed_step(layer, values, lengths, states, is_sorted):
    """Returns results for a packed sequence, and gradients of a sum of them."""
    leaves = [t.detach().clone().requires_grad_() for t in (values, *states)]
    packed = pack_padded_sequence(
        leaves[0], torch.tensor(lengths), batch_first=layer.batch_first, enforce_sorted=is_sorted
    )
    hx = None if not states else tuple(leaves[1:]) if layer.mode == "LSTM" else leaves[1]
    out, last = layer(packed, hx)
    assert isinstance(out, PackedSequence)
    results = [out.data, *flat([last])]
    total = sum((r.double() * torch.arange(r.numel()).view(r.shape).cos()).sum() for r in results)
    grads = torch.autograd.grad(total, [*leaves, *layer.parameters()])
    return [*results, *grads], out


@pytest.mark.parametrize("kind", KINDS)
def test_packed_sequences(kind, monkeypatch):
    monkeypatch.setattr("kpkg.nn._recurrent.LONGEST", 4)
    for lengths, is_sorted, options in (
        ([6, 4, 4, 1], True, {}),
        ([2, 7, 5, 7], False, {"num_layers": 2, "bidirectional": True}),
        ([3, 3], True, {"bidirectional": True, "batch_first": True}),
        ([1], False, {"num_layers": 2}),
    ):
        mine, theirs = pair(kind, 4, 5, **options)
        places = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
        shape = (len(lengths), max(lengths)) if options.get("batch_first") else (max(lengths), len(lengths))
        values = torch.randn(*shape, 4)
        states = [torch.randn(places, len(lengths), 5) for _ in range(2 if kind == "lstm" else 1)]
        for given in (states, []):
            with monkeypatch.context() as patch:
                patch.setattr(mine.torch_layer, "forward", lambda *args: pytest.fail("PyTorch ran"))
                found, out = packed_step(mine, values, lengths, given, is_sorted)
            expected, their_out = packed_step(theirs, values, lengths, given, is_sorted)
            torch.testing.assert_close(found, expected)
            assert all(
                (a is None) == (b is None) and (a is None or torch.equal(a, b)) for a, b in zip(out[1:], their_out[1:])
            )


def test_packed_sequences_are_checked():
    mine, theirs = pair("lstm", 4, 5)
    packed = pack_padded_sequence(torch.randn(3, 2, 4), torch.tensor([3, 2]))
    wide = pack_padded_sequence(torch.randn(3, 2, 6), torch.tensor([3, 2]))
    three = (torch.zeros(1, 3, 5), torch.zeros(1, 3, 5))
    for arguments, message in (
        ((wide,), r"input.size\(-1\) must be equal to input_size. Expected 4, got 6"),
        ((packed, three), r"Expected hidden\[0\] size \(1, 2, 5\), got \[1, 3, 5\]"),
    ):
        with pytest.raises(RuntimeError):
            theirs(*arguments)
        with pytest.raises(RuntimeError, match=message):
            mine(*arguments)
    mine.use_kpkg = False
    torch.testing.assert_close(mine(packed)[0].data, theirs(packed)[0].data)


def test_packing_models_are_injected(fast):
    class Tagger(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = torch.nn.GRU(6, 8, bidirectional=True, batch_first=True)
            self.last = torch.nn.LSTM(16, 8, batch_first=True, proj_size=3)

        def forward(self, x, lengths):
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            return pad_packed_sequence(self.last(self.rnn(packed)[0])[0], batch_first=True)[0]

    model, x, lengths = Tagger(), torch.randn(3, 9, 6), torch.tensor([4, 9, 7])
    expected = model(x, lengths)
    for is_training, sample in ((False, None), (False, (x, lengths)), (True, (x.requires_grad_(), lengths))):
        with kpkg.inject(model.train(is_training), verbose=False, sample_input=sample) as injection:
            torch.testing.assert_close(model(x, lengths), expected)
            assert "proj_size" in injection.rows[1].status
            assert injection.rows[0].is_replaced, injection.rows[0].status
    assert type(model.rnn) is torch.nn.GRU


def test_what_pytorch_computes():
    projected, plain = pair("lstm", 4, 6, proj_size=3)
    assert not projected.use_kpkg
    x = torch.randn(5, 2, 4)
    torch.testing.assert_close(projected(x), plain(x))
    packed = pack_padded_sequence(x, torch.tensor([5, 2]))
    torch.testing.assert_close(projected(packed)[0].data, plain(packed)[0].data)
    model = torch.nn.Sequential(torch.nn.LSTM(4, 6, proj_size=3))
    assert "proj_size" in kpkg.inject(model, verbose=False).rows[0].status


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_copies_and_files(kind):
    mine, theirs = pair(kind, 3, 4, num_layers=2)
    x = torch.randn(5, 2, 3)
    for other in (copy.deepcopy(mine), pickle.loads(pickle.dumps(mine))):
        assert type(other) is type(mine) and other.use_kpkg
        torch.testing.assert_close(other(x), theirs(x))
    fresh = KINDS[kind][0](3, 4, num_layers=2)
    fresh.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(fresh(x), theirs(x))


def test_networks_are_injected():
    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(6, 8, num_layers=2, bidirectional=True, batch_first=True)
            self.gru = torch.nn.GRU(16, 8, batch_first=True)
            self.rnn = torch.nn.RNN(8, 4, nonlinearity="relu", batch_first=True)

        def forward(self, x):
            y, (h, _) = self.lstm(x)
            y, h = self.gru(y, h[:1])
            return self.rnn(y)

    model, x = Network().eval(), torch.randn(3, 5, 6)
    with torch.no_grad():
        expected = model(x)
        with kpkg.inject(model, verbose=False) as injection:
            assert {type(layer) for layer in model.children()} == {nn.LSTM, nn.GRU, nn.RNN}
            torch.testing.assert_close(model(x), expected)
        assert len(injection.rows) == 3 and type(model.lstm) is torch.nn.LSTM
        with kpkg.inject(model, sample_input=x, verbose=False) as injection:
            torch.testing.assert_close(model(x), expected)
            assert all(row.error is not None and row.error < 1e-5 for row in injection.rows)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_layers_compile(kind):
    mine, theirs = pair(kind, 5, 6, num_layers=2, bidirectional=True)
    x = torch.randn(4, 3, 5)
    with torch._dynamo.config.patch(allow_rnn=True):  # otherwise torch.compile refuses such classes
        compiled = torch.compile(mine, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x), theirs(x))


@pytest.mark.parametrize("kind", ["tanh", "gru"])  # PyTorch's LSTM raises an error under autocast on some CPUs
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_autocast_gives_pytorchs_dtypes(kind, dtype):
    mine, theirs = pair(kind, 4, 5, num_layers=2)
    with torch.autocast("cpu", torch.bfloat16):
        found, expected = (layer(torch.randn(3, 2, 4, dtype=dtype)) for layer in (mine, theirs))
    assert [t.dtype for t in found] == [t.dtype for t in expected]


@pytest.mark.parametrize(
    "shapes, message",
    [
        (((2, 4), (2, 5), (5, 4), (5, 5)), r"input has shape \[2, 4\], expected \[steps, samples, features\]"),
        (((0, 2, 4), (2, 5), (5, 4), (5, 5)), "input has 0 steps"),
        (((3, 2, 4), (2, 6), (5, 4), (5, 5)), r"hx has shape \[2, 6\], expected \[2, 5\]"),
        (((3, 2, 4), (1, 2, 5), (5, 4), (5, 5)), r"hx has shape \[1, 2, 5\]"),
        (((3, 2, 7), (2, 5), (5, 4), (5, 5)), r"w_ih has shape \[5, 4\], expected \[5, 7\]"),
        (((3, 2, 4), (2, 5), (5, 4), (5, 6)), r"w_hh has shape \[5, 6\]"),
        (((3, 2, 4), (2, 5), (5, 4), (5, 5), (6,)), r"b_ih has shape \[6\], expected \[5\]"),
    ],
)
def test_messages(default_ops, shapes, message):
    with pytest.raises(kpkg.KernelError, match=message):
        default_ops.rnn_tanh(*(torch.randn(*shape) for shape in shapes))


def test_messages_of_layers(default_ops):
    args = [torch.randn(3, 2, 4), torch.randn(2, 5), torch.randn(2, 5), torch.randn(20, 4), torch.randn(20, 5)]
    with pytest.raises(kpkg.KernelError, match=r"cx has shape \[2, 6\], expected \[2, 5\]"):
        default_ops.lstm(*args[:2], torch.randn(2, 6), *args[3:])
    with pytest.raises(kpkg.KernelError, match="hx is float64, and input is float32"):
        default_ops.lstm(args[0], args[1].double(), *args[2:])
    layer = nn.LSTM(4, 5)
    for given, message in [
        ((torch.randn(3, 2, 3),), "Expected 4, got 3"),
        ((torch.randn(3, 2, 4, 1),), "expected an input of 2 or 3 dimensions, got 4"),
        ((torch.randn(3, 2, 4), (torch.randn(2, 5), torch.randn(2, 5))), "expected states of 3 dimensions"),
        ((torch.randn(3, 2, 4), (torch.randn(1, 2, 6), torch.randn(1, 2, 5))), r"Expected hidden\[0\] size"),
        ((torch.randn(3, 2, 4).double(),), "does not match weight dtype"),
    ]:
        with pytest.raises((RuntimeError, ValueError), match=message):
            layer(*given)
