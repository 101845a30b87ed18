"""Computes global average pooling by the op of the convolution in front of it.

Finds layers whose results only the pooling reads, and the launches that compute these results.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, fx, nn

from kpkg import _chains, _fused
from kpkg._injection import Injection, Row, signature
from kpkg._samples import Samples


@dataclass(frozen=True)
class Pool:
    """Names a layer of `owner`, or one of its chains, and the pooling behind it.

    Names are relative to the owner. `inner` is the layer that contains the chain, or None if the chain is the owner's
    own.
    """

    inner: str | None
    chain: _chains.Chain
    layer: str


class PooledLaunch:
    """Computes the pooled result.

    It uses the launch of the chain where nothing else reads the chain's result; else it goes layer by layer.
    """

    def __init__(self, owner: nn.Module, pool: Pool, launch: _fused.Launch, between: tuple[str, ...]) -> None:
        """Takes in `between` the names of the layers whose result is also the launch's result."""
        self.owner, self.chain, self.launch = owner, pool, launch
        parents = [
            (owner.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2]) for name in (*between, pool.layer)
        ]
        self._places = [(parent._modules, name) for parent, name in parents]  # the places of the layers in the model

    def holds(self) -> bool:
        """Returns whether the pooling is unchanged, and no hook reads the tensors before it."""
        if torch.compiler.is_compiling():
            return False
        layers = [modules.get(name) for modules, name in self._places]
        return (
            is_global(layers[-1])
            and not any(layer is None or _fused.has_hooks(layer) for layer in layers)
            and not _fused.any_global_hooks()
        )

    def _before(self, input: Tensor, residual: Tensor | None) -> Tensor:
        """Returns the input of the pooling."""
        if self.chain.inner is None:
            return self.launch(input, residual)
        return cast(Tensor, self.owner.get_submodule(self.chain.inner)(input))

    def __call__(self, input: Tensor, residual: Tensor | None = None) -> Tensor:
        """Returns the result of the pooling."""
        if self.holds():
            result, has_pooled = self.launch.pooled(lambda: self._before(input, residual))
            if has_pooled:
                return result
        else:
            result = self._before(input, residual)
        return cast(Tensor, self.owner.get_submodule(self.chain.layer)(result))


def is_global(layer: nn.Module | None) -> bool:
    """Returns whether the layer computes one mean for each image and channel."""
    kind = getattr(type(layer), "torch_layer", type(layer))
    return kind is nn.AdaptiveAvgPool2d and cast(nn.AdaptiveAvgPool2d, layer).output_size in (1, (1, 1), [1, 1])


def _source(layer: nn.Module, names: tuple[str, ...]) -> tuple[_fused.Launch, tuple[str, ...]] | None:
    """Returns the launch whose only result is that of `layer`, and the layers on the way to it.

    The last one in `names` is `layer` itself.
    """
    block: _fused.Block | None = layer.__dict__.get("_kpkg_block")
    if block is not None:
        output = next(node for node in block.traced.graph.nodes if node.op == "output")
        last = output.args[0]
        if not isinstance(last, fx.Node) or len(last.users) != 1:
            return None
        for chain, launch in block.launches.items():
            if isinstance(launch, _fused.Launch) and block.traced.chains[chain][-1] is last:
                return launch, names
        following = str(last.target) if last.op == "call_module" else None
    else:
        following = (
            next(reversed(layer._modules), None)
            if type(layer).forward is nn.Sequential.forward and "forward" not in layer.__dict__
            else None
        )
    if following is None:
        return None
    return _source(layer.get_submodule(following), (*names, f"{names[-1]}.{following}"))


def _found(model: nn.Module, samples: Samples) -> Iterator[tuple[str, _fused.Block, PooledLaunch]]:
    """Finds poolings that a launch could compute, with the names of their owners and the owners' blocks."""
    for name, owner in list(model.named_modules()):
        if samples.count.get(name) != 1 or not any(is_global(layer) for layer in owner.children()):
            continue
        block = owner.__dict__.get("_kpkg_block")
        if block is None:
            traced = _chains.trace(owner)
            if traced is None:
                continue
            block = _fused.Block(traced)
        traced = block.traced
        ends = {
            nodes[-1]: chain
            for chain, nodes in traced.chains.items()
            if isinstance(block.launches.get(chain), _fused.Launch)
        }
        for node in traced.graph.nodes:
            if (
                node.op != "call_module"
                or not is_global(owner.get_submodule(str(node.target)))
                or len(node.args) != 1
                or node.kwargs
            ):
                continue
            before = node.args[0]
            if not isinstance(before, fx.Node) or list(before.users) != [node]:
                continue
            if before in ends:
                pool = Pool(None, ends[before], str(node.target))
                traced.chains[pool] = [*traced.chains[ends[before]], node]
                yield name, block, PooledLaunch(owner, pool, block.launches[ends[before]], ())
            elif before.op == "call_module" and len(before.args) == 1 and not before.kwargs:
                source = _source(owner.get_submodule(str(before.target)), (str(before.target),))
                if source is not None:
                    pool = Pool(str(before.target), source[0].chain, str(node.target))
                    traced.chains[pool] = [before, node]
                    yield name, block, PooledLaunch(owner, pool, *source)


def pool_all(injection: Injection, samples: Samples, wanted: Callable[[str, str], bool]) -> None:
    """Makes launches compute the means of their results where nothing else reads the results.

    Only where that is right and not slower. Adds rows.
    """
    names = {layer: name for name, layer in injection.model.named_modules()}

    def within(owner: nn.Module, name: str) -> str:
        return f"{names[owner]}.{name}" if names[owner] else name

    for _, block, pooled in list(_found(injection.model, samples)):
        launch, layer = pooled.launch, within(pooled.owner, pooled.chain.layer)
        convolution = within(launch.owner, launch.chain.convolution)
        if (
            not wanted(layer, "AdaptiveAvgPool2d")
            or not isinstance(launch.convolution, nn.Conv2d)
            or convolution not in samples.inputs
        ):
            continue
        kinds = [getattr(type(each), "torch_layer", type(each)).__name__ for each in launch.layers()]
        kinds = [kind.removeprefix("Folded") for kind in kinds]
        if launch.chain.has_residual:
            kinds.insert(-1, "sum")
        row = Row(
            " + ".join((*(within(launch.owner, each) for each in launch.chain.layers), layer)),
            " + ".join((*kinds, "AdaptiveAvgPool2d")),
            "Conv2d, its means",
            "",
            is_fold=True,
            _ops=(launch._op.name,),
        )
        injection.rows.append(row)
        _try(injection, row, block, pooled, samples.inputs[convolution][0][0])


def _try(injection: Injection, row: Row, block: _fused.Block, pooled: PooledLaunch, input: Tensor) -> None:
    launch = pooled.launch
    layer = pooled.owner.get_submodule(pooled.chain.layer)
    with torch.no_grad():
        if not launch.holds_parameters() or not launch.supports(input):
            row.keep_without_kernel(launch.reason)
            return
        if not launch.has_pool:
            row.status = "kept: the package's op has no argument pool"
            return
        residual = torch.randn_like(launch.together(input, None)) if launch.chain.has_residual else None

    def apart() -> Any:
        return layer(launch.together(input, residual))

    def together() -> Any:
        return launch.pooled(lambda: launch.together(input, residual))[0]

    chain = launch.chain
    key = "means", chain.has_residual, chain.activation, launch.convolution.extra_repr(), signature(input)
    injection._choose(row, key, apart, together, block.replacement(pooled))
