"""Packages and their ops as Python objects.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, NamedTuple

from kpkg import _arrays, _native, _policy
from kpkg._config import Configured, KernelConfig
from kpkg._errors import KernelError

_COUNTER = itertools.count()
_TENSOR, _INT, _FLOAT, _BOOL, _LIST, _DTYPE, _STRING = range(2, 9)  # kinds of arguments, as in kpkg.h
_ACCEPTED = {_INT: (Integral,), _FLOAT: (Real,), _BOOL: (bool,), _LIST: (list, tuple), _STRING: (str,)}


class Argument(NamedTuple):
    """One argument of an op's schema."""

    name: str
    type: str
    kind: int
    optional: bool
    mutates: bool
    has_default: bool
    default: Any

    @property
    def is_tensor(self) -> bool:
        return self.kind == _TENSOR


class Op:
    """One op of a package: ``op(*arguments)``, and ``op(..., out=result)`` or ``op.out(..., out=result)`` into existing memory.

    Arguments are those of ``op.schema``, by position or by name. Tensors may be PyTorch tensors (the call then goes through
    PyTorch's dispatcher), NumPy arrays, or anything with ``__dlpack__`` in host memory; without PyTorch tensors, results are NumPy
    arrays. Raises KernelError when the op refuses its arguments, TypeError when they do not fit the schema.
    """

    def __init__(self, native: _native.Op, library: CustomOpLibrary) -> None:
        self._native = native
        self._library = library
        self._torch: Any = None  # torch.ops.<namespace>.<name>, once registered,
        self._default: Any = None  # and its overload that returns fresh results
        self._is_displaced = False  # another library has the public name
        self._is_recorded = False  # autograd has a gradient for it
        self._config: KernelConfig | None = None
        self.name: str = native.name
        self.schema: str = native.schema
        self.arguments: tuple[Argument, ...] = tuple(Argument(*a) for a in native.arguments)
        self.result_types: tuple[str, ...] = tuple(native.result_types)
        self.backward: str = native.backward  # name of the op with the gradients, "" without one
        # Where each argument of that op comes from: ("gradient" | "result" | "argument" | "needs" | "deterministic", index).
        self.backward_arguments: tuple[tuple[str, int], ...] = ()
        if self.backward:
            self.backward_arguments = tuple((s, i) for s, i in json.loads(native.kernel_info())["backward"]["arguments"])
        #: What runs where no kernel can, where PyTorch's tensors are the arguments; "" without one.
        self.fallback: str = ""
        self.__name__ = self.name.rpartition("::")[2]
        self.__doc__ = f"{self.schema}\n\n{native.doc}".rstrip()

    def __reduce__(self) -> Any:
        return _op_of, (self._library, self.name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Op:
        return self

    def __repr__(self) -> str:
        return f"<kpkg op {self.schema}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The op's results: PyTorch tensors where an argument is one, else NumPy arrays; a tuple of several, None of none.

        Shapes and dtypes are those of the op's own documentation, ``help(op)``. Raises KernelError where the op refuses them, has no kernel for them and
        may not fall back, or fails; CaptureError where it would have to load something while a CUDA graph is captured; DeviceError of the driver;
        TypeError for arguments that do not fit the schema.
        """
        torch = sys.modules.get("torch")
        if torch is None:
            return self._call_arrays(args, kwargs)
        tensor = torch.Tensor
        is_torch = needs_grad = False
        for value in args if not kwargs else (*args, *kwargs.values()):
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
            translated = self._library._translate(error)
            if translated is error:
                self._check_types(args, kwargs)  # PyTorch's dispatcher reports what does not fit the schema as a RuntimeError
            raise translated from None

    def out(self, *args: Any, out: Any, **kwargs: Any) -> Any:
        """Writes the result into `out`: an array of the result's shape and dtype, or a tuple of them. Returns `out`.

        It may have strides and overlap an input. Raises what a call raises, and ValueError for a read-only `out`.
        """
        return self(*args, out=out, **kwargs)

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """How such a call is resolved: each kernel instance, taken or refused, and why. Runs nothing.

        Raises KernelError where the op refuses the arguments, TypeError where they do not fit the schema.
        """
        return str(self._native.explain(self._describe(args, kwargs), False))

    def supports(self, *args: Any, **kwargs: Any) -> bool:
        """Whether a kernel of the package can run such a call. Runs nothing. False also when the op refuses the arguments.

        Raises TypeError for arguments that do not fit the schema.
        """
        try:
            record = json.loads(self._native.explain(self._describe(args, kwargs), True))
        except KernelError:
            return False
        return "refused" not in record and any(package["runs"] for package in record["packages"])

    def configure(self, config: KernelConfig | None) -> Configured:
        """Restricts which instances calls of this op use from now on; None allows all again.

        ``with op.configure(KernelConfig(target="x86-64-v3")): ...`` does so within a block. Process-wide for this library's op, also for calls
        through torch.ops. Raises ValueError for a configuration that means nothing.
        """
        before, self._config = self._config, config
        self._library._native.restrict(self.name, None if config is None else config.to_json())
        return Configured(self, before)

    def stats(self) -> dict[str, int]:
        """Counters since the package was loaded: calls, resolutions, launches, copies, copied_bytes, fallbacks, errors."""
        return dict(self._native.stats())

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """A value for each argument of the schema, ``...`` where the default is to be taken. Raises TypeError where they do not fit it."""
        if len(args) > len(self.arguments):
            raise TypeError(f"{self.name} takes {len(self.arguments)} arguments, got {len(args)}: {self.schema}")
        values: list[Any] = list(args) + [...] * (len(self.arguments) - len(args))
        names = [a.name for a in self.arguments]
        for name, value in kwargs.items():
            if name not in names:
                raise TypeError(f"{self.name} has no argument {name!r}: {self.schema}")
            position = names.index(name)
            if position < len(args):
                raise TypeError(f"{self.name} got argument {name!r} twice")
            values[position] = value
        for argument, value in zip(self.arguments, values):
            if value is ... and not argument.has_default:
                raise TypeError(f"{self.name} needs argument {argument.name!r}: {self.schema}")
        return values

    def _check_types(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raises TypeError where arguments of a call with PyTorch tensors do not fit the schema."""
        import torch

        outputs = {name: value for name, value in kwargs.items() if name == "out" or (name.startswith("out") and name[3:].isdigit())}
        named = {name: value for name, value in kwargs.items() if name not in outputs}
        for argument, value in zip(self.arguments, self.bind(args, named)):
            if value is ... or value is None:
                continue
            kinds = _ACCEPTED.get(argument.kind, (object,))
            if argument.kind == _TENSOR:
                fits = isinstance(value, torch.Tensor)
            elif argument.kind == _DTYPE:
                fits = isinstance(value, torch.dtype)
            elif argument.kind == _LIST:
                fits = isinstance(value, kinds) and all(isinstance(item, (Integral, torch.SymInt)) for item in value)
            else:
                fits = isinstance(value, (*kinds, torch.SymInt, torch.SymFloat, torch.SymBool))
            if not fits:
                raise TypeError(f"{self.name}: argument {argument.name!r} is {value!r}, expected {argument.type}: {self.schema}") from None
            if argument.kind == _INT and isinstance(value, Integral) and not -(2**63) <= value < 2**63:
                raise TypeError(f"{self.name}: argument {argument.name!r} is {value}, which has more than 64 bits") from None
        for name, value in outputs.items():
            if not isinstance(value, torch.Tensor):
                raise TypeError(f"{self.name}: `{name}` is of type {type(value).__name__}, expected a PyTorch tensor") from None

    def _call_arrays(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        out = kwargs.pop("out", None)
        values = self.bind(args, kwargs)
        for i, argument in enumerate(self.arguments):
            value = values[i]
            if value is None or value is ...:
                continue
            if argument.kind == _TENSOR:
                if not _arrays.is_array(value):
                    raise TypeError(f"{self.name}: argument {argument.name!r} must be an array, not {type(value).__name__}")
                values[i] = _arrays.lower(value)
            elif argument.kind == _DTYPE:
                values[i] = _arrays.dtype_name(value)
        if out is None:
            results = self._native.call(values, None)
            raised = [_arrays.raise_result(*r) if isinstance(r, tuple) else r for r in results]
            return raised[0] if len(raised) == 1 else tuple(raised) if raised else None
        outputs = out if isinstance(out, (tuple, list)) else (out,)
        if len(outputs) != len(self.result_types):
            raise TypeError(f"{self.name} has {len(self.result_types)} results, `out` has {len(outputs)}")
        for output in outputs:
            if not getattr(getattr(output, "flags", None), "writeable", True):
                raise ValueError(f"{self.name}: `out` is read-only")
        self._native.call(values, [_arrays.lower(o) for o in outputs])
        return out

    def _torch_form(self, kwargs: dict[str, Any]) -> Any:
        """The registered overload that a call with `kwargs` is for; spreads a tuple given as `out`."""
        if self._torch is None:
            self._library.register_torch()
        if "out" not in kwargs:
            return self._torch.default
        if isinstance(kwargs["out"], (tuple, list)):
            kwargs.update((f"out{i}", out) for i, out in enumerate(kwargs.pop("out")))
        return self._torch.out

    def _describe(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments with shapes in place of memory."""
        values = self.bind(args, kwargs)
        for i, argument in enumerate(self.arguments):
            value = values[i]
            if argument.kind == _TENSOR and value is not None and value is not ...:
                values[i] = _describe_array(value)
            elif argument.kind == _DTYPE and value is not None and value is not ...:
                values[i] = _arrays.dtype_name(value)
        return values


def _describe_array(value: Any) -> tuple[tuple[int, ...], tuple[int, ...], str, int]:
    name = _arrays.dtype_name(value.dtype)
    shape = tuple(int(n) for n in value.shape)
    if callable(getattr(value, "stride", None)):  # PyTorch
        return shape, tuple(value.stride()), name, {"cpu": 1, "meta": 1, "cuda": 2}.get(value.device.type, 0)
    strides = tuple(int(s) // value.itemsize for s in value.strides)
    return shape, strides, name, 1


class CustomOpLibrary:
    """An open package. Its ops are attributes: ``library.softmax``; ``list(library)`` gives all.

    ``library.path`` is the file, ``library.fallback_policy`` its own policy or None for the process-wide one.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: str = os.fsdecode(path)
        self.fallback_policy: str | None = None
        self._order = next(_COUNTER)
        self._native = _native.Library(self.path)
        self._native.set_policy(_policy.check_policy(_policy.get_fallback_policy()))
        self._ops: dict[str, Op] = {}
        for native in self._native.ops():
            op = Op(native, self)
            self._ops[op.name] = op
        self._short: dict[str, list[Op]] = {}
        for op in self._ops.values():
            self._short.setdefault(op.__name__, []).append(op)
        for name, found in self._short.items():
            if len(found) == 1 and not hasattr(type(self), name):
                self.__dict__.setdefault(name, found[0])  # found without __getattr__
        _policy.apply_op_policies(self, list(_policy.op_policies))
        _policy.libraries.add(self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CustomOpLibrary:
        """Opens the package at `path` and checks its header and manifest; nothing of it runs.

        If PyTorch has been imported, the ops are registered with it at once (``torch.ops.kpkg.softmax``), else at the first call
        with a PyTorch tensor or by ``register_torch()``. The library loaded last has the public names; the ops of earlier ones go on
        running their own package. Raises OSError, PackageError.
        """
        library = cls(path)
        if "torch" in sys.modules:
            library.register_torch()
        return library

    def __getattr__(self, name: str) -> Op:
        found: list[Op] = self.__dict__.get("_short", {}).get(name, [])
        if len(found) == 1:
            return found[0]
        if found:
            raise AttributeError(f"{name} is in several namespaces: use library[{found[0].name!r}]")
        raise AttributeError(f"{self.path} has no op {name!r}; it has {', '.join(self.__dict__.get('_ops', {})) or 'none'}")

    def __getitem__(self, name: str) -> Op:
        """The op of the full name, "kpkg::softmax". Raises KeyError."""
        return self._ops[name]

    def __iter__(self) -> Iterator[Op]:
        return iter(self._ops.values())

    def __len__(self) -> int:
        return len(self._ops)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._short})

    def __reduce__(self) -> Any:
        """What was pickled is the package of the same path, opened again."""
        return load, (self.path,)

    def __copy__(self) -> CustomOpLibrary:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CustomOpLibrary:
        return self  # as modules and functions, which models refer to as well

    def __repr__(self) -> str:
        return f"<kpkg library {self.path}: {', '.join(self._ops)}>"

    @property
    def manifest(self) -> dict[str, Any]:
        """What the package says of itself: producer, kernels, instances, ops, sections."""
        return json.loads(self._native.manifest)  # type: ignore[no-any-return]

    def verify(self) -> None:
        """Checks every section's digest and every plan. Raises PackageError."""
        self._native.verify()

    def prewarm(self, device: str = "cpu") -> None:
        """Loads all code that calls on a device can need, so that no later call loads; needed before the first call inside of a CUDA graph.

        ``device`` is ``"cpu"``, ``"cuda"`` (device 0) or ``"cuda:1"``. Raises ValueError for another text, DeviceError when the driver refuses.
        """
        kind, _, index = device.partition(":")
        if kind not in ("cpu", "cuda") or (index and not index.isdecimal()):
            raise ValueError(f"device must be 'cpu', 'cuda' or 'cuda:N', not {device!r}")
        self._native.prewarm(1 if kind == "cpu" else 2, int(index or 0))

    def set_fallback_policy(self, policy: _policy.Policy | None) -> None:
        """A policy of this library's own; None follows the process-wide one again. See ``kpkg.set_fallback_policy``.

        Raises ValueError for an unknown policy.
        """
        self._native.set_policy(_policy.check_policy(policy or _policy.get_fallback_policy()))
        self.fallback_policy = policy

    def register_torch(self) -> None:
        """Registers the ops with PyTorch, which it imports. Raises ImportError when there is none, RuntimeError when a name is taken."""
        from kpkg import _torch

        _torch.register(self)

    def _translate(self, error: RuntimeError) -> Exception:
        """An error that came through PyTorch's dispatcher as a RuntimeError, with its type back."""
        status, message, op, instance, argument = _native.last_error()
        if not message or message not in str(error):
            return error
        made: Exception = {8: _native.DeviceError, 12: _native.CaptureError}.get(status, KernelError)(str(error))
        made.op, made.instance, made.argument = op, instance, argument  # type: ignore[attr-defined]
        return made


def _op_of(library: CustomOpLibrary, name: str) -> Op:
    return library[name]


def load(path: str | os.PathLike[str]) -> CustomOpLibrary:
    """Opens a package: ``ops = kpkg.load("gemm.kpkg")``, then ``ops.gemm(a, b)``. The same as ``CustomOpLibrary.load``.

    Raises OSError where the file cannot be read, PackageError where it is no package, damaged, too new or not trusted.
    """
    return CustomOpLibrary.load(path)


def kernel_info() -> dict[str, Any]:
    """What is loaded and what ran, per op name: package, schema, policy, counters, the kernel instances, fallbacks by reason.

    ``{"kpkg::softmax": {"package": ..., "schema": ..., "policy": "warn", "torch": True, "calls": 3, ...}}``. An op that several open packages
    have is listed for the one opened last. An op of ``kpkg.ops`` that no package has is there with ``"package": None``. "policy" is the one that holds for
    the op, "chain" what a call tries, in this order: packages, then what it falls back to, where the policy lets it.
    """
    info: dict[str, Any] = {}
    for library in sorted(_policy.libraries, key=lambda each: each._order):
        for op in library:
            policy, seen = _policy.policy_of(op.name, library.fallback_policy), json.loads(op._native.kernel_info())
            fallback = [op.fallback] if op.fallback and policy != "strict" else []
            info[op.name] = {
                "package": library.path,
                "schema": op.schema,
                "policy": policy,
                "chain": [*seen["packages"], *fallback],
                "torch": op._torch is not None,
                **seen,
            }
    for name, (reasons, policy) in _policy.absent.items():
        if name not in info:
            chain = [] if policy == "strict" else [_policy.describe_fallback(name)]
            info[name] = {"package": None, "policy": policy, "chain": chain, "fallbacks": sum(reasons.values()), "fallback_reasons": dict(reasons)}
    return info
