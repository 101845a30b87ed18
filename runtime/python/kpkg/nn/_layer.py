"""Defines the base of every layer of `kpkg.nn`: a layer of `torch.nn` whose forward runs an op of kpkg.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import inspect
import re
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from kpkg import _default
from kpkg._errors import KernelError
from kpkg._messages import shown


class Layer(nn.Module):
    """Replaces a layer of `torch.nn`, with the same constructor, parameters and state_dict.

    Results are the same within rounding. ``use_kpkg`` says whether the op or PyTorch's forward runs.

    A subclass is declared as ``class ELU(Layer, nn.ELU, op="elu", options="alpha")``. `op` has the names of ops, of
    which the layer uses the first one that a package has. `options` has the layer's attributes that are arguments of
    the op after the input.
    """

    #: Full names of ops.
    kpkg_ops: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[tuple[str, ...]] = ()
    #: The layer of torch.nn that this one replaces.
    torch_layer: ClassVar[type[nn.Module]] = nn.Module
    #: The dimensions of an image, for layers whose name ends in them.
    rank: ClassVar[int] = 0

    def __init_subclass__(cls, op: str = "", options: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if op:
            cls.kpkg_ops = tuple(f"kpkg::{name}" for name in op.split())
        if options is not None:
            cls.options = tuple(options.split())
        for replaced in cls.__bases__:
            if not issubclass(replaced, Layer) and issubclass(replaced, nn.Module):
                cls.torch_layer = replaced
                cls.__signature__ = inspect.signature(replaced)  # for help() and editors
        if dimensions := re.search(r"(\d)d$", cls.torch_layer.__name__):
            cls.rank = int(dimensions[1])

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._prepare()

    def _prepare(self) -> None:
        """Finds the op, also for a layer that is made from another one."""
        candidates = [_default.ops[name] for name in self.kpkg_ops]
        self._kpkg_op = next((op for op in candidates if op.is_available), candidates[0])
        self._kpkg_wanted = True
        self._kpkg_when_compiled = True  # whether kpkg runs in compiled code, too
        self._kpkg_cases: dict[tuple[str, str, torch.dtype], bool] = {}

    def _current_op(self) -> _default.DefaultOp:
        return self._kpkg_op

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._prepare()

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if not k.startswith("_kpkg")}

    def __deepcopy__(self, memo: dict[int, Any]) -> Layer:
        import copy

        made = self.__class__.__new__(self.__class__)
        memo[id(self)] = made
        made.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        made._kpkg_wanted, made._kpkg_when_compiled = self._kpkg_wanted, self._kpkg_when_compiled
        return made

    @classmethod
    def from_torch(cls, layer: nn.Module) -> Layer:
        """Returns this layer in place of `layer`, with the same parameters, buffers, hooks and mode.

        Args:
            layer: A layer of exactly the type `torch_layer`: a subclass may compute something else.

        Raises:
            TypeError: `layer` has another type.
        """
        if type(layer) is not cls.torch_layer:
            raise TypeError(f"{cls.__name__} stands for {cls.torch_layer.__name__}, not for {type(layer).__name__}")
        made = cls.__new__(cls)
        # Both share the dictionaries of parameters and hooks, so that changes reach both.
        made.__dict__.update(layer.__dict__)
        made._prepare()
        return made

    @property
    def use_kpkg(self) -> bool:
        """Returns whether forward runs kpkg's op.

        A package must have it, with a kernel for this layer's dtype and device. The op must compute the layer's mode,
        and must not be switched off. False switches to PyTorch's own forward, and True switches back.
        """
        if not self._kpkg_wanted or self._stands_back() or not self._kpkg_op.is_available:
            return False
        reference = next(self.parameters(), None)
        device = reference.device if reference is not None else torch.device("cpu")
        dtype = reference.dtype if reference is not None else torch.get_default_dtype()
        return self.supports(device, dtype)

    @use_kpkg.setter
    def use_kpkg(self, wanted: bool) -> None:
        self._kpkg_wanted = bool(wanted)

    def supports(self, device: torch.device | str, dtype: torch.dtype) -> bool:
        """Returns whether a package has a kernel for inputs of this device and dtype, in the layer's current mode.

        Args:
            device: The device of inputs.
            dtype: The dtype of inputs.

        Raises:
            RuntimeError: PyTorch does not know the device.
        """
        op = self._current_op()
        key = (op.name, str(torch.device(device)), dtype)
        if key not in self._kpkg_cases:
            self._kpkg_cases[key] = op.is_available and op.supports(*self._example(torch.device(device), dtype))
        return self._kpkg_cases[key]

    def _example(self, device: torch.device, dtype: torch.dtype) -> tuple[Any, ...]:
        """Returns the arguments of a small call, as descriptions without memory."""
        return tuple(
            _Described(value.shape, dtype if value.is_floating_point() else value.dtype, device)
            if isinstance(value, Tensor)
            else value
            for value in self._arguments(*self._example_inputs())
        )

    def _example_inputs(self) -> tuple[Tensor, ...]:
        """Returns small inputs of any dtype, on "meta"."""
        return (torch.empty(2, 8, device="meta"),)

    def _arguments(self, input: Tensor, *more: Any) -> tuple[Any, ...]:
        """Returns the op's arguments for a forward of these inputs."""
        return (input, *more, *(getattr(self, name) for name in self.options))

    def _stands_back(self) -> bool:
        """Returns whether PyTorch has to run, since no op of kpkg computes this mode of the layer."""
        return False

    def _why_it_stands_back(self) -> str:
        return "PyTorch runs in this mode of the layer"

    def forward(self, input: Tensor, *more: Any) -> Any:
        """Runs kpkg's op on the inputs, or PyTorch's forward where ``use_kpkg`` was set to False or kpkg has no op."""
        stands_back = not self._kpkg_wanted or self._stands_back()
        if stands_back or not self._kpkg_when_compiled and torch.compiler.is_compiling():
            return super().forward(input, *more)
        if self._kpkg_op._op is None and not self._kpkg_op.is_available:
            self._kpkg_op.note_fallback()
            return super().forward(input, *more)
        try:
            return self._run(input, *more)
        except RuntimeError as error:
            raise self._named(error, input) from None

    def _named(self, error: RuntimeError, input: Tensor) -> RuntimeError:
        """Adds the layer and the input's shape to the message of an error of a call with `input`.

        Only errors of ops and of the layer itself change.
        """
        if type(error) is RuntimeError or isinstance(error, KernelError):
            name = f"{type(self).__name__}({super().extra_repr()})"
            error.args = (f"{name} with {shown(input)}: {error}",)
        return error

    def _run(self, *inputs: Any) -> Any:
        return self._call(*self._arguments(*inputs))

    def _call(self, *arguments: Any) -> Any:
        op = self._kpkg_op._op
        if op is None or op._default is None or not op._is_recorded:
            return self._kpkg_op(*arguments)
        try:  # as `Op` does with PyTorch tensors, without a check of each argument
            return op._default(*arguments)
        except RuntimeError as error:
            return op._recover(error, arguments, {})

    def extra_repr(self) -> str:
        """Returns the text of torch.nn, and whether kpkg runs."""
        return ", ".join(part for part in (super().extra_repr(), f"use_kpkg={self.use_kpkg}") if part)


class _Described:
    """Describes a tensor by shape, dtype and device, for ``Op.supports``."""

    def __init__(self, shape: torch.Size, dtype: torch.dtype, device: torch.device) -> None:
        self.shape, self.dtype, self.device = shape, dtype, device
        self._strides = torch.empty(shape, device="meta").stride()

    def stride(self) -> tuple[int, ...]:
        """Returns dense strides."""
        return self._strides
