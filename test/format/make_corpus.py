"""Writes the conformance corpus: small packages, good and bad, with the expected cause of each refusal.

Readers of the format are tested with test/format/corpus and its `index.json`, which names every file. Files that are
there stay: a rule of the format keeps its file for ever. Called without arguments it writes what is missing.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

from corpus_code import code_cases, plan_cases  # noqa: E402
from format_reader import bytecode, canonical, container, ed25519, host_object  # noqa: E402
from format_reader.bytecode import Function, Instruction, Plan  # noqa: E402

CORPUS = FOLDER / "corpus"
SECRET = bytes(range(32))
Manifest = dict[str, Any]
PLAN = Plan([b"my::copy", b"x"], [Function("my::copy", [("x", False)], "t", "tt", [])])
PLAN.functions[0].code = [Instruction("empty_like", [1], [0]), Instruction("ret", [], [1])]


def base() -> tuple[Manifest, list[dict[str, Any]]]:
    """Returns the manifest and the sections of a package with a bit of everything."""
    kernel = {
        "name": "scale",
        "params": [{"name": "T", "kind": "dtype"}, {"name": "N", "kind": "int", "tuned": True}],
        "args": [
            {"name": "x", "kind": "view", "dtype": "T", "rank": 2, "mut": False},
            {"name": "y", "kind": "view", "dtype": "T", "rank": 2, "mut": True},
            {"name": "n", "kind": "scalar", "dtype": "index"},
        ],
    }
    cpu = {
        "kernel": 0,
        "params": ["float32", 8],
        "facts": [{"arg": 0, "unit": 1, "align": 16, "divisible": 4}, {"arg": 1, "unit": 1, "index": 32, "outer": 1}],
        "target": "x86-64-v3",
        "section": "host",
        "symbol": "entry",
        "flops": [{"count": 2.5, "factors": [["dim", 0, 1], ["count", ["grid", 0], 2, "//"]]}],
    }
    gpu = {
        "kernel": 0,
        "params": ["float32", 8],
        "facts": [{"arg": 0, "unit": 1, "align": 16, "divisible": 4}],
        "target": "sm_90a",
        "section": "gpu",
        "symbol": "entry",
        "launch": {"threads": 128, "tensor_maps": [{"arg": 0, "box": [8, 32], "swizzle": 128, "unit": 1}]},
    }
    op = {
        "name": "my::copy",
        "schema": "copy(Tensor x) -> Tensor",
        "arguments": [{"name": "x", "type": "Tensor"}],
        "results": ["Tensor"],
        "plan": "plan/copy",
    }
    backward = {"op": "my::copy_backward", "arguments": [["gradient", 0], ["argument", 1]]}
    scale = {
        "name": "my::scale",
        "schema": 'scale(Tensor x, float f=1e-05, int? n=None, int[] d=[1, 2], str s="a", ScalarType t=int8) -> Tensor',
        "arguments": [
            {"name": "x", "type": "Tensor"},
            {"name": "f", "type": "float", "default": 1e-05},
            {"name": "n", "type": "int?", "default": None},
            {"name": "d", "type": "int[]", "default": [1, 2]},
            {"name": "s", "type": "str", "default": "a"},
            {"name": "t", "type": "ScalarType", "default": "int8"},
        ],
        "results": ["Tensor"],
        "plan": "plan/scale",
        "backward": backward,
    }
    gradient = {
        "name": "my::copy_backward",
        "schema": "copy_backward(Tensor g, float f) -> Tensor",
        "arguments": [{"name": "g", "type": "Tensor"}, {"name": "f", "type": "float"}],
        "results": ["Tensor"],
        "plan": "plan/gradient",
    }
    row = {"device": "16 threads", "kernel": "scale", "params": {"T": "float32"}, "choice": {"N": 8}}
    row |= {"target": "x86-64-v3", "variant": "", "shapes": [[4, 10], [4, 10], [], []]}
    table = canonical.write({"format": 1, "rows": [row]}).encode()
    sections = [
        {"name": "host", "kind": "host-object", "bytes": host_object.Image().bytes(), "compression": "zstd"},
        {"name": "gpu", "kind": "cubin", "bytes": b"\x7fELF"},
        {"name": "plan/copy", "kind": "plan", "bytes": bytecode.encode(PLAN), "required": True},
        {"name": "plan/scale", "kind": "plan", "bytes": plan_of("my::scale", "tfilsd")},
        {"name": "plan/gradient", "kind": "plan", "bytes": plan_of("my::copy_backward", "tf")},
        {"name": "tuning", "kind": "tuning", "bytes": table},
        {"name": "docs/readme", "kind": "docs", "bytes": b"a note" * 20, "compression": "zstd"},
    ]
    ops = [op, scale, gradient]
    return {"kernels": [kernel], "instances": [cpu, gpu], "ops": ops, "producer": {"kpkg": "0"}}, sections


def plan_of(name: str, types: str) -> bytes:
    """Returns a plan with parameters of these types that returns a copy's memory."""
    parameters = [(f"a{k}", False) for k in range(len(types))]
    code = [Instruction("empty_like", [len(types)], [0]), Instruction("ret", [], [len(types)])]
    return bytecode.encode(Plan([b""], [Function(name, parameters, "t", types + "t", code)]))


