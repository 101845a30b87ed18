"""Packs weights of 4 bits for kpkg::int4_linear, once.

    weight = kpkg.quantized.pack_int4(numbers)          # integers from -8 to 7, [n, k]
    y = kpkg.ops.int4_linear(x, weight, scales)         # scales [groups, n]

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import torch
from torch import Tensor

#: Columns of a row of the packed weight, and rows of a block of words.
_STEP, _BLOCK = 64, 16


def pack_int4(numbers: Tensor) -> Tensor:
    """Returns the weight of kpkg::int4_linear: int32 words, eight numbers in each.

    numbers: integers from -8 to 7, [n, k]. GPTQ and AWQ have numbers from 0 to 15 with zero points. Subtract 8 from
    both: here, and from `zeros` of the op.

    Raises ValueError for other numbers, and for a tensor that is no matrix of integers.
    """
    if numbers.dim() != 2 or numbers.is_floating_point() or numbers.is_complex() or numbers.dtype == torch.bool:
        raise ValueError(f"numbers is {numbers.dtype} {list(numbers.shape)}, expected integers [n, k]")
    if numbers.numel() and (int(numbers.min()) < -8 or int(numbers.max()) > 7):
        raise ValueError(f"numbers are from {int(numbers.min())} to {int(numbers.max())}, expected -8 to 7")
    n, k = numbers.shape
    padded = torch.nn.functional.pad(numbers.long(), (0, -k % _STEP, 0, -n % _BLOCK))
    # [blocks, 8 rows apart, row, steps, 16 columns apart, 8 columns apart, 2 columns apart, column]
    fields = padded.reshape(-1, 2, 8, padded.shape[1] // _STEP, 4, 2, 4, 2).permute(3, 0, 2, 6, 4, 7, 5, 1)
    words = ((fields.reshape(fields.shape[0], -1, 8) & 15) << (4 * torch.arange(8, device=numbers.device))).sum(2)
    return torch.where(words < 2**31, words, words - 2**32).int()
