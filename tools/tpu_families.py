"""Finds out which shipped ops have kernels for TPUs, and writes docs/tpu-families.md.

Each op runs one float32 sample of its spec in Pallas' interpreter, and is lowered for TPUs. This takes an hour. Results
of a family stay in build/tpu-families until it runs again. So the page can be written again from a part of them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import os
import re
import selectors
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "test" / "python")]

from conftest import BUILD, COMMAND, FAMILIES  # noqa: E402

PAGE = ROOT / "docs" / "tpu-families.md"
RESULTS = BUILD / "tpu-families"
LIMIT = 180  # seconds for an op
MOST_NAMES = 12  # ops whose names a row lists

HEAD = """# Ops that have kernels for TPUs

`tools/tpu_families.py` writes this page. For each shipped op it takes the smallest float32 call of its spec. The call
runs in Pallas' interpreter of TPUs, its results are compared with float64, and it is lowered for TPUs ahead of time. No
op has run on a TPU: [tpu.md](tpu.md).

| verdict | meaning |
|---|---|
| passes | the result is right, and the call is lowered |
| refused | an error names what is missing, before anything runs |
| no float32 | the spec has no call of that dtype alone |
| fails | the interpreter or the lowering fails, or the result is wrong |

"""


# ===--- One family, in its own process ---=== #


def smallest(samples: Any) -> Any:
    """Returns the sample with the fewest elements, but some, among the first ones."""
    import torch

    def size(sample: Any) -> int:
        values = [*sample.args, *sample.kwargs.values()]
        return sum(value.numel() for value in values if isinstance(value, torch.Tensor))

    found = [sample for sample, _ in zip(samples, range(40)) if size(sample)]
    return min(found, key=size, default=None)


def verdict(spec: Any, library: Any) -> tuple[str, str]:
    """Returns what TPUs do with an op, and a message where it does not pass."""
    import jax
    import jax.numpy as jnp
    import kpkg
    import numpy as np
    import torch
    from opspec import as_tuple

    if torch.float32 not in spec.dtypes:
        return "no float32", ""
    sample = smallest(spec.samples(torch.float32, torch.Generator().manual_seed(0)))
    if sample is None:
        return "no float32", ""

    def narrow(tensor: Any) -> Any:
        array = tensor.detach().contiguous().numpy()
        return jnp.asarray(array.astype(np.int32) if array.dtype == np.int64 else array)

    try:
        arrays = sample.map(narrow)
        with kpkg.jax.tpu_interpreter():
            results = as_tuple(library[spec.name](*arrays.args, **arrays.kwargs))
        tensors = [None if each is None else torch.from_numpy(np.array(each)) for each in results]
        wide = [each.long() if each is not None and each.dtype == torch.int32 else each for each in tensors]
        try:
            spec.check(sample, tuple(tensors))
        except AssertionError:  # an op that returns int64 returns int32 in JAX
            spec.check(sample, tuple(wide))
        given = [each for each in (*arrays.args, *arrays.kwargs.values()) if isinstance(each, jax.Array)]

        def call(*tensors: Any) -> Any:
            rest = iter(tensors)

            def place(value: Any) -> Any:
                return next(rest) if isinstance(value, jax.Array) else value

            placed = [place(value) for value in arrays.args]
            return library[spec.name](*placed, **{name: place(value) for name, value in arrays.kwargs.items()})

        jax.export.export(jax.jit(call), platforms=["tpu"])(*given)
    except (kpkg.KernelError, TypeError, AttributeError) as error:
        return "refused" if isinstance(error, kpkg.KernelError) else "fails", short(error)
    except Exception as error:  # whatever JAX and the specs raise
        return "fails", f"{type(error).__name__}: {short(error)}"
    return "passes", ""


def short(error: Exception) -> str:
    text = str(error).strip().split("\n")[0]
    text = re.sub(r"^kpkg::\w+: ", "", text)
    return re.sub(r"; building with .*", "", text)[:160]


def run_family(family: str, package: str, skipped: list[str]) -> None:
    """Prints the op, its verdict and a message as a line of JSON, for each op but the skipped ones."""
    import kpkg.jax
    from opspec import load_specs

    library = kpkg.jax.load(package)
    for spec in load_specs():
        if spec.name in list(library._ops) and spec.name not in skipped:
            print(json.dumps(["begins", spec.name]), flush=True)
            print(json.dumps([spec.name, *verdict(spec, library)]), flush=True)


# ===--- All families ---=== #


def lines_of(process: subprocess.Popen[str]) -> Any:
    """Yields lines of a process, and ends it where the next one takes too long."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(LIMIT):
            line = process.stdout.readline()
            if not line:
                return
            yield line
    process.kill()


