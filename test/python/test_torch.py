"""Tests the ways in which PyTorch calls an op: dispatcher, compile, export, opcheck, threads, and the cost of a call.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import pickle
import subprocess
import threading
from pathlib import Path

import kpkg
import pytest
import torch
from conftest import build_package
from kpkg import _torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing import assert_close

X = torch.randn(6, 40)
W = torch.randn(40)

CALLS = [
    ("vector_add", (X, X)),
    ("softmax", (X, -1)),
    ("softmax", (X, 0)),
    ("log_softmax", (X[:, ::2], 1)),
    ("layer_norm", (X, [40], W, None, 1e-5)),
    ("native_layer_norm", (X, [40], W, W, 1e-5)),
    ("rms_norm", (X.reshape(2, 3, 40), [3, 40])),
    ("gemm", (X, X, 2.0, 0.5, False, True, torch.randn(6))),
    ("gemm", (X, X, 1.0, 1.0, False, True, None, torch.randn(6), "gelu")),
    ("gemm_batched", (X.reshape(2, 3, 40), torch.randn(40, 5))),
    ("linear", (X.reshape(2, 3, 40), torch.randn(5, 40), torch.randn(5))),
]


def test_dtypes_of_later_releases_are_weak_symbols():
    """A PyTorch without the newest dtypes must still load the library."""
    library = Path(kpkg.__file__).parent / "libkpkg_torch.so"
    symbols = subprocess.run(["nm", "-D", "--undefined-only", library], capture_output=True, text=True, check=True)
    kinds = {name: kind for kind, name in (line.split()[-2:] for line in symbols.stdout.splitlines())}
    dtypes = {name: kind for name, kind in kinds.items() if name.startswith("aoti_torch_dtype_")}
    assert "aoti_torch_dtype_float8_e8m0fnu" in dtypes
    assert set(dtypes.values()) == {"w"}, dtypes


@pytest.mark.parametrize("name, args", CALLS)
def test_opcheck(name, args, ops):
    torch.library.opcheck(getattr(torch.ops.kpkg, name).default, args)


@pytest.mark.parametrize("name, args", CALLS)
def test_opcheck_out(name, args, ops):
    op = getattr(torch.ops.kpkg, name)
    results = op(*args)
    if isinstance(results, torch.Tensor):
        outs = {"out": torch.empty_like(results)}
    else:
        outs = {f"out{i}": torch.empty_like(r) for i, r in enumerate(results)}
    torch.library.opcheck(op.out, args, outs)


def test_compile_without_graph_break(ops):
    softmax, gemm = ops["kpkg::softmax"], ops["kpkg::gemm"]

    def model(x, w):
        return softmax(gemm(x * 2, w, alpha=0.5), -1) + torch.ops.kpkg.log_softmax(x @ w)

    compiled = torch.compile(model, fullgraph=True)
    for rows in (3, 6):
        x, w = torch.randn(rows, 8), torch.randn(8, 5)
        assert_close(compiled(x, w), model(x, w))


def test_compile_of_the_out_form(ops):
    def model(x):
        out = torch.empty_like(x)
        torch.ops.kpkg.softmax.out(x, out=out)
        return out * 2

    assert_close(torch.compile(model, fullgraph=True)(X), model(X))


@pytest.mark.parametrize(
    "dynamic, graphs", [(True, 1), (None, 2)]
)  # by default PyTorch compiles for the first shape only, and for all shapes the second time
def test_dynamic_shapes_compile_once(dynamic, graphs, ops):
    torch._dynamo.reset()
    count = 0

    def counting(graph, inputs):
        nonlocal count
        count += 1
        return graph.forward

    compiled = torch.compile(
        lambda x, w: torch.ops.kpkg.layer_norm(torch.ops.kpkg.softmax(x), [x.shape[1]], w),
        fullgraph=True,
        dynamic=dynamic,
        backend=counting,
    )
    for rows, columns in [(3, 8), (5, 9), (17, 33), (2, 100)]:
        x, w = torch.randn(rows, columns), torch.randn(columns)
        assert_close(compiled(x, w), torch.nn.functional.layer_norm(x.softmax(-1), [columns], w))
    assert count == graphs


def test_export_with_a_dynamic_dimension(ops):
    class Model(torch.nn.Module):
        def forward(self, x, w):
            return torch.ops.kpkg.gemm(torch.ops.kpkg.softmax(x), w)

    rows = torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(
        Model(), (torch.randn(4, 8), torch.randn(8, 3)), dynamic_shapes={"x": {0: rows}, "w": None}
    )
    x, w = torch.randn(9, 8), torch.randn(8, 3)
    assert_close(program.module()(x, w), x.softmax(-1) @ w)


def test_a_choice_between_kernels_is_not_a_guard(ops):
    """`gemm` has specialised kernels for few rows or columns; a graph traced with many rows must be correct for few."""
    count = 0

    def counting(graph, inputs):
        nonlocal count
        count += 1
        return graph.forward

    compiled = torch.compile(torch.ops.kpkg.gemm, fullgraph=True, dynamic=True, backend=counting)
    for m, n, k in [(17, 9, 8), (3, 8, 5), (9, 2, 6), (2, 3, 4)]:
        a, b = torch.randn(m, k), torch.randn(k, n)
        assert_close(compiled(a, b), a @ b)
    assert count == 1


def test_meta_tensors(ops):
    out = torch.ops.kpkg.gemm_batched(torch.empty(5, 1, 3, 4, device="meta"), torch.empty(2, 4, 6, device="meta"))
    assert out.shape == (5, 2, 3, 6) and out.device.type == "meta"


def test_fake_refuses_what_the_kernel_refuses(ops):
    with pytest.raises(RuntimeError, match="inner dimensions"):
        torch.ops.kpkg.gemm(torch.empty(2, 3, device="meta"), torch.empty(2, 3, device="meta"))


def test_fake_and_meta_tensors_of_several_devices_are_refused(ops):
    a, b = torch.empty(2, 3), torch.empty(3, 2)
    for mixed in ((a, b.to("meta")), (a.to("meta"), b)):
        with pytest.raises(RuntimeError, match="argument 'b' is on .*, but 'a' is on"):
            torch.ops.kpkg.gemm(*mixed)
    with FakeTensorMode():
        a, b = torch.empty(2, 3, device="cuda"), torch.empty(3, 2)
        with pytest.raises(RuntimeError, match="argument 'b' is on cpu, but 'a' is on cuda:0"):
            torch.ops.kpkg.gemm(a, b)
        assert torch.ops.kpkg.gemm(a, a.T).device == a.device


def test_libraries_and_ops_are_copied_with_what_holds_them(ops):
    softmax = ops["kpkg::softmax"]

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.library, self.op = softmax._library, softmax

        def forward(self, x):
            return self.op(x, -1)

    layer = Layer()
    copied = copy.deepcopy(layer)
    assert copied.op is softmax and copied.library is softmax._library is copy.copy(softmax._library)
    for pickled in (pickle.loads(pickle.dumps(softmax)), pickle.loads(pickle.dumps(softmax._library))["kpkg::softmax"]):
        assert_close(pickled(X, -1), X.softmax(-1))


def test_dir_lists_each_op_once(ops):
    names = dir(ops["kpkg::softmax"]._library)
    assert "softmax" in names and len(names) == len(set(names))


def test_inference_mode_and_version_counter(ops):
    with torch.inference_mode():
        assert_close(torch.ops.kpkg.softmax(X), X.softmax(-1))
    out = torch.empty_like(X)
    before = out._version
    torch.ops.kpkg.softmax.out(X, out=out)
    assert out._version > before


def test_views_with_negative_bit_and_conjugate(ops):
    x = torch.randn(4, 5, dtype=torch.complex64).conj().imag
    assert x.is_neg()
    assert_close(torch.ops.kpkg.softmax(x), x.softmax(-1))


def test_many_threads(ops):
    shapes = [(2, 3 + i) for i in range(20)]
    failures = []

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        for i in range(200):
            x = torch.randn(shapes[(seed + i) % len(shapes)], generator=generator)
            if not torch.allclose(torch.ops.kpkg.softmax(x), x.softmax(-1), atol=1e-6):
                failures.append(x.shape)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_many_calls_leave_memory_flat(ops):
    """Uses 8 threads, plain and recorded calls, results into existing memory, and mixed shapes."""
    resident = Path("/proc/self/statm")

    def work(seed):
        for i in range(150):
            x = torch.randn(64 + (seed + i) % 7, 256).requires_grad_()
            torch.ops.kpkg.layer_norm(torch.ops.kpkg.softmax(x), [256]).sum().backward()
            with torch.no_grad():
                torch.ops.kpkg.gelu.out(x, out=torch.empty_like(x))

    def grown():
        before = int(resident.read_text().split()[1])
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return (int(resident.read_text().split()[1]) - before) * 4096

    grown()
    # 1200 calls produce 300 MB of results in each round, so that a leak would show.
    assert min(grown() for _ in range(3)) < 8 << 20


def test_loading_again_takes_the_names_over(packages, ops):
    before = ops["kpkg::softmax"].stats()["calls"]
    again = kpkg.load(packages["softmax"])
    torch.ops.kpkg.softmax(X)
    assert again.softmax.stats()["calls"] == 1
    assert_close(ops["kpkg::softmax"](X), X.softmax(-1))  # an op keeps running its own package
    assert ops["kpkg::softmax"].stats()["calls"] == before + 1 and again.softmax.stats()["calls"] == 1
    compiled = torch.compile(lambda x: ops["kpkg::softmax"](x), fullgraph=True, backend="aot_eager")
    assert_close(compiled(X), X.softmax(-1))
    info = kpkg.kernel_info()["kpkg::softmax"]
    assert info["torch"] and info["calls"] >= 1 and info["policy"] == "strict"


def test_schemas(ops):
    softmax = "softmax{}(Tensor input, SymInt dim=-1, ScalarType? dtype=None, bool batch_invariant=False{}) -> {}"
    assert _torch.schema_of(ops["kpkg::softmax"]) == softmax.format("", "", "Tensor")
    assert _torch.schema_of(ops["kpkg::softmax"], out=True) == softmax.format(".out", ", *, Tensor(a!) out", "()")
    assert _torch.schema_of(ops["kpkg::native_layer_norm"], out=True).endswith(
        "*, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> ()"
    )


def test_compile_of_tensors_behind_other_arguments(ops):
    """Inductor confuses such arguments if the out= overload has the tag for it."""
    compiled = torch.compile(lambda x, w: torch.ops.kpkg.layer_norm(x * 2, [40], w, w) + 1, fullgraph=True)
    assert_close(compiled(X, W), torch.nn.functional.layer_norm(X * 2, [40], W, W) + 1)


FIRST = '''
@kernel
@specialize(T=[float32])
def add_one[T: DType](x: Tensor[T, 1], mut y: Tensor[T, 1]):
    y.tile[64](block_idx.x).store(x.tile[64](block_idx.x).load() + 1.0)

@register.op("first_{NAME}::raised_{NAME}")
def raised(x: Tensor) raises -> Tensor:
    """One more."""
    var y = empty_like(x)
    launch add_one[T=x.dtype](x, y, grid=ceildiv(x.numel(), 64))
    return y
'''
FIRST_CALLS = {
    "attribute": lambda x: kpkg.ops.raised_attribute(x),
    "item": lambda x: kpkg.ops["first_item::raised_item"](x),
    "held": lambda x, op=kpkg.ops["first_held::raised_held"]: op(x),
}


@pytest.fixture(params=FIRST_CALLS)
def first_call(request, monkeypatch, tmp_path):
    """Returns a call of an op that nothing has used."""
    source = tmp_path / "first.k"
    source.write_text(FIRST.replace("{NAME}", request.param))
    monkeypatch.setenv("KPKG_PATH", str(build_package(source, tmp_path / "first.kpkg", "--target", "native", "--fast")))
    kpkg.ops.reload()
    yield FIRST_CALLS[request.param]
    monkeypatch.undo()
    kpkg.ops.reload()


def test_the_first_use_of_an_op_can_be_in_compiled_code(first_call):
    graphs = []

    def counting(module, inputs):
        graphs.append(module)
        return module.forward

    compiled = torch.compile(first_call, fullgraph=True, backend=counting)
    for _ in range(3):
        assert_close(compiled(X[0]), X[0] + 1)
    assert 1 <= len(graphs) <= 2, "registered ops are known from the second call on"
