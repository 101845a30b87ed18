"""Records the inputs and outputs of a model's layers in one forward.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils import _pytree

from kpkg import _folding, _passes
from kpkg._call_forms import Call
from kpkg._calls import Watching
from kpkg._injection import signature


def call(model: nn.Module, sample: Any) -> Any:
    if isinstance(sample, dict):
        return model(**fresh(sample))
    return model(*fresh(sample)) if isinstance(sample, tuple) else model(sample)


def _is_state(value: Any) -> bool:
    """Returns whether a forward writes to `value`, as to a key-value cache of Hugging Face's models."""
    return hasattr(value, "get_seq_length") and hasattr(value, "update")


def fresh(value: Any) -> Any:
    """Returns the same arguments, with copies of the arguments that a forward writes to."""
    if isinstance(value, dict):
        return {name: copy.deepcopy(each) if _is_state(each) else each for name, each in value.items()}
    return tuple(copy.deepcopy(each) if _is_state(each) else each for each in value)


@dataclass
class Calls:
    """Counts the calls of functions of one kind that a layer makes itself, by their arguments."""

    name: str
    owner: nn.Module
    call: Call
    counts: Counter[Any] = field(default_factory=Counter)


class Samples:
    """Records the calls of a model's layers in one forward.

    It has their first inputs, and the calls of functions that they make themselves.
    """

    def __init__(self) -> None:
        self.inputs: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {}
        self.calls: dict[tuple[str, Call], Calls] = {}
        # For calls that agree in everything that their time depends on: function and arguments of the first. All layers
        # of a deep network share them.
        self.arguments: dict[Any, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {}
        self.output: Any = None
        self.behind: dict[str, str] = {}  # by the name of a layer: the layer whose result it got
        self.count: dict[str, int] = {}

    def pairs(self, layers: dict[str, nn.Module]) -> list[tuple[str, str]]:
        """Returns names of convolutions and of the batch norms that may be folded into them."""
        return [
            (first, second)
            for second, first in self.behind.items()
            if first in layers
            and second in layers
            and self.count[first] == self.count[second] == 1
            and _folding.folds(layers[first], layers[second])
        ]


def kept(value: Any) -> Any:
    """Returns a copy without history, which requires a gradient where the original does.

    Parameters are not copied.
    """
    if _is_state(value):
        return copy.deepcopy(value)
    if isinstance(value, PackedSequence):
        return PackedSequence(*(kept(each) for each in value))
    if isinstance(value, (tuple, list)) and any(isinstance(each, Tensor) for each in value):
        return type(value)(kept(each) for each in value) if type(value) in (tuple, list) else value
    if not isinstance(value, Tensor) or isinstance(value, nn.Parameter):
        return value
    made = value.detach().clone(memory_format=torch.preserve_format)
    return made.requires_grad_() if value.requires_grad else made


def _in_tensors(args: Any, kwargs: Any) -> Any:
    """Returns the properties of the arguments that the time of a call depends on."""
    leaves, spec = _pytree.tree_flatten((args, kwargs))
    return (str(spec), *(signature(leaf) for leaf in leaves))


def take_samples(
    model: nn.Module, sample: Any, layers: dict[str, nn.Module], wanted: Callable[[str, str], bool]
) -> Samples:
    samples = Samples()
    inside: list[tuple[str, nn.Module]] = []
    last: tuple[str, Any] = ("", None)  # the name of the leaf that ran last, and its output

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

    def found(call: Call, function: Any, args: Any, kwargs: Any) -> None:
        if not inside or not wanted(inside[-1][0], call.name):
            return
        name, layer = inside[-1]
        key = (call, _in_tensors(args, kwargs))
        if key not in samples.arguments:
            given = tuple(kept(a) for a in args), {k: kept(v) for k, v in kwargs.items()}
            samples.arguments[key] = (function, *given)
        samples.calls.setdefault((name, call), Calls(name, layer, call)).counts[key] += 1

    hooks = []
    for name, layer in model.named_modules():
        hooks.append(layer.register_forward_pre_hook(enter(name), with_kwargs=True))
        hooks.append(layer.register_forward_hook(leave, always_call=True))
    try:
        with torch.set_grad_enabled(_passes.is_trained(model)), Watching(found):
            samples.output = kept(_passes.repeatable(lambda: call(model, sample)))
    finally:
        for hook in hooks:
            hook.remove()
    return samples
