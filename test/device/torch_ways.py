"""The ways in which PyTorch calls ops on one GPU or several: graphs, streams, threads, compile, AOTInductor, autocast, opcheck, gradients,
torch.func, DTensor, models with replaced layers, profile, training, host time. One run says of each whether it holds.

    KPKG_PATH=packages python3 test/device/torch_ways.py [--calls 10000] --out ways.json

About three minutes. What needs two GPUs, torchvision or transformers says "absent" where they are. --only NAME, --skip NAME choose.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kpkg
import torch
from torch.testing import assert_close

OPTIONS: argparse.Namespace
CHECKS: list[Callable[[], Any]] = []
FIGURES: dict[str, Any] = {}  # of other scripts, by their names


def check(function: Callable[[], Any]) -> Callable[[], Any]:
    CHECKS.append(function)
    return function


def randn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, device="cuda", dtype=dtype)


@check
def graph_capture_and_replay() -> Any:
    """With a pool of its own, and one that two graphs share; results follow the inputs."""
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


@check
def capture_without_prewarm_is_refused() -> str:
    done = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True)
    assert "Error kpkg::softmax" in done.stdout and "prewarm" in done.stdout, done.stdout + done.stderr[-1500:]
    return done.stdout.strip()


@check
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


@check
def threads_and_streams() -> str:
    """8 threads, each on 4 streams of its own, mixed ops and shapes: right, and memory flat."""
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
        except Exception as error:  # any way to fail is a finding
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
    return f"{8 * OPTIONS.calls} calls in {seconds:.1f} s; device memory {lost >> 10} KiB less, host {grown >> 10} KiB more"


@check
def compiled_forward_and_backward() -> None:
    def model(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.ops.kpkg.softmax(torch.ops.kpkg.layer_norm(x, [x.shape[1]], w) * 2)

    compiled = torch.compile(model, fullgraph=True)
    for rows in (3, 8, 33):
        x, w = randn(rows, 256).requires_grad_(), randn(256).requires_grad_()
        found, expected = compiled(x, w), torch.nn.functional.layer_norm(x, [256], w).mul(2).softmax(-1)
        assert_close(found, expected)
        upstream = torch.randn_like(found)
        for mine, theirs in zip(
            torch.autograd.grad(found, (x, w), upstream), torch.autograd.grad(expected, (x, w), upstream)
        ):
            assert_close(mine, theirs, atol=1e-4, rtol=1e-3)


@check
def opcheck_on_the_gpu() -> str:
    x, w = randn(6, 40), randn(40)
    calls = {
        "softmax": (x, -1),
        "log_softmax": (x, 0),
        "layer_norm": (x, [40], w, w),
        "rms_norm": (x, [40], w),
        "gelu": (x,),
        "add": (x, w),
        "gemm": (x, x, 1.0, 1.0, False, True),
    }
    done = []
    for name, args in calls.items():
        if kpkg.ops[f"kpkg::{name}"].is_available:
            torch.library.opcheck(getattr(torch.ops.kpkg, name).default, args)
            done.append(name)
    return ", ".join(done)


@check
def gradients() -> None:
    x, w = randn(5, 70).requires_grad_(), randn(70).requires_grad_()
    for mine, theirs in [
        (torch.ops.kpkg.softmax(x), x.softmax(-1)),
        (torch.ops.kpkg.layer_norm(x, [70], w), torch.nn.functional.layer_norm(x, [70], w)),
        (torch.ops.kpkg.gelu(x), torch.nn.functional.gelu(x)),
    ]:
        upstream = torch.randn_like(mine)
        for a, b in zip(
            torch.autograd.grad(mine, (x, w), upstream, allow_unused=True),
            torch.autograd.grad(theirs, (x, w), upstream, allow_unused=True),
        ):
            assert (a is None) == (b is None)
            if a is not None and b is not None:
                assert_close(a, b, atol=1e-4, rtol=1e-3)


@check
def autocast() -> None:
    x, w = randn(8, 64), torch.nn.Linear(64, 32, device="cuda")
    layer = kpkg.nn.Linear.from_torch(w)
    with torch.autocast("cuda", dtype=torch.bfloat16), torch.no_grad():
        for mine, theirs in [
            (layer(x), w(x)),
            (kpkg.nn.Softmax(-1)(layer(x)), torch.softmax(w(x), -1)),
            (kpkg.nn.GELU()(w(x)), torch.nn.functional.gelu(w(x))),
        ]:
            assert mine.dtype == theirs.dtype, (mine.dtype, theirs.dtype)
            assert_close(mine, theirs, atol=2e-2, rtol=2e-2)


@check
def transforms() -> None:
    """torch.func and forward mode; first derivatives by the package, without a fallback."""
    x, F = randn(5, 70), torch.func
    for transform in (
        lambda f: F.grad(lambda x: f(x).square().sum())(x),
        lambda f: F.vmap(F.grad(lambda x: f(x).square().sum()))(x),
    ):
        assert_close(
            transform(lambda x: torch.ops.kpkg.softmax(x, -1)), transform(lambda x: x.softmax(-1)), atol=1e-5, rtol=1e-4
        )
    with kpkg.fallback_policy("silent"):
        for transform in (
            lambda f: F.jvp(f, (x,), (x,)),
            lambda f: F.hessian(lambda x: f(x).square().sum())(x[:2, :5]),
        ):
            assert_close(
                transform(lambda x: torch.ops.kpkg.softmax(x, -1)),
                transform(lambda x: x.softmax(-1)),
                atol=1e-5,
                rtol=1e-4,
            )


@check
def gradients_on_a_side_stream() -> None:
    x = randn(512, 1024).requires_grad_()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(1_000_000)
        y = torch.ops.kpkg.softmax(x).square().sum()
    y.backward()
    torch.cuda.current_stream().wait_stream(stream)
    assert_close(x.grad, torch.autograd.grad(x.softmax(-1).square().sum(), x)[0], atol=1e-5, rtol=1e-4)


def shared_compiler(folder: Path) -> dict[str, Any]:
    """Settings of Inductor for a compiler that links C++'s shared library.

    Where only the static one is installed, programs of AOTInductor hold a copy of their own, and crash when they are loaded beside PyTorch's: those
    without any op of kpkg too. The copy that PyTorch has loaded is put before it then.
    """
    compiler, program = os.environ.get("CXX", "g++"), folder / "program.so"
    (folder / "program.cpp").write_text("#include <iostream>\nvoid f() { std::cout << 1; }\n")
    subprocess.run([compiler, "-shared", "-fPIC", folder / "program.cpp", "-o", program], check=True)
    if "libstdc++.so" in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout:
        return {}
    loaded = next(
        line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libstdc++.so.6" in line
    )
    (folder / "libstdc++.so").symlink_to(loaded)
    wrapper = folder / "g++"
    wrapper.write_text(f'#!/bin/sh\nexec "{shutil.which(compiler)}" -L"{folder}" "$@"\n')
    wrapper.chmod(0o755)
    return {"cpp.cxx": (None, str(wrapper))}


@check
def aot_inductor() -> str:
    """A model with kpkg's ops as a package of AOTInductor, with a dynamic dimension, run in a process of its own."""

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            return torch.ops.kpkg.softmax(torch.ops.kpkg.gemm(x, w) * 2)

    with tempfile.TemporaryDirectory() as folder:
        rows = torch.export.Dim("rows", min=2, max=4096)
        program = torch.export.export(
            Model(), (randn(8, 64), randn(64, 32)), dynamic_shapes={"x": {0: rows}, "w": None}
        )
        # Both make the compilation by the host's compiler shorter, which is nearly all of the time here.
        configs = {
            "aot_inductor.compile_wrapper_opt_level": "O0",
            "aot_inductor.precompile_headers": False,
            **shared_compiler(Path(folder)),
        }
        package = torch._inductor.aoti_compile_and_package(
            program, package_path=f"{folder}/model.pt2", inductor_configs=configs
        )
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", LOADED, package], capture_output=True, text=True
        )
    assert "right" in done.stdout, f"exit status {done.returncode}\n{done.stdout}{done.stderr[-3000:]}"
    return done.stdout.strip()


