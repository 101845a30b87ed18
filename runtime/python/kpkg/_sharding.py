"""Rules for ops on DTensors: placements of arguments and of results.

No rule needs communication in between.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard
from torch.distributed.tensor._op_schema import RuntimeSchemaInfo
from torch.distributed.tensor.experimental import register_sharding as _register

from kpkg._errors import KpkgWarning

# One way to run: placements of the results, and of all arguments (None for those that are no tensors).
Way = tuple[list[Any], list[Any]]

_registered: set[str] = set()

_ELEMENTWISE = (
    "relu leaky_relu gelu silu sigmoid tanh elu selu softplus hardtanh hardsigmoid hardswish mish softsign "
    "relu_autograd leaky_relu_autograd gelu_autograd silu_autograd sigmoid_autograd tanh_autograd elu_autograd "
    "selu_autograd softplus_autograd hardtanh_autograd hardsigmoid_autograd hardswish_autograd mish_autograd "
    "softsign_autograd"
).split()


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "tensor_meta") or isinstance(value, torch.Tensor)


def _placed(arguments: tuple[Any, ...], placement: Placement, only: int | None = None) -> list[Any]:
    """`placement` for each tensor, or for the one numbered `only` and Replicate() for the others."""
    return [
        None if not _is_tensor(a) else placement if only in (None, i) else Replicate() for i, a in enumerate(arguments)
    ]


def _elementwise(*arguments: Any) -> list[Way]:
    rank = arguments[0].ndim
    return [([p], _placed(arguments, p)) for p in (Replicate(), *(Shard(d) for d in range(rank)))]


def _along(position: int) -> Callable[..., list[Way]]:
    """Ops along the dimension that argument `position` names: any other may be sharded."""

    def ways(*arguments: Any) -> list[Way]:
        rank = arguments[0].ndim
        dim = (arguments[position] if len(arguments) > position else -1) % max(rank, 1)
        return [([p], _placed(arguments, p)) for p in (Replicate(), *(Shard(d) for d in range(rank) if d != dim))]

    return ways


def _norm(*arguments: Any) -> list[Way]:
    """(input, normalized_shape, ...): the rows may be sharded."""
    rows = arguments[0].ndim - len(arguments[1])
    return [([p], _placed(arguments, p, only=0)) for p in (Replicate(), *(Shard(d) for d in range(rows)))]


def _norm_gradient(*arguments: Any) -> list[Way]:
    """The placements of a norm's gradients: with sharded rows they are sums of parts.

    Arguments: (grad, input, normalized_shape, weight, eps, whether each result but the first is asked for).
    """
    rows = arguments[0].ndim - len(arguments[2])
    asked = arguments[5:]

    def results(first: Placement, others: Placement) -> list[Any]:
        return [first, *(others if is_asked else None for is_asked in asked)]

    found: list[Way] = [(results(Replicate(), Replicate()), _placed(arguments, Replicate()))]
    for d in range(rows):
        placements = [
            Shard(d) if i < 2 else None if not _is_tensor(a) else Replicate() for i, a in enumerate(arguments)
        ]
        found.append((results(Shard(d), Partial()), placements))
    return found


def _gemm(
    a: Any,
    b: Any,
    alpha: float = 1.0,
    beta: float = 1.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
    c: Any = None,
    bias: Any = None,
    activation: str = "none",
    precision: str = "",
) -> list[Way]:
    def way(result: Placement, of_a: Placement, of_b: Placement, of_c: Placement, of_bias: Placement) -> Way:
        added = [of_c if c is not None else None, of_bias if bias is not None else None]
        while added and added[-1] is None:
            added.pop()
        return [result], [of_a, of_b, *([None] * 4 if added else []), *added]

    def of_c(dim: int, extent: int) -> Placement:
        """`c` is broadcast to the result: it is sharded with it where it has the dimension."""
        own = dim - 2 + c.ndim if c is not None else -1
        return Shard(own) if own >= 0 and c.shape[own] == extent and extent > 1 else Replicate()

    m, n = a.shape[1 if transpose_a else 0], b.shape[0 if transpose_b else 1]
    ways = [
        way(Replicate(), Replicate(), Replicate(), Replicate(), Replicate()),
        way(Shard(0), Shard(1 if transpose_a else 0), Replicate(), of_c(0, m), Replicate()),
        way(Shard(1), Replicate(), Shard(0 if transpose_b else 1), of_c(1, n), Shard(0)),
    ]
    if c is None and bias is None and activation == "none":  # else that would be done once for each part
        ways.append(
            way(Partial(), Shard(0 if transpose_a else 1), Shard(1 if transpose_b else 0), Replicate(), Replicate())
        )
    return ways


def _linear(input: Any, weight: Any, bias: Any = None, *rest: Any) -> list[Way]:
    last = input.ndim - 1
    has_bias = bias is not None

    def way(result: Placement, of_input: Placement, of_weight: Placement, of_bias: Placement) -> Way:
        return [result], [of_input, of_weight, *([of_bias] if has_bias else [])]

    ways = [way(Replicate(), Replicate(), Replicate(), Replicate()), way(Shard(last), Replicate(), Shard(0), Shard(0))]
    ways += [way(Shard(d), Shard(d), Replicate(), Replicate()) for d in range(last)]
    if not has_bias:
        ways.append(way(Partial(), Shard(last), Shard(1), Replicate()))
    return ways


_RULES: dict[str, Callable[..., list[Way]]] = {
    **{name: _elementwise for name in _ELEMENTWISE},
    "softmax": _along(1), "log_softmax": _along(1), "softmax_autograd": _along(2), "log_softmax_autograd": _along(2),
    "layer_norm": _norm, "rms_norm": _norm, "layer_norm_autograd": _norm_gradient, "rms_norm_autograd": _norm_gradient,
    "gemm": _gemm, "linear": _linear,
}  # fmt: skip


def register_sharding() -> list[str]:
    """Makes kpkg's ops run on DTensors, by rules for their placements; gives their names.

    They are products, activations, softmax and norms.

    For the ops of the packages that are open now and of those of ``kpkg.ops``, which it opens, once in a process. Rows
    may be sharded everywhere; gemm and linear also over columns of the result and, without an addend, over the inner
    dimension, which leaves partial sums. Other ops are refused on DTensors by PyTorch. Warns where no package has any
    of them. Raises ImportError where PyTorch has no DTensor.
    """
    from kpkg import _default, _torch

    for name in _RULES:
        if f"kpkg::{name}" not in _torch._current_ops:
            _ = _default.ops[f"kpkg::{name}"].op  # which registers the ops of the package that has it
    for name in list(_torch._current_ops):
        namespace, _, local = name.partition("::")
        if namespace == "kpkg" and local in _RULES and name not in _registered:
            _registered.add(name)
            overload = getattr(torch.ops.kpkg, local).default
            _register(overload)(_RULES[local])
            _decide_by_all_arguments(overload)
    if not _registered:
        warnings.warn(
            "register_sharding found no op: put packages in KPKG_PATH, or load them before", KpkgWarning, stacklevel=2
        )
    return sorted(_registered)


def _decide_by_all_arguments(overload: Any) -> None:
    """Makes PyTorch keep the answers of a rule by all arguments.

    By itself it keeps them by the tensors and, for ops that its public function registers, by integers.
    """
    propagator: Any = DTensor._op_dispatcher.sharding_propagator
    kinds = [str(argument.type) for argument in overload._schema.arguments]
    first = next((i for i, kind in enumerate(kinds) if "Tensor" not in kind), len(kinds))
    propagator.register_op_strategy(
        overload, propagator.op_strategy_funcs[overload], RuntimeSchemaInfo(first, needs_pytree=True)
    )
