"""Checks CUDA graphs, streams and threads.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import kpkg
import torch
from torch.testing import assert_close

from torch_checks import OPTIONS, randn


def graph_capture_and_replay() -> Any:
    """Captures graphs with a private pool and with a pool that two graphs share; results follow the inputs."""
    x, w = randn(64, 256, dtype=torch.bfloat16), randn(256, dtype=torch.bfloat16)
    for op in (kpkg.ops.softmax, kpkg.ops.layer_norm, kpkg.ops.gemm):
        op.op._library.prewarm("cuda")

    def model() -> torch.Tensor:
        return torch.ops.kpkg.softmax(
            torch.ops.kpkg.gemm(torch.ops.kpkg.layer_norm(x, [256], w), x, transpose_b=True), -1
        )

    before = torch.cuda.CUDAGraph()
    with torch.cuda.graph(before):
        y = model()
    second = torch.cuda.CUDAGraph()
    with torch.cuda.graph(second, pool=before.pool()):
        z = model() * 2
    for _ in range(3):
        x.copy_(randn(64, 256, dtype=torch.bfloat16))
        before.replay()
        second.replay()
        torch.cuda.synchronize()
        assert_close(y, model())
        assert_close(z, model() * 2)


REFUSED = """
import torch, kpkg
kpkg.set_fallback_policy("strict")
x = torch.randn(8, 64, device="cuda")
assert kpkg.ops.softmax.is_available
g = torch.cuda.CUDAGraph()
try:
    with torch.cuda.graph(g):
        kpkg.ops.softmax(x)
except (kpkg.KernelError, kpkg.DeviceError) as error:
    print(type(error).__name__, error.op, error)
"""


def capture_without_prewarm_is_refused() -> str:
    done = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True)
    assert "Error kpkg::softmax" in done.stdout and "prewarm" in done.stdout, done.stdout + done.stderr[-1500:]
    return done.stdout.strip()


def side_streams() -> None:
    x = randn(4096, 1024)
    expected = x.softmax(-1)
    stream = torch.cuda.Stream()
    for _ in range(20):
        y = torch.empty_like(x)
        torch.cuda._sleep(1_000_000)
        z = x + 0
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            y = torch.ops.kpkg.softmax(z)
        torch.cuda.current_stream().wait_stream(stream)
        assert_close(y, expected)


def threads_and_streams() -> str:
    """Checks results and constant memory use of 8 threads, each with 4 streams, mixed ops and shapes."""
    shapes = [(3, 17), (64, 256), (128, 1000), (5, 4096), (1, 1), (33, 64)]
    inputs = {shape: randn(*shape) for shape in shapes}
    expected = {
        shape: (x.softmax(-1), torch.nn.functional.layer_norm(x, shape[1:]), torch.nn.functional.gelu(x))
        for shape, x in inputs.items()
    }
    torch.cuda.synchronize()
    failures: list[str] = []

    def work(seed: int, calls: int) -> None:
        streams = [torch.cuda.Stream() for _ in range(4)]
        try:
            for i in range(calls):
                shape = shapes[(seed * 7 + i) % len(shapes)]
                x, (soft, norm, gelu) = inputs[shape], expected[shape]
                with torch.cuda.stream(streams[i % 4]):
                    found, wanted = (
                        (torch.ops.kpkg.softmax(x), soft),
                        (torch.ops.kpkg.layer_norm(x, shape[1:]), norm),
                        (torch.ops.kpkg.gelu(x), gelu),
                    )[i % 3]
                    if i % 97 == 0 and not torch.allclose(found, wanted, atol=1e-5, rtol=1e-4):
                        failures.append(f"thread {seed}, call {i}, {shape}")
            for stream in streams:
                stream.synchronize()
        except Exception as error:  # any failure is a finding
            failures.append(f"thread {seed}: {type(error).__name__}: {error}")

    def run(calls: int) -> tuple[int, int]:
        pool = [threading.Thread(target=work, args=(seed, calls)) for seed in range(8)]
        for thread in pool:
            thread.start()
        for thread in pool:
            thread.join()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info()[0], int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )

    free, resident = run(OPTIONS.calls // 10)
    start = time.perf_counter()
    free_after, resident_after = run(OPTIONS.calls)
    seconds = time.perf_counter() - start
    assert not failures, failures[:5]
    lost, grown = free - free_after, resident_after - resident
    assert lost <= 64 << 20, f"{lost >> 20} MiB of the GPU's memory are gone"
    assert grown <= 64 << 20, f"the process grew by {grown >> 20} MiB"
    return (
        f"{8 * OPTIONS.calls} calls in {seconds:.1f} s; device memory {lost >> 10} KiB less, host {grown >> 10} KiB "
        "more"
    )


CHECKS = (graph_capture_and_replay, capture_without_prewarm_is_refused, side_streams, threads_and_streams)