LOADED = """
import sys, torch, torch._inductor, kpkg
kpkg.set_fallback_policy("strict")
assert kpkg.ops.softmax.is_available and kpkg.ops.gemm.is_available
print("ops registered", flush=True)
x, w = torch.randn(8, 64, device="cuda"), torch.randn(64, 32, device="cuda")
torch.ops.kpkg.softmax(torch.ops.kpkg.gemm(x, w))
model = torch._inductor.aoti_load_package(sys.argv[1])
print("program loaded", flush=True)
for rows in (8, 33):
    x = torch.randn(rows, 64, device="cuda")
    torch.testing.assert_close(model(x, w), (x @ w * 2).softmax(-1), atol=1e-4, rtol=1e-3)
print("right for 8 and 33 rows", flush=True)
"""


@check
def several_gpus() -> str:
    """Results and gradients on each, whatever the current device is; at once from threads; a call over two of them is refused."""
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
        except Exception as error:  # any way to fail is a finding
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
    """While `first` is current: calls, streams and profiles of `second`, tensors that go to and fro, gradients through both; mixtures are refused."""
    torch.cuda.set_device(first)
    x = torch.randn(64, 256, device=first).requires_grad_()
    y = torch.ops.kpkg.softmax(torch.ops.kpkg.layer_norm(x, [256]).to(second))  # half of the model on either
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