class Corpus:
    """The files with their verdicts. An empty cause stands for a good file."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[bytes, str, str]] = {}

    def add(self, name: str, data: bytes, cause: str = "", rule: str = "") -> None:
        assert name not in self.files, name
        self.files[name] = (data, cause, rule)

    def changed(self, name: str, cause: str, rule: str, change: Callable[[Manifest, list[Any]], Any]) -> None:
        """Adds a package after a change of its manifest and sections, which are packed anew."""
        manifest, sections = base()
        change(manifest, sections)
        self.add(name, container.pack(manifest, sections), cause, rule)

    def table(self, name: str, cause: str, rule: str, change: Callable[[list[Any]], Any]) -> None:
        """Adds a package after a change of the manifest's list of sections, whose bytes stay."""
        manifest, sections = base()
        data = container.pack(manifest, sections[-2:-1] + [sections[-1] | {"bytes": b"a note" * 40}])
        self.retold(name, data, cause, rule, lambda m: change(m["sections"]))

    def retold(self, name: str, data: bytes, cause: str, rule: str, change: Callable[[Manifest], Any]) -> None:
        size = int.from_bytes(data[16:24], "little")
        manifest = json.loads(data[64 : 64 + size])
        for part in ("kernels", "instances", "ops"):
            manifest.pop(part, None)
        for section in manifest["sections"]:
            if section["kind"] == "tuning":
                section["kind"] = section["name"] = "docs"
        change(manifest)
        sections = data[container.up(64 + size) :]
        self.add(name, container.assemble(canonical.write(manifest).encode(), sections), cause, rule)

    def write(self) -> None:
        CORPUS.mkdir(exist_ok=True)
        for name, (data, _, _) in self.files.items():
            path = CORPUS / f"{name}.kpkg"
            if not path.exists():
                path.write_bytes(data)
        index = {name: {"cause": cause, "rule": rule} for name, (_, cause, rule) in sorted(self.files.items())}
        (CORPUS / "index.json").write_text(json.dumps(index, indent=1) + "\n")


def good(corpus: Corpus) -> None:
    manifest, sections = base()
    corpus.add("good-minimal", container.assemble(b'{"format":{"major":1,"minor":2},"sections":[]}'))
    corpus.add("good-everything", container.pack(manifest, sections))
    corpus.add("good-signed", container.pack(manifest, sections, SECRET))
    corpus.changed("good-absent", "", "Manifest: what may be absent", lambda m, s: (m.clear(), s.clear()))
    later = {"name": "x", "kind": "of-later-versions", "bytes": b"?"}

    def newer(m: Manifest, s: list[Any]) -> None:
        m["format"] = {"major": 1, "minor": 9}
        m["colour"] = m["kernels"][0]["colour"] = {"of": ["later versions", 1e300, 1e22, 1e15, 0.0001, -0.0]}
        m["requires"] = ["launch.tensor_maps"]
        s.insert(2, later)

    corpus.changed("good-newer-minor", "", "Compatibility", newer)
    corpus.changed("good-null", "", "null is an absent key", lambda m, s: m["kernels"][0].update(doc=None))
    corpus.changed(
        "good-unknown-target",
        "",
        "Targets",
        lambda m, s: m["instances"].append(m["instances"][0] | {"target": "riscv64", "section": "none"}),
    )


def header(corpus: Corpus) -> None:
    manifest, sections = base()
    whole = container.pack({}, sections[-1:])

    def changed(name: str, cause: str, at: int, value: int) -> None:
        corpus.add(name, whole[:at] + bytes([value]) + whole[at + 1 :], cause, "Layout")

    changed("header-magic", "wrong magic", 1, 0x6B)
    changed("header-major", "its format version is 2.2, this runtime reads 1.x", 8, 2)
    changed("header-minor", "the manifest's `format` is not the header's version", 10, 7)
    changed("header-zero-12", "reserved bytes of the header are not zero", 13, 1)
    changed("header-zero-24", "reserved bytes of the header are not zero", 31, 1)
    changed("header-length", "bytes, the limit is 67108864", 22, 1)
    changed("header-digest", "its manifest is damaged", 32, whole[32] ^ 1)
    corpus.add("header-short", whole[:63], "it has 63 bytes, a package has at least 64", "Layout")
    corpus.add("manifest-cut", whole[:100], "it ends within its manifest", "Layout")
    end = 64 + int.from_bytes(whole[16:24], "little")
    assert end % 64
    corpus.add("data-cut", whole[:end], "it ends before its first section", "Layout")
    changed("data-gap", "bytes between the manifest and the first section are not zero", end, 1)
    corpus.add("data-behind", whole + b"\0", "1 bytes follow the last section", "Layout")
    corpus.add("section-cut", whole[:-1], "it ends within section 'docs/readme'", "Layout")
    corpus.add("section-digest", whole[:-1] + b"?", "section 'docs/readme' is damaged", "Sections")


