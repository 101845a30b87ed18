"""Compares the KV-cache attention kernels of GPUs, compiled for this CPU, with the op's spec.

Checks which kernels the op launches, and their results.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re

import kpkg
import pytest
import torch
from conftest import build_for_gpus
from opspec import load_specs

DTYPES = [torch.float16, torch.bfloat16, torch.float32]
#: Values of FORM, the last parameter of attend_parts.
GENERAL, ONE_PIECE, IN_PAGES = "0", "1", "2"


@pytest.fixture(scope="module")
def package(libraries):
    """Returns a package of the GPU kernels.

    `libraries` are loaded first, so that PyTorch does not find the GPU package's ops by name.
    """
    return kpkg.load(build_for_gpus("attention_cache", "scores.k"))


@pytest.fixture(scope="module")
def spec():
    return next(spec for spec in load_specs() if spec.name == "kpkg::attention_decode")


def launched(package, *args, **options):
    """Returns the results, the launched kernels, and the values of FORM of attend_parts."""
    with kpkg.profile_kernel() as profile:
        results = package.attention_decode(*args, **options)
    instances = [launch["instance"] for launch in profile.records["launches"]]
    return (
        results,
        {instance.partition("[")[0] for instance in instances},
        set(re.findall(r"attend_parts\[.*FORM=(\d)", "\n".join(instances))),
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_samples(package, spec, dtype):
    kernels, forms = set(), set()
    for sample in spec.samples(dtype, torch.Generator().manual_seed(5)):
        results, *found = launched(package, *sample.args, **sample.kwargs)
        spec.check(sample, results)
        kernels |= found[0]
        forms |= found[1]
    assert forms == ({GENERAL} if dtype is torch.float32 else {GENERAL, ONE_PIECE, IN_PAGES})
    assert kernels == {"attend_parts", "combine_few_parts", "join_sinks_of_rows"} | (
        set() if dtype is torch.float32 else {"attend_parts_in_turn"}
    )


def test_what_the_plain_kernels_are_not_for(package):
    """Covers more rows than one block has, softcap, a window, and small pages."""

    def call(tokens=1, page=0, **options):
        query, cache = torch.randn(2, 8, tokens, 64).half(), torch.randn(4, 2, page or 300, 64).half()
        table = torch.tensor([[0, 1], [2, 3]], dtype=torch.int32) if page else None
        caches = (cache, cache) if page else (cache[:2], cache[:2])
        return launched(package, query, *caches, None, table, **options)

    for form, options in (
        (ONE_PIECE, {}), (ONE_PIECE, {"tokens": 16}), (IN_PAGES, {"page": 64}),
        (GENERAL, {"softcap": 2.0}), (GENERAL, {"window": 5}), (GENERAL, {"page": 48}),
        (GENERAL, {"page": 128, "window": 9}), (GENERAL, {"page": 48, "tokens": 17}),
    ):  # fmt: skip
        assert call(**options)[2] == {form}, options
    assert "attend_parts_in_turn" in call(tokens=17)[1]
