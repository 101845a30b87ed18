"""Makes Pallas kernels for TPUs from tile programs, and XLA's own ops from those that Pallas cannot have.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import kpkg.jax._axes as _axes
from kpkg._errors import KernelError
from kpkg.jax._tile_arrays import Arrays, scratch_number
from kpkg.jax._tile_index import Index
from kpkg.jax._tile_kernel import Evaluation, accesses_elements, has_int64, scratch_shapes
from kpkg.jax._tile_memory import Place, Recorder, Tensor, Transfers, View, buffer_key, vmem_bytes
from kpkg.jax._tile_program import Program

#: The bytes of VMEM that XLA gives a kernel, unless it is told otherwise.
VMEM_BYTES = 16 << 20
_MOST_ELEMENTS = 1 << 30  # see _tile_index.value
_MOST_WITH_INT64 = 1 << 29  # the bound of indices by which the compiler knows that sums fit into 32 bits


@dataclasses.dataclass(frozen=True)
class Absent:
    """An argument of a launch for a tensor that the call does not give."""

    rank: int


class Launch:
    """A launch of a program. `arguments` are numbers, `Tensor`s and `Absent` ones."""

    def __init__(self, program: Program, arguments: list[Any], grid: tuple[int, int, int]) -> None:
        self._program = program
        self._arguments = arguments
        self._grid = grid
        self._tensors = {
            i: each for i, each in enumerate(arguments) if isinstance(each, Tensor) and 0 not in each.shape
        }
        self._check_sizes()
        self._is_of_arrays = accesses_elements(program.block)
        if self._is_of_arrays:
            return
        recorder = Recorder(self._tensors)
        jax.eval_shape(lambda *blocks: self._run(recorder, list(blocks)), *(jnp.int32(0),) * 3)
        self._layouts = recorder.layouts(program.name)
        self._buffers = {
            buffer_key(self._layouts[key], extents): None
            for key, tiles in recorder.accesses.items()
            for _, extents in tiles
        }
        size = sum(vmem_bytes(*key) for key in self._buffers)
        if size > VMEM_BYTES:
            raise KernelError(
                f"kernel {program.name}: its tiles take {size} bytes of VMEM, of which a kernel has {VMEM_BYTES}"
            )

    def _check_sizes(self) -> None:
        name, types = self._program.name, self._program.types
        is_bounded = has_int64(self._program)
        most = _MOST_WITH_INT64 if is_bounded else _MOST_ELEMENTS
        for tensor in self._tensors.values():
            if math.prod(tensor.shape) >= most:
                raise KernelError(f"kernel {name}: {tensor.name} has 2^{most.bit_length() - 1} elements or more")
        for number, argument in zip(self._program.block.arguments, self._arguments):
            if is_bounded and types[number].element == "index" and isinstance(argument, int) and abs(argument) > most:
                raise KernelError(f"kernel {name}: the number {argument} is over 2^29, and may need more than 32 bits")

    def _run(self, memory: Any, blocks: list[Any]) -> tuple[()]:
        numbers = [0 if n == 1 else Index(block, 1, 0, n - 1) for block, n in zip(blocks, self._grid)]
        arguments = [self._value(i) for i in range(len(self._arguments))]
        Evaluation(self._program, memory, arguments, numbers, self._grid).run(self._program.block)
        return ()

    def _value(self, argument: int) -> Any:
        """Returns an argument as a value of the program."""
        given = self._arguments[argument]
        if isinstance(given, Tensor):
            places = tuple(Place(0, extent) for extent in given.shape)
            return View(argument, places, is_absent=0 in given.shape)
        if isinstance(given, Absent):
            return View(argument, (Place(0, 0),) * given.rank, is_absent=True)
        return given

    def __call__(self, arrays: dict[int, Any], interpret: bool) -> dict[int, Any]:
        """Runs the launch. Returns the new elements of the tensors that it writes, by argument."""
        if not any(tensor.is_written for tensor in self._tensors.values()):
            return {}
        if self._is_of_arrays:
            return self._run_on_arrays(arrays)
        keys = list(self._layouts)
        written = [key for key in keys if self._tensors[key[0]].is_written]
        read = [key for key in keys if key not in written]
        order = [*read, *written]
        operands = [self._layouts[key].arrange(arrays[key[0]]) for key in order]

        def kernel(*refs: Any) -> None:
            sources = refs[: len(read)]
            results = refs[len(order) : len(order) + len(written)]  # which are the operands that are written
            buffers = dict(zip(self._buffers, refs[len(order) + len(written) :]))
            layouts = {key: self._layouts[key] for key in order}
            blocks = [pl.program_id(axis) for axis in range(3)]
            self._run(Transfers(layouts, [*sources, *results], buffers), blocks)

        in_hbm = pl.BlockSpec(memory_space=pltpu.HBM)
        results = pl.pallas_call(
            kernel,
            grid=self._grid,
            in_specs=[in_hbm] * len(order),
            out_specs=[in_hbm] * len(written),
            out_shape=[_axes.like(each) for each in operands[len(read) :]],
            scratch_shapes=[pltpu.VMEM(shape, dtype) for dtype, shape in self._buffers],
            input_output_aliases={len(read) + i: i for i in range(len(written))},
            interpret=pltpu.InterpretParams() if interpret else False,
            name=self._program.name,
        )(*operands)
        return {key[0]: self._layouts[key].restore(array) for key, array in zip(written, results)}

    def _run_on_arrays(self, arrays: dict[int, Any]) -> dict[int, Any]:
        x, y, _ = self._grid
        scratch = scratch_shapes(self._program, self._program.block)
        written = [i for i, tensor in self._tensors.items() if tensor.is_written]

        def run(refs: dict[int, Any]) -> None:
            memory = Arrays(refs)

            def block(number: Any, _: tuple[()]) -> tuple[()]:
                return self._run(memory, [number % x, number // x % y, number // (x * y)])

            jax.lax.fori_loop(jnp.int32(0), jnp.int32(math.prod(self._grid)), block, ())

        def all_blocks(*tensors: Any) -> list[Any]:
            state = dict(zip(arrays, tensors))
            state |= {scratch_number(v): jnp.zeros(s.shape, s.dtype) for v, s in scratch.items()}
            state = pl.run_state(run)(state)
            return [state[i] for i in written]

        results = _axes.untracked(all_blocks, list(arrays.values()), [_axes.like(arrays[i]) for i in written])
        return dict(zip(written, results))
