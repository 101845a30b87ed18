"""Checks what the manifest's records say of each other: kernels with their instances, ops with their schemas.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

from format_reader.container import Container
from format_reader.page import DTYPE_NUMBERS, DTYPES, Refused
from format_reader.records import get

Record = dict[str, Any]
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
CPU_TARGETS = {"x86-64-v3", "x86-64-v4", "x86-64-v4-bf16", "x86-64-v4-amx", "aarch64"}
TYPES = {"Tensor", "Tensor[]", "int", "float", "bool", "int[]", "ScalarType", "str"}


def is_view(kernel: Record, arg: int) -> bool:
    args = get("kernel", kernel, "args")
    return arg < len(args) and args[arg]["kind"] == "view"


def rank_of(kernel: Record, arg: int) -> int:
    return get("kernel", kernel, "args")[arg]["rank"]


def check_kernel(kernel: Record, where: str) -> None:
    params = {param["name"]: param for param in get("kernel", kernel, "params")}
    for index, param in enumerate(params.values()):
        if param.get("tuned") and param["kind"] not in ("int", "bool"):
            raise Refused(f"{where}.params[{index}] is tuned, but neither an int nor a bool")
        if param.get("function") and param["kind"] != "string":
            raise Refused(f"{where}.params[{index}] names functions, but its kind is not 'string'")
    for index, arg in enumerate(get("kernel", kernel, "args")):
        place, dtype = f"{where}.args[{index}]", get("argument", arg, "dtype")
        if arg["kind"] == "view" and arg.get("rank") is None:
            raise Refused(f"{place} has no `rank`")
        if dtype in params:
            if params[dtype]["kind"] != "dtype":
                raise Refused(f"{place} has parameter '{dtype}' as dtype, which is none")
        elif dtype and dtype != "index" and dtype not in DTYPE_NUMBERS:
            raise Refused(f"{place} has the unknown dtype '{dtype}'")


def fits_param(value: Any, kind: str) -> bool:
    match kind:
        case "bool":
            return isinstance(value, bool)
        case "int":
            return isinstance(value, int) and not isinstance(value, bool)
        case "float":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "dtype":
            return isinstance(value, str) and value in DTYPE_NUMBERS
        case _:
            return isinstance(value, str)


def dtypes_of(instance: Record, kernel: Record, where: str) -> list[str | None]:
    """Returns the dtype of each argument."""
    names, args = get("instance", instance, "dtypes"), get("kernel", kernel, "args")
    if names and len(names) != len(args):
        raise Refused(f"{where} has {len(names)} dtypes, its kernel {len(args)} arguments")
    values = dict(zip((p["name"] for p in get("kernel", kernel, "params")), instance.get("params") or [], strict=True))
    found = list[str | None]()
    for index, arg in enumerate(args):
        dtype = get("argument", arg, "dtype")
        dtype = "int64" if dtype == "index" and dtype not in values else values.get(dtype, dtype)
        if not dtype and names:
            dtype = names[index]
            if dtype not in DTYPE_NUMBERS:
                raise Refused(f"{where} has the unknown dtype '{dtype}'")
        if not dtype and arg["kind"] == "scalar":
            raise Refused(f"{where} does not say the dtype of scalar '{arg['name']}'")
        found.append(dtype or None)
    return found


def check_terms(terms: list[Record], key: str, kernel: Record, where: str) -> None:
    for index, term in enumerate(terms):
        for factor in get("term", term, "factors"):
            if factor[0] == "count":
                check_count(factor[1:], kernel, f"{where} {key}[{index}]")
            elif factor[0] != "blocks" and not (is_view(kernel, factor[1]) and factor[2] < rank_of(kernel, factor[1])):
                raise Refused(f"{where} {key}[{index}] has a factor of no view's dimension")


def check_count(steps: list[Any], kernel: Record, where: str) -> None:
    """Checks that a formula leaves one number and names what the kernel has."""
    height = 0
    for number, step in enumerate(steps, 1):
        height += -1 if isinstance(step, str) else 1
        if not 1 <= height <= 32:
            raise Refused(f"{where} has a count whose step {number} finds too few or too many numbers")
        if not isinstance(step, list):
            continue
        scalars = [not is_view(kernel, k) for k in range(len(get("kernel", kernel, "args")))]
        good = {
            "dim": lambda s: is_view(kernel, s[1]) and s[2] < rank_of(kernel, s[1]),
            "value": lambda s: s[1] < len(scalars) and scalars[s[1]],
            "grid": lambda s: s[1] < 3,
        }[step[0]](step)
        if not good:
            raise Refused(f"{where} has a count whose step {number} is no number of a launch")
    if height != 1:
        raise Refused(f"{where} has a count that leaves {height} numbers")


def check_fact(fact: Record, kernel: Record, where: str) -> None:
    if not is_view(kernel, fact["arg"]):
        raise Refused(f"{where} names an argument that is no view")
    rank, unit = rank_of(kernel, fact["arg"]), get("fact", fact, "unit")
    if unit is not None and unit >= rank:
        raise Refused(f"{where} has `unit` {unit} for a view of rank {rank}")
    if get("fact", fact, "outer") > rank:
        raise Refused(f"{where} has `outer` {fact['outer']} for a view of rank {rank}")
    if get("fact", fact, "divisible") > 1 and unit is None:
        raise Refused(f"{where} states a divisor without a unit dimension")


def check_tensor_map(entry: Record, instance: Record, kernel: Record, dtypes: list[str | None], where: str) -> None:
    arg, unit, box, swizzle = (entry[key] for key in ("arg", "unit", "box", "swizzle"))
    if not is_view(kernel, arg) or not 1 <= rank_of(kernel, arg) <= 5:
        raise Refused(f"{where} names an argument that is no view of 1 to 5 dimensions")
    rank, dtype = rank_of(kernel, arg), dtypes[arg]
    if dtype in (None, "bool"):
        raise Refused(f"{where} names an argument of a dtype that has no tensor maps")
    size = DTYPES[DTYPE_NUMBERS[dtype]][1] // 8
    if unit >= rank:
        raise Refused(f"{where} has `unit` {unit} for a view of rank {rank}")
    if swizzle not in (0, 32, 64, 128):
        raise Refused(f"{where} has a swizzle that is not 0, 32, 64 or 128")
    if len(box) != rank:
        raise Refused(f"{where} has a box of {len(box)} dimensions for a view of {rank}")
    if window := entry.get("window"):
        if rank < 3 or unit != rank - 1:
            raise Refused(f"{where} has a window over a view that is not of images with channels last")
        if any(extent != 1 for extent in box[1:-1]):
            raise Refused(f"{where} has a window and a box that is not of pixels and channels only")
        check_window(window, rank - 2, kernel, dtypes, where)
    row = box[unit] * size
    if row % 16 or (swizzle and row > swizzle):
        raise Refused(f"{where} has a box whose rows of {row} bytes are no multiple of 16 or more than is swizzled")
    for fact in get("instance", instance, "facts"):
        is_row = fact["arg"] == arg and fact.get("unit") == unit and get("fact", fact, "align") % 16 == 0
        if is_row and (rank == 1 or get("fact", fact, "divisible") * size % 16 == 0):
            return
    raise Refused(f"{where} needs facts that make the address and the strides of")


def check_window(window: Record, extents: int, kernel: Record, dtypes: list[str | None], where: str) -> None:
    for key in ("counts", "strides", "starts", "steps", "taps"):
        if len(window[key]) != extents:
            raise Refused(f"{where} has a window whose `{key}` are not as many as extents: {extents}")
    for key in ("counts", "strides", "starts", "steps"):
        for arg in window[key]:
            if arg >= len(dtypes):
                raise Refused(f"{where} has a window that names no argument")
            if is_view(kernel, arg) or dtypes[arg] != "int64":
                raise Refused(f"{where} has a window with an argument in `{key}` that is no Int")
    for arg, dimension in window["taps"]:
        if not is_view(kernel, arg):
            raise Refused(f"{where} has a window whose `taps` are not those of a view")
        if dimension >= rank_of(kernel, arg):
            raise Refused(f"{where} has a window that names no dimension")


def check_instance(instance: Record, kernels: list[Record], where: str) -> None:
    if instance["kernel"] >= len(kernels):
        raise Refused(f"{where}.kernel is {instance['kernel']}, but there are {len(kernels)} kernels")
    kernel = kernels[instance["kernel"]]
    where += f" ({kernel['name']})"
    declared, values = get("kernel", kernel, "params"), get("instance", instance, "params")
    if len(declared) != len(values):
        raise Refused(f"{where} has {len(values)} params, its kernel {len(declared)}")
    for param, value in zip(declared, values, strict=True):
        if not fits_param(value, param["kind"]):
            raise Refused(f"{where} has a parameter of the wrong kind: {value}")
    dtypes = dtypes_of(instance, kernel, where)
    for index, fact in enumerate(get("instance", instance, "facts")):
        check_fact(fact, kernel, f"{where} facts[{index}]")
    if launch := instance.get("launch"):
        if get("launch", launch, "blocks") > launch["threads"]:
            raise Refused(f"{where} has a launch of {launch['blocks']} blocks with {launch['threads']} threads")
        for index, entry in enumerate(get("launch", launch, "tensor_maps")):
            check_tensor_map(entry, instance, kernel, dtypes, f"{where} launch tensor_maps[{index}]")
    for key in ("flops", "bytes", "tiles"):
        check_terms(get("instance", instance, key), key, kernel, where)
    if work := instance.get("work"):
        check_terms(get("work", work, "flops"), "work flops", kernel, where)
        if kernel.get("persistent") and not get("instance", instance, "tiles"):
            raise Refused(f"{where} has `work`, but does not say how many tiles there are")


def spelled(value: Any, kind: str) -> str:
    """Returns a default as schemas spell it."""
    if value is None or isinstance(value, bool):
        return str(value)
    if kind == "float":
        return spelled_float(float(value))
    if isinstance(value, list):
        return "[" + ", ".join(map(str, value)) + "]"
    return f'"{value}"' if kind == "str" else str(value)


def spelled_float(value: float) -> str:
    """Returns the shorter one of digits with a point and digits with an exponent, at best the first."""
    if not math.isfinite(value):
        return str(value)
    mantissa, _, exponent = f"{value:e}".partition("e")
    digits = repr(value)
    for precision in range(17):
        if float(f"{value:.{precision}e}") == value:
            mantissa, _, exponent = f"{value:.{precision}e}".partition("e")
            break
    scientific = f"{mantissa}e{exponent}"
    fixed = f"{value:.{max(0, precision - int(exponent))}f}"
    digits = fixed if len(fixed) <= len(scientific) else scientific
    return digits if re.search(r"[.e]", digits) else digits + ".0"


def schema_of(op: Record) -> str:
    letters, parts = iter("abcdefghijklmnopqrstuvwxyz"), []
    for argument in get("op", op, "arguments"):
        kind = argument["type"].rstrip("?")
        text = argument["type"]
        if argument.get("mut") or "(" in text:
            end = text[-1:] if text.endswith("?") else "[]" if text.endswith("[]") else ""
            kind, text = "Tensor", f"Tensor({next(letters)}!){end}"
        text += " " + argument["name"]
        if "default" in argument:
            text += "=" + spelled(argument["default"], kind)
        parts.append(text)
    results = get("op", op, "results")
    arrow = results[0] if len(results) == 1 else "(" + ", ".join(results) + ")"
    return f"{op['name'].rpartition(':')[2]}({', '.join(parts)}) -> {arrow}"


def is_word(text: str) -> bool:
    return bool(WORD.fullmatch(text)) and not (text.startswith("__") and text.endswith("__"))


def check_argument(argument: Record) -> None:
    """Checks the type of an op's argument, and that the default is one of its values."""
    base = re.sub(r"^Tensor\(\w!\)", "Tensor", argument["type"].removesuffix("?"))
    if base not in TYPES or argument["type"] == "Tensor[]?":
        raise Refused(f"argument '{argument['name']}' has the unknown type '{argument['type']}'")
    if "default" not in argument:
        return
    value = argument["default"]
    good = {
        "int": lambda: fits_param(value, "int"),
        "float": lambda: fits_param(value, "float"),
        "bool": lambda: isinstance(value, bool),
        "int[]": lambda: isinstance(value, list),
        "ScalarType": lambda: isinstance(value, str) and value in DTYPE_NUMBERS,
        "str": lambda: isinstance(value, str),
        "Tensor": lambda: False,
        "Tensor[]": lambda: False,
    }[base]()
    if not good and not (value is None and argument["type"].endswith("?")):
        raise Refused(f"argument '{argument['name']}' has a default that does not fit its type: {value}")


