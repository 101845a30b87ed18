"""Finds convolutions and linear layers that one launch can compute with the steps behind them.

Such steps are a batch norm, a sum and an activation.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import dis
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_SUMS: tuple[Any, ...] = (operator.add, operator.iadd, torch.add, "add", "add_")
_FUNCTIONS: dict[Any, str] = {
    F.relu: "relu", torch.relu: "relu", "relu": "relu", "relu_": "relu", F.silu: "silu", F.gelu: "gelu",
    F.hardswish: "hardswish", F.relu6: "relu6",
    F.sigmoid: "sigmoid", torch.sigmoid: "sigmoid", "sigmoid": "sigmoid", "sigmoid_": "sigmoid",
    F.hardsigmoid: "hardsigmoid",
}  # fmt: skip
_LAYERS: dict[type[nn.Module], str] = {
    nn.ReLU: "relu", nn.SiLU: "silu", nn.GELU: "gelu", nn.Hardswish: "hardswish", nn.ReLU6: "relu6",
    nn.Sigmoid: "sigmoid", nn.Hardsigmoid: "hardsigmoid"
}  # fmt: skip
# Activations that the fused op of linear layers has.
_OF_PRODUCTS = frozenset({"relu", "silu", "gelu"})

# Names that a forward may use besides its layers, methods and settings. With these names only, the traced graph does
# everything that the forward does.
_NAMES = frozenset(
    "torch nn F functional Tensor relu relu_ silu gelu hardswish relu6 sigmoid sigmoid_ hardsigmoid add add_ mul cat "
    "flatten operator iadd "
    # names of gated norms, and of forwards of blocks that contain them
    "pow square mean sqrt rsqrt tanh rms_norm div float half double bfloat16 to type_as dtype float32 shape size "
    "unsqueeze squeeze view reshape transpose permute chunk split contiguous".split()
)
_BUILTINS = frozenset({"len", "range", "int", "float", "tuple", "list", "zip", "enumerate"})
# Instructions with effects that a trace does not show.
_OPCODES = frozenset(
    "STORE_ATTR DELETE_ATTR STORE_SUBSCR DELETE_SUBSCR STORE_GLOBAL DELETE_GLOBAL IMPORT_NAME MAKE_FUNCTION".split()
)


@dataclass(frozen=True)
class Chain:
    """Names a convolution or linear layer and the layers behind it in the forward of `owner`.

    Names of layers are relative to `owner`.
    """

    convolution: str
    norm: str | None
    has_residual: bool
    #: The name of a function of torch.nn.functional, and of the layer that computes it. Without a layer, the forward
    #: calls the function.
    activation: str
    activation_layer: str | None

    @property
    def functions(self) -> tuple[str, ...]:
        """Returns the functions that the forward calls for the chain, by their names in torch.nn.functional."""
        return () if self.activation_layer is not None else (self.activation,)

    @property
    def layers(self) -> tuple[str, ...]:
        """Returns the names of the chain's layers."""
        return tuple(name for name in (self.convolution, self.norm, self.activation_layer) if name is not None)


@dataclass
class Traced:
    """Holds the forward of `owner` as a graph, and the chains in it.

    The calls of the graph are layers. Each chain has its nodes in order.
    """

    owner: nn.Module
    graph: fx.Graph
    chains: dict[Any, list[fx.Node]]
    #: Values that may have decided the trace: names of the owner's layers in order, and settings that its code names.
    names: tuple[str, ...]
    settings: dict[str, Any]
    #: Globals that its code reads: the dictionary of the Python module, the name and the value.
    outer: list[tuple[dict[str, Any], str, Any]] = field(default_factory=list)
    #: Whether the forward calls a torch.autograd.Function, whose gradients the graph lacks.
    has_gradients: bool = False
    #: For chains that are no sequence of nodes: the function that adds the call of a launch to a copy of the graph.
    calls: dict[Any, Callable[[fx.Graph, dict[fx.Node, fx.Node], Callable[..., Any]], fx.Node]] = field(
        default_factory=dict
    )

    def holds(self) -> bool:
        """Returns whether a new trace of the forward would give the same graph."""
        owner = self.owner
        return (
            tuple(owner._modules) == self.names
            and all(getattr(owner, name, None) is value for name, value in self.settings.items())
            and all(names.get(name) is value for names, name, value in self.outer)
            and not (self.has_gradients and torch.is_grad_enabled())
        )


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return True


