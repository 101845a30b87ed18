"""Formats values and names for messages: never data of tensors, and the nearest names for an unknown one.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Collection, Container, Iterable, Sequence
from typing import Any

from kpkg import _arrays

#: Messages list all names if there are at most so many.
_LISTED = 12

_BY_FILE = (
    "write it in the kernel language (docs/language.md): kpkg.compile_from_source(text) gives its ops, "
    "kpkg.get_compiler().compile_from_file(path) those of a .k file"
)
#: Decorators of kernels in other libraries, with advice for kpkg.
WRITTEN_IN_K = {
    **{
        name: f"kpkg has no decorator {name}: a kernel is no Python function; {_BY_FILE}"
        for name in ("gpu_kernel", "cpu_kernel", "jit", "kernel")
    },
    "tpu_kernel": f"kpkg has no decorator tpu_kernel and no TPUs: its kernels run on CPUs and NVIDIA GPUs; {_BY_FILE}",
    "sparse_kernel": (
        "kpkg has no decorator sparse_kernel: kpkg.sparse.pack(weight) and kpkg.sparse.linear multiply sparse "
        f"weights; for a kernel of your own, {_BY_FILE}"
    ),
    "expert_kernel": (
        "kpkg has no decorator expert_kernel: kpkg.ops.moe_dispatch moves tokens to the rows of their experts, and "
        f"grouped_gemm multiplies them; for a kernel of your own, {_BY_FILE}"
    ),
    "register": "kpkg has no `register` in Python: `@register.op` stands in .k files, where it needs no import; "
    f"{_BY_FILE}",
}

_ON_A_TPU = "kpkg has no TPUs; on CPUs and GPUs use"
#: Names of ops in other libraries, with the replacement here.
_ELSEWHERE = {
    "gpu_matmul": "use kpkg.ops.matmul",
    "tpu_matmul": f"{_ON_A_TPU} kpkg.ops.matmul",
    "gpu_flash_attention": "use kpkg.ops.scaled_dot_product_attention",
    "tpu_flash_attention": f"{_ON_A_TPU} kpkg.ops.scaled_dot_product_attention",
    "block_sparse": "use kpkg.sparse.pack and kpkg.sparse.linear",
    "tpu_block_sparse": f"{_ON_A_TPU} kpkg.sparse.pack and kpkg.sparse.linear",
}


def shown(value: Any) -> str:
    """Returns `value` for a message: arrays by type, dtype and shape, everything else cut to some 60 characters."""
    if _arrays.is_array(value) and hasattr(value, "shape"):
        dtype = _arrays.dtype_name(value.dtype) if hasattr(value, "dtype") else "unknown"
        return f"a {type(value).__name__} of {dtype} {list(value.shape)}"
    if isinstance(value, (list, tuple)) and any(_arrays.is_array(item) for item in value):
        return f"a {type(value).__name__} of {len(value)}, of which the first is {shown(value[0])}"
    text = reprlib.Repr()
    text.maxstring = text.maxother = 60
    return text.repr(value)


def near(name: str, names: Iterable[str]) -> list[str]:
    """Returns the names that `name` may have meant, the nearest first.

    They have the same local name in another namespace, or nearly the same one.
    """
    local = name.rpartition("::")[2]
    by_local: dict[str, list[str]] = {}
    for each in names:
        by_local.setdefault(each.rpartition("::")[2], []).append(each)
    found = by_local.pop(local, [])
    for close in difflib.get_close_matches(local, by_local, n=3, cutoff=0.6):
        found += by_local[close]
    return [each for each in found if each != name]


def closest(name: str, names: Iterable[str]) -> str:
    """Returns "; did you mean ...?" where names are near, else an empty string."""
    found = [repr(each) for each in near(name, names)[:3]]
    return f"; did you mean {' or '.join(found)}?" if found else ""


def elsewhere(name: str) -> str:
    """Returns "; use ..." for another library's name of an op that kpkg lacks, else an empty string."""
    advice = _ELSEWHERE.get(name.rpartition("::")[2])
    return f"; {advice}" if advice else ""


def among(name: str, names: Collection[str]) -> str:
    """Returns the nearest names, and all of them where they are few."""
    there = ", ".join(names) if len(names) <= _LISTED else f"{len(names)} ops"
    return f"{closest(name, names)}; it has {there or 'none'}"


def missing(module: str, name: str, names: Iterable[str]) -> Exception:
    """Returns the error for a name that a module does not have, with what to use or write in its place."""
    if name in WRITTEN_IN_K:
        return ImportError(WRITTEN_IN_K[name])
    return AttributeError(f"module {module!r} has no attribute {name!r}{elsewhere(name) or closest(name, names)}")


def table(rows: Sequence[Sequence[str]], right: Container[int]) -> list[str]:
    """Returns lines with the cells of `rows` in columns, of which those in `right` are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [
        "  ".join(f"{cell:{'>' if i in right else '<'}{widths[i]}}" for i, cell in enumerate(row)).rstrip()
        for row in rows
    ]
