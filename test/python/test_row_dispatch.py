"""Tests dispatch for GPUs, compiled for this CPU: reductions, scans, pooling, products and recurrent layers.

It runs the samples of their specs, and checks the launched kernels, their arguments and their results. The machine
code needs a GPU: test/device/row_cliffs.py tests it.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from dataclasses import replace

import kpkg
import pytest
import torch
from conftest import build_for_gpus
from opspec import load_specs

#: By family: the shared modules that depend on the kind of target, the ops, and kernels that must have been launched.
FAMILIES = {
    "softmax": (
        ["rows.k"],
        ["softmax", "log_softmax", "softmax_backward", "log_softmax_backward", "logsumexp"],
        {"softmax_rows", "softmax_columns", "softmax_long", "exponential_parts", "merge_exponentials", "merge_sums",
         "softmax_backward_rows", "softmax_backward_columns", "softmax_backward_parts", "softmax_backward_long",
         "logsumexp_rows", "logsumexp_columns", "logsumexp_long", "logsumexp_parts"},
    ),
    "reduction": (
        ["reducing.k"],
        ["sum", "mean", "prod", "amax", "amin", "vector_norm", "argmax", "argmin"],
        {"reduce_rows", "reduce_rows_wide", "split_rows", "join_rows", "reduce_short_columns", "reduce_columns",
         "split_columns", "join_columns", "root_of_powers", "arg_rows",
         "arg_long_rows", "split_arg_rows", "join_arg_rows",
         "arg_short_columns", "arg_columns", "split_arg_columns", "join_arg_columns"},
    ),
    "variance": (
        ["reducing.k"],
        ["var", "std_mean"],
        {"spread_rows", "spread_short_columns", "spread_columns", "join_spreads"},
    ),
    "scan": (
        ["reducing.k"],
        ["cumsum", "cumprod", "cummax"],
        {"scan_rows", "scan_columns", "total_rows", "total_columns",
         "cummax_rows", "cummax_columns", "last_of_rows", "last_of_columns"},
    ),
    "cross_entropy": (
        ["rows.k"],
        ["cross_entropy", "cross_entropy_backward"],
        {"loss_rows", "loss_long_rows", "loss_backward_rows", "loss_backward_long_rows", "weigh_samples",
         "add_sums"},
    ),
    "pooling": (
        ["reducing.k"],
        ["max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool2d_backward"],
        {"pool_rows", "pool_columns", "pool_flat", "pool_pixels", "spread_rows", "spread_columns"},
    ),
    "moe": (
        ["grouped_tiles.k", "expert_rows.k"],
        ["moe", "moe_packed"],
        {"list_used_experts", "few_gated_tiles", "gated_tiles", "few_tiles", "grouped_tiles", "gate_rows", "list_tiles",
         "scatter_rows", "sum_rows", "packed_group_tiles"},
    ),
    "lora": (
        ["grouped_tiles.k", "expert_rows.k"],
        ["lora_linear"],
        {"shrink_rows", "expand_rows", "list_tiles", "grouped_tiles", "few_tiles", "add_rows"},
    ),
    "rnn": (
        ["grouped_tiles.k", "reducing.k"],
        ["rnn_tanh", "rnn_relu", "lstm", "gru"],
        {"rnn_steps", "lstm_steps", "gru_steps", "grouped_tiles", "few_tiles", "list_tiles", "copy_states"},
    ),
    "quantized": (
        ["packed_weights.k"],
        ["int4_linear", "int8_linear", "fp8_linear"],
        {"packed_tiles", "packed_parts", "add_parts", "vector_products"},
    ),
    "fp4": (["packed_weights.k"], ["fp4_linear"], {"fp4_parts", "fp4_tiles", "add_parts"}),
    "gguf": ([], ["gguf_linear", "gguf_dequantize"], {"few_rows", "dense_rows", "product_tiles"}),
}  # fmt: skip
DTYPES = (torch.float32, torch.bfloat16)
#: A CPU adds the elements of a tile sequentially, a GPU in a tree.
MORE = 16.0


@pytest.mark.parametrize("family", FAMILIES)
def test_samples(family, libraries):
    modules, names, paths = FAMILIES[family]
    package = kpkg.load(build_for_gpus(family, *modules))
    launched = set()
    for spec in load_specs():
        name = spec.name.removeprefix("kpkg::")
        if name not in names:
            continue
        spec = replace(spec, accumulation=MORE * spec.accumulation)
        op = getattr(package, name)
        for dtype in [dtype for dtype in DTYPES if dtype in spec.dtypes]:
            for sample in spec.samples(dtype, torch.Generator().manual_seed(3)):
                with kpkg.fallback_policy("strict"), kpkg.profile_kernel() as profile:
                    found = op(*sample.args, **sample.kwargs)
                spec.check(sample, found)
                launched |= {launch["instance"].partition("[")[0] for launch in profile.records["launches"]}
    assert not paths - launched, f"no sample took {sorted(paths - launched)}"
