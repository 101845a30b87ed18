"""Times ResNet-50 (the structure of torchvision's) with layers replaced by kpkg.inject against PyTorch as it is and against torch.compile, on a GPU.

    KPKG_PATH=conv.kpkg:pooling.kpkg:elementwise.kpkg test/device/network.py --batch 64 --out network.json

Eval mode, channels last, random weights and running statistics. Each way is a CUDA graph too, where the host's time does not count. Rounds are shuffled, figures are medians.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import statistics
from pathlib import Path

import torch
from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or channels != 4 * width:
            self.downsample = nn.Sequential(nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet50(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1, self.relu = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)
        self.maxpool, self.avgpool, self.fc = nn.MaxPool2d(3, 2, 1), nn.AdaptiveAvgPool2d(1), nn.Linear(2048, 1000)
        channels = 64
        for i, (count, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
            blocks = []
            for j in range(count):
                blocks.append(Bottleneck(channels, width, 2 if i > 0 and j == 0 else 1))
                channels = 4 * width
            setattr(self, f"layer{i + 1}", nn.Sequential(*blocks))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def captured(model: nn.Module, x: torch.Tensor):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(x)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(x)
    return lambda: (graph.replay(), out)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--mode", default="default", help="of torch.compile")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    import kpkg

    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    model = ResNet50().eval()
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.running_mean, std=0.1)
            nn.init.uniform_(layer.running_var, 0.5, 1.5)
    model = model.cuda().bfloat16().to(memory_format=torch.channels_last)
    x = torch.randn(options.batch, 3, 224, 224, device="cuda").bfloat16().contiguous(memory_format=torch.channels_last)
    found = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "batch": options.batch, "kpkg": kpkg.__version__ if hasattr(kpkg, "__version__") else ""}
    with torch.no_grad():
        exact = copy.deepcopy(model).double()(x.double())
        calls = {"eager": model}
        replaced = copy.deepcopy(model)
        injection = kpkg.inject(replaced, sample_input=x)
        calls["kpkg"] = replaced
        if not options.no_compile:
            calls["compile"] = torch.compile(copy.deepcopy(model), mode=options.mode)
        scale = float(exact.abs().max())
        found["errors"] = {name: float((call(x).double() - exact).abs().max()) / scale for name, call in calls.items()}
        runs = {name: (lambda call=call: call(x)) for name, call in calls.items()}
        for name, call in list(calls.items()):
            runs[f"{name} graph"] = captured(call, x)
        times: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(options.rounds):
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
    found["ms"] = {name: round(statistics.median(values), 4) for name, values in times.items()}
    found["rows"] = [[row.name, row.layer, row.replacement, row.error, row.original_us, row.kpkg_us, row.status] for row in injection.rows]
    print(json.dumps({key: value for key, value in found.items() if key != "rows"}, indent=1))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
