"""Tests packages as modules of tvm-ffi on the CPU: values, memory, errors, and a C++ program without Python.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import kpkg
import numpy as np
import pytest
import torch
from conftest import BUILD, ROOT, compile_cpp, load_source

tvm_ffi = pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed")
loader = pytest.importorskip("kpkg.tvm_ffi", reason="this build has no apache-tvm-ffi", exc_type=ImportError)

PAGE = (ROOT / "docs" / "tvm-ffi.md").read_text()


@pytest.fixture(scope="module")
def ops(packages):
    """Returns a function that loads the package of a family."""
    return lambda family: tvm_ffi.load_module(packages[family])


def test_softmax_of_torch(ops):
    x = torch.randn(3, 5, 7)
    y = ops("softmax").softmax(x, 1)
    assert type(y) is torch.Tensor
    torch.testing.assert_close(y, x.softmax(1))


def test_softmax_of_numpy(ops):
    x = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
    y = np.from_dlpack(ops("softmax")["kpkg::softmax"](x))
    np.testing.assert_allclose(y, torch.from_numpy(x).softmax(-1).numpy(), rtol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_dtypes(ops, dtype):
    x = torch.randn(4, 33).to(dtype)
    y = ops("softmax").softmax(x, -1)
    assert y.dtype is dtype
    torch.testing.assert_close(y.double(), x.double().softmax(-1), rtol=1e-2, atol=1e-2)


def test_strides_of_arguments_and_results(ops):
    x = torch.randn(8, 6).T[::2]
    y = ops("softmax").softmax(x, -1)
    torch.testing.assert_close(y, x.softmax(-1))
    image = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    y = ops("elementwise").relu(image)
    torch.testing.assert_close(y, image.relu())
    assert y.stride() == image.stride()


@pytest.mark.parametrize("shape", [(0, 4), (4, 1), (1,)])
def test_small_shapes(ops, shape):
    x = torch.randn(shape)
    torch.testing.assert_close(ops("softmax").softmax(x, -1), x.softmax(-1))


def test_products_and_several_results(ops):
    a, b = torch.randn(5, 7), torch.randn(7, 3)
    torch.testing.assert_close(ops("gemm").gemm(a, b), a @ b)
    x = torch.randn(6, 9)
    values, indices = ops("sorting").topk(x, 3)
    torch.testing.assert_close(values, x.topk(3)[0])
    torch.testing.assert_close(indices, x.topk(3)[1])


def test_lists_and_absent_tensors(ops):
    x, weight = torch.randn(1, 2, 9, 8), torch.randn(4, 2, 3, 3)
    expected = torch.nn.functional.conv2d(x, weight, None, (2, 1), (1, 0))
    conv = ops("conv")
    for lists in [((2, 1), (1, 0)), ([2, 1], [1, 0]), (tvm_ffi.Shape((2, 1)), tvm_ffi.Shape((1, 0)))]:
        torch.testing.assert_close(conv.conv2d(x, weight, None, *lists), expected, rtol=1e-4, atol=1e-4)


LISTS = """
@kernel
@specialize(T=[float32])
def double_block[T: DType](mut x: Tensor[T, 1]):
    var i = block_idx.x
    x.tile[64](i).store(x.tile[64](i).load() * 2.0)

@register.op("tvmffi::double_all_")
def double_all_(mut xs: List[Tensor]) raises:
    \"\"\"Doubles all tensors.\"\"\"
    for i in range(len(xs)):
        launch double_block[T=xs[i].dtype](xs[i], grid=ceildiv(xs[i].numel(), 64))
