"""Tests convolutions that compute the following steps in one launch.

Checks where inject finds them, when they fall back to the layers, and that results are the model's.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import pickle

import kpkg
import pytest
import torch
from conftest import op_calls
from kpkg import _chains, _measure
from torch import nn
from torch.testing import assert_close

pytestmark = [pytest.mark.usefixtures("default_ops", "fast")]
IMAGES = torch.randn(2, 8, 6, 5, generator=torch.Generator().manual_seed(4))


class Bottleneck(nn.Module):
    """A block like torchvision's: one ReLU in three places, an in-place sum, and a shortcut that is computed late."""

    def __init__(self, channels=8, shortcut=False):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, 4, 1, bias=False), nn.BatchNorm2d(4)
        self.conv2, self.bn2 = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.conv3, self.bn3 = nn.Conv2d(4, channels, 1, bias=False), nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = (
            nn.Sequential(nn.Conv2d(channels, channels, 1), nn.BatchNorm2d(channels)) if shortcut else None
        )

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


@pytest.fixture
def model():
    torch.manual_seed(0)
    made = nn.Sequential(Bottleneck(shortcut=True), Bottleneck(), nn.Conv2d(8, 8, 1), nn.SiLU()).eval()
    for layer in made.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.running_mean)
            nn.init.uniform_(layer.running_var, 0.5, 2.0)
            nn.init.normal_(layer.weight)
    return made


def injected(model, images=IMAGES):
    return kpkg.inject(model, sample_input=images, verbose=False)


def launches(model, images=IMAGES):
    """Returns how often the fused op runs in a forward."""
    return op_calls("conv2d_fused", lambda: model(images))


def test_one_launch_for_each_chain(model):
    expected, layers = model(IMAGES).detach(), dict(model.named_modules())
    injection = injected(model)
    rows = [row.name for row in injection.replaced if row.replacement == "Conv2d, one launch"]
    assert rows == ["2 + 3", *(f"{i}.conv{j} + {i}.bn{j} + {i}.relu" for i in (0, 1) for j in (1, 2, 3))]
    kinds = {row.name: row.layer for row in injection.rows}
    assert (
        kinds["0.conv3 + 0.bn3 + 0.relu"] == "Conv2d + BatchNorm2d + sum + ReLU" and kinds["2 + 3"] == "Conv2d + SiLU"
    )
    assert (
        kinds["0.downsample.0 + 0.downsample.1"] == "Conv2d + BatchNorm2d" and len(kinds) == 8
    )  # layers that are fused into a launch have no row
    assert isinstance(model[0], Bottleneck) and launches(model) == 7
    with torch.no_grad():
        assert_close(model(IMAGES), expected)
        model[0].bn1.running_mean += 1.0  # folds again
        assert not torch.allclose(model(IMAGES), expected)
        model[0].bn1.running_mean -= 1.0
    injection.restore()
    assert dict(model.named_modules()) == layers and type(model[0]) is Bottleneck and type(model) is nn.Sequential
    assert not any(name.startswith("_kpkg") for layer in layers.values() for name in layer.__dict__)
    assert_close(model(IMAGES).detach(), expected)


def test_stands_back_for_gradients_training_and_hooks(model):
    plain = copy.deepcopy(model)
    injected(model)
    for name in ("model", "plain"):
        each = {"model": model, "plain": plain}[name].train()
        each.zero_grad()
        each(IMAGES).square().sum().backward()
    for (name, found), (_, expected) in zip(model.named_parameters(), plain.named_parameters()):
        assert_close(found.grad, expected.grad, msg=name, rtol=1e-4, atol=1e-4)
    model.eval(), plain.eval()
    with torch.no_grad():
        assert_close(model(IMAGES), plain(IMAGES), rtol=1e-4, atol=1e-4)
    image = IMAGES.clone().requires_grad_()
    model.requires_grad_(False)
    assert torch.autograd.grad(model(image).sum(), image)[0].abs().sum() > 0
    seen = []
    handle = model[0].relu.register_forward_hook(lambda layer, args, output: seen.append(output.shape))
    assert launches(model) == 4 and len(seen) == 3
    handle.remove()
    assert launches(model) == 7


