"""Makes forwards in which one launch computes a layer and the steps behind it.

The steps behind a convolution are a batch norm, a sum and an activation; behind a linear layer, a sum and an
activation.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextvars
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, fx, nn
from torch.nn.modules import module as _module

from kpkg import _default, _folding
from kpkg import nn as kpkg_nn
from kpkg._chains import Chain, Traced, activation_of
from kpkg._errors import restored
from kpkg._injection import Replacement


def has_hooks(layer: nn.Module) -> bool:
    return bool(layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks or layer._backward_pre_hooks)


def any_global_hooks() -> bool:
    kinds = "forward_hooks forward_pre_hooks backward_hooks backward_pre_hooks".split()
    return any(getattr(_module, f"_global_{kind}") for kind in kinds)


@dataclasses.dataclass
class _Means:
    """Asks a launch for the means of its result in place of all pixels."""

    launch: Launch
    were_made: bool = False


# Each thread has its own: another thread that runs the same model may want all pixels.
_asked: contextvars.ContextVar[_Means | None] = contextvars.ContextVar("_asked", default=None)


class Launch:
    """Computes one chain of a layer's forward: in one launch where that is possible, else layer by layer."""

    def __init__(self, owner: nn.Module, chain: Chain, convolution: kpkg_nn.Layer, norm: nn.Module | None) -> None:
        self.owner, self.chain, self.convolution, self.norm = owner, chain, convolution, norm
        self._op = _default.ops[f"{convolution.kpkg_ops[0]}_fused"]
        self._sizes: dict[torch.Size, list[int]] = {}
        parents = [(owner.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2]) for name in chain.layers]
        self._places = [(parent._modules, name) for parent, name in parents]  # the places of the layers in the model

    def _stays(self) -> bool:
        """Returns whether the layers are still those of the chain, and no hook reads their intermediate results."""
        if torch.compiler.is_compiling():
            layers = [self.owner.get_submodule(name) for name in self.chain.layers]
        else:
            layers = [modules.get(name) for modules, name in self._places]
        if layers[0] is not self.convolution or self.norm is not None and layers[1] is not self.norm:
            return False
        if any(layer is None or has_hooks(layer) for layer in layers) or any_global_hooks():
            return False
        return self.chain.activation_layer is None or activation_of(layers[-1]) == self.chain.activation

    def _is_plain(self, input: Tensor, residual: Tensor | None) -> bool:
        """Returns whether nothing is recorded or cast, and all tensors have one dtype and device."""
        if not isinstance(input, Tensor) or torch.is_autocast_enabled(input.device.type):
            return False
        if residual is not None and (
            not isinstance(residual, Tensor) or residual.dtype != input.dtype or residual.device != input.device
        ):
            return False
        parameters = self.convolution._parameters
        weight = parameters.get("weight")
        if weight is None or weight.dtype != input.dtype:
            return False
        given = (input, residual, *parameters.values())
        return not torch.is_grad_enabled() or not any(t is not None and t.requires_grad for t in given)

    def holds(self, input: Tensor, residual: Tensor | None) -> bool:
        """Returns whether one launch computes the same as the layers for this input."""
        if not self._op.is_available or not self._stays() or not self._is_plain(input, residual):
            return False
        return self.holds_parameters() and (residual is None or list(residual.shape) == self._shape(input))

    def holds_parameters(self) -> bool:
        """Returns whether kpkg runs the convolution, with the norm folded into it."""
        convolution = self.convolution
        if self.norm is not None:
            return bool(self.norm._kpkg_fold.holds())
        return convolution._kpkg_wanted and not convolution._stands_back()

    def _shape(self, input: Tensor) -> list[int]:
        """Returns the shape of the convolution's result."""
        if torch.compiler.is_compiling():
            return self._size(input.shape)
        if input.shape not in self._sizes:
            self._sizes[input.shape] = self._size(input.shape)
        return self._sizes[input.shape]

    def _size(self, shape: torch.Size) -> list[int]:
        layer: Any = self.convolution
        size = list(shape)
        if isinstance(layer, nn.Linear):
            return [*size[:-1], layer.out_features]
        named = isinstance(layer.padding, str)
        for i, (taps, stride, dilation) in enumerate(zip(layer.kernel_size, layer.stride, layer.dilation)):
            at = len(size) - len(layer.kernel_size) + i
            reach = {"same": dilation * (taps - 1), "valid": 0}
            padding = reach[layer.padding] if named else 2 * layer.padding[i]
            size[at] = (size[at] + padding - dilation * (taps - 1) - 1) // stride + 1
        size[-len(layer.kernel_size) - 1] = layer.out_channels
        return size

    def together(self, input: Tensor, residual: Tensor | None) -> Tensor:
        """Computes the chain in one launch."""
        arguments = self._with_end(self.convolution._arguments(input), residual)
        op = self._op._op
        if op is None or op._default is None:
            return cast(Tensor, self._op(*arguments))
        try:  # a direct call, without a check of each argument: none of them wants a gradient
            return cast(Tensor, op._default(*arguments))
        except RuntimeError as error:
            raise restored(error) from None

    def pooled(self, run: Callable[[], Tensor]) -> tuple[Tensor, bool]:
        """Returns the result of `run` with this launch's means, and whether they were made.

        The launch then gives the mean of each image and channel, with extents of 1.
        """
        means = _Means(self)
        token = _asked.set(means)
        try:
            return run(), means.were_made
        finally:
            _asked.reset(token)

    def layers(self) -> list[nn.Module]:
        """Returns the layers that stand in the model at the chain's places now."""
        return [self.owner.get_submodule(name) for name in self.chain.layers]

    def _with_end(self, arguments: tuple[Any, ...], residual: Tensor | None) -> tuple[Any, ...]:
        """Returns the arguments of the fused op, from the arguments of the layer's op."""
        x, weight, bias, *rest = arguments
        if not rest:
            return x, weight, bias, residual, self.chain.activation
        arguments = x, weight, bias, residual, *rest[:-1], self.chain.activation, rest[-1]
        means = None if torch.compiler.is_compiling() else _asked.get()
        if means is None or means.launch is not self:
            return arguments
        means.were_made = True
        return *arguments, "mean"

    def apart(self, input: Tensor, residual: Tensor | None) -> Tensor:
        """Computes the chain layer by layer."""
        owner, chain = self.owner, self.chain
        result = cast(Tensor, owner.get_submodule(chain.convolution)(input))
        if chain.norm is not None:
            result = owner.get_submodule(chain.norm)(result)
        if residual is not None:
            result = result + residual
        if chain.activation_layer is not None:
            return cast(Tensor, owner.get_submodule(chain.activation_layer)(result))
        return cast(Tensor, getattr(nn.functional, chain.activation)(result))

    def __call__(self, input: Tensor, residual: Tensor | None = None) -> Tensor:
        """Computes the chain for `input` and, where the chain has a sum, `residual`."""
        return self.together(input, residual) if self.holds(input, residual) else self.apart(input, residual)

    def supports(self, input: Tensor) -> bool:
        """Returns whether a package has a kernel for inputs of this device and dtype."""
        convolution = self.convolution
        if not self._op.is_available or not convolution.supports(input.device, input.dtype):
            return False
        return self._op.supports(*self._with_end(convolution._example(input.device, input.dtype), None))

    @property
    def has_pool(self) -> bool:
        """Returns whether the package's op can give means: the op of older packages cannot."""
        return self._op.op is not None and any(argument.name == "pool" for argument in self._op.op.arguments)

    @property
    def reason(self) -> str:
        """Returns why no package has the op, or an empty string."""
        return self._op.reason or self.convolution._kpkg_op.reason


