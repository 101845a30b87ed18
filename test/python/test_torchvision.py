"""Checks that torchvision imports with this environment's PyTorch, and that models of transformers that need it do too.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

import torchvision_names  # noqa: E402

needs_torchvision = pytest.mark.skipif(
    importlib.util.find_spec("torchvision") is None, reason="torchvision is not installed"
)


def run(text):
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)


@needs_torchvision
def test_import():
    done = run(
        "import torch, torchvision; print(torchvision.models.resnet18(weights=None).eval()(torch.ones(1, 3, 32, "
        "32)).shape)"
    )
    assert done.returncode == 0, f"run `tools/dev setup` again: {done.stderr}"
    assert "[1, 1000]" in done.stdout


@needs_torchvision
def test_ops_run_or_say_why():
    done = run(
        "import torch, torchvision\n"
        "try:\n    print(torchvision.ops.nms(torch.tensor([[0.0, 0, 1, 1]]), torch.ones(1), 0.5))\n"
        "except RuntimeError as error:\n    print(error)\n"
    )
    assert "tensor([0])" in done.stdout or "Couldn't load custom C++ ops" in done.stdout, done.stderr


@needs_torchvision
@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
def test_models_of_transformers():
    done = run("from transformers import SamModel, WhisperModel, YolosForObjectDetection, YolosImageProcessor")
    assert done.returncode == 0, done.stderr


EXTENSION = """import torch

def _has_ops():
    return False
"""


def test_declarations(tmp_path):
    """Declarations are added once to a build that does not load; they suffice to import torchvision."""
    file = tmp_path / "extension.py"
    file.write_text(EXTENSION)
    assert torchvision_names.declare(file) and not torchvision_names.declare(file)
    assert file.read_text().startswith(EXTENSION.rstrip()) and file.read_text().count("_declared.define") == 2
    use = (
        "import torch, extension\n@torch.library.register_fake('torchvision::nms')\ndef fake(dets, scores, "
        "iou_threshold):\n    return dets\n"
    )
    done = subprocess.run([sys.executable, "-c", use], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    file.write_text(file.read_text().replace("return False", "return True"))
    done = subprocess.run([sys.executable, "-c", use], capture_output=True, text=True, cwd=tmp_path)
    assert "torchvision::nms does not exist" in done.stderr  # a build that loads is left alone