@check
def sharded_tensors() -> str:
    """DTensor over all GPUs by NCCL; over one where there is no other."""
    count = torch.cuda.device_count()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    from kpkg import _default

    script = Path(__file__).parents[1] / "python" / "sharded.py"
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


@check
def injected_model() -> str:
    torch.manual_seed(0)
    width = 1024
    model = torch.nn.Sequential(
        torch.nn.LayerNorm(width),
        torch.nn.Linear(width, 4 * width),
        torch.nn.GELU(),
        torch.nn.Linear(4 * width, width),
        torch.nn.Softmax(-1),
    )
    model = model.to("cuda", torch.bfloat16).eval()
    x = randn(8, 512, width, dtype=torch.bfloat16)
    with torch.no_grad(), kpkg.fallback_policy("warn"):
        expected = model(x)
        with kpkg.inject(model, sample_input=x, verbose=False) as injection:
            assert_close(model(x), expected, atol=2e-2, rtol=5e-2)
        return "\n" + str(injection)


def inject_into(model: torch.nn.Module, sample: Any) -> str:
    model = model.to("cuda", torch.bfloat16).eval()
    with (
        torch.no_grad(),
        kpkg.fallback_policy("warn"),
        kpkg.inject(model, sample_input=sample, verbose=False) as injection,
    ):
        assert injection.error is not None and injection.error < 5e-2, injection.error
        assert injection.kpkg_us <= injection.original_us * 1.03, f"slower:\n{injection}"  # type: ignore[operator]
        kinds: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for row in injection.rows:
            kinds.setdefault((row.layer, row.status), []).append((row.original_us or 0.0, row.kpkg_us or 0.0))
        lines = [
            f"    {len(times):4} {layer} {status}: {sum(a for a, _ in times):.0f} us, kpkg {sum(b for _, b in times):.0f}"
            for (layer, status), times in kinds.items()
        ]
        lines.insert(
            0,
            f"{len(injection.replaced)} of {len(injection.rows)} replaced, {injection.original_us:.0f} us become {injection.kpkg_us:.0f}, error {injection.error:.1e}",
        )
        return "\n".join(lines)


@check
def injected_torchvision_models() -> str:
    if importlib.util.find_spec("torchvision") is None:
        return "absent: torchvision"
    import torchvision

    x = randn(8, 3, 224, 224, dtype=torch.bfloat16)
    return "".join(
        f"\n{name}: {inject_into(getattr(torchvision.models, name)(weights=None), x)}"
        for name in ("resnet50", "vit_b_16")
    )


@check
def injected_hugging_face_models() -> str:
    if importlib.util.find_spec("transformers") is None:
        return "absent: transformers"
    import transformers

    sizes = {
        "hidden_size": 1024,
        "intermediate_size": 2816,
        "num_hidden_layers": 4,
        "num_attention_heads": 16,
        "vocab_size": 1000,
    }
    sample = {"input_ids": torch.randint(1000, (2, 512), device="cuda")}
    llama, bert = (
        transformers.LlamaModel(transformers.LlamaConfig(**sizes)),
        transformers.BertModel(transformers.BertConfig(**sizes)),
    )
    return "".join(f"\n{name}: {inject_into(model, sample)}" for name, model in (("llama", llama), ("bert", bert)))


def by_script(name: str, *arguments: str) -> Any:
    """What a script beside this one writes to --out; fails where it does."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        done = subprocess.run(
            [sys.executable, str(Path(__file__).with_name(name)), *arguments, "--out", str(out)],
            capture_output=True,
            text=True,
        )
        if out.exists():
            FIGURES[name.removesuffix(".py")] = json.loads(out.read_text())
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]
    return "\n" + done.stdout.rstrip()


@check
def training() -> str:
    """200 steps on real text: eager, compiled, graph replay."""
    return str(by_script("train.py", "--steps", str(OPTIONS.steps)))


@check
def host_time() -> str:
    return str(by_script("host_time.py", "--rounds", "41"))


@check
def profile() -> str:
    """Times of the same calls by CUPTI, by events and by PyTorch's profiler, each in a process of its own: the last keeps CUPTI for itself."""
    found = {}
    for way in ("cupti", "events", "torch"):
        done = subprocess.run([sys.executable, "-c", PROFILED, way], capture_output=True, text=True)
        assert done.returncode == 0, f"{way}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
        found[way] = json.loads(done.stdout.splitlines()[-1])
    FIGURES["profile"] = found
    assert found["cupti"]["by"] == {"by": "cupti"} and found["events"]["by"] == {"by": "events", "reason": ""}, found
    assert found["torch"]["by"]["by"] == "events" and "another tool" in found["torch"]["by"]["reason"], found["torch"]
    lines = [f"{'us':>14} {'CUPTI':>9} {'events':>9} {'PyTorch':>9}"]
    for rows in found["cupti"]["us"]:
        cupti, events, theirs = (found[way]["us"][rows] for way in ("cupti", "events", "torch"))
        lines.append(f"{rows:>6}x4096 f32 {cupti:9.2f} {events:9.2f} {theirs:9.2f}")
        assert abs(cupti - theirs) <= 0.05 * theirs + 0.3, lines
        assert cupti <= events * 1.02, lines
    return "\n".join(["", *lines])