def fuses(traced: Traced, chain: Chain) -> bool:
    """Returns whether one launch computes the same as the layers in their current modes."""
    convolution = traced.owner.get_submodule(chain.convolution)
    return chain.norm is None or _folding.folds(convolution, traced.owner.get_submodule(chain.norm))


def prepare(owner: nn.Module, chain: Chain) -> Launch:
    """Returns a launch for a chain, with layers for the places of its convolution and norm."""
    convolution = owner.get_submodule(chain.convolution)
    if chain.norm is None:
        return Launch(owner, chain, kpkg_nn.replacements()[type(convolution)].from_torch(convolution), None)
    return Launch(owner, chain, *_folding.folded(convolution, owner.get_submodule(chain.norm)))


def _function(launch: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Returns the launch as a function, which graphs may call."""

    def run(*inputs: Tensor) -> Tensor:
        return launch(*inputs)

    return run


class Block:
    """Holds a layer whose forward has chains, and the chains that are launches now."""

    def __init__(self, traced: Traced) -> None:
        self.traced = traced
        self.launches: dict[Any, Any] = {}  # by chain; the launches of `_pooled` by pool
        # Forwards by their chains. The same chains get the same function, since torch.compile would take another one
        # for a change.
        self._made: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._run: Callable[..., Any] | None = None

    def put(self, launch: Any) -> None:
        """Makes the owner's forward use this launch from now on."""
        owner = self.traced.owner
        if not self.launches:
            owner._kpkg_block = self
            owner.__class__ = fused_class(type(owner))  # type: ignore[arg-type]  # mypy takes no type for hashable
        self.launches[launch.chain] = launch
        self._make()

    def take_out(self, launch: Any) -> None:
        """Makes the owner's forward compute the launch's chain without it from now on."""
        owner = self.traced.owner
        del self.launches[launch.chain]
        if not self.launches:
            owner.__class__ = type(owner)._kpkg_plain
            del owner._kpkg_block
        else:
            self._make()

    def replacement(self, launch: Any) -> Replacement:
        """Returns the replacement of a chain by this launch."""
        return Replacement(functools.partial(self.put, launch), functools.partial(self.take_out, launch))

    def _make(self) -> None:
        chains = tuple(chain for chain in self.traced.chains if chain in self.launches)
        if chains not in self._made:
            self._made[chains] = type(fx.GraphModule(self.traced.owner, self._graph())).forward
        self._run = self._made[chains]

    def forward(self) -> Callable[..., Tensor]:
        """Returns the owner's forward with its launches: a function of the owner and its inputs."""
        assert self._run is not None, "it has launches"
        return self._run

    def _graph(self) -> fx.Graph:
        graph = fx.Graph()
        copies: dict[fx.Node, fx.Node] = {}
        chosen = {chain: nodes for chain, nodes in self.traced.chains.items() if chain in self.launches}
        # The launch of a pool contains the chain whose result it pools.
        ends = {
            nodes[-1]: (chain, nodes)
            for chain, nodes in chosen.items()
            if not any(len(nodes) < len(other) and set(nodes) <= set(other) for other in chosen.values())
        }
        within = {node for _, nodes in ends.values() for node in nodes}
        for node in self.traced.graph.nodes:
            if node in ends:
                chain, nodes = ends[node]
                function = _function(self.launches[chain])
                if chain in self.traced.calls:
                    copies[node] = self.traced.calls[chain](graph, copies, function)
                    continue
                sums = ((each, nodes[i - 1]) for i, each in enumerate(nodes) if len(each.args) == 2)
                residuals = (a for each, before in sums for a in each.args if a is not before)
                given = (cast(fx.Node, each) for each in (nodes[0].args[0], *residuals))
                copies[node] = graph.call_function(function, tuple(copies[each] for each in given))
            elif node not in within:
                copies[node] = graph.node_copy(node, lambda each: copies[each])
        return graph


class _Fused:
    """Makes launches in the forward of a layer; it stands before the layer's class among the bases."""

    _kpkg_plain: type[nn.Module]
    _kpkg_block: Block

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the layer's forward with its launches, or as it is where its trace no longer holds."""
        traced = self._kpkg_block.traced
        if traced.owner is not self or not traced.holds():
            return super().forward(*args, **kwargs)  # type: ignore[misc]
        return self._kpkg_block.forward()(self, *args, **kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Makes copies that are plain layers again."""
        state = {k: v for k, v in self.__dict__.items() if not k.startswith("_kpkg")}
        return _plain, (self._kpkg_plain,), state


def _plain(kind: type[nn.Module]) -> nn.Module:
    return kind.__new__(kind)  # type: ignore[call-overload]  # not `type` itself


@functools.cache
def fused_class(kind: type[nn.Module]) -> type[nn.Module]:
    """Returns a subclass of `kind` with launches in its forward."""
    return type(
        kind.__name__, (_Fused, kind), {"_kpkg_plain": kind, "__module__": kind.__module__, "__doc__": kind.__doc__}
    )
