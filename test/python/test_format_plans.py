"""Compares the independent evaluator of plans in test/format with the runtime: shipped plans, and random ones.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import random

import kpkg
import pytest
from conftest import ROOT
from format_reader import bytecode, container, evaluate, views
from format_reader.memory import Copy, Resolution
from format_reader.page import DTYPE_NUMBERS, DTYPES
from random_plans import random_plan

COMPAT = ROOT / "test" / "runtime" / "compat"
CPU = 1  # of DLPack
FAMILIES = ["softmax", "norm", "vector_add", "gemm", "attention_cache"]
TYPES = {"t": "Tensor", "i": "int", "f": "float", "b": "bool", "l": "int[]", "d": "ScalarType", "s": "str"}
TYPES["v"] = "Tensor[]"


def load(path, data):
    """Opens a package of these bytes."""
    path.write_bytes(data)
    return kpkg.load(path)


def probe(plans):
    """Returns a package with an op for each plan, and no kernel: `explain` then tells what the plan decides."""
    ops, sections = [], []
    for k, data in enumerate(plans):
        entry = bytecode.load(data).functions[0]
        letters = entry.registers[: len(entry.parameters)].lower()
        arguments = []
        for number, letter in enumerate(letters):
            written = entry.parameters[number][1]
            arguments.append({"name": f"a{number}", "type": TYPES[letter] + "?" * (letter in "tfd"), "mut": written})
        op = {"name": f"probe::op{k}", "arguments": arguments, "results": ["Tensor?"] * len(entry.results)}
        sections.append({"name": f"plan/{k}", "kind": "plan", "bytes": data, "compression": "zstd"})
        ops.append(op | {"plan": f"plan/{k}", "schema": schema(op)})
    return container.pack({"ops": ops}, sections)


def schema(op):
    from format_reader.tables import schema_of

    return schema_of(op)


class Printer:
    """Writes a resolution as `kpkg explain` does."""

    def __init__(self, plan, resolution: Resolution):
        self.names = [name for name, _ in plan.functions[0].parameters]
        self.resolution = resolution

    def view(self, view):
        if view is None:
            return "None"
        buffer, number = self.resolution.buffers[view.buffer], self.resolution.used.index(view.buffer)
        name = f"{'result' if buffer.is_result else 'temporary'}{number}"
        if isinstance(buffer.argument, tuple):
            name = f"{self.names[buffer.argument[0]]}[{buffer.argument[1]}]"
        elif buffer.argument is not None:
            name = self.names[buffer.argument]
        strides = "" if views.is_contiguous(view) else f" strides {list(view.strides)}"
        offset = f" offset {view.offset}" if view.offset else ""
        return f"{name}: {DTYPES[view.dtype][0]}{list(view.shape)}{strides}{offset}"

    def scalar(self, letter, value):
        if letter in "sd":
            return f'"{value.decode()}"' if letter == "s" else evaluate.as_text(value).decode()
        return evaluate.float_text(value) if letter in "fF" else str(value)

    def argument(self, written, letter, value):
        if letter == "t":
            return ("mut " if written else "") + self.view(value)
        if isinstance(value, evaluate.Passed):
            return f"{self.names[value.argument]}: as passed"
        return self.scalar(letter, value)

    def step(self, step):
        if isinstance(step, Copy):
            return f"copy ({self.view(step.source)}) to ({self.view(step.destination)})"
        params = [f"{n} {'>=' if least else '='} {self.scalar(kind, v)}" for n, least, kind, v in step.params]
        args = [self.argument(*arg) for arg in step.args]
        grid = "grid " + "x".join(map(str, step.grid)) if step.grid else "persistent"
        return f"launch {step.kernel}{'[' + ', '.join(params) + ']' if params else ''}({', '.join(args)}) {grid}"

    def run(self):
        results = [f"output {k}: {self.view(view)}" for k, view in enumerate(self.resolution.results)]
        return "".join(line + "\n" for line in [*map(self.step, self.resolution.steps), *results])


def any_dtype(draw):
    """Draws a dtype, mostly one that has tensors."""
    return draw.choice([number for number, (_, bits, _) in DTYPES.items() if bits >= 8 or draw.random() < 0.1])


def random_tensor(draw, shape, dtype):
    """Returns a tensor that is dense, or has its dimensions in another order, apart or backwards."""
    if draw.random() < 0.5:
        return evaluate.Tensor(dtype, shape, views.dense(shape))
    order = draw.sample(range(len(shape)), len(shape))
    strides, stride = [0] * len(shape), draw.choice([1, 1, 1, 2, -1])
    for k in order:
        strides[k] = 0 if draw.random() < 0.1 else stride
        stride *= max(shape[k], 1)
    return evaluate.Tensor(dtype, shape, tuple(strides))


class Caller:
    """Draws arguments of a call that often fit together."""

    def __init__(self, draw):
        self.draw = draw
        rank = draw.choice([1, 2, 2, 3, 3, 4, 4, 0])
        self.shape = tuple(draw.choice([1, 2, 3, 4, 8, 16, 64, 200, 0]) for _ in range(rank))
        self.dtype = DTYPE_NUMBERS[draw.choice(["float32", "float32", "float16", "bfloat16", "float64", "int64"])]

    def argument(self, letter):
        draw = self.draw
        match letter:
            case "t":
                if draw.random() < 0.2:
                    return None
                shape = self.shape
                if draw.random() < 0.3:
                    shape = draw.choice([shape[-1:], shape[:-1], shape[::-1], (*shape[:-1], 1), (draw.randrange(9),)])
                dtype = self.dtype if draw.random() < 0.85 else any_dtype(draw)
                return random_tensor(draw, shape, dtype)
            case "i" | "I":
                return draw.choice([-1, -2, 0, 1, 2, 3, 8, 2**40, -(2**63), 2**63 - 1])
            case "f" | "F":
                return draw.choice([0.5, -1.0, 1e-5, 1e300, float("inf"), None])
            case "b" | "B":
                return draw.random() < 0.5
            case "l":
                return tuple(draw.choice([-1, 0, 1, 2, 3]) for _ in range(draw.choice([1, 2, 2, 3, 4])))
            case "v":
                return [random_tensor(draw, self.shape, self.dtype) for _ in range(draw.randrange(4))]
            case "d":
                return evaluate.DType(any_dtype(draw)) if draw.random() < 0.8 else None
            case _:
                return draw.choice([b"", b"none", b"mean", b"tanh", b"high"])


def lowered(value):
    """Returns an argument as the native module takes it."""
    match value:
        case evaluate.Tensor():
            return (value.shape, value.strides, DTYPES[value.dtype][0], CPU)
        case evaluate.DType():
            return DTYPES[value.number][0]
        case bytes():
            return value.decode()
        case tuple():
            return list(value)
        case list():
            return [lowered(each) for each in value]
    return value


def compare(op, data, values):
    """Requires that the runtime and the evaluator decide the same; returns whether both accept the call."""
    plan = bytecode.load(data)
    record = json.loads(op._native.explain([lowered(value) for value in values], True))
    (package,) = record["packages"]
    try:
        wanted = Printer(plan, evaluate.evaluate(plan, values)).run()
    except views.Failed as failed:
        assert not package["runs"] and "steps" not in package, (failed, values, package)
        assert failed.raised is None or failed.raised in package["error"].replace("-nan", "nan"), (
            values,
            package["error"],
        )
        return False
    found = package.get("steps", package.get("error")).replace("-nan", "nan")  # its sign is not defined
    assert found == wanted, values
    return True


def check(path, plans, calls, seed):
    """Compares random calls of all plans; returns how many both accept and refuse."""
    library, draw, counts = load(path, probe(plans)), random.Random(seed), [0, 0]
    for op, data in zip(library, plans, strict=True):
        letters = bytecode.load(data).functions[0]
        for _ in range(calls):
            caller = Caller(draw)
            values = [caller.argument(letter) for letter in letters.registers[: len(letters.parameters)]]
            counts[not compare(op, data, values)] += 1
    return counts


def plans_of(path):
    package = container.Container(path.read_bytes())
    return [package.contents(name) for name, section in package.sections.items() if section["kind"] == "plan"]


def test_shipped_plans_decide_the_same(packages, tmp_path):
    counts = [check(tmp_path / f"{family}.kpkg", plans_of(packages[family]), 12, family) for family in FAMILIES]
    accepted, refused = map(sum, zip(*counts, strict=True))
    assert accepted > 50 and refused > 50


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_plans_of_old_packages_decide_the_same(version, tmp_path):
    check(tmp_path / "probe.kpkg", plans_of(COMPAT / f"sample-{version}.kpkg"), 20, version)


@pytest.mark.parametrize("seed", range(4))
def test_random_plans_decide_the_same(seed, tmp_path):
    draw = random.Random(seed)
    plans = [bytecode.encode(random_plan(draw)) for _ in range(150)]
    accepted, refused = check(tmp_path / "probe.kpkg", plans, 5, seed)
    assert accepted > 50 and refused > 50
