"""Tests the number of threads of large calls: PyTorch's or the one set; bad numbers are refused or warned about.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import subprocess
import sys

import kpkg
import pytest
from conftest import BUILD


def run(program: str, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own, because each process has its own number of threads."""
    environment = {name: value for name, value in os.environ.items() if name != "KPKG_NUM_THREADS"}
    environment |= {"PYTHONPATH": str(BUILD / "python")} | variables
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done


FOLLOWS = """
import sys, torch, kpkg
kpkg.load(sys.argv[1])
for count in (3, 1, 2):
    torch.set_num_threads(count)
    assert kpkg.get_cpu_threads() == count, (kpkg.get_cpu_threads(), count)
kpkg.set_cpu_threads(5)
torch.set_num_threads(4)
assert kpkg.get_cpu_threads() == kpkg.cpu_threads() == 5
x = torch.randn(1000, 1000)
torch.testing.assert_close(torch.ops.kpkg.softmax(x, -1), torch.softmax(x, -1))
"""


def test_follows_pytorch_until_it_is_set(packages):
    run(FOLLOWS, packages["softmax"])


def test_the_variable_goes_before_pytorch(packages):
    program = "import sys, torch, kpkg; kpkg.load(sys.argv[1]); torch.set_num_threads(2); print(kpkg.get_cpu_threads())"
    assert run(program, packages["softmax"], KPKG_NUM_THREADS="3").stdout.split() == ["3"]


@pytest.mark.parametrize("value", ["abc", "0", "-3"])
def test_a_bad_variable_is_warned_about_once(value):
    program = "import kpkg; kpkg.get_cpu_threads(); print(kpkg.get_cpu_threads() >= 1)"
    done = run(program, KPKG_NUM_THREADS=value)
    assert done.stdout.split() == ["True"]
    assert done.stderr.count(f"KPKG_NUM_THREADS={value} is not understood (a number of threads from 1 to 1024)") == 1


@pytest.mark.parametrize("count", [0, -3, 1025, 2**31, 2**40, -(2**70)])
def test_a_bad_number_is_refused(count):
    before = kpkg.get_cpu_threads()
    with pytest.raises(ValueError, match=f"1 to 1024 threads, not {count}"):
        kpkg.set_cpu_threads(count)
    assert kpkg.get_cpu_threads() == before


@pytest.mark.parametrize("count", ["two", 1.5, None, True, [2]])
def test_what_is_no_number_is_refused(count):
    with pytest.raises(TypeError, match="takes a whole number of threads, not "):
        kpkg.set_cpu_threads(count)
