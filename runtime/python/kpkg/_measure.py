"""Measures time and error of calls, for `inject` and `benchmark_op`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import functools
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree

from kpkg import _precision
from kpkg._errors import CaptureError
from kpkg.nn._convolutions import _allows_tf32

_TOLERANCES = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 3e-2}


# The tolerance of float32 where PyTorch may round factors to 10 bits. On GPUs it does so in convolutions unless told
# otherwise, and in matrix products only where told to.
_ROUNDED = 1e-3

# Cycles of a GPU in a second, about.
_CYCLES = 2e9
# Limits, in calls and in seconds, of the work issued ahead of the GPU, whose queue holds about a thousand launches.
_MOST_AHEAD = 32
_LONGEST_AHEAD = 0.01
# The rounds of functions that would take more than _MOST_OVER times the seconds given for all rounds.
_FEWEST, _MOST_OVER = 3, 4.0


def compare(found: Any, expected: Any, tolerance: float | None, has_convolutions: bool = False) -> tuple[float, float]:
    """Returns the greatest difference of any tensor, and the allowed one.

    Differences are relative to the largest finite element of the expected tensor. They are infinite where shapes,
    dtypes, integers, or the places of NaN and infinities differ.

    If `tolerance` is None, the allowed difference follows from the dtype, and from the rounding of convolutions and
    matrix products.
    """
    worst, allowed = 0.0, 0.0
    mine, theirs = _tensors(found), _tensors(expected)
    if len(mine) != len(theirs):
        return float("inf"), 0.0
    for a, b in zip(mine, theirs):
        may_round = (
            has_convolutions and _allows_tf32(b) or b.is_cuda and _precision.of_tensors([b]) in ("high", "medium")
        )
        allowed = max(allowed, _ROUNDED if may_round else _TOLERANCES.get(b.dtype, 0.0))
        worst = max(worst, _difference(a, b))
    return worst, allowed if tolerance is None else tolerance


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in _pytree.tree_leaves(value) if isinstance(leaf, Tensor)]


def _difference(found: Tensor, expected: Tensor) -> float:
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    if expected.numel() == 0 or not expected.is_floating_point():
        return 0.0 if torch.equal(found, expected) else float("inf")
    exact = torch.float64 if expected.dtype in (torch.float32, torch.float64) else torch.float32
    a, b = found.detach().to(exact), expected.detach().to(exact)
    worst, size = torch.stack([(a - b).abs().max(), b.abs().max()]).tolist()  # waits for a GPU only once
    if math.isfinite(worst) and math.isfinite(size):
        return float(worst / (size or 1.0))
    finite = torch.isfinite(b)
    if not torch.equal(torch.nan_to_num(a[~finite], nan=1.0), torch.nan_to_num(b[~finite], nan=1.0)) or not bool(
        torch.isfinite(a[finite]).all()
    ):
        return float("inf")
    if not bool(finite.any()):
        return 0.0
    scale = float(b[finite].abs().max())
    return float((a - b)[finite].abs().max()) / (scale or 1.0)


def _clock(function: Callable[[], Any], calls: int) -> float:
    """Returns the seconds for one of `calls` calls, the GPU's work included."""
    start = time.perf_counter()
    for _ in range(calls):
        function()
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls


