"""Checks one call against float64, then times it beside PyTorch with a cold L2 cache.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import kpkg
import torch
from calls import PEERS, Call, arguments, elements
from torch import Tensor

Run = Callable[[], Any]
FLUSH_BYTES = 256 << 20
#: With more elements of arguments, the peer's result is compared instead of one in float64.
MOST_EXACT = 1 << 27
ROUND_OFF = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


def tensors_of(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [each for part in value for each in tensors_of(part)] if isinstance(value, tuple | list) else []


def with_gradients(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> tuple[Run, list[Tensor]]:
    """Returns the gradient of the call as a separate call, and its inputs."""
    leaves = [a.detach().requires_grad_() if isinstance(a, Tensor) and a.is_floating_point() else a for a in args]
    inputs = [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.requires_grad]
    result = tensors_of(function(*leaves, **kwargs))[0]
    generator = torch.Generator(device=result.device).manual_seed(1)
    wide = torch.float64 if result.dtype == torch.float64 else torch.float32
    grad = torch.randn(result.shape, generator=generator, device=result.device, dtype=wide).to(result.dtype)
    return lambda: torch.autograd.grad(result, inputs, grad, retain_graph=True), inputs


def prepared(function: Callable[..., Any], call: Call, args: list[Any], kwargs: dict[str, Any]) -> Run:
    if call["grad"]:
        return with_gradients(function, args, kwargs)[0]
    return lambda: function(*args, **kwargs)


def distance(found: list[Tensor], expected: list[Tensor]) -> float:
    """Returns the largest difference, in units of the result's round-off and magnitude; infinite if a result is not
    finite."""
    most = 0.0
    for mine, exact in zip(found, expected, strict=True):
        if mine.shape != exact.shape:
            return math.inf
        if mine.numel() == 0:
            continue
        if not mine.is_floating_point():
            most = max(most, math.inf if (mine != exact).any() else 0.0)
            continue
        size = float(exact.abs().amax()) or 1.0
        apart = float((mine.to(exact.dtype) - exact).abs().amax())
        most = max(most, math.inf if math.isnan(apart) else apart / (size * ROUND_OFF[mine.dtype]))
    return most


def is_wrong(call: Call, ours: Run, theirs: Run, args: list[Any], kwargs: dict[str, Any]) -> str | None:
    """Returns how far the result is from the exact one, if that exceeds both twice the peer's error and 16
    round-offs."""
    found, other = tensors_of(ours()), tensors_of(theirs())
    if elements(call) > MOST_EXACT or call["op"] == "argmax":
        # Equal extremes may have different indices, so their values are compared.
        if call["op"] == "argmax":
            x, dims = args[0], args[1]
            found, other = ([x.gather(dims[0], i if args[2] else i.unsqueeze(dims[0]))] for (i,) in (found, other))
        apart = distance(found, [each.double() for each in other])
        return f"{apart:.0f} round-offs from PyTorch's" if apart > 64 else None
    wide = [a.double() if isinstance(a, Tensor) and a.is_floating_point() else a for a in args]
    exact = tensors_of(prepared(PEERS[call["op"]], call, wide, kwargs)())
    mine, peer = distance(found, exact), distance(other, exact)
    return f"{mine:.0f} round-offs from float64, PyTorch {peer:.0f}" if mine > max(16.0, 2 * peer) else None


class Clock:
    """Times runs in turn: on a GPU by events with the L2 cache flushed, on a CPU by the host's clock."""

    def __init__(self, device: str, seconds: float) -> None:
        self.is_gpu, self.seconds = device == "cuda", seconds
        self.flush = torch.empty(FLUSH_BYTES if self.is_gpu else 0, dtype=torch.uint8, device=device)

    def once(self, run: Run) -> float:
        """Returns the seconds of one run; on a GPU, those of the device."""
        if not self.is_gpu:
            start = time.perf_counter()
            run()
            return time.perf_counter() - start
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.flush.zero_()
        begin.record()
        run()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e-3

    def medians(self, runs: dict[str, Run]) -> dict[str, float]:
        """Returns the median seconds of each. Slow calls get fewer rounds."""
        slowest = max(self.once(run) for run in runs.values() for _ in range(2))
        rounds = max(3, min(15, int(self.seconds / (slowest + 2e-4) / len(runs))))
        taken: dict[str, list[float]] = {name: [] for name in runs}
        for turn in range(rounds):
            for name in sorted(runs, reverse=turn % 2 == 1):
                taken[name].append(self.once(runs[name]))
        return {name: statistics.median(times) for name, times in taken.items()}

    def host(self, run: Run, repeats: int = 20) -> float:
        """Returns the host's seconds for a GPU call without waiting for its result."""
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(repeats):
            run()
        spent = (time.perf_counter() - start) / repeats
        torch.cuda.synchronize()
        return spent


def compiled(call: Call, args: list[Any], kwargs: dict[str, Any]) -> Run | None:
    """Returns the peer by torch.compile, or None if it cannot be compiled."""
    torch._dynamo.reset()
    try:
        run = prepared(torch.compile(PEERS[call["op"]], dynamic=False), call, args, kwargs)
        run()
    except Exception:  # after any compiler error, this peer is missing for this call
        return None
    return run


def measure(op: Callable[..., Any], call: Call, clock: Clock, seed: int, with_compile: bool) -> dict[str, Any]:
    """Returns the facts about the call after running it: a ratio, or its error."""
    device = "cuda" if clock.is_gpu else "cpu"
    args, kwargs = arguments(call, torch.Generator(device=device).manual_seed(seed))
    runs = {"eager": prepared(PEERS[call["op"]], call, args, kwargs)}
    try:
        runs["eager"]()
    except RuntimeError as error:  # PyTorch has no such call
        return {"left_out": str(error)[:200]}
    try:
        with kpkg.fallback_policy("strict"):
            runs["kpkg"] = prepared(op, call, args, kwargs)
            runs["kpkg"]()
    except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
        kind = "fallback" if "strict" in str(error) else "error"
        return {kind: str(error)[:300]}
    row: dict[str, Any] = {}
    with kpkg.fallback_policy("strict"):
        if said := is_wrong(call, runs["kpkg"], runs["eager"], args, kwargs):
            row["wrong"] = said
        if with_compile and (peer := compiled(call, args, kwargs)):
            runs["compile"] = peer
        seconds = clock.medians(runs)
        best = min((name for name in runs if name != "kpkg"), key=lambda name: seconds[name])
        row |= {"us": {name: round(value * 1e6, 2) for name, value in seconds.items()}, "best": best}
        row["ratio"] = round(seconds[best] / seconds["kpkg"], 4)
        if clock.is_gpu and seconds["kpkg"] < 1e-4:
            host = {name: round(clock.host(run) * 1e6, 2) for name, run in runs.items() if name != "compile"}
            row["host_us"] = host
    return row


def kernels_of(op: Callable[..., Any], call: Call, seed: int, device: str) -> list[str]:
    """Returns the kernel instances that the call runs, the longest first."""
    args, kwargs = arguments(call, torch.Generator(device=device).manual_seed(seed))
    with kpkg.fallback_policy("strict"):
        run = prepared(op, call, args, kwargs)
        with kpkg.profile_kernel() as taken:
            run()
    return [row["instance"] for row in taken.kernels()]
