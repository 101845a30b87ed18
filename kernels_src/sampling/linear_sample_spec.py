"""Spec of drawing tokens from a product that is not in memory.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from opspec import OpSpec, Sample, normal
from torch import Tensor

LOW = 0xFFFFFFFF


def high_product(a: Tensor, b: int) -> tuple[Tensor, Tensor]:
    """Returns both halves of products of 32 bits, in int64."""
    product = a * b  # modulo 2^64
    return (product >> 32) & LOW, product & LOW


def exponentials(places: Tensor, seeds: Tensor, offsets: Tensor) -> Tensor:
    """Returns numbers of the exponential distribution at places of Philox-4x32-10 (J. Salmon et al., 2011)."""
    c = [offsets & LOW, offsets >> 32 & LOW, places & LOW, places >> 32 & LOW]
    k = [seeds & LOW, seeds >> 32 & LOW]
    for _ in range(10):
        a, b = high_product(c[0], 0xD2511F53), high_product(c[2], 0xCD9E8D57)
        c = [b[0] ^ c[1] ^ k[0], b[1], a[0] ^ c[3] ^ k[1], a[1]]
        k = [(k[0] + 0x9E3779B9) & LOW, (k[1] + 0xBB67AE85) & LOW]
    return -torch.log1p(-(c[0].double() * 2.0**-32 + (c[1].double() + 0.5) * 2.0**-64))


def linear_sample(
    input: Tensor,
    weight: Tensor,
    temperature: Tensor | None = None,
    seed: int = 0,
    offset: int = 0,
    seeds: Tensor | None = None,
    offsets: Tensor | None = None,
    softcap: float = 0.0,
) -> tuple[Tensor, Tensor]:
    rows, n, device = input.shape[0], weight.shape[0], input.device
    v = (input.double() @ weight.double().T).nan_to_num(-math.inf, math.inf, -math.inf)
    v = softcap * torch.tanh(v / softcap) if softcap else v
    t = torch.ones(rows, 1, device=device) if temperature is None else temperature[:, None]
    warm = t > 0
    v = torch.where(warm, v / torch.where(warm, t, 1.0).double(), v)
    number = torch.arange(rows, device=device)[:, None] if seeds is None else torch.zeros(rows, 1, device=device).long()
    places = torch.arange(n, device=device) + (number << 32)
    keys = torch.full((rows, 1), seed, device=device) if seeds is None else seeds[:, None]
    at = torch.full((rows, 1), offset, device=device) + (0 if offsets is None else offsets[:, None])
    noise = -torch.log(exponentials(places, keys + 0 * places, at + 0 * places))
    token = torch.where(warm & (v > -math.inf), v + noise, v).argmax(1, True)
    is_drawn = v.amax(1, True) > -math.inf
    logprob = torch.where(warm, v.log_softmax(1).gather(1, token), 0.0)
    return torch.where(is_drawn, token, -1).flatten(), torch.where(is_drawn, logprob, math.nan).flatten()


def magnitude(input: Tensor, weight: Tensor, *rest: object, **options: object) -> tuple[Tensor, Tensor]:
    """Returns magnitudes of the sums of products, at the least temperature of the samples."""
    size = (input.double().abs() @ weight.double().abs().T).nan_to_num(0, 0, 0).amax(1) * 4 + 16
    return torch.zeros_like(size), size


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    device = generator.device

    def make(rows: int, k: int, n: int) -> tuple[Tensor, Tensor]:
        return normal((rows, k), dtype, generator), normal((n, k), dtype, generator, max(k, 1) ** -0.5)

    def warmth(rows: int) -> Tensor:
        t = torch.rand(rows, generator=generator, device=device) + 0.3
        t[::5] = 0.0
        return t

    for rows, k, n in [(1, 1, 1), (0, 8, 9), (23, 10, 10), (5, 130, 300), (9, 0, 70), (3, 64, 4097), (70, 33, 129)]:
        yield Sample(make(rows, k, n), label=f"{rows}x{k}x{n}")
        yield Sample((*make(rows, k, n), warmth(rows), 5, 2**35 + 1), label=f"{rows}x{k}x{n}, temperature")
    seeds = torch.arange(9, device=device) * 2**33 + 1
    yield Sample((*make(9, 24, 500), warmth(9), 1, 3, seeds, seeds % 7), label="seeds of rows")
    yield Sample((*make(4, 24, 100), warmth(4), 2), {"softcap": 2.0}, label="softcap")
    x, w = make(24, 6, 90)
    yield Sample((x.t()[:, :20], w[:, ::2].repeat(1, 7)[:, :20], None, 3), label="transposed, repeated")
    x, w = make(6, 16, 90)
    x[2], w[5] = math.nan, math.inf
    yield Sample((x, w, warmth(6), 4), label="NaN and infinities")


def rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample((normal((m, n), dtype, generator), normal((4096, n), dtype, generator, 0.02)))


def eager(input: Tensor, weight: Tensor) -> Tensor:
    return torch.nn.functional.linear(input, weight).softmax(1).multinomial(1)


SPECS = [
    OpSpec(
        "kpkg::linear_sample",
        linear_sample,
        samples,
        dtypes=(torch.float32, torch.float16, torch.bfloat16),
        magnitude=magnitude,
        benchmarks=lambda generator: {"4x512, 4096 tokens": rows(4, 512, torch.float32, generator)},
        eager=eager,
        rows=rows,
    )
]
