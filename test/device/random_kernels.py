"""Runs random kernels on a GPU and compares them with the interpreter.

The kernels come from `kpkg-random-device-kernels --out FOLDER`:

    test/device/random_kernels.py --bundle FOLDER --out random.json

Needs NVIDIA's driver and nothing else. Each kernel runs twice, and both runs must leave the same bytes. All memory
around and between its tensors holds a pattern that must stay. Output tensors start with random numbers that the kernel
has to overwrite.

Results may differ from the interpreter's by the tolerance in the bundle, as on CPUs. It is four times the spread of
interpreter runs with reordered sums and with functions perturbed by 4 ulp. All kernels of a file run in one process. If
a kernel hangs or breaks the context, it is reported, and a new process continues with the next kernel.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import json
import math
import os
import platform
import select
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

ALIGNMENT = 256  # of each buffer; the gap between two buffers is at least as large
PATTERN = 0xA5
SUCCESS = 0
MULTIPROCESSORS, MAJOR, MINOR = 16, 75, 76
MOST_DYNAMIC_SHARED = 8


class DeviceError(Exception):
    """A driver call failed; the context may be lost."""


class Driver:
    """Wraps the driver's functions and raises on errors; uses the first GPU's primary context."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        self.device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        self.context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), self.device)
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.library, name)(*arguments)
        if code != SUCCESS:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(code, ctypes.byref(text))
            raise DeviceError(f"{name}: {text.value.decode() if text.value else code}")

    def attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, self.device)
        return value.value

    def describe(self) -> dict[str, Any]:
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, len(name), self.device)
        version = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(version))
        return {
            "device": name.value.decode(),
            "capability": f"{self.attribute(MAJOR)}.{self.attribute(MINOR)}",
            "cuda": f"{version.value // 1000}.{version.value % 1000 // 10}",
            "python": platform.python_version(),
        }


def decode(raw: bytes, dtype: str) -> float:
    """Decodes one element of a float type."""
    formats = {"f64": "<d", "f32": "<f", "f16": "<e"}
    if dtype in formats:
        return struct.unpack(formats[dtype], raw)[0]
    if dtype == "bf16":
        return struct.unpack("<f", b"\0\0" + raw)[0]
    exponent_bits, mantissa_bits, bias = {"f8E4M3FN": (4, 3, 7), "f8E5M2": (5, 2, 15)}[dtype]
    sign = -1.0 if raw[0] & 0x80 else 1.0
    exponent = (raw[0] >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = raw[0] & ((1 << mantissa_bits) - 1)
    if dtype == "f8E4M3FN" and (raw[0] & 0x7F) == 0x7F:
        return math.nan
    if dtype == "f8E5M2" and exponent == 31:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * math.ldexp(mantissa, 1 - bias - mantissa_bits)
    return sign * math.ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits)


def is_float(dtype: str) -> bool:
    return dtype.startswith(("f", "bf"))


def distance(have: float, want: float) -> float:
    """Returns the distance of two values.

    It is 0 only for equal values, signs of zeros included, and infinity if only one value is NaN or infinite."""
    if math.isnan(have) and math.isnan(want):
        return 0.0
    if have == want:
        return 0.0 if math.copysign(1, have) == math.copysign(1, want) else 5e-324
    difference = abs(have - want)
    return math.inf if math.isnan(difference) else difference


