"""Compares kernels at thread level with PyTorch on the CPU: ids, exchange in warps, barriers, updates, errors.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re
import subprocess

import pytest
import torch
from conftest import COMMAND, load_source

SOURCE = '''
@kernel(level="threads", threads=(4, 3, 2))
def ids(mut y: Tensor[int64, 3]):
    var thread = (thread_idx.z * block_dim.y + thread_idx.y) * block_dim.x + thread_idx.x
    y[global_idx.z, global_idx.y, global_idx.x] = (thread + 100 * block_idx.x + 1000 * block_idx.y).cast[int64]()


@register.op("threads::ids")
def ids_of(mut y: Tensor) raises:
    launch ids(y, grid=(2, 2, 2))


@kernel(level="threads", threads=N)
@specialize(N=[1, 3, 48, 64, 1024])
def reverse_blocks[N: Int](x: Tensor[float32, 1], mut y: Tensor[float32, 1]):
    """Any number of threads may wait for each other."""
    var part = shared[float32](N)
    part[thread_idx.x] = x[global_idx.x]
    barrier()
    y[global_idx.x] = part[N - 1 - thread_idx.x]


@register.op("threads::reverse")
def reverse(x: Tensor, n: Int) raises -> Tensor:
    var y = empty_like(x)
    if n == 1:
        launch reverse_blocks[N=1](x, y, grid=x.shape[0])
    elif n == 3:
        launch reverse_blocks[N=3](x, y, grid=ceildiv(x.shape[0], 3))
    elif n == 48:
        launch reverse_blocks[N=48](x, y, grid=ceildiv(x.shape[0], 48))
    else:
        launch reverse_blocks[N=1024](x, y, grid=ceildiv(x.shape[0], 1024))
    return y


@kernel(level="threads", threads=64)
@specialize(T=[float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, bool])
def shuffles[T: DType](x: Tensor[T, 1], mut y: Tensor[T, 2], by: Int):
    var v = x[global_idx.x]
    y[0, global_idx.x] = shuffle_idx(v, by)
    y[1, global_idx.x] = shuffle_up(v, by)
    y[2, global_idx.x] = shuffle_down(v, by)
    y[3, global_idx.x] = shuffle_xor(v, by)


@register.op("threads::shuffles")
def shuffled(x: Tensor, by: Int) raises -> Tensor:
    var y = empty(4, x.shape[0], dtype=x.dtype)
    launch shuffles[T=x.dtype](x, y, by, grid=ceildiv(x.shape[0], 64))
    return y


@kernel(level="threads", threads=64)
def votes(x: Tensor[int32, 1], mut y: Tensor[int64, 2]):
    var c = x[global_idx.x] > 0
    y[0, global_idx.x] = ballot(c).cast[int64]()
    y[1, global_idx.x] = warp_any(c).cast[int64]()
    y[2, global_idx.x] = warp_all(c).cast[int64]()
    y[3, global_idx.x] = warp_prefix_sum(x[global_idx.x]).cast[int64]()
    y[4, global_idx.x] = warp_min(x[global_idx.x]).cast[int64]()


@register.op("threads::votes")
def voted(x: Tensor) raises -> Tensor:
    var y = empty(5, x.shape[0], dtype=int64)
    launch votes(x, y, grid=ceildiv(x.shape[0], 64))
    return y


@kernel(level="threads", threads=64)
@specialize(T=[int32, int64, float32, float64])
def updates[T: DType](x: Tensor[T, 1], mut sums: Tensor[T, 1], mut olds: Tensor[T, 1]):
    """Each thread takes a place of its own by what an update returns."""
    var taken = shared[int32](1)
    if thread_idx.x == 0:
        taken[0] = 0
    barrier()
    var place = taken.atomic_add(0, 1)
    sums.atomic_add(0, x[global_idx.x])
    sums.atomic_max(1, x[global_idx.x])
    sums.atomic_min(2, x[global_idx.x])
    if place == 63:
        olds[0] = sums.atomic_exchange(3, T_of[T](7))
    var found = sums.atomic_compare_exchange(4, T_of[T](0), x[global_idx.x])
    olds.atomic_add(1, T_of[T](1) if found == T_of[T](0) else T_of[T](0))
    sums.atomic_add(1000, x[global_idx.x])


def T_of[T: DType](value):
    return Int32(value).cast[T]()


@register.op("threads::updates")
def updated(x: Tensor, mut sums: Tensor, mut olds: Tensor) raises:
    launch updates[T=x.dtype](x, sums, olds, grid=ceildiv(x.shape[0], 64))


@kernel(level="threads", threads=64)
def collatz(x: Tensor[int64, 1], mut y: Tensor[int32, 1]):
    """Every thread goes its own way, and leaves early."""
    var i = global_idx.x
    if i >= x.shape[0]:
        return
    var v = x[i]
    var steps = Int32(0)
    while v != 1:
        v = v // 2 if v % 2 == 0 else 3 * v + 1
        steps += 1
        if steps > 1000:
            break
    y[i] = steps


@register.op("threads::collatz")
def collatz_of(x: Tensor) raises -> Tensor:
    var y = empty(x.shape[0], dtype=int32)
    launch collatz(x, y, grid=ceildiv(x.shape[0], 64))
    return y


@kernel(level="threads", threads=64)
def diverging(x: Tensor[float32, 1], mut y: Tensor[float32, 1], kind: Int):
    if kind == 0 and thread_idx.x < 10:
        barrier()
    if kind == 1:
        if thread_idx.x < 32:
            barrier()
        else:
            barrier()
    if kind == 2 and lane_id() < 3:
        return
    if kind == 2:
        y[0] = shuffle_xor(x[0], 1)
    barrier()
    y[global_idx.x] = x[global_idx.x]


@register.op("threads::diverging")
def diverging_of(x: Tensor, kind: Int) raises -> Tensor:
    var y = empty_like(x)
    launch diverging(x, y, kind, grid=1)
    return y


@kernel(level="threads", threads=32)
@specialize(T=[float8_e4m3fn, float16, bfloat16, bool, int8, uint64, float64])
def copied[T: DType](x: Tensor[T, 2], mut y: Tensor[T, 2]):
    var part = shared[T](2, 32)
    part[0, thread_idx.x] = x[block_idx.y, global_idx.x]
    barrier()
    part[1, 31 - thread_idx.x] = part[0, thread_idx.x]
    barrier()
    y[block_idx.y, global_idx.x] = part[1, 31 - thread_idx.x]


@register.op("threads::copied")
def copied_of(x: Tensor) raises -> Tensor:
    var y = empty_like(x)
    launch copied[T=x.dtype](x, y, grid=(ceildiv(x.shape[1], 32), x.shape[0]))
    return y


@kernel(level="threads", threads=32)
@specialize(T=[float32, bfloat16, int8, float64])
def copied_ahead[T: DType](x: Tensor[T, 1], mut y: Tensor[T, 1], shift: Int):
    """Copies of 8 bytes, aligned or not, some of them beyond the tensor."""
    comptime count = 64 // T.bits
    var part = shared[T](32 * count)
    async_copy[count](part[thread_idx.x * count], x[global_idx.x * count + shift])
    async_copy_wait_all()
    barrier()
    comptime for j in range(count):
        y[block_idx.x * 32 * count + j * 32 + thread_idx.x] = part[j * 32 + thread_idx.x]


@register.op("threads::copied_ahead")
def copied_ahead_of(x: Tensor, shift: Int) raises -> Tensor:
    var y = empty_like(x)
    launch copied_ahead[T=x.dtype](x, y, shift, grid=x.shape[0])
    return y


@kernel(level="threads", threads=32, cluster=C)
@specialize(C=[1, 2, 8])
def clusters[C: Int](mut y: Tensor[int64, 2]):
    """Each block writes to the memory of the next one in its cluster, and all blocks have a place in the grid."""
    var own = shared[int64](2)
    var rank = block_rank_in_cluster()
    own[0] = -1
    cluster_sync()
    if thread_idx.x == 0:
        map_shared_rank(own, rank + 1)[0] = (100 * block_idx.y + block_idx.x).cast[int64]()
    cluster_sync()
    if thread_idx.x == 0:
        y[0, block_idx.y * grid_dim.x + block_idx.x] = own[0]
        y[1, block_idx.y * grid_dim.x + block_idx.x] = rank.cast[int64]()
    cluster_sync()


@register.op("threads::clusters")
def clusters_of(mut y: Tensor, size: Int) raises:
    if size == 1:
        launch clusters[C=1](y, grid=(3, 2))
    elif size == 2:
        launch clusters[C=2](y, grid=(3, 2))
    else:
        launch clusters[C=8](y, grid=(3, 2))
'''


@pytest.fixture(scope="module")
def ops():
    return load_source("thread_level", SOURCE)


def test_ids(ops):
    y = torch.full((4, 6, 8), -1)
    ops.ids(y)
    z, row, column = torch.meshgrid(torch.arange(4), torch.arange(6), torch.arange(8), indexing="ij")
    thread = (z % 2 * 3 + row % 3) * 4 + column % 4
    assert torch.equal(y, thread + 100 * (column // 4) + 1000 * (row // 3))


@pytest.mark.parametrize("n", [1, 3, 48, 1024])
def test_any_number_of_threads_waits(ops, n):
    x = torch.randn(2 * 3 * n)[::2]
    assert torch.equal(ops.reverse(x, n), x.view(3, n).flip(1).reshape(-1))


@pytest.mark.parametrize("dtype", "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 bool".split())
@pytest.mark.parametrize("by", [0, 1, 5, 16, 31, 32, 40])
def test_shuffles(ops, dtype, by):
    dtype = getattr(torch, dtype)
    x = (torch.randn(128) * 50).to(dtype)
    lane, warps = torch.arange(32), x.view(-1, 32)
    sources = [
        torch.full((32,), by % 32),
        torch.where(lane >= by, lane - by, lane),
        torch.where(lane + by < 32, lane + by, lane),
        lane ^ (by % 32),
    ]
    expected = torch.stack([warps[:, source].reshape(-1) for source in sources])
    assert torch.equal(ops.shuffles(x, by), expected)


@pytest.mark.parametrize("low", [-9, 0, 1])
def test_votes(ops, low):
    x = torch.randint(low, 9, (128,), dtype=torch.int32)
    c, wide = (x > 0).view(-1, 32), x.long().view(-1, 32)
    rows = [
        (c.long() << torch.arange(32)).sum(1, keepdim=True).expand(-1, 32),
        c.any(1, keepdim=True).expand(-1, 32).long(),
        c.all(1, keepdim=True).expand(-1, 32).long(),
        wide.cumsum(1),
        wide.min(1, keepdim=True).values.expand(-1, 32),
    ]
    assert torch.equal(ops.votes(x), torch.stack([row.reshape(-1) for row in rows]))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32, torch.float64])
def test_updates(ops, dtype):
    x = torch.randint(1, 100, (256,)).to(dtype)
    sums, olds = torch.tensor([0, -5, 500, 3, 0]).to(dtype), torch.zeros(2, dtype=dtype)
    ops.updates(x, sums, olds)
    assert sums[:4].tolist() == [x.sum(), x.max(), x.min(), 7]
    assert sums[4] in x
    assert olds.tolist() == [7, 1]


def test_ways_of_threads(ops):
    x = torch.arange(1, 301)
    steps = []
    for v in x.tolist():
        steps.append(0)
        while v != 1:
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            steps[-1] += 1
    assert ops.collatz(x).tolist() == steps


@pytest.mark.parametrize("kind, what", [(0, "block"), (1, "block"), (2, "warp")])
def test_threads_that_do_not_come(ops, kind, what):
    with pytest.raises(Exception, match=rf"thread_level.k:\d+: in `diverging`: some threads of the {what} wait here"):
        ops.diverging(torch.ones(64), kind)
    assert torch.equal(ops.diverging(torch.ones(64), 3), torch.ones(64))


@pytest.mark.parametrize("dtype", "float8_e4m3fn float16 bfloat16 bool int8 uint64 float64".split())
def test_elements_of_each_type(ops, dtype):
    x = torch.randint(0, 2, (3, 2 * 70)).to(getattr(torch, dtype))[:, ::2]
    found = ops.copied(x)
    assert torch.equal(found.view(torch.uint8), x.contiguous().view(torch.uint8))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.float64])
@pytest.mark.parametrize("shift", [-3, 0, 1, 2])
@pytest.mark.parametrize("stride", [1, 2])
def test_copies_to_shared_memory(ops, dtype, shift, stride):
    x = (torch.randn(300 * stride) * 50).to(dtype)[::stride]
    places = torch.arange(300) + shift
    inside = (places >= 0) & (places < 300)
    expected = torch.where(inside, x[places.clamp(0, 299)], torch.zeros((), dtype=dtype))
    assert torch.equal(ops.copied_ahead(x, shift), expected)


@pytest.mark.parametrize("size", [1, 2, 8])
def test_clusters(ops, size):
    y = torch.full((2, 6 * size), -7)
    ops.clusters(y, size)
    block = torch.arange(6 * size)
    row, x = block // (3 * size), block % (3 * size)
    before = x // size * size + (x - 1) % size
    assert torch.equal(y, torch.stack([100 * row + before, x % size]))


def checked(tmp_path, text):
    source = tmp_path / "wrong.k"
    source.write_text(text)
    done = subprocess.run(
        [COMMAND, "build", source, "-o", tmp_path / "wrong.kpkg", "--target", "native"], capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


HEAD = '@kernel(level="threads", threads={threads})\ndef k(x: Tensor[float32, 1], mut y: Tensor[float32, 1], n: Int):\n'


@pytest.mark.parametrize(
    "threads, body, message",
    [
        ("0", "y[0] = 1.0", r"`threads` is 0, expected one to three positive Ints whose product is at most 1024"),
        ("-5", "y[0] = 1.0", r"`threads` is -5, expected"),
        ("(64, 32)", "y[0] = 1.0", r"`threads` is \(64, 32\), expected"),
        ("1 << 70", "y[0] = 1.0", r"error"),
        ("64", "var s = shared[float32](n)", r"value of `n` is not known while compiling"),
        ("64", "var s = shared[float32](-4)", r"extent -4 is not positive"),
        ("64", "var s = shared[float32](1 << 40)", r"tile has more than"),
        ("64", "y.store(1.0)", r"error"),
        ("64", "y[0] = x", r"the value is Tensor.*expected a number of float32"),
        ("64", "x[0] = 1.0", r"cannot store to a tensor that is not `mut`"),
        ("64", "y[0] = iota[4]()", r"`iota` is for kernels of tiles.*K0528"),
        ("64", "y.tile[64](0).store(x.tile[64](0).load())", r"`tile` is for kernels of tiles.*K0528"),
        ("48", "y[0] = shuffle_down(x[0], 1)", r"`shuffle_down` needs whole warps of 32 threads.*K0529"),
        ("64", "y[0] = shuffle_down(x, 1)", r"the value is Tensor"),
        ("64", "var r = mma((x[0], x[1]), (x[0], x[1]), (x[0], x[1], x[2], x[3]))", r"`a` is .*expected a tuple of 4"),
        ("64", "var s = shared[float32](64)\n    async_copy[3](s[0], x[0])", r"the count is 3 .*expected 4, 8 or 16"),
        ("64", "async_copy[4](y[0], x[0])", r"expected from a tensor to shared memory"),
        ("64", "async_copy_wait_group(n)", r"not known while compiling"),
        ("64", "var s = map_shared_rank(x, 0)", r"all of a memory that `shared` has made"),
        ("64", "y[0] = thread_idx.w", r"`thread_idx` has no attribute `w`|no attribute `w`"),
        ("64", "for m, k in output_tiles[4](y):\n        pass", r"`output_tiles` is for kernels of tiles.*K0528"),
    ],
)
def test_wrong_kernels(tmp_path, threads, body, message):
    code, text = checked(tmp_path, HEAD.format(threads=threads) + f"    {body}\n")
    assert code == 1, text
    assert re.search(message, text), text
    assert "[K" in text


@pytest.mark.parametrize(
    "name, advice",
    [
        ("barrier()", "needs no barrier"),
        ("y[0] = x[thread_idx.x]", "iota"),
        ("var s = shared[float32](64)", "scratch"),
        ("y[0] = shuffle_xor(x[0], 1)", "t.sum"),
    ],
)
def test_threads_in_kernels_of_tiles(tmp_path, name, advice):
    code, text = checked(tmp_path, f"@kernel\ndef k(x: Tensor[float32, 1], mut y: Tensor[float32, 1]):\n    {name}\n")
    assert code == 1
    assert "K0527" in text
    assert advice in text
