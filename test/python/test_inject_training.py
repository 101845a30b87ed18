"""Tests replacing layers of models in training: timed, never slower, and without slow steps.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import kpkg
import pytest
import torch
from conftest import BUILD, torch_threads
from kpkg import _measure
from kpkg._injection import Injection
from torch import nn
from torch.testing import assert_close

pytestmark = [pytest.mark.usefixtures("default_ops")]
X = torch.randn(4, 16, generator=torch.Generator().manual_seed(5))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 16)).train()


@pytest.fixture
def one_thread():
    """Uses one thread, because PyTorch's threads wait for each other long on busy machines."""
    with torch_threads(1):
        yield


@pytest.fixture
def slow_backwards(monkeypatch, one_thread):
    """Leaves the forwards of kpkg's linear layers as they are, and adds 5 ms to their backwards."""
    run = kpkg.nn.Linear._run

    def slow(self, input):
        result = run(self, input)
        if result.requires_grad:
            result.register_hook(lambda gradient: time.sleep(0.005))
        return result

    monkeypatch.setattr(kpkg.nn.Linear, "_run", slow)


def test_layers_with_slow_backwards_stay(model, slow_backwards):
    injection = kpkg.inject(model, sample_input=X, verbose=False)
    status = {row.name: row.status for row in injection.rows}
    assert [status[name] for name in ("0", "2", "4")] == ["kept: kpkg is slower"] * 3
    assert all(type(model[i]) is nn.Linear for i in (0, 2, 4)) and injection.kpkg_us <= injection.original_us


def test_models_that_train_slower_keep_their_layers(model, slow_backwards, monkeypatch):
    """Each layer alone is reported as faster, but the model is slower."""

    def is_fast(self, row, key, original, replacement):
        row.original_us, row.kpkg_us = 2.0, 1.0
        return True

    monkeypatch.setattr(Injection, "_is_fast", is_fast)
    injection = kpkg.inject(model, sample_input=X, verbose=False)
    status = {row.layer: row.status for row in injection.rows}
    assert status["Linear"].startswith("kept: the model as a whole is slower with")
    assert all(type(model[i]) is nn.Linear for i in (0, 2, 4)) and injection.kpkg_us <= injection.original_us


def test_equal_layers_are_timed_once(model, monkeypatch):
    keys = []

    def interleaved(first, second, switch=None, **_):
        keys.append(switch is not None)
        return 2.0, 1.0

    monkeypatch.setattr(_measure, "interleaved", interleaved)
    injection = kpkg.inject(model, sample_input=X, verbose=False)
    assert len(injection.replaced) == 5 and keys.count(False) == 3 and keys.count(True) == 1
    gradients = torch.autograd.grad(model(X).square().sum(), list(model.parameters()))
    injection.restore()
    assert_close(gradients, torch.autograd.grad(model(X).square().sum(), list(model.parameters())))


def test_choosing_imports_no_compiler():
    """Importing torch._dynamo takes longer than choosing layers."""
    code = """if True:
        import sys, torch, kpkg
        model = torch.nn.Sequential(torch.nn.Conv2d(4, 4, 1), torch.nn.BatchNorm2d(4), torch.nn.GELU()).train()
        kpkg.inject(model, sample_input=torch.randn(1, 4, 2, 2), verbose=False)
        print("torch._dynamo" in sys.modules)"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(BUILD / "python")},
    )
    assert run.stdout == "False\n", run.stderr
