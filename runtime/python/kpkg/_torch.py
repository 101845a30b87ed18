"""Registers a package's ops with PyTorch: schemas and kernels by libkpkg_torch, fake kernels and fallbacks here.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import ctypes
import functools
import re
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from kpkg import _autograd, _direct, _fake, _fallbacks, _policy, _precision, _transforms
from kpkg._forms import outputs_of
from kpkg._native import Unrecorded, last_error, precision_reader, use_dispatch_state
from kpkg._op import Op, flattened

_OLDEST_TORCH = (2, 10)
_FALLBACK_NAMESPACE = "kpkg_fallback"

# Registrations from Python live as long as these objects.
_fragments: dict[str, torch.library.Library] = {}
_current_ops: dict[str, Op] = {}  # by the dispatcher's name
_with_fallback: set[str] = set()
_unrecorded: set[str] = set()  # names whose plain calls bypass autograd


@functools.cache
def _extension() -> ctypes.CDLL:
    """Loads libkpkg_torch into a process that has PyTorch."""
    version = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    if version < _OLDEST_TORCH:
        raise ImportError(f"kpkg needs PyTorch >= {'.'.join(map(str, _OLDEST_TORCH))}, this is {torch.__version__}")
    path = Path(__file__).with_name("libkpkg_torch.so")
    if not path.exists():
        raise ImportError(f"{path} is missing: this kpkg was built without its PyTorch part (CMake target kpkg_torch)")
    library = ctypes.CDLL(str(path))
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    library.kpkg_torch_schema.argtypes, library.kpkg_torch_schema.restype = [pointer, ctypes.c_int32], text
    library.kpkg_torch_register.argtypes = [pointer, text, ctypes.c_int32, text]
    library.kpkg_torch_use_fallback.argtypes = [pointer, text]
    library.kpkg_torch_set_fallback_error.argtypes = [text]
    library.kpkg_torch_follow_precision.argtypes = [pointer]
    library.kpkg_torch_follow_precision(precision_reader(_precision.of_device))
    keys = torch._C.DispatchKey
    modes = [keys.FuncTorchDynamicLayerFrontMode, keys.Python, keys.PythonTLSSnapshot, keys.Functionalize]
    modes += [keys.PreDispatch, torch._C._dispatch_key_parse("Tracer")]
    use_dispatch_state(
        int(keys.AutogradFunctionality), [int(key) for key in modes], [int(keys.AutocastCPU), int(keys.AutocastCUDA)],
        lambda key: torch._C._dispatch_tls_is_dispatch_key_included(_key(key)),
        lambda key: torch._C._dispatch_tls_is_dispatch_key_excluded(_key(key)),
        list(_transforms.CAST),
    )  # fmt: skip
    # Without a backward op, PyTorch would warn in backward() and continue with missing gradients. This must be an
    # error.
    warnings.filterwarnings("error", message=".*autograd kernel was not registered to the Autograd key")
    return library


def _key(number: int) -> torch._C.DispatchKey:
    return torch._C.DispatchKey(number)


def _check(status: int) -> None:
    if status:
        raise RuntimeError(last_error()[1])


def _fragment(namespace: str) -> torch.library.Library:
    if namespace not in _fragments:
        _fragments[namespace] = torch.library.Library(namespace, "FRAGMENT")
    return _fragments[namespace]


def schema_of(op: Op, *, out: bool = False) -> str | None:
    """Returns the schema of the op in PyTorch, or of its out= form: None if it has no such form."""
    schema = _extension().kpkg_torch_schema(op._native.address, out)
    return schema.decode() if schema is not None else None


def register(library: Iterable[Op]) -> None:
    """Makes every op of a library callable through PyTorch's dispatcher, once per op. Later calls do nothing.

    The library that is registered last has the public names, ``torch.ops.<namespace>.<name>``. Ops of a library that
    lost them continue under its own names, ``torch.ops.<namespace>__<number>.<name>``. So does an op whose schema
    differs from that of its public name, which PyTorch cannot change.
    """
    references = {op._native.reference for op in library}
    for op in library:
        if op._torch is not None or op.name in references:
            continue
        public, _, local = op.name.partition("::")
        if op._library.torch_namespace is None:
            op._is_displaced |= _current_ops.get(op.name, op).schema != op.schema
        namespace = op._library.torch_namespace or public
        if op._is_displaced:
            namespace = f"{public}__{op._library._order}"
        owner = _current_ops.get(f"{namespace}::{local}")
        _register_op(op, namespace)
        _register_autograd(op, namespace)
        if owner is not None:
            owner._torch = owner._default = None
            owner._is_displaced = True
            _direct.detach(owner)  # its next call must register it again
    _autograd.note_registration()


def register_reference(op: Op) -> None:
    """Registers a packaged reference with PyTorch, under the own names of its library."""
    _register_op(op, f"{op.name.partition('::')[0]}__{op._library._order}")


def _register_op(op: Op, namespace: str) -> None:
    extension = _extension()
    local = op.name.partition("::")[2]
    name = f"{namespace}::{local}"
    forms = {form: schema for form in ("default", "out") if (schema := schema_of(op, out=form == "out")) is not None}
    has_fallback = _fallbacks.implementation(op) is not None
    fallback = f"{_FALLBACK_NAMESPACE}::{namespace}__{local}" if has_fallback else ""
    for form in forms:
        registered = extension.kpkg_torch_register(
            op._native.address, namespace.encode(), form == "out", fallback.encode()
        )
        _check(registered)
    is_new = name not in _current_ops
    _transforms.follow_autocast(name, op)
    _current_ops[name] = op
    if is_new:
        _register_fakes(op, namespace, "out" in forms)
    else:
        _direct.replace(name, op)
    if has_fallback:
        if name not in _with_fallback:
            _with_fallback.add(name)
            _register_fallback(op, name, list(forms.values()))
        op.fallback = _policy.describe_fallback(op.name)
        _check(extension.kpkg_torch_use_fallback(op._library._native.registry_address, op.name.encode()))
    op._torch = getattr(getattr(torch.ops, namespace), local)
    op._default = op._torch.default
    if is_new:  # recorded calls use this overload
        _direct.place(name, op)
    _direct.attach(op)


def _register_autograd(op: Op, namespace: str) -> None:
    name = f"{namespace}::{op.name.partition('::')[2]}"
    has_none = op.has_tensor_lists or any(a.mutates for a in op.arguments)
    is_recorded = op.gradient or (_fallbacks.implementation(op) and not has_none)
    if op.differentiates is None and not is_recorded:
        return
    op._is_recorded = op.differentiates is None
    _autograd.register(name, op, lambda: _current_ops[name], _fragment(namespace))
    if name in _unrecorded:
        return
    _unrecorded.add(name)
    types = torch.Tensor, torch.nn.Parameter
    state = torch.is_grad_enabled, torch._C._len_torch_function_stack, vars(torch.autograd.forward_ad)
    for call in (op._torch, op._default):
        call._op = Unrecorded(call._op, _autograd.recorder(name), *types, *state, _transforms.casts[name])
    _direct.place(name, op)


def _register_fakes(op: Op, namespace: str, has_out: bool) -> None:
    fragment = _fragment(namespace)
    local = op.name.partition("::")[2]
    name = f"{namespace}::{local}"

    def fake(*args: Any, **kwargs: Any) -> Any:
        return _fake.run(_current_ops[name], args, kwargs)

    def fake_out(*args: Any, **kwargs: Any) -> None:
        _fake.run_out(_current_ops[name], args, kwargs)

    torch.library.register_fake(name, fake, lib=fragment)
    takes_tensors = any(a.is_tensor for a in op.arguments) and not op.has_tensor_lists
    if takes_tensors and not any(a.mutates for a in op.arguments):
        _transforms.register_autocast(name, fragment)
        _transforms.register_vmap(name, local, lambda: _current_ops[name], fragment)
    if any(a.mutates for a in op.arguments):
        _register_version_bump(fragment, namespace, local, "default")
    if has_out:
        torch.library.register_fake(f"{name}.out", fake_out, lib=fragment)
        _register_version_bump(fragment, namespace, local, "out")


def _register_version_bump(fragment: torch.library.Library, namespace: str, local: str, form: str) -> None:
    """Registers updates of autograd's version counters for an op that writes into arguments. The C ABI cannot do
    this."""
    overload = getattr(getattr(getattr(torch.ops, namespace), local), form)
    names = [a.name for a in overload._schema.arguments]
    written = {a.name for a in overload._schema.arguments if a.alias_info is not None and a.alias_info.is_write}
    after = torch._C._after_ADInplaceOrView_keyset

    def run(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        tensors = [value for name, value in (*zip(names, args), *kwargs.items()) if name in written]
        for tensor in flattened(tensors, (list, tuple)):
            if isinstance(tensor, torch.Tensor) and not tensor.is_inference():
                torch.autograd.graph.increment_version(tensor)
        return overload.redispatch(keyset & after, *args, **kwargs)

    fragment.impl(local if form == "default" else f"{local}.{form}", run, "ADInplaceOrView", with_keyset=True)


def _reporting(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Returns `function` with errors reported outside the C ABI, which would lose their text."""

    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # the called op must raise errors of every type
            _extension().kpkg_torch_set_fallback_error(f"{type(error).__name__}: {error}".encode())
            placeholders = tuple(torch.empty(0) for _ in range(count))
            return placeholders[0] if count == 1 else placeholders or None

    return run


