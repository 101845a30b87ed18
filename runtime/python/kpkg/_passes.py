"""Runs iterations of a layer or model: a forward, and in training mode a backward, too.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree


def is_trained(layer: nn.Module) -> bool:
    """Returns whether iterations of the layer have backwards.

    They do in training mode, if the layer has parameters that require gradients.
    """
    return layer.training and any(p.requires_grad for p in layer.parameters())


@contextlib.contextmanager
def unchanged(model: nn.Module) -> Iterator[None]:
    """Restores random numbers, and the buffers of layers in training mode, which forwards may write to."""
    saved = [
        (b, b.detach().clone()) for layer in model.modules() if layer.training for b in layer.buffers(recurse=False)
    ]
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()  # a seed is set on all devices
    with torch.random.fork_rng(devices):
        try:
            yield
        finally:
            with torch.no_grad():
                for buffer, value in saved:
                    buffer.copy_(value)


def repeatable(run: Callable[[], Any]) -> Any:
    """Returns the result of `run` with random numbers that are the same each time."""
    torch.manual_seed(0)
    return run()


def floats(value: Any) -> list[Tensor]:
    """Returns the tensors in `value` that may have gradients."""
    tensors = (leaf for leaf in _pytree.tree_leaves(value) if isinstance(leaf, Tensor))
    return [tensor for tensor in tensors if tensor.is_floating_point() or tensor.is_complex()]


def _gradient_of(result: Tensor) -> Tensor:
    """Returns the same numbers for each result of this shape, in the memory format of the result.

    They are made on the result's device, since hosts take longer for them than for all the rest.
    """
    generator = torch.Generator(result.device).manual_seed(0)
    dtype = torch.promote_types(result.dtype, torch.float32)
    return torch.empty_like(result, requires_grad=False).copy_(
        torch.randn(result.shape, generator=generator, device=result.device, dtype=dtype)
    )


def with_gradients(run: Callable[[], Any], wanted: list[Tensor]) -> Callable[[], Any]:
    """Returns a function that computes the results of `run` and the gradients of `wanted`.

    Gradients of the results are the same for each `run`. `.grad` stays unchanged.
    """
    # In the memory format of the results, and of both signs: the sum of a softmax has no gradient.
    given: list[Tensor] = []

    def both() -> Any:
        with torch.enable_grad():
            result = run()
            is_tensor = isinstance(result, Tensor)  # most layers return one tensor, which needs no search for others
            ends = [t for t in ([result] if is_tensor else floats(result)) if t.requires_grad]
            if not ends or not wanted:
                return result
            if [g.shape for g in given] != [t.shape for t in ends]:
                given[:] = [_gradient_of(t) for t in ends]
            found = torch.autograd.grad(ends, wanted, given, allow_unused=True)
        if is_tensor:
            return result.detach(), found
        return _pytree.tree_map(lambda t: t.detach() if isinstance(t, Tensor) else t, result), found

    return both


def iteration(layer: nn.Module, run: Callable[[], Any], inputs: Any = ()) -> Callable[[], Any]:
    """Returns an iteration of a layer or model: `run`, and in training mode the gradients.

    These are the gradients of its parameters and of the `inputs` that require some.
    """
    wanted = [t for t in (*floats(inputs), *layer.parameters()) if t.requires_grad]
    if layer.training and wanted:
        return with_gradients(run, wanted)

    def forward() -> Any:
        with torch.no_grad():
            return run()

    return forward
