"""Tests what inject loads before it captures models as CUDA graphs, without a GPU.

Uses stand-ins for PyTorch's graphs and for packages.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib

import kpkg
import pytest
import torch
from kpkg import _default, _measure
from kpkg._injection import Injection, Row
from torch import nn

pytestmark = [pytest.mark.usefixtures("default_ops")]


class Stream:
    def wait_stream(self, other):
        pass


class Graph:
    """A graph that is being captured while `is_capturing`."""

    is_capturing = False
    ends = 0

    def capture_begin(self):
        Graph.is_capturing = True

    def capture_end(self):
        Graph.is_capturing = False
        Graph.ends += 1

    def replay(self):
        pass


@pytest.fixture(autouse=True)
def cuda(monkeypatch):
    """Replaces PyTorch's graphs on a machine without a GPU."""
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    Graph.is_capturing, Graph.ends = False, 0


@pytest.fixture
def loaded(monkeypatch):
    """Returns the paths of the packages that were loaded onto the GPU."""
    found = []
    monkeypatch.setattr(kpkg.CustomOpLibrary, "prewarm", lambda self, device="cpu": found.append((self.path, device)))
    return found


class Parameter:
    """Reports a GPU as its device, like a parameter."""

    device = torch.device("cuda", 1)


@pytest.fixture
def injection(monkeypatch):
    made = Injection(nn.Linear(4, 4))
    made.graphs = made.on_gpu = True
    monkeypatch.setattr(made.model, "parameters", lambda recurse=True: iter([Parameter()]))
    return made


def capture_error(op):
    error = kpkg.CaptureError(f"{op}: an instance is not loaded yet, and cannot be while a graph is captured")
    error.op = op
    return error


def test_what_a_capture_misses_is_loaded(injection, loaded):
    """A forward needs another op only while it is captured."""

    def run():
        if Graph.is_capturing and not loaded:
            raise capture_error("kpkg::softmax")

    _measure.replay(run, 3, injection._load)
    assert loaded == [(kpkg.ops.softmax.op._library.path, "cuda:1")] and Graph.ends == 2 and not Graph.is_capturing


def test_what_stays_missing_is_an_error(injection, loaded):
    def run():
        if Graph.is_capturing:
            raise capture_error("kpkg::softmax")

    with pytest.raises(kpkg.CaptureError, match="kpkg::softmax: an instance"):
        _measure.replay(run, 1, injection._load)
    assert len(loaded) == 1 and Graph.ends == 2
    with pytest.raises(kpkg.CaptureError):
        _measure.replay(run, 1)


def test_an_error_without_an_op(injection, loaded):
    """An error that names no op makes all packages load."""

    def run():
        if Graph.is_capturing and not loaded:
            raise capture_error("")

    _measure.replay(run, 1, injection._load)
    assert {path for path, _ in loaded} == {library.path for library in _default._packages.libraries()}


def test_layers_and_models_are_loaded_before_they_are_captured(injection, loaded):
    row = Row("act", "GELU", "GELU", "replaced", _ops=("kpkg::gelu",))
    order = []

    def run():
        order.append(len(loaded))

    assert isinstance(injection._is_fast(row, "key", run, run), bool)
    assert order[0] == 1 and loaded[0][0] == kpkg.ops.gelu.op._library.path
    injection.rows = [row, Row("", "matmul()", "kpkg matmul", "replaced", _ops=("kpkg::gemm", "kpkg::gelu"))]
    order.clear()
    injection._iterations(run, run, seconds=0.01)
    assert order[0] == 2 and loaded[1][0] == kpkg.ops.gemm.op._library.path
    assert len(loaded) == 2  # each package once


def test_the_first_error_is_told(injection, monkeypatch):
    """The error of the invalidated capture must not hide the first error."""

    def capture_end(self):
        raise RuntimeError("the capture is invalid")

    monkeypatch.setattr(Graph, "capture_end", capture_end)

    def run():
        if Graph.is_capturing:
            raise ValueError("why")

    with pytest.raises(ValueError, match="why"):
        _measure.replay(run, 1)
