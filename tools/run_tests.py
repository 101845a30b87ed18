"""Runs the test suites and prints one closing line. Called by `tools/dev test`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = (ROOT / os.environ.get("KPKG_BUILD_DIR", "build")).resolve()
PYTHON = os.environ.get("KPKG_PYTHON", sys.executable)

CTEST = (r"tests passed, \d+ tests failed out of (\d+)", r"tests passed, (\d+) tests failed")
PYTEST = (r"(\d+) passed", r"(\d+) (?:failed|error)")


def runtime(name: str, compilers: tuple[str, str], *options: str) -> list[str]:
    """Returns the command that builds and tests the runtime alone, with these C and C++ compilers."""
    flags = [f"-DCMAKE_C_COMPILER={compilers[0]}", f"-DCMAKE_CXX_COMPILER={compilers[1]}", *options]
    return ["bash", "tools/ci/runtime_suite", name, *flags]


# The command of each suite, and the patterns of its summary: (passed, failed).
SUITES: dict[str, tuple[list[str], str, str]] = {
    "style": ([PYTHON, "tools/ci/check_style.py"], r"(\d+) passed", r"(\d+) failed"),
    # Runs after the build, because it reads generated headers and compile commands.
    "tidy": ([PYTHON, "tools/ci/check_tidy.py"], r"(\d+) passed", r"(\d+) failed"),
    "layers": ([PYTHON, "-m", "pytest", "test/layers", "test/tools/ci"], r"(\d+) passed", r"(\d+) (?:failed|error)"),
    "lit": (
        [PYTHON, "-c", "import lit.main; lit.main.main()", "-j2", "-v", str(BUILD / "test")],
        r"Passed\s*:\s*(\d+)",
        r"(?:Failed|Unresolved|Timed Out)\s*:\s*(\d+)",
    ),
    "unit": (["ctest", "--test-dir", str(BUILD), "--output-on-failure", "-j2", "--no-tests=error"], *CTEST),
    # The configuration of `pip install .` on Debian.
    "gcc": (
        runtime("gcc", ("gcc", "g++"), "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DKPKG_SANITIZE=undefined"),
        *CTEST,
    ),
    # Tests of a file stay with one worker, because they share loaded data. Those of wheels and Debian packages compile
    # the runtime again.
    "python": (
        [PYTHON, "-m", "pytest", "-n2", "--dist=loadfile", "--durations=40"]
        + ["--ignore-glob=*/test_wheel*.py", "--ignore=test/python/test_deb.py", "test/python"],
        *PYTEST,
    ),
}
CLANG = ("clang-22", "clang++-22")
# Run by name only, because they take long, or are part of the suites above.
STEPS: dict[str, tuple[list[str], str, str]] = {
    "address": (runtime("address", CLANG, "-DKPKG_SANITIZE=address,undefined"), *CTEST),
    "thread": (runtime("thread", CLANG, "-DKPKG_SANITIZE=thread"), *CTEST),
    "aarch64": (
        ["ctest", "--test-dir", str(BUILD), "--output-on-failure", "--no-tests=error", "-R"]
        + ["^(VectorMathTest|DotCodeTest|IsaTest)$"],
        *CTEST,
    ),
    "wheel": (
        [PYTHON, "-m", "pytest", "test/python/test_wheel.py", "test/python/test_wheel_aarch64.py"]
        + ["test/python/test_install.py"],
        *PYTEST,
    ),
    "deb": ([PYTHON, "-m", "pytest", "test/python/test_deb.py"], *PYTEST),
}


def run_suite(name: str) -> tuple[int, int]:
    """Runs one suite and passes its output through. Returns how many tests passed and failed."""
    command, passed_pattern, failed_pattern = (SUITES | STEPS)[name]
    print(f"\n== {name}: {' '.join(command)}", flush=True)
    start = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    assert process.stdout is not None
    for line in process.stdout:
        sys.stdout.write(line)
        lines.append(line)
    code = process.wait()
    text = "".join(lines)
    passed = sum(int(n) for n in re.findall(passed_pattern, text))
    failed = sum(int(n) for n in re.findall(failed_pattern, text))
    if passed_pattern == CTEST[0]:  # ctest counts all of them
        passed -= failed
    if passed + failed == 0 or (code != 0 and failed == 0):
        failed += 1  # the runner itself failed, or ran nothing
    print(f"== {name}: {passed} passed, {failed} failed in {time.monotonic() - start:.0f} s", flush=True)
    return passed, failed


def main() -> int:
    names = sys.argv[1:] or list(SUITES)
    unknown = [n for n in names if n not in SUITES | STEPS]
    if unknown:
        print(f"unknown suite {unknown[0]}; there are {', '.join(SUITES | STEPS)}", file=sys.stderr)
        return 2
    results = [run_suite(name) for name in names]
    passed, failed = sum(p for p, _ in results), sum(f for _, f in results)
    print(f"\n{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
