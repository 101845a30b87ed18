"""Times networks of torchvision on a GPU with layers replaced by kpkg.inject.

Compares them with unmodified PyTorch and with torch.compile.

    KPKG_PATH=conv.kpkg:pooling.kpkg:gemm.kpkg test/device/network.py --batch 64 --out networks.json
    test/device/network.py --models mobilenet_v3_large --way compile --batch 8 --dtype float32 --out one.json
    test/device/network.py --train --out train.json

Models are channels-last with random weights; running statistics come from random images. Each network runs in a process
of its own, and a lock lets one process measure at a time. `--way` selects how inject times layers: eager, CUDA graphs,
or torch.compile; with `compile`, inject runs on the compiled model. All variants are timed directly and as CUDA graphs.
`--train` times a forward and a backward in training mode. Rounds are shuffled and figures are medians. Errors are
relative to the greatest element of the float64 result.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import fcntl
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

MODELS = "resnet50,mobilenet_v3_large,mobilenet_v3_small,efficientnet_b0,vit_b_16"


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Holds the lock that keeps other processes from measuring."""
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def wait_for_all(folder: Path, step: str, name: str, count: int, seconds: float) -> None:
    """Waits until every process has reached this step, or until `seconds` have passed."""
    (folder / f"{step}-{name}").touch()
    end = time.monotonic() + seconds
    while len(list(folder.glob(f"{step}-*"))) < count and time.monotonic() < end:
        time.sleep(0.1)


def made(name: str, seed: int = 0) -> Any:
    """Returns the network with random weights, in eval mode.

    Running statistics come from random images, so that activations have realistic sizes.
    """
    import torch
    from torch import nn
    from torchvision.models import get_model

    torch.manual_seed(seed)
    model = get_model(name, weights=None).cuda().train()
    named = {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.BatchNorm2d)}
    norms = list(named.values())
    for (
        name,
        norm,
    ) in (
        named.items()
    ):  # residual branches are small, as in trained networks; otherwise rounding errors grow with each block
        nn.init.uniform_(norm.weight, *((0.1, 0.3) if name.endswith("bn3") else (0.5, 1.5)))
        nn.init.normal_(norm.bias, std=0.1)
    if not norms:  # torchvision initialises a transformer's head with zeros
        nn.init.normal_(model.heads[-1].weight, std=0.02)
    else:
        momenta = [norm.momentum for norm in norms]
        for norm in norms:
            norm.momentum = 1.0
        with torch.no_grad():
            model(torch.randn(16, 3, 224, 224, device="cuda"))
        for norm, momentum in zip(norms, momenta):
            norm.momentum = momentum
    return model.eval()


def captured(run: Callable[[], Any]) -> Callable[[], Any]:
    """Captures `run` as a CUDA graph and returns a function that replays it."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = run()
    return lambda: (graph.replay(), out)[1]


def timed(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Returns the median milliseconds of each run."""
    import torch

    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name in random.sample(list(runs), len(runs)):
            runs[name]()
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda.synchronize()
            start.record()
            for _ in range(3):
                runs[name]()
            end.record()
            end.synchronize()
            times[name].append(start.elapsed_time(end) / 3)
    return {name: round(statistics.median(values), 4) for name, values in times.items()}


def evaluated(options: argparse.Namespace, model: Any, x: Any, found: dict[str, Any]) -> None:
    """Measures inference."""
    import torch

    wait_for_all(options.shared, "ready", options.one, options.count, 40)
    with torch.no_grad():
        with alone(options.shared):
            small = x[: min(options.batch, 8)]
            exact = copy.deepcopy(model).double()(small.double())
            scale = float(exact.abs().max())
            replaced = copy.deepcopy(model)
            calls = {"eager": model, "kpkg": replaced}
            if options.way == "compile":
                calls = {
                    "compile": torch.compile(copy.deepcopy(model), fullgraph=True),
                    "kpkg compile": torch.compile(replaced, fullgraph=True),
                }
            else:
                injected(replaced, x, options, found)
        if options.way == "compile":  # compilation runs on the host, so that networks need not wait for each other
            start = time.perf_counter()
            calls["compile"](x)
            found["compile_seconds"] = round(time.perf_counter() - start, 2)
            wait_for_all(options.shared, "compiled", options.one, options.count, 60)
            injected(calls["kpkg compile"], x, options, found)
            wait_for_all(options.shared, "injected", options.one, options.count, 60)
        with alone(options.shared):
            runs: dict[str, Callable[[], Any]] = {name: (lambda call=call: call(x)) for name, call in calls.items()}
            found["errors"] = {
                name: float((run()[: small.shape[0]].double() - exact).abs().max()) / scale
                for name, run in runs.items()
            }
            for name, run in list(runs.items()):
                runs[f"{name} graph"] = captured(run)
            found["graph_errors"] = {
                name: float((run()[: small.shape[0]].double() - exact).abs().max()) / scale
                for name, run in runs.items()
                if "graph" in name
            }
            found["ms"] = timed(runs, options.rounds)


