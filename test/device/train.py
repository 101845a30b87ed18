"""Trains a small transformer with PyTorch's layers and with kpkg's, and compares the loss curves.

The text is in the public domain.

    # on a GPU: eager, compiled, graph replay; bfloat16 autocast
    KPKG_PATH=packages python3 test/device/train.py --out train.json
    KPKG_PATH=packages python3 test/device/train.py --device cpu --steps 5 --width 32

Every run starts from the same weights and sees the same batches. Another PyTorch run permutes the rows of each batch,
which measures the effect of rounding alone. The curve of kpkg may differ from PyTorch's by four times that effect, or
by 0.5 % where that is more.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kpkg
import torch
from torch import Tensor, nn

TEXT = Path(__file__).with_name("data") / "shakespeare.txt"


class Block(nn.Module):
    def __init__(self, layers: Any, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = layers.LayerNorm(width), layers.RMSNorm(width)
        self.qkv, self.out = layers.Linear(width, 3 * width), layers.Linear(width, width)
        self.up, self.act, self.down = layers.Linear(width, 4 * width), layers.GELU(), layers.Linear(4 * width, width)
        self.softmax = layers.Softmax(-1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5 + mask
        x = x + self.out((self.softmax(scores).to(v.dtype) @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(self.act(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self, layers: Any, symbols: int, width: int, depth: int, length: int) -> None:
        super().__init__()
        self.embed, self.position = nn.Embedding(symbols, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(layers, width, 4) for _ in range(depth))
        self.norm, self.head, self.loss = (
            layers.LayerNorm(width),
            layers.Linear(width, symbols),
            layers.CrossEntropyLoss(),
        )
        self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1))

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        x = self.embed(tokens) + self.position.weight
        for block in self.blocks:
            x = block(x, self.mask)
        return self.loss(self.head(self.norm(x)).flatten(0, 1), targets.flatten())  # type: ignore[no-any-return]


def batches(options: argparse.Namespace, reordered: bool) -> tuple[list[tuple[Tensor, Tensor]], int]:
    text = TEXT.read_text(encoding="utf-8")
    symbols = sorted(set(text))
    codes = torch.tensor([symbols.index(c) for c in text])
    generator = torch.Generator().manual_seed(1)
    made = []
    for _ in range(options.steps):
        starts = torch.randint(len(codes) - options.length - 1, (options.batch,), generator=generator)
        rows = torch.stack([codes[s : s + options.length + 1] for s in starts])
        rows = rows.flip(0) if reordered else rows
        made.append((rows[:, :-1].contiguous().to(options.device), rows[:, 1:].contiguous().to(options.device)))
    return made, len(symbols)


def curve(layers: Any, options: argparse.Namespace, way: str, reordered: bool = False) -> tuple[list[float], float]:
    """Returns the losses of a training run, and the milliseconds of a step after warm-up."""
    torch.manual_seed(0)
    data, symbols = batches(options, reordered)
    model = Model(layers, symbols, options.width, options.depth, options.length).to(options.device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=options.rate, capturable=options.device == "cuda")

    def forward(tokens: Tensor, targets: Tensor) -> Tensor:
        with torch.autocast(options.device, dtype=torch.bfloat16, enabled=not options.exact):
            return model(tokens, targets)  # type: ignore[no-any-return]

    run: Callable[[Tensor, Tensor], Tensor] = torch.compile(forward, fullgraph=True) if way == "compiled" else forward

    def step(tokens: Tensor, targets: Tensor) -> Tensor:
        optimiser.zero_grad(set_to_none=way != "graph")
        loss = run(tokens, targets)
        loss.backward()
        optimiser.step()
        return loss.detach()

    losses: list[Tensor] = []
    if way == "graph":
        tokens, targets = (part.clone() for part in data[0])
        state = {name: value.clone() for name, value in model.state_dict().items()}
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                step(tokens, targets)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = step(tokens, targets)
        with torch.no_grad():  # back to the start: weights, and the optimiser's moments and step counts
            model.load_state_dict(state)
            for entry in optimiser.state.values():
                for value in entry.values():
                    value.zero_()
    start = time.perf_counter()
    for i, (some_tokens, some_targets) in enumerate(data):
        if i == len(data) // 2:
            if options.device == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
        if way == "graph":
            tokens.copy_(some_tokens)
            targets.copy_(some_targets)
            graph.replay()
            losses.append(loss.clone())
        else:
            losses.append(step(some_tokens, some_targets))
    found = torch.stack(losses).tolist()
    return found, (time.perf_counter() - start) / (len(data) - len(data) // 2) * 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--exact", action="store_true", help="without autocast")
    parser.add_argument("--ways", default="", help="eager,compiled,graph (default: all on a GPU, eager on the CPU)")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    ways = (
        options.ways.split(",")
        if options.ways
        else ["eager", "compiled", "graph"]
        if options.device == "cuda"
        else ["eager"]
    )

    reference, reference_ms = curve(nn, options, "eager")
    again, _ = curve(nn, options, "eager", reordered=True)
    rounding = max(abs(a - b) / b for a, b in zip(again, reference))
    allowed = max(4 * rounding, 5e-3)
    print(
        f"PyTorch: loss {reference[0]:.4f} to {reference[-1]:.4f}, {reference_ms:.2f} ms a step; rounding alone "
        f"moves it by {rounding:.2e}",
        flush=True,
    )
    record: dict[str, Any] = {
        "torch": torch.__version__,
        "device": options.device,
        "steps": options.steps,
        "reference": reference,
        "reference_ms": reference_ms,
    }
    record |= {"rounding": rounding, "allowed": allowed, "runs": {}}
    failed = []
    for way in ways:
        try:
            losses, step_ms = curve(kpkg.nn, options, way)
            _, torch_ms = (
                curve(nn, options, way) if way != "eager" and options.device == "cuda" else (None, reference_ms)
            )
            difference = max(abs(a - b) / b for a, b in zip(losses, reference))
            record["runs"][way] = {
                "losses": losses,
                "difference": difference,
                "step_ms": step_ms,
                "torch_step_ms": torch_ms,
            }
            if difference > allowed:
                failed.append(way)
            print(
                f"kpkg {way}: loss to {losses[-1]:.4f}, {difference:.2e} from PyTorch's ({allowed:.2e} allowed), "
                f"{step_ms:.2f} ms a step, PyTorch {torch_ms:.2f}",
                flush=True,
            )
        except Exception as error:  # the other ways run all the same
            failed.append(way)
            record["runs"][way] = {"error": f"{type(error).__name__}: {error}"}
            print(f"kpkg {way}: {type(error).__name__}: {str(error)[:800]}", flush=True)
    reasons = {
        name: info["fallback_reasons"] for name, info in kpkg.kernel_info().items() if info.get("fallback_reasons")
    }
    record["fallbacks"] = reasons
    for name, why in reasons.items():
        print(f"fell back: {name}: {why}")
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
