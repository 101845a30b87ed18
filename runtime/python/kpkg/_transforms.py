"""Implements autocast and vmap: dtypes of ops under torch.autocast, and calls of ops with an additional dimension.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import torch
from torch import Tensor

from kpkg._op import Op

# ---- autocast: as PyTorch does for its op of the same work -----------------------------------------------------------

# Autocast's rules for float arguments on the CPU and on CUDA devices, by the dispatcher's name. A rule is a dtype, a
# function that returns it, or a word that decides for arguments of several dtypes. A rule for some arguments only is a
# pair with their positions.
casts: dict[str, list[Any]] = {}


def follow_autocast(name: str, op: Op) -> None:
    """Sets the entry of `name` in the table of casts to the rules of `op`."""
    casts.setdefault(name, [])[:] = (_cast_of(op, device) for device in ("cpu", "cuda"))


def _cast_of(op: Op, device: str) -> Any:
    word, *names = op.rules.autocast.get(device, "promote").split()
    known = {"lower": partial(torch.get_autocast_dtype, device), "float32": torch.float32}
    cast = known.get(word, word if word in ("first", "keep") else "promote")
    return (cast, {i for i, a in enumerate(op.arguments) if a.name in names}) if names else cast


#: The dtypes that autocast changes. float64 and 8-bit floats are not among them.
CAST = (torch.float32, torch.float16, torch.bfloat16)


def _autocast_dtype(cast: Any, tensors: list[Tensor]) -> torch.dtype | None:
    """Returns the dtype to which float arguments are cast, or None if they keep their dtypes."""
    if not isinstance(cast, str):
        return cast() if callable(cast) else cast
    dtypes = [t.dtype for t in tensors if t.dtype in CAST]
    if cast == "keep" or len(set(dtypes)) < 2:
        return None
    return dtypes[0] if cast == "first" else reduce(torch.promote_types, dtypes)


def _cast(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype) if isinstance(value, Tensor) and value.dtype in CAST and value.dtype != dtype else value


def register_autocast(name: str, fragment: torch.library.Library) -> None:
    """Makes `name` of the dispatcher follow torch.autocast on the CPU and on CUDA devices by the table of casts."""
    namespace, _, local = name.partition("::")
    overload = getattr(getattr(torch.ops, namespace), local).default

    def kernel(index: int, key: torch._C.DispatchKeySet) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            entry = casts[name][index]
            cast, positions = entry if isinstance(entry, tuple) else (entry, range(len(args)))
            dtype = _autocast_dtype(cast, [a for i, a in enumerate(args) if i in positions and isinstance(a, Tensor)])
            if dtype is not None:
                args = tuple(_cast(a, dtype) if i in positions else a for i, a in enumerate(args))
            with torch._C._ExcludeDispatchKeyGuard(key):
                return overload(*args)

        return run

    for index, key in enumerate(("AutocastCPU", "AutocastCUDA")):
        fragment.impl(local, kernel(index, torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))), key)


# ---- vmap ------------------------------------------------------------------------------------------------------------


def register_vmap(name: str, local: str, current: Callable[[], Op], fragment: torch.library.Library) -> None:
    """Makes op `name` run under torch.vmap.

    It calls the same op once if that accepts the additional dimension, else in a loop over the dimension.
    """
    overload = getattr(getattr(torch.ops, name.partition("::")[0]), local).default

    def rule(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
        op = current()
        values = [*args, *(a.default for a in op.arguments[len(args) :])]
        dims = [
            *(d if isinstance(d, int) else None for d in in_dims),
            *(None for _ in range(len(values) - len(in_dims))),
        ]
        changed = _with_leading_dimension(op, dims, values)
        if changed is None:
            return _loop(overload, info.batch_size, dims, values)
        result = overload(*changed)
        return result, tuple(0 for _ in result) if isinstance(result, tuple) else 0

    torch.library.register_vmap(name, rule, lib=fragment)


def _with_leading_dimension(op: Op, dims: list[int | None], values: list[Any]) -> list[Any] | None:
    """Returns the arguments of one call with an additional leading dimension, or None if `dimensions` forbids such a
    call.

    Only the first tensor has that dimension, or all tensors of an elementwise op share it.
    """
    tensors = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    moved = [v if d is None else v.movedim(d, 0) for d, v in zip(dims, values)]
    kind = op.rules.dimensions
    if kind == "elementwise":
        together = all(dims[i] is not None for i in tensors) and len({moved[i].shape for i in tensors}) == 1
        return moved if together else None
    if kind not in ("last", "along", "trailing") or dims[0] is None or any(d is not None for d in dims[1:]):
        return None
    if kind == "along":
        position = next(i for i, argument in enumerate(op.arguments) if argument.name == op.rules.extent)
        if moved[0].dim() < 2:
            return None
        moved[position] += moved[position] >= 0
    return moved


def _loop(overload: Any, size: int, dims: list[int | None], values: list[Any]) -> tuple[Any, Any]:
    def one(i: int) -> Any:
        return overload(*(v if d is None else v.select(d, i) for d, v in zip(dims, values)))

    results = [one(i) for i in range(size)]
    if not results:
        raise RuntimeError(
            f"vmap over a dimension of extent 0: {overload} does not run, so that its result has no shape"
        )
    if isinstance(results[0], tuple):
        columns = tuple(None if column[0] is None else torch.stack(column) for column in zip(*results))
        return columns, tuple(None if column is None else 0 for column in columns)
    return torch.stack(results), 0
