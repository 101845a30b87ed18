"""Tests use without PyTorch: NumPy arrays, DLPack producers, bfloat16 through ml_dtypes, and a light import.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from conftest import BUILD

SCRIPT = """
import sys
before = set(sys.modules)
import kpkg
packages = {name.partition(".")[0] for name in set(sys.modules) - before}
packages -= {"_xxsubinterpreters"}  # of the standard library, which does not list it
assert packages - sys.stdlib_module_names == {"kpkg", "nanobind_backend"}, "import kpkg imports more than itself"
import numpy as np
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ImportError("no torch here")
sys.meta_path.insert(0, Blocker())
ops = kpkg.load(sys.argv[1])
x = np.random.default_rng(1).standard_normal((3, 50)).astype(np.float32)
y = ops.softmax(x)
assert np.allclose(y.sum(-1), 1) and y.dtype == np.float32
try:
    ops.register_torch()
    raise SystemExit("registered without PyTorch")
except ImportError:
    pass
"""


def test_works_without_torch_and_imports_little(packages):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(packages["softmax"])],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(BUILD / "python"), "PATH": ""},
    )
    assert done.returncode == 0, done.stderr


class Producer:
    """Provides memory only through DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack_producer(ops):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(ops["kpkg::vector_add"](Producer(x), Producer(x)), x + x)


def test_strides_and_read_only_inputs(ops):
    x = np.arange(24, dtype=np.float64).reshape(4, 6)
    x.flags.writeable = False
    add = ops["kpkg::vector_add"]
    np.testing.assert_array_equal(add(x[::-1, ::2], x[:, ::2]), x[::-1, ::2] + x[:, ::2])
    np.testing.assert_array_equal(add(x.T, x.T), x.T + x.T)


def test_results_own_their_memory(ops):
    x = np.ones((100, 100), np.float32)
    results = [ops["kpkg::vector_add"](x, x) for _ in range(50)]
    assert all((r == 2).all() for r in results)
    assert len({r.ctypes.data for r in results}) == 50
    assert results[0].ctypes.data % 64 == 0


def test_no_memory_is_lost(ops):
    import resource

    x = np.ones(1 << 20, np.float32)
    for _ in range(5):
        ops["kpkg::vector_add"](x, x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100):
        ops["kpkg::vector_add"](x, x)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


def test_bfloat16_through_ml_dtypes(ops):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.array([1.0, 2.5, -3.0], ml_dtypes.bfloat16)
    y = ops["kpkg::vector_add"](x, x)
    assert y.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(y.astype(np.float32), [2.0, 5.0, -6.0])


def test_explain_says_which_instance_and_why(ops):
    text = ops["kpkg::softmax"].explain(np.ones((4, 100), np.float32))
    assert "softmax_rows" in text and "1024" in text


def test_introspection(libraries):
    library = libraries["softmax"]
    assert {"kpkg::softmax", "kpkg::log_softmax"} <= {op.name for op in library} and len(library) == len(list(library))
    schema = "softmax(Tensor input, int dim=-1, ScalarType? dtype=None, bool batch_invariant=False) -> Tensor"
    assert library.softmax.schema == schema
    assert "softmax along" in library.softmax.__doc__
    assert library.manifest["ops"]
    assert "softmax" in dir(library)
    library.verify()
    library.prewarm()
    with pytest.raises(ValueError, match="must be 'cpu', 'cuda' or 'cuda:N'"):
        library.prewarm("gpu")
