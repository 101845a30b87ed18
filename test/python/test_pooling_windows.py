"""Compares pooling windows that have specialised kernels with PyTorch in float64.

Covers strides, paddings and layouts of all kinds.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

TOLERANCES = {torch.float32: 1e-5, torch.bfloat16: 2e-2}
# Window, stride, padding and dilation of rows and columns. The first windows and strides have unrolled loops.
WINDOWS = [
    ([2, 2], [2, 2], [0, 0], [1, 1]),
    ([3, 3], [2, 2], [1, 1], [1, 1]),
    ([3, 3], [1, 1], [1, 1], [1, 1]),
    ([2, 2], [1, 2], [1, 0], [1, 1]),
    ([5, 4], [2, 2], [2, 1], [1, 1]),
    ([1, 3], [1, 2], [0, 1], [1, 1]),
    ([3, 2], [2, 1], [1, 1], [1, 1]),
    ([3, 3], [3, 3], [0, 1], [1, 1]),
    ([3, 3], [2, 2], [1, 1], [2, 2]),
]


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("last", [False, True], ids=["planes", "channels_last"])
@pytest.mark.parametrize("shape", [(2, 16, 36, 70), (1, 17, 19, 131), (2, 3, 7, 8)])
def test_windows(libraries, dtype, last, shape):
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(shape, generator=generator).to(dtype)
    x[0, 0] = -torch.inf
    x[-1, -1, 2, 3] = torch.nan
    finite = torch.randn(shape, generator=generator).to(dtype)
    if last:
        x, finite = (t.contiguous(memory_format=torch.channels_last) for t in (x, finite))
    ops = libraries["pooling"]
    for k, s, p, d in WINDOWS:
        for ceil in (False, True):
            expected = F.max_pool2d(x, k, s, p, d, ceil)
            torch.testing.assert_close(ops.max_pool2d(x, k, s, p, d, ceil), expected, rtol=0, atol=0, equal_nan=True)
            if d == [1, 1]:
                expected = F.avg_pool2d(finite.double(), k, s, p, ceil, False)
                tolerance = TOLERANCES[dtype]
                torch.testing.assert_close(
                    ops.avg_pool2d(finite, k, s, p, ceil, False).double(), expected, rtol=tolerance, atol=tolerance
                )


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_one_dimension(libraries, stride):
    x = torch.randn(3, 5, 77, generator=torch.Generator().manual_seed(5))
    ops = libraries["pooling"]
    torch.testing.assert_close(ops.max_pool1d(x, [3], [stride], [1]), F.max_pool1d(x, 3, stride, 1), rtol=0, atol=0)
    torch.testing.assert_close(ops.avg_pool1d(x, [4], [stride], [2]), F.avg_pool1d(x, 4, stride, 2))
