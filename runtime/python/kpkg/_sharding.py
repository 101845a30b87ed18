"""Registers sharding rules for ops on DTensors: placements of arguments and of results.

No rule needs communication within an op.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard
from torch.distributed.tensor._op_schema import RuntimeSchemaInfo
from torch.distributed.tensor.experimental import register_sharding as _register

from kpkg._errors import KpkgWarning
from kpkg._op import Op

# One way to run an op: placements of the results, and of all arguments (None for arguments that are no tensors).
Way = tuple[list[Any], list[Any]]

_registered: set[str] = set()

_ROWS = ("elementwise", "last", "along", "trailing")


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "tensor_meta") or isinstance(value, torch.Tensor)


def _whole(op: Op, arguments: tuple[Any, ...]) -> Way:
    return [Replicate() for _ in op.result_types], [Replicate() if _is_tensor(a) else None for a in arguments]


def _by_shape(arguments: tuple[Any, ...], placement: Placement) -> list[Any]:
    """Returns `placement` for tensors of the first tensor's shape, and Replicate() for others."""
    shape = arguments[0].shape
    return [None if not _is_tensor(a) else placement if a.shape == shape else Replicate() for a in arguments]


def _free_dimensions(forward: Op, rank: int, extent: Any) -> list[int]:
    """Returns the dimensions over which `forward` is independent. `extent` is the argument that `dimensions` names."""
    kind = forward.rules.dimensions
    if kind == "along":
        return [d for d in range(rank) if d != extent % max(rank, 1)]
    return list(range({"elementwise": rank, "last": rank - 1, "trailing": rank - len(extent or ())}[kind]))


def _extent_position(forward: Op) -> int | None:
    return next((i for i, a in enumerate(forward.arguments) if a.name == forward.rules.extent), None)


def _value(op: Op, arguments: tuple[Any, ...], position: int | None) -> Any:
    if position is None:
        return None
    return arguments[position] if position < len(arguments) else op.arguments[position].default


def _of_rows(op: Op, arguments: tuple[Any, ...]) -> list[Way]:
    """Shards tensors of the first tensor's shape over its free dimensions, and replicates others."""
    alike = all(a.shape == arguments[0].shape for a in arguments if _is_tensor(a))
    if len(op.result_types) > 1 or (op.rules.dimensions == "elementwise" and not alike):
        return [_whole(op, arguments)]
    free = _free_dimensions(op, arguments[0].ndim, _value(op, arguments, _extent_position(op)))
    return [([p], _by_shape(arguments, p)) for p in (Replicate(), *map(Shard, free))]


def _of_row_gradients(forward: Op, op: Op, arguments: tuple[Any, ...]) -> list[Way]:
    """Shards the gradients of `forward`, which `op` computes. With sharded rows, gradients of other shapes are
    partial."""
    sources = list(forward.backward_arguments)
    tensors = [i for i, a in enumerate(forward.arguments) if a.is_tensor]
    is_elementwise = forward.rules.dimensions == "elementwise"
    alike = all(a.shape == arguments[0].shape for a in arguments if _is_tensor(a))
    if ("result", 1) in sources or (is_elementwise and not alike):
        return [_whole(op, arguments)]

    def results(first: Placement, others: Placement) -> list[Any]:
        asked = [sources.index(("needs", i)) if ("needs", i) in sources else None for i in tensors]
        is_asked = [True if position is None else arguments[position] for position in asked]
        return [(others if k else first) if wanted else None for k, wanted in enumerate(is_asked)]

    position = _extent_position(forward)
    extent = None if position is None else _value(op, arguments, sources.index(("argument", position)))
    found: list[Way] = [(results(Replicate(), Replicate()), _by_shape(arguments, Replicate()))]
    for d in _free_dimensions(forward, arguments[0].ndim, extent):
        found.append((results(Shard(d), Shard(d) if is_elementwise else Partial()), _by_shape(arguments, Shard(d))))
    return found