def with_reason(message: str, reasons: dict[str, str]) -> str:
    """Returns a message with what the compiler says of a kernel that has no instance."""
    found = re.search(r"kernel (\w+) has no instance for tpu", message)
    return f"{message}: {reasons[found[1]]}" if found and found[1] in reasons else message


def survey(family: str) -> list[list[str]]:
    """Returns (op, verdict, message) for the ops of a family."""
    package = BUILD / "test-packages" / "tpu" / f"{family}.kpkg"
    package.parent.mkdir(parents=True, exist_ok=True)
    build = [COMMAND, "build", ROOT / "kernels_src" / family, "-o", package, "--target", "tpu", "--dtypes", "float32"]
    built = subprocess.run(build, capture_output=True, text=True)
    if built.returncode:
        message = re.search(r"error: (?:.*?: in .*?: )?(.*)", built.stderr)
        return [["all ops", "refused", message[1] if message else built.stderr]]
    reasons = dict(re.findall(r"kernel `(\w+)` left out for tpu, which does not take (.*)", built.stderr))
    # The interpreter's callbacks wait for threads of XLA.
    environment = {**os.environ, "NPROC": "16", "PYTHONPATH": str(BUILD / "python")}
    rows: list[list[str]] = []
    while True:
        command = [sys.executable, __file__, "--family", family, str(package), *(row[0] for row in rows)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        running = ""
        for line in lines_of(process):
            row = json.loads(line)
            running = row[1] if row[0] == "begins" else ""
            if row[0] != "begins":
                rows.append([*row[:2], with_reason(row[2], reasons)])
        process.wait()
        if not running:
            return rows
        rows.append([running, "fails", f"no result, or over {LIMIT} seconds"])


def page() -> str:
    """Returns the page from the results that are there."""
    results = {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    results = {family: rows for family, rows in results.items() if rows}
    every = [row for rows in results.values() for row in rows]
    counts = {name: sum(row[1] == name for row in every) for name in ("passes", "refused", "no float32", "fails")}
    text = HEAD + "Of {} ops {} pass, {} are refused, {} have no float32, and {} fail.\n".format(
        len(every), *counts.values()
    )
    if missing := [family for family in FAMILIES if family not in results]:
        text += "\nFamilies that have not run yet:\n\n" + "".join(f"* {family}\n" for family in missing)
    for family, rows in results.items():
        text += f"\n## {family}\n\n| verdict | ops | message |\n|---|---|---|\n"
        groups: dict[tuple[str, str], list[str]] = defaultdict(list)
        for op, verdict, message in rows:
            groups[verdict, message].append(op.removeprefix("kpkg::"))
        for (verdict, message), ops in sorted(groups.items(), key=lambda group: list(counts).index(group[0][0])):
            names = ", ".join(f"`{op}`" if op != "all ops" else op for op in sorted(ops))
            if len(ops) > MOST_NAMES:
                names = f"{len(ops)} ops"
            cell = message.replace("|", "\\|").replace("<", "&lt;")
            text += f"| {verdict} | {names} | {cell} |\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY", help="those to run; all if none is named")
    parser.add_argument("--family", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.family:
        family, package, *skipped = given.family
        run_family(family, package, skipped)
        return
    RESULTS.mkdir(parents=True, exist_ok=True)
    for family in given.families or FAMILIES:
        rows = survey(family)
        (RESULTS / f"{family}.json").write_text(json.dumps(rows))
        print(family, *(f"{row[0]}: {row[1]} {row[2]}" for row in rows), sep="\n  ", flush=True)
        PAGE.write_text(page())


if __name__ == "__main__":
    main()
