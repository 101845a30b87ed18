"""Defines the activations of `kpkg.nn`: drop-in layers for those of `torch.nn`.

They return new tensors. With ``inplace=True``, PyTorch runs and writes to its input.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from kpkg.nn._layer import Layer


class Activation(Layer):
    """Applies an elementwise op. Input: any shape; output: the same shape and dtype."""

    #: Attributes of the layer that are arguments of the op after the input.
    options: tuple[str, ...] = ()

    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        return (input, *(getattr(self, name) for name in self.options))

    def _stands_back(self) -> bool:
        return bool(getattr(self, "inplace", False))


class ReLU(Activation, nn.ReLU):
    """Computes max(x, 0); elementwise, any shape, a float dtype."""

    kpkg_ops, torch_layer = ("kpkg::relu",), nn.ReLU


class LeakyReLU(Activation, nn.LeakyReLU):
    """Computes x where positive, else negative_slope * x; elementwise, any shape, a float dtype."""

    kpkg_ops, torch_layer, options = ("kpkg::leaky_relu",), nn.LeakyReLU, ("negative_slope",)


class GELU(Activation, nn.GELU):
    """Computes x times the share of the normal distribution below x; elementwise, any shape, a float dtype.

    ``approximate="tanh"`` uses the approximation by tanh.
    """

    kpkg_ops, torch_layer, options = ("kpkg::gelu",), nn.GELU, ("approximate",)


class SiLU(Activation, nn.SiLU):
    """Computes x * sigmoid(x); elementwise, any shape, a float dtype."""

    kpkg_ops, torch_layer = ("kpkg::silu",), nn.SiLU


class Sigmoid(Activation, nn.Sigmoid):
    """Computes 1 / (1 + exp(-x)); elementwise, any shape, a float dtype."""

    kpkg_ops, torch_layer = ("kpkg::sigmoid",), nn.Sigmoid


class Tanh(Activation, nn.Tanh):
    """Computes the hyperbolic tangent; elementwise, any shape, a float dtype."""

    kpkg_ops, torch_layer = ("kpkg::tanh",), nn.Tanh


class ELU(Activation, nn.ELU):
    """Computes x where positive, else alpha * (exp(x) - 1); elementwise, any shape, a float dtype."""

    kpkg_ops, torch_layer, options = ("kpkg::elu",), nn.ELU, ("alpha",)


class SELU(Activation, nn.SELU):
    """Computes the scaled ELU of self-normalising networks; elementwise, any shape, a float dtype."""

    kpkg_ops, torch_layer = ("kpkg::selu",), nn.SELU


class Softplus(Activation, nn.Softplus):
    """Computes log(1 + exp(beta * x)) / beta, and x where beta * x exceeds threshold.

    Elementwise, any shape, a float dtype.
    """

    kpkg_ops, torch_layer, options = ("kpkg::softplus",), nn.Softplus, ("beta", "threshold")


class Hardtanh(Activation, nn.Hardtanh):
    """Clamps x to [min_val, max_val]; elementwise, any shape, a float dtype."""

    kpkg_ops, torch_layer, options = ("kpkg::hardtanh",), nn.Hardtanh, ("min_val", "max_val")


class ReLU6(Activation, nn.ReLU6):
    """Clamps x to [0, 6]; elementwise, any shape, a float dtype."""

    kpkg_ops, torch_layer, options = ("kpkg::hardtanh",), nn.ReLU6, ("min_val", "max_val")


class Hardsigmoid(Activation, nn.Hardsigmoid):
    """Computes clamp(x / 6 + 0.5, 0, 1); elementwise, any shape, a float dtype."""

    kpkg_ops, torch_layer = ("kpkg::hardsigmoid",), nn.Hardsigmoid


class Hardswish(Activation, nn.Hardswish):
    """Computes x * hardsigmoid(x); elementwise, any shape, a float dtype."""

    kpkg_ops, torch_layer = ("kpkg::hardswish",), nn.Hardswish


class Softsign(Activation, nn.Softsign):
    """Computes x / (1 + |x|); elementwise, any shape, a float dtype."""

    kpkg_ops, torch_layer = ("kpkg::softsign",), nn.Softsign


class Mish(Activation, nn.Mish):
    """Computes x * tanh(softplus(x)); elementwise, any shape, a float dtype."""

    kpkg_ops, torch_layer = ("kpkg::mish",), nn.Mish