def _register_fallback(op: Op, name: str, schemas: list[str]) -> None:
    """Defines PyTorch's implementation of the op that has `name`, as an op that libkpkg_torch calls."""
    fragment = _fragment(_FALLBACK_NAMESPACE)
    namespace, _, local = name.partition("::")

    def implementation(*args: Any, **kwargs: Any) -> Any:
        run = _fallbacks.implementation(_current_ops[name])
        assert run is not None, "registered only where there is one"
        with torch.no_grad():  # within a kernel, which autograd does not record
            return run(*args, **kwargs)

    def into(*args: Any, **kwargs: Any) -> None:
        outputs = [kwargs.pop(name) for name in outputs_of(kwargs)]
        results = implementation(*args, **kwargs)
        for output, result in zip(outputs, results if isinstance(results, tuple) else (results,)):
            _fake.check_out(name, output, result)
            output.copy_(result)

    for schema, function in zip(schemas, (implementation, into)):
        head, arrow, results = schema.replace(local, f"{namespace}__{local}", 1).rpartition("->")
        if "?" in results:  # PyTorch's dispatcher for extensions confuses result types that differ
            results = re.sub(r"Tensor\??", "Tensor?", results)
        form = head + arrow + results
        fragment.define(form)
        count = len(op.result_types) if function is implementation else 0
        fragment.impl(form.partition("(")[0], _reporting(function, count), "CompositeExplicitAutograd")
