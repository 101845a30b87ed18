"""Folds batch norms into the convolutions in front of them, for models in evaluation mode.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from kpkg import nn as kpkg_nn

_CONVOLUTIONS: dict[type[nn.Module], type[kpkg_nn.Layer]] = {
    nn.Conv1d: kpkg_nn.Conv1d,
    nn.Conv2d: kpkg_nn.Conv2d,
    nn.Conv3d: kpkg_nn.Conv3d,
}
_NORMS = {nn.Conv1d: nn.BatchNorm1d, nn.Conv2d: nn.BatchNorm2d, nn.Conv3d: nn.BatchNorm3d}


def folds(convolution: nn.Module, norm: nn.Module) -> bool:
    """Returns whether one convolution can compute both, by their types and modes."""
    return (
        _NORMS.get(type(convolution)) is type(norm)
        and norm.num_features == convolution.out_channels
        and not norm.training
        and norm.running_mean is not None
    )


class Fold:
    """Computes a convolution and its batch norm by one call of an op.

    The parameters of both stay unchanged. The folded parameters are computed again when the originals have changed.
    """

    def __init__(self, convolution: kpkg_nn.Layer, norm: nn.Module) -> None:
        self._convolution, self._norm = convolution, norm
        self._made_of: tuple[Any, ...] = ()
        self._folded: tuple[Tensor, Tensor] | None = None

    def _sources(self) -> list[Tensor]:
        names = (self._convolution, ("weight", "bias")), (self._norm, ("weight", "bias", "running_mean", "running_var"))
        found = []
        for layer, each in names:
            own, buffers = layer._parameters, layer._buffers
            for name in each:  # nn.Module.__getattr__ would take longer than the rest; it has former parameters
                found.append(own[name] if name in own else buffers[name] if name in buffers else getattr(layer, name))
        return [tensor for tensor in found if tensor is not None]

    def holds(self) -> bool:
        """Returns whether the convolution computes the norm, too, now.

        It does not while either is trained, nor where PyTorch runs the convolution.
        """
        convolution, norm = self._convolution, self._norm
        if convolution.training or norm.training or not convolution._kpkg_wanted:
            return False
        if convolution._stands_back() or not convolution._kpkg_op.is_available:
            return False
        return not torch.is_grad_enabled() or not any(t.requires_grad for t in self._sources())

    def forget(self) -> None:
        """Discards the folded parameters: training changes running statistics without a change of their versions."""
        self._folded = None

    def parameters(self) -> tuple[Tensor, Tensor]:
        """Returns weight and bias of the convolution that computes both."""
        if torch.compiler.is_compiling():
            return self._fold()  # a part of the graph: its sources may change later
        sources = self._sources()
        made_of = tuple((t.data_ptr(), 0 if t.is_inference() else t._version, t.dtype) for t in sources)
        if self._folded is None or made_of != self._made_of:
            self._folded, self._made_of = self._fold(), made_of
        return self._folded

    def _fold(self) -> tuple[Tensor, Tensor]:
        convolution: Any = self._convolution
        norm: Any = self._norm
        weight, bias = convolution.weight, convolution.bias
        with torch.no_grad():
            exact = torch.promote_types(weight.dtype, torch.float32)
            scale = torch.rsqrt(norm.running_var.to(exact) + norm.eps)
            if norm.weight is not None:
                scale = scale * norm.weight.to(exact)
            shift = -norm.running_mean.to(exact)
            if bias is not None:
                shift = shift + bias.to(exact)
            shift = shift * scale
            if norm.bias is not None:
                shift = shift + norm.bias.to(exact)
            folded = weight.to(exact) * scale.reshape(-1, *[1] * (weight.dim() - 1))
            return folded.to(weight.dtype), shift.to(weight.dtype)


class _Folding:
    """Adds a folded norm to a convolution layer of kpkg.nn, before which it stands among the bases of a class."""

    _kpkg_fold: Fold | None = None

    def _arguments(self, input: Tensor, *more: Any) -> tuple[Any, ...]:
        if self._kpkg_fold is not None and self._kpkg_fold.holds():
            return (input, *self._kpkg_fold.parameters(), *self._settings(input))  # type: ignore[attr-defined]
        return super()._arguments(input)  # type: ignore[misc]  # the next base, a layer, has the method

    def train(self, mode: bool = True) -> Any:
        """Sets the mode as every layer does, and discards the folded parameters."""
        if self._kpkg_fold is not None:
            self._kpkg_fold.forget()
        return super().train(mode)  # type: ignore[misc]


class _Folded:
    """Makes a batch norm of torch.nn do nothing where its convolution has computed it.

    It stands before the norm among the bases of a class.
    """

    _kpkg_fold: Fold | None = None

    def forward(self, input: Tensor) -> Tensor:
        """Returns `input`, normalized."""
        if self._kpkg_fold is not None and self._kpkg_fold.holds():
            return input
        return cast(Tensor, super().forward(input))  # type: ignore[misc]

    def __getstate__(self) -> dict[str, Any]:
        # Copies of the two layers are independent: each computes its own part.
        return {k: v for k, v in self.__dict__.items() if not k.startswith("_kpkg")}


_FOLDING: dict[type[nn.Module], Any] = {
    kind: type(f"Folding{kind.__name__}", (_Folding, layer), {"torch_layer": kind, "__module__": __name__})
    for kind, layer in _CONVOLUTIONS.items()
}
_FOLDED: dict[type[nn.Module], Any] = {
    kind: type(f"Folded{kind.__name__}", (_Folded, kind), {"__module__": __name__}) for kind in _NORMS.values()
}
# Pickle looks for the classes in the module.
globals().update({made.__name__: made for made in (*_FOLDING.values(), *_FOLDED.values())})


def folded(convolution: nn.Module, norm: nn.Module) -> tuple[kpkg_nn.Layer, nn.Module]:
    """Returns replacements of both layers, which share their parameters, buffers, hooks and modes."""
    first = _FOLDING[type(convolution)].from_torch(convolution)
    second = _FOLDED[type(norm)].__new__(_FOLDED[type(norm)])
    second.__dict__.update(norm.__dict__)
    first._kpkg_fold = second._kpkg_fold = Fold(first, second)
    return cast(kpkg_nn.Layer, first), cast(nn.Module, second)
