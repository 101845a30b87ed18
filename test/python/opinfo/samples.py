"""Runs an op on its contiguous and non-contiguous samples, and compares each with PyTorch's op in float64.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from opspec import as_tuple
from torch import Tensor

from opinfo.cases import CASES, Case
from opinfo.libraries import LeftToPyTorch

if "expecttest" not in sys.modules:  # the samples' module imports it without using it
    stand_in: Any = types.ModuleType("expecttest")
    stand_in.TestCase = type("TestCase", (), {})
    stand_in.assert_expected_inline = None
    sys.modules["expecttest"] = stand_in
from torch.testing._internal.common_methods_invocations import op_db

ROUND_OFF = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
INTEGERS = (torch.uint8, torch.int16, torch.int64, torch.bool)
# Limit of samples per op, chosen evenly: the poolings have thousands.
MOST = 60
# Errors of PyTorch for unsupported arguments; other errors are defects.
REFUSALS = (RuntimeError, ValueError, TypeError, IndexError)


@dataclass
class Counts:
    """Counts the calls of one op that passed, calls left to PyTorch with the reasons, and failures."""

    passed: int = 0
    unsupported: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


def _infos(case: Case) -> list[Any]:
    found = [info for info in op_db if info.name == case.info]
    return [info for info in found if info.variant_test_name == ""] if case.sums else found


def _in_float64(value: Any) -> Any:
    if isinstance(value, Tensor) and value.is_floating_point():
        return value.double()
    return torch.float64 if isinstance(value, torch.dtype) else value


def _absolute(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Returns the call with absolute values of its floating-point tensors and factors."""

    def one(value: Any) -> Any:
        return value.abs() if isinstance(value, Tensor) and value.is_floating_point() else value

    factors = {key: abs(value) for key, value in kwargs.items() if key in ("alpha", "beta")}
    return [one(value) for value in args], {key: one(value) for key, value in kwargs.items()} | factors


def _error(case: Case, result: Tensor, reference: Tensor, magnitude: Tensor) -> str | None:
    """Describes what is wrong with a result; returns None if nothing is."""
    if result.shape != reference.shape:
        return f"shape {tuple(result.shape)}, expected {tuple(reference.shape)}"
    if result.numel() == 0:
        return None
    if not result.is_floating_point():
        return None if torch.equal(result, reference.to(result.dtype)) else "integers differ"
    unit = ROUND_OFF[result.dtype]
    allowed = (
        2 * reference.abs() + (magnitude if case.rounds_between else 0.0)
    ) * unit + case.accumulation * 2.0**-24 * magnitude.abs()
    # Covers statistics that PyTorch rounds, and results near zero: two units of the coarser type at the result's own
    # size.
    finite = reference[torch.isfinite(reference)]
    allowed = (
        allowed
        + 2 * unit * (finite.abs().amax() if finite.numel() else 0.0) * 2.0**-6
        + torch.finfo(result.dtype).smallest_normal
    )
    value = result.double()
    same = (value == reference) | (torch.isnan(value) & torch.isnan(reference))
    difference = (value - reference).abs()
    good = same | (difference <= allowed)
    # A number beyond the type's range becomes an infinity.
    good = good | (reference.abs() > torch.finfo(result.dtype).max * (1 - unit)) & torch.isinf(value) & (
        value.sign() == reference.sign()
    )
    return None if bool(good.all()) else f"worst {float((difference / allowed)[~good].max()):.2f} of what is allowed"


def _dtypes(
    info: Any, args: tuple[Any, ...], kwargs: dict[str, Any], references: tuple[Tensor, ...]
) -> list[torch.dtype]:
    """Returns the dtypes of PyTorch's results, or the arguments' dtype if PyTorch lacks the op for it."""
    try:
        return [result.dtype for result in as_tuple(info.op(*args, **kwargs))]
    except NotImplementedError:
        return [args[0].dtype if reference.is_floating_point() else reference.dtype for reference in references]


def _check(case: Case, info: Any, sample: Any) -> str | None:
    args, kwargs = (sample.input, *sample.args), dict(sample.kwargs)
    results = as_tuple(case.run(*args, **kwargs))
    exact, options = tuple(map(_in_float64, args)), {key: _in_float64(value) for key, value in kwargs.items()}
    references = as_tuple(info.op(*exact, **options))
    if len(results) != len(references):
        return f"{len(results)} results, expected {len(references)}"
    terms = references
    if case.sums:
        sizes, factors = _absolute(exact, options)
        terms = as_tuple(info.op(*sizes, **factors))
    for result, reference, dtype, term in zip(results, references, _dtypes(info, args, kwargs, references), terms):
        if result.dtype != dtype:
            return f"{result.dtype}, expected {dtype}"
        if case.sums:
            magnitude = torch.maximum(term, reference.abs())
        else:
            finite = reference[torch.isfinite(reference) & reference.is_floating_point()].double()
            magnitude = finite.abs().amax() if finite.numel() else torch.zeros((), device=reference.device)
        if (error := _error(case, result, reference, magnitude)) is not None:
            return error
    return None


def has(name: str, dtype: torch.dtype) -> bool:
    """Returns whether PyTorch has the op for the dtype on CPUs."""
    return all(dtype in info.supported_dtypes("cpu") for info in _infos(CASES[name]))


def run(name: str, dtype: torch.dtype, device: str) -> Counts:
    """Runs every sample of the op in the dtype on the device."""
    case, counts = CASES[name], Counts()
    for info in _infos(case):
        found = list(info.sample_inputs(device, dtype, requires_grad=False))
        for sample in found[:: 1 + len(found) // MOST]:
            for call in (sample, sample.noncontiguous()):
                if call.kwargs.get("dropout_p"):
                    continue  # random
                try:
                    error = _check(case, info, call)
                except LeftToPyTorch as reason:
                    counts.unsupported[str(reason)] = counts.unsupported.get(str(reason), 0) + 1
                    continue
                except Exception as trouble:  # any failure becomes a line of the report
                    error = f"{type(trouble).__name__}: {str(trouble)[:300]}"
                if error is None:
                    counts.passed += 1
                else:
                    counts.failures.append(f"{_shapes(call)}: {error}")
    return counts


def _shapes(sample: Any) -> str:
    def one(value: Any) -> str:
        return f"{tuple(value.shape)}{value.stride()}" if isinstance(value, Tensor) else repr(value)

    return ", ".join(
        [one(sample.input), *map(one, sample.args), *(f"{key}={one(value)}" for key, value in sample.kwargs.items())]
    )


def accepted_errors(name: str, device: str) -> Iterator[str]:
    """Yields the error inputs that the op accepts."""
    case = CASES[name]
    for info in _infos(case):
        for error in info.error_inputs(device) if info.error_inputs_func else ():
            sample = error.sample_input
            try:
                case.run(sample.input, *sample.args, **sample.kwargs)
            except REFUSALS:
                continue
            yield _shapes(sample)
