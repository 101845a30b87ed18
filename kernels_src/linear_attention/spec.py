"""Specs of linear attention: the recurrences, one position after the other. test/python/test_linear_attention.py tests
steps, which write to states.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, normal
from torch import Tensor


def recurrence(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor | None,
    state: Tensor | None,
    sizes: bool,
    normed: bool = False,
) -> tuple[Tensor, Tensor]:
    """Returns `state.T @ q` of each position and the last state. With `sizes`, returns sums of absolute values."""
    if normed:
        q, k = (x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6) for x in (q, k))
    group = v.shape[2] // q.shape[2]
    q, k = q.repeat_interleave(group, 2), k.repeat_interleave(group, 2)
    s = v.new_zeros(v.shape[0], v.shape[2], q.shape[3], v.shape[3]) if state is None else state
    size = s.abs()
    out, out_sizes = torch.empty_like(v), torch.empty_like(v)
    for i in range(q.shape[1]):
        factor = g[:, i, :, None, None].exp()
        s, size = s * factor, size * factor
        added = v[:, i]
        if beta is not None:
            added = (added - (s * k[:, i, :, :, None]).sum(-2)) * beta[:, i, :, None]
        s = s + k[:, i, :, :, None] * added[:, :, None]
        size = size + (k[:, i, :, :, None] * added[:, :, None]).abs()
        out[:, i] = (s * q[:, i, :, :, None]).sum(-2)
        out_sizes[:, i] = (size * q[:, i, :, :, None].abs()).sum(-2)
    return (out_sizes, size) if sizes else (out, s)


def gated_linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    sizes: bool = False,
) -> tuple[Tensor, Tensor]:
    o, state = recurrence(q, k, v, g, None, initial_state, sizes)
    return o * (q.shape[3] ** -0.5 if scale is None else scale), state


def gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    use_qk_l2norm: bool = False,
    sizes: bool = False,
) -> tuple[Tensor, Tensor]:
    o, state = recurrence(q, k, v, g, beta, initial_state, sizes, use_qk_l2norm)
    return o * (q.shape[3] ** -0.5 if scale is None else scale), state


def mamba2_scan(
    x: Tensor,
    dt: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None = None,
    z: Tensor | None = None,
    dt_bias: Tensor | None = None,
    initial_state: Tensor | None = None,
    dt_softplus: bool = False,
    sizes: bool = False,
) -> tuple[Tensor, Tensor]:
    step = dt if dt_bias is None else dt + dt_bias
    step = F.softplus(step) if dt_softplus else step
    before = None if initial_state is None else initial_state.mT
    y, state = recurrence(C, B, x * step.unsqueeze(-1), step * A, None, before, sizes)
    if D is not None:
        skipped = x * D[:, None]
        y = y + (skipped.abs() if sizes else skipped)
    if z is not None:
        gate = F.silu(z)
        y = y * (gate.abs() if sizes else gate)
    return y, state.mT


def attention_sizes(*args: Tensor, **options: float) -> tuple[Tensor, ...]:
    """Returns magnitudes. The largest of a head counts: values are rounded before they are multiplied."""
    return widened(gated_linear_attention(*args, **options, sizes=True))


def delta_sizes(*args: Tensor, **options: float) -> tuple[Tensor, ...]:
    """Returns magnitudes. A difference has the errors of all before it, so the largest of the call counts."""
    return tuple(x * 0 + 4 * x.amax() if x.numel() else x for x in gated_delta_rule(*args, **options, sizes=True))


def scan_sizes(*args: Tensor, **options: float) -> tuple[Tensor, ...]:
    return widened(mamba2_scan(*args, **options, sizes=True))


def widened(found: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    return tuple(4 * x for x in found)


#: Batch, length, key heads, value heads, elements of a key, elements of a value.
SIZES = [
    (1, 1, 1, 1, 1, 1),
    (2, 0, 1, 2, 16, 16),
    (0, 5, 1, 1, 8, 8),
    (1, 63, 2, 2, 33, 40),
    (2, 64, 1, 3, 64, 64),
    (1, 65, 2, 4, 128, 65),
    (1, 200, 1, 2, 100, 130),
    (1, 1000, 1, 1, 16, 24),
]


class Draw:
    """Draws arguments of one dtype. States and numbers of heads have that of the accumulator."""

    def __init__(self, dtype: torch.dtype, generator: torch.Generator) -> None:
        self.dtype, self.generator = dtype, generator
        self.wide = torch.float64 if dtype == torch.float64 else torch.float32

    def heads(self, *shape: int) -> Tensor:
        return normal(shape, self.dtype, self.generator)

    def state(self, *shape: int) -> Tensor:
        return normal(shape, self.wide, self.generator)

    def decay(self, *shape: int) -> Tensor:
        """Returns logarithms of decays of all sizes."""
        return -self.state(*shape).abs() * 0.3

    def rate(self, *shape: int) -> Tensor:
        return torch.sigmoid(self.state(*shape))


def attention_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    draw = Draw(dtype, generator)
    for index, (batch, length, heads, value_heads, d, dv) in enumerate(SIZES):
        q, k = draw.heads(batch, length, heads, d), draw.heads(batch, length, heads, d)
        v, g = draw.heads(batch, length, value_heads, dv), draw.decay(batch, length, value_heads)
        label = f"{batch}x{length}, {heads} and {value_heads} heads of {d} and {dv}"
        yield Sample((q, k, v, g), label=label)
        state = draw.state(batch, value_heads, d, dv)
        yield Sample((q, k, v, g.to(dtype), 0.5, state), label=f"{label}, from a state")
    q, k, v = (draw.heads(2, 3, 70, 32).transpose(1, 2) for _ in range(3))
    yield Sample((q, k, v, draw.decay(1, 1, 3).expand(2, 70, 3)), label="heads before positions, one decay")


def delta_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    draw = Draw(dtype, generator)
    for batch, length, heads, value_heads, d, dv in SIZES:
        q, k = draw.heads(batch, length, heads, d), draw.heads(batch, length, heads, d)
        v, g = draw.heads(batch, length, value_heads, dv), draw.decay(batch, length, value_heads)
        beta = draw.rate(batch, length, value_heads)
        label = f"{batch}x{length}, {heads} and {value_heads} heads of {d} and {dv}"
        yield Sample((q, F.normalize(k.double(), dim=-1).to(dtype), v, g, beta), label=label)
        state = draw.state(batch, value_heads, d, dv)
        yield Sample((q, k, v, g.to(dtype), beta.to(dtype), 0.5, state, True), label=f"{label}, normalised")
    q, k, v = (draw.heads(2, 3, 70, 32).transpose(1, 2) for _ in range(3))
    same = (q, k[:, :1].expand(2, 70, 3, 32), v, draw.decay(2, 70, 3) * 0, draw.rate(2, 70, 3), None, None, True)
    yield Sample(same, label="equal keys, no decay")


def scan_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    draw = Draw(dtype, generator)
    for batch, length, groups, heads, n, p in SIZES:
        x, dt = draw.heads(batch, length, heads, p), draw.rate(batch, length, heads)
        b, c = draw.heads(batch, length, groups, n), draw.heads(batch, length, groups, n)
        a = -draw.rate(heads)
        label = f"{batch}x{length}, {heads} heads of {p}, {groups} groups of {n}"
        yield Sample((x, dt, a, b, c), label=label)
        further = (draw.state(heads), draw.heads(batch, length, heads, p), draw.state(heads))
        state = draw.state(batch, heads, p, n)
        yield Sample((x, dt.to(dtype), a, b, c, *further, state, True), label=f"{label}, all arguments")
    packed = draw.heads(2, 70, 2 * 48 + 2 * 16)
    x, b, c = packed[..., :96].unflatten(2, (2, 48)), packed[..., None, 96:112], packed[..., None, 112:]
    yield Sample((x, draw.rate(2, 2, 70).mT, -draw.rate(2), b, c), label="parts of one projection")


SPECS = [
    OpSpec(
        "kpkg::gated_linear_attention",
        gated_linear_attention,
        attention_samples,
        magnitude=attention_sizes,
        rounds_between=True,
        rounds_wide_results=True,
        accumulation=64.0,
    ),
    OpSpec(
        "kpkg::gated_delta_rule",
        gated_delta_rule,
        delta_samples,
        magnitude=delta_sizes,
        rounds_between=True,
        rounds_wide_results=True,
        accumulation=64.0,
        gpu_accumulation=4096.0,
    ),
    OpSpec(
        "kpkg::mamba2_scan",
        mamba2_scan,
        scan_samples,
        magnitude=scan_sizes,
        rounds_between=True,
        rounds_wide_results=True,
        accumulation=64.0,
    ),
]