def test_stands_back_when_layers_change(model):
    injected(model)
    model[0].relu = nn.Sigmoid()
    with torch.no_grad():
        assert launches(model) == 4
        assert model(IMAGES).isfinite().all()
    block = model[1]
    expected = block(IMAGES).detach()
    block.downsample = nn.Identity()
    assert launches(model) == 1  # the condition of the forward has changed, so that it runs without a fused launch
    with torch.no_grad():
        assert_close(block(IMAGES), expected)


def test_other_shapes_and_dtypes(model):
    plain = copy.deepcopy(model)
    injected(model)
    with torch.no_grad():
        for images in (torch.randn(1, 8, 3, 9), torch.randn(5, 8, 4, 4).contiguous(memory_format=torch.channels_last)):
            assert_close(model(images), plain(images))
            assert launches(model, images) == 7


def test_copies_are_plain(model):
    injected(model)
    with torch.no_grad():
        expected = model(IMAGES)
        for made in (copy.deepcopy(model), copy.deepcopy(model[1])):
            assert type(made) in (nn.Sequential, Bottleneck) and not hasattr(made, "_kpkg_block")
        assert_close(copy.deepcopy(model)(IMAGES), expected)
        assert type(pickle.loads(pickle.dumps(nn.Sequential(*model[2:])))) is nn.Sequential


def test_slower_chains_become_folds(model, monkeypatch):
    """A chain that is not faster is not kept, but the fold may be."""
    times = iter([(1.0, 2.0)] * 4)  # each kind of chain is timed once
    monkeypatch.setattr(_measure, "interleaved", lambda first, second, **_: next(times, (2.0, 1.0)))
    injection = injected(model)
    kept = [row for row in injection.rows if row.replacement == "Conv2d, one launch"]
    assert len(kept) == 7 and {row.status for row in kept} == {"kept: kpkg is slower"}
    assert type(model[0]) is Bottleneck and "0.conv1 + 0.bn1" in {row.name for row in injection.replaced}
    assert launches(model) == 0


class Odd(nn.Module):
    """A convolution, a norm and a ReLU; `how` does something between them."""

    def __init__(self, how):
        super().__init__()
        self.conv, self.bn, self.relu = nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        self.how, self.kept = how, None

    def forward(self, x):
        if self.how == "used twice":
            y = self.bn(self.conv(x))
            return self.relu(y) + y
        if self.how == "input written":
            y = self.bn(self.conv(x))
            z = x.relu_()
            return self.relu(y + z)
        if self.how == "scalar":
            return self.relu(self.bn(self.conv(x)) + 1)
        if self.how == "broadcast":
            return torch.relu(self.bn(self.conv(x[:, :, :1])) + x)
        if self.how == "written to the other":
            return self.relu(x.add_(self.bn(self.conv(x))))
        return self.relu(self.bn(self.conv(x)))


class Remembers(Odd):
    def forward(self, x):
        self.kept = self.conv(x)
        return self.relu(self.bn(self.kept))


class Decides(Odd):
    def forward(self, x):
        y = self.bn(self.conv(x))
        return self.relu(y) if self.training else y


@pytest.mark.parametrize("how", ["used twice", "input written", "scalar", "broadcast", "written to the other", "plain"])
def test_what_a_model_computes_stays(how):
    torch.manual_seed(0)
    model = Odd(how).eval()
    nn.init.normal_(model.bn.running_mean)
    expected = model(IMAGES.clone()).detach()
    injection = injected(model, IMAGES.clone())
    with torch.no_grad():
        assert_close(model(IMAGES.clone()), expected)
    found = _chains.traced(Odd(how).eval())
    assert (found is not None) == (how in ("plain", "broadcast")) and injection.error is not None


def test_forwards_that_a_trace_does_not_show():
    assert _chains.traced(Remembers("")) is None and _chains.traced(Decides("").eval()) is None
    own = Odd("plain")
    own.forward = lambda x: x
    assert _chains.traced(own) is None


def test_compiled(model):
    expected = model(IMAGES).detach()
    injected(model)
    with torch.no_grad():
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        assert_close(compiled(IMAGES), expected)