class _Context:
    """Replaces the context with which the forward of a torch.autograd.Function saves tensors for its backward."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Does nothing, since nothing is recorded."""


@contextlib.contextmanager
def _without_functions() -> Iterator[None]:
    """Makes tracing go through the forward of each torch.autograd.Function."""
    plain = torch.autograd.Function.__dict__["apply"]

    def apply(kind: Any, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(each, fx.Proxy) for each in (*args, *kwargs.values())):
            return kind.forward(_Context(), *args, **kwargs)
        return plain.__func__(kind, *args, **kwargs)

    torch.autograd.Function.apply = classmethod(apply)
    try:
        yield
    finally:
        torch.autograd.Function.apply = plain


class _Reader:
    """Reads the code of a forward, and of the functions that it calls, for values that it may decide by."""

    def __init__(self, owner: nn.Module) -> None:
        self.owner = owner
        self.settings: dict[str, Any] = {}
        self.outer: list[tuple[dict[str, Any], str, Any]] = []
        self.has_gradients = False
        self._todo: list[tuple[Any, bool]] = [(type(owner).forward, False)]  # a function; whether it has a context
        self._seen: set[CodeType] = set()

    def is_all(self) -> bool:
        """Returns whether a trace shows everything that the forward does."""
        while self._todo:
            function, has_context = self._todo.pop()
            code = getattr(function, "__code__", None)
            if code in self._seen:
                continue
            if code is None or code.co_freevars:
                return False
            self._seen.add(code)
            for each in dis.get_instructions(code):
                if each.opname in _OPCODES and not (has_context and each.opname == "STORE_ATTR"):
                    return False
                if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                    if not self._has_global(function.__globals__, str(each.argval)):
                        return False
                elif each.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
                    if not self._has_attribute(str(each.argval)):
                        return False
        return "training" not in self.settings

    def _has_global(self, names: dict[str, Any], name: str) -> bool:
        if name in _NAMES or name not in names:
            return name in _NAMES or name in _BUILTINS
        value = names[name]
        if isinstance(value, FunctionType):
            self._todo.append((value, False))
        elif isinstance(value, type) and issubclass(value, torch.autograd.Function):
            self.has_gradients = True
            self._todo.append((getattr(value, "forward"), True))
        elif value is not None and not isinstance(value, (bool, int, float, str, torch.dtype)):
            return False
        self.outer.append((names, name, value))
        return True

    def _has_attribute(self, name: str) -> bool:
        owner = self.owner
        if name in owner._modules and owner._modules[name] is not None:
            return True
        if name in owner.__dict__ or name in owner._modules:
            self.settings[name] = getattr(owner, name)
            return self.settings[name] is None or isinstance(self.settings[name], (bool, int, float, str))
        if name in _NAMES or self.has_gradients and name in ("apply", "save_for_backward"):
            return True
        if name in vars(nn.Module) or name not in dir(type(owner)):
            return False
        self._todo.append((getattr(type(owner), name), False))
        return True


def trace(owner: nn.Module) -> Traced | None:
    """Traces the forward of `owner`, with no chains yet; None where it does more than a trace shows."""
    if "forward" in owner.__dict__:
        return None
    reader = _Reader(owner)
    if not reader.is_all():
        return None
    try:
        with _without_functions() if reader.has_gradients else contextlib.nullcontext():
            graph = _Tracer().trace(owner)
    except Exception:  # a forward may raise anything for a proxy in place of a tensor
        return None
    return Traced(owner, graph, {}, tuple(owner._modules), reader.settings, reader.outer, reader.has_gradients)