"""


def test_lists_of_tensors_written_in_place():
    path = load_source("tvm_ffi_lists", LISTS).path
    module = tvm_ffi.load_module(path)
    xs = [torch.ones(70), torch.full((3,), 2.0)]
    assert module["double_all_"](xs) is None
    assert xs[0].eq(2).all() and xs[1].eq(4).all()
    with pytest.raises(TypeError, match=r"argument 'xs' is a list with 3, expected Tensor\[\]"):
        module["double_all_"]([xs[0], 3])


def test_outputs_of_the_caller(ops):
    x, y = torch.randn(5, 6), torch.full((5, 6), torch.nan)
    assert ops("softmax")["softmax.out"](y, x, 0) is None
    torch.testing.assert_close(y, x.softmax(0))
    with pytest.raises(TypeError, match="result 0 goes to a tensor before the arguments, not to 3"):
        ops("softmax")["softmax.out"](3, x)
    with pytest.raises(kpkg.KernelError, match="kpkg::softmax"):
        ops("softmax")["softmax.out"](torch.empty(4), x)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((torch.ones(2), "a"), TypeError, "kpkg::softmax: argument 'dim' is 'a', expected int: softmax(Tensor input"),
        ((torch.ones(2), 1.5), TypeError, "argument 'dim' is 1.5, expected int"),
        ((torch.ones(2), torch.ones(1)), TypeError, "argument 'dim' is a tensor, expected int"),
        ((3,), TypeError, "argument 'input' is 3, expected Tensor"),
        ((None,), TypeError, "argument 'input' is None, expected Tensor"),
        (
            (torch.ones(2), 0, None, False, 1),
            TypeError,
            "kpkg::softmax takes at most 4 arguments, 5 given: softmax(Tensor input",
        ),
        ((), kpkg.KernelError, "kpkg::softmax: argument 'input' is missing"),
        ((torch.ones(2), 7), kpkg.KernelError, "dimension 7 is out of range, expected -1 to 0"),
        ((torch.ones(2, dtype=torch.int32),), kpkg.KernelError, "dtype int32 is not supported by kpkg::softmax"),
        ((torch.ones(2, dtype=torch.complex64),), kpkg.KernelError, "argument 'input' has a dtype that kpkg does not"),
    ],
)
def test_bad_arguments(ops, arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        ops("softmax").softmax(*arguments)


def test_none_is_the_default_where_the_schema_refuses_none(ops):
    x = torch.randn(3, 4)
    torch.testing.assert_close(ops("softmax").softmax(x, None), x.softmax(-1))


def test_bad_lists_and_dtypes(ops):
    conv, x = ops("conv"), torch.ones(1, 2, 9, 8)
    with pytest.raises(TypeError, match=r"argument 'stride' is a list with 'b', expected int\[\]"):
        conv.conv2d(x, torch.ones(4, 2, 3, 3), None, [1, "b"])
    with pytest.raises(TypeError, match=r"argument 'stride' is 2, expected int\[\]"):
        conv.conv2d(x, torch.ones(4, 2, 3, 3), None, 2)


def test_files_that_are_no_packages(tmp_path):
    damaged = tmp_path / "damaged.kpkg"
    damaged.write_text("hello")
    with pytest.raises(kpkg.PackageError, match="has 5 bytes"):
        tvm_ffi.load_module(damaged)
    with pytest.raises(OSError, match=r"cannot read '.*absent\.kpkg'"):
        tvm_ffi.load_module(tmp_path / "absent.kpkg")


def test_names(ops):
    module = ops("softmax")
    assert module.kind == "kpkg" and module.is_runnable()
    assert module.implements_function("softmax") and not module.implements_function("gemm")
    assert module.get_function_doc("softmax").startswith(
        "softmax(Tensor input, int dim=-1, ScalarType? dtype=None, bool batch_invariant=False) -> Tensor\n\nComputes"
    )
    assert "kpkg::softmax" in [op["name"] for op in json.loads(module.inspect_source())["ops"]]
    for absent in ("gemm", "softmax.into", "gemm.out"):
        with pytest.raises(AttributeError, match=f"no function '{absent}'"):
            module[absent]


def test_functions_outlive_their_module(packages):
    softmax = tvm_ffi.load_module(packages["softmax"], keep_module_alive=False).softmax
    x = torch.randn(3, 4)
    torch.testing.assert_close(softmax(x), x.softmax(-1))


def test_many_threads_call_one_function(ops):
    softmax, xs = ops("softmax").softmax, [torch.randn(i + 1, 8) for i in range(64)]
    with ThreadPoolExecutor(4) as pool:
        for x, y in zip(xs, pool.map(softmax, xs)):
            torch.testing.assert_close(y, x.softmax(-1))


def test_without_torch_and_numpy(packages):
    program = (
        "import sys\n"
        "sys.modules['torch'] = sys.modules['numpy'] = None\n"
        "import array, tvm_ffi, kpkg.tvm_ffi\n"
        f"print(tvm_ffi.load_module({str(packages['softmax'])!r})['softmax'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={"PYTHONPATH": str(BUILD / "python")}
    )
    assert done.returncode == 0, done.stderr


def test_page(packages, monkeypatch):
    monkeypatch.chdir(packages["softmax"].parent)
    scope: dict[str, object] = {}
    for example in re.findall(r"<!-- run -->\n```python\n(.*?)```", PAGE, re.S):
        exec(example, scope)
    torch.testing.assert_close(scope["out"], scope["x"].softmax(0))


def test_program_of_the_page(packages, tmp_path):
    (example,) = re.findall(r"<!-- compile -->\n```cpp\n(.*?)```", PAGE, re.S)
    source, program = tmp_path / "softmax.cpp", tmp_path / "softmax"
    source.write_text(example)
    folder, library = tvm_ffi.libinfo.find_libtvm_ffi(), loader.LIBRARY
    include = [
        f"-isystem{tvm_ffi.libinfo.find_include_path()}",
        f"-isystem{tvm_ffi.libinfo.find_dlpack_include_path()}",
    ]
    paths = [f"-Wl,-rpath,{BUILD / 'lib'}", f"-Wl,-rpath,{library.parent}", f"-Wl,-rpath,{folder.rpartition('/')[0]}"]
    compile_cpp(source, program, *include, "-Wl,--no-as-needed", str(library), folder, *paths)
    done = subprocess.run([program, packages["softmax"]], capture_output=True, text=True)
    assert done.stdout == "0.5\nKernelError\n", done.stderr
    assert "libpython" not in subprocess.run(["ldd", program], capture_output=True, text=True).stdout
