"""Specs of drawing tokens and of penalties.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from opspec import OpSpec, Sample, normal
from torch import Tensor

LOGITS = (torch.float32, torch.float16, torch.bfloat16)
LOW = 0xFFFFFFFF


def philox(place: int, seed: int, offset: int) -> list[int]:
    """Returns four numbers of 32 bits: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011."""
    counter = [offset & LOW, offset >> 32 & LOW, place & LOW, place >> 32 & LOW]
    key = [seed & LOW, seed >> 32 & LOW]
    for _ in range(10):
        a, b = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = [(b >> 32) ^ counter[1] ^ key[0], b & LOW, (a >> 32) ^ counter[3] ^ key[1], a & LOW]
        key = [(key[0] + 0x9E3779B9) & LOW, (key[1] + 0xBB67AE85) & LOW]
    return counter


def distribution(logits: Tensor, temperature: float, top_k: int, top_p: float, min_p: float) -> Tensor:
    """Returns the probabilities of one row of float64 logits after all filters, by sorting."""
    logits = logits.nan_to_num(-math.inf, math.inf, -math.inf)
    top = logits.max()
    if temperature <= 0:
        kept = (logits == top).cumsum(0) * (logits == top) == 1
        return torch.where(kept & (logits > -math.inf), 1.0, 0.0)
    weights = torch.where(logits == top, 1.0, torch.exp((logits - top) / temperature))
    weights = torch.where(logits > -math.inf, weights, 0.0)
    ordered = logits.sort(descending=True).values
    if 0 < top_k < len(logits):
        weights = weights * (logits >= ordered[top_k - 1])
    if top_p < 1:
        sums = weights[logits.argsort(descending=True, stable=True)].cumsum(0)
        weights = weights * (logits >= ordered[min(int((sums < sums[-1] * top_p).sum()), len(logits) - 1)])
    if min_p > 0:
        weights = weights * (logits >= float((top + temperature * math.log(min_p)).float()))
    return weights / weights.sum()


def sample(
    logits: Tensor,
    temperature: Tensor | None = None,
    top_k: Tensor | None = None,
    top_p: Tensor | None = None,
    min_p: Tensor | None = None,
    seed: int = 0,
    offset: int = 0,
    seeds: Tensor | None = None,
    offsets: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    tokens, logprobs = [], []
    for row, x in enumerate(logits.double()):
        given = [(temperature, 1.0), (top_k, 0), (top_p, 1.0), (min_p, 0.0)]
        filters = [absent if numbers is None else numbers[row].item() for numbers, absent in given]
        p = distribution(x, *filters)
        key = seed if seeds is None else int(seeds[row])
        place = row if seeds is None else 0
        bits = philox(place, key, offset + (0 if offsets is None else int(offsets[row])))
        u = bits[0] * 2.0**-32 + (bits[1] >> 11) * 2.0**-53
        above = (p.cumsum(0) > u * p.sum()) & (p > 0)
        tokens.append(int(above.byte().argmax()) if above.any() else -1)
        logprobs.append(math.log(p[tokens[-1]]) if above.any() else math.nan)
    return (
        torch.tensor(tokens, dtype=torch.int64, device=logits.device),
        torch.tensor(logprobs, dtype=torch.float64, device=logits.device),
    )


def filters(rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns a temperature, top_k, top_p and min_p for each row. Some are 0, and some keep all."""

    def drawn() -> Tensor:
        return torch.rand(rows, generator=generator, device=generator.device)

    temperature, top_p, min_p = drawn() + 0.3, drawn() + 0.05, drawn() * 0.2
    top_k = torch.randint(-2, 40, (rows,), generator=generator, device=generator.device).int()
    temperature[::5], min_p[1::4] = 0.0, 0.0
    return temperature, top_k, top_p, min_p


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for rows, n in [(1, 1), (0, 9), (23, 10), (5, 300), (7, 4096), (3, 4097), (2, 20001)]:
        x = normal((rows, n), dtype, generator, 3.0)
        t, k, p, m = filters(rows, generator)
        yield Sample((x,), label=f"{rows}x{n}")
        yield Sample((x, t, None, None, None, 5, 2**35 + 1), label=f"{rows}x{n}, temperature")
        yield Sample((x, t, k, p, m, 2**40 + 3), label=f"{rows}x{n}, all filters")
    x = normal((31, 50), dtype, generator, 2.0)
    t, k, p, m = filters(31, generator)
    yield Sample((x, None, k), label="top-k")
    yield Sample((x, t, None, p), label="top-p")
    yield Sample((x, t, None, None, m), label="min-p")
    ties = normal((31, 50), torch.float64, generator, 2.0).round().to(dtype)
    yield Sample((ties, None, k, None, None, 7), label="ties")
    seeds = torch.arange(31, device=generator.device) * 2**33 + 1
    yield Sample((x, t, k, p, m, 1, 3, seeds, seeds % 7), label="seeds of rows")
    yield Sample((x.t(), None, t.new_full((50,), 3).int()), label="transposed")
    x = normal((5, 9000), dtype, generator)[:, ::2]
    x[0], x[1, 4400:], x[2, :20], x[3, 7] = -math.inf, math.nan, -math.inf, math.inf
    yield Sample((x, None, x.new_full((5,), 4000).int()), label="infinities and NaN, step 2")
    yield Sample((x, torch.zeros(5, device=x.device)), label="infinities and NaN, the greatest")


