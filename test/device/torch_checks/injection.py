"""Checks models whose layers kpkg.inject replaces.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib.util
from typing import Any

import kpkg
import torch
from torch.testing import assert_close

from torch_checks import randn


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
            f"    {len(times):4} {layer} {status}: {sum(a for a, _ in times):.0f} us, kpkg "
            f"{sum(b for _, b in times):.0f}"
            for (layer, status), times in kinds.items()
        ]
        lines.insert(
            0,
            f"{len(injection.replaced)} of {len(injection.rows)} replaced, {injection.original_us:.0f} us become "
            f"{injection.kpkg_us:.0f}, error {injection.error:.1e}",
        )
        return "\n".join(lines)


def injected_torchvision_models() -> str:
    if importlib.util.find_spec("torchvision") is None:
        return "absent: torchvision"
    import torchvision

    x = randn(8, 3, 224, 224, dtype=torch.bfloat16)
    return "".join(
        f"\n{name}: {inject_into(getattr(torchvision.models, name)(weights=None), x)}"
        for name in ("resnet50", "vit_b_16")
    )


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


CHECKS = (injected_model, injected_torchvision_models, injected_hugging_face_models)