def check_op(op: Record) -> None:
    name, arguments = op["name"], get("op", op, "arguments")
    where = f"op '{name}'"
    for argument in arguments:
        try:
            check_argument(argument)
        except Refused as refused:
            raise Refused(f"{where} {refused}") from None
    for result in get("op", op, "results"):
        if result not in ("Tensor", "Tensor?"):
            raise Refused(f"{where} has the result type '{result}'; only tensors are possible")
    space, colons, own = name.partition("::")
    if not colons or not is_word(space) or not is_word(own):
        raise Refused(f"{where} is no name of the form `namespace::name`")
    if space in ("aten", "prim", "prims", "torch", "onnx"):
        raise Refused(f"{where} is in a namespace of PyTorch's own ops")
    if op.get("reference") == name:
        raise Refused(f"{where} is its own reference")
    names = Counter(argument["name"] for argument in arguments)
    for argument in arguments:
        key, default = argument["name"], argument.get("default")
        if not is_word(key):
            raise Refused(f"{where} has an argument '{key}', which is no name")
        if names[key] > 1:
            raise Refused(f"{where} has two arguments '{key}'")
        if argument.get("mut") and not argument["type"].startswith("Tensor"):
            raise Refused(f"{where} writes argument '{key}', which is no tensor")
        if argument["type"].startswith("str") and default and not re.fullmatch(r"[ !#-\[\]-~]*", default):
            raise Refused(f"{where} has a default of '{key}' with quotes, backslashes or characters")
    if op["schema"] != schema_of(op):
        raise Refused(f"{where} has the schema '{op['schema']}', but its arguments and results are those of")


