"""Trains a classifier of handwritten digits in PyTorch and runs it through kpkg ops.

Writes it out for the C++ program.

    python digits.py digits.kpkg OUTPUT_FOLDER

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import sys
from pathlib import Path

import kpkg
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn


def train(images: torch.Tensor, labels: torch.Tensor) -> nn.Sequential:
    torch.manual_seed(0)
    model = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(60):
        for batch in torch.randperm(len(images)).split(128):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimiser.step()
    return model


# [ops]
def classify(ops: kpkg.CustomOpLibrary, model: nn.Sequential, images: torch.Tensor) -> torch.Tensor:
    """Probabilities of the ten digits, by kpkg's ops alone."""
    norm, first, _, last = model
    x = ops.layer_norm(images, [64], norm.weight, norm.bias, norm.eps)
    x = ops.relu(ops.gemm(x, first.weight, transpose_b=True, c=first.bias))
    x = ops.gemm(x, last.weight, transpose_b=True, c=last.bias)
    return ops.softmax(x, -1)


# [ops]


def main(package: str, folder: str) -> None:
    data = load_digits()
    images = torch.tensor(data.data / 16, dtype=torch.float32)
    labels = torch.tensor(data.target)
    model = train(images[:1400], labels[:1400])
    images, labels = images[1400:], labels[1400:]

    ops = kpkg.load(package)
    with torch.no_grad():
        expected = model(images).softmax(-1)
        eager = classify(ops, model, images)
        compiled = torch.compile(lambda x: classify(ops, model, x), fullgraph=True)(images)
    torch.testing.assert_close(eager, expected)
    torch.testing.assert_close(compiled, expected)
    print(f"accuracy {float((eager.argmax(-1) == labels).float().mean()):.3f} on {len(labels)} digits it has not seen")

    # [export]
    # For C++: every parameter and the images as float32, one after the other, and the predictions to compare with.
    parts = [p.detach().numpy().ravel() for p in model.parameters()] + [images.numpy().ravel()]
    np.concatenate(parts).astype(np.float32).tofile(Path(folder) / "digits.bin")
    (Path(folder) / "predictions.txt").write_text(" ".join(map(str, eager.argmax(-1).tolist())))
    # [export]


if __name__ == "__main__":
    main(*sys.argv[1:])