def _of_product(op: Op, arguments: tuple[Any, ...]) -> list[Way]:
    """Shards products of the first two tensors, [..., m, k] by [k, n] or, for a linear layer, by [n, k].

    Rows and columns may be sharded, together with addends that have them. The inner dimension may be sharded if the
    sums are the result, without addend or activation.
    """
    given = {a.name: v for a, v in zip(op.arguments, arguments)}
    a, b = arguments[:2]
    is_linear = op.rules.dimensions == "linear"
    of_rows, of_inner = (0, 1) if not given.get("transpose_a") else (1, 0)
    b_inner, b_columns = (1, 0) if is_linear or given.get("transpose_b") else (0, 1)
    rank = a.ndim
    shape = [*a.shape[:-1], b.shape[0]] if is_linear else [a.shape[of_rows], b.shape[b_columns]]

    def addend(value: Any, dim: int | None) -> Placement:
        """Returns the placement of an addend, which broadcasts to the result: sharded if it has the dimension."""
        own = -1 if dim is None else dim - rank + value.ndim
        return Shard(own) if dim is not None and own >= 0 and value.shape[own] == shape[dim] > 1 else Replicate()

    def way(result: Placement, of_a: Placement, of_b: Placement) -> Way:
        dim = result.dim if isinstance(result, Shard) else None
        rest = [addend(value, dim) if _is_tensor(value) else None for value in arguments[2:]]
        return [result], [of_a, of_b, *rest]

    ways = [_whole(op, arguments)]
    for d in range(rank - 1):
        ways.append(way(Shard(d), Shard(d if is_linear else of_rows), Replicate()))
    ways.append(way(Shard(rank - 1), Replicate(), Shard(b_columns)))
    if not any(_is_tensor(value) for value in arguments[2:]) and given.get("activation", "none") == "none":
        ways.append(way(Partial(), Shard(rank - 1 if is_linear else of_inner), Shard(b_inner)))
    return ways


def _rule(op: Op) -> Callable[[tuple[Any, ...]], list[Way]] | None:
    """Returns the rule of an op, or of an op that computes the gradients of another."""
    if op.rules.dimensions in ("product", "linear"):
        return partial(_of_product, op)
    if op.rules.dimensions in _ROWS:
        return partial(_of_rows, op)
    forward = next((each for each in op._library._ops.values() if each.gradient == op.name), None)
    return partial(_of_row_gradients, forward, op) if forward and forward.rules.dimensions in _ROWS else None


def register_sharding() -> list[str]:
    """Makes ops run on DTensors, by the dimensions that their packages declare. Returns the names of these ops.

    It applies to the ops of packages that are open now, and of ``kpkg.ops``, whose packages it opens, once in a
    process. Rows may always be sharded. Products may also be sharded over columns of the result. Without an addend they
    may be sharded over the inner dimension, with partial sums. PyTorch refuses other ops on DTensors. Warns if no
    package has such ops. Raises ImportError if PyTorch has no DTensor.
    """
    from kpkg import _default, _torch

    for op in itertools.chain.from_iterable(_default._packages.libraries()):
        if op.rules.dimensions:
            _ = _default.ops[op.name].op  # registers the ops of the package that has it
    for name, op in list(_torch._current_ops.items()):
        if name == op.name and name not in _registered and _rule(op) is not None:
            _registered.add(name)
            overload = op._torch.default

            def ways(*arguments: Any, name: str = name) -> list[Way]:
                rule = _rule(_torch._current_ops[name])  # another library may have taken the name
                return [_whole(_torch._current_ops[name], arguments)] if rule is None else rule(arguments)

            _register(overload)(ways)
            _decide_by_all_arguments(overload)
    if not _registered:
        warnings.warn(
            "register_sharding found no op: put packages in KPKG_PATH, or load them before", KpkgWarning, stacklevel=2
        )
    return sorted(_registered)


def _decide_by_all_arguments(overload: Any) -> None:
    """Makes PyTorch cache the results of a rule by all arguments.

    By default it caches them by tensors and, for ops that its public function registers, by integers.
    """
    propagator: Any = DTensor._op_dispatcher.sharding_propagator
    kinds = [str(argument.type) for argument in overload._schema.arguments]
    first = next((i for i, kind in enumerate(kinds) if "Tensor" not in kind), len(kinds))
    propagator.register_op_strategy(
        overload, propagator.op_strategy_funcs[overload], RuntimeSchemaInfo(first, needs_pytree=True)
    )
