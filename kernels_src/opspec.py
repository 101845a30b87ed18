"""Specs of ops: reference in float64, inputs, dtypes and tolerances.

One spec feeds the tests and the benchmark.

Each `<family>/spec.py`, and each `<family>/<part>_spec.py`, has a list `SPECS`. `load_specs()` reads them all.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

HALF = (torch.float16, torch.bfloat16)
ALL_FLOATS = (torch.float32, torch.float64, *HALF)

INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)

# Unit round-off of results, and of the accumulator that kernels use for them.
_ROUND_OFF = {
    torch.float64: 2.0**-53,
    torch.float32: 2.0**-24,
    torch.float16: 2.0**-11,
    torch.bfloat16: 2.0**-8,
    torch.float8_e4m3fn: 2.0**-4,
}
#: The dtype of scales by which references tell formats apart, so they get it as it is.
EXPONENTS = torch.float8_e8m0fnu
_ACCUMULATOR = {torch.float64: 2.0**-53}
_ACCUMULATOR_DEFAULT = 2.0**-24


@dataclass(frozen=True)
class Sample:
    """One call. Tensors are in `args` and `kwargs`."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    label: str = ""
    #: Whether this call rounds tiles between load and store; `OpSpec.rounds_between` says so for all calls.
    rounds_between: bool = False

    def map(self, change: Callable[[Tensor], Tensor]) -> Sample:
        """Returns the same call with every tensor changed."""

        def one(value: Any) -> Any:
            return change(value) if isinstance(value, Tensor) else value

        return Sample(
            tuple(map(one, self.args)), {k: one(v) for k, v in self.kwargs.items()}, self.label, self.rounds_between
        )


@dataclass(frozen=True)
class OpSpec:
    """One op.

    `reference(*args, **kwargs)` takes the op's arguments with float64 tensors. `magnitude` takes the same arguments,
    and returns for each result the magnitude of the terms that cancel in it. Its default is the largest element of the
    result.

    The allowed error is 2 units in the last place of the result, plus `accumulation` round-offs of the accumulator
    times the magnitude. Integers must be equal.
    """

    name: str
    reference: Callable[..., Any]
    samples: Callable[[torch.dtype, torch.Generator], Iterator[Sample]]
    dtypes: tuple[torch.dtype, ...] = ALL_FLOATS
    magnitude: Callable[..., Any] | None = None
    #: Whether NumPy has the dtypes of the samples.
    numpy: bool = True
    accumulation: float = 16.0
    #: `accumulation` on GPUs, whose tensor cores add with fewer bits than the accumulator has. The default is
    #: `accumulation`.
    gpu_accumulation: float | None = None
    #: Whether tiles between load and store are also rounded to the dtype. Its round-off, times the magnitude, is then
    #: allowed too.
    rounds_between: bool = False
    #: Whether that error is also in results of more bits than the arguments, such as states.
    rounds_wide_results: bool = False
    #: Whether GPU results are bitwise equal from run to run, also without deterministic=True.
    ordered: bool = True
    #: Calls to time: label -> sample, in float32 unless the label says otherwise. `eager` is the equivalent PyTorch
    #: code.
    benchmarks: Callable[[torch.Generator], dict[str, Sample]] | None = None
    eager: Callable[..., Any] | None = None
    #: A call on `rows` rows of `n` elements, on the generator's device: `rows(rows, n, dtype, generator)`. The GPU
    #: benchmark times it.
    rows: Callable[[int, int, torch.dtype, torch.Generator], Sample] | None = None

    @property
    def family(self) -> str:
        return self.name.partition("::")[2]

    def check(self, sample: Sample, results: Any, gpu: bool = False) -> None:
        """Raises AssertionError if `results` are further from the reference than allowed.

        `sample` is the call, and `gpu` tells whether it was made on a GPU.
        """
        exact = sample.map(lambda t: t.detach().double() if t.is_floating_point() and t.dtype != EXPONENTS else t)
        references = as_tuple(self.reference(*exact.args, **exact.kwargs))
        magnitudes: tuple[Any, ...] = (None,) * len(references)
        if self.magnitude is not None:
            magnitudes = as_tuple(self.magnitude(*exact.args, **exact.kwargs))
        tensors = [v for v in (*sample.args, *sample.kwargs.values()) if isinstance(v, Tensor)]
        narrow = next((t.dtype for t in tensors if t.dtype in HALF), None) if self.rounds_wide_results else None
        results = as_tuple(results)
        assert len(results) == len(references), f"{len(results)} results, expected {len(references)}"
        for i, (result, reference, magnitude) in enumerate(zip(results, references, magnitudes)):
            self._check_one(
                f"{self.name} {sample.label} result {i}",
                result,
                reference,
                magnitude,
                gpu,
                self.rounds_between or sample.rounds_between,
                narrow,
            )

    def _check_one(
        self,
        what: str,
        result: Tensor,
        reference: Tensor,
        magnitude: Tensor | None,
        gpu: bool,
        rounds_between: bool,
        narrow: torch.dtype | None,
    ) -> None:
        assert result.shape == reference.shape, (
            f"{what}: shape {tuple(result.shape)}, expected {tuple(reference.shape)}"
        )
        if result.numel() == 0:
            return
        if not result.is_floating_point():
            assert torch.equal(result, reference.to(result.dtype)), f"{what}: integers differ"
            return
        actual = result.detach().double()
        limit = torch.finfo(result.dtype).max
        overflows = reference.abs() > limit * (1 - _ROUND_OFF[result.dtype])
        assert bool((torch.isnan(actual) == torch.isnan(reference)).all()), (
            f"{what}: NaN where the reference has none, or the reverse"
        )
        infinite = torch.isinf(reference)
        assert bool((actual == reference)[infinite].all()), f"{what}: wrong at an infinity"
        finite = torch.isfinite(reference) & ~overflows
        size = reference.abs()[finite].amax() if bool(finite.any()) else torch.tensor(0.0)
        scale = size if magnitude is None else magnitude.abs().expand_as(reference)[finite]
        accumulation = self.gpu_accumulation if gpu and self.gpu_accumulation is not None else self.accumulation
        accumulator = _ACCUMULATOR.get(result.dtype, _ACCUMULATOR_DEFAULT)
        allowed = 2 * _ROUND_OFF[result.dtype] * reference.abs()[finite] + accumulation * accumulator * scale
        between = result.dtype if result.dtype in HALF else narrow
        if rounds_between and between is not None:
            allowed = allowed + _ROUND_OFF[between] * scale
        allowed = allowed + torch.finfo(result.dtype).smallest_normal
        if result.dtype == torch.float64:
            allowed = 8 * allowed  # the reference is rounded as often as the result
        excess = (actual - reference).abs()[finite] / allowed
        worst = float(excess.max()) if excess.numel() else 0.0
        assert worst <= 1.0, f"{what}: error is {worst:.2f} times what is allowed"