def issued(function: Callable[[], Any]) -> float:
    """Returns the seconds for which one call keeps the host when the GPU has nothing else to do."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    seconds = time.perf_counter() - start
    torch.cuda.synchronize()
    return seconds


def _busy(function: Callable[[], Any], calls: int, host: float) -> float:
    """Returns the seconds for which one of `calls` calls keeps the GPU, which starts when all are issued.

    The host takes `host` seconds to issue each.
    """
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    torch.cuda._sleep(int(_CYCLES * (1.3 * calls * host + 1e-4)))
    start.record()
    for _ in range(calls):
        function()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / calls


def replay(
    function: Callable[[], Any], calls: int, load: Callable[[CaptureError], bool] | None = None
) -> Callable[[], Any]:
    """Returns a function that replays a CUDA graph of `calls` calls of `function`.

    `load` gets the error of a capture that missed something, and returns whether it has loaded anything. If so, the
    capture is repeated. Raises RuntimeError for calls that no graph can hold.
    """
    while True:
        try:
            return _captured(function, calls)
        except CaptureError as error:
            if load is None or not load(error):
                raise


def _captured(function: Callable[[], Any], calls: int) -> Callable[[], Any]:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        for _ in range(2):
            function()
        torch.cuda.synchronize()
        graph.capture_begin()  # torch.cuda.graph would also release all cached memory
        try:
            for _ in range(calls):
                function()
        except BaseException:
            with contextlib.suppress(RuntimeError):  # a second error would hide the cause
                graph.capture_end()
            raise
        graph.capture_end()
    torch.cuda.current_stream().wait_stream(stream)
    return graph.replay


def interleaved(
    first: Callable[[], Any],
    second: Callable[[], Any] | None,
    seconds: float = 0.1,
    rounds: int = 7,
    switch: Callable[[int], None] | None = None,
    graphs: bool = False,
    ahead: bool = False,
    load: Callable[[CaptureError], bool] | None = None,
) -> tuple[float, float]:
    """Returns the median microseconds of one call of each function (0 for an absent second), measured in turns.

    Takes about `seconds` in all, with fewer rounds where one call of each takes that long.

    `switch` is called with the number of the function, 0 or 1, before each of its turns, outside of the measured time.
    With `graphs`, calls are replayed from CUDA graphs of about a millisecond, so that the host's time does not count;
    `load` is that of `replay`. With `ahead`, it does not count either: the GPU begins when the host has issued all
    calls of a turn.
    """
    functions = [f for f in (first, second) if f is not None]
    held = [1 for _ in functions]
    if graphs:
        for k, function in enumerate(functions):
            if switch is not None:
                switch(k)
            function()
            held[k] = max(1, min(20, int(1e-3 / _clock(function, 1))))
            functions[k] = replay(function, held[k], load)
        switch = None  # a graph replays the state in which it was captured

    def turn(k: int, calls: int) -> float:
        if switch is not None:
            switch(k)
        return _clock(functions[k], calls)

    count = len(functions)
    for k in range(count):
        turn(k, 1)
    slowest = max(turn(k, 1) for k in range(count))
    if slowest * rounds * count > _MOST_OVER * seconds:
        rounds = min(rounds, _FEWEST)
    if ahead:
        host = max(issued(f) for f in functions)
        most = min(_MOST_AHEAD, int(_LONGEST_AHEAD / host), int(seconds / (2 * max(host, slowest) * rounds * count)))
    else:
        most = min(1000, int(seconds / (slowest * rounds * count + 1e-9)))
    calls = max(1, most)
    times: list[list[float]] = [[] for _ in functions]
    for i in range(rounds):
        for k in range(count) if i % 2 else reversed(range(count)):
            spent = _busy(functions[k], calls, host) if ahead else turn(k, calls) / held[k]
            times[k].append(spent * 1e6)
    medians = [statistics.median(each) for each in times]
    return medians[0], medians[1] if count > 1 else 0.0


def benchmark_op(
    op_name: str,
    kpkg_op: Callable[..., Any],
    pytorch_op: Callable[..., Any],
    *inputs: Any,
    warmup: int = 10,
    iterations: int = 100,
    tolerance: float | None = None,
) -> dict[str, Any]:
    """Times an op against PyTorch's on the same inputs, in turns, and compares their results.

        kpkg.benchmark_op("softmax", lambda x: ops.softmax(x, -1), lambda x: x.softmax(-1), torch.randn(512, 1024))

    Args:
        op_name: The name in the result.
        kpkg_op: The op.
        pytorch_op: PyTorch's op.
        *inputs: Arguments of both.
        warmup: Calls of each before the measurement.
        iterations: Calls of each that are timed. The GPU's work is included.
        tolerance: The greatest error; by dtype by default.

    Returns:
        {"operation", "kpkg_time_ms", "pytorch_time_ms", "speedup", "faster", "error", "match"}. Times are medians of
        one call. "error" is relative to the largest element. "match" is whether it is within `tolerance`.

    Raises:
        ValueError: `iterations` is below 1, or `warmup` is negative.

    Exceptions of either op come through.
    """
    if iterations < 1 or warmup < 0:
        raise ValueError(f"iterations must be at least 1 and warmup at least 0, not {iterations} and {warmup}")

    mine, theirs = functools.partial(kpkg_op, *inputs), functools.partial(pytorch_op, *inputs)
    for _ in range(warmup):
        mine(), theirs()
    error, allowed = compare(mine(), theirs(), tolerance)
    rounds = min(iterations, 10)
    counts = [(iterations + i) // rounds for i in range(rounds)]  # as many as are asked for, in nearly equal rounds
    times = [(_clock(mine, count), _clock(theirs, count)) for count in counts]
    kpkg_ms, pytorch_ms = (statistics.median(t[k] for t in times) * 1e3 for k in (0, 1))
    return {
        "operation": op_name,
        "kpkg_time_ms": kpkg_ms,
        "pytorch_time_ms": pytorch_ms,
        "speedup": pytorch_ms / kpkg_ms,
        "faster": kpkg_ms < pytorch_ms,
        "error": error,
        "match": error <= allowed,
    }
