"""Calls ops of packages from JAX: functions for jit, grad, vmap and shard_map, on CPUs, NVIDIA GPUs and TPUs.

    import kpkg.jax
    ops = kpkg.jax.load("softmax.kpkg")
    y = jax.jit(ops.softmax)(x)

XLA passes its buffers to the kernels and runs them on its streams, so that nothing is copied. Docs: docs/jax.md.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from kpkg.jax._function import Function
from kpkg.jax._library import Library, Ops, load
from kpkg.jax._platforms import tpu_interpreter

#: The ops of all packages that ``kpkg.ops`` finds: ``kpkg.jax.ops.softmax(x)``.
ops = Ops()

__all__ = ["Function", "Library", "load", "ops", "tpu_interpreter"]
