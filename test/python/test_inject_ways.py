"""Tests replacing layers in the ways that models run.

Covers blocks of mobile networks and transformers, training with backwards, compiled models, and CUDA graphs.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy

import kpkg
import pytest
import torch
from conftest import op_calls
from kpkg import _measure
from torch import nn
from torch.testing import assert_close

pytestmark = [pytest.mark.usefixtures("default_ops")]
IMAGES = torch.randn(2, 8, 6, 5, generator=torch.Generator().manual_seed(4))


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    """Makes kpkg appear twice as fast, whatever the clock says; timed functions run once."""

    def interleaved(first, second, **_):
        first(), second is not None and second()
        return 2.0, 1.0

    monkeypatch.setattr(_measure, "interleaved", interleaved)


class SqueezeExcitation(nn.Module):
    """A squeeze-and-excitation block like torchvision's."""

    def __init__(self, channels, gate):
        super().__init__()
        self.avgpool, self.fc1, self.fc2 = nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, 4, 1), nn.Conv2d(4, channels, 1)
        self.activation, self.scale_activation = nn.ReLU(), gate()

    def _scale(self, x):
        return self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(x)))))

    def forward(self, x):
        return self._scale(x) * x


class Inverted(nn.Module):
    """An inverted residual block like MobileNet's: expansion, depthwise convolution, squeeze-and-excitation,
    projection."""

    def __init__(self, activation, gate):
        super().__init__()

        def layers(channels, results, taps, groups, *more):
            return nn.Sequential(
                nn.Conv2d(channels, results, taps, 1, taps // 2, groups=groups, bias=False),
                nn.BatchNorm2d(results),
                *more,
            )

        self.block = nn.Sequential(
            layers(8, 16, 1, 1, activation(inplace=True)),
            layers(16, 16, 5, 16, activation(inplace=True)),
            SqueezeExcitation(16, gate),
            layers(16, 8, 1, 1),
        )

    def forward(self, x):
        result = self.block(x)
        result += x
        return result


def mobile(activation=nn.Hardswish, gate=nn.Hardsigmoid):
    torch.manual_seed(0)
    made = nn.Sequential(Inverted(activation, gate), Inverted(activation, gate)).eval()
    for layer in made.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.running_mean)
            nn.init.uniform_(layer.running_var, 0.5, 2.0)
            nn.init.normal_(layer.weight)
    return made


def inject(model, sample=IMAGES, **options):
    return kpkg.inject(model, sample_input=sample, verbose=False, **options)


@pytest.mark.parametrize(
    "activation, gate", [(nn.Hardswish, nn.Hardsigmoid), (nn.SiLU, nn.Sigmoid), (nn.ReLU6, nn.Sigmoid)]
)
def test_blocks_of_mobile_networks(activation, gate):
    model = mobile(activation, gate)
    expected = model(IMAGES).detach()
    injection = inject(model)
    assert len(injection.replaced) == len(injection.rows) == 12 and injection.error < 1e-5
    kinds = [row.layer for row in injection.rows if row.name.startswith("0.")]
    name = activation.__name__
    assert kinds == [f"Conv2d + BatchNorm2d + {name}"] * 2 + [
        "Conv2d + ReLU",
        f"Conv2d + {gate.__name__}",
        "Conv2d + BatchNorm2d",
        "AdaptiveAvgPool2d",
    ]
    with torch.no_grad():
        assert_close(model(IMAGES), expected)
    assert op_calls("conv2d_fused", lambda: model(IMAGES)) == 8 and op_calls("mean", lambda: model(IMAGES)) == 2
    injection.restore()
    assert torch.equal(model(IMAGES), expected)


@pytest.mark.parametrize("activation", [nn.GELU(), nn.ReLU(), nn.SiLU(), nn.GELU("tanh"), nn.Hardswish()])
def test_linear_layers_and_their_activations(activation):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 12), activation, nn.Dropout(), nn.Linear(12, 5)).eval()
    x = torch.randn(3, 4, 8)
    expected = model(x).detach()
    injection = inject(model, x)
    fused = (
        not isinstance(activation, nn.Hardswish) and getattr(activation, "approximate", "none") == "none"
    )  # an activation that products do not support is not fused
    assert op_calls("linear_fused", lambda: model(x)) == fused
    assert (injection.rows[0].name, injection.rows[0].replacement) == (
        ("0 + 1", "Linear, one launch") if fused else ("0", "Linear")
    )
    with torch.no_grad():
        assert_close(model(x), expected)
    assert_close(model(x), expected)  # recording gradients
    model(x).sum().backward()
    assert model[0].weight.grad is not None


