"""Replaces several layers of a model by one launch.

These are convolutions and linear layers with the steps behind them, and batch norms folded into convolutions.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from kpkg import _chains, _folding, _fused
from kpkg._injection import Injection, Replacement, Row, exchange, signature
from kpkg._samples import Samples


def _within(owner: str, name: str) -> str:
    return f"{owner}.{name}" if owner else name


def merge(
    injection: Injection, layers: dict[str, nn.Module], samples: Samples, wanted: Callable[[str, str], bool]
) -> set[str]:
    """Replaces chains and pairs of layers where that is right and not slower.

    Adds rows. Returns names of layers that nothing else is to replace.
    """
    done: set[str] = set()
    for name, found in traced_chains(injection.model, samples, layers, wanted):
        done.update(fuse_all(injection, name, found, samples))
    for pair in samples.pairs(layers):
        if pair[0] not in done:
            row = fold(injection, pair, layers, samples)
            injection.rows.append(row)
            done.update(pair if row.is_replaced else ())
    return done


def traced_chains(
    model: nn.Module, samples: Samples, layers: dict[str, nn.Module], wanted: Callable[[str, str], bool]
) -> list[tuple[str, _chains.Traced]]:
    """Returns the layers, with their names, whose forwards have chains that one launch can compute."""
    found = []
    for name, owner in model.named_modules():
        traced = _chains.traced(owner) if samples.count.get(name) == 1 else None
        for chain in list(traced.chains) if traced is not None else ():
            assert traced is not None, "it has chains"
            names = [_within(name, each) for each in chain.layers]
            fixed = [_within(name, each) for each in (chain.convolution, chain.norm) if each is not None]
            kinds = [type(owner.get_submodule(own)).__name__ for own in chain.layers]
            are_run = all(each in layers and samples.count.get(each) == 1 for each in fixed)
            if not are_run or not _fused.fuses(traced, chain) or not all(map(wanted, names, kinds)):
                del traced.chains[chain]
        if traced is not None and traced.chains:
            found.append((name, traced))
    return found


def fuse_all(injection: Injection, name: str, traced: _chains.Traced, samples: Samples) -> set[str]:
    """Replaces each chain of a layer's forward by one launch where that is right and not slower.

    Adds rows. Returns names of layers that nothing else is to replace.
    """
    block = _fused.Block(traced)
    done: set[str] = set()
    uses: dict[str, int] = {}
    for chain in traced.chains:
        row = _fuse(injection, name, block, chain, samples)
        injection.rows.append(row)
        if row.is_replaced:
            done.update(_within(name, each) for each in (chain.convolution, chain.norm) if each is not None)
            if chain.activation_layer is not None:
                layer = _within(name, chain.activation_layer)
                uses[layer] = uses.get(layer, 0) + 1
    return done | {layer for layer, count in uses.items() if samples.count.get(layer) == count}


def _fuse(injection: Injection, name: str, block: _fused.Block, chain: _chains.Chain, samples: Samples) -> Row:
    owner = block.traced.owner
    layers = [owner.get_submodule(each) for each in chain.layers]
    kinds = [type(layer).__name__ for layer in layers]
    if chain.activation_layer is None:
        kinds.append(f"{chain.activation}()")
    if chain.has_residual:
        kinds.insert(-1, "sum")
    launch = _fused.prepare(owner, chain)
    row = Row(
        " + ".join(_within(name, each) for each in chain.layers),
        " + ".join(kinds),
        f"{type(layers[0]).__name__}, one launch",
        "",
        is_fold=True,
        _ops=(launch._op.name,),
    )
    if _is_replaced(row, layers):
        return row
    input = samples.inputs[_within(name, chain.convolution)][0][0]
    with torch.no_grad():
        if not launch.supports(input) or not launch.holds_parameters():
            row.keep_without_kernel(launch.reason)
            return row
        between = type(layers[0]).forward(layers[0], input)
        residual = torch.randn_like(between) if chain.has_residual else None

    def original() -> Any:
        result = type(layers[0]).forward(layers[0], input)
        if chain.norm is not None:
            result = type(layers[1]).forward(layers[1], result)
        if residual is not None:
            result += residual
        if chain.activation_layer is None:
            return getattr(nn.functional, chain.activation)(result)
        return type(layers[-1]).forward(layers[-1], result)

    def compiled() -> Any:
        result = type(layers[0]).forward(layers[0], input)
        return torch.relu(result) if residual is None else torch.add(result, residual)

    kinds_of_layers = ((type(layer), layer.extra_repr()) for layer in layers)
    key = (chain.has_residual, chain.activation, *kinds_of_layers, signature(input))
    made = [each for each in (launch.convolution, launch.norm) if each is not None]
    parts = [exchange(injection.model, layer, each) for layer, each in zip(layers, made)]
    places = Replacement.of(*parts, block.replacement(launch))
    injection._choose(row, key, original, lambda: launch.together(input, residual), places, compiled)
    return row


def _is_replaced(row: Row, layers: Iterable[nn.Module]) -> bool:
    """Returns whether something else has replaced the forward of a layer, with a note in the row."""
    found = any("forward" in layer.__dict__ for layer in layers)
    if found:
        row.status = "kept: a forward was replaced by something else"
    return found


def fold(injection: Injection, pair: tuple[str, str], layers: dict[str, nn.Module], samples: Samples) -> Row:
    """Folds the batch norm of `pair` into its convolution where that is right and not slower; returns the row."""
    convolution, norm = (layers[name] for name in pair)
    row = Row(
        " + ".join(pair),
        f"{type(convolution).__name__} + {type(norm).__name__}",
        type(convolution).__name__,
        "",
        is_fold=True,
    )
    if _is_replaced(row, (convolution, norm)):
        return row
    first, second = _folding.folded(convolution, norm)
    row._ops = (first._kpkg_op.name,)
    args, kwargs = samples.inputs[pair[0]]
    given = next((a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)), None)
    with torch.no_grad():
        if given is None or not second._kpkg_fold.holds() or not first.supports(given.device, given.dtype):
            row.keep_without_kernel(first._kpkg_op.reason)
            return row

    def before() -> Any:
        return type(convolution).forward(convolution, *args, **kwargs)

    key = ("fold", convolution.extra_repr(), norm.extra_repr(), signature(given))
    injection._choose(
        row,
        key,
        lambda: type(norm).forward(norm, before()),
        lambda: first.forward(*args, **kwargs),
        Replacement.of(exchange(injection.model, convolution, first), exchange(injection.model, norm, second)),
        compiled=lambda: torch.relu(before()),
    )
    return row
