"""Tests global average pooling fused into the preceding convolution: where inject finds it, and when it falls back.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import threading

import kpkg
import pytest
import torch
from conftest import op_calls
from kpkg import _fused
from torch import nn
from torch.testing import assert_close

pytestmark = [pytest.mark.usefixtures("default_ops", "fast")]
IMAGES = torch.randn(3, 8, 6, 5, generator=torch.Generator().manual_seed(4))


class Shortcut(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.act = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()

    def forward(self, x):
        out = self.norm(self.conv(x))
        out += x
        return self.act(out)


class Network(nn.Module):
    """A network like torchvision's: features, pooling, classifier."""

    def __init__(self, *features):
        super().__init__()
        self.features = nn.Sequential(*features)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self._forward(x)

    def _forward(self, x):
        x = self.features(x)
        x = self.avgpool(x)
        x = torch.flatten(x, 1)
        return self.head(x)


def block(activation):
    return nn.Sequential(nn.Conv2d(8, 8, 1, bias=False), nn.BatchNorm2d(8), activation)


def made(*layers):
    torch.manual_seed(0)
    for layer in nn.Sequential(*layers).modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.running_mean)
            nn.init.uniform_(layer.running_var, 0.5, 2.0)
    return layers


def inject(model, **options):
    return kpkg.inject(model, sample_input=IMAGES, verbose=False, **options)


def pooled(injection):
    return [row for row in injection.rows if row.replacement == "Conv2d, its means"]


def means(model):
    """Returns how often kpkg's mean runs by itself."""
    return op_calls("mean", lambda: model(IMAGES))


MODELS = {
    "blocks": lambda: Network(*made(block(nn.ReLU()), block(nn.SiLU()))),
    "shortcut": lambda: Network(*made(block(nn.ReLU()), Shortcut())),
    "one sequence": lambda: nn.Sequential(
        *made(
            nn.Conv2d(8, 8, 3),
            nn.BatchNorm2d(8),
            nn.Hardswish(),
            nn.AdaptiveAvgPool2d((1, 1)),
            nn.Flatten(),
            nn.Linear(8, 3),
        )
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_found_and_right(name):
    model = MODELS[name]().eval()
    expected, state = model(IMAGES).detach(), model.state_dict()
    kind = type(model)
    injection = inject(model)
    (row,) = pooled(injection)
    assert row.is_replaced and row.error < 1e-6 and row.layer.endswith(" + AdaptiveAvgPool2d"), injection
    assert row.name.split(" + ")[-1] in ("avgpool", "3")
    with torch.no_grad():
        assert_close(model(IMAGES), expected)
        assert_close(model(IMAGES[:2]), expected[:2])
        assert means(model) == 0
        assert_close(copy.deepcopy(model)(IMAGES), expected)
    assert model.state_dict().keys() == state.keys()
    injection.restore()
    assert type(model) is kind and torch.equal(model(IMAGES), expected)


def test_what_is_called_by_itself_gives_all_pixels():
    model = MODELS["blocks"]().eval()
    expected = model.features(IMAGES).detach()
    with torch.no_grad(), inject(model):
        model(IMAGES)
        assert_close(model.features(IMAGES), expected)


class Gate(nn.Module):
    """Blocks the thread named "asks" once, until another thread has passed."""

    def __init__(self):
        super().__init__()
        self.reached, self.passed = threading.Event(), threading.Event()

    def forward(self, x):
        if threading.current_thread().name == "asks":
            self.reached.set()
            assert self.passed.wait(30)
        return x


def test_what_other_threads_get_does_not_change():
    gate = Gate()
    model = Network(gate, *made(block(nn.ReLU()))).eval()
    expected, all_pixels = model(IMAGES).detach(), model.features(IMAGES).detach()
    found = []

    def ask():
        with torch.no_grad():
            found.append(model(IMAGES))

    with inject(model) as injection:
        assert pooled(injection)[0].is_replaced
        thread = threading.Thread(target=ask, name="asks")
        thread.start()
        assert gate.reached.wait(30)  # the other thread has requested means
        with torch.no_grad():
            features, result = model.features(IMAGES), model(IMAGES)
        gate.passed.set()
        thread.join()
    assert_close(features, all_pixels)
    assert_close(result, expected)
    assert_close(found, [expected])


def test_hooks_see_all_pixels():
    model = MODELS["blocks"]().eval()
    expected = model(IMAGES).detach()
    with inject(model) as injection:
        assert pooled(injection)[0].is_replaced
        for layer in (model.features, model.features[1], model.features[1][2], model.avgpool):
            seen = []
            handle = layer.register_forward_hook(lambda layer, args, output, seen=seen: seen.append(args[0].shape[-2:]))
            with torch.no_grad():
                assert_close(model(IMAGES), expected)
            handle.remove()
            assert seen == [IMAGES.shape[-2:]]
        assert means(model) == 0


def test_gradients_and_other_poolings_run_layer_by_layer():
    model = MODELS["blocks"]().eval()
    expected = model.features(IMAGES)
    with inject(model):
        found = model.features(IMAGES)
        assert found.requires_grad
        assert_close(found, expected)
        model.avgpool.output_size = (2, 1)
        with (
            torch.no_grad(),
            pytest.raises(RuntimeError, match="last dimension must have 8 elements"),
        ):  # the head has too few inputs for that, as without kpkg
            model(IMAGES)


@pytest.mark.parametrize("change", ["two users", "training", "excluded", "other size"])
def test_what_is_left_alone(change):
    class Both(Network):
        def _forward(self, x):
            x = self.features(x)
            return self.head(torch.flatten(self.avgpool(x), 1)) + torch.flatten(x, 1).relu()[:, :3]

    features = made(block(nn.ReLU()), block(nn.SiLU()))
    model = (Both if change == "two users" else Network)(*features).train(change == "training")
    if change == "other size":
        model.avgpool, model.head = nn.AdaptiveAvgPool2d((2, 1)), nn.Linear(16, 3)
    expected = model(IMAGES).detach()
    injection = inject(model, exclude="avgpool" if change == "excluded" else ())
    assert not pooled(injection)
    if change != "training":
        with torch.no_grad():
            assert_close(model(IMAGES), expected)


def test_ops_of_older_packages_stay_without(monkeypatch):
    monkeypatch.setattr(_fused.Launch, "has_pool", False)
    model = MODELS["blocks"]().eval()
    expected = model(IMAGES).detach()
    (row,) = pooled(inject(model))
    assert row.status == "kept: the package's op has no argument pool"
    with torch.no_grad():
        assert_close(model(IMAGES), expected)


def test_compiled_models_stay_without():
    model = torch.compile(MODELS["blocks"]().eval(), backend="eager")
    with torch.no_grad():
        expected = model(IMAGES)
        assert not pooled(inject(model))
        assert_close(model(IMAGES), expected)
    torch.compiler.reset()
    eager = MODELS["blocks"]().eval()
    with torch.no_grad():
        expected = eager(IMAGES)
        assert pooled(inject(eager))
        assert_close(torch.compile(eager, backend="eager", fullgraph=True)(IMAGES), expected)
    torch.compiler.reset()
