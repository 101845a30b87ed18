"""Provides PyTorch's implementations of ops, which run if a package has no kernel, and which autograd differentiates.

A package declares them as functions of PyTorch tensors in a small subset of Python. A package may come from anyone.
Its text is therefore parsed, and each part of it must be on a list before it becomes code. It can use PyTorch's
functions and methods of tensors, and nothing else of Python or of the process.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import ast
import builtins
import functools
import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.overrides import get_overridable_functions

from kpkg import _policy, _sparse_formats, _vjp
from kpkg._errors import KernelError
from kpkg._op import Op

_NODES = (
    *(ast.Module, ast.Expression, ast.FunctionDef, ast.Lambda, ast.arguments, ast.arg, ast.Return, ast.If, ast.For),
    *(ast.Assign, ast.Expr, ast.IfExp, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.keyword),
    *(ast.Attribute, ast.Name, ast.Constant, ast.Tuple, ast.List, ast.Subscript, ast.Slice, ast.Starred),
    *(ast.ListComp, ast.GeneratorExp, ast.comprehension),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context),
)
# Functions that return the dense weights of kpkg.sparse's formats.
_KNOWN: dict[str, Any] = {
    function.__name__: function
    for function in (
        *(_sparse_formats.from_elements, _sparse_formats.from_blocks, _sparse_formats.from_compressed),
        *(_sparse_formats.from_halves, _sparse_formats.with_rest, _sparse_formats.window_columns),
    )
}
_KNOWN |= {name: getattr(builtins, name) for name in "enumerate float int len list max min range sorted zip".split()}
_KNOWN |= {str(value)[6:]: value for value in vars(torch).values() if isinstance(value, torch.dtype)}
_KNOWN |= {"aten": torch.ops.aten, "vjp": _vjp.gradients}


#: Private operators of PyTorch that a fallback may name.
_PRIVATE_OPERATORS = {"_softmax_backward_data", "_log_softmax_backward_data"}
#: Attributes of tensors that access a file, an address, or memory beyond the bounds of a tensor, or that call
#: functions.
_UNSAFE = set(
    "apply_ map_ map2_ data data_ptr const_data_ptr mutable_data_ptr from_file module_load numpy resize resize_ "
    "resize_as resize_as_ resize_as_sparse_ set set_ share_memory_ storage typed_storage untyped_storage storage_type "
    "register_hook register_post_accumulate_grad_hook backward"
    "".split()
)


@functools.cache
def _operators() -> frozenset[str]:
    """Returns PyTorch's operators without private and unsafe ones, which may not check their arguments."""
    found = {
        name.partition("::")[2].partition(".")[0]
        for name in torch._C._dispatch_get_all_op_names()
        if name[:6] == "aten::"
    }
    public = {name for name in found if not name.startswith("_") and "unsafe" not in name and name not in _UNSAFE}
    return frozenset(public | _PRIVATE_OPERATORS)


@functools.cache
def _function(name: str) -> Any:
    """Returns the meaning of a free name: a function of PyTorch for tensors, or one of a few others. None if
    unknown."""
    if name in _KNOWN:
        return _KNOWN[name]
    for module in (torch.nn.functional, torch, torch.linalg, torch.special):
        value = vars(module).get(name)
        if name in _UNSAFE or "unsafe" in name:
            return None
        if callable(value) and (name in _operators() or value in get_overridable_functions()[module]):
            return value
    return None


@functools.cache
def _attributes() -> frozenset[str]:
    return frozenset(
        name for name in dir(torch.Tensor) if not name.startswith("_") and "unsafe" not in name and name not in _UNSAFE
    )


class _Refused(Exception):
    pass


def _check(node: ast.AST) -> None:
    line = getattr(node, "lineno", 1)
    if not isinstance(node, _NODES):
        raise _Refused(f"line {line}: `{type(node).__name__}` is not part of the language of fallbacks")
    if isinstance(node, ast.FunctionDef) and node.decorator_list:
        raise _Refused(f"line {line}: a function has no decorators")
    name = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""
    if name.startswith("_") or (isinstance(node, ast.FunctionDef) and node.name.startswith("_")):
        raise _Refused(f"line {line}: a name begins with `_`")
    if isinstance(node, ast.Attribute):
        is_operator = isinstance(node.value, ast.Name) and node.value.id == "aten"
        if node.attr not in (_operators() if is_operator else _attributes()):
            what = "operator of PyTorch" if is_operator else "attribute of tensors"
            raise _Refused(f"line {line}: `{node.attr}` is no {what}")
    for child in ast.iter_child_nodes(node):
        _check(child)