class Call:
    """A kernel call: its memory as one block of bytes, and the positions of the buffers in it."""

    def __init__(self, entry: dict[str, Any], data: bytes) -> None:
        self.entry = entry
        self.data = data
        self.places: list[int | None] = []
        size = ALIGNMENT
        for argument in entry["arguments"]:
            self.places.append(None if "word" in argument else size)
            if "word" not in argument:
                size = (size + argument["initial"][1] + 2 * ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        self.initial = bytearray([PATTERN]) * (size + ALIGNMENT)
        for place, argument in zip(self.places, entry["arguments"]):
            if place is not None:
                initial = self.part(argument["initial"])
                self.initial[place : place + len(initial)] = initial

    def part(self, span: list[int]) -> bytes:
        return self.data[span[0] : span[0] + span[1]]

    def words(self, base: int) -> list[int]:
        words: list[int] = []
        for place, argument in zip(self.places, self.entry["arguments"]):
            if place is None:
                words.append(argument["word"])
            else:
                words += [
                    base + place + argument["offset"] * argument["bytes"],
                    *argument["shape"],
                    *argument["strides"],
                ]
        return [*words, *self.entry["grid"]]

    def difference(self, memory: bytes) -> str | None:
        """Describes the first error in the memory that the kernel left; None if there is none."""
        rest = bytearray(memory)
        for number, (place, argument) in enumerate(zip(self.places, self.entry["arguments"])):
            if place is None or "expected" not in argument:
                continue
            expected = self.part(argument["expected"])
            if found := self.difference_of(argument, memory[place : place + len(expected)], expected):
                return f"argument {number}, {found}"
            rest[place : place + len(expected)] = self.initial[place : place + len(expected)]
        if rest != self.initial:
            at = next(i for i in range(len(rest)) if rest[i] != self.initial[i])
            place, number = max(
                (place, number)
                for number, place in enumerate([0, *(place or 0 for place in self.places)], -1)
                if place <= at
            )
            return f"wrote where it must not, {at - place} bytes after the start of argument {number}'s buffer"
        return None

    def difference_of(self, argument: dict[str, Any], have: bytes, want: bytes) -> str | None:
        if have == want:
            return None
        size, dtype = argument["bytes"], argument["dtype"]
        allowed = memoryview(self.part(argument["allowed"])).cast("d") if "allowed" in argument else None
        for i in range(len(want) // size):
            a, b = have[i * size : (i + 1) * size], want[i * size : (i + 1) * size]
            if a == b:
                continue
            limit = allowed[i] if allowed else 0.0
            if not is_float(dtype):
                if limit == 0:
                    return (
                        f"element {i} of its {dtype} buffer: {int.from_bytes(a, 'little', signed=True)}, not "
                        f"{int.from_bytes(b, 'little', signed=True)}"
                    )
                continue
            x, y = decode(a, dtype), decode(b, dtype)
            if not distance(x, y) <= limit:
                return f"element {i} of its {dtype} buffer: {x!r}, not {y!r}; up to {limit:.3g} away is correct"
        return None


def cta_counts(code: dict[str, Any], grid: list[int], multiprocessors: int) -> list[int]:
    """Returns the grid of CTAs that the runtime launches for a grid of kernel blocks."""
    x = -(-grid[0] // code["blocks"]) * code["cluster"]
    if code["persistent"] or code["occupancy"]:
        resident = multiprocessors * max(code["occupancy"], 1) // code["cluster"] * code["cluster"]
        x = resident if code["persistent"] else min(x, resident)
    return [x, grid[1], grid[2]]


def run_call(driver: Driver, call: Call, code: dict[str, Any]) -> str | None:
    """Runs the call and describes what is wrong, or returns None."""
    library, kernel, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    image = ctypes.create_string_buffer(call.part(code["image"]), code["image"][1])
    driver.call("cuLibraryLoadData", ctypes.byref(library), image, None, None, 0, None, None, 0)
    driver.call("cuLibraryGetKernel", ctypes.byref(kernel), library, code["symbol"].encode())
    driver.call("cuKernelGetFunction", ctypes.byref(function), kernel)
    if code["shared"]:
        driver.call("cuFuncSetAttribute", function, MOST_DYNAMIC_SHARED, code["shared"])
    address = ctypes.c_uint64()
    size = ctypes.c_size_t(len(call.initial))
    driver.call("cuMemAlloc_v2", ctypes.byref(address), size)
    words = [ctypes.c_int64(word) for word in call.words(address.value)]
    parameters = (ctypes.c_void_p * len(words))(*(ctypes.addressof(word) for word in words))
    ctas = cta_counts(code, call.entry["grid"], driver.attribute(MULTIPROCESSORS))
    initial = (ctypes.c_char * len(call.initial)).from_buffer(call.initial)
    results = []
    for _ in range(2):
        driver.call("cuMemcpyHtoD_v2", address, initial, size)
        driver.call("cuLaunchKernel", function, *ctas, code["threads"], 1, 1, code["shared"], None, parameters, None)
        driver.call("cuCtxSynchronize")
        after = ctypes.create_string_buffer(len(call.initial))
        driver.call("cuMemcpyDtoH_v2", after, address, size)
        results.append(after.raw)
    driver.call("cuMemFree_v2", address)
    driver.call("cuLibraryUnload", library)
    if found := call.difference(results[0]):
        return found
    return None if results[0] == results[1] else "the second run left other bytes"


def worker(path: Path, first: int) -> int:
    """Runs the kernels of a file from number `first` on, and prints one line of JSON for each."""
    driver = Driver()
    print(json.dumps(driver.describe()), flush=True)
    chip = f"sm_{driver.attribute(MAJOR)}{driver.attribute(MINOR)}"
    data = zlib.decompress(path.with_suffix(".bin").read_bytes())
    for entry in json.loads(path.read_text())[first:]:
        line = {"seed": entry["seed"]}
        code = next((code for code in entry["code"] if code["chip"].rstrip("a") == chip), None)
        if code is None:
            line["failure"] = f"the bundle has no code for {chip}"
            print(json.dumps(line), flush=True)
            continue
        line["variant"] = code["variant"]
        line["exact"] = not any("allowed" in argument for argument in entry["arguments"])
        try:
            failure = run_call(driver, Call(entry, data), code)
        except DeviceError as error:  # the context is lost
            print(json.dumps({**line, "failure": str(error)}), flush=True)
            return 1
        if failure:
            line["failure"] = failure
        print(json.dumps(line), flush=True)
    return 0


def lines_of(command: list[str], limit: float) -> tuple[list[dict[str, Any]], str]:
    """Returns the lines that a worker prints until it ends or is silent for `limit` seconds, and how it failed."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout and process.stderr
    output, trouble = b"", ""
    while True:
        ready, _, _ = select.select([process.stdout], [], [], limit)
        piece = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
        output += piece
        if not piece:
            break
    if not ready:
        process.kill()
        trouble = f"no answer within {limit:.0f} s"
    errors = process.stderr.read().decode(errors="replace")
    if process.wait() and not trouble:
        trouble = errors.strip()[-400:] or f"ended with status {process.returncode}"
    return [json.loads(line) for line in output.decode().split("\n")[:-1]], trouble


def run_file(path: Path, limit: float, report: dict[str, Any]) -> None:
    entries = json.loads(path.read_text())
    done = 0
    while done < len(entries):
        lines, trouble = lines_of([sys.executable, __file__, "--worker", str(path), str(done)], limit)
        if lines:
            report.update(lines[0])
        results = lines[1:]
        if trouble and not any("failure" in line for line in results[-1:]):
            if done + len(results) == len(entries):
                raise RuntimeError(f"{path}: {trouble}")
            results.append({"seed": entries[done + len(results)]["seed"], "failure": trouble})
        done += len(results)
        for line in results:
            report["kernels"] += 1
            if "failure" in line:
                report["failures"].append(
                    {"seed": line["seed"], "variant": line.get("variant"), "reason": line["failure"]}
                )
                print(f"seed {line['seed']} ({line.get('variant')}): {line['failure']}", flush=True)
            else:
                report["agree"] += 1
                report["exact"] += line["exact"]
                report["variants"][line["variant"]] += 1
        if not results:
            raise RuntimeError(f"{path}: {trouble or 'the worker did nothing'}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=Path, help="the folder that kpkg-random-device-kernels wrote")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one kernel")
    parser.add_argument("--out", type=Path, help="file for the report, as JSON")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(Path(options.worker[0]), int(options.worker[1]))
    if not options.bundle:
        parser.error("--bundle is needed")
    report: dict[str, Any] = {"kernels": 0, "agree": 0, "exact": 0, "variants": collections.Counter(), "failures": []}
    start = time.monotonic()
    for path in sorted(options.bundle.glob("*.json"), key=lambda path: int(path.stem.split("-")[0])):
        run_file(path, options.limit, report)
        report["seconds"] = round(time.monotonic() - start, 1)
        if options.out:
            options.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps({key: value for key, value in report.items() if key != "failures"}))
    print(
        f"{report['kernels']} kernels ran twice, {report['agree']} agree with the interpreter, "
        f"{len(report['failures'])} do not"
    )
    return 1 if report["failures"] or not report["kernels"] else 0


if __name__ == "__main__":
    sys.exit(main())
