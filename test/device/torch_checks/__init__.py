"""The checks of torch_ways.py, listed by each module as `CHECKS`.

A check is a function that raises if its property does not hold.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
from typing import Any

import torch

OPTIONS = argparse.Namespace()  # the command line's, filled by torch_ways.py
FIGURES: dict[str, Any] = {}  # results of other scripts, by their names


def randn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, device="cuda", dtype=dtype)
