"""PyTorch implementations of the cells of recurrent networks.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _rows(x: Tensor) -> Tensor:
    return x.unsqueeze(0) if x.dim() == 1 else x


def _biases(w: Tensor, b_ih: Tensor | None, b_hh: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """Both or none, as PyTorch's cells take them."""
    if (b_ih is None) == (b_hh is None):
        return b_ih, b_hh
    none = w.new_zeros(w.shape[0])
    return (none if b_ih is None else b_ih), (none if b_hh is None else b_hh)


def _cell(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def cell(
        input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
    ) -> Tensor:
        return function(_rows(input), _rows(hx), w_ih, w_hh, *_biases(w_ih, b_ih, b_hh)).reshape(hx.shape)

    return cell


def lstm_cell(
    input: Tensor,
    hx: Tensor,
    cx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    states = [_rows(hx), _rows(cx)]
    h, c = torch.lstm_cell(_rows(input), states, w_ih, w_hh, *_biases(w_ih, b_ih, b_hh))
    return h.reshape(hx.shape), c.reshape(cx.shape)


FALLBACKS: dict[str, Callable[..., Any]] = {
    "kpkg::rnn_tanh_cell": _cell(torch.rnn_tanh_cell),
    "kpkg::rnn_relu_cell": _cell(torch.rnn_relu_cell),
    "kpkg::gru_cell": _cell(torch.gru_cell),
    "kpkg::lstm_cell": lstm_cell,
}
