"""What the layers of a model get and give in one forward.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from kpkg import _adapted, _folding, _passes


def call(model: nn.Module, sample: Any) -> Any:
    if isinstance(sample, dict):
        return model(**sample)
    return model(*sample) if isinstance(sample, tuple) else model(sample)


class Samples:
    """What the layers of a model get in one forward: their first inputs, and the calls of functions that they make themselves."""

    def __init__(self) -> None:
        self.inputs: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {}
        self.calls: list[tuple[str, nn.Module, Callable[..., Any], list[tuple[Any, Any]]]] = []
        self.output: Any = None
        self.behind: dict[str, str] = {}  # by the name of a layer: of the convolution whose result it got
        self.count: dict[str, int] = {}

    def pairs(self, layers: dict[str, nn.Module]) -> list[tuple[str, str]]:
        """Names of convolutions and of the batch norms that may be folded into them."""
        return [
            (first, second)
            for second, first in self.behind.items()
            if first in layers and second in layers and self.count[first] == self.count[second] == 1 and _folding.folds(layers[first], layers[second])
        ]


def kept(value: Any) -> Any:
    """A copy that has no history, but wants a gradient where the original has one."""
    if not isinstance(value, Tensor):
        return value
    copy = value.detach().clone(memory_format=torch.preserve_format)
    return copy.requires_grad_() if value.requires_grad else copy


def take_samples(model: nn.Module, sample: Any, layers: dict[str, nn.Module], wanted: Callable[[str, str], bool]) -> Samples:
    samples = Samples()
    inside: list[tuple[str, nn.Module]] = []
    calls: dict[tuple[str, Any], int] = {}
    last: tuple[str, Any] = ("", None)  # the leaf that has run last, and its output

    def enter(name: str) -> Callable[..., None]:
        def hook(layer: nn.Module, args: Any, kwargs: Any) -> None:
            inside.append((name, layer))
            samples.count[name] = samples.count.get(name, 0) + 1
            if args and args[0] is last[1]:
                samples.behind[name] = last[0]
            if name in layers and name not in samples.inputs:
                samples.inputs[name] = tuple(kept(a) for a in args), {k: kept(v) for k, v in kwargs.items()}

        return hook

    def leave(layer: nn.Module, args: Any, output: Any) -> None:
        nonlocal last
        name, _ = inside.pop()
        if next(layer.children(), None) is None:
            last = (name, output)

    def found(function: Any, args: Any, kwargs: Any) -> None:
        name, layer = inside[-1]
        if not wanted(name, function.__name__):
            return
        if (name, function) not in calls:
            calls[name, function] = len(samples.calls)
            samples.calls.append((name, layer, function, []))
        taken = samples.calls[calls[name, function]][3]
        taken.append((tuple(kept(a) for a in args), {k: kept(v) for k, v in kwargs.items()}))

    hooks = []
    for name, layer in model.named_modules():
        hooks.append(layer.register_forward_pre_hook(enter(name), with_kwargs=True))
        hooks.append(layer.register_forward_hook(leave, always_call=True))
    try:
        with torch.set_grad_enabled(_passes.is_trained(model)), _adapted.Watching(found):
            samples.output = kept(_passes.repeatable(lambda: call(model, sample)))
    finally:
        for hook in hooks:
            hook.remove()
    return samples