def is_tensor(argument: Record) -> bool:
    return argument["type"].startswith("Tensor")


def writes(op: Record) -> bool:
    return any(argument.get("mut") or "(" in argument["type"] for argument in get("op", op, "arguments"))


def check_backward(op: Record, ops: dict[str, Record]) -> None:
    backward, where = op["backward"], f"op '{op['name']}'"
    other = ops.get(backward["op"])
    if not other:
        raise Refused(f"{where} has the backward '{backward['op']}', which is no op of the package")
    if other.get("backward"):
        raise Refused(f"{where} has the backward '{backward['op']}', which has one itself")
    if writes(op) or writes(other):
        raise Refused(f"{where} has a backward, but it or that one writes to its arguments")
    given, own, taken = backward["arguments"], get("op", op, "arguments"), get("op", other, "arguments")
    if len(given) != len(taken):
        raise Refused(f"{where} gives its backward {len(given)} arguments, '{other['name']}' has {len(taken)}")
    if len(get("op", other, "results")) != sum(map(is_tensor, own)):
        raise Refused(f"{where} has a backward with {len(get('op', other, 'results'))} results, not one for each")
    gradients = 0
    for (kind, index), into in zip(given, taken, strict=True):
        start = f"{where} gives argument '{into['name']}' of its backward "
        results = get("op", op, "results")
        if kind == "deterministic":
            if into["type"] != "bool" or index:
                raise Refused(start + "whether it has to be deterministic, but that is number 0 and a bool")
            continue
        if index >= len(results if kind in ("gradient", "result") else own):
            raise Refused(start + f"number {index}, which it does not have")
        if kind == "gradient":
            if index != gradients:
                raise Refused(start + "a gradient out of order")
            gradients += 1
        if kind in ("gradient", "result") and (not is_tensor(into) or results[index] != "Tensor"):
            raise Refused(start + "a tensor, but one of the two is another kind")
        if kind == "needs" and (into["type"] != "bool" or not is_tensor(own[index])):
            raise Refused(start + "whether a gradient is needed, but one of the two is another kind")
        if kind == "argument" and own[index]["type"] not in (into["type"], into["type"].removesuffix("?")):
            raise Refused(start + f"'{own[index]['name']}', which is another kind")
    if not gradients:
        raise Refused(f"{where} has a backward that takes no gradient")


