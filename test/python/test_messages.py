"""Tests messages about wrong calls from Python.

They contain the names that the user wrote and similar existing names, but never the data of a tensor.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings

import kpkg
import numpy as np
import pytest
import torch
from conftest import BUILD, ROOT
from kpkg import KernelConfig
from torch.testing import assert_close

SECRET = 0.123456


def t(*shape, dtype=torch.float32):
    return torch.full(shape, SECRET, dtype=dtype)


def message(error, call, *args, **kwargs):
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    text = str(caught.value)
    assert "0.12" not in text, "the data of a tensor is shown"
    return text


def in_process(*arguments, **environment):
    given = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "KPKG_PATH": "", **environment}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=given)


# ---- Arguments -------------------------------------------------------------------------------------------------------


def test_tensors_are_shown_by_dtype_and_shape(ops):
    softmax, gemm = ops["kpkg::softmax"], ops["kpkg::gemm"]
    assert "'dim' is a Tensor of float32 [4096], expected int" in message(TypeError, softmax, t(2, 3), t(4096))
    assert "'b' is [[0.1" not in message(TypeError, gemm, t(2, 3), [t(3), t(3)])
    assert "'b' is a list of 2, of which the first is a Tensor of float32 [3]" in message(
        TypeError, gemm, t(2, 3), [t(3), t(3)]
    )
    assert "'dim' is a ndarray of float64 [3], expected int" in message(TypeError, softmax, t(2, 3), np.full(3, SECRET))


def test_layer_norm_without_a_shape(ops):
    """The call of many libraries: layer_norm(x, weight, bias, eps) normalises the dimensions of the weight."""
    norm, x, weight, bias = ops["kpkg::layer_norm"], torch.randn(4, 8), torch.randn(8), torch.randn(8)
    assert_close(norm(x, weight, bias, 1e-3), torch.nn.functional.layer_norm(x, [8], weight, bias, 1e-3))
    assert "argument 'eps' is a Tensor of float32 [8], expected float" in message(
        TypeError, norm, t(4, 8), t(8), t(8), t(8)
    )


def test_none_is_no_argument(ops):
    assert "argument 'dim' is None, expected int" in message(TypeError, ops["kpkg::softmax"], t(2, 3), None)


def test_dimension_out_of_range_names_the_argument(ops):
    text = message(kpkg.KernelError, ops["kpkg::softmax"], t(4, 8), 9)
    assert "`input` (float32[4, 8]): dimension 9 is out of range, expected -2 to 1" in text and "fold" not in text
    text = message(kpkg.KernelError, ops["kpkg::gemm"], t(2, 3), t(3, 2), c=t(5))
    assert "`c` (float32[5]): cannot be expanded to [2, 2]" in text and "expand of" not in text


def test_wrong_channels_of_a_convolution(ops):
    for dims in (1, 2, 3):
        weight = t(8, 3, *[3] * dims)
        text = message(kpkg.KernelError, ops[f"kpkg::conv{dims}d"], t(2, 4, *[9] * dims), weight)
        assert f"input has 4 channels, expected 3 for weight {list(weight.shape)} and 1 groups" in text


def test_near_names_of_arguments(ops):
    assert "no argument 'dimm'; did you mean 'dim'?" in message(TypeError, ops["kpkg::softmax"], t(2, 3), dimm=1)


def test_sparse_tensors(ops):
    text = message(kpkg.KernelError, ops["kpkg::gemm"], t(4, 4).to_sparse(), t(4, 4))
    assert "argument 'a' has the layout torch.sparse_coo" in text and ".to_dense()" in text and "Facebook" not in text


@pytest.mark.parametrize("convert", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_sparse_weights_of_torch_are_packed(convert, default_ops):
    dense = torch.randn(32, 32) * (torch.rand(32, 32) < 0.2)
    packed = kpkg.sparse.pack(getattr(dense, convert)(), format="elements")
    assert torch.equal(packed.dense(), dense)


def test_dtypes_of_indices(default_ops):
    crow, col = torch.tensor([0, 1]), torch.tensor([0])
    text = message(kpkg.KernelError, default_ops.block_sparse_linear, t(2, 16), crow, col, t(1, 16, 16))
    assert "got int64 [2] and int64 [1]" in text


def test_complex_arrays(ops):
    text = message(kpkg.KernelError, ops["kpkg::softmax"], np.ones((2, 3), np.complex64))
    assert "argument 'input' is complex64" in text


# ---- Names of ops ----------------------------------------------------------------------------------------------------


def test_unknown_ops(default_ops):
    text = message(kpkg.KernelError, default_ops.sofmax, t(2, 3))
    assert "no package has kpkg::sofmax; did you mean 'kpkg::softmax'" in text
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning that a fallback runs would be false
        with kpkg.fallback_policy("warn"):
            message(kpkg.KernelError, default_ops.nosuch, t(2, 3))
    with pytest.raises(AttributeError, match="has no attribute 'sofmax'; did you mean 'softmax'"):
        kpkg.sofmax
    with pytest.raises(KeyError, match="did you mean 'kpkg::softmax'"):
        default_ops.softmax.op._library["kpkg::sofmax"]


def test_ops_of_other_namespaces(packages, demo_package):
    done = in_process(
        "-c",
        "import torch, kpkg; x = torch.ones(3)\nprint(kpkg.ops.scaled_sum(x, x, 2.0).tolist(), "
        "kpkg.ops.scaled_sum.name)\n"
        "print(kpkg.scaled_sum is kpkg.ops['demo::scaled_sum'], 'scaled_sum' in dir(kpkg.ops), 'softmax' in dir(kpkg))",
        KPKG_PATH=f"{packages['softmax']}:{demo_package}",
    )
    assert done.stdout == "[3.0, 3.0, 3.0] demo::scaled_sum\nTrue True True\n", done.stderr


@pytest.fixture(scope="module")
def demo_package(tmp_path_factory):
    from conftest import build_package

    folder = tmp_path_factory.mktemp("demo")
    text = (ROOT / "README.md").read_text().split("<!-- snippet: kernel -->\n```mojo\n")[1].split("```")[0]
    (folder / "scaled_sum.k").write_text(text)
    return build_package(folder / "scaled_sum.k", folder / "scaled_sum.kpkg", "--target", "native")


def test_dir_shows_everything(default_ops):
    assert set(kpkg.__all__) <= set(dir(kpkg))
    assert {"softmax", "gemm", "conv2d"} <= set(dir(kpkg.ops)) & set(dir(kpkg))
    assert {"get_softmax", "profile_kernel", "ops"} <= set(dir(kpkg.kernels))


# ---- Packages and the command ----------------------------------------------------------------------------------------


def test_missing_packages(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing.kpkg") as caught:
        kpkg.load(tmp_path / "missing.kpkg")
    assert caught.value.errno == 2 and caught.value.filename == str(tmp_path / "missing.kpkg")
    source = tmp_path / "kernels.k"
    source.write_text("# a source, and no package\n")
    with pytest.raises(kpkg.PackageError, match="it is a source; `kpkg build"):
        kpkg.load(source)


def test_scripts_and_pipes(tmp_path):
    done = in_process("-m", "kpkg", "profile", str(tmp_path / "missing.py"))
    assert done.returncode == 3 and done.stderr == f"kpkg: there is no script {str(tmp_path / 'missing.py')!r}\n"
    read, write = os.pipe()
    os.close(read)  # closes the pipe, as `head` does after its last line
    given = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "KPKG_PATH": ""}
    done = subprocess.run(
        [sys.executable, "-m", "kpkg", "doctor", "--json"], stdout=write, stderr=subprocess.PIPE, text=True, env=given
    )
    os.close(write)
    assert done.returncode == 128 + 13 and done.stderr == ""


# ---- Configurations and the environment ------------------------------------------------------------------------------


def test_configurations_are_checked(default_ops):
    softmax = default_ops.softmax.op
    x = torch.randn(4, 8)
    with softmax.configure(KernelConfig(variant="any")):
        for error, config, says in [
            (TypeError, {"warps": 4}, "takes a kpkg.KernelConfig or None, not {'warps': 4}"),
            (ValueError, KernelConfig(warps="x"), "warps is 'x', expected a positive number"),
            (ValueError, KernelConfig(warps=0), "warps is 0"),
            (ValueError, KernelConfig(warps=99), "no kernel of it has 99 warps; its package has none for GPUs"),
            (ValueError, KernelConfig(stages=99), "no kernel of it has the parameter 'stages'"),
            (ValueError, KernelConfig(tile=64), "tile is 64, expected extents of BM, BN, BK"),
            (ValueError, KernelConfig(params={"COL": 1024}), "parameter 'COL'; did you mean 'COLS'?; there are COLS"),
            (ValueError, KernelConfig(block_size=64), "no kernel of it has the parameter 'BM'"),
            (ValueError, KernelConfig(params={"COLS": 3}), "compiled for COLS=3; there are"),
            (ValueError, KernelConfig(target="sm90"), "'sm90' is no target"),
            (ValueError, KernelConfig(variant="unt"), "variant 'unt'; did you mean 'unit'?"),
        ]:
            assert says in message(error, softmax.configure, config)
            assert "the configuration asks for 'any'" in softmax.explain(x), (
                "a refused configuration has changed something"
            )
    with softmax.configure(KernelConfig(variant="any")):  # works as before after refused configurations
        assert_close(softmax(x), x.softmax(-1))
    assert "the configuration asks for" not in softmax.explain(x)


def test_fields_of_configurations_are_checked():
    assert "params is 'X', expected values by the names" in message(ValueError, KernelConfig, params="X")
    assert "use_fp16 and use_bfloat16 are True or False, not 'yes'" in message(ValueError, KernelConfig, use_fp16="yes")
    assert KernelConfig(block_size=0).tile == (0, 0)  # which `configure` refuses


def test_variables_of_the_environment(packages):
    line = "import kpkg, torch; from kpkg import nn; print(nn.Softmax(-1).use_kpkg)"
    path = str(packages["softmax"])
    assert in_process("-c", line, KPKG_PATH=path).stdout == "True\n"
    for name in ("softmax", "kpkg::softmax", "gelu,softmax"):
        assert in_process("-c", line, KPKG_PATH=path, KPKG_DISABLE=name).stdout == "False\n"
    done = in_process("-c", line, KPKG_PATH=path, KPKG_DISABLE="softmx")
    assert done.stdout == "True\n" and "KPKG_DISABLE names 'softmx'" in done.stderr
    assert "did you mean 'kpkg::softmax'" in done.stderr
    done = in_process("-c", line, KPKG_PATH=path, KPKG_FALLBACK="silent,sofmax=strict")
    assert "KPKG_FALLBACK names 'sofmax'" in done.stderr
    for name in ("softmax", "kpkg::softmax"):
        strict = "import kpkg; print(kpkg.kernel_info()['kpkg::softmax']['policy'])"
        assert in_process("-c", strict, KPKG_PATH=path, KPKG_FALLBACK=f"silent,{name}=strict").stdout == "strict\n"
    done = in_process("-c", line, KPKG_PATH=path, KPKG_REQUIRE="determinstic")
    assert (
        "ValueError: KPKG_REQUIRE has 'determinstic', which is not understood; did you mean 'deterministic'?"
        in done.stderr
    )
    done = in_process("-c", f"import kpkg; kpkg.load({path!r})", KPKG_REQUIRE="1")
    assert "KPKG_REQUIRE has '1', which is not understood" in done.stderr


def test_places_that_are_not_there(packages):
    line = "import kpkg, torch; kpkg.ops.gelu(torch.ones(2))"
    for path in ("/nowhere/packages", f"{packages['softmax']}:/nowhere/packages"):
        done = in_process("-c", line, KPKG_PATH=path)
        assert done.returncode == 0 and "/nowhere/packages cannot be opened" in done.stderr, done.stderr


def test_unknown_variables_are_warned_about(packages):
    line = f"import kpkg; kpkg.load({str(packages['softmax'])!r})"
    done = in_process("-c", line, KPKG_FALBACK="strict")
    assert "KPKG_FALBACK is no variable that kpkg reads; these are KPKG_CACHE_DIR, " in done.stderr
    assert in_process("-c", line).stderr == ""


def test_all_variables_that_are_read_are_known():
    """The runtime knows them all: an unknown one is warned about."""
    reads = re.compile(r"""(?:environ\b[^"'\n]{0,7}|getenv\(|GetEnv\(|variable\(|valueOf\(|\$\{?)["']?(KPKG_[A-Z_]+)""")
    text = (ROOT / "runtime" / "package" / "Environment.cpp").read_text()
    known = set(re.findall(r'"(KPKG_[A-Z_]+)"', text.partition("std::vector<std::string> splitList")[0]))
    files = [
        path
        for folder in ("runtime", "compiler", "tools", "test")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".cpp", ".h", ".py", "") and path.is_file()
    ]
    read = {name for path in files for name in reads.findall(path.read_text(errors="ignore"))}
    assert read and not read - known - {"KPKG_"}, "the list of Environment.cpp lacks them"


def test_sharding_before_the_first_call(packages):
    path = ":".join(str(packages[name]) for name in ("softmax", "gemm", "norm", "elementwise"))
    line = "import kpkg; print(' '.join(kpkg.register_sharding()))"
    names = in_process("-c", line, KPKG_PATH=path).stdout.split()
    assert {"kpkg::softmax", "kpkg::gemm", "kpkg::linear", "kpkg::layer_norm", "kpkg::rms_norm", "kpkg::gelu"} <= set(
        names
    )
    assert "register_sharding found no op" in in_process("-c", line).stderr


# ---- Layers and models -----------------------------------------------------------------------------------------------


def test_layers_name_themselves_and_shapes(default_ops):
    text = message(RuntimeError, kpkg.nn.GEMM(4, 4), t(2, 5))
    assert "GEMM(in_features=4, out_features=4, bias=True) with a Tensor of float32 [2, 5]" in text
    assert "its last dimension must have 4 elements" in text
    text = message(kpkg.KernelError, kpkg.nn.LayerNorm(4), t(2, 5))
    assert "LayerNorm((4,), eps=1e-05" in text and "[2, 5]" in text


def test_injecting_what_is_no_model_or_has_no_such_layer(default_ops):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4))
    assert "inject takes a torch.nn.Module, not [" in message(TypeError, kpkg.inject, [model])
    text = message(ValueError, kpkg.inject, model, include="Lineer")
    assert "include='Lineer' matches no layer of the model, by name or type; did you mean 'Linear' or 'linear'?" in text
    with pytest.warns(kpkg.KpkgWarning, match="exclude='nothing' matches no layer"):
        kpkg.inject(model, exclude="nothing", verbose=False).restore()
