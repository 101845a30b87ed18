"""Loads, calls and unloads packages many times: in threads, forked children, subinterpreters and processes that exit.

Run it as a program: ``load_stress.py PACKAGE [--loads 10000] [--threads 16] [--forks 50] [--exits 50]``. It prints the
resident memory after each tenth of the loads. Memory that grows, a wrong result and a process that ends by a signal
are errors. PACKAGE is that of softmax.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import threading
import time

import kpkg
import numpy

# The heap of each thread's allocator fills within the first loads, so growth is measured behind them.
WARM_UP = 0.3
ALLOWED_GROWTH = 64 << 20

EXIT_IN_CALL = """
import os, sys, threading, time
import numpy, kpkg
library = kpkg.load(sys.argv[1])
x = numpy.ones((2000, 2000), numpy.float32)
def run():
    while True:
        library.softmax(x, 1)
for _ in range(3):
    threading.Thread(target=run, daemon=True).start()
time.sleep(float(sys.argv[2]))
if sys.argv[3] == "exit":
    sys.exit(0)
os._exit(0)
"""

SUBINTERPRETER = """
import sys
import kpkg
library = kpkg.load(sys.argv[1])
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
for _ in range(3):
    name = interpreters.create()
    try:
        interpreters.run_string(name, f"import sys; sys.path[:] = {sys.path!r}; import kpkg")
    except Exception as error:
        assert "works in the main interpreter alone" in str(error), error
    interpreters.destroy(name)
library.verify()
"""


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def call(library: kpkg.CustomOpLibrary, rows: int) -> None:
    x = numpy.linspace(-1, 1, rows * 33, dtype=numpy.float32).reshape(rows, 33)
    expected = numpy.exp(x) / numpy.exp(x).sum(1, keepdims=True)
    if not numpy.allclose(library.softmax(x, 1), expected, atol=1e-6):
        raise AssertionError("a wrong result of softmax")


def loads(package: str, count: int, threads: int) -> None:
    """Loads, calls and drops the package, and compares the memory after the first loads with that at the end."""
    done, failures, lock = 0, [], threading.Lock()
    sizes: list[int] = []

    def work() -> None:
        nonlocal done
        try:
            while True:
                with lock:
                    if done >= count or failures:
                        return
                    done += 1
                    number = done
                library = kpkg.CustomOpLibrary(package)
                call(library, 1 + number % 50)
                del library
                if number % max(count // 10, 1) == 0:
                    gc.collect()
                    with lock:
                        sizes.append(resident())
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
    print(f"{count} loads by {threads} threads, resident MiB:", *(size >> 20 for size in sizes))
    growth = sizes[-1] - sizes[int(len(sizes) * WARM_UP)]
    if growth > ALLOWED_GROWTH:
        raise AssertionError(f"the memory grew by {growth >> 20} MiB in {count} loads")


def forks(package: str, count: int) -> None:
    """Forks while other threads call, and loads and calls in the child."""
    library = kpkg.CustomOpLibrary(package)
    is_done = threading.Event()

    def work() -> None:
        while not is_done.is_set():
            call(library, 40)

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(count):
            child = os.fork()
            if child == 0:
                try:
                    call(library, 40)
                    call(kpkg.CustomOpLibrary(package), 40)
                    os._exit(0)
                except BaseException:
                    os._exit(1)
            deadline = time.monotonic() + 60
            while True:
                pid, status = os.waitpid(child, os.WNOHANG)
                if pid:
                    break
                if time.monotonic() > deadline:
                    os.kill(child, 9)
                    raise AssertionError("a forked child hangs")
                time.sleep(0.002)
            if status:
                raise AssertionError(f"a forked child ended with status {status}")
    finally:
        is_done.set()
        for worker in workers:
            worker.join()
    print(f"{count} forks under calls")


def programs(package: str, count: int) -> None:
    """Ends processes in the middle of calls, and imports in subinterpreters."""
    for number in range(count):
        way, delay = ("exit", "_exit")[number % 2], number % 7 * 0.01
        done = subprocess.run([sys.executable, "-c", EXIT_IN_CALL, package, str(delay), way], timeout=120)
        if done.returncode:
            raise AssertionError(f"{way} in a call ended with {done.returncode}")
    print(f"{count} exits in a call")
    done = subprocess.run([sys.executable, "-c", SUBINTERPRETER, package], timeout=120, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr)
    print("subinterpreters are refused, and harm nothing")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package")
    for name, count in {"loads": 10000, "threads": 16, "forks": 50, "exits": 50}.items():
        parser.add_argument(f"--{name}", type=int, default=count)
    options = parser.parse_args()
    loads(options.package, options.loads, options.threads)
    forks(options.package, options.forks)
    programs(options.package, options.exits)


if __name__ == "__main__":
    main()
