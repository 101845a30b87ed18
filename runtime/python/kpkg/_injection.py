"""Holds the replacements that inject made in a model, with a row for each.

It puts them in and takes them out, and decides whether they are right and fast.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from kpkg import _default, _measure
from kpkg._errors import CaptureError, KernelError
from kpkg._measure import compare
from kpkg._messages import table

# The ratio of times, by the clock of the host, up to which a replacement counts as not slower.
NOISE = 1.03
# Seconds to spend on timing a layer and its replacement.
_LAYER = 0.04


@dataclass
class Row:
    """Reports the outcome for one layer, or for one function that a layer calls.

    Times are in microseconds, or None where nothing was measured.
    """

    name: str
    layer: str
    replacement: str
    status: str
    error: float | None = None
    original_us: float | None = None
    kpkg_us: float | None = None
    #: Whether the row is for a batch norm folded into a convolution, or for a launch that computes several steps.
    is_fold: bool = False
    #: How often the layer runs in a forward of the sample.
    calls: int = 1

    # Full names of the ops of the replacement.
    _ops: tuple[str, ...] = field(default=(), repr=False, compare=False)
    # The functions that put the replacement in the original's place, and back.
    _replacement: Replacement | None = field(default=None, repr=False, compare=False)

    def keep_without_kernel(self, reason: str, subject: str = "dtype and device") -> None:
        """Notes that the original stays, for `reason`, or since no kernel has its properties."""
        self.status = f"kept: {reason or f'no kernel for its {subject}'}"

    @property
    def is_replaced(self) -> bool:
        """Returns whether kpkg runs there now."""
        return self.status.startswith("replaced")


@dataclass
class Replacement:
    put: Callable[[], None]
    take_out: Callable[[], None]

    @staticmethod
    def of(*parts: Replacement) -> Replacement:
        """Returns the replacement that puts all parts in, in their order, and takes them out in the reverse order."""

        def put() -> None:
            for part in parts:
                part.put()

        def take_out() -> None:
            for part in reversed(parts):
                part.take_out()

        return Replacement(put, take_out)


class Injection:
    """Holds the replacements that ``inject`` made: ``print(injection)`` shows them as a table.

    ``restore()`` undoes them, as does the end of a ``with`` block.

    Attributes:
        rows: A Row for each layer that could be replaced.
        error: The error of the whole model's output, None without a sample.
        original_us: Microseconds of the original model, None without a sample.
        kpkg_us: Microseconds of the model with the replacements, None without a sample.
        graphs: Whether times are those of CUDA graphs.
    """

    def __init__(self, model: nn.Module, graphs: bool = False, tolerance: float | None = None) -> None:
        #: The callable: the model, or the module that torch.compile has made of it.
        self.called = model
        self.model: nn.Module = getattr(model, "_orig_mod", model)
        self.is_compiled = self.model is not model
        self.on_gpu = any(p.device.type == "cuda" for p in (*model.parameters(), *model.buffers()))
        if graphs and not self.on_gpu:
            raise ValueError("cuda_graphs is for models on a GPU")
        self.graphs = graphs
        #: Whether layers are chosen by the time for which they keep the GPU busy. It is so if the model keeps the GPU
        #: busy all the time, which hides the host's time.
        self.by_gpu_time = False
        self.rows: list[Row] = []
        self.error: float | None = None
        self.original_us: float | None = None
        self.kpkg_us: float | None = None
        self._tolerance = tolerance
        self._timed: dict[Any, tuple[float, float]] = {}
        self._loaded: set[str] = set()  # paths of packages

    def _prewarm(self, ops: Iterable[str]) -> bool:
        """Loads the packages of these ops onto the model's GPU; returns whether any was not loaded yet.

        The capture of a graph could not load them.
        """
        devices = {t.device for t in (*self.model.parameters(), *self.model.buffers()) if t.device.type == "cuda"}
        found = [op for op in (_default.ops[name].op for name in ops) if op is not None]
        libraries = {op._library.path: op._library for op in found if op._library.path not in self._loaded}
        for path, library in libraries.items():
            for device in devices:
                library.prewarm(str(device))
            self._loaded.add(path)
        return bool(libraries)

    def _load(self, error: CaptureError) -> bool:
        """Loads the packages that the capture of a graph has missed; returns whether any was not loaded yet."""
        name = getattr(error, "op", "")
        return self._prewarm([name] if name else list(_default.ops))

    def _iterations(
        self, first: Callable[[], Any], second: Callable[[], Any] | None, **options: Any
    ) -> tuple[float, float]:
        """Returns the microseconds of iterations of the whole model in the way in which it will run.

        Options are those of `interleaved`.
        """
        if self.graphs:  # a capture computes masks and the like anew, which may need any instance
            self._prewarm([name for row in self.replaced for name in row._ops])
        return _measure.interleaved(first, second, graphs=self.graphs, load=self._load, **options)

    def _times(self, key: Any, original: Callable[[], Any], replacement: Callable[[], Any]) -> tuple[float, float]:
        """Returns the microseconds of both, which are measured once for each `key`."""
        if key not in self._timed:
            # Single layers are not compiled. Without the host's time, their times are closer to those in a compiled
            # model.
            ahead = self.by_gpu_time or self.is_compiled and self.on_gpu and not self.graphs
            self._timed[key] = _measure.interleaved(
                original, replacement, seconds=_LAYER, rounds=5, graphs=self.graphs, ahead=ahead, load=self._load
            )
        return self._timed[key]

    def _is_fast(self, row: Row, key: Any, original: Callable[[], Any], replacement: Callable[[], Any]) -> bool:
        """Returns whether the replacement is not slower; fills in the row."""
        if self.graphs:
            self._prewarm(row._ops)
        row.original_us, row.kpkg_us = self._times(key, original, replacement)
        return self._has_time(row)

    def _choose(
        self,
        row: Row,
        key: Any,
        original: Callable[[], Any],
        replacement: Callable[[], Any],
        places: Replacement,
        compiled: Callable[[], Any] | None = None,
    ) -> None:
        """Puts a replacement in the places where it is right and not slower; fills in the row.

        `compiled` takes as long as the original in compiled code, where PyTorch fuses steps behind a layer.
        """
        with torch.no_grad():
            if not self._agrees(row, replacement(), original()):
                return
            timed = compiled if self.is_compiled and compiled is not None else original
            if self._is_fast(row, key, timed, replacement):
                row.status = "replaced"
                use(row, places)

    def _agrees(self, row: Row, found: Any, expected: Any) -> bool:
        """Returns whether the replacement's output is right; fills in the row."""
        has_convolutions = "conv" in row.layer.lower()
        row.error, allowed = compare(found, expected, self._tolerance, has_convolutions=has_convolutions)
        if row.error <= allowed:
            return True
        row.status = f"kept: its output differs by {row.error:.1e}, {allowed:.1e} is allowed"
        return False

    def _has_time(self, row: Row) -> bool:
        """Returns whether the times of a row are those of a replacement that is not slower; fills in the row."""
        assert row.original_us is not None and row.kpkg_us is not None, "they were measured"
        if row.kpkg_us <= row.original_us * (1.0 if self.by_gpu_time else NOISE):
            return True
        row.status = "kept: kpkg is slower"
        return False

    @property
    def replaced(self) -> list[Row]:
        """Returns the rows of layers and functions that kpkg runs now."""
        return [row for row in self.rows if row.is_replaced]

    def share(self, rows: Iterable[Row] | None = None) -> float | None:
        """Estimates the share of rows in the time of an iteration of the original model.

        Args:
            rows: The rows; all by default.

        Returns:
            The share from 0 to 1, or None where nothing was measured.

        Raises nothing.
        """
        chosen = list(self.rows if rows is None else rows)
        layers = {row.name for row in chosen if row.name and not row.is_fold and not row.layer.endswith("()")}

        def is_within(name: str) -> bool:
            """Returns whether a layer around it is counted already."""
            parts = name.split(".")
            return any(".".join(parts[:i]) in layers for i in range(1, len(parts)))

        times = [(row.original_us or 0.0) * row.calls for row in chosen if not is_within(row.name)]
        return min(1.0, sum(times) / self.original_us) if self.original_us else None

    def restore(self) -> None:
        """Puts the original layers back. Training in the meantime is kept, since they share their parameters."""
        for row in reversed(self.replaced):
            self._take_out(row, "restored")

    def _take_out(self, row: Row, status: str) -> None:
        assert row._replacement is not None, "only what is replaced is taken out"
        row._replacement.take_out()
        row.status = status

    def __enter__(self) -> Injection:
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()

    def __str__(self) -> str:
        def line(name: str, kind: str, replacement: str, of: Row | Injection, status: str) -> tuple[str, ...]:
            numbers = _number(of.error, ".1e"), _number(of.original_us, ".1f"), _number(of.kpkg_us, ".1f")
            return name, kind, replacement, *numbers, status

        lines: list[tuple[str, ...]] = [("layer", "type", "replacement", "error", "original us", "kpkg us", "")]
        lines += [line(row.name, row.layer, row.replacement, row, row.status) for row in self.rows]
        count = f"{len(self.replaced)} of {len(self.rows)} replaced"
        lines.append(line("(model)", type(self.model).__name__, "", self, count))
        text = table(lines, right=range(3, 6))
        if self.original_us is not None and self.kpkg_us is not None:
            if self.by_gpu_time:
                text.append("Times of layers are the GPU's alone: the model keeps it busy")
            text.append(
                f"Found {100 * (self.share() or 0.0):.0f} % of the original's time, replaced "
                f"{100 * (self.share(self.replaced) or 0.0):.0f} %"
            )
            text.append(f"Original {self.original_us / 1000:.3f} ms / iter")
            text.append(f"kpkg     {self.kpkg_us / 1000:.3f} ms / iter, outputs differ by {_number(self.error, '.1e')}")
        return "\n".join(text)


def _number(value: float | None, form: str) -> str:
    return "" if value is None else f"{value:{form}}"


def use(row: Row, replacement: Replacement) -> None:
    row._replacement = replacement
    replacement.put()


def reason_of(error: Exception) -> str:
    """Returns the status of a replacement that raises."""
    text = str(error).strip().partition("\n")[0]
    return (
        f"kept: {text}"
        if isinstance(error, KernelError) and text
        else f"kept: it raises {type(error).__name__}: {text}"
    )


def signature(value: Any) -> Any:
    """Returns the properties of a value that the time of a call depends on."""
    return (value.shape, value.stride(), value.dtype, value.device) if isinstance(value, Tensor) else repr(value)


def exchange(model: nn.Module, layer: nn.Module, made: nn.Module) -> Replacement:
    """Returns the replacement of `layer` by `made` wherever the model has it."""
    places = [(parent, name) for parent in model.modules() for name, child in parent._modules.items() if child is layer]

    def put() -> None:
        for parent, name in places:
            parent._modules[name] = made
        made.train(layer.training)

    def take_out() -> None:
        for parent, name in places:
            parent._modules[name] = layer
        layer.train(made.training)

    return Replacement(put, take_out)
