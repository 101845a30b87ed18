"""Checks several GPUs in one process, and DTensor over as many processes.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from pathlib import Path

import kpkg
import torch
from torch.testing import assert_close


def several_gpus() -> str:
    """Checks results and gradients on each GPU, whatever the current device is.

    Also runs them at once from threads. A call with tensors of two GPUs is refused.
    """
    count = torch.cuda.device_count()
    failures: list[str] = []

    def work(index: int, calls: int) -> None:
        try:
            for i in range(calls):
                x = torch.randn(8 + i, 64, device=f"cuda:{index}").requires_grad_()
                y = torch.ops.kpkg.softmax(torch.ops.kpkg.layer_norm(x, [64]))
                assert y.device == x.device
                (found,) = torch.autograd.grad(y.square().sum(), x)
                expected = torch.nn.functional.layer_norm(x, [64]).softmax(-1)
                assert_close(y, expected)
                assert_close(found, torch.autograd.grad(expected.square().sum(), x)[0], atol=1e-4, rtol=1e-3)
        except Exception as error:  # any failure is a finding
            failures.append(f"cuda:{index}: {type(error).__name__}: {error}")

    for index in range(count):
        with torch.cuda.device((index + 1) % count):
            work(index, 2)
    threads = [threading.Thread(target=work, args=(index, 50)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[:3]
    for index in range(1, count):
        graph, x = torch.cuda.CUDAGraph(), torch.randn(8, 64, device=f"cuda:{index}")
        kpkg.ops.softmax.op._library.prewarm(f"cuda:{index}")  # type: ignore[union-attr]
        with torch.cuda.device(index):
            with torch.cuda.graph(graph):
                y = torch.ops.kpkg.softmax(x)
            graph.replay()
        assert_close(y, x.softmax(-1))
        two_gpus_in_one_program(torch.device("cuda:0"), torch.device(f"cuda:{index}"))
    return f"{count} GPUs"


def two_gpus_in_one_program(first: torch.device, second: torch.device) -> None:
    """Uses `second` while `first` is current; calls that mix both are refused.

    Covers calls, streams and profiles, tensors copied back and forth, and gradients through both.
    """
    torch.cuda.set_device(first)
    x = torch.randn(64, 256, device=first).requires_grad_()
    y = torch.ops.kpkg.softmax(torch.ops.kpkg.layer_norm(x, [256]).to(second))  # each GPU runs half of the model
    z = torch.ops.kpkg.gelu(y.to(first))
    expected = torch.nn.functional.gelu(torch.nn.functional.layer_norm(x, [256]).softmax(-1))
    assert y.device == second and z.device == first
    assert_close(z, expected)
    assert_close(
        torch.autograd.grad(z.square().sum(), x)[0],
        torch.autograd.grad(expected.square().sum(), x)[0],
        atol=1e-5,
        rtol=1e-3,
    )
    stream = torch.cuda.Stream(second)
    with torch.no_grad(), torch.cuda.stream(stream), kpkg.profile_kernel() as taken:
        torch.cuda._sleep(1_000_000)
        late = torch.ops.kpkg.softmax(
            torch.randn(64, 256, device=second).mul_(0).add_(torch.arange(256.0, device=second))
        )
    stream.synchronize()
    assert_close(late, torch.arange(256.0, device=second).softmax(-1).expand(64, 256))
    (launch,) = taken.records["launches"]
    assert launch["device"] == str(second) and launch["device_duration_ns"] > 0, launch
    assert torch.cuda.current_device() == first.index
    here, there = torch.ones(4, device=first), torch.ones(4, device=second)
    for name, mixture in {
        "add": lambda: torch.ops.kpkg.add(here, there),
        "softmax": lambda: torch.ops.kpkg.softmax.out(here, out=there),
    }.items():
        try:
            mixture()
        except RuntimeError as error:
            assert name in str(error), error
        else:
            raise AssertionError("arguments on two GPUs were taken")
    assert torch.cuda.current_device() == first.index


def sharded_tensors() -> str:
    """Checks DTensor over all GPUs with NCCL; over one if there is no other."""
    count = torch.cuda.device_count()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    from kpkg import _default

    script = Path(__file__).parents[2] / "python" / "sharded.py"
    packages = [str(file) for file in _default.package_files()]
    command = [sys.executable, str(script)]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(count), port, "cuda", *packages],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(count)
    ]
    try:
        outputs = [rank.communicate(timeout=150)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for number, output in enumerate(outputs):
        assert f"sharded {number} of {count} right" in output, output[-1500:]
    return f"{count} ranks" if count > 1 else "absent: a second GPU; one rank is right"


CHECKS = (several_gpus, sharded_tensors)