def _free_names(tree: ast.AST, arguments: set[str]) -> set[str]:
    nodes = list(ast.walk(tree))
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    bound |= {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    return {n.id for n in nodes if isinstance(n, ast.Name)} - bound - arguments


def _body(text: str) -> list[ast.stmt]:
    """Returns the body of a function. A text that is an expression becomes its return statement."""
    text = textwrap.dedent(text).strip()
    try:
        tree: ast.AST = ast.parse(text, mode="eval")
    except SyntaxError:
        tree = ast.parse(text)
    _check(tree)
    if isinstance(tree, ast.Expression):
        return [ast.copy_location(ast.Return(tree.body), tree.body)]
    assert isinstance(tree, ast.Module)
    return tree.body


class Declaration(NamedTuple):
    """The text of a fallback, and the arguments of its op. `source` is the package that it comes from."""

    name: str
    source: str
    arguments: list[str]
    #: The defaults of the last arguments.
    defaults: list[Any]
    text: str

    @staticmethod
    def of(op: Op) -> Declaration:
        """Returns the declaration of an op of a package."""
        names, defaults = [a.name for a in op.arguments], [a.default for a in op.arguments if a.has_default]
        return Declaration(op.name, str(op._library.path), names, defaults, op.rules.fallback)


def compiled(declared: Declaration) -> Callable[..., Any]:
    """Returns the declared fallback as a function of the op's arguments. Raises KernelError for a refused text."""
    try:
        body = _body(declared.text)
        tree = ast.parse(f"def fallback({', '.join(declared.arguments)}): pass")
        function = tree.body[0]
        assert isinstance(function, ast.FunctionDef)
        function.body = body
        free = _free_names(function, set(declared.arguments))
        space: dict[str, Any] = {name: _function(name) for name in free}
        if unknown := sorted(name for name, value in space.items() if value is None):
            raise _Refused(f"`{unknown[0]}` is neither an argument nor a function of PyTorch")
        space["__builtins__"] = {"__import__": builtins.__import__}  # for functions in C; no name begins with `_`
        exec(compile(tree, f"<fallback of {declared.name}>", "exec"), space)
    except (SyntaxError, ValueError, RecursionError, MemoryError, _Refused) as error:
        raise KernelError(f"{declared.name}: the fallback in {declared.source} is refused: {error}") from None
    run: Callable[..., Any] = space["fallback"]
    run.__defaults__ = tuple(declared.defaults)
    return run


#: The declarations of the ops that kpkg ships, for calls without their packages. tools/shipped_ops.py writes it.
SHIPPED = Path(__file__).parent / "shipped_ops.json"


@functools.cache
def _shipped() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(SHIPPED.read_text())
    return table


@functools.cache
def shipped(name: str) -> Callable[..., Any] | None:
    """Returns PyTorch's implementation of an op that kpkg ships, without its package; None for other ops."""
    record = _shipped().get(name)
    return compiled(Declaration(name, SHIPPED.name, **record)) if record else None


def _declared(op: Op) -> Callable[..., Any]:
    """Returns the declared fallback of an op. Its first call compiles it."""
    compiled_once = functools.cache(lambda: compiled(Declaration.of(op)))
    return lambda *args, **kwargs: compiled_once()(*args, **kwargs)


def implementation(op: Op) -> Callable[..., Any] | None:
    """Returns PyTorch's function for `op`: the user's, else the declared one, else the gradient of the forward op's.

    Returns None if there is none of them.
    """
    own = _policy.fallbacks.get(op.name)
    if own is not None:
        return own
    if op.implementation is None:
        op.implementation = _declared(op) if op.rules.fallback else _gradient_of(op, op.differentiates)
    return op.implementation


def _gradient_of(backward: Op, forward: Op | None) -> Callable[..., Any] | None:
    """Returns the gradient of PyTorch's implementation of `forward`, as a function of the arguments of `backward`.

    Returns None if there is no such implementation. The gradients must depend on its arguments only.
    """
    if forward is None or implementation(forward) is None:
        return None
    tensors = [i for i, argument in enumerate(forward.arguments) if argument.is_tensor]
    optional = [kind.endswith("?") for kind in backward.result_types]
    sources = forward.backward_arguments
    has_needs = any(source == "needs" for source, _ in sources)

    def gradient(*values: Any) -> Any:
        run = implementation(forward)
        assert run is not None, "there was one before"
        arguments = [argument.default for argument in forward.arguments]
        grads: list[Any] = []
        needs: dict[int, bool] = {}
        for (source, index), value in zip(sources, values):
            if source == "gradient":
                grads.append(value)
            elif source == "needs":
                needs[index] = value
            elif source == "argument":
                arguments[index] = value
        wanted = [
            i
            for k, i in enumerate(tensors)
            if arguments[i] is not None and (needs.get(i, not optional[k]) if has_needs or optional[k] else True)
        ]
        found = dict(zip(wanted, _vjp.differentiate(run, arguments, wanted, grads)))
        results = tuple(found.get(i) for i in tensors)
        return results[0] if len(results) == 1 else results

    return gradient
