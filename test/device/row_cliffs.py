"""Times row ops over any dimension and of unusual lengths, beside PyTorch and, if given, packages of another version.

It covers leading, middle and several dimensions, pooling, and rows of short, odd and very long lengths. Some shapes
are listed, others are drawn from a seed.

    python test/device/row_cliffs.py --packages after/ --before before/ -o rows.json [--compile] [--seconds 300]

Each call is compared with float64 once. Then it runs in a CUDA graph over rotating inputs that are larger together than
the L2 cache, and graphs are replayed in shuffled order. A ratio is the time of the best peer by kpkg's.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kpkg
import torch
import torch.nn.functional as F
from torch import Tensor

BYTES_OF_ROUND = 200 << 20
MOST_COPIES = 24
ROUNDS = 9
#: What an H200 copies in a second, for the expected time of each call.
COPY_RATE = 4.0e12
Peer = Callable[..., Any]
Case = dict[str, Any]


def reduced(name: str) -> tuple[Peer, Peer]:
    function = getattr(torch, name)
    if name in ("argmax", "prod"):
        return lambda ops, x, dims: ops[name](x, dims), lambda x, dims: function(x, dims[0] if dims else None)
    return lambda ops, x, dims: ops[name](x, dims), lambda x, dims: function(x, dims)


def gradient(of: Peer) -> tuple[Peer, Peer]:
    """The gradient of a loss: kpkg's op for it, and PyTorch's forward and backward pass."""

    def peer(x: Tensor, t: Tensor) -> Tensor:
        leaf = x.detach().requires_grad_()
        return torch.autograd.grad(of(leaf, t), leaf)[0]

    def ours(ops: dict[str, Any], x: Tensor, t: Tensor) -> Tensor:
        ops["cross_entropy"](x, t)
        return ops["cross_entropy_backward"](ops["one"], x, t)

    return ours, peer


def norm_gradient(ops: dict[str, Any], g: Tensor, x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    return ops["rms_norm_backward"](g, x, [x.shape[-1]], w, 1e-6)


def norm_gradient_peer(g: Tensor, x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    leaves = [x.detach().requires_grad_(), w.detach().requires_grad_()]
    return torch.autograd.grad(F.rms_norm(leaves[0], [x.shape[-1]], leaves[1], 1e-6), leaves, g)


def softmax_gradient_peer(log: bool) -> Peer:
    if log:
        return lambda g, y, d: g - y.exp() * g.sum(d, keepdim=True)
    return lambda g, y, d: (g - (g * y).sum(d, keepdim=True)) * y


#: By op: kpkg's call, which gets all ops, and PyTorch's.
CALLS: dict[str, tuple[Peer, Peer]] = {
    "softmax": (lambda ops, x, d: ops["softmax"](x, d), torch.softmax),
    "log_softmax": (lambda ops, x, d: ops["log_softmax"](x, d), torch.log_softmax),
    "logsumexp": (lambda ops, x, d: ops["logsumexp"](x, d), torch.logsumexp),
    "softmax_backward": (
        lambda ops, g, y, d: ops["softmax_backward"](g, y, d),
        lambda g, y, d: torch._softmax_backward_data(g, y, d, y.dtype),
    ),
    "log_softmax_backward": (
        lambda ops, g, y, d: ops["log_softmax_backward"](g, y, d),
        lambda g, y, d: torch._log_softmax_backward_data(g, y, d, y.dtype),
    ),
    "cumsum": (lambda ops, x, d: ops["cumsum"](x, d), torch.cumsum),
    **{name: reduced(name) for name in ("sum", "mean", "amax", "argmax", "prod", "var", "std")},
    "vector_norm": (
        lambda ops, x, dims: ops["vector_norm"](x, 2.0, dims),
        lambda x, dims: torch.linalg.vector_norm(x, 2, dims),
    ),
    "avg_pool2d": (
        lambda ops, x, k, s, p: ops["avg_pool2d"](x, [k], [s], [p]),
        lambda x, k, s, p: F.avg_pool2d(x, k, s, p),
    ),
    "max_pool2d": (
        lambda ops, x, k, s, p: ops["max_pool2d"](x, [k], [s], [p]),
        lambda x, k, s, p: F.max_pool2d(x, k, s, p),
    ),
    "layer_norm": (
        lambda ops, x, w, b: ops["layer_norm"](x, [x.shape[-1]], w, b),
        lambda x, w, b: F.layer_norm(x, [x.shape[-1]], w, b),
    ),
    "rms_norm": (
        lambda ops, x, w: ops["rms_norm"](x, [x.shape[-1]], w, 1e-6),
        lambda x, w: F.rms_norm(x, [x.shape[-1]], w, 1e-6),
    ),
    "rms_norm_backward": (norm_gradient, norm_gradient_peer),
    "cross_entropy": (lambda ops, x, t: ops["cross_entropy"](x, t), F.cross_entropy),
    "cross_entropy and gradient": gradient(F.cross_entropy),
}


def case(op: str, shape: list[int], *rest: Any, dtype: str = "bfloat16", last: bool = False, group: str) -> Case:
    return {"op": op, "shape": shape, "rest": list(rest), "dtype": dtype, "channels_last": last, "group": group}


def columns() -> list[Case]:
    found = []
    for shape, dim, dtype in (
        ([1048576, 8], 0, "float32"),
        ([131072, 64], 0, "bfloat16"),
        ([4, 100000, 3], 1, "bfloat16"),
        ([4096, 8192], 0, "bfloat16"),
        ([4096, 8192], 0, "float32"),
        ([16, 21, 512, 512], 1, "bfloat16"),
        ([64, 1000, 196], 1, "bfloat16"),
        ([100000, 7, 5], 1, "float32"),
        ([1024, 1024, 49], 1, "bfloat16"),
        ([3000, 5001], 0, "bfloat16"),
    ):
        for op in ("softmax", "log_softmax", "softmax_backward", "logsumexp"):
            found.append(case(op, shape, dim, dtype=dtype, group="softmax of columns"))
    for shape, dims, dtype in (
        ([128, 256, 32, 32], [0, 2, 3], "bfloat16"),
        ([128, 256, 32, 32], [0, 2, 3], "float32"),
        ([131072, 64], [0], "bfloat16"),
        ([4096, 8192], [0], "bfloat16"),
        ([64, 1000, 196], [1], "bfloat16"),
        ([100000, 7, 5], [1], "float32"),
        ([32, 56, 56, 256], [1, 2], "bfloat16"),
        ([1000003, 3], [0], "float32"),
        ([8, 12, 1000, 1000], [1, 3], "bfloat16"),
    ):
        for op in ("sum", "amax"):
            found.append(case(op, shape, dims, dtype=dtype, group="reductions of columns"))
    for shape, dim, dtype in (
        ([3, 5000000], 0, "bfloat16"),
        ([3, 5000000], 0, "float32"),
        ([4096, 8192], 0, "bfloat16"),
        ([100000, 7, 5], 1, "float32"),
        ([16, 21, 512, 512], 1, "bfloat16"),
    ):
        found.append(case("argmax", shape, [dim], dtype=dtype, group="reductions of columns"))
    for op in ("prod", "vector_norm"):
        found.append(case(op, [64, 1000, 196], [1], dtype="float32", group="reductions of columns"))
    for shape, dim in (([4096, 8192], 0), ([1000003, 3], 0), ([64, 1000, 196], 1)):
        found.append(case("cumsum", shape, dim, dtype="float32", group="scans of columns"))
    return found


def pools() -> list[Case]:
    found = []
    for last in (False, True):
        for shape, k, s, p in (
            ([256, 2048, 7, 7], 7, 7, 0),
            ([256, 512, 8, 8], 8, 8, 0),
            ([64, 256, 56, 56], 3, 1, 1),
            ([64, 256, 56, 56], 2, 2, 0),
            ([64, 256, 56, 56], 8, 8, 0),
        ):
            found.append(case("avg_pool2d", shape, k, s, p, last=last, group="pooling"))
    found.append(case("max_pool2d", [64, 64, 112, 112], 3, 2, 1, group="pooling"))
    found.append(case("max_pool2d", [256, 2048, 7, 7], 7, 7, 0, group="pooling"))
    return found


ROW_OPS = ("softmax", "softmax_backward", "layer_norm", "rms_norm", "rms_norm_backward", "cross_entropy",
           "cross_entropy and gradient")  # fmt: skip


def rows(widths: list[int], group: str, elements: int, ops: tuple[str, ...] = ROW_OPS) -> list[Case]:
    """Rows of each width; the argument of softmax is the last dimension."""
    return [
        case(op, [max(elements // n, 1), n], *([-1] if op.startswith("softmax") else []), group=group)
        for n in widths
        for op in ops
    ]


def drawn(seed: int, count: int) -> list[Case]:
    chance, found = random.Random(seed), []

    def extent(most: float) -> int:
        return max(1, round(2 ** chance.uniform(0, math.log2(most))))

    for _ in range(count):
        rank, left, shape = chance.choice([2, 2, 3, 4]), 2.0 ** chance.uniform(20, 25), []
        for i in range(rank):
            n = extent(left) if i < rank - 1 else max(1, round(left))
            shape.append(n)
            left = max(left / n, 1)
        chance.shuffle(shape)
        dtype = chance.choice(["bfloat16", "bfloat16", "float32"])
        op = chance.choice(["softmax", "log_softmax", "softmax_backward", "logsumexp", "sum", "mean", "argmax", "amax",
                            "cumsum", "layer_norm", "rms_norm"])  # fmt: skip
        dim = chance.randrange(rank)
        if op in ("layer_norm", "rms_norm"):
            found.append(case(op, shape, dtype=dtype, group="drawn"))
        elif op in ("sum", "mean", "amax"):
            dims = sorted(chance.sample(range(rank), chance.choice([1, min(2, rank)])))
            found.append(case(op, shape, dims, dtype=dtype, group="drawn"))
        else:
            found.append(case(op, shape, [dim] if op == "argmax" else dim, dtype=dtype, group="drawn"))
    return found


def arguments(described: Case, seed: int) -> list[Any]:
    generator = torch.Generator(device="cuda").manual_seed(seed)
    dtype, shape, op = getattr(torch, described["dtype"]), described["shape"], described["op"]

    def normal(*extents: int) -> Tensor:
        return torch.randn(extents, generator=generator, device="cuda").to(dtype)

    if op.startswith("cross_entropy"):
        return [normal(*shape), torch.randint(shape[1], (shape[0],), generator=generator, device="cuda")]
    if op in ("layer_norm", "rms_norm"):
        return [normal(*shape)] + [normal(shape[-1]) for _ in range(2 if op == "layer_norm" else 1)]
    if op == "rms_norm_backward":
        return [normal(*shape), normal(*shape), normal(shape[-1])]
    x = normal(*shape)
    if described["channels_last"]:
        x = x.contiguous(memory_format=torch.channels_last)
    if op == "softmax_backward":
        return [normal(*shape), torch.softmax(x, described["rest"][0]), *described["rest"]]
    return [x, *described["rest"]]


def tensors_of(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [each for part in value for each in tensors_of(part)] if isinstance(value, tuple | list) else []


def bytes_of(args: list[Any], result: Any) -> int:
    return sum(each.nbytes for each in tensors_of(args) + tensors_of(result))


def errors(described: Case, args: list[Any], results: dict[str, Any]) -> dict[str, Any]:
    """The error of each result, relative to the norm of the exact one; for indices the share of other values."""
    op = described["op"]
    wide = [a.double() if isinstance(a, Tensor) and a.is_floating_point() else a for a in args]
    peer = CALLS[op][1]
    if op == "softmax_backward":
        peer = softmax_gradient_peer(False)
    exact = tensors_of(peer(*wide))
    found: dict[str, Any] = {}
    for name, result in results.items():
        worst = 0.0
        for mine, want in zip(tensors_of(result), exact, strict=True):
            if op == "argmax":
                dim = described["rest"][0][0]
                pick = [wide[0].gather(dim, i.unsqueeze(dim)) for i in (mine, want)]
                worst = max(worst, float((pick[0] != pick[1]).double().mean()))
            elif mine.shape != want.shape:
                worst = math.inf
            else:
                apart = float((mine.double() - want).norm() / max(float(want.norm()), 1e-300))
                worst = max(worst, math.inf if math.isnan(apart) else apart)
        found[name] = worst
    return found


def graph_of(call: Callable[[list[Any]], Any], copies: list[list[Any]]) -> torch.cuda.CUDAGraph:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call(copies[0])
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for copy in copies:
            call(copy)
    return graph


def measured(graphs: dict[str, torch.cuda.CUDAGraph], count: int) -> dict[str, float]:
    """Median microseconds of a call of each graph."""
    taken: dict[str, list[float]] = {name: [] for name in graphs}
    for graph in graphs.values():
        graph.replay()
    for _ in range(ROUNDS):
        for name in random.sample(list(graphs), len(graphs)):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graphs[name].replay()
            end.record()
            end.synchronize()
            taken[name].append(begin.elapsed_time(end) * 1e3 / count)
    return {name: round(statistics.median(values), 2) for name, values in taken.items()}


def measure(described: Case, packages: dict[str, dict[str, Any]], with_compile: bool) -> Case:
    ours, theirs = CALLS[described["op"]]
    args = arguments(described, 1)
    row = dict(described)
    runs: dict[str, Callable[[list[Any]], Any]] = {"eager": lambda a: theirs(*a)}
    results = {"eager": theirs(*args)}
    for name, ops in packages.items():
        try:
            with kpkg.profile_kernel() as profile:
                results[name] = ours(ops, *args)
            runs[name] = lambda a, ops=ops: ours(ops, *a)
            row[f"kernels {name}"] = [each["instance"] for each in profile.records["launches"]]
        except (RuntimeError, ValueError, TypeError) as error:
            row[f"refused {name}"] = str(error)[:300]
    row["errors"] = errors(described, args, results)
    moved = bytes_of(args, results["eager"])
    row["bytes"], row["expected_us"] = moved, round(moved / COPY_RATE * 1e6, 2)
    del results
    if with_compile:
        torch._dynamo.reset()
        try:
            compiled = torch.compile(theirs, dynamic=False)
            compiled(*args)
            runs["compile"] = lambda a: compiled(*a)
        except Exception as error:  # whatever the compiler raises: this peer is not there for this call
            row["refused compile"] = str(error)[:200]
    copies = [args] + [
        arguments(described, 2 + i) for i in range(max(1, min(MOST_COPIES, BYTES_OF_ROUND // max(moved, 1))))
    ]
    graphs = {}
    for name, run in runs.items():
        try:
            graphs[name] = graph_of(run, copies)
        except Exception as error:  # a peer that cannot be captured
            row[f"refused {name} graph"] = str(error)[:200]
            torch.cuda.synchronize()
    row["us"] = measured(graphs, len(copies))
    peers = [row["us"][name] for name in ("eager", "compile") if name in row["us"]]
    for name in packages:
        if name in row["us"] and peers:
            row[f"ratio {name}"] = round(min(peers) / row["us"][name], 3)
    return row


def needed(op: str) -> set[str]:
    """The ops that the call takes."""
    return {"cross_entropy", "cross_entropy_backward"} if op == "cross_entropy and gradient" else {op}


def opened(folder: Path) -> dict[str, Any]:
    ops: dict[str, Any] = {"one": torch.ones((), device="cuda", dtype=torch.bfloat16)}
    for path in sorted(folder.glob("*.kpkg")):
        library = kpkg.load(path)
        library.set_fallback_policy("strict")
        ops |= {op.name.removeprefix("kpkg::"): op for op in library}
    return ops


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", type=Path, required=True)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--other", type=Path, help="packages of a trial")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--compile", action="store_true", help="torch.compile too, but for rows of usual lengths")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--seed", type=int, nargs="+", default=[23])
    parser.add_argument("--drawn", type=int, default=60)
    options = parser.parse_args()
    packages = {"kpkg": opened(options.packages)}
    if options.before:
        packages["before"] = opened(options.before)
    if options.other:
        packages["other"] = opened(options.other)
    most = 1 << 25
    some = ("softmax", "layer_norm", "cross_entropy", "cross_entropy and gradient")
    cases = columns() + pools() + rows([128, 256, 512, 1024, 2048, 4096, 8192, 16384], "usual rows", most)
    cases += rows([32, 64, 100], "short rows", most) + rows([151936, 262144], "long rows", most)
    cases += rows([32000, 128256], "usual rows", most, some) + rows([197, 333, 50257, 100277], "odd rows", most, some)
    cases += [each for seed in options.seed for each in drawn(seed, options.drawn)]
    started, found = time.monotonic(), []
    for described in cases:
        if time.monotonic() - started > options.seconds:
            break
        try:
            compiles = options.compile and described["group"] not in ("usual rows", "odd rows")
            row = measure(
                described, {k: v for k, v in packages.items() if needed(described["op"]) <= v.keys()}, compiles
            )
        except (RuntimeError, ValueError) as error:
            row = described | {"failed": str(error)[:300]}
        found.append(row)
        print(json.dumps(row), flush=True)
        result = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "seeds": options.seed, "rows": found}
        options.output.write_text(json.dumps(result, indent=1) + "\n")
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