def test_training_changes_nothing():
    """Running statistics, random numbers and gradients stay unchanged; backwards are correct and counted."""
    model = mobile().train()
    model.append(nn.Dropout(0.5))
    other = copy.deepcopy(model)
    torch.manual_seed(7)
    expected_numbers = torch.rand(3)
    torch.manual_seed(7)
    injection = inject(model)
    assert torch.equal(torch.rand(3), expected_numbers)
    assert_close(model.state_dict(), other.state_dict(), rtol=0, atol=0)
    assert all(p.grad is None for p in model.parameters())
    status = {row.name: row.status for row in injection.rows}
    assert status["0.block.0.0"] == "replaced" and status["0.block.0.1"].startswith("kept: PyTorch runs in this mode")
    assert injection.error < 1e-4 and not any("+" in row.name for row in injection.rows)
    for each in (model, other):
        torch.manual_seed(1)
        each(IMAGES).square().sum().backward()
    for (name, found), (_, expected) in zip(model.named_parameters(), other.named_parameters()):
        assert_close(found.grad, expected.grad, msg=name, rtol=1e-3, atol=1e-3)
    assert_close(model.state_dict(), other.state_dict())


def test_wrong_gradients_stay_out(monkeypatch):
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clamp(min=0)

        @staticmethod
        def backward(ctx, grad):
            return grad

    monkeypatch.setattr(kpkg.nn.ReLU, "forward", lambda self, x: Wrong.apply(x))
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    x = torch.randn(4, 8)
    status = {row.name: row.status for row in inject(model.train(), x).rows}
    assert status["1"].startswith("kept: its output differs by") and status["2"] == "replaced"
    assert next(
        row for row in inject(nn.Sequential(nn.Sigmoid(), nn.ReLU()).eval(), x).rows if row.name == "1"
    ).is_replaced


def test_backwards_are_timed(monkeypatch):
    timed = []

    def interleaved(first, second, **_):
        found = second() if second is not None else first()
        timed.append(isinstance(found, tuple))
        return 1.0, 2.0

    monkeypatch.setattr(_measure, "interleaved", interleaved)
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU())
    inject(model.train(), torch.randn(4, 8))
    assert timed == [True, True, True]  # a result and gradients, for two layers and the model
    timed.clear()
    inject(model.eval(), torch.randn(4, 8))
    assert timed and not any(timed)


def test_injected_models_compile():
    """Layers that torch.compile fuses run as PyTorch's layers when compiled."""
    model = mobile()
    model.append(nn.Hardswish()).append(nn.Conv2d(8, 8, 3))
    expected = model(IMAGES).detach()
    inject(model)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        assert_close(compiled(IMAGES), expected)
        assert (
            op_calls("hardswish", lambda: model(IMAGES)) == 1 and op_calls("hardswish", lambda: compiled(IMAGES)) == 0
        )
        assert (
            op_calls("conv2d_fused", lambda: compiled(IMAGES)) == 8 and op_calls("mean", lambda: compiled(IMAGES)) == 0
        )
        assert op_calls("conv2d", lambda: compiled(IMAGES)) == 3
        model[0].block[0][1].running_mean += 1.0  # the fold is computed in the graph
        assert_close(compiled(IMAGES), model(IMAGES))


def test_compiled_models(monkeypatch):
    model = mobile()
    expected = model(IMAGES).detach()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    injection = inject(compiled)
    assert injection.model is model and injection.original_us == 2.0
    status = {row.name: row.status for row in injection.rows}
    assert status["0.block.2.avgpool"] == "kept: torch.compile fuses it with its neighbours"
    assert sum(row.is_replaced for row in injection.rows) == 10 and not any(
        name.startswith("_orig_mod") for name in status
    )
    with torch.no_grad():
        assert_close(compiled(IMAGES), expected)
        assert op_calls("conv2d_fused", lambda: compiled(IMAGES)) == 8
        injection.restore()
        assert_close(compiled(IMAGES), expected)
        assert op_calls("conv2d_fused", lambda: compiled(IMAGES)) == 0

    seen = []

    def slower(first, second, switch=None, **_):
        if switch is None:
            return 2.0, 1.0
        seen.append(compiled)
        return 1.0, slowness

    monkeypatch.setattr(_measure, "interleaved", slower)
    for slowness, looks in (
        (1.05, 2),
        (2.0, 1),
    ):  # one comparison, since more would need compilation; repeated if the result is close
        seen.clear()
        injection = inject(compiled)
        assert len(seen) == looks and not injection.replaced
    assert sum(row.status == "kept: the model as a whole is slower with them all" for row in injection.rows) == 10


class Sine(nn.Module):
    """Amplifies rounding errors."""

    def forward(self, x):
        return torch.sin(3e4 * x)


def test_models_that_amplify_rounding():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Sequential(nn.Conv2d(8, 16, 3), nn.BatchNorm2d(16), nn.ReLU()), Sine()).eval()
    nn.init.normal_(model[0][1].running_mean)
    expected = model(IMAGES).detach()
    injection = inject(model)
    assert injection.error > 1e-4 and [row.status for row in injection.rows] == ["replaced"]
    with torch.no_grad():
        assert_close(model(IMAGES), expected, rtol=0, atol=0.3)


def test_graphs_need_a_gpu():
    with pytest.raises(ValueError, match="cuda_graphs is for models on a GPU"):
        inject(mobile(), cuda_graphs=True)
