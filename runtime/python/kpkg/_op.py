"""Represents ops of packages as Python objects: calls, gradients, explanations and configuration.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import operator
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import kpkg._native as _native
from kpkg import _arrays, _promotion
from kpkg._config import KernelConfig, check_config
from kpkg._errors import KernelError, restored
from kpkg._messages import shown
from kpkg._signature import Signature

_NO_FALLBACK = "the fallback to PyTorch takes PyTorch tensors only"


def flattened(values: Iterable[Any], kinds: tuple[type, ...] = (list,)) -> Iterator[Any]:
    """Returns the values, with the items of sequences of these kinds in their place."""
    for value in values:
        if isinstance(value, kinds):
            items: Any = value
            yield from items
        else:
            yield value


class CallableOp:
    """An object that is called like an op. Calls that do not need PyTorch's dispatcher run directly, others by
    `_call`."""

    _direct: Any = None  # returns NotImplemented if the dispatcher has to see the call
    _is_compiling: Any = None  # for TorchDynamo, which cannot trace `_direct`

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the op, and returns its result, a tuple of several results, or None.

        Results are PyTorch tensors if an argument is one, else NumPy arrays.

        ``help(op)`` describes shapes and dtypes. Raises KernelError if the op refuses the arguments, has no kernel for
        them and may not fall back, or fails. Raises CaptureError if it would have to load code while a CUDA graph is
        captured. Raises DeviceError for errors of the driver, and TypeError for arguments that do not fit the schema.
        """
        if (direct := self._direct) is not None and not self._is_compiling():
            try:
                result = direct(*args, **kwargs)
            except RuntimeError as error:
                return self._recover(error, args, kwargs)
            if result is not NotImplemented:
                return result
        return self._call(args, kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the op, for users who expect an object with a forward and a backward. Raises the errors of a call."""
        return self(*args, **kwargs)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError

    def _recover(self, error: RuntimeError, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Raises a kernel's error with its type restored, or returns the results of another call."""
        raise NotImplementedError


class Library(Protocol):
    """The library of an op, as its ops and the modules that register them with PyTorch use it."""

    path: str
    fallback_policy: str | None
    torch_namespace: str | None
    _order: int
    _native: _native.Library
    _ops: dict[str, Op]

    @property
    def manifest(self) -> dict[str, Any]: ...
    def prewarm(self, device: str = ...) -> None: ...
    def register_torch(self, op: Op | None = None) -> None: ...


class Op(Signature, CallableOp):
    """One op of a package.

    ``op(*arguments)`` calls it; ``op(..., out=result)`` or ``op.out(..., out=result)`` writes into existing memory.

    Arguments are those of ``op.schema``, by position or by name. PyTorch's forms also work: a number for a list of one,
    ``padding="same"``, ``layer_norm(x, weight, bias, eps)``. ``op.forward`` is the call, ``op.backward`` the call of
    its gradient. Tensors may be PyTorch tensors, NumPy arrays, or objects with ``__dlpack__`` in host memory. A call
    with PyTorch tensors goes through PyTorch's dispatcher. Without them, results are NumPy arrays. Raises KernelError
    if the op refuses its arguments, and TypeError if they do not fit the schema.
    """

    def __init__(self, native: _native.Op, library: Library) -> None:
        super().__init__(native)
        self._library = library
        self._torch: Any = None  # torch.ops.<namespace>.<name> after registration
        self._default: Any = None  # its overload that returns new results
        self._is_displaced = False  # another library has the public name
        self._is_recorded = False  # autograd has a gradient for it
        self._restriction: str | None = None  # restriction of instances, in the form of kpkg_registry_restrict
        #: The op whose gradients this op computes for autograd.
        self.differentiates: Op | None = None
        self.implementation: Any = None  # PyTorch's, by `_fallbacks.implementation`
        #: Counts of calls with cast operands of several dtypes, or numbers, by "bfloat16, float32 -> float32".
        self.promotions: dict[str, int] = {}
        #: The description of the fallback that runs for PyTorch's tensors if no kernel can, or "".
        self.fallback: str = ""
        self.__name__ = self.name.rpartition("::")[2]
        self.__doc__ = f"{self.schema}\n\n{native.doc}".rstrip()

    def __reduce__(self) -> Any:
        return operator.getitem, (self._library, self.name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Op:
        return self

    def __repr__(self) -> str:
        return f"<kpkg op {self.schema}>"

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs or len(args) > self._form.first:
            args, kwargs = self._form.fit(args, kwargs)
        torch = sys.modules.get("torch")
        if torch is None:
            return self._call_arrays(args, kwargs)
        tensor = torch.Tensor
        is_torch = needs_grad = False
        given: Any = args if not kwargs else (*args, *kwargs.values())
        for value in given if not self.has_tensor_lists else flattened(given, (list, tuple)):
            if isinstance(value, tensor):
                is_torch = True
                needs_grad = needs_grad or value.requires_grad
        if not is_torch:
            return self._call_arrays(args, kwargs)
        call, out = self._default, None
        if call is None or "out" in kwargs:
            out = kwargs.get("out")
            call = self._torch_form(kwargs)
        if needs_grad and torch.is_grad_enabled() and (not self._is_recorded or out is not None):
            what = "writes into `out`, which autograd cannot record" if self._is_recorded else "has no backward"
            raise KernelError(f"{self.name} {what}: call it under torch.no_grad() or on detached tensors")
        try:
            result = call(*args, **kwargs)
            return result if out is None else out
        except RuntimeError as error:
            return self._recover(error, args, kwargs)

    def _recover(self, error: RuntimeError, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Repeats a failed call with operands promoted to one dtype, if their dtypes differed.

        Raises the error with its type back otherwise.
        """
        found = restored(error)
        theirs = self.implementation
        if self.rules.promotion and (call := _promotion.promoted(self, args, kwargs, theirs)) is not None:
            self.promotions[call.casts] = self.promotions.get(call.casts, 0) + 1
            return call.run(self)
        if found is error:  # PyTorch's dispatcher reports arguments that do not fit the schema as a RuntimeError
            self._check_types(args, kwargs)
        raise found from None

    def backward(self, *args: Any, **kwargs: Any) -> Any:
        """Computes gradients by the backward op.

        ``softmax.backward(grad_output, output, dim)`` is ``softmax_backward(grad_output, output, dim)``.

        That is the op NAME_backward if the package has it, else the op that autograd runs, NAME_autograd. Its schema
        describes the arguments. Raises the errors of that op, and KernelError if the package has neither.
        """
        name = f"{self.name}_backward"
        name = name if name in self._library._ops else self.gradient
        if not name:
            raise KernelError(
                f"{self.name} has no gradient in {self._library.path}: PyTorch's autograd finds one by its "
                "implementation"
            )
        return self._library._ops[name](*args, **kwargs)

    def out(self, *args: Any, out: Any, **kwargs: Any) -> Any:
        """Writes the result into `out`: an array of the result's shape and dtype, or a tuple of them. Returns `out`.

        It may have strides and overlap an input. Raises the errors of a call, and ValueError for a read-only `out`.
        """
        return self(*args, out=out, **kwargs)

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """Returns how such a call is resolved: each kernel instance, taken or refused, and why. Runs nothing.

        Raises KernelError if the op refuses the arguments, and TypeError if they do not fit the schema.
        """
        return str(self._native.explain(self._describe(args, kwargs), False))

    def supports(self, *args: Any, **kwargs: Any) -> bool:
        """Returns whether a kernel of the package can run such a call.

        Runs nothing. Also returns False if the op refuses the arguments.

        Raises TypeError for arguments that do not fit the schema.
        """
        try:
            record = json.loads(self._native.explain(self._describe(args, kwargs), True))
        except KernelError:
            return False
        return "refused" not in record and any(package["runs"] for package in record["packages"])

    def configure(self, config: KernelConfig | None) -> Configured:
        """Restricts the instances that calls of this op use from now on. None allows all again.

        ``with op.configure(KernelConfig(target="x86-64-v3")): ...`` does so within a block. It applies to this
        library's op in the whole process, also for calls through torch.ops. Raises TypeError for other objects than
        KernelConfig. Raises ValueError if no kernel of the op meets the configuration. The configuration then does not
        change.
        """
        restriction = None if config is None else check_config(self, self._library.manifest, config)
        before = self._restriction
        self._restrict(restriction)
        return Configured(self, before)

    def _restrict(self, restriction: str | None) -> None:
        self._library._native.restrict(self.name, restriction)
        self._restriction = restriction

    def stats(self) -> dict[str, int]:
        """Returns counters since the package was loaded.

        They are calls, resolutions, launches, copies, copied_bytes, fallbacks, references (fallbacks to the packaged
        reference) and errors.
        """
        return dict(self._native.stats())

    def _call_arrays(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        out = kwargs.pop("out", None)
        values = self.bind(args, kwargs)
        for i, argument in enumerate(self.arguments):
            value = values[i]
            if value is None or value is ...:
                continue
            if argument.is_tensor:
                if not _arrays.is_array(value):
                    raise TypeError(
                        f"{self.name}: argument {argument.name!r} must be an array, not {type(value).__name__}"
                    )
                values[i] = _arrays.lower(value)
            elif argument.is_tensor_list:
                if not isinstance(value, (list, tuple)) or not all(map(_arrays.is_array, value)):
                    raise TypeError(
                        f"{self.name}: argument {argument.name!r} must be a list of arrays, not {shown(value)}"
                    )
                values[i] = [_arrays.lower(each) for each in value]
            elif argument.is_dtype:
                values[i] = _arrays.dtype_name(value)
        if out is None:
            results = self._run_arrays(values, None)
            raised = [_arrays.raise_result(*r) if isinstance(r, tuple) else r for r in results]
            return raised[0] if len(raised) == 1 else tuple(raised) if raised else None
        outputs = out if isinstance(out, (tuple, list)) else (out,)
        if len(outputs) != len(self.result_types):
            raise TypeError(f"{self.name} has {len(self.result_types)} results, `out` has {len(outputs)}")
        for output in outputs:
            if not getattr(getattr(output, "flags", None), "writeable", True):
                raise ValueError(f"{self.name}: `out` is read-only")
        self._run_arrays(values, [_arrays.lower(o) for o in outputs])
        return out

    def _run_arrays(self, values: list[Any], outputs: list[Any] | None) -> list[Any]:
        try:
            return self._native.call(values, outputs)
        except KernelError as error:
            if not str(error).endswith(_NO_FALLBACK) and all(map(_arrays.is_known, flattened(values))):
                raise
            pairs = [(a.name, value[0]) for a, value in zip(self.arguments, values) if isinstance(value, tuple)]
            given = ", ".join(f"argument {name!r} is {array.dtype} {list(array.shape)}" for name, array in pairs)
            error.args = (f"{self.name}: no kernel of the package can run this call, where {given}; {_NO_FALLBACK}",)
            raise

    def _torch_form(self, kwargs: dict[str, Any]) -> Any:
        """Returns the registered overload for a call with `kwargs`. Spreads a tuple given as `out`."""
        if self._torch is None:
            self._library.register_torch(self)
        if "out" not in kwargs:
            return self._torch.default
        if isinstance(kwargs["out"], (tuple, list)):
            kwargs.update((f"out{i}", out) for i, out in enumerate(kwargs.pop("out")))
        return self._torch.out

    def _describe(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Returns the arguments with shapes instead of memory."""
        values = self.bind(args, kwargs)
        if "torch" in sys.modules and self._restriction is None:
            from kpkg import _precision

            _precision.follow(self.arguments, values)
        for i, argument in enumerate(self.arguments):
            value = values[i]
            if argument.is_tensor and value is not None and value is not ...:
                values[i] = _arrays.describe(value)
            elif argument.is_tensor_list:
                values[i] = [_arrays.describe(each) for each in value]
            elif argument.is_dtype and value is not None and value is not ...:
                values[i] = _arrays.dtype_name(value)
        return values


class Configured:
    """Restores the previous configuration at the end of a ``with`` statement; ``op.configure`` returns it."""

    def __init__(self, op: Op, before: str | None) -> None:
        self._op = op
        self._before = before

    def __enter__(self) -> Op:
        return self._op

    def __exit__(self, *_: object) -> None:
        self._op._restrict(self._before)