def injected(model: Any, x: Any, options: argparse.Namespace, found: dict[str, Any]) -> None:
    """Runs kpkg.inject and records its outcome in `found`."""
    import kpkg

    start = time.perf_counter()
    injection = kpkg.inject(model, sample_input=x, cuda_graphs=options.way == "graph")
    found["inject_seconds"] = round(time.perf_counter() - start, 2)
    found["by_gpu_time"] = injection.by_gpu_time
    found["inject_ms"] = [(injection.original_us or 0) / 1e3, (injection.kpkg_us or 0) / 1e3, injection.error]
    found["rows"] = [
        [row.name, row.layer, row.replacement, row.error, row.original_us, row.kpkg_us, row.status]
        for row in injection.rows
    ]
    options.out.write_text(json.dumps(found))  # partial results, in case the rest takes too long


def trained(options: argparse.Namespace, model: Any, x: Any, found: dict[str, Any]) -> None:
    """Measures a forward and a backward."""
    import torch

    wait_for_all(options.shared, "ready", options.one, options.count, 40)
    labels = torch.randint(1000, (options.batch,), device="cuda")

    def step(each: Any, images: Any) -> Any:
        each.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(each(images).float(), labels)
        loss.backward()
        return loss.detach()

    with alone(options.shared):
        model.train()
        for layer in model.modules():  # random layers differ between runs
            if isinstance(layer, torch.nn.Dropout):
                layer.p = 0.0
            if type(layer).__name__ == "StochasticDepth":
                layer.p = 0.0
        exact = copy.deepcopy(model).float()
        state = copy.deepcopy(model.state_dict())
        replaced = copy.deepcopy(model)
        start = time.perf_counter()
        for _ in range(2):  # the time of cuDNN's autotuning is no part of injecting
            step(copy.deepcopy(model), x)
        torch.cuda.synchronize()
        found["pytorch_seconds"] = round(time.perf_counter() - start, 2)
        injected(replaced, x, options, found)
        found["statistics_kept"] = all(torch.equal(value, state[name]) for name, value in replaced.state_dict().items())
        losses = {}
        runs: dict[str, Callable[[], Any]] = {}
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = False, False
        torch.backends.cudnn.benchmark = False  # one call only, which needs no autotuning
        step(exact, x.float())
        torch.backends.cudnn.allow_tf32, torch.backends.cudnn.benchmark = True, True
        gradients = {name: p.grad.double() for name, p in exact.named_parameters()}
        found["gradient_errors"] = {}
        for name, each in (("eager", model), ("kpkg", replaced)):
            losses[name] = float(step(each, x))
            errors = [
                float((p.grad.double() - gradients[n]).norm() / gradients[n].norm())
                for n, p in each.named_parameters()
                if float(gradients[n].norm()) > 0
            ]
            found["gradient_errors"][name] = {"median": statistics.median(errors), "most": max(errors)}
            runs[name] = lambda each=each: step(each, x)
        found["losses"] = losses
        for name, run in list(runs.items()):
            try:
                runs[f"{name} graph"] = captured(run)
            except Exception as error:
                found.setdefault("failed", {})[f"{name} graph"] = f"{type(error).__name__}: {error}"[:1000]
        found["ms"] = timed(runs, options.rounds)


def one(options: argparse.Namespace) -> None:
    """Measures one network in this process."""
    import kpkg
    import torch

    torch.cuda.init()
    with alone(options.shared):
        model = made(options.one).to(getattr(torch, options.dtype)).to(memory_format=torch.channels_last)
        x = (
            torch.randn(options.batch, 3, 224, 224, device="cuda")
            .to(getattr(torch, options.dtype))
            .contiguous(memory_format=torch.channels_last)
        )
    torch.backends.cudnn.benchmark = True
    found: dict[str, Any] = {
        "model": options.one,
        "batch": options.batch,
        "dtype": options.dtype,
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
    }
    found |= {"kpkg": kpkg.__version__, "mode": "train" if options.train else "eval", "way": options.way}
    try:
        (trained if options.train else evaluated)(options, model, x, found)
    finally:
        options.out.write_text(json.dumps(found, indent=1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--dtype", default="bfloat16", choices=["float32", "float16", "bfloat16"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--way",
        default="eager",
        choices=["eager", "graph", "compile"],
        help="in which the layers are chosen; compiling takes a minute",
    )
    parser.add_argument("--train", action="store_true")
    parser.add_argument(
        "--seconds", type=float, default=110.0, help="for all networks; what is not done by then is missing"
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--shared", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.one:
        one(options)
        return 0
    names = options.models.split(",")
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as shared:
        files = {name: Path(shared) / f"{name}.json" for name in names}
        given = [
            "--batch",
            str(options.batch),
            "--dtype",
            options.dtype,
            "--rounds",
            str(options.rounds),
            "--shared",
            shared,
            "--count",
            str(len(names)),
        ]
        given += ["--train"] * options.train + ["--way", options.way]
        started = {}
        for name, file in files.items():
            log = file.with_suffix(".log").open("w")
            started[name] = subprocess.Popen(
                [sys.executable, __file__, "--one", name, "--out", str(file), *given],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        for name, process in started.items():
            try:
                process.wait(max(end - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
        results, failed = [], False
        for name, file in files.items():
            print(file.with_suffix(".log").read_text()[-20000:])
            if file.exists():
                results.append(json.loads(file.read_text()))
                print(json.dumps({key: value for key, value in results[-1].items() if key != "rows"}), flush=True)
            failed = failed or started[name].returncode != 0
    if options.out:
        options.out.write_text(json.dumps(results, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
