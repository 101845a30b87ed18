"""Computes each gated residual norm, x + rms_norm(y) * tanh(gate), in the forwards that torch.fx traces, by one launch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from kpkg import _chains, _default, _fused, _passes
from kpkg._call_forms import alike
from kpkg._injection import Injection, Row, signature
from kpkg._samples import Samples, call

_SUMS = (operator.add, torch.add, "add")
_PRODUCTS = (operator.mul, torch.mul, "mul")
_QUOTIENTS = (operator.truediv, torch.div, "div")
_CASTS = ("to", "type_as", "float", "half", "bfloat16", "double")
_VIEWS = ("unsqueeze", "view", "reshape", torch.unsqueeze, operator.getitem)


@dataclass(frozen=True)
class Gated:
    """Describes a gated residual norm in the forward of a layer.

    It has the name of the norm's node, and the number that its RMS norm adds to mean squares. None is the resolution of
    the dtype.
    """

    node: str
    eps: float | None
    #: Functions that it calls, by the names of `_calls`, once for each call.
    functions: tuple[str, ...]


@dataclass(frozen=True)
class _Match:
    x: fx.Node
    y: fx.Node
    gate: fx.Node
    eps: float | None
    views: tuple[fx.Node, ...]  # views of tanh(gate), in their order
    nodes: tuple[fx.Node, ...]  # the last node is the result


def _calls(node: Any, targets: tuple[Any, ...]) -> bool:
    return isinstance(node, fx.Node) and node.op in ("call_function", "call_method") and node.target in targets


def _plain(node: Any, seen: list[fx.Node]) -> Any:
    """Returns the node that `node` casts, and adds the casts to `seen`."""
    while _calls(node, _CASTS):
        seen.append(node)
        node = node.args[0]
    return node


def _factors(node: Any, seen: list[fx.Node]) -> list[Any]:
    node = _plain(node, seen)
    if _calls(node, _PRODUCTS) and len(node.args) == 2 and not node.kwargs and node.args[0] is not node.args[1]:
        seen.append(node)
        return [*_factors(node.args[0], seen), *_factors(node.args[1], seen)]
    return [node]


def _gate(node: Any, seen: list[fx.Node]) -> tuple[fx.Node, tuple[fx.Node, ...]] | None:
    """Returns the gate of tanh(gate), and the views of the result."""
    views: list[fx.Node] = []
    node = _plain(node, seen)
    while _calls(node, _VIEWS):
        views.append(node)
        node = _plain(node.args[0], seen)
    if not _calls(node, (torch.tanh, "tanh", F.tanh)) or len(node.args) != 1 or node.kwargs:
        return None
    seen.extend((*views, node))
    source = _plain(node.args[0], seen)
    return (source, tuple(reversed(views))) if isinstance(source, fx.Node) else None


def _squared(node: Any, seen: list[fx.Node]) -> Any:
    """Returns the node whose squares `node` computes, or None."""
    node = _plain(node, seen)
    if _calls(node, ("pow", torch.pow, operator.pow)) and node.args[1:] in ((2,), (2.0,)) and not node.kwargs:
        seen.append(node)
        return node.args[0]
    if _calls(node, ("square", torch.square)) or _calls(node, _PRODUCTS) and node.args[0] is node.args[-1]:
        seen.append(node)
        return node.args[0]
    return None


def _root(node: Any, kinds: tuple[Any, ...], seen: list[fx.Node]) -> tuple[Any, float] | None:
    """Matches the (inverse) root of a mean square over the last dimension.

    Returns the node whose mean square it is, and the number added before the root.
    """
    node = _plain(node, seen)
    if not _calls(node, kinds):
        return None
    total = _plain(node.args[0], seen)
    if not _calls(total, _SUMS) or len(total.args) != 2 or total.kwargs:
        return None
    mean, eps = total.args if isinstance(total.args[0], fx.Node) else reversed(total.args)
    mean = _plain(mean, seen)
    if not isinstance(eps, (int, float)) or not _calls(mean, ("mean", torch.mean)):
        return None
    given = dict(zip(("input", "dim", "keepdim"), mean.args)) | dict(mean.kwargs)
    if given.pop("dim", None) not in (-1, [-1], (-1,)) or not given.pop("keepdim", False) or len(given) != 1:
        return None
    seen.extend((node, total, mean))
    return _squared(given["input"], seen), float(eps)


def _norm(owner: nn.Module, factors: list[Any], seen: list[fx.Node]) -> tuple[fx.Node, float | None] | None:
    """Returns the node whose RMS norm without a weight the factors compute, and the number added to mean squares."""
    if len(factors) == 1:
        node = factors[0]
        if _calls(node, (F.rms_norm, torch.rms_norm)):
            names = dict(zip(("input", "normalized_shape", "weight", "eps"), node.args)) | dict(node.kwargs)
            shape = names.get("normalized_shape")
            if names.get("weight") is None and isinstance(shape, (tuple, list)) and len(shape) == 1:
                seen.append(node)
                return cast(fx.Node, _plain(names["input"], seen)), names.get("eps")
        elif isinstance(node, fx.Node) and node.op == "call_module" and len(node.args) == 1 and not node.kwargs:
            layer = owner.get_submodule(str(node.target))
            if type(layer) is nn.RMSNorm and layer.weight is None and len(layer.normalized_shape) == 1:
                if not _fused.has_hooks(layer) and "forward" not in layer.__dict__:
                    seen.append(node)
                    return cast(fx.Node, _plain(node.args[0], seen)), layer.eps
        if _calls(node, _QUOTIENTS) and len(node.args) == 2 and not node.kwargs:
            found = _root(node.args[1], (torch.sqrt, "sqrt"), seen)
            seen.append(node)
            return _same(node.args[0], found, seen)
        return None
    if len(factors) != 2:
        return None
    for value, root in (factors, factors[::-1]):
        found = _root(root, (torch.rsqrt, "rsqrt"), seen)
        if found is not None:
            return _same(value, found, seen)
    return None


def _same(value: Any, found: tuple[Any, float] | None, seen: list[fx.Node]) -> tuple[fx.Node, float] | None:
    value = _plain(value, seen)
    if found is None or found[0] is None or _plain(found[0], seen) is not value or not isinstance(value, fx.Node):
        return None
    return value, found[1]


def _match(owner: nn.Module, last: fx.Node) -> _Match | None:
    """Returns the gated residual norm whose sum is `last`."""
    if not _calls(last, _SUMS) or len(last.args) != 2 or last.kwargs:
        return None
    for x, product in (last.args, last.args[::-1]):
        seen: list[fx.Node] = []
        factors = _factors(product, seen)
        for i, factor in enumerate(factors):
            own = list(seen)
            gate = _gate(factor, own)
            norm = _norm(owner, factors[:i] + factors[i + 1 :], own) if gate is not None else None
            if gate is None or norm is None or not isinstance(x, fx.Node):
                continue
            nodes = {*own, last}
            inputs = (x, norm[0], gate[0])
            # Other nodes may use casts of an input, too. Such casts stay in the graph, outside of the launch.
            inner = {n for n in nodes if not (_calls(n, _CASTS) and n.args[0] in inputs and not set(n.users) <= nodes)}
            if any(n in inputs for n in inner) or any(not set(n.users) <= inner for n in inner if n is not last):
                continue
            ordered = tuple(n for n in last.graph.nodes if n in inner)
            if _may_write(ordered, inputs):
                continue
            return _Match(x, norm[0], gate[0], norm[1], gate[1], ordered)
    return None


def _may_write(nodes: tuple[fx.Node, ...], inputs: tuple[fx.Node, ...]) -> bool:
    """Returns whether any node among or between `nodes` may change an input that the launch reads later."""
    within = set(nodes)
    node = nodes[0]
    while node is not nodes[-1]:
        if node not in within and any(each in inputs for each in node.all_input_nodes):
            name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
            writes = name.endswith("_") or name in ("iadd", "imul", "isub", "itruediv", "setitem")
            if writes or node.op == "call_module":
                return True
        node = node.next
    return False


class GatedLaunch:
    """Computes one gated residual norm of a layer's forward: by the op where that is possible, else node by node."""

    def __init__(self, owner: nn.Module, chain: Gated, match: _Match) -> None:
        self.owner, self.chain = owner, chain
        self.op = _default.ops["kpkg::residual_tanh_gated_rmsnorm"]
        #: The inputs of its first call while it is watched.
        self.given: tuple[Tensor, Tensor, Tensor] | None = None
        self.is_watched = False
        graph = fx.Graph()
        copies = {
            node: graph.placeholder(name) for node, name in ((match.x, "x"), (match.y, "y"), (match.gate, "gate"))
        }
        for node in match.nodes:
            if node in match.views:  # the caller has applied the views to the gate
                copies[node] = copies[cast(fx.Node, node.args[0])]
            else:
                copies[node] = graph.node_copy(node, lambda each: self._source(graph, each, copies))
        graph.output(copies[match.nodes[-1]])
        self._apart = fx.GraphModule(owner, graph).forward

    def _source(self, graph: fx.Graph, node: fx.Node, copies: dict[fx.Node, fx.Node]) -> fx.Node:
        """Returns `node` in the copy, and copies casts or dtypes that other nodes of the forward need, too."""
        if node not in copies:
            copies[node] = graph.node_copy(node, lambda each: self._source(graph, each, copies))
        return copies[node]

    def holds(self, x: Tensor, y: Tensor, gate: Tensor) -> bool:
        """Returns whether the op computes the same as the forward: no gradient is recorded and nothing is cast."""
        if not self.op.is_available or not alike(x, y, gate) or torch.is_autocast_enabled(x.device.type):
            return False
        if x.shape != y.shape or not x.dim() or gate.dim() > x.dim():
            return False
        return not torch.is_grad_enabled() or not (x.requires_grad or y.requires_grad or gate.requires_grad)

    def together(self, x: Tensor, y: Tensor, gate: Tensor) -> Tensor:
        """Computes the norm by the op."""
        eps = torch.finfo(y.dtype).eps if self.chain.eps is None else self.chain.eps
        return cast(Tensor, self.op(x, y, gate, eps))

    def apart(self, x: Tensor, y: Tensor, gate: Tensor) -> Tensor:
        """Computes the norm as the forward does."""
        return cast(Tensor, self._apart(x, y, gate))

    def __call__(self, x: Tensor, y: Tensor, gate: Tensor) -> Tensor:
        """Computes the chain."""
        if self.is_watched:
            if self.given is None:
                self.given = (x.detach().clone(), y.detach().clone(), gate.detach().clone())
            return self.apart(x, y, gate)
        return self.together(x, y, gate) if self.holds(x, y, gate) else self.apart(x, y, gate)