def check_code_section(container: Container, instance: Record, kernel: Record) -> None:
    """Checks that the section of an instance has code for its target; other targets are of later versions."""
    if instance["target"] in CPU_TARGETS:
        kinds = ["host-object"]
    elif re.fullmatch(r"(sm|compute)_\d+[a-z]?", instance["target"]):
        kinds = ["cubin", "ptx"]
    else:
        return
    section, name = container.find(instance["section"]), instance["section"]
    if not section:
        raise Refused(f"{kernel['name']} is said to be in section '{name}', which is missing")
    if section["kind"] not in kinds:
        raise Refused(f"{kernel['name']} is said to be in section '{name}', which is of kind '{section['kind']}'")


def twice(names: list[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


def check_tables(container: Container) -> None:
    """Checks everything that a package's manifest says when it is opened."""
    manifest = container.manifest
    kernels, instances, ops = (get("manifest", manifest, key) for key in ("kernels", "instances", "ops"))
    for index, kernel in enumerate(kernels):
        check_kernel(kernel, f"kernels[{index}]")
    if name := twice([kernel["name"] for kernel in kernels]):
        raise Refused(f"kernel '{name}' is listed twice")
    for index, instance in enumerate(instances):
        check_instance(instance, kernels, f"instances[{index}]")
    for op in ops:
        check_op(op)
    for op in ops:
        if op.get("backward"):
            check_backward(op, {other["name"]: other for other in ops})
    if name := twice([op["name"] for op in ops]):
        raise Refused(f"op '{name}' is listed twice")
    for instance in instances:
        check_code_section(container, instance, kernels[instance["kernel"]])
    for op in ops:
        for key in ("plan", "shape_plan", "gpu_plan", "gpu_shape_plan"):
            section = container.find(get("op", op, key))
            if section and section["kind"] != "plan":
                raise Refused(f"the plan of {op['name']} is said to be in section '{section['name']}', which is of")
