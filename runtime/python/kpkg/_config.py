"""Pins or restricts which compiled instances of kernels an op may use.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kpkg._library import Op

_TILE_NAMES = ("BM", "BN", "BK")


def _many(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]


def _text(value: Any) -> str:
    from kpkg._arrays import dtype_name

    if isinstance(value, (bool, int, float, str)):
        return str(value)
    return dtype_name(value)


@dataclass(frozen=True)
class KernelConfig:
    """What instances of an op's kernels must be like. A field that is left out allows everything; a list allows each of its values.

    ``KernelConfig(tile=(128, 256, 64), warps=8, stages=4)`` pins a kernel, ``KernelConfig(tile=([64, 128],))`` narrows the choice. What is
    there to choose from is in ``library.manifest["kernels"]`` and in ``op.explain(...)``. Where nothing that is allowed can run a
    call, it falls back, as the policy says.

    tile: extents of blocks, the values of the parameters BM, BN and BK in this order.
    warps: warps of a CTA (32 threads each); only instances for GPUs have them.
    stages: the value of the parameter `stages`.
    dtype: the value of the parameter T: a name, or a dtype of NumPy or PyTorch.
    target: "sm_90a", "x86-64-v3", ...
    variant: "vector", "unit", "any", ...
    params: any other parameters by name.
    """

    tile: Sequence[int | Sequence[int]] | None = None
    warps: int | Sequence[int] | None = None
    stages: int | Sequence[int] | None = None
    dtype: Any = None
    target: str | None = None
    variant: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """The form of kpkg_registry_restrict. Raises ValueError for a tile of more than three extents."""
        if self.tile is not None and len(self.tile) > len(_TILE_NAMES):
            raise ValueError(f"a tile has at most {len(_TILE_NAMES)} extents ({', '.join(_TILE_NAMES)}), not {len(self.tile)}")
        params = dict(self.params)
        params.update(zip(_TILE_NAMES, self.tile or ()))
        if self.stages is not None:
            params["stages"] = self.stages
        if self.dtype is not None:
            params["T"] = self.dtype
        made: dict[str, Any] = {"params": {name: [_text(v) for v in _many(value)] for name, value in params.items()}}
        if self.warps is not None:
            made["threads"] = [32 * int(count) for count in _many(self.warps)]
        for name in ("target", "variant"):
            if getattr(self, name) is not None:
                made[name] = getattr(self, name)
        return json.dumps(made)


class Configured:
    """What ``op.configure`` gives: in a ``with`` statement, the configuration before it comes back at the end."""

    def __init__(self, op: Op, before: KernelConfig | None) -> None:
        self._op = op
        self._before = before

    def __enter__(self) -> Op:
        return self._op

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._op.configure(self._before)
