"""Tables of cosines and sines for rotary position embedding, with the scalings of language models.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

_TYPES = ("default", "linear", "dynamic", "yarn", "llama3")


def rotary_tables(
    length: int,
    dim: int,
    theta: float = 10000.0,
    scaling: Mapping[str, Any] | None = None,
    *,
    trained_length: int | None = None,
    device: torch.device | str | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns cos and sin for ``kpkg.ops.rotary_embedding`` and its kin: float32 ``[length, pairs]``.

    Frequencies and angles are computed in float32, as transformers does, so that models see the same numbers. Both
    tables are multiplied by the attention factor of yarn.

    Args:
        length: The number of positions.
        dim: The elements of a head. ``partial_rotary_factor`` of ``scaling`` says which part of them is rotated.
        theta: The base of the frequencies. ``rope_theta`` of ``scaling`` comes first.
        scaling: ``rope_parameters`` or ``rope_scaling`` of a model's configuration, of type default, linear, dynamic,
            yarn or llama3; None has no scaling.
        trained_length: ``max_position_embeddings`` of the configuration, where the type is dynamic, or yarn without
            ``original_max_position_embeddings``.
        device: Where the tables are.

    Raises ValueError for another type, and for numbers that it needs and does not have.
    """
    given = dict(scaling or {})
    kind = given.get("rope_type", given.get("type", "default"))
    if kind not in _TYPES:
        raise ValueError(f"rope_type is {kind!r}, expected one of {', '.join(_TYPES)}")
    base = float(given.get("rope_theta", theta))
    turned = int(dim * given.get("partial_rotary_factor", 1.0))
    if length < 0 or turned < 0 or turned % 2:
        raise ValueError(f"length is {length} and {turned} elements of a head turn, expected an even number of them")
    frequencies, factor = _frequencies(kind, given, base, turned, length, trained_length)
    angles = torch.outer(torch.arange(length, dtype=torch.float32), frequencies)
    return (angles.cos() * factor).to(device), (angles.sin() * factor).to(device)


def _number(kind: str, given: Mapping[str, Any], name: str, absent: float | None = None) -> float:
    value = given.get(name)
    value = absent if value is None else value
    if value is None:
        raise ValueError(f"scaling of type {kind} needs {name}")
    return value


def _plain(base: float, dim: int) -> Tensor:
    return 1.0 / base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim)


def _frequencies(
    kind: str, given: Mapping[str, Any], base: float, dim: int, length: int, trained: int | None
) -> tuple[Tensor, float]:
    """Returns the frequencies of pairs, and the factor of both tables."""
    if kind == "linear":
        return _plain(base, dim) / _number(kind, given, "factor"), 1.0
    if kind == "dynamic":
        factor, known = _number(kind, given, "factor"), _number(kind, {"trained_length": trained}, "trained_length")
        growth = factor * max(length, known) / known - (factor - 1)
        return _plain(base * growth ** (dim / (dim - 2)), dim), 1.0
    if kind == "yarn":
        return _yarn(given, base, dim, trained)
    if kind == "llama3":
        return _llama3(given, _plain(base, dim)), 1.0
    return _plain(base, dim), 1.0


def _yarn(given: Mapping[str, Any], base: float, dim: int, trained: int | None) -> tuple[Tensor, float]:
    """B. Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models", 2023."""
    known = _number("yarn", given, "original_max_position_embeddings", trained)
    factor = _number("yarn", given, "factor", None if trained is None else trained / known)

    def magnitude(scale: float = 1.0) -> float:
        return 0.1 * scale * math.log(factor) + 1.0 if factor > 1 else 1.0

    attention = given.get("attention_factor")
    if attention is None:
        scale, scale_of_all = given.get("mscale"), given.get("mscale_all_dim")
        attention = magnitude(scale) / magnitude(scale_of_all) if scale and scale_of_all else magnitude()

    def pair_of(turns: float) -> float:
        return dim * math.log(known / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = pair_of(given.get("beta_fast") or 32), pair_of(given.get("beta_slow") or 1)
    if given.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    high = high + 0.001 if low == high else high
    kept = 1 - ((torch.arange(dim // 2, dtype=torch.float32) - low) / (high - low)).clamp(0, 1)
    powers = base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    return 1.0 / (factor * powers) * (1 - kept) + 1.0 / powers * kept, float(attention)


def _llama3(given: Mapping[str, Any], plain: Tensor) -> Tensor:
    factor, known = (_number("llama3", given, name) for name in ("factor", "original_max_position_embeddings"))
    low, high = (_number("llama3", given, name) for name in ("low_freq_factor", "high_freq_factor"))
    waves = 2 * math.pi / plain
    stretched = torch.where(waves > known / low, plain / factor, plain)
    smooth = (known / waves - low) / (high - low)
    between = (1 - smooth) * stretched / factor + smooth * stretched
    is_between = ~(waves < known / high) & ~(waves > known / low)
    return torch.where(is_between, between, stretched)
