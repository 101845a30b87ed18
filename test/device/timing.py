"""Times calls on a GPU for the other scripts in this folder.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

Calls = dict[str, Callable[[], Any]]
FLUSH_BYTES = 256 << 20


def usable(calls: Calls) -> tuple[Calls, dict[str, str]]:
    """Returns the calls that run, and the reasons why the others fail."""
    good: Calls = {}
    refused: dict[str, str] = {}
    for name, call in calls.items():
        try:
            call()
            torch.cuda.synchronize()
            good[name] = call
        except (RuntimeError, ValueError) as error:
            refused[name] = str(error).splitlines()[0][:200]
    return good, refused


# The GPU sleeps this long, about a millisecond, so that the host runs ahead of it.
SLEEP_CYCLES = 1_500_000


def times(calls: Calls, rounds: int, is_clean: bool = False, is_ahead: bool = False) -> dict[str, float]:
    """Returns the median microseconds of each call, launched in shuffled order with an L2 flush before each.

    A flush by writes leaves some 50 MB of dirty lines, which the call's own reads must evict to memory. A flush by
    reads (`is_clean`) does not. With `is_ahead`, the GPU sleeps before each call, so that host time does not count.
    """
    flush = torch.zeros(FLUSH_BYTES // 4, dtype=torch.float32, device="cuda")
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name in random.sample(list(calls), len(calls)):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush.sum() if is_clean else flush.zero_()
            if is_ahead:
                torch.cuda._sleep(SLEEP_CYCLES)
            begin.record()
            calls[name]()
            end.record()
            torch.cuda.synchronize()
            found[name].append(begin.elapsed_time(end) * 1e3)
    return {name: round(statistics.median(values), 2) for name, values in found.items()}


def sustained(calls: Calls, seconds: float) -> dict[str, float]:
    """Returns the microseconds per launch of each call when launched back to back for `seconds`.

    Each call is measured twice, and the lesser time counts. A GPU that reaches its power limit lowers its clock, which
    single launches do not show.
    """
    found: dict[str, float] = {}
    for name in [*calls, *reversed(calls)]:
        calls[name]()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        started, count = time.monotonic(), 0
        begin.record()
        while time.monotonic() - started < seconds:
            for _ in range(8):
                calls[name]()
            count += 8
            end.record()
            end.synchronize()
        found[name] = min(found.get(name, math.inf), begin.elapsed_time(end) * 1e3 / count)
    return {name: round(value, 2) for name, value in found.items()}
