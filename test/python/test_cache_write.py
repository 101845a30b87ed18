"""Tests writes to caches of keys and values, alone and behind norms and rotary embedding, beside float64.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import itertools

import kpkg
import pytest
import torch
from conftest import BUILD, ROOT, build_package
from torch.testing import assert_close

HALVES = (torch.float16, torch.bfloat16)
EIGHTS = torch.float8_e4m3fn
NOWHERE = kpkg.KernelConfig(target="sm_80")
POISON = 77.0


@pytest.fixture(scope="module")
def ops():
    package = BUILD / "test-packages" / "rotary.kpkg"
    library = kpkg.load(build_package(ROOT / "kernels_src" / "rotary", package, "--target", "native"))
    library.register_torch()
    return {op.name.partition("::")[2]: op for op in library}


def caches(blocks, size, heads, dim, dtype):
    """Returns a cache full of a number that no call writes."""
    return torch.full((blocks, size, heads, dim), POISON).to(dtype)


def drawn(generator, *shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def drawn_slots(generator, tokens, count, dtype):
    """Returns different slots, of which about one of five is left out."""
    slots = torch.randperm(max(count, tokens), generator=generator)[:tokens]
    return torch.where(torch.rand(tokens, generator=generator) < 0.2, -1, slots).to(dtype)


def normed(x, weight, eps):
    return x if weight is None else x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def rotated(x, cos, sin, positions, interleaved, sections):
    if sections:
        parts = torch.arange(cos.shape[1]).split(sections)
        c, s = (torch.cat([t[p.long()][:, i] for p, i in zip(positions, parts)], -1) for t in (cos, sin))
    else:
        c, s = cos[positions.long()], sin[positions.long()]
    c, s, n = c[:, None], s[:, None], 2 * cos.shape[1]
    a, b = (x[..., :n:2], x[..., 1:n:2]) if interleaved else (x[..., : n // 2], x[..., n // 2 : n])
    found = (a * c - b * s, b * c + a * s)
    joined = torch.stack(found, -1).flatten(-2) if interleaved else torch.cat(found, -1)
    return torch.cat([joined, x[..., n:]], -1)


def expected_cache(cache, x, slots, scale):
    """Returns the cache in float64 after a write."""
    flat = cache.double().flatten(0, 1)
    for i, slot in enumerate(slots.tolist()):
        if 0 <= slot < flat.shape[0]:
            found = x[i] / (1.0 if scale is None else scale.double())
            flat[slot] = found.clamp(-448, 448) if cache.dtype == EIGHTS else found
    return flat.view(cache.shape)


def check(found, expected):
    tolerance = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2, EIGHTS: 0.125}[found.dtype]
    assert_close(found.double(), expected, rtol=tolerance, atol=tolerance / 50)


#: tokens, heads, key-value heads, elements of a head, pairs, elements of a value head, size of blocks
SIZES = [
    (1, 1, 1, 2, 1, 3, 1),
    (0, 2, 1, 64, 32, 64, 4),
    (5, 0, 3, 64, 32, 64, 16),
    (7, 33, 5, 64, 32, 64, 16),
    (3, 2, 1, 7, 0, 7, 3),
    (4, 9, 2, 80, 40, 40, 5),
    (6, 16, 8, 128, 64, 128, 64),
    (2, 17, 9, 128, 32, 300, 1),
    (3, 8, 2, 256, 128, 256, 16),
    (5, 3, 2, 33, 10, 32, 7),
]


@pytest.mark.parametrize("dtype, narrow", [(torch.float32, False), *itertools.product(HALVES, (False, True))])
@pytest.mark.parametrize("way", ["kernel", "reference", "fallback"])
def test_rotary_cache(ops, dtype, narrow, way):
    op = ops["rotary_cache__reference" if way == "reference" else "rotary_cache_"]
    for number, (sizes, interleaved) in enumerate(itertools.product(SIZES, (False, True))):
        if way != "kernel" and number % 4 != 1:
            continue
        tokens, heads, kv, dim, pairs, value_dim, size = sizes
        g = torch.Generator().manual_seed(number)
        rows, blocks = 41, -(-(tokens + 3) // size)
        # A view of a packed projection, and one with gaps.
        packed = drawn(g, tokens, (heads + kv) * dim).to(dtype)
        query = packed[:, : heads * dim].unflatten(1, (heads, dim)) if heads else drawn(g, tokens, 0, dim).to(dtype)
        key = packed[:, heads * dim :].unflatten(1, (kv, dim))
        value = drawn(g, tokens, kv, value_dim + number % 2).to(dtype)[..., :value_dim]
        angle = drawn(g, rows, pairs) * 6
        cos, sin = angle.cos().float(), angle.sin().float()
        sections = [pairs // 4, pairs - pairs // 4 - pairs // 3, pairs // 3] if number % 4 == 2 else []
        positions = torch.randint(0, rows, (3, tokens) if sections else (tokens,), generator=g)
        weights = [drawn(g, dim).to(dtype) if number % m else None for m in (3, 5)]
        scales = [torch.tensor(s) if narrow and number % 3 else None for s in (0.03, 0.5)]
        slots = drawn_slots(g, tokens, blocks * size, (torch.int32, torch.int64)[number % 2])
        positions = positions.to((torch.int64, torch.int32)[number % 3 % 2])
        kinds = (EIGHTS if narrow else dtype,) * 2
        keys, values = (caches(blocks, size, kv, d, k) for d, k in zip((dim, value_dim), kinds))
        if number % 5 == 4:  # heads before keys, as attention_decode has them
            keys, values = (c.transpose(1, 2).contiguous().transpose(1, 2) for c in (keys, values))
        wide = [t.double() for t in (query, key)]
        turn = [
            rotated(normed(t, w if w is None else w.double(), 1e-5), cos.double(), sin.double(), positions,
                    interleaved, sections)
            for t, w in zip(wide, weights)
        ]  # fmt: skip
        wanted = (
            expected_cache(keys, turn[1], slots, scales[0]),
            expected_cache(values, value.double(), slots, scales[1]),
        )
        kept = key.clone()
        arguments = (query, key, value, cos, sin, positions, keys, values, slots)
        options = (*weights, 1e-5, interleaved, sections, *scales)
        if way == "fallback":
            with kpkg.fallback_policy("silent"), op.configure(NOWHERE):
                assert op(*arguments, *options) is None
        else:
            assert op(*arguments, *options) is None
        check(query, turn[0])
        check(keys, wanted[0])
        check(values, wanted[1])
        assert torch.equal(key, kept)


@pytest.mark.parametrize("dtype, narrow", [(torch.float32, False), *itertools.product(HALVES, (False, True))])
@pytest.mark.parametrize("way", ["kernel", "reference", "fallback"])
def test_cache_write(ops, dtype, narrow, way):
    op = ops["cache_write__reference" if way == "reference" else "cache_write_"]
    sizes = [(1, 1, 1, 1, 1), (0, 2, 8, 8, 4), (9, 8, 128, 128, 16), (5, 3, 40, 24, 7), (4, 9, 300, 300, 2)]
    for number, (tokens, heads, dim, value_dim, size) in enumerate(sizes * 3):
        if way != "kernel" and number > 4:
            break
        g = torch.Generator().manual_seed(number)
        blocks = -(-(tokens + 3) // size)
        key, value = (drawn(g, tokens, heads, d + (number > 9)).to(dtype)[..., :d] for d in (dim, value_dim))
        keys, values = (caches(blocks, size, heads, d, EIGHTS if narrow else dtype) for d in (dim, value_dim))
        if 4 < number < 10:
            keys, values = (c.transpose(1, 2).contiguous().transpose(1, 2) for c in (keys, values))
        scales = [torch.tensor([s]) if narrow and number % 2 else None for s in (0.003, 0.5)]
        slots = drawn_slots(g, tokens, blocks * size, (torch.int32, torch.int64)[number % 2])
        if tokens > 1:
            slots[-1] = blocks * size  # outside
        wanted = [expected_cache(c, x.double(), slots, s) for c, x, s in zip((keys, values), (key, value), scales)]
        if way == "fallback":
            with kpkg.fallback_policy("silent"), op.configure(NOWHERE):
                op(key, value, keys, values, slots, *scales)
        else:
            op(key, value, keys, values, slots, *scales)
        check(keys, wanted[0])
        check(values, wanted[1])


@pytest.mark.parametrize("dtype", HALVES)
def test_attention_reads_what_was_written(ops, dtype):
    """Scales of a cache of 8 bits mean the same to both ops. Pages are views with heads before keys."""
    package = BUILD / "test-packages" / "attention_cache.kpkg"
    decode = kpkg.load(build_package(ROOT / "kernels_src" / "attention_cache", package, "--target", "native"))
    g = torch.Generator().manual_seed(2)
    key, value = (drawn(g, 40, 2, 64).to(dtype) for _ in range(2))
    query = drawn(g, 1, 4, 1, 64).to(dtype)
    scales = (torch.tensor(0.02), torch.tensor(0.3))
    keys, values = (caches(3, 16, 2, 64, EIGHTS) for _ in range(2))
    ops["cache_write_"](key, value, keys, values, torch.arange(40), *scales)
    table, lengths = torch.arange(3).int()[None], torch.tensor([40]).int()
    views = [c.transpose(1, 2) for c in (keys, values)]
    found, _ = decode.attention_decode(query, *views, lengths, table, None, 0.0, 0, *scales)
    k, v = ((c.flatten(0, 1)[:40].float() * s).transpose(0, 1) for c, s in zip((keys, values), scales))
    expected = torch.nn.functional.scaled_dot_product_attention(query.float(), k[None], v[None], enable_gqa=True)
    assert_close(found.float(), expected, atol=2e-2, rtol=2e-2)
    for wrong, message in ((torch.ones(2), "key_scale is float32 of shape"), (torch.ones(1).double(), "is float64")):
        with pytest.raises(kpkg.KernelError, match=message):
            decode.attention_decode(query, *views, lengths, table, None, 0.0, 0, wrong)
    with pytest.raises(kpkg.KernelError, match="expected float16 or bfloat16 with two caches of float8_e4m3fn"):
        decode.attention_decode(query.float(), *views, lengths, table)
    with pytest.raises(kpkg.KernelError, match="key_scale is for a cache of float8_e4m3fn, this one is"):
        wide = [c.to(dtype) for c in views]
        decode.attention_decode(query, *wide, lengths, table, None, 0.0, 0, scales[0])


def call(tokens=5, dtype=torch.float32, cache=None):
    g = torch.Generator().manual_seed(1)
    q, k, v = (drawn(g, tokens, n, 64).to(dtype) for n in (4, 2, 2))
    angle = drawn(g, 17, 32)
    keys, values = (caches(4, 2, 2, 64, cache or dtype) for _ in range(2))
    positions = torch.randint(0, 17, (tokens,), generator=g)
    return [q, k, v, angle.cos().float(), angle.sin().float(), positions, keys, values, torch.arange(tokens)]


def test_compiled(ops):
    def step(q, k, v, cos, sin, positions, keys, values, slots):
        q = q * 2
        torch.ops.kpkg.rotary_cache_(q, k, v, cos, sin, positions, keys, values, slots)
        torch.ops.kpkg.cache_write_(k[:1] + 1, v[:1], keys, values, slots[:1])
        return q

    mine, theirs = call(), call()
    found = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=True)(*mine)
    assert_close(found, step(*theirs))
    for a, b in zip(mine, theirs):
        assert_close(a, b)


def test_autocast_keeps_dtypes(ops):
    arguments = call(dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        torch.ops.kpkg.rotary_cache_(*arguments)
    assert arguments[6].dtype == torch.bfloat16 and bool((arguments[6] != POISON).any())


def test_writes_are_seen_by_autograd(ops):
    arguments = call()
    before = [arguments[i]._version for i in (0, 6, 7)]
    torch.ops.kpkg.rotary_cache_(*arguments)
    assert [arguments[i]._version for i in (0, 6, 7)] == [n + 1 for n in before]


def test_registration(ops):
    for name, arguments in (("rotary_cache_", call()), ("cache_write_", [*call()[1:3], *call()[6:]])):
        torch.library.opcheck(getattr(torch.ops.kpkg, name).default, tuple(arguments))


def test_positions_out_of_bounds(ops):
    arguments = call()
    arguments[5][3] = 17
    with pytest.raises(kpkg.KernelError, match="a position is out of bounds"):
        ops["rotary_cache_"](*arguments)


def changed(**changes):
    names = ["q", "k", "v", "cos", "sin", "positions", "keys", "values", "slots"]

    def make():
        arguments = dict(zip(names, call()))
        for name, change in changes.items():
            if name in names:
                arguments[name] = change(arguments[name])
        return list(arguments.values()), {k: v for k, v in changes.items() if k not in names}

    return make


WRONG = {
    r"query has shape \[1, 5, 4, 64\], expected \[tokens, heads, dim\]": changed(q=lambda t: t[None]),
    r"cos is float64, expected float32": changed(cos=lambda t: t.double(), sin=lambda t: t.double()),
    r"positions have shape \[4\], expected \[5\]": changed(positions=lambda t: t[1:]),
    r"query_weight is float32 of shape \[63\], expected float32 of shape \[64\]": changed(query_weight=torch.ones(63)),
    r"key_weight is float64 of shape \[64\]": changed(key_weight=torch.ones(64, dtype=torch.float64)),
    r"value has shape \[5, 128\], expected \[tokens, heads, dim\]": changed(v=lambda t: t.flatten(1)),
    r"key_cache has shape \[8, 2, 64\], expected \[blocks, size, 2, 64\]": changed(keys=lambda t: t.flatten(0, 1)),
    r"value_cache has shape \[4, 2, 2, 63\], expected \[blocks, size, 2, 64\]": changed(values=lambda t: t[..., 1:]),
    r"key_cache is bfloat16, expected float32 as key, or": changed(keys=lambda t: t.bfloat16()),
    r"key_cache is float8_e4m3fn, expected float32": changed(keys=lambda t: t.to(EIGHTS)),
    r"value_cache is float32 of shape \[3, 2, 2, 64\], key_cache float32 of": changed(values=lambda t: t[1:]),
    r"value is float32 of shape \[4, 2, 64\], key float32 of": changed(v=lambda t: t[1:]),
    r"slots have shape \[4\], expected \[5\]": changed(slots=lambda t: t[1:]),
    r"slots are int16, expected int64 or int32": changed(slots=lambda t: t.short()),
    r"key_scale is for a cache of float8_e4m3fn, this one is float32": changed(key_scale=torch.tensor(1.0)),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_arguments_are_named(ops, message):
    arguments, options = WRONG[message]()
    with pytest.raises(kpkg.KernelError, match=message):
        ops["rotary_cache_"](*arguments, **options)


def test_wrong_scale(ops):
    q, k, v, _, _, _, keys, values, slots = call(dtype=torch.bfloat16, cache=EIGHTS)
    for bad in (torch.ones(2), torch.ones(1, dtype=torch.float64)):
        with pytest.raises(kpkg.KernelError, match="value_scale is float.* expected one float32"):
            ops["cache_write_"](k, v, keys, values, slots, None, bad)
