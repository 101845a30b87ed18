"""Tests profiles, configurations of kernels, and policies of single ops.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import kpkg
import pytest
import torch
from conftest import BUILD
from torch.testing import assert_close

X = torch.randn(6, 40)


def test_profile(ops, tmp_path):
    softmax = ops["kpkg::softmax"]
    softmax(X)
    with kpkg.profile_kernel(limits={"cpu": 1000.0}) as profile:
        for _ in range(3):
            softmax(X)
        with kpkg.fallback_policy("silent"), softmax.configure(kpkg.KernelConfig(target="sm_80")):
            softmax(X)
        thread = threading.Thread(target=lambda: ops["kpkg::layer_norm"](X, [40]))
        thread.start()
        thread.join()
    softmax(X)  # no longer recorded
    rows = {row["op"]: row for row in profile.ops()}
    assert (
        rows["kpkg::softmax"]["calls"] == 4
        and rows["kpkg::softmax"]["fallbacks"] == 1
        and rows["kpkg::softmax"]["host_us"] > 0
    )
    assert rows["kpkg::layer_norm"]["calls"] == 1 and rows["kpkg::layer_norm"]["device_us"] is None
    (kernel,) = [row for row in profile.kernels() if row["op"] == "kpkg::softmax"]
    assert kernel["calls"] == 3 and kernel["instance"].startswith("softmax_rows[") and kernel["device"] == "cpu"
    assert kernel["bytes"] == 3 * 2 * X.numel() * 4 and kernel["of_limit"] == pytest.approx(kernel["gb_s"] / 1000)
    text = profile.summary()
    assert "kpkg::softmax" in text and "softmax_rows[" in text
    assert len({call["thread"] for call in profile.records["calls"]}) == 2
    profile.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(e["ph"] == "X" and e["cat"] == "op" for e in events) == 5
    assert {e["args"]["name"] for e in events if e["ph"] == "M"} >= {"host"}


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (None, ""),
        ({"by": "cupti"}, "those of the kernels themselves, by CUPTI"),
        (
            {"by": "events", "reason": ""},
            "between events around each launch, some microseconds longer than the kernel alone",
        ),
        ({"by": "events", "reason": "another tool"}, "longer than the kernel alone (another tool)"),
    ],
)
def test_device_times_say_how_they_were_taken(times, said):
    launch = {
        "op": "kpkg::softmax",
        "instance": "softmax_rows",
        "device": "cuda:0",
        "duration_ns": 2000,
        "device_duration_ns": 5000,
        "bytes": 1e6,
        "flops": 1e6,
    }
    profile = kpkg.Profile(False, None)
    profile.records = {"calls": [], "launches": [launch], "dropped": 0, "device_times": times}
    text = profile.summary()
    assert text.endswith(said) and ("device times are" in text) == (times is not None)
    assert profile.kernels()[0]["device_us"] == 5.0


def test_profiles_do_not_nest(ops):
    with kpkg.profile_kernel(), pytest.raises(RuntimeError, match="do not nest"), kpkg.profile_kernel():
        pass
    with kpkg.profile_kernel() as profile:
        pass
    assert profile.ops() == [] and profile.kernels() == []


def test_ranges_need_a_library(ops, packages, tmp_path):
    """With an NVTX library, each call is a range."""
    source = tmp_path / "ranges.c"
    source.write_text(
        '#include <stdio.h>\nint nvtxRangePushA(const char *name) { return printf("push %s\\n", name); }\nint '
        'nvtxRangePop(void) { puts("pop"); return fflush(stdout); }\n'
    )
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", tmp_path / "ranges.so"], check=True)
    script = (
        f"import kpkg, numpy; ops = kpkg.load({str(packages['softmax'])!r})\nwith kpkg.profile_kernel(ranges=True): "
        "ops.softmax(numpy.ones((2, 3)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python")}

    def run(library):
        return subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            env={**environment, "KPKG_NVTX": str(library)},
        )

    assert run(tmp_path / "ranges.so").stdout == "push kpkg::softmax\npop\n"
    assert "ValueError: no NVTX library is found" in run(tmp_path / "none.so").stderr


def test_torch_profiler_shows_the_op(ops):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        torch.ops.kpkg.softmax(X)
    assert "kpkg::softmax" in {event.key for event in profile.key_averages()}


# ---- KernelConfig ----------------------------------------------------------------------------------------------------


def test_config_pins_the_instance(ops):
    softmax = ops["kpkg::softmax"]
    with softmax.configure(kpkg.KernelConfig(variant="any", params={"COLS": [1024, 2048]})) as configured:
        assert configured is softmax
        explained = softmax.explain(X)
        assert_close(softmax(X), X.softmax(-1))
    assert "is the variant 'unit', the configuration asks for 'any'" in explained
    with kpkg.profile_kernel() as profile:
        softmax(X)
        softmax.configure(kpkg.KernelConfig(variant="any"))
        softmax(X)
        softmax.configure(None)
        softmax(X)
    variants = [launch["instance"].split("] ")[1].split()[0] for launch in profile.records["launches"]]
    assert variants == ["unit", "any", "unit"]


def test_config_that_nothing_meets(ops):
    gemm = ops["kpkg::gemm"]
    with gemm.configure(kpkg.KernelConfig(dtype=torch.float64)):
        gemm(X.double(), X.double(), transpose_b=True)
        with pytest.raises(kpkg.KernelError, match="the configuration asks for float64"):
            gemm(X, X, transpose_b=True)
        assert not gemm.supports(X, X, transpose_b=True)
    assert gemm.supports(X, X, transpose_b=True) and not gemm.supports(X, X)


def test_config_is_checked(ops):
    config = kpkg.KernelConfig(tile=([64, 128], 256), warps=[4, 8], stages=3, dtype="bfloat16", target="sm_90a")
    assert json.loads(config.to_json()) == {
        "params": {"BM": ["64", "128"], "BN": ["256"], "stages": ["3"], "T": ["bfloat16"]}, "threads": [128, 256],
        "target": "sm_90a",
    }  # fmt: skip
    with pytest.raises(ValueError, match="at most 3"):
        kpkg.KernelConfig(tile=(1, 2, 3, 4)).to_json()
    with pytest.raises(ValueError, match="not understood"):
        ops["kpkg::gemm"]._library._native.restrict("kpkg::gemm", '{"tiles": 3}')


# ---- Policies of single ops ------------------------------------------------------------------------------------------


def test_policy_of_one_op(ops):
    softmax, gelu = ops["kpkg::softmax"], ops["kpkg::gelu"]
    nowhere = kpkg.KernelConfig(target="sm_80")
    with softmax.configure(nowhere), gelu.configure(nowhere), kpkg.fallback_policy("silent"):
        with kpkg.fallback_policy("strict", op="kpkg::softmax"):
            assert_close(gelu(X), torch.nn.functional.gelu(X))
            with pytest.raises(kpkg.KernelError, match="policy is strict"):
                softmax(X)
        softmax(X)
    with pytest.raises(ValueError, match="no op name"):
        kpkg.set_fallback_policy("strict", op="softmax")
    with pytest.raises(ValueError, match="name it"):
        kpkg.set_fallback_policy(None)


def test_policy_of_one_op_by_the_environment(packages):
    script = f"""
import kpkg, torch
ops = kpkg.load({str(packages["softmax"])!r})
x = torch.ones(2, 3, dtype=torch.complex64).real.to(torch.float8_e4m3fn)
for op in (ops.log_softmax, ops.softmax):
    try:
        op(x)
    except kpkg.KernelError as error:
        print(op.name, "strict" in str(error), "failed" in str(error))
"""
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "KPKG_FALLBACK": "silent,kpkg::softmax=strict"}
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert found.stdout == "kpkg::log_softmax False True\nkpkg::softmax True False\n", found.stdout + found.stderr
