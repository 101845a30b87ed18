"""Checks that every public Python name has types, documentation and an example that a test runs.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import ast
import inspect
import re
import types

import kpkg
import pytest
import torch
from conftest import ROOT
from kpkg import _native, nn

PAGES = {name: (ROOT / name).read_text() for name in ("README.md", "docs/python.md")}
EXAMPLES = "\n".join(re.findall(r"<!-- (?:run|snippet: \w+) -->\n```python\n(.*?)```", "\n".join(PAGES.values()), re.S))


PACKING = "PackedWeight linear pack pack_fp8 pack_int4 pack_int8 quantize stack".split()


def functions():
    """Yields (name, function) of all public functions, and of the public methods of kpkg's own public classes."""
    found = {}
    classes = (
        [getattr(kpkg, name) for name in kpkg.__all__]
        + [getattr(nn, name) for name in nn.__all__]
        + [type(kpkg.ops), type(kpkg.ops.softmax)]
        + [kpkg.sparse.pack, kpkg.sparse.linear, kpkg.sparse.conv2d, kpkg.sparse.SparseWeight]
        + [getattr(kpkg.quantized, name) for name in PACKING]
    )
    for each in classes:
        if isinstance(each, types.FunctionType):
            found[each.__qualname__] = each
        if not inspect.isclass(each):
            continue
        for kind in each.__mro__:
            if not kind.__module__.startswith("kpkg"):
                continue
            for name, member in vars(kind).items():
                function = (
                    member.fget
                    if isinstance(member, property)
                    else member.__func__
                    if isinstance(member, (classmethod, staticmethod))
                    else member
                )
                if isinstance(function, types.FunctionType) and (
                    not name.startswith("_") or name in ("__init__", "__call__", "__getitem__")
                ):
                    found[f"{kind.__qualname__}.{name}"] = function
    return found


FUNCTIONS = functions()


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_is_typed_and_documented(name):
    function = FUNCTIONS[name]
    signature = inspect.signature(function)
    bare = [p.name for p in signature.parameters.values() if p.annotation is p.empty and p.name not in ("self", "cls")]
    assert not bare, f"{name}: no types for {bare}"
    assert signature.return_annotation is not signature.empty, f"{name}: no type of what it returns"
    if name.rpartition(".")[2] in (
        "__init__",
        "forward",
        "extra_repr",
    ):  # the class documents the arguments, and PyTorch the methods
        return
    assert function.__doc__, f"{name}: no documentation"
    if [p for p in signature.parameters if p not in ("self", "cls")]:
        assert "Raises" in function.__doc__, f"{name}: takes arguments, and does not say what it raises"


@pytest.mark.parametrize("name", [*kpkg.__all__, *(f"nn.{name}" for name in nn.__all__)])
def test_is_documented_and_of_the_package(name):
    value = kpkg
    for part in name.split("."):
        value = getattr(value, part)
    assert inspect.getdoc(value), f"{name} has no documentation"


@pytest.mark.parametrize("name", kpkg.__all__)
def test_is_shown_by_an_example_that_runs(name):
    assert re.search(rf"\bkpkg\.{name}\b|\bfrom kpkg import .*\b{name}\b", EXAMPLES), f"no example shows kpkg.{name}"


def test_every_listed_name_is_there():
    assert [name for name in dir(kpkg) if not hasattr(kpkg, name)] == []


def test_the_stub_is_that_of_the_native_module():
    """Type checkers see all names of the compiled module, and no others."""
    stub = ast.parse((ROOT / "runtime/python/kpkg/_native.pyi").read_text())

    def shown(members):
        return {
            n
            for m in members
            for n in ([m.name] if hasattr(m, "name") else [m.target.id] if isinstance(m, ast.AnnAssign) else [])
            if not n.startswith("__")
        }

    def real(value):
        return {name for name in vars(value) if not name.startswith("__")}

    assert shown(stub.body) == real(_native)
    for kind in (node for node in stub.body if isinstance(node, ast.ClassDef)):
        if not issubclass(getattr(_native, kind.name), Exception):  # each error object has its own attributes
            assert shown(kind.body) == real(getattr(_native, kind.name)), kind.name


def test_layers_say_what_they_take():
    """Layers describe shapes, and their constructors have PyTorch's signatures."""
    for name in nn.__all__:
        layer = getattr(nn, name)
        if not isinstance(layer, type) or not hasattr(torch.nn, name):
            continue
        assert re.search(r"Input|shape|\(N|\[N|element", inspect.getdoc(layer)), (
            f"nn.{name} does not say what shapes it takes"
        )
        assert inspect.signature(layer) == inspect.signature(getattr(torch.nn, name)), name
