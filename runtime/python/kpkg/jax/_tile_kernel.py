"""Evaluates a tile program while JAX traces a Pallas kernel.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp

import kpkg.jax._tile_index as _tile_index
import kpkg.jax._tile_numbers as _tile_numbers
from kpkg._errors import KernelError
from kpkg.jax._tile_index import AnyIndex, Index
from kpkg.jax._tile_memory import Memory, View
from kpkg.jax._tile_numbers import as_array, is_known
from kpkg.jax._tile_program import Block, Op, Program, Type

_MOST = 1 << 29  # of indices, by which the compiler knows that 64-bit integers fit into 32 bits
_REDUCE_KINDS = ("sum", "prod", "max", "min", "umax", "umin", "and", "or")


@runtime_checkable
class ElementMemory(Protocol):
    """Memory with access to single elements, whose places a kernel computes."""

    def gather(self, view: View, indices: list[Any], shape: tuple[int, ...], fill: Any, mask: Any) -> Any:
        """Returns an element for each element of the index tiles, or `fill` outside of the view and of the mask."""

    def scatter(self, value: Any, view: View, indices: list[Any], mask: Any, adds: bool) -> None:
        """Writes or adds each element of a tile, except outside of the view and of the mask."""

    def scratch(self, value: int) -> View:
        """Returns the memory of the block that is a value of the program."""


class Evaluation:
    """One run of a program's ops. `block` is the number of the block along each axis of the grid."""

    def __init__(
        self, program: Program, memory: Memory, arguments: list[Any], block: list[AnyIndex], grid: tuple[int, ...]
    ) -> None:
        self._name = program.name
        self._types = program.types
        self._has_int64 = has_int64(program)
        self._memory = memory
        self._block = block
        self._grid = grid
        self._values: dict[int, Any] = dict(zip(program.block.arguments, arguments))

    def run(self, block: Block) -> list[Any]:
        """Runs a block. Returns the operands of its last op, which ends it."""
        for op in block.body:
            operands = [self._values[number] for number in op.operands]
            if op.name in _ENDS:
                return operands
            results = self._results(op, operands)
            if self._has_int64:
                self._check_numbers(op, results)
            self._values.update(zip(op.results, results, strict=True))
        return []

    def _results(self, op: Op, operands: list[Any]) -> list[Any]:
        if op.name in _tile_numbers.NAMES:
            kinds = [self._types[number] for number in op.operands]
            kind = self._types[op.results[0]]
            return [_tile_numbers.compute(op.name, op.attributes, operands, kinds, kind)]
        result = _OPS[op.name](self, op, operands)
        return result if isinstance(result, list) else [] if result is None else [result]

    def _check_numbers(self, op: Op, values: list[Any]) -> None:
        """Raises KernelError for an index that is larger than the compiler takes it to be."""
        for number, value in zip(op.results, values):
            if self._types[number].element == "index" and isinstance(value, int) and abs(value) > _MOST:
                raise KernelError(f"a kernel computes with the number {value}, which needs more than 32 bits")

    def _kind(self, op: Op) -> Type:
        return self._types[op.results[0]]

    def _array(self, op: Op, operand: int) -> Any:
        """Returns an operand as an array."""
        number = op.operands[operand]
        return as_array(self._values[number], self._types[number])

    # ===--- Grid and memory ---=== #

    def _assert(self, op: Op, operands: list[Any]) -> None:
        if is_known(operands[0]) and not operands[0]:
            raise KernelError(f"{self._name}: {op.attributes['message']}")
        # A TPU has no way to tell. Accesses stay within tensors all the same.

    def _block_id(self, op: Op, operands: list[Any]) -> AnyIndex:
        return self._block[op.attributes["axis"]]

    def _grid_dim(self, op: Op, operands: list[Any]) -> AnyIndex:
        return self._grid[op.attributes["axis"]]

    def _dim(self, op: Op, operands: list[Any]) -> AnyIndex:
        view: View = operands[0]
        return view.extent(op.attributes["dimension"])

    def _drop(self, op: Op, operands: list[Any]) -> View:
        view: View = operands[0]
        return view.drop(op.attributes["dims"], operands[1:])

    def _slice(self, op: Op, operands: list[Any]) -> View:
        view: View = operands[0]
        return view.slice(op.attributes["dimension"], operands[1], operands[2])

    def _load(self, op: Op, operands: list[Any]) -> Any:
        view, *offsets, fill = operands
        kind = self._kind(op)
        if view.is_absent:
            return as_array(fill, kind)
        value = self._memory.load(view, offsets, kind.shape, fill)
        return value != 0 if kind.element == "i1" else value

    def _store(self, op: Op, operands: list[Any]) -> None:
        _, view, *offsets = operands
        if view.is_absent:
            return
        value = self._array(op, 0)
        value = value.astype(jnp.int32) if value.dtype == jnp.bool_ else value
        self._memory.store(value, view, offsets, op.name == "tile.add_store")

    def _gather(self, op: Op, operands: list[Any]) -> Any:
        _, count, _, masks = op.attributes["operandSegmentSizes"]
        kind = self._kind(op)
        if operands[0].is_absent:
            return as_array(operands[1 + count], kind)
        indices = [self._array(op, 1 + i) for i in range(count)]
        mask = self._array(op, 2 + count) if masks else None
        value = self._elements().gather(operands[0], indices, kind.shape, operands[1 + count], mask)
        return value != 0 if kind.element == "i1" else value

    def _scatter(self, op: Op, operands: list[Any]) -> None:
        _, _, count, masks = op.attributes["operandSegmentSizes"]
        if operands[1].is_absent:
            return
        value = self._array(op, 0)
        indices = [self._array(op, 2 + i) for i in range(count)]
        mask = self._array(op, 2 + count) if masks else None
        value = value.astype(jnp.int32) if value.dtype == jnp.bool_ else value
        self._elements().scatter(value, operands[1], indices, mask, False)

    def _scratch(self, op: Op, operands: list[Any]) -> View:
        return self._elements().scratch(op.results[0])

    def _elements(self) -> ElementMemory:
        assert isinstance(self._memory, ElementMemory), "programs with such ops run on arrays"
        return self._memory

    # ===--- Shapes ---=== #

    def _constant(self, op: Op, operands: list[Any]) -> Any:
        return _tile_numbers.constant(op.attributes, self._kind(op))

    def _broadcast(self, op: Op, operands: list[Any]) -> Any:
        return jnp.broadcast_to(self._array(op, 0), self._kind(op).shape)

    def _splat(self, op: Op, operands: list[Any]) -> Any:
        kind = self._kind(op)
        return jnp.full(kind.shape, self._array(op, 0), _tile_numbers.dtype_of(kind.element))

    def _iota(self, op: Op, operands: list[Any]) -> Any:
        # TPUs number elements of two dimensions only.
        (extent,) = self._kind(op).shape
        return jax.lax.broadcasted_iota(jnp.int32, (1, extent), 1).reshape(extent)

    def _reshape(self, op: Op, operands: list[Any]) -> Any:
        return self._array(op, 0).reshape(self._kind(op).shape)

    def _permute(self, op: Op, operands: list[Any]) -> Any:
        return self._array(op, 0).transpose(op.attributes["permutation"])

    def _join(self, op: Op, operands: list[Any]) -> Any:
        parts = [self._array(op, i) for i in range(len(operands))]
        return jnp.concatenate(parts, axis=op.attributes["axis"])

    def _scalar(self, op: Op, operands: list[Any]) -> Any:
        value = self._array(op, 0)
        element = value[(0,) * value.ndim]
        return Index(element) if self._kind(op).element == "index" else element

    # ===--- Products and reductions ---=== #

    def _dot(self, op: Op, operands: list[Any]) -> Any:
        lhs, rhs, accumulator = (self._array(op, i) for i in range(3))
        is_wide = lhs.dtype == jnp.float32
        product = jax.lax.dot_general(
            lhs,
            rhs,
            (((lhs.ndim - 1,), (rhs.ndim - 2,)), (tuple(range(lhs.ndim - 2)),) * 2),
            precision=jax.lax.Precision.HIGHEST if is_wide else None,
            preferred_element_type=jnp.float32,
        )
        return accumulator + product

    def _reduce(self, op: Op, operands: list[Any]) -> Any:
        value, axis, kind = self._array(op, 0), op.attributes["axis"], _REDUCE_KINDS[op.attributes["kind"]]
        if kind in ("and", "or") and value.dtype != jnp.bool_ or kind in ("umax", "umin"):
            raise KernelError(f"a kernel reduces integers by {kind!r}, which kernels for TPUs cannot")
        dtype = value.dtype
        wide = value.astype(jnp.float32 if jnp.issubdtype(dtype, jnp.floating) else jnp.int32)
        if kind == "prod":
            return _halved(wide, axis).astype(dtype)
        reduce: Any = {"sum": jnp.sum, "max": jnp.max, "min": jnp.min, "and": jnp.min, "or": jnp.max}[kind]
        result = reduce(wide, axis=axis, keepdims=True)
        return result != 0 if dtype == jnp.bool_ else result.astype(dtype)

    def _applied(self, op: Op, values: list[Any]) -> list[Any]:
        """Returns what the op's block makes of arrays in place of its scalars."""
        (block,) = op.blocks
        self._values.update(zip(block.arguments, values, strict=True))
        ends = block.body[-1].operands
        return [as_array(value, self._types[n]) for value, n in zip(self.run(block), ends)]

    def _scan(self, op: Op, operands: list[Any]) -> list[Any]:
        values, axis = [self._array(op, i) for i in range(len(operands))], op.attributes["axis"]
        extent, distance = values[0].shape[axis], 1
        while distance < extent:  # each element then combines `distance` elements that end at it
            earlier = [_shifted(value, axis, distance) for value in values]
            combined = self._applied(op, [*earlier, *values])
            there = jax.lax.broadcasted_iota(jnp.int32, *_plane(values[0].shape, axis)) >= distance
            there = there.reshape(_along(values[0].shape, axis))
            values = [jnp.where(there, new, old) for new, old in zip(combined, values)]
            distance *= 2
        return values

    def _combine(self, op: Op, operands: list[Any]) -> list[Any]:
        count, axis = len(operands) // 2, op.attributes["axis"]
        values = [self._array(op, i) for i in range(count)]
        while (extent := values[0].shape[axis]) > 1:
            half = extent // 2
            first, second, rest = (
                [jax.lax.slice_in_dim(value, begin, end, axis=axis) for value in values]
                for begin, end in ((0, half), (half, 2 * half), (2 * half, extent))
            )
            values = self._applied(op, [*first, *second])
            if extent % 2:
                values = [jnp.concatenate(pair, axis=axis) for pair in zip(values, rest)]
        return values

    # ===--- Control flow ---=== #

    def _for(self, op: Op, operands: list[Any]) -> list[Any]:
        low, high, step, *carried = operands
        (block,) = op.blocks
        kinds = [self._types[number] for number in op.results]
        index, *arguments = block.arguments
        known = isinstance(low, int) and isinstance(high, int) and isinstance(step, int)
        count = max(-(-(high - low) // step), 0) if known else None

        def once(number: Any, values: list[Any]) -> list[Any]:
            self._values[index] = _tile_index.counted(number, count, low, step)
            self._values.update(zip(arguments, values))
            return self.run(block)

        if count == 0:
            return carried
        if count == 1:
            return once(0, carried)
        trips = count
        if trips is None:
            span = _tile_index.add(_tile_index.subtract(high, low), _tile_index.subtract(step, 1))
            trips = _tile_index.value(_tile_index.maximum(_tile_index.floor_divide(span, step), 0))
        return self._loop(trips, once, carried, kinds)

    def _loop(self, trips: Any, once: Callable[..., list[Any]], carried: list[Any], kinds: list[Type]) -> list[Any]:
        def body(number: Any, arrays: list[Any]) -> list[Any]:
            return _arrays(once(number, _values(arrays, kinds)), kinds)

        arrays = jax.lax.fori_loop(jnp.int32(0), jnp.asarray(trips, jnp.int32), body, _arrays(carried, kinds))
        return _values(arrays, kinds)

    def _for_tiles(self, op: Op, operands: list[Any]) -> None:
        (block,) = op.blocks

        def nest(axis: int) -> None:
            if axis == len(operands):
                self.run(block)
                return
            count = operands[axis]
            known = count if isinstance(count, int) else None

            def once(number: Any, _: list[Any]) -> list[Any]:
                self._values[block.arguments[axis]] = _tile_index.counted(number, known)
                nest(axis + 1)
                return []

            if known == 1:
                once(0, [])
            elif known is None or known > 1:
                self._loop(_tile_index.value(count), once, [], [])

        nest(0)

    def _if(self, op: Op, operands: list[Any]) -> list[Any]:
        kinds = [self._types[number] for number in op.results]
        then, otherwise = op.blocks
        if is_known(operands[0]):
            return self.run(then if operands[0] else otherwise)
        results = jax.lax.cond(
            operands[0], lambda: _arrays(self.run(then), kinds), lambda: _arrays(self.run(otherwise), kinds)
        )
        return _values(results, kinds)

    def _while(self, op: Op, operands: list[Any]) -> list[Any]:
        before, after = op.blocks
        kinds = [self._types[number] for number in before.arguments]
        passed = [self._types[number] for number in after.arguments]

        def test(arrays: list[Any]) -> tuple[Any, list[Any]]:
            self._values.update(zip(before.arguments, _values(arrays, kinds)))
            condition, *values = self.run(before)
            return as_array(condition, Type("scalar", "i1")), _arrays(values, passed)

        def body(arrays: list[Any]) -> list[Any]:
            self._values.update(zip(after.arguments, _values(test(arrays)[1], passed)))
            return _arrays(self.run(after), kinds)

        arrays = jax.lax.while_loop(lambda arrays: test(arrays)[0], body, _arrays(operands, kinds))
        return _values(test(arrays)[1], passed)


def has_int64(program: Program) -> bool:
    """Returns whether the program has 64-bit integers, which its values hold in 32 bits."""
    return any(kind.element == "i64" for kind in program.types)


def _arrays(values: list[Any], kinds: list[Type]) -> list[Any]:
    return [as_array(value, kind) for value, kind in zip(values, kinds, strict=True)]


def _values(arrays: list[Any], kinds: list[Type]) -> list[Any]:
    """Returns values of the program from arrays that JAX's control flow carries."""
    return [
        Index(array) if kind.kind == "scalar" and kind.element == "index" else array
        for array, kind in zip(arrays, kinds)
    ]


def _shifted(value: Any, axis: int, distance: int) -> Any:
    """Returns elements that lie `distance` earlier along an axis; the first ones are any."""
    extent = value.shape[axis]
    parts = [jax.lax.slice_in_dim(value, *part, axis=axis) for part in ((0, distance), (0, extent - distance))]
    return jnp.concatenate(parts, axis=axis)


def _along(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """Returns the shape with extents of 1 in all other dimensions."""
    return tuple(extent if d == axis else 1 for d, extent in enumerate(shape))


def _plane(shape: tuple[int, ...], axis: int) -> tuple[tuple[int, int], int]:
    """Returns a shape of two dimensions with the extent of an axis, and the dimension that has it.

    TPUs number elements of two dimensions at least.
    """
    return ((shape[axis], 1), 0) if axis < len(shape) - 1 else ((1, shape[axis]), 1)


def _halved(value: Any, axis: int) -> Any:
    """Returns the product along an axis. TPUs reduce by sums and extremes alone."""
    while (extent := value.shape[axis]) > 1:
        half = extent // 2
        first, second = (jax.lax.slice_in_dim(value, at, at + half, axis=axis) for at in (0, half))
        rest = jax.lax.slice_in_dim(value, 2 * half, extent, axis=axis)
        value = jnp.concatenate([first * second, rest], axis=axis) if extent % 2 else first * second
    return value


_ENDS = frozenset(["scf.yield", "scf.condition", "tile.yield", "tile.return"])

_OPS: dict[str, Callable[[Evaluation, Op, list[Any]], Any]] = {
    "arith.constant": Evaluation._constant,
    "scf.for": Evaluation._for,
    "scf.if": Evaluation._if,
    "scf.while": Evaluation._while,
    "tile.add_store": Evaluation._store,
    "tile.assert": Evaluation._assert,
    "tile.block_id": Evaluation._block_id,
    "tile.broadcast": Evaluation._broadcast,
    "tile.combine": Evaluation._combine,
    "tile.dim": Evaluation._dim,
    "tile.dot": Evaluation._dot,
    "tile.drop": Evaluation._drop,
    "tile.for_tiles": Evaluation._for_tiles,
    "tile.gather": Evaluation._gather,
    "tile.grid_dim": Evaluation._grid_dim,
    "tile.iota": Evaluation._iota,
    "tile.join": Evaluation._join,
    "tile.load": Evaluation._load,
    "tile.permute": Evaluation._permute,
    "tile.reduce": Evaluation._reduce,
    "tile.reshape": Evaluation._reshape,
    "tile.scalar": Evaluation._scalar,
    "tile.scan": Evaluation._scan,
    "tile.scatter": Evaluation._scatter,
    "tile.scratch": Evaluation._scratch,
    "tile.slice": Evaluation._slice,
    "tile.splat": Evaluation._splat,
    "tile.store": Evaluation._store,
}

_OF_ELEMENTS = frozenset(["tile.gather", "tile.scatter", "tile.scratch"])


def accesses_elements(block: Block) -> bool:
    """Returns whether ops of the block need an `ElementMemory`."""
    return any(op.name in _OF_ELEMENTS or any(map(accesses_elements, op.blocks)) for op in block.body)


def scratch_shapes(program: Program, block: Block) -> dict[int, jax.ShapeDtypeStruct]:
    """Returns the memory of a block of the grid, by the value of the program that is a view of it."""
    shapes = {}
    for op in block.body:
        if op.name == "tile.scratch":
            element = program.types[op.results[0]].element
            dtype = jnp.int32 if element == "i1" else _tile_numbers.dtype_of(element)
            shapes[op.results[0]] = jax.ShapeDtypeStruct(tuple(op.attributes["shape"]), dtype)
        for inner in op.blocks:
            shapes |= scratch_shapes(program, inner)
    return shapes


#: The ops of tile programs.
KNOWN = frozenset([*_OPS, *_ENDS, *_tile_numbers.NAMES])