def _caller(match: _Match) -> Callable[[fx.Graph, dict[fx.Node, fx.Node], Callable[..., Any]], fx.Node]:
    def make(graph: fx.Graph, copies: dict[fx.Node, fx.Node], function: Callable[..., Any]) -> fx.Node:
        gate = copies[match.gate]
        for view in match.views:
            before = gate
            gate = graph.node_copy(view, lambda each: before if each is view.args[0] else copies[each])
        return graph.call_function(function, (copies[match.x], copies[match.y], gate))

    return make


def find_gated(model: nn.Module, samples: Samples) -> list[tuple[str, _fused.Block, GatedLaunch]]:
    """Finds gated residual norms in forwards of layers, with the names of the layers."""
    found = []
    for name, owner in model.named_modules():
        if not samples.count.get(name):
            continue
        block = owner.__dict__.get("_kpkg_block")
        traced: _chains.Traced | None = block.traced if block is not None else _chains.trace(owner)
        if traced is None:
            continue
        for node in list(traced.graph.nodes):
            match = _match(owner, node)
            if match is None:
                continue
            block = block or _fused.Block(traced)
            names = ("tanh",) + ("rms_norm",) * any(_calls(n, (F.rms_norm, torch.rms_norm)) for n in match.nodes)
            chain = Gated(node.name, match.eps, names)
            traced.chains[chain] = list(match.nodes)
            traced.calls[chain] = _caller(match)
            found.append((name, block, GatedLaunch(owner, chain, match)))
    return found