def apply_penalties(
    logits: Tensor,
    output_tokens: Tensor,
    prompt_tokens: Tensor | None = None,
    repetition: Tensor | None = None,
    frequency: Tensor | None = None,
    presence: Tensor | None = None,
) -> Tensor:
    y = logits.clone()
    for row in range(logits.shape[0]):
        output = output_tokens[row].tolist()
        prompt = [] if prompt_tokens is None else prompt_tokens[row].tolist()
        for token in {t for t in output + prompt if 0 <= t < logits.shape[1]}:
            if repetition is not None:
                y[row, token] *= 1 / repetition[row] if y[row, token] > 0 else repetition[row]
            if frequency is not None:
                y[row, token] -= frequency[row] * output.count(token)
            if presence is not None and token in output:
                y[row, token] -= presence[row]
    return y


def penalty_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def tokens(rows: int, count: int, n: int) -> Tensor:
        return torch.randint(-1, n + 1, (rows, count), generator=generator, device=generator.device)

    def drawn(rows: int) -> Tensor:
        return torch.rand(rows, generator=generator, device=generator.device) + 0.5

    for rows, n, count in [(1, 1, 1), (0, 4, 3), (3, 0, 2), (5, 7, 0), (6, 100, 40), (3, 5000, 1500)]:
        x, output, prompt = normal((rows, n), dtype, generator, 3.0), tokens(rows, count, n), tokens(rows, 30, n)
        penalties = (drawn(rows), drawn(rows) - 1, drawn(rows))
        yield Sample((x, output, prompt, *penalties), label=f"{rows}x{n}, {count} tokens")
        yield Sample((x, output.int(), None, None, *penalties[1:]), label=f"{rows}x{n}, {count} tokens, no prompt")
    x = normal((40, 6), dtype, generator).t()
    yield Sample((x, tokens(6, 9, 40)[:, ::2], None, drawn(6)), label="transposed, repetition")


SPECS = [
    OpSpec(
        "kpkg::sample",
        sample,
        samples,
        dtypes=LOGITS,
        benchmarks=lambda generator: {
            "32x32000": Sample((normal((32, 32000), torch.float32, generator, 3.0),)),
        },
        eager=lambda logits: logits.softmax(1).multinomial(1),
    ),
    OpSpec(
        "kpkg::apply_penalties",
        apply_penalties,
        penalty_samples,
        dtypes=LOGITS,
        benchmarks=lambda generator: {
            "4x4000, 100 tokens": Sample(
                (
                    normal((4, 4000), torch.float32, generator),
                    torch.randint(0, 4000, (4, 100), generator=generator, device=generator.device),
                    None,
                    torch.full((4,), 1.2, device=generator.device),
                )
            ),
        },
        eager=apply_penalties,
    ),
]