def traced(owner: nn.Module) -> Traced | None:
    """Traces the forward of `owner` and finds its chains.

    Returns None if it has none, or does more than a trace shows.
    """
    if not any(isinstance(layer, (*_CONVOLUTIONS, nn.Linear)) for layer in owner.children()):
        return None
    found = trace(owner)
    for node in found.graph.nodes if found is not None else ():
        chain = _chain(owner, node)
        if chain is not None:
            found.chains[chain[0]] = chain[1]  # type: ignore[union-attr]
    return found if found is not None and found.chains else None


def _layer(owner: nn.Module, node: fx.Node) -> nn.Module | None:
    return owner.get_submodule(str(node.target)) if node.op == "call_module" else None


def activation_of(layer: nn.Module | None) -> str | None:
    """Returns the activation of a fused op that computes the same as `layer`, or None."""
    kind = getattr(type(layer), "torch_layer", type(layer))
    return None if kind is nn.GELU and getattr(layer, "approximate", "none") != "none" else _LAYERS.get(kind)


def _only_user(node: fx.Node) -> fx.Node | None:
    users = list(node.users)
    return users[0] if len(users) == 1 and users[0].all_input_nodes.count(node) == 1 else None


def _chain(owner: nn.Module, first: fx.Node) -> tuple[Chain, list[fx.Node]] | None:
    """Returns the longest chain that begins with this node."""
    is_product = type(_layer(owner, first)) is nn.Linear
    if not is_product and type(_layer(owner, first)) not in _CONVOLUTIONS or len(first.args) != 1 or first.kwargs:
        return None
    nodes = [first]
    norm: str | None = None
    has_residual = False
    activation: tuple[str, str | None] | None = None
    while activation is None:
        node = _only_user(nodes[-1])
        if node is None:
            break
        layer = _layer(owner, node)
        is_call = node.op in ("call_function", "call_method")
        one = len(node.args) == 1 and not node.kwargs
        if one and type(layer) in _NORMS and len(nodes) == 1:
            norm = str(node.target)
        elif one and activation_of(layer):
            activation = str(activation_of(layer)), str(node.target)
        elif is_call and node.target in _FUNCTIONS and len(node.args) == 1 and set(node.kwargs) <= {"inplace"}:
            activation = _FUNCTIONS[node.target], None
        elif is_call and node.target in _SUMS and not has_residual and _is_sum(node, nodes[-1]):
            has_residual = True
        else:
            break
        nodes.append(node)
    if is_product and (norm is not None or activation is not None and activation[0] not in _OF_PRODUCTS):
        return None
    if activation is None:  # a convolution with a norm is a fold, and PyTorch may fuse a lone sum with further steps
        return None
    # Such a node might write to the input that the convolution is to read later.
    if any(first.args[0] in node.all_input_nodes for node in _between(nodes)):
        return None
    if has_residual and _between(nodes[-2:]):  # such a node might write to the residual
        return None
    return Chain(str(first.target), norm, has_residual, *activation), nodes


def _is_sum(node: fx.Node, one: fx.Node) -> bool:
    """Returns whether `node` adds two tensors of the graph without writing to the other one."""
    writes = node.target in (operator.iadd, "add_")
    return (
        len(node.args) == 2
        and not node.kwargs
        and all(isinstance(a, fx.Node) for a in node.args)
        and (not writes or node.args[0] is one)
    )


def _between(nodes: list[fx.Node]) -> list[fx.Node]:
    """Returns the nodes between the first and the last of `nodes` that are not among them."""
    found = []
    node = nodes[0]
    while node is not nodes[-1]:
        node = node.next
        if node not in nodes:
            found.append(node)
    return found
