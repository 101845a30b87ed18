"""Moves tiles between the tensors of a launch in a TPU's HBM and the VMEM of a Pallas kernel.

The last two dimensions of an array in HBM are divided into tiles of 8 x 128 words. A copy must begin at multiples of
them, or take a whole dimension. So a kernel is traced twice. `Recorder` finds which tiles it accesses. A layout then
follows for each tensor. A dimension stays as it is, or lies outside of the tiling, or becomes two: one of blocks, and
one within a block. `Transfers` copies.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import kpkg.jax._tile_index as _tile_index
from kpkg._errors import KernelError
from kpkg.jax._tile_index import AnyIndex

_LANES, _SUBLANES = 128, 8


@dataclasses.dataclass(frozen=True)
class Place:
    """What a view takes of a dimension of a tensor: a range, and of a dropped dimension one index of it."""

    begin: AnyIndex
    extent: AnyIndex
    index: AnyIndex | None = None


@dataclasses.dataclass(frozen=True)
class View:
    """A part of a tensor of the launch, with a place for each dimension of the tensor. The call may not give it."""

    argument: int
    places: tuple[Place, ...]
    is_absent: bool = False

    def ranges(self) -> list[int]:
        """Returns the dimensions of the tensor that are dimensions of the view."""
        return [d for d, place in enumerate(self.places) if place.index is None]

    def extent(self, dimension: int) -> AnyIndex:
        return self.places[self.ranges()[dimension]].extent

    def drop(self, dimensions: list[int], indices: list[AnyIndex]) -> View:
        places, ranges = list(self.places), self.ranges()
        for dimension, index in zip(dimensions, indices):
            d = ranges[dimension]
            places[d] = dataclasses.replace(places[d], index=index)
        return dataclasses.replace(self, places=tuple(places))

    def slice(self, dimension: int, begin: AnyIndex, end: AnyIndex) -> View:
        """Returns the part from `begin` to before `end`, cut to the view."""
        place = self.places[d := self.ranges()[dimension]]
        first = _tile_index.minimum(_tile_index.maximum(begin, 0), place.extent)
        last = _tile_index.maximum(_tile_index.minimum(end, place.extent), first)
        part = Place(_tile_index.add(place.begin, first), _tile_index.subtract(last, first))
        return dataclasses.replace(self, places=(*self.places[:d], part, *self.places[d + 1 :]))

    def offsets(self, given: list[AnyIndex]) -> list[AnyIndex]:
        """Returns the offsets of a tile in all dimensions of the tensor, from those in the dimensions of the view."""
        rest = iter(given)
        return [next(rest) if place.index is None else place.index for place in self.places]

    def access(self, offsets: list[AnyIndex], shape: tuple[int, ...]) -> tuple[list[AnyIndex], tuple[int, ...]]:
        """Returns where a tile of the view lies in the tensor: its begin and its extents in each dimension."""
        rest = iter(shape)
        extents = tuple(next(rest) if place.index is None else 1 for place in self.places)
        return [_tile_index.add(p.begin, o) for p, o in zip(self.places, self.offsets(offsets))], extents


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor of a launch: its name in messages, shape, dtype, and whether the kernel writes it."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    is_written: bool


class Memory(Protocol):
    """What a kernel does with tensors."""

    def load(self, view: View, offsets: list[AnyIndex], shape: tuple[int, ...], fill: Any) -> Any:
        """Returns a tile. Elements outside of the view are `fill`."""

    def store(self, value: Any, view: View, offsets: list[AnyIndex], adds: bool) -> None:
        """Writes a tile, or adds it. Elements outside of the view are unchanged."""


@dataclasses.dataclass
class _Dimension:
    """How a dimension of a tensor lies in HBM. `grain` divides the begins and extents of all accesses."""

    extent: int
    grain: int
    longest: int  # of the accessed tiles
    is_split: bool = False  # into blocks of `grain`
    is_loose: bool = False  # outside of the tiling, since tiles begin anywhere in it

    @property
    def padded(self) -> int:
        """Returns the extent with all tiles that begin within it."""
        return -(-self.extent // self.grain) * self.grain + self.longest - self.grain


class Layout:
    """How a tensor lies in HBM, for tiles of some shapes.

    First come the dimensions outside of the tiling, then the blocks of split ones, then the two tiled dimensions.
    """

    def __init__(self, tensor: Tensor, dimensions: list[_Dimension]) -> None:
        self.tensor = tensor
        self.dimensions = dimensions

    def arrange(self, array: Any) -> Any:
        """Returns the tensor's elements in this layout."""
        array = array.reshape(_with_two_dimensions(array.shape))
        array = jnp.pad(array, [(0, each.padded - each.extent) for each in self.dimensions])
        shape, order = self._order()
        return array.reshape(shape).transpose(order)

    def restore(self, array: Any) -> Any:
        """Returns the tensor from its elements in this layout."""
        _, order = self._order()
        array = array.transpose(sorted(range(len(order)), key=order.__getitem__))
        array = array.reshape([each.padded for each in self.dimensions])
        array = array[tuple(slice(0, each.extent) for each in self.dimensions)]
        return array.reshape(self.tensor.shape)

    def _order(self) -> tuple[list[int], list[int]]:
        """Returns the shape with split dimensions as two, and loose ones with a 1 behind, and the order in HBM."""
        shape: list[int] = []
        outer, blocks, tiled = [], [], []
        for d, dimension in enumerate(self.dimensions):
            is_tiled = d >= len(self.dimensions) - 2
            if is_tiled and dimension.is_split:
                blocks.append(len(shape))
                shape.append(dimension.padded // dimension.grain)
            elif not is_tiled or dimension.is_loose:
                outer.append(len(shape))
                shape.append(dimension.padded)
            if is_tiled:
                tiled.append(len(shape))
                shape.append(1 if dimension.is_loose else dimension.grain if dimension.is_split else dimension.padded)
        return shape, [*outer, *blocks, *tiled]

    def buffer_shape(self, extents: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the shape that a tile has in VMEM: `extents`, with a 1 for a dimension outside of the tiling."""
        if self.dimensions[-1].is_loose:
            return (*extents[:-2], extents[-1], 1, 1)
        return (*extents[:-1], 1, extents[-1]) if self.dimensions[-2].is_loose else extents

    def parts(self, begins: list[AnyIndex], extents: tuple[int, ...]) -> tuple[Any, ...]:
        """Returns where a tile lies in the arranged array, as an index of Pallas."""
        outer: list[Any] = []
        blocks: list[Any] = []
        tiled: list[Any] = []
        for d, (dimension, begin, extent) in enumerate(zip(self.dimensions, begins, extents)):
            begin = self._within(dimension, begin)
            is_tiled = d >= len(self.dimensions) - 2
            if is_tiled and dimension.is_split:
                blocks.append(_tile_index.value(_tile_index.floor_divide(begin, dimension.grain)))
                tiled.append(pl.ds(0, extent))
                continue
            start: Any = begin if isinstance(begin, int) else pl.multiple_of(begin.value, dimension.grain)
            if not is_tiled or dimension.is_loose:
                outer.append(pl.ds(start, extent))
                if is_tiled:
                    tiled.append(pl.ds(0, 1))
            else:
                tiled.append(pl.ds(start, extent))
        return (*outer, *blocks, *tiled)

    def _within(self, dimension: _Dimension, begin: AnyIndex) -> AnyIndex:
        """Returns the begin of a tile that lies within the padded tensor. One outside of it is masked anyway."""
        return _tile_index.minimum(_tile_index.maximum(begin, 0), dimension.padded - dimension.longest)


def _with_two_dimensions(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*(1,) * (2 - len(shape)), *shape)


def two_dimensional(begins: list[AnyIndex], extents: tuple[int, ...]) -> tuple[list[AnyIndex], tuple[int, ...]]:
    """Returns a tile of a tensor with at least two dimensions."""
    missing = max(2 - len(extents), 0)
    return [*(0,) * missing, *begins], (*(1,) * missing, *extents)


class Recorder:
    """Finds the tiles that a kernel accesses. Its tiles hold nothing."""

    def __init__(self, tensors: dict[int, Tensor]) -> None:
        self._tensors = tensors
        self.accesses: dict[tuple[int, tuple[int, ...]], list[tuple[list[AnyIndex], tuple[int, ...]]]] = {}

    def load(self, view: View, offsets: list[AnyIndex], shape: tuple[int, ...], fill: Any) -> Any:
        tensor = self._record(view, offsets, shape)
        return jnp.zeros(shape, tensor.dtype)

    def store(self, value: Any, view: View, offsets: list[AnyIndex], adds: bool) -> None:
        self._record(view, offsets, value.shape)

    def _record(self, view: View, offsets: list[AnyIndex], shape: tuple[int, ...]) -> Tensor:
        tensor = self._tensors[view.argument]
        begins, extents = two_dimensional(*view.access(offsets, shape))
        self.accesses.setdefault((view.argument, kind_of_layout(tensor, extents)), []).append((begins, extents))
        return tensor

    def layouts(self, kernel: str) -> dict[tuple[int, tuple[int, ...]], Layout]:
        """Returns the layouts by argument and kind. Raises KernelError for tiles that TPUs cannot copy."""
        return {key: _layout(kernel, self._tensors[key[0]], tiles) for key, tiles in self.accesses.items()}


def kind_of_layout(tensor: Tensor, extents: tuple[int, ...]) -> tuple[int, ...]:
    """Returns a key of the layouts of a tensor. One that is only read may lie in HBM several times."""
    return () if tensor.is_written else extents[-2:]


def _layout(kernel: str, tensor: Tensor, tiles: list[tuple[list[AnyIndex], tuple[int, ...]]]) -> Layout:
    shape = _with_two_dimensions(tensor.shape)
    rows = _SUBLANES * max(4 // tensor.dtype.itemsize, 1)
    tilings = (*(1,) * (len(shape) - 2), rows, _LANES)
    dimensions = []
    for d, (extent, tiling) in enumerate(zip(shape, tilings)):
        begins = [begins[d] for begins, _ in tiles]
        lengths = [extents[d] for _, extents in tiles]
        grain = math.gcd(*lengths, *map(_tile_index.divisor, begins))
        longest = max(lengths)
        dimension = _Dimension(extent, grain, longest)
        is_whole = all(begin == 0 for begin in begins) and min(lengths) == longest >= extent
        if grain % tiling and not is_whole:
            dimension.is_split = grain == longest
            dimension.is_loose = grain != longest
        place = max(d - len(shape) + len(tensor.shape), 0)
        if dimension.is_loose and tiling == _LANES and any(extents[-2] > 1 for _, extents in tiles):
            raise KernelError(
                f"kernel {kernel}: {tensor.name} is accessed by tiles of {longest} elements at multiples of {grain} "
                f"along dimension {place}, but the tiling of TPUs needs multiples of {tiling}, or of the tile"
            )
        if grain != longest and any(-longest < _tile_index.bounds(begin)[0] < 0 for begin in begins):
            raise KernelError(
                f"kernel {kernel}: tiles of {tensor.name} may begin before it along dimension {place}, which TPUs "
                "cannot copy"
            )
        dimensions.append(dimension)
    return Layout(tensor, dimensions)


class Transfers:
    """Copies tiles between arranged arrays in HBM and buffers in VMEM, one for each shape of tiles."""

    def __init__(
        self, layouts: dict[tuple[int, tuple[int, ...]], Layout], arrays: list[Any], buffers: dict[Any, Any]
    ) -> None:
        self._layouts = layouts
        self._arrays = dict(zip(layouts, arrays))
        self._buffers = buffers

    def load(self, view: View, offsets: list[AnyIndex], shape: tuple[int, ...], fill: Any) -> Any:
        begins, extents = two_dimensional(*view.access(offsets, shape))
        layout, array = self._of(view, extents)
        fill = jnp.asarray(fill, layout.tensor.dtype)
        value = self._copied(layout, array, begins, extents)
        mask = _inside(view, offsets, extents)
        value = value if mask is None else jnp.where(mask, value, fill)
        return value.reshape(shape) if shape else value[(0,) * len(extents)]

    def store(self, value: Any, view: View, offsets: list[AnyIndex], adds: bool) -> None:
        begins, extents = two_dimensional(*view.access(offsets, value.shape))
        layout, array = self._of(view, extents)
        value = value.reshape(extents) if value.ndim else jnp.full(extents, value)
        mask = _inside(view, offsets, extents, layout.tensor.shape)
        if adds or mask is not None:
            old = self._copied(layout, array, begins, extents)
            new = old + value if adds else value
            value = new if mask is None else jnp.where(mask, new, old)
        buffer = self._buffers[buffer_key(layout, extents)]
        buffer[...] = value.reshape(buffer.shape)
        pltpu.sync_copy(buffer, array.at[layout.parts(begins, extents)])

    def _of(self, view: View, extents: tuple[int, ...]) -> tuple[Layout, Any]:
        tensor = next(layout.tensor for key, layout in self._layouts.items() if key[0] == view.argument)
        key = (view.argument, kind_of_layout(tensor, extents))
        return self._layouts[key], self._arrays[key]

    def _copied(self, layout: Layout, array: Any, begins: list[AnyIndex], extents: tuple[int, ...]) -> Any:
        buffer = self._buffers[buffer_key(layout, extents)]
        pltpu.sync_copy(array.at[layout.parts(begins, extents)], buffer)
        return buffer[...].reshape(extents)


def buffer_key(layout: Layout, extents: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """Returns the dtype and the shape of the buffer in VMEM for tiles of a tensor."""
    return layout.tensor.dtype, layout.buffer_shape(extents)


def vmem_bytes(dtype: Any, shape: tuple[int, ...]) -> int:
    """Returns the bytes of a buffer in VMEM, whose last two dimensions are rounded up to the tiling."""
    rows = _SUBLANES * max(4 // dtype.itemsize, 1)
    tiled = -(-shape[-2] // rows) * rows * -(-shape[-1] // _LANES) * _LANES
    return math.prod(shape[:-2]) * tiled * int(dtype.itemsize)


def _inside(
    view: View,
    offsets: list[AnyIndex],
    extents: tuple[int, ...],
    padded: tuple[int, ...] | None = None,
) -> Any:
    """Returns which elements of a tile lie inside of the view, or None if all of them do.

    `padded` is the shape of a tensor behind whose end the tile may write: nobody reads what lies there.
    """
    mask = None
    missing = len(extents) - len(view.places)
    for d, (place, offset) in enumerate(zip(view.places, view.offsets(offsets))):
        extent = extents[d + missing]
        low, high = _tile_index.bounds(offset)
        goes_before = low < 0
        goes_behind = high + extent > _tile_index.bounds(place.extent)[0]
        if padded is not None and place.begin == 0 and place.extent == padded[d]:
            goes_behind &= high >= -(-padded[d] // extent) * extent
        if not goes_before and not goes_behind:
            continue
        position = _tile_index.value(offset)
        if extent > 1:
            position = jax.lax.broadcasted_iota(jnp.int32, extents, d + missing) + position
        inside = position < _tile_index.value(place.extent)
        if goes_before:
            inside = inside & (position >= 0)
        mask = inside if mask is None else mask & inside
    return mask
