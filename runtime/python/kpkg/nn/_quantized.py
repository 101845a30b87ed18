"""Defines the linear layer with quantized weights of `kpkg.nn`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from kpkg import _checkpoints, quantized
from kpkg._checkpoints import Numbers
from kpkg._default import ops
from kpkg._messages import shown

_FORMATS = ("int4", "int8", "fp8")
_ACTIVATIONS = {"int8": ("int8", torch.int8), "float8_e4m3fn": ("fp8", torch.float8_e4m3fn)}
_FP8_GROUP = 128


class QuantizedLinear(nn.Module):
    """Computes x @ weight.T + bias with a weight of 4 or 8 bits.

    Input: (..., in_features); output: (..., out_features) of the same dtype.

        layer = QuantizedLinear.from_linear(linear, bits=4, group=128)

    Buffers are ``weight``, ``scales`` and, where there are any, ``zeros``, ``order`` and ``bias``. The first is that
    of ``kpkg.quantized.PackedWeight``. With `activations`, each row of the input is quantized, too, and the weight is
    [out_features, in_features] with float32 scales. Then products are those of 8-bit tensor cores. Weights of 4 bits
    stay as they are, and rounded inputs are multiplied in their own dtype.

    Args:
        in_features: Size of inputs.
        out_features: Size of outputs.
        bias: Whether there is a bias.
        format: "int4", "int8" or "fp8" (float8_e4m3fn).
        group: Columns that share a scale, or None for all columns.
        zeros: Whether groups have zero points.
        ordered: Whether columns of the input are permuted.
        activations: "int8" or "float8_e4m3fn", which a weight of 8 bits has too, or None.
        device: Device of buffers.
        dtype: Dtype of inputs, float16 or bfloat16.

    Raises:
        ValueError: A format or `activations` does not exist, or they do not fit together.
    """

    weight: Tensor
    scales: Tensor
    zeros: Tensor | None
    order: Tensor | None
    bias: Tensor | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        format: str = "int4",
        group: int | None = 128,
        zeros: bool = False,
        ordered: bool = False,
        activations: str | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if format not in _FORMATS:
            raise ValueError(f"format is {format!r}, expected one of {', '.join(_FORMATS)}")
        n, k, values = out_features, in_features, dtype or torch.get_default_dtype()
        size = _checkpoints.group_size(k, group)
        number = torch.float8_e4m3fn if format == "fp8" else torch.int8
        numbers = torch.zeros(n, k, dtype=torch.int8, device=device).to(number)
        of_groups = torch.ones(-(-k // size), n, dtype=values, device=device)
        self._set(
            Numbers(format, numbers, of_groups, torch.zeros_like(of_groups) if zeros else None, size,
                    torch.arange(k, device=device) if ordered else None),
            torch.zeros(n, dtype=values, device=device) if bias else None, values, activations,
        )  # fmt: skip

    def _set(self, read: Numbers, bias: Tensor | None, dtype: torch.dtype | None, activations: str | None) -> None:
        self.out_features, self.in_features = read.numbers.shape
        self.format, self.group, self.activations = read.format, read.group, activations
        if activations not in (None, *_ACTIVATIONS):
            raise ValueError(f"activations is {activations!r}, expected one of {', '.join(_ACTIVATIONS)}")
        if activations is None or read.format == "int4":
            packed = quantized.pack_numbers(read, dtype)
            buffers = {"weight": packed.weight, "scales": packed.scales, "zeros": packed.zeros, "order": packed.order}
        else:
            buffers = self._for_activations(read)
        kind = dtype or read.scales.dtype
        buffers["bias"] = None if bias is None else bias.detach().to(kind)
        for name, value in buffers.items():
            self.register_buffer(name, value)

    def _for_activations(self, read: Numbers) -> dict[str, Tensor | None]:
        """Returns the buffers of a weight for inputs of 8 bits."""
        assert self.activations is not None, "the caller has checked it"
        if read.format != _ACTIVATIONS[self.activations][0]:
            raise ValueError(f"activations in {self.activations} do not fit a weight in {read.format}")
        if read.zeros is not None:
            raise ValueError(f"activations in {self.activations} take a weight without zero points")
        scales = read.scales.float()
        if read.group < self.in_features:
            if read.format != "fp8" or read.group != _FP8_GROUP:
                expected = "one scale for each row of the weight"
                raise ValueError(f"groups have {read.group} columns: activations in {self.activations} take {expected}")
            scales = scales[:, ::_FP8_GROUP]  # those of blocks, which _checkpoints repeats for each row
        return {"weight": read.numbers, "scales": scales.contiguous(), "zeros": None, "order": read.order}

    @classmethod
    def _of(
        cls, read: Numbers, bias: Tensor | None, dtype: torch.dtype | None, activations: str | None
    ) -> QuantizedLinear:
        made = cls.__new__(cls)
        nn.Module.__init__(made)
        made._set(read, bias, dtype, activations)
        return made

    @classmethod
    def from_linear(
        cls, linear: nn.Linear, bits: int = 4, group: int | None = 128, activations: str | None = None
    ) -> QuantizedLinear:
        """Returns a layer whose weight is that of `linear`, rounded to the nearest number.

        Args:
            linear: A layer with a weight of floats.
            bits: 4 or 8.
            group: Columns that share a scale, or None for all columns.
            activations: "int8", with 8 bits and one group, or None.

        Raises:
            ValueError: Arguments do not fit together.
        """
        return cls._of(_checkpoints.rounded(linear.weight, bits, group), linear.bias, linear.weight.dtype, activations)

    @classmethod
    def from_checkpoint(
        cls,
        layout: str,
        tensors: Mapping[str, Tensor],
        *,
        bits: int = 4,
        bias: Tensor | None = None,
        dtype: torch.dtype | None = None,
        activations: str | None = None,
    ) -> QuantizedLinear:
        """Returns a layer with the weight of a checkpoint.

        Args:
            layout: The layout of the tensors, as in ``kpkg.quantized.pack``.
            tensors: The tensors by name.
            bits: 4 or 8, of layouts in words.
            bias: The bias. Default: `tensors["bias"]`, if there is one.
            dtype: Dtype of inputs. Default: that of the scales.
            activations: "int8" or "float8_e4m3fn", which a weight of 8 bits has too, or None.

        Raises:
            ValueError: The tensors do not fit the layout, or `activations` do not fit the weight.
        """
        given = tensors.get("bias") if bias is None else bias
        return cls._of(_checkpoints.read(layout, tensors, bits), given, dtype, activations)

    @classmethod
    def from_gptq(
        cls, tensors: Mapping[str, Tensor], *, bits: int = 4, dtype: torch.dtype | None = None
    ) -> QuantizedLinear:
        """Returns a layer with the tensors of a GPTQ checkpoint. See ``from_checkpoint``.

        Args:
            tensors: ``qweight``, ``qzeros``, ``scales``, and perhaps ``g_idx`` and ``bias``.
            bits: 4 or 8.
            dtype: Dtype of inputs. Default: that of the scales.

        Raises:
            ValueError: The tensors do not fit together.
        """
        return cls.from_checkpoint("gptq", tensors, bits=bits, dtype=dtype)

    @classmethod
    def from_awq(cls, tensors: Mapping[str, Tensor], *, dtype: torch.dtype | None = None) -> QuantizedLinear:
        """Returns a layer with the tensors of an AWQ checkpoint. See ``from_checkpoint``.

        Args:
            tensors: ``qweight``, ``qzeros``, ``scales``, and perhaps ``bias``.
            dtype: Dtype of inputs. Default: that of the scales.

        Raises:
            ValueError: The tensors do not fit together.
        """
        return cls.from_checkpoint("awq", tensors, dtype=dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Returns the product, in the dtype of the input."""
        if input.dim() == 0 or input.shape[-1] != self.in_features:
            raise RuntimeError(
                f"QuantizedLinear({self.extra_repr()}) with {shown(input)}: its last dimension must have "
                f"{self.in_features} elements, in_features"
            )
        if self.format == "int4" or self.activations is None:
            return self._packed_product(input)
        x = input.reshape(-1, self.in_features)
        if self.order is not None:
            x = x.index_select(1, self.order)
        quantize = ops.quantize_per_token if self.group >= self.in_features else ops.quantize_per_group
        numbers, scales = quantize(x, self.weight.dtype)
        y = ops.scaled_gemm(numbers, self.weight.t(), scales, self.scales, input.dtype, self.bias)
        return y.reshape(*input.shape[:-1], self.out_features)

    def _packed_product(self, input: Tensor) -> Tensor:
        """Returns the product with the packed weight, of the input or of what its numbers of 8 bits stand for."""
        if self.activations is not None:
            numbers, scales = ops.quantize_per_token(
                input.reshape(-1, self.in_features), _ACTIVATIONS[self.activations][1]
            )
            input = (numbers.float() * scales).to(input.dtype).reshape(input.shape)
        shape = (self.out_features, self.in_features)
        packed = quantized.PackedWeight(self.format, shape, self.weight, self.scales, self.zeros, self.order)
        return quantized.linear(input, packed, self.bias)

    def extra_repr(self) -> str:
        """Returns sizes and formats."""
        activations = "" if self.activations is None else f", activations={self.activations}"
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, "
            f"format={self.format}, group={self.group}{activations}"
        )
