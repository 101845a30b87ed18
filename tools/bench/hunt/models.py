"""Layers of public models, by their published configurations.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import NamedTuple


class Decoder(NamedTuple):
    """Sizes of a transformer's layer."""

    name: str
    width: int
    inner: int
    heads: int
    key_heads: int
    head: int
    vocabulary: int


DECODERS = [
    Decoder("gpt2", 768, 3072, 12, 12, 64, 50257),
    Decoder("gpt2-xl", 1600, 6400, 25, 25, 64, 50257),
    Decoder("bert-base", 768, 3072, 12, 12, 64, 30522),
    Decoder("bert-large", 1024, 4096, 16, 16, 64, 30522),
    Decoder("t5-large", 1024, 4096, 16, 16, 64, 32128),
    Decoder("whisper-small", 768, 3072, 12, 12, 64, 51865),
    Decoder("whisper-large", 1280, 5120, 20, 20, 64, 51866),
    Decoder("vit-base", 768, 3072, 12, 12, 64, 1000),
    Decoder("vit-large", 1024, 4096, 16, 16, 64, 1000),
    Decoder("clip-text", 512, 2048, 8, 8, 64, 49408),
    Decoder("phi-2", 2560, 10240, 32, 32, 80, 51200),
    Decoder("phi-3-mini", 3072, 8192, 32, 32, 96, 32064),
    Decoder("gemma-2b", 2048, 16384, 8, 1, 256, 256000),
    Decoder("gemma-2-9b", 3584, 14336, 16, 8, 256, 256000),
    Decoder("llama-2-7b", 4096, 11008, 32, 32, 128, 32000),
    Decoder("llama-2-13b", 5120, 13824, 40, 40, 128, 32000),
    Decoder("llama-3.2-1b", 2048, 8192, 32, 8, 64, 128256),
    Decoder("llama-3.2-3b", 3072, 8192, 24, 8, 128, 128256),
    Decoder("llama-3-8b", 4096, 14336, 32, 8, 128, 128256),
    Decoder("llama-3-70b", 8192, 28672, 64, 8, 128, 128256),
    Decoder("mistral-7b", 4096, 14336, 32, 8, 128, 32000),
    Decoder("mistral-nemo", 5120, 14336, 32, 8, 128, 131072),
    Decoder("qwen2.5-0.5b", 896, 4864, 14, 2, 64, 151936),
    Decoder("qwen2.5-7b", 3584, 18944, 28, 4, 128, 152064),
    Decoder("qwen2.5-32b", 5120, 27648, 40, 8, 128, 152064),
    Decoder("qwen3-4b", 2560, 9728, 32, 8, 128, 151936),
    Decoder("qwen3-8b", 4096, 12288, 32, 8, 128, 151936),
    Decoder("falcon-7b", 4544, 18176, 71, 1, 64, 65024),
    Decoder("starcoder2-7b", 4608, 18432, 36, 4, 128, 49152),
    Decoder("opt-6.7b", 4096, 16384, 32, 32, 128, 50272),
]


class Convolution(NamedTuple):
    """A layer's channels, picture and window."""

    name: str
    inputs: int
    outputs: int
    size: int
    window: int
    stride: int
    groups: int


CONVOLUTIONS = [
    Convolution("resnet50", 3, 64, 224, 7, 2, 1),
    Convolution("resnet50", 64, 64, 56, 3, 1, 1),
    Convolution("resnet50", 256, 512, 56, 1, 2, 1),
    Convolution("resnet50", 512, 512, 7, 3, 1, 1),
    Convolution("resnext50", 128, 128, 56, 3, 1, 32),
    Convolution("mobilenet_v3", 16, 72, 56, 1, 1, 1),
    Convolution("mobilenet_v3", 72, 72, 56, 5, 2, 72),
    Convolution("mobilenet_v3", 960, 960, 7, 5, 1, 960),
    Convolution("efficientnet_b0", 96, 96, 112, 3, 2, 96),
    Convolution("efficientnet_b0", 240, 40, 28, 1, 1, 1),
    Convolution("convnext-tiny", 96, 96, 56, 7, 1, 96),
    Convolution("convnext-tiny", 96, 192, 56, 2, 2, 1),
    Convolution("vgg16", 512, 512, 28, 3, 1, 1),
    Convolution("densenet121", 128, 32, 28, 3, 1, 1),
    Convolution("inception_v3", 288, 384, 35, 3, 2, 1),
    Convolution("yolov8n", 16, 32, 160, 3, 2, 1),
    Convolution("u-net", 64, 64, 256, 3, 1, 1),
    Convolution("stable-diffusion", 320, 320, 64, 3, 1, 1),
    Convolution("stable-diffusion", 1280, 1280, 16, 3, 1, 1),
    Convolution("vae", 128, 3, 256, 3, 1, 1),
    Convolution("vit-base", 3, 768, 224, 16, 16, 1),
    Convolution("shufflenet", 116, 116, 28, 3, 1, 116),
]
