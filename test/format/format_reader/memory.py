"""Tracks the memory of an evaluation: new tensors, copies that behave like views, launches, results, temporaries.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from format_reader import views
from format_reader.page import DTYPES, limit
from format_reader.views import Failed, View


def check_elements(dtype: int) -> None:
    """Raises Failed for numbers of no dtype, and for dtypes whose elements have no address."""
    if dtype not in DTYPES or DTYPES[dtype][1] < 8:
        raise Failed("there are no tensors of this dtype")


@dataclass
class Buffer:
    """Memory of an argument or of a new tensor. A copy has an origin, the view that it stands for."""

    whole: View
    argument: int | tuple[int, int] | None = None  # a tensor of a list: the list and the place in it
    writable: bool = True
    version: int = 0  # the number of writes; 0: nothing was written
    origin: View | None = None
    copied: int = 0  # the version of the origin's memory that was copied
    copies: int = 0
    is_result: bool = False


@dataclass
class Copy:
    source: View
    destination: View


@dataclass
class Launch:
    kernel: str
    params: list[tuple[str, bool, str, Any]]  # name, at least, letter of the type, value
    args: list[tuple[bool, str, Any]]  # written, letter of the type or "passed", value
    grid: tuple[int, ...] | None


@dataclass
class Resolution:
    """The steps of a call and its results; views name buffers by number."""

    steps: list[Copy | Launch] = field(default_factory=list)
    results: list[View | None] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    used: list[int] = field(default_factory=list)  # buffers in the order of their first use
    block: int = 0  # bytes of all temporaries


class Memory:
    def __init__(self) -> None:
        self.resolution = Resolution()
        self.buffers = self.resolution.buffers
        self.tensors = self.launched = self.compared = 0

    def count_tensor(self) -> None:
        self.tensors += 1
        if self.tensors > limit("tensors"):
            raise Failed("too many tensors")

    def add(self, buffer: Buffer) -> View:
        self.count_tensor()
        buffer.whole = replace(buffer.whole, buffer=len(self.buffers))
        self.buffers.append(buffer)
        return buffer.whole

    def argument(self, index: int | tuple[int, int], dtype: int, shape: Any, strides: Any, written: bool) -> View:
        """Adds the memory of an argument of the op."""
        if len(shape) > limit("dimensions"):
            raise Failed("an argument of too many dimensions")
        check_elements(dtype)
        views.check_shape(tuple(shape))
        whole = View(-1, dtype, tuple(shape), tuple(views.dense(shape) if strides is None else strides))
        low, high = views.reach(whole)
        if whole.elements and (low < -views.MOST_ELEMENTS or high > views.MOST_ELEMENTS):
            raise Failed("strides reach too far")
        return self.add(Buffer(whole, index, written, 1))

    def allocate(self, shape: tuple[int, ...], dtype: int) -> View:
        views.check_shape(shape)
        check_elements(dtype)
        return self.add(Buffer(View(-1, dtype, shape, views.dense(shape))))

    def made(self, view: View) -> View:
        """Counts a view as a tensor."""
        self.count_tensor()
        return view

    def copy(self, source: View) -> View:
        """Adds a copy, whose elements are moved at its first use."""
        copies = self.buffers[source.buffer].copies + 1
        if copies > limit("copies of copies"):
            raise Failed("too many copies of copies")
        self.count_tensor()
        made = self.allocate(source.shape, source.dtype)
        self.buffers[made.buffer].origin, self.buffers[made.buffer].copies = source, copies
        return made

    def use(self, view: View) -> View:
        if view.buffer not in self.resolution.used:
            self.resolution.used.append(view.buffer)
        return view

    def step(self, step: Copy | Launch) -> None:
        if len(self.resolution.steps) >= limit("launches and copies"):
            raise Failed("too many steps")
        self.resolution.steps.append(step)

    def move(self, source: View, destination: View) -> None:
        if source.elements:
            self.step(Copy(self.use(source), self.use(destination)))

    def refresh(self, view: View) -> None:
        """Brings a copy up to date before a use."""
        buffer = self.buffers[view.buffer]
        if buffer.origin is None:
            return
        self.refresh(buffer.origin)
        version = self.buffers[buffer.origin.buffer].version
        if buffer.copied != version:
            buffer.copied = version
            buffer.version += 1
            self.move(buffer.origin, buffer.whole)

    def written(self, view: View) -> None:
        """Notes that a launch has written a view, and writes copies back."""
        buffer = self.buffers[view.buffer]
        buffer.version += 1
        if buffer.origin is not None:
            self.move(buffer.whole, buffer.origin)
            self.written(buffer.origin)
            buffer.copied = self.buffers[buffer.origin.buffer].version

    def sources(self, view: View) -> list[View]:
        """Returns the view, then the source of its copy, and so on."""
        found = [view]
        while (origin := self.buffers[found[-1].buffer].origin) is not None:
            found.append(origin)
        return found

    def launch(self, launch: Launch) -> None:
        if len(self.resolution.steps) >= limit("launches and copies"):
            raise Failed("too many steps")
        self.launched += len(launch.args) + len(launch.params)
        if self.launched > limit("parameters and arguments"):
            raise Failed("too many arguments of launches")
        tensors = [(k, written, view) for k, (written, _, view) in enumerate(launch.args) if isinstance(view, View)]
        for _, written, view in tensors:
            if not written:
                continue
            chain = self.sources(view)
            if not self.buffers[chain[-1].buffer].writable:
                raise Failed(f"launch of {launch.kernel}: it writes an argument that is not `mut`")
            if any(map(views.overlaps_itself, chain)):
                raise Failed(f"launch of {launch.kernel}: it writes elements that share memory")
        self.check_apart(launch.kernel, tensors)
        for k, written, view in tensors:
            self.refresh(view)
            launch.args[k] = (written, "t", settled(self.use(view)))
        self.step(launch)
        for _, written, view in tensors:
            if written:
                self.written(view)

    def check_apart(self, kernel: str, tensors: list[tuple[int, bool, View]]) -> None:
        for k, written, view in tensors:
            for other, _, second in tensors:
                if not written or other == k:
                    continue
                self.compared += 1
                if self.compared > limit("pairs of arguments"):
                    raise Failed("too many arguments to compare")
                a, b = self.sources(view)[-1], self.sources(second)[-1]
                if a.buffer == b.buffer and views.overlap(a, b):
                    raise Failed(f"launch of {kernel}: argument {k} shares memory with argument {other}")

    def result(self, view: View | None) -> None:
        if view is None:
            self.resolution.results.append(None)
            return
        self.refresh(view)
        buffer = self.buffers[view.buffer]
        if buffer.argument is not None or buffer.is_result:
            fresh = self.allocate(view.shape, view.dtype)
            self.move(view, fresh)
            view = fresh
        self.buffers[view.buffer].is_result = True
        self.resolution.results.append(self.use(view))

    def finish(self) -> Resolution:
        for number in self.resolution.used:
            buffer = self.buffers[number]
            if buffer.argument is None and not buffer.is_result:
                size = buffer.whole.elements * buffer.whole.item
                self.resolution.block += (size + 63) // 64 * 64
        if self.resolution.block >= 2**63:
            raise Failed("temporaries need too much memory")
        return self.resolution


def settled(view: View) -> View:
    """Gives dimensions of extent 0 or 1 the strides of a dense tensor, as launches see them."""
    both = zip(view.shape, view.strides, views.dense(view.shape), strict=True)
    return replace(view, strides=tuple(own if extent > 1 else dense for extent, own, dense in both))