def gate_all(injection: Injection, sample: Any, samples: Samples, wanted: Callable[[str, str], bool]) -> None:
    """Replaces each gated residual norm by one launch where that is right and not slower; adds rows."""
    found = [each for each in find_gated(injection.model, samples) if wanted(each[0], "residual_tanh_gated_rmsnorm")]
    if not found:
        return
    for _, block, launch in found:
        launch.is_watched = True
        block.put(launch)
    try:
        with torch.no_grad():
            _passes.repeatable(lambda: call(injection.model, sample))
    finally:
        for _, block, launch in found:
            launch.is_watched = False
            block.take_out(launch)
    for name, block, launch in found:
        row = Row(name, "x + rms_norm(y) * tanh(gate)", "residual_tanh_gated_rmsnorm", "", is_fold=True)
        row.calls, row._ops = samples.count[name], (launch.op.name,)
        injection.rows.append(row)
        _try(injection, row, block, launch)


def _try(injection: Injection, row: Row, block: _fused.Block, launch: GatedLaunch) -> None:
    given = launch.given
    if given is None:
        row.status = "kept: not used by the sample"
        return
    with torch.no_grad():
        if not launch.holds(*given) or not launch.op.supports(*given):
            row.keep_without_kernel(launch.op.reason, "dtypes, shapes and device")
            return
    injection._choose(
        row,
        ("gated", launch.chain.eps, *(signature(each) for each in given)),
        lambda: launch.apart(*given),
        lambda: launch.together(*given),
        block.replacement(launch),
    )
