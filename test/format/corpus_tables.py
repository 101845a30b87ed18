"""Lists changes of a good manifest that the page forbids, with the cause that readers give.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

Change = Callable[[dict[str, Any], list[dict[str, Any]]], Any]
Case = tuple[str, str, str, Change]


def at(path: str, value: Any) -> Change:
    """Returns a change that sets a value: "kernels.0.name"; None removes the key."""

    def change(manifest: dict[str, Any], _: list[dict[str, Any]]) -> None:
        place: Any = manifest
        *outer, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        for part in outer:
            place = place[part]
        if value is None:
            del place[last]
        else:
            place[last] = value

    return change


def records() -> Iterator[Case]:
    def case(name: str, cause: str, path: str, value: Any) -> Case:
        return "record-" + name, cause, "Manifest: tables", at(path, value)

    yield case("kernels-object", "expected a list of at most 65536 items", "kernels", {})
    yield case("kernel-text", "expected an object", "kernels.0", "scale")
    yield case("kernel-no-name", "kernels[0] has no `name`", "kernels.0.name", None)
    yield case("word", "expected one of int, bool, float, dtype, string", "kernels.0.params.0.kind", "tensor")
    yield case("bool", "expected true or false", "kernels.0.persistent", 1)
    yield case("text-long", "expected a text of at most 4096 bytes", "kernels.0.name", "n" * 4097)
    yield case("rank", "expected an integer from 0 to 16", "kernels.0.args.0.rank", 17)
    yield case("power-of-two", "expected a power of two up to 4096", "instances.0.facts.0.align", 24)
    yield case("threads", "expected an integer from 1 to 1024", "instances.1.launch.threads", 0)
    yield case("count-text", "expected a number", "instances.0.flops.0.count", "2")
    yield case("factor-word", "expected", "instances.0.flops.0.factors.0", ["extent", 0, 1])
    yield case(
        "factor-operands", "expected a list of a name and 2 numbers", "instances.0.flops.0.factors.0", ["dim", 0]
    )
    yield case("factor-size", "expected a size above 0", "instances.0.flops.0.factors.0", ["tiles", 0, 1, 0])
    yield case("value-object", "expected a list of at most 4096 items", "ops.1.arguments.3.default", {})
    yield case("pair-word", "expected", "ops.1.backward.arguments.0", ["input", 0])
    yield case("scratch", "expected an integer from 0 to 1073741824", "instances.0.scratch", 2**30 + 1)
    yield case("schema-long", "expected a text of at most 1048576 bytes", "ops.0.schema", "s" * (2**20 + 1))
    unknown = "and requires `launch.sparse`, which this"
    yield "requires-unknown", unknown, "Requirements", at("requires", ["launch.sparse"])
    yield "requires-record", "and requires `sparse`, which this", "Requirements", at("requires", ["sparse"])
    yield "requires-type", "expected a list of at most 4096 items", "Requirements", at("requires", "launch.sparse")


def kernels() -> Iterator[Case]:
    def case(name: str, cause: str, path: str, value: Any) -> Case:
        return "kernel-" + name, cause, "Kernels", at(path, value)

    yield case("tuned-dtype", "is tuned, but neither an int nor a bool", "kernels.0.params.0.tuned", True)
    yield case("function-int", "names functions, but its kind is not 'string'", "kernels.0.params.1.function", True)
    yield case("view-without-rank", "has no `rank`", "kernels.0.args.0.rank", None)
    yield case("dtype-of-int", "has parameter 'N' as dtype, which is none", "kernels.0.args.0.dtype", "N")
    yield case("dtype-unknown", "has the unknown dtype 'int128'", "kernels.0.args.0.dtype", "int128")
    twice = "kernel 'scale' is listed twice"
    yield "kernel-twice", twice, "Kernels", lambda m, s: m["kernels"].append(m["kernels"][0])


def instances() -> Iterator[Case]:
    def case(name: str, cause: str, path: str, value: Any) -> Case:
        return "instance-" + name, cause, "Instances", at(path, value)

    yield case("kernel", "but there are 1 kernels", "instances.0.kernel", 1)
    yield case("params-few", "has 1 params, its kernel 2", "instances.0.params", ["float32"])
    yield case("param-kind", "has a parameter of the wrong kind", "instances.0.params.1", 8.0)
    yield case("param-dtype", "has a parameter of the wrong kind", "instances.0.params.0", "real")
    yield case("dtypes-few", "has 1 dtypes, its kernel 3 arguments", "instances.0.dtypes", ["float32"])
    yield case("fact-of-scalar", "names an argument that is no view", "instances.0.facts.0.arg", 2)
    yield case("fact-unit", "has `unit` 2 for a view of rank 2", "instances.0.facts.0.unit", 2)
    yield case("fact-outer", "has `outer` 3 for a view of rank 2", "instances.0.facts.1.outer", 3)
    yield case("fact-divisor", "states a divisor without a unit dimension", "instances.0.facts.0.unit", None)
    yield case("section-missing", "is said to be in section 'none', which is missing", "instances.0.section", "none")
    yield case(
        "section-kind", "is said to be in section 'docs/readme', which is of", "instances.0.section", "docs/readme"
    )
    yield case("section-of-cpu", "is said to be in section 'host', which is of", "instances.1.section", "host")
    yield case("blocks", "has a launch of 256 blocks with 128 threads", "instances.1.launch.blocks", 256)
    number = "is no number of a launch"
    yield case("count-place", number, "instances.0.flops.0.factors.1", ["count", ["dim", 2, 0]])
    yield case("count-few", "finds too few or too many numbers", "instances.0.flops.0.factors.1", ["count", 1, "+"])
    yield case("count-left", "has a count that leaves 2 numbers", "instances.0.flops.0.factors.1", ["count", 1, 2])
    many = ["count", *[1] * 33, *["+"] * 31]
    yield case("count-many", "finds too few or too many numbers", "instances.0.flops.0.factors.1", many)
    yield case("factor", "has a factor of no view's dimension", "instances.0.flops.0.factors.0", ["dim", 0, 2])
    map_ = "instances.1.launch.tensor_maps.0."
    yield case("map-of-scalar", "names an argument that is no view of 1 to 5 dimensions", map_ + "arg", 2)
    yield case("map-swizzle", "has a swizzle that is not 0, 32, 64 or 128", map_ + "swizzle", 16)
    yield case("map-unit", "has `unit` 2 for a view of rank 2", map_ + "unit", 2)
    yield case("map-box", "has a box of 1 dimensions for a view of 2", map_ + "box", [8])
    yield case("map-rows", "are no multiple of 16 or more than is swizzled", map_ + "box", [8, 33])
    yield case("map-facts", "needs facts that make the address and the strides of", "instances.1.facts", [])
    window = {key: [] for key in ("counts", "strides", "starts", "steps", "taps")}
    yield case(
        "map-window", "has a window over a view that is not of images with channels last", map_ + "window", window
    )

    def work(m: dict[str, Any], _: Any) -> None:
        m["kernels"][0]["persistent"] = True
        m["instances"][0]["work"] = {"flops_per_cycle": 1, "bytes_per_cycle": 1}

    yield "instance-work-tiles", "has `work`, but does not say how many tiles there are", "Work", work


def ops() -> Iterator[Case]:
    def case(name: str, cause: str, path: str, value: Any) -> Case:
        return "op-" + name, cause, "Ops", at(path, value)

    yield case("name", "is no name of the form `namespace::name`", "ops.0.name", "copy")
    yield case("name-dunder", "is no name of the form `namespace::name`", "ops.0.name", "my::__copy__")
    yield case("namespace", "is in a namespace of PyTorch's own ops", "ops.0.name", "aten::copy")
    yield case("reference", "is its own reference", "ops.0.reference", "my::copy")
    yield case("schema", "has the schema 'copy(Tensor y) -> Tensor', but", "ops.0.schema", "copy(Tensor y) -> Tensor")
    yield case("argument-name", "has an argument 'a-b', which is no name", "ops.0.arguments.0.name", "a-b")
    yield case("argument-type", "has the unknown type 'complex'", "ops.0.arguments.0.type", "complex")
    yield case("argument-twice", "has two arguments 'x'", "ops.1.arguments.1.name", "x")
    yield case("argument-mut", "writes argument 'f', which is no tensor", "ops.1.arguments.1.mut", True)
    yield case("default-kind", "has a default that does not fit its type", "ops.1.arguments.1.default", "a")
    yield case("default-quote", "has a default of 's' with quotes", "ops.1.arguments.4.default", '"')
    yield case("result", "has the result type 'int'; only tensors are possible", "ops.0.results.0", "int")
    yield case("plan-kind", "is said to be in section 'docs/readme', which is of", "ops.0.plan", "docs/readme")
    yield case("plan-missing", "has no section 'plan/none'", "ops.0.plan", "plan/none")
    yield "op-twice", "op 'my::copy' is listed twice", "Ops", lambda m, s: m["ops"].append(m["ops"][0])
    back = "ops.1.backward."
    yield case("backward-unknown", "which is no op of the package", back + "op", "my::none")
    yield case("backward-of-backward", "which has one itself", back + "op", "my::scale")
    yield case("backward-few", "gives its backward 1 arguments", back + "arguments", [["gradient", 0]])
    yield case("backward-order", "number 1, which it does not have", back + "arguments.0", ["gradient", 1])
    yield case("backward-kind", "which is another kind", back + "arguments.1", ["argument", 0])
    yield case("backward-needs", "whether a gradient is needed, but", back + "arguments.1", ["needs", 0])
    none = "has a backward that takes no gradient"
    yield case("backward-no-gradient", none, back + "arguments.0", ["argument", 0])


def tuning() -> Iterator[Case]:
    def case(name: str, cause: str, change: Callable[[list[dict[str, Any]]], Any]) -> Case:
        def edit(_: dict[str, Any], sections: list[dict[str, Any]]) -> None:
            table = json.loads(sections[5]["bytes"])
            change(table["rows"])
            sections[5]["bytes"] = json.dumps(table, sort_keys=True, separators=(",", ":")).encode()

        return "tuning-" + name, cause, "Tuning table", edit

    yield case("kernel", "the package has no kernel 'other'", lambda rows: rows[0].update(kernel="other"))
    yield case("instance", "the package has no such instance of 'scale'", lambda rows: rows[0].update(choice={"N": 16}))
    params = "are not the parameters of 'scale'"
    yield case("params", params, lambda rows: rows[0].update(params={}))
    yield case("shapes", "are not those of the kernel's arguments and its grid", lambda rows: rows[0]["shapes"].pop())
    yield case("class", "its `shapes` are no classes of extents", lambda rows: rows[0].update(shapes=[[9], [], [], []]))
    wrong = [[4, 11], [4, 10], [], []]
    yield case("measured", "what it `measured` is not of its `shapes`", lambda rows: rows[0].update(measured=wrong))
    yield case("twice", "there is another one for the same calls", lambda rows: rows.append(rows[0]))
    yield case("order", "it stands behind a greater one", lambda rows: rows.append(rows[0] | {"device": "1 threads"}))
    kind = "the tuning table is said to be in section 'tuning', which is of"
    yield "tuning-kind", kind, "Tuning table", lambda m, s: s[5].update(kind="docs")
    form = lambda m, s: s[5].update(bytes=b'{"format":2,"rows":[]}')  # noqa: E731
    yield "tuning-format", "is no tuning table of format 1", "Tuning table", form


def manifest_cases() -> Iterator[Case]:
    for cases in (records, kernels, instances, ops, tuning):
        yield from cases()
