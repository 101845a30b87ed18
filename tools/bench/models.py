"""Injects kpkg into small random transformer models on the CPU.

Writes as JSON the replaced parts, their share of the time, and their times.

    KPKG_PATH=FOLDER python tools/bench/models.py [--model yolos] [--json bench/results/cpu-inject-models.json]

Shares are relative to an iteration of the original model. One is for all parts for which inject found a kernel, the
other for the replacements that it kept because kpkg was not slower. `all` is the time with every correct replacement,
however slow.

Times are processor times of all threads of this process, so that other work on the machine matters little: use one
thread.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "build" / "python"), str(Path(__file__).parent)]

os.environ.setdefault("KPKG_NUM_THREADS", "1")  # read when kpkg is imported
import kpkg  # noqa: E402
from cpu import processor  # noqa: E402
from kpkg import _injection, _measure, _passes  # noqa: E402
from kpkg._samples import call  # noqa: E402


def yolos() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """Returns a model of yolos-tiny's size, half as deep, with images of 256 x 256."""
    from transformers import YolosConfig, YolosModel

    sizes = {"hidden_size": 192, "num_hidden_layers": 6, "num_attention_heads": 3, "intermediate_size": 768}
    return YolosModel(YolosConfig(image_size=[256, 256], **sizes)), {"pixel_values": torch.randn(1, 3, 256, 256)}


def whisper() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """Returns a model of whisper-tiny's size, half as deep, with six seconds of sound and 32 tokens."""
    from transformers import WhisperConfig, WhisperModel

    config = WhisperConfig(
        d_model=384, encoder_layers=2, decoder_layers=2, encoder_attention_heads=6, decoder_attention_heads=6,
        encoder_ffn_dim=1536, decoder_ffn_dim=1536, vocab_size=1000, max_source_positions=300, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    ids = torch.randint(3, 1000, (1, 32))
    return WhisperModel(config), {"input_features": torch.randn(1, 80, 600), "decoder_input_ids": ids}


def sam() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """Returns the vision part with a width of 192 and images of 256 x 256."""
    from transformers import SamVisionConfig, SamVisionModel

    config = SamVisionConfig(
        hidden_size=192, num_hidden_layers=4, num_attention_heads=4, image_size=256, window_size=7, mlp_dim=768,
        global_attn_indexes=[1, 3], output_channels=64,
    )  # fmt: skip
    return SamVisionModel(config), {"pixel_values": torch.randn(1, 3, 256, 256)}


def deepseek() -> tuple[nn.Module, dict[str, Any]]:
    """Returns a model with the latent sizes of DeepSeek-V3 and two layers without experts, for one token after 512 in a
    cache."""
    from transformers import DeepseekV3Config, DeepseekV3Model

    config = DeepseekV3Config(
        vocab_size=1000, hidden_size=512, intermediate_size=1024, num_hidden_layers=2, num_attention_heads=8,
        num_key_value_heads=8, first_k_dense_replace=2, q_lora_rank=256, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    model = DeepseekV3Model(config).eval()
    with torch.no_grad():
        cache = model(torch.randint(3, 1000, (1, 512)), use_cache=True).past_key_values
    return model, {"input_ids": torch.randint(3, 1000, (1, 1)), "past_key_values": cache}


MODELS: dict[str, Callable[[], tuple[nn.Module, dict[str, Any]]]] = {
    "yolos": yolos, "whisper": whisper, "sam": sam, "deepseek": deepseek
}  # fmt: skip


def clock(function: Callable[[], Any], calls: int) -> float:
    """Returns the processor's seconds for one of `calls` calls."""
    start = time.process_time()
    for _ in range(calls):
        function()
    return (time.process_time() - start) / calls


def with_everything(model: nn.Module, sample: dict[str, Any]) -> tuple[float, float]:
    """Returns the microseconds of the model without and with all correct replacements."""
    noise, _injection.NOISE = _injection.NOISE, float("inf")
    whole = _measure.interleaved
    found: list[tuple[float, float]] = []

    def interleaved(first: Any, second: Any, **options: Any) -> tuple[float, float]:
        """Accepts every replacement, and times the whole model only once."""
        if options.get("switch") is None:
            return 1.0, 1.0
        if not found:
            found.append(whole(first, second, **{**options, "seconds": 1.0}))
        return 1.0, 1.0

    _measure.interleaved = interleaved
    try:
        kpkg.inject(model, sample_input=sample, verbose=False).restore()
    finally:
        _measure.interleaved, _injection.NOISE = whole, noise
    return found[0] if found else (0.0, 0.0)


def measure(name: str) -> dict[str, Any]:
    """Measures one model."""
    torch.manual_seed(0)
    model, sample = MODELS[name]()
    model.eval()
    with torch.no_grad():
        everything = with_everything(model, sample)
        injection = kpkg.inject(model, sample_input=sample, verbose=True)
        found = [row for row in injection.rows if row.kpkg_us is not None]
        run = _passes.iteration(model, lambda: call(model, sample))
        kept = _measure.interleaved(run, None, seconds=0.5)[0]
    counts: dict[str, Counter[str]] = {}
    for row in injection.rows:
        counts.setdefault(row.layer, Counter())[row.status] += 1
    result = {
        "model": name,
        "description": MODELS[name].__doc__,
        "parameters": sum(p.numel() for p in model.parameters()),
        "rows": len(injection.rows),
        "found": len(found),
        "replaced": len(injection.replaced),
        "share_found": round(injection.share(found) or 0.0, 3),
        "share_replaced": round(injection.share(injection.replaced) or 0.0, 3),
        "error": injection.error,
        "original_ms": round((injection.original_us or 0.0) / 1e3, 3),
        "kpkg_ms": round((injection.kpkg_us or 0.0) / 1e3, 3),
        "after_ms": round(kept / 1e3, 3),
        "all_original_ms": round(everything[0] / 1e3, 3),
        "all_kpkg_ms": round(everything[1] / 1e3, 3),
        "kinds": {kind: dict(each) for kind, each in sorted(counts.items())},
    }
    injection.restore()
    return result


def main() -> int:
    """Prints a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", choices=MODELS, help="only this one; may be repeated")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(int(os.environ["KPKG_NUM_THREADS"]))
    _measure._clock = clock
    import transformers

    meta = {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "cpu": processor(),
        "threads": torch.get_num_threads(),
        "clock": "time of the processor",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "packages": sorted({library.path.rsplit("/", 1)[-1] for library in kpkg._default._packages.libraries()}),
    }
    results = []
    with kpkg.fallback_policy("silent"):
        for name in options.model or MODELS:
            results.append(measure(name))
            print({k: v for k, v in results[-1].items() if k not in ("kinds", "description")}, flush=True)
            if options.json:
                options.json.write_text(json.dumps({"meta": meta, "models": results}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
