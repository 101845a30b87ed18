"""Runs tile programs as XLA's own ops, for kernels that Pallas cannot have: those with gathers and scatters.

A TPU copies tiles between HBM and VMEM, not single elements whose places a kernel computes. XLA's gathers and scatters
do. Blocks run one after the other, in a loop around the kernel's ops.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

import kpkg.jax._tile_index as _tile_index
from kpkg.jax._tile_index import AnyIndex
from kpkg.jax._tile_memory import Place, View


class Arrays:
    """The tensors of a launch as references to arrays, by argument.

    Memory of a block has negative numbers, from the values of the program that are views of it.
    """

    def __init__(self, refs: dict[int, Any]) -> None:
        self._refs = refs

    def scratch(self, value: int) -> View:
        """Returns the memory of the block that is a value of the program."""
        number = scratch_number(value)
        return View(number, tuple(Place(0, extent) for extent in self._refs[number].shape))

    def load(self, view: View, offsets: list[AnyIndex], shape: tuple[int, ...], fill: Any) -> Any:
        return self.gather(view, _positions(offsets, shape), shape, fill, None)

    def store(self, value: Any, view: View, offsets: list[AnyIndex], adds: bool) -> None:
        self.scatter(value, view, _positions(offsets, value.shape), None, adds)

    def gather(self, view: View, indices: list[Any], shape: tuple[int, ...], fill: Any, mask: Any) -> Any:
        """Returns an element for each element of the index tiles, or `fill` outside of the view and of the mask."""
        array = self._refs[view.argument][...]
        fill = jnp.asarray(fill, array.dtype)
        places, inside = _places(view, indices, mask)
        value = array[tuple(jnp.clip(p, 0, n - 1) for p, n in zip(places, array.shape))] if places else array
        return jnp.broadcast_to(jnp.where(inside, value, fill), shape)

    def scatter(self, value: Any, view: View, indices: list[Any], mask: Any, adds: bool) -> None:
        """Writes or adds each element of a tile, except outside of the view and of the mask."""
        array = self._refs[view.argument][...]
        places, inside = _places(view, indices, mask)
        outside = array.shape[0] if places else 0
        first, *rest = places or [jnp.int32(0)]
        target = (jnp.where(inside, first, outside or 1), *rest)
        updated = (array if places else array[None]).at[target]
        new = updated.add(value, mode="drop") if adds else updated.set(value, mode="drop")
        self._refs[view.argument][...] = new if places else new[0]


def scratch_number(value: int) -> int:
    return -1 - value


def _positions(offsets: list[AnyIndex], shape: tuple[int, ...]) -> list[Any]:
    """Returns the coordinates of a tile's elements in each dimension of its view."""
    return [
        jax.lax.broadcasted_iota(jnp.int32, shape, d) + _tile_index.value(offset) for d, offset in enumerate(offsets)
    ]


def _places(view: View, indices: list[Any], mask: Any) -> tuple[list[Any], Any]:
    """Returns the coordinates in the tensor, and which of them count."""
    inside = jnp.bool_(True) if mask is None else mask
    rest = iter(indices)
    places = []
    for place in view.places:
        index = next(rest) if place.index is None else _tile_index.value(place.index)
        inside = inside & (index >= 0) & (index < _tile_index.value(place.extent))
        places.append(index + _tile_index.value(place.begin))
    return list(jnp.broadcast_arrays(*places)) if places else [], inside