def spelling(corpus: Corpus) -> None:
    def text(name: str, cause: str, body: str) -> None:
        whole = '{"format":{"major":1,"minor":2},"sections":[],' + body + "}"
        corpus.add(name, container.assemble(whole.encode("utf-8", "surrogateescape")), cause, "Manifest")

    text("json-white-space", "is not canonical JSON", '"x": 1')
    text("json-unsorted", "is not canonical JSON", '"a":1')
    text("json-twice", "has the key 'x' twice in one object", '"x":{"x":1,"x":1}')
    text("json-exponent", "is not canonical JSON", '"x":1e2')
    text("json-float-as-python", "is not canonical JSON", '"x":1000000000000000.0')
    text("json-float-without-point", "is not canonical JSON", '"x":1e+2')
    text("json-minus-zero", "is not canonical JSON", '"x":-0')
    text("json-integer-of-65-bits", "is not canonical JSON", '"x":18446744073709551616')
    text("json-escape", "is not canonical JSON", r'"x":"\u0041"')
    text("json-nan", "is not JSON", '"x":NaN')
    text("json-out-of-range", "is not JSON", '"x":1e999')
    text("json-utf8", "is not JSON", '"x":"\udcff"')
    text("json-surrogate", "is not JSON", r'"x":"\ud800"')
    text("json-deep", "is nested deeper than 32", '"x":' + "[" * 32 + "]" * 32)
    text("good-json-deep", "", '"x":' + "[" * 31 + "]" * 31)
    text("good-json-numbers", "", '"x":[1e+15,999999999999999.9,0.0001,1e-05,-0.0,18446744073709551615,5e-324]')
    text("good-json-digits", "", '"x":[7.1135782437256335e-249,-1.0395142415632117e+15]')
    corpus.add("json-list", container.assemble(b"[]"), "its manifest is no JSON object", "Manifest")


def sections(corpus: Corpus) -> None:
    def entry(label: str, cause: str, /, **keys: Any) -> None:
        corpus.table("section-" + label, cause, "Sections", lambda table: table[1].update(keys))

    entry("name-twice", "is listed twice", name="docs")
    entry("name-empty", "has a name or kind that is empty or has control characters", name="")
    entry("name-control", "has a name or kind that is empty or has control characters", name="a\nb")
    entry("name-long", "expected a text of at most 512 bytes", name="n" * 513)
    entry(
        "unknown-required",
        "is required and of kind 'fpga', which this runtime of 1.2 does not know; the file is of 1.",
        kind="fpga",
        required=True,
    )
    entry("compression", "expected one of none, zstd", compression="lzma")
    entry("stored-differs", "is not compressed but `stored` differs from `size`", compression="none")
    entry("expands", "which may stand for at most", size=60 << 20)
    entry("kind-limit", "the limit of its kind 'plan' is 16777216", kind="plan", size=(16 << 20) + 1)
    entry("size-limit", "expected an integer from 0 to 2147483648", size=2**31 + 1)
    entry("size-float", "expected an integer", size=1.0)
    entry("digits", "`sha256` is not 64 lower-case hexadecimal digits", sha256="A" * 64)
    entry("signature-size", "is no Ed25519 key and signature", kind="signature", compression="none", size=7, stored=7)
    entry("hole", "starts at offset", offset=1024)
    entry("overlap", "starts at offset 0, expected", offset=0)
    for key in ("name", "kind", "offset", "size", "stored", "compression", "sha256", "required"):
        corpus.table(f"section-no-{key}", f"sections[1] has no `{key}`", "Sections", lambda t, key=key: t[1].pop(key))
    corpus.changed(
        "section-frame",
        "the zstd frame does not announce `size` bytes",
        "Sections",
        lambda m, s: s[0].update(size=100),
    )


def signatures(corpus: Corpus) -> None:
    manifest, parts = base()
    data = bytearray(container.pack(manifest, parts[-1:], SECRET))
    corpus.retold(
        "good-signature-broken", bytes(data), "", "Signatures", lambda m: m.update(producer={"kpkg": "other"})
    )
    other = ed25519.public_key(SECRET) + bytes(64)
    part = {"name": "s", "kind": "signature", "bytes": other}
    corpus.add("good-signature-zero", container.pack({}, [*parts[-1:], part]), "", "Signatures")


def main() -> None:
    from corpus_tables import manifest_cases

    corpus = Corpus()
    for add in (good, header, spelling, sections, signatures):
        add(corpus)
    for name, cause, rule, change in manifest_cases():
        corpus.changed(name, cause, rule, change)
    for name, cause, rule, plan in plan_cases(copy.deepcopy(PLAN)):
        corpus.changed(name, cause, rule, lambda m, s, plan=plan: s[2].update(bytes=plan))
    for name, cause, rule, image in code_cases():
        corpus.changed(name, cause, rule, lambda m, s, image=image: s[0].update(bytes=image))
    corpus.write()


if __name__ == "__main__":
    main()
