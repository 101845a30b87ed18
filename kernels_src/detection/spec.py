"""Spec of non-maximum suppression.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from opspec import OpSpec, Sample
from torch import Tensor


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float, classes: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Keeps the best remaining box until none is left, as torchvision.ops.nms does."""
    left, top, right, bottom = boxes.double().unbind(1)
    area = (right - left) * (bottom - top)
    kept = []
    rest = scores.argsort(descending=True, stable=True)
    while len(rest):
        box, rest = rest[0], rest[1:]
        kept.append(int(box))
        width = (right[rest].minimum(right[box]) - left[rest].maximum(left[box])).clamp(min=0)
        height = (bottom[rest].minimum(bottom[box]) - top[rest].maximum(top[box])).clamp(min=0)
        overlap = width * height / (area[rest] + area[box] - width * height)
        drops = overlap > iou_threshold
        if classes is not None:
            drops = drops & (classes[rest] == classes[box])
        rest = rest[~drops]
    indices = torch.full((len(boxes),), -1, dtype=torch.int64, device=boxes.device)
    indices[: len(kept)] = torch.tensor(kept, dtype=torch.int64, device=boxes.device)
    return indices, torch.tensor([len(kept)], device=boxes.device)


def drawn(count: int, dtype: torch.dtype, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Returns boxes with integer sides, which all dtypes represent, and scores of which some are equal."""
    corner = torch.randint(0, 60, (count, 2), generator=generator, device=generator.device)
    size = torch.randint(1, 40, (count, 2), generator=generator, device=generator.device)
    scores = torch.randint(0, 200, (count,), generator=generator, device=generator.device)
    return torch.cat([corner, corner + size], 1).to(dtype), (scores / 256).to(dtype)


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for count in (1, 0, 2, 31, 33, 130, 500, 2100):
        boxes, scores = drawn(count, dtype, generator)
        classes = torch.randint(0, 3, (count,), generator=generator, device=generator.device)
        # thresholds that no overlap of such boxes equals
        yield Sample((boxes, scores, 0.30001), label=f"{count} boxes")
        yield Sample((boxes, scores, 0.50001, classes), label=f"{count} boxes of 3 classes")
    boxes, scores = drawn(90, dtype, generator)
    yield Sample((boxes, scores, -1.0), label="one box is kept")
    yield Sample((boxes, scores, 1.0), label="all boxes are kept")
    yield Sample((boxes.t().contiguous().t(), scores[:1].expand(90), 0.30001), label="transposed, equal scores")
    yield Sample((boxes[:, :1].expand(90, 4), scores, 0.30001), label="boxes without area")


SPECS = [
    OpSpec(
        "kpkg::nms",
        nms,
        samples,
        benchmarks=lambda generator: {"1000 boxes": Sample((*drawn(1000, torch.float32, generator), 0.50001))},
        eager=nms,
    ),
]