PROFILED = """
import json, sys, torch, kpkg
kpkg.set_fallback_policy("strict")
softmax = kpkg.ops.softmax
us = {}
for rows in (16, 1024, 32768):
    x = torch.randn(rows, 4096, device="cuda")
    for _ in range(3):
        softmax(x)
    torch.cuda.synchronize()
    if sys.argv[1] == "torch":
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as taken, kpkg.profile_kernel() as profile:
            for _ in range(20):
                softmax(x)
            torch.cuda.synchronize()
        times = [event.device_time_total for event in taken.events() if "softmax_rows" in event.name]
    else:
        with kpkg.profile_kernel(events=sys.argv[1] == "events") as profile:
            for _ in range(20):
                softmax(x)
        times = [launch["device_duration_ns"] / 1e3 for launch in profile.records["launches"]]
    assert len(times) == 20 and len(profile.records["launches"]) == 20, (len(times), profile.summary())
    starts = [launch["device_start_ns"] for launch in profile.records["launches"]]
    assert all(s > launch["start_ns"] - 50_000 for s, launch in zip(starts, profile.records["launches"])), "a kernel began before its launch"
    assert starts == sorted(starts)
    us[rows] = sorted(times)[10]
print(json.dumps({"by": profile.records["device_times"], "us": us}))
"""


@check
def torch_profiler_shows_names() -> str:
    x = randn(64, 256)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    ) as taken:
        torch.ops.kpkg.softmax(x)
        torch.cuda.synchronize()
    names = {event.key for event in taken.key_averages()}
    assert "kpkg::softmax" in names, names
    kernels = [name for name in names if "softmax_rows" in name]
    assert kernels, names
    return ", ".join(kernels)


def main() -> int:
    global OPTIONS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000, help="calls of each of the 8 threads")
    parser.add_argument("--steps", type=int, default=200, help="of the training")
    parser.add_argument("--only", action="append", help="name of a check; may be repeated")
    parser.add_argument("--skip", action="append", default=[], help="name of a check; may be repeated")
    parser.add_argument("--out", type=Path)
    OPTIONS = parser.parse_args()
    known = {function.__name__ for function in CHECKS}
    if unknown := {*(OPTIONS.only or []), *OPTIONS.skip} - known:
        parser.error(f"there is no check {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    kpkg.set_fallback_policy("strict")
    for name in ("softmax", "layer_norm", "gemm", "gelu", "log_softmax", "rms_norm", "add"):
        assert kpkg.ops[f"kpkg::{name}"].is_available, kpkg.ops[f"kpkg::{name}"].reason
    gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    record: dict[str, Any] = {
        "torch": torch.__version__,
        "kpkg": kpkg.__version__,
        "gpus": gpus,
        "checks": {},
        "figures": FIGURES,
    }
    for function in CHECKS:
        name = function.__name__
        if (OPTIONS.only and name not in OPTIONS.only) or name in OPTIONS.skip:
            continue
        start = time.perf_counter()
        try:
            text = str(function() or "")
            state = "absent" if text.startswith("absent") else "passed"
        except Exception as error:  # the others are to run all the same
            text, state = f"{type(error).__name__}: {str(error)[:1500]}\n{traceback.format_exc(limit=-3)}", "FAILED"
        record["checks"][name] = {"state": state, "seconds": round(time.perf_counter() - start, 2), "text": text}
        print(f"{state:7} {name:40} {record['checks'][name]['seconds']:7.2f} s  {text}", flush=True)
        if OPTIONS.out:
            OPTIONS.out.write_text(json.dumps(record, indent=1) + "\n")
    states = [result["state"] for result in record["checks"].values()]
    print(
        f"{states.count('passed')} passed, {states.count('absent')} absent, {states.count('FAILED')} failed on {len(gpus)} GPUs"
    )
    return 1 if "FAILED" in states else 0


if __name__ == "__main__":
    sys.exit(main())