def as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def normal(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator, scale: float = 1.0) -> Tensor:
    """Returns normally distributed numbers, rounded to `dtype`, on the generator's device."""
    return (torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device) * scale).to(dtype)


def all_bits(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Returns integers of all bit patterns, or bools of which every fifth is False, on the generator's device."""
    limits = torch.iinfo(torch.int64)
    x = torch.randint(limits.min, limits.max, shape, generator=generator, device=generator.device)
    return x % 5 > 0 if dtype == torch.bool else x.to(dtype)


#: Pairs of shapes that broadcast.
BROADCAST_SHAPES = [
    ((), ()),
    ((1,), (1,)),
    ((0,), (1,)),
    ((3, 0, 2), (2,)),
    ((4097,), (4097,)),
    ((20011,), ()),
    ((5, 1000), (1000,)),
    ((5, 1000), (5, 1)),
    ((4, 1), (1, 9)),
    ((2, 3, 5, 7), (3, 1, 1)),
    ((2, 3, 2, 3, 2, 3), (3, 1, 3, 1, 3)),
]
SPECIAL_FLOATS = [math.inf, -math.inf, math.nan, 0.0, -0.0, 1.0, -1.0, 3.0, -7.5, 1e-3, -1e4]


def any_numbers(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Returns all bit patterns of integers, and floats of which every fourth is 0."""
    limits = torch.iinfo(torch.int64)
    x = torch.randint(limits.min, limits.max, shape, generator=generator, device=generator.device)
    if dtype.is_floating_point:
        return normal(shape, dtype, generator, 8.0) * (x % 4 != 0)
    return x > 0 if dtype == torch.bool else x.to(dtype)


def pair_samples(left: Callable[..., Tensor], right: Callable[..., Tensor]) -> Iterator[Sample]:
    """Returns two operands that broadcast, or are strided. `left` and `right` draw a tensor of some extents."""
    for a, b in BROADCAST_SHAPES:
        yield Sample((left(*a), right(*b)), label=f"{a}, {b}")
        yield Sample((left(*b), right(*a)), label=f"{b}, {a}")
    yield Sample((left(40, 33).t(), right(40, 33).t()), label="both transposed")
    yield Sample((left(40, 33).t(), right(33, 40)), label="one transposed")
    yield Sample((left(6, 8, 10)[::2, :, ::2], right(3, 8, 5)), label="strides")
    yield Sample((left(20001)[::3], right()), label="every third and one")
    yield Sample((left(4, 5, 6).permute(2, 0, 1), right(6, 4, 5)), label="permuted")


def channels_last(x: Tensor) -> Tensor:
    """Returns x in channels-last format, for any rank."""
    return x.movedim(1, -1).contiguous().movedim(-1, 1)


def strided_forms(make: Callable[[tuple[int, ...]], Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Yields non-dense tensors of rank 2: transposed, every other element, expanded, a part of a larger tensor."""
    yield "transposed", make((33, 6)).t()
    yield "step 2", make((8, 66))[:, ::2]
    yield "expanded", make((1, 40)).expand(5, 40)
    yield "part", make((7, 50))[2:, 3:]
    yield "rows apart", make((12, 31))[::3]


def forms_along(
    shapes: Iterable[tuple[tuple[int, ...], int]], make: Callable[[tuple[int, ...]], Tensor]
) -> Iterator[tuple[str, Tensor, int]]:
    """Yields tensors for ops along a dimension, with it: of these shapes, and such that are not dense."""
    for shape, dim in shapes:
        yield f"{shape} along {dim}", make(shape), dim
    for label, x in strided_forms(make):
        for dim in (0, 1):
            yield f"{label} along {dim}", x, dim
    yield "permuted", make((4, 50, 6)).permute(2, 0, 1), 2


def load_specs() -> list[OpSpec]:
    """Returns the specs of every family in this folder."""
    found: list[OpSpec] = []
    for path in sorted(Path(__file__).parent.glob("*/*spec.py")):
        description = importlib.util.spec_from_file_location(f"kernels_src_{path.parent.name}_{path.stem}", path)
        assert description is not None and description.loader is not None
        module = importlib.util.module_from_spec(description)
        description.loader.exec_module(module)
        found.extend(module.SPECS)
    return found
