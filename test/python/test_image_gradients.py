"""Compares gradients of sampled and resized images with PyTorch's in float64, on CPUs and on the path of GPUs.

Averages in boxes are compared with torchvision's formulas, which the spec spells out.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import itertools

import kpkg
import opspec
import pytest
import torch
import torch.nn.functional as F
from conftest import BUILD, build_for_gpus

ALIGN = {spec.name: spec for spec in opspec.load_specs()}["kpkg::roi_align"]
DTYPES = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
PADDINGS = ("zeros", "border", "reflection")
MODES = ("bilinear", "nearest", "bicubic")


@pytest.fixture(scope="module", params=["cpu", "gpu"])
def images(request, packages):
    """The family as CPUs run it, and with the kernels of GPUs, whose atomics add in any order."""
    library = kpkg.load(build_for_gpus("images") if request.param == "gpu" else BUILD / "test-packages/images.kpkg")
    library.set_fallback_policy("strict")
    return library


def drawn(generator, *shape):
    return torch.randn(shape, dtype=torch.float64, generator=generator)


def forms(x):
    """Returns x in the memory formats of images, and with strides of a transposed one."""
    return x, x.to(memory_format=torch.channels_last), x.transpose(2, 3).contiguous().transpose(2, 3)


def check(call, expected, *given):
    """Compares the gradients of two calls, whose tensors have one dtype. `expected` runs in float64."""
    own = [x.detach().requires_grad_() for x in given]
    wide = [x.detach().double().requires_grad_() for x in given]
    results, exact = call(*own), expected(*wide)
    direction = torch.randn(exact.shape, generator=torch.Generator().manual_seed(1)).to(results.dtype)
    found = torch.autograd.grad(results, own, torch.empty_like(results).copy_(direction))
    for a, b in zip(found, torch.autograd.grad(exact, wide, direction.double())):
        torch.testing.assert_close(a.double(), b, rtol=0, atol=DTYPES[given[0].dtype] * max(1.0, float(b.abs().max())))
    return found


def points(shape, generator):
    """Returns places in and around images, all of which every dtype represents, and none of them at a border."""
    return (torch.randint(-24, 24, (*shape, 2), generator=generator) + 0.5) / 16


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", MODES)
def test_sampled(mode, dtype, images):
    generator = torch.Generator().manual_seed(3)
    for padding, corners in itertools.product(PADDINGS, (False, True) if mode != "nearest" else (False,)):
        for x in forms(drawn(generator, 2, 9, 8, 16).to(dtype)):
            grid = points((2, 17, 5), generator).to(dtype).transpose(1, 2)
            options = {"mode": mode, "padding_mode": padding, "align_corners": corners}
            check(
                lambda a, b: images.grid_sample(a, b, **options), lambda a, b: F.grid_sample(a, b, **options), x, grid
            )


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_sampled_on_borders(mode, corners, images):
    """At the centres of pixels, at borders and beyond them, derivatives from both sides differ."""
    x = drawn(torch.Generator().manual_seed(4), 1, 2, 5, 9)
    steps = torch.arange(-24, 25, dtype=torch.float64) / 8
    grid = torch.stack([steps, steps.flip(0) / 2], 1).reshape(1, 7, 7, 2)
    for padding, image in itertools.product(PADDINGS, (x, x[:, :, :1], x[:, :, :1, :1])):
        options = {"mode": mode, "padding_mode": padding, "align_corners": corners}
        check(
            lambda a, b: images.grid_sample(a, b, **options), lambda a, b: F.grid_sample(a, b, **options), image, grid
        )


def test_sampled_at_nan(images):
    """Without padding NaN is nowhere, and else at the first pixel, as in PyTorch."""
    x = torch.arange(1.0, 21.0).reshape(1, 1, 4, 5)
    places = [[torch.nan, 0.1], [0.1, torch.nan], [torch.inf, 0.0], [-1e30, 0.2], [0.3, -0.2]]
    grid = torch.tensor(places).reshape(1, 1, 5, 2)
    for mode in ("bilinear", "nearest"):
        pair = [[x.clone().requires_grad_(), grid.clone().requires_grad_()] for _ in range(2)]
        images.grid_sample(*pair[0], mode).sum().backward()
        F.grid_sample(*pair[1], mode, align_corners=False).sum().backward()
        torch.testing.assert_close(pair[0][0].grad, pair[1][0].grad)
        torch.testing.assert_close(pair[0][1].grad, pair[1][1].grad, equal_nan=True)
        for padding in ("border", "reflection"):
            expected = F.grid_sample(x, grid, mode, padding, align_corners=False)
            torch.testing.assert_close(images.grid_sample(x, grid, mode, padding), expected)
            given = [x.clone().requires_grad_(), grid.clone().requires_grad_()]  # PyTorch crashes here
            images.grid_sample(*given, mode, padding).sum().backward()
            assert float(given[0].grad.sum()) == pytest.approx(5.0)
            assert bool(given[1].grad.isfinite().all())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_resized(mode, dtype, images):
    generator = torch.Generator().manual_seed(5)
    smooth = mode in ("bilinear", "bicubic")
    choices = list(itertools.product((False, True), (False, True))) if smooth else [(False, False)]
    for (corners, antialias), size in itertools.product(choices, ([14, 20], [3, 4], [1, 2], [20, 5], [7, 33])):
        options = {"align_corners": corners, "antialias": antialias} if smooth else {}
        for x in forms(drawn(generator, 2, 3, 7, 10).to(dtype)):
            found = check(
                lambda a: images.interpolate(a, size, mode, **options),
                lambda a: F.interpolate(a, size, mode=mode, **options),
                x,
            )[0]
            channels_last = not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)
            assert found.is_contiguous(memory_format=torch.channels_last if channels_last else torch.contiguous_format)


def test_resized_by_large_factors(images):
    """Ranges of readers are right where rounding moves places by more than a result."""
    generator = torch.Generator().manual_seed(6)
    for shape, size in (((1, 1, 1, 3), [1, 5001]), ((1, 1, 1, 5001), [1, 3]), ((1, 1, 1, 1), [9, 600])):
        for mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
            x = drawn(generator, *shape)
            check(lambda a: images.interpolate(a, size, mode), lambda a: F.interpolate(a, size, mode=mode), x)
        ones = torch.ones(shape, requires_grad=True)
        images.interpolate(ones, size, "nearest").sum().backward()  # each result is read once
        assert float(ones.grad.sum()) == size[0] * size[1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_averaged_in_boxes(dtype, images):
    generator = torch.Generator().manual_seed(7)
    for aligned, ratio, scale in ((False, -1, 1.0), (True, 2, 1.0), (True, -1, 0.5)):
        for x in forms(drawn(generator, 2, 9, 9, 7).to(dtype)):
            corner = (torch.randint(-12, 60, (5, 2), generator=generator) * 2 + 1) / 16
            sides = (torch.randint(0, 40, (5, 2), generator=generator) * 2 + 1) / 16
            boxes = torch.cat([torch.tensor([[0.0], [1], [1], [0], [1]]), corner, corner + sides], 1)
            options = ([2, 3], scale, ratio, aligned)
            check(
                lambda a, b=boxes.to(dtype): images.roi_align(a, b, *options),
                lambda a, b=boxes.double(): ALIGN.reference(a, b, *options),
                x,
            )


def test_boxes_have_no_gradient(images):
    x = torch.randn(1, 2, 6, 6, requires_grad=True)
    boxes = torch.tensor([[0.0, 1.0, 1.0, 4.0, 4.0]], requires_grad=True)
    images.roi_align(x, boxes, [2, 2]).sum().backward()
    assert boxes.grad is None
    none = torch.autograd.grad(images.roi_align(x, boxes[:0], [2, 2]).sum(), x)[0]
    assert torch.equal(none, torch.zeros_like(x))


def test_order_of_sums(images, request):
    """Where results have to be equal from run to run, one thread adds what atomics add otherwise."""
    x = torch.randn(2, 3, 5, 6, requires_grad=True)
    grid = torch.rand(2, 9, 9, 2) * 2 - 1
    boxes = torch.tensor([[0.0, 1.0, 1.0, 4.0, 4.0]])
    on_gpu = request.node.callspec.params["images"] == "gpu"
    for deterministic in (False, True):
        torch.use_deterministic_algorithms(deterministic)
        try:
            with kpkg.profile_kernel() as profile:
                (images.grid_sample(x, grid).sum() + images.roi_align(x, boxes, [2, 2]).sum()).backward()
        finally:
            torch.use_deterministic_algorithms(False)
        launched = {launch["instance"].partition("[")[0] for launch in profile.records["launches"]}
        in_order = deterministic or not on_gpu
        assert ("add_samples_in_order" in launched, "add_samples" in launched) == (in_order, not in_order)
        assert ("add_boxes_in_order" in launched, "add_boxes" in launched) == (in_order, not in_order)
