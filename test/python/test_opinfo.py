"""PyTorch's OpInfo samples of each op that kpkg covers, against the op in float64; its error inputs must be refused.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import sys
import types

import opinfo_adapter
import pytest
import torch
from opspec import as_tuple

if "expecttest" not in sys.modules:  # imported, but not used, by the samples' module
    stand_in = types.ModuleType("expecttest")
    stand_in.TestCase = type("TestCase", (), {})
    stand_in.assert_expected_inline = None
    sys.modules["expecttest"] = stand_in
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

CONVOLUTIONS = tuple(f"conv{kind}{rank}d" for kind in ("", "_transpose") for rank in (1, 2, 3))
FULL_NAMES = {name: f"nn.functional.{name}" for name in ("layer_norm", "rms_norm", "scaled_dot_product_attention", *CONVOLUTIONS)}
ROUNDS_BETWEEN = ("scaled_dot_product_attention",)  # probabilities have the dtype of the results
CONTRACTIONS = ("mm", "bmm", "addmm", "baddbmm", *CONVOLUTIONS)
ROUND_OFF = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


def infos(name):
    wanted = FULL_NAMES.get(name, name)
    return [o for o in op_db if o.name == wanted and (name not in CONTRACTIONS or o.variant_test_name == "")]


def close(result, reference, magnitude, rounded=0.0):
    assert result.shape == reference.shape
    if result.numel() == 0:
        return
    unit = ROUND_OFF[result.dtype]
    allowed = (2 * reference.abs() + rounded) * unit + 32 * max(2.0**-24 if unit > 2.0**-30 else unit, 0) * magnitude
    # Statistics that PyTorch rounds and results near zero: two units of the coarser type at the result's own size.
    allowed = allowed + 2 * unit * reference.abs().amax() * 2.0**-6
    difference = (result.double() - reference).abs()
    same = (result.double() == reference) | (torch.isnan(result) & torch.isnan(reference))
    assert bool((same | (difference <= allowed)).all()), f"worst {float((difference / allowed)[~same].max()):.2f} of what is allowed"


def to_float64(value):
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.double()
    return torch.float64 if isinstance(value, torch.dtype) else value


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("name", opinfo_adapter.OPS)
def test_samples(name, dtype):
    implementation = getattr(opinfo_adapter, name)
    count = 0
    for info in infos(name):
        for sample in info.sample_inputs("cpu", dtype, requires_grad=False):
            for call in (sample, sample.noncontiguous()):
                if call.kwargs.get("dropout_p"):
                    continue  # random
                args = (call.input, *call.args)
                results = as_tuple(implementation(*args, **call.kwargs))
                kwargs = {k: to_float64(v) for k, v in call.kwargs.items()}
                references = as_tuple(info.op(*map(to_float64, args), **kwargs))
                expected = as_tuple(info.op(*args, **call.kwargs))
                for result, reference, eager in zip(results, references, expected, strict=True):
                    assert result.dtype == eager.dtype
                    if name in CONTRACTIONS:
                        magnitude = info.op(*(abs(to_float64(a)) if isinstance(a, torch.Tensor) else a for a in args), **{k: abs(v) if isinstance(v, (torch.Tensor, float, int)) else v for k, v in kwargs.items()})
                    else:
                        magnitude = reference.abs().amax() if reference.numel() else reference
                    close(result, reference, magnitude, magnitude if name in ROUNDS_BETWEEN else 0.0)
                count += 1
    assert count > 0


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("name", opinfo_adapter.OPS)
def test_error_inputs_are_refused(name):
    implementation = getattr(opinfo_adapter, name)
    for info in infos(name):
        for error in info.error_inputs("cpu") if info.error_inputs_func else ():
            sample = error.sample_input
            with pytest.raises((RuntimeError, ValueError, TypeError, IndexError)):
                implementation(sample.input, *sample.args, **sample.kwargs)
