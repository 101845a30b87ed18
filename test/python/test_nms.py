"""Checks that boxes which suppression keeps are in a fixed order, and the messages of `nms`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import pytest
import torch


def test_result_has_the_kept_boxes_and_their_number(ops):
    boxes = torch.tensor([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 10, 9]], dtype=torch.float32)
    scores = torch.tensor([0.5, 0.9, 0.7, 0.9])
    kept, count = ops["kpkg::nms"](boxes, scores, 0.5)
    assert (kept.tolist(), count.tolist()) == ([1, 2, -1, -1], [2])
    kept, count = ops["kpkg::nms"](boxes, scores, 0.5, torch.tensor([0, 0, 0, 1]))
    assert (kept.tolist(), count.tolist()) == ([1, 3, 2, -1], [3])


BOXES, SCORES = torch.ones(3, 4), torch.ones(3)
MISTAKES = [
    ((torch.ones(3, 5), SCORES, 0.5), r"boxes has shape \[3, 5\], expected \[boxes, 4\]"),
    ((BOXES, SCORES[:2], 0.5), r"scores has shape \[2\], expected \[3\]"),
    ((BOXES, SCORES.double(), 0.5), r"scores is float64, expected float32 as boxes"),
    ((BOXES[:1].expand(65537, 4), SCORES[:1].expand(65537), 0.5), r"boxes has 65537 boxes, expected at most 65536"),
    ((BOXES, SCORES, 0.5, torch.zeros(2, dtype=torch.int64)), r"classes has shape \[2\], expected \[3\]"),
    ((BOXES, SCORES, 0.5, torch.zeros(3, dtype=torch.int32)), r"classes is int32, expected int64"),
]


@pytest.mark.parametrize("arguments, message", MISTAKES)
def test_mistakes_are_named(arguments, message, ops):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        ops["kpkg::nms"](*arguments)
