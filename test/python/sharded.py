"""Runs ops on DTensors as one of several gloo processes, and compares results with those on whole tensors.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import sys

import kpkg
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
from torch.testing import assert_close


def main(rank: int, count: int, port: str, device: str, packages: list[str]) -> None:
    dist.init_process_group(
        "nccl" if device == "cuda" else "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=count
    )
    if device == "cuda":
        torch.cuda.set_device(rank)
    kpkg.set_fallback_policy("silent")
    for package in packages:
        kpkg.load(package)
    names = kpkg.register_sharding()
    assert {"kpkg::softmax", "kpkg::gemm", "kpkg::layer_norm"} <= set(names), names
    mesh = init_device_mesh(device, (count,))
    torch.manual_seed(0)
    x, w, b = (torch.randn(shape, device=device) for shape in ((8, 12), (12, 16), (16,)))
    weight = torch.randn(12, device=device)
    ops = torch.ops.kpkg

    def spread(tensor, placement):
        return distribute_tensor(tensor, mesh, [placement])

    def same(sharded, whole, placement=None):
        if placement is not None:
            assert sharded.placements == (placement,), sharded.placements
        assert_close(sharded.full_tensor(), whole, atol=1e-4, rtol=1e-4)

    same(ops.softmax(spread(x, Shard(0)), -1), x.softmax(-1), Shard(0))
    same(ops.softmax(spread(x, Shard(1)), -1), x.softmax(-1))  # gathered first
    same(ops.log_softmax(spread(x, Shard(1)), 0), x.log_softmax(0), Shard(1))
    same(
        ops.layer_norm(spread(x, Shard(0)), [12], spread(weight, Replicate())), F.layer_norm(x, [12], weight), Shard(0)
    )
    same(
        ops.rms_norm(spread(x, Shard(0)), [12], spread(weight, Replicate())),
        F.rms_norm(x, [12], weight, 1e-6),
        Shard(0),
    )
    same(ops.gelu(spread(x, Shard(1))), F.gelu(x), Shard(1))
    same(ops.gemm(spread(x, Shard(0)), spread(w, Replicate())), x @ w, Shard(0))
    same(ops.gemm(spread(x, Replicate()), spread(w, Shard(1))), x @ w, Shard(1))
    same(ops.gemm(spread(x, Shard(1)), spread(w, Shard(0))), x @ w)  # partial sums
    same(
        ops.gemm(
            spread(x, Replicate()), spread(w.T.contiguous(), Shard(0)), 1.0, 1.0, False, True, spread(b, Shard(0))
        ),
        x @ w + b,
        Shard(1),
    )
    if hasattr(ops, "linear"):
        same(
            ops.linear(spread(x, Shard(0)), spread(w.T.contiguous(), Replicate()), spread(b, Replicate())),
            x @ w + b,
            Shard(0),
        )

    # Non-tensor arguments also decide the placements: PyTorch's cache must not reuse a rule's answer for other
    # arguments.
    square = spread(x[:, :8].contiguous(), Shard(0))
    for transposed in (False, True):
        same(
            ops.gemm(square, square, 1.0, 1.0, transposed, not transposed),
            x[:, :8].T @ x[:, :8] if transposed else x[:, :8] @ x[:, :8].T,
        )

    leaf, scale = spread(x, Shard(0)).requires_grad_(), spread(weight, Replicate()).requires_grad_()
    plain, plain_scale = x.clone().requires_grad_(), weight.clone().requires_grad_()
    ops.softmax(ops.layer_norm(leaf, [12], scale), -1).square().sum().full_tensor().backward()
    F.layer_norm(plain, [12], plain_scale).softmax(-1).square().sum().backward()
    same(leaf.grad, plain.grad)
    same(scale.grad, plain_scale.grad)
    shift = spread(weight, Replicate()).requires_grad_()
    ops.layer_norm(leaf, [12], scale, shift).square().sum().full_tensor().backward()  # requests one more gradient
    (expected,) = torch.autograd.grad(
        F.layer_norm(x, [12], weight, w_shift := weight.clone().requires_grad_()).square().sum(), w_shift
    )
    same(shift.grad, expected)
    dist.barrier()
    dist.destroy_process_group()
    print("sharded", rank, "of", count, "right")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5:])
