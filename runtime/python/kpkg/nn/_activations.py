"""Defines the activations of `kpkg.nn`: drop-in layers for those of `torch.nn`.

Each takes any shape of a float dtype and computes every element by itself. They return new tensors. With
``inplace=True``, PyTorch runs and writes to its input.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from torch import nn

from kpkg.nn._layer import Layer


class Activation(Layer):
    """Applies an elementwise op. Input: any shape; output: the same shape and dtype."""

    def _stands_back(self) -> bool:
        return bool(getattr(self, "inplace", False))


class ReLU(Activation, nn.ReLU, op="relu"):
    """Computes max(x, 0); elementwise."""


class LeakyReLU(Activation, nn.LeakyReLU, op="leaky_relu", options="negative_slope"):
    """Computes x where positive, else negative_slope * x; elementwise."""


class GELU(Activation, nn.GELU, op="gelu", options="approximate"):
    """Computes x times the share of the normal distribution below x, or its approximation by tanh; elementwise."""


class SiLU(Activation, nn.SiLU, op="silu"):
    """Computes x * sigmoid(x); elementwise."""


class Sigmoid(Activation, nn.Sigmoid, op="sigmoid"):
    """Computes 1 / (1 + exp(-x)); elementwise."""


class Tanh(Activation, nn.Tanh, op="tanh"):
    """Computes the hyperbolic tangent; elementwise."""


class ELU(Activation, nn.ELU, op="elu", options="alpha"):
    """Computes x where positive, else alpha * (exp(x) - 1); elementwise."""


class SELU(Activation, nn.SELU, op="selu"):
    """Computes the scaled ELU of self-normalising networks; elementwise."""


class Softplus(Activation, nn.Softplus, op="softplus", options="beta threshold"):
    """Computes log(1 + exp(beta * x)) / beta, and x where beta * x exceeds threshold; elementwise."""


class Hardtanh(Activation, nn.Hardtanh, op="hardtanh", options="min_val max_val"):
    """Clamps x to [min_val, max_val]; elementwise."""


class ReLU6(Activation, nn.ReLU6, op="hardtanh", options="min_val max_val"):
    """Clamps x to [0, 6]; elementwise."""


class Hardsigmoid(Activation, nn.Hardsigmoid, op="hardsigmoid"):
    """Computes clamp(x / 6 + 0.5, 0, 1); elementwise."""


class Hardswish(Activation, nn.Hardswish, op="hardswish"):
    """Computes x * hardsigmoid(x); elementwise."""


class Softsign(Activation, nn.Softsign, op="softsign"):
    """Computes x / (1 + |x|); elementwise."""


class Mish(Activation, nn.Mish, op="mish"):
    """Computes x * tanh(softplus(x)); elementwise."""
