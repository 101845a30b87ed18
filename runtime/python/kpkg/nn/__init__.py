"""Offers drop-in layers: the layers of `torch.nn` with kpkg's ops in their forward.

    from kpkg.nn import LayerNorm
    layer = LayerNorm(256)            # as torch.nn.LayerNorm(256), with the same state_dict
    print(layer.use_kpkg)             # whether kpkg's op runs

Each layer takes the constructor arguments, parameters and state_dict of its counterpart. ``use_kpkg`` says whether
kpkg's op runs, and can be set. Where no package has the op, PyTorch's forward runs, with one warning that says why
(``kpkg.set_fallback_policy``). ``kpkg.inject`` replaces layers of an existing model.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from torch import nn as _torch_nn

from kpkg.nn import utils
from kpkg.nn._activations import (
    ELU,
    GELU,
    SELU,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    Mish,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softplus,
    Softsign,
    Tanh,
)
from kpkg.nn._cells import GRUCell, LSTMCell, RNNCell
from kpkg.nn._convolutions import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from kpkg.nn._dropout import Dropout
from kpkg.nn._embedding import Embedding, EmbeddingBag
from kpkg.nn._images import PixelShuffle, PixelUnshuffle
from kpkg.nn._layer import Layer
from kpkg.nn._loss import CrossEntropyLoss, KLDivLoss
from kpkg.nn._moe import MoE
from kpkg.nn._norms import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    LogSoftmax,
    RMSNorm,
    Softmax,
)
from kpkg.nn._pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
)
from kpkg.nn._products import GEMM, Linear
from kpkg.nn._quantized import QuantizedLinear
from kpkg.nn._recurrent import GRU, LSTM, RNN

__all__ = [
    "ELU", "GELU", "GEMM", "GRU", "LSTM", "RNN", "SELU", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
    "AvgPool1d", "AvgPool2d", "AvgPool3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d",
    "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "CrossEntropyLoss", "Dropout", "Embedding", "EmbeddingBag",
    "GRUCell", "GroupNorm", "Hardsigmoid", "Hardswish", "Hardtanh", "InstanceNorm1d", "InstanceNorm2d",
    "InstanceNorm3d", "KLDivLoss", "LSTMCell", "Layer", "LayerNorm", "LeakyReLU", "Linear", "LogSoftmax", "MaxPool1d",
    "MaxPool2d", "MaxPool3d", "Mish", "MoE", "PixelShuffle", "PixelUnshuffle", "QuantizedLinear", "RMSNorm", "RNNCell",
    "ReLU", "ReLU6", "SiLU", "Sigmoid", "Softmax", "Softplus", "Softsign", "Tanh", "replacements", "utils",
]  # fmt: skip

if hasattr(_torch_nn, "LinearCrossEntropyLoss"):  # from PyTorch 2.13 on
    from kpkg.nn._linear_loss import LinearCrossEntropyLoss

    __all__ += ["LinearCrossEntropyLoss"]


def replacements() -> dict[type[_torch_nn.Module], type[Layer]]:
    """Returns the layers of torch.nn that ``kpkg.inject`` replaces, each with its replacement here."""
    layers = [
        value
        for name, value in globals().items()
        if isinstance(value, type) and issubclass(value, Layer) and name in __all__
    ]
    kept = (Layer, GEMM, Dropout)  # other masks than PyTorch's are another result
    return {layer.torch_layer: layer for layer in layers if layer not in kept}
