"""Runs ops through kpkg.jax on a GPU, beside JAX's own: values, gradients, and times of whole compiled functions.

    KPKG_PATH=packages python3 test/device/jax_ops.py --out jax_ops.json      needs jax[cuda12] or jax[cuda13]

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import kpkg.jax
import numpy as np


def rms_norm(x, weight):
    mean = (x.astype(np.float32) ** 2).mean(-1, keepdims=True)
    return (x.astype(np.float32) / jnp.sqrt(mean + 1e-6)).astype(x.dtype) * weight


def attention(q, k, v):
    split = [jnp.moveaxis(each, 1, 2) for each in (q, k, v)]
    return jnp.moveaxis(jax.nn.dot_product_attention(*split, is_causal=True), 1, 2)


def cases():
    """Yields the name, a call of kpkg, the same in JAX, and shapes."""
    ops = kpkg.jax.ops
    yield "softmax", ops.softmax, jax.nn.softmax, [(8192, 4096)]
    yield "rms_norm", lambda x, w: ops.rms_norm(x, [4096], w), rms_norm, [(8192, 4096), (4096,)]
    yield "silu_and_mul", ops.silu_and_mul, lambda x: jax.nn.silu(x[..., :4096]) * x[..., 4096:], [(8192, 8192)]
    yield "gemm", ops.gemm, lambda a, b: a @ b, [(4096, 4096), (4096, 4096)]
    yield (
        "attention",
        lambda q, k, v: ops.scaled_dot_product_attention(q, k, v, is_causal=True),
        attention,
        [(4, 16, 2048, 128)] * 3,
    )


def microseconds(function, arrays) -> float:
    """Returns the time of a call among many that are queued at once."""
    jax.block_until_ready(function(*arrays))
    rounds = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(20):
            result = function(*arrays)
        jax.block_until_ready(result)
        rounds.append((time.perf_counter() - start) / 20 * 1e6)
    return statistics.median(rounds)


def difference(one, other) -> float:
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    return float(np.abs(one - other).max() / max(np.abs(other).max(), 1e-6))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device = jax.devices()[0]
    assert device.platform == "gpu", f"JAX runs on {device}, which is no GPU"
    record = {"device": device.device_kind, "jax": jax.__version__, "ops": {}}
    for name, call, reference, shapes in cases():
        random = np.random.default_rng(0)
        arrays = [jnp.asarray(random.standard_normal(shape), jnp.bfloat16) for shape in shapes]
        places = tuple(range(len(arrays)))
        entry = record["ops"][name] = {"difference": difference(jax.jit(call)(*arrays), reference(*arrays))}
        gradients = [
            jax.jit(jax.grad(lambda *arrays, f=f: (f(*arrays).astype(np.float32) ** 2).sum(), places))
            for f in (call, reference)
        ]
        pairs = zip(*(gradient(*arrays) for gradient in gradients))
        entry["gradient_difference"] = max(difference(*pair) for pair in pairs)
        entry["kpkg_us"], entry["jax_us"] = (microseconds(jax.jit(f), arrays) for f in (call, reference))
        entry["gradient_kpkg_us"], entry["gradient_jax_us"] = (microseconds(f, arrays) for f in gradients)
        entry["passed"] = entry["difference"] < 0.02 and entry["gradient_difference"] < 0.05
        print(name, entry)
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    return 0 if all(entry["passed"] for entry in record["ops"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
