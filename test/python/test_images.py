"""Checks sampling, resizing and rearranging of images: gradients, compiled calls, and messages.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import opspec
import pytest
import torch
from torch.testing import assert_close

SPECS = {spec.name: spec for spec in opspec.load_specs()}
NAMES = ["grid_sample", "interpolate", "roi_align", "pixel_shuffle", "pixel_unshuffle"]


def gradients(call, *given):
    results = call(*given)
    direction = torch.randn(results.shape, dtype=results.dtype, generator=torch.Generator().manual_seed(1))
    return torch.autograd.grad(results, given, direction)


def leaves(*shapes):
    return [torch.randn(shape, dtype=torch.float64).requires_grad_() for shape in shapes]


def test_gradients_of_roi_align(ops):
    (x,) = leaves((2, 3, 9, 7))
    boxes = torch.tensor([[0, 1.1, 0.7, 5.3, 6.1], [1, -0.7, 2.3, 3.9, 8.2]], dtype=torch.float64)
    with kpkg.fallback_policy("silent"):
        assert torch.autograd.gradcheck(lambda x: ops["kpkg::roi_align"](x, boxes, [2, 3], 0.9, 2, True), (x,))


def test_gradients_of_pixel_shuffle(ops):
    (x,) = leaves((2, 8, 3, 5))
    with kpkg.fallback_policy("silent"):
        found = gradients(lambda x: ops["kpkg::pixel_unshuffle"](ops["kpkg::pixel_shuffle"](x, 2), 2), x)
    direction = torch.randn(x.shape, dtype=x.dtype, generator=torch.Generator().manual_seed(1))
    assert torch.equal(found[0], direction)


def test_box_of_the_whole_image_is_its_mean(ops):
    x = torch.randn(1, 4, 6, 8)
    boxes = torch.tensor([[0.0, 0.0, 0.0, 8.0, 6.0]])
    assert_close(ops["kpkg::roi_align"](x, boxes, [1, 1], aligned=True)[0, :, 0, 0], x[0].mean((1, 2)))


@pytest.mark.parametrize("name", NAMES)
def test_compiled(name, ops):
    sample = next(SPECS[f"kpkg::{name}"].samples(torch.float32, torch.Generator().manual_seed(2)))
    op = ops[f"kpkg::{name}"]
    run = torch.compile(lambda: op(*sample.args), fullgraph=True, backend="aot_eager")
    assert torch.equal(run(), op(*sample.args))


X, GRID, BOXES = torch.ones(2, 4, 6, 6), torch.zeros(2, 3, 3, 2), torch.ones(3, 5)
MISTAKES = [
    ("grid_sample", (X[0], GRID), r"input has shape \[4, 6, 6\], expected \[images, channels, height, width\]"),
    ("grid_sample", (X, GRID[:1]), r"grid has shape \[1, 3, 3, 2\], expected \[2, rows, columns, 2\]"),
    ("grid_sample", (X, GRID, "cubic"), r"mode is cubic, expected bilinear, nearest or bicubic"),
    ("grid_sample", (X, GRID, "nearest", "wrap"), r"padding_mode is wrap, expected zeros, border or reflection"),
    ("interpolate", (X, [3]), r"size is \[3\], expected a height and a width"),
    ("interpolate", (X, [3, 0]), r"size is \[3, 0\], expected positive extents"),
    ("interpolate", (X, [3, 3], "area"), r"mode is area, expected nearest, nearest-exact, bilinear or bicubic"),
    ("interpolate", (X, [3, 3], "nearest", True), r"mode is nearest, which has neither align_corners nor antialias"),
    ("roi_align", (X, BOXES[:, 1:], [2, 2]), r"boxes has shape \[3, 4\], expected \[boxes, 5\]"),
    ("roi_align", (X, BOXES, [2]), r"output_size is \[2\], expected a height and a width"),
    ("pixel_shuffle", (X, 3), r"input has shape \[2, 4, 6, 6\], expected a multiple of 9 channels"),
    ("pixel_shuffle", (X[0, 0], 2), r"input has shape \[6, 6\], expected \[..., channels, height, width\]"),
    ("pixel_unshuffle", (X, 4), r"a height and a width that are multiples of 4"),
    ("pixel_unshuffle", (X, 0), r"the factor is 0, expected 1 or more"),
]


@pytest.mark.parametrize("name, arguments, message", MISTAKES)
def test_mistakes_are_named(name, arguments, message, ops):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        ops[f"kpkg::{name}"](*arguments)
