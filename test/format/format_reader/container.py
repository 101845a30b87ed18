"""Reads the container of a package: header, manifest, sections, digests, signatures. Writes packages for tests.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import re
from typing import Any

from format_reader import canonical, ed25519
from format_reader.page import KINDS, Refused
from format_reader.records import check_record, unknown_requirement

MAGIC = b"\x89KPKG\r\n\x1a"
MAJOR, MINOR = 1, 2
MOST_MANIFEST = 64 << 20
ALIGNMENT = 64
SIGNED = b"kpkg package signature 1\n"


def zstd() -> Any:
    """Returns the system's zstd, which Python 3.11 lacks."""
    library = ctypes.CDLL(ctypes.util.find_library("zstd"))
    for name in ("ZSTD_decompress", "ZSTD_compress", "ZSTD_compressBound", "ZSTD_getFrameContentSize"):
        getattr(library, name).restype = ctypes.c_uint64
    return library


def decompressed(data: bytes, size: int) -> bytes:
    """Returns the contents of one frame that announces `size` bytes."""
    library = zstd()
    if library.ZSTD_getFrameContentSize(data, ctypes.c_uint64(len(data))) != size:
        raise Refused("the zstd frame does not announce `size` bytes")
    room = ctypes.create_string_buffer(max(size, 1))
    written = library.ZSTD_decompress(room, ctypes.c_uint64(size), data, ctypes.c_uint64(len(data)))
    if library.ZSTD_isError(ctypes.c_uint64(written)) or written != size:
        raise Refused("does not decompress")
    return room.raw[:size]


def compressed(data: bytes) -> bytes:
    library = zstd()
    room = ctypes.create_string_buffer(library.ZSTD_compressBound(ctypes.c_uint64(len(data))))
    size = library.ZSTD_compress(room, ctypes.c_uint64(len(room)), data, ctypes.c_uint64(len(data)), 3)
    return room.raw[:size]


def up(offset: int) -> int:
    return (offset + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def signed_text(manifest: dict[str, Any]) -> bytes:
    """Returns the text that signatures sign."""
    rest = [section for section in manifest["sections"] if section["kind"] != "signature"]
    return SIGNED + canonical.write({**manifest, "sections": rest}).encode()


class Container:
    """A package whose header, manifest and list of sections are checked, with the sections' stored bytes."""

    def __init__(self, data: bytes):
        self.manifest = self._read_manifest(data)
        self.sections: dict[str, dict[str, Any]] = {}
        self._stored: dict[str, bytes] = {}
        self._read_sections(data, 64 + int.from_bytes(data[16:24], "little"))

    def _read_manifest(self, data: bytes) -> dict[str, Any]:
        if len(data) < 64:
            raise Refused(f"it has {len(data)} bytes, a package has at least 64")
        if data[:8] != MAGIC:
            raise Refused("it is not a kpkg package (wrong magic)")
        major, minor = (int.from_bytes(data[at : at + 2], "little") for at in (8, 10))
        if major != MAJOR:
            raise Refused(f"its format version is {major}.{minor}, this runtime reads {MAJOR}.x")
        if any(data[12:16]) or any(data[24:32]):
            raise Refused("reserved bytes of the header are not zero")
        size = int.from_bytes(data[16:24], "little")
        if size > MOST_MANIFEST:
            raise Refused(f"its manifest has {size} bytes, the limit is {MOST_MANIFEST}")
        text = data[64 : 64 + size]
        if len(text) < size:
            raise Refused("it ends within its manifest")
        if hashlib.sha256(text).digest() != data[32:64]:
            raise Refused("its manifest is damaged")
        manifest = canonical.read(text)
        if not isinstance(manifest, dict):
            raise Refused("its manifest is no JSON object")
        if canonical.write(manifest.get("format")) != canonical.write({"major": major, "minor": minor}):
            raise Refused("the manifest's `format` is not the header's version")
        if name := unknown_requirement(manifest):
            raise Refused(f"it is of format version {major}.{minor} and requires `{name}`, which this")
        check_record("manifest", manifest)
        return manifest

    def _read_sections(self, data: bytes, manifest_end: int) -> None:
        start = up(manifest_end) if self.manifest["sections"] else manifest_end
        if start > len(data):
            raise Refused("it ends before its first section")
        if any(data[manifest_end:start]):
            raise Refused("bytes between the manifest and the first section are not zero")
        end, seen = start, set[str]()
        for index, section in enumerate(self.manifest["sections"]):
            name = self._check_section(index, section, seen)
            begin = up(end)
            if start + section["offset"] != begin:
                raise Refused(f"section '{name}' starts at offset {section['offset']}, expected {begin - start}")
            if begin + section["stored"] > len(data):
                raise Refused(f"it ends within section '{name}'")
            if any(data[end:begin]):
                raise Refused(f"padding before section '{name}' is not zero")
            end = begin + section["stored"]
            self._stored[name] = data[begin:end]
            self.sections[name] = section
        if end != len(data):
            raise Refused(f"{len(data) - end} bytes follow the last section")

    def _check_section(self, index: int, section: dict[str, Any], seen: set[str]) -> str:
        name, kind, size, stored = (section[key] for key in ("name", "kind", "size", "stored"))
        where = f"section '{name}'"
        if any(not text or re.search(r"[\x00-\x1f\x7f]", text) for text in (name, kind)):
            raise Refused(f"section {index} has a name or kind that is empty or has control characters")
        if name in seen:
            raise Refused(f"{where} is listed twice")
        seen.add(name)
        if not re.fullmatch(r"[0-9a-f]{64}", section["sha256"]):
            raise Refused(f"{where}: `sha256` is not 64 lower-case hexadecimal digits")
        if size > KINDS.get(kind, 2**31):
            raise Refused(f"{where} has {size} bytes, the limit of its kind '{kind}' is {KINDS[kind]}")
        if kind not in KINDS and section["required"]:
            own, minor = f"{MAJOR}.{MINOR}", self.manifest["format"]["minor"]
            raise Refused(
                f"{where} is required and of kind '{kind}', which this runtime of {own} does not know; "
                f"the file is of {MAJOR}.{minor}"
            )
        if section["compression"] == "none" and stored != size:
            raise Refused(f"{where} is not compressed but `stored` differs from `size`")
        if section["compression"] == "zstd" and size > (1 << 20) + 256 * stored:
            raise Refused(f"{where} has {size} bytes in {stored}, which may stand for at most {2**20 + 256 * stored}")
        if kind == "signature" and (size != 96 or stored != 96 or section["compression"] != "none"):
            raise Refused(f"{where} is no Ed25519 key and signature")
        return name

    def find(self, name: str) -> dict[str, Any] | None:
        """Returns a section that others may name: one of a known kind that signatures cover."""
        section = self.sections.get(name)
        return section if section and section["kind"] in KINDS and section["kind"] != "signature" else None

    def contents(self, name: str) -> bytes:
        """Returns the contents of a section after a check of its digest."""
        section, stored = self.sections[name], self._stored[name]
        if hashlib.sha256(stored).hexdigest() != section["sha256"]:
            raise Refused(f"section '{name}' is damaged")
        if section["compression"] == "none":
            return stored
        try:
            return decompressed(stored, section["size"])
        except Refused as refused:
            raise Refused(f"section '{name}': {refused}") from None

    def signers(self) -> list[tuple[bytes, bool]]:
        """Returns the key of each signature, and whether it is valid."""
        text = signed_text(self.manifest)
        found = [self.contents(name) for name, section in self.sections.items() if section["kind"] == "signature"]
        return [(data[:32], ed25519.is_valid(data[:32], text, data[32:])) for data in found]


def assemble(text: bytes, data: bytes = b"", version: tuple[int, int] = (MAJOR, MINOR)) -> bytes:
    """Returns a file with this manifest and these sections' bytes, whose header fits them."""
    numbers = b"".join(part.to_bytes(2, "little") for part in version)
    header = MAGIC + numbers + bytes(4) + len(text).to_bytes(8, "little") + bytes(8) + hashlib.sha256(text).digest()
    whole = header + text
    return (whole.ljust(up(len(whole)), b"\0") if data else whole) + data


def pack(manifest: dict[str, Any], sections: list[dict[str, Any]], secret: bytes | None = None) -> bytes:
    """Returns a package. A section has `name`, `kind`, `bytes`, and may have other keys of its record."""
    manifest = {"format": {"major": MAJOR, "minor": MINOR}, **manifest, "sections": []}
    data = b""

    def add(section: dict[str, Any]) -> None:
        nonlocal data
        stored = compressed(section["bytes"]) if section.get("compression") == "zstd" else section["bytes"]
        data = data.ljust(up(len(data)), b"\0")
        record = {"compression": "none", "required": False, "offset": len(data), "size": len(section["bytes"])}
        record |= {"stored": len(stored), "sha256": hashlib.sha256(stored).hexdigest()}
        record |= {key: value for key, value in section.items() if key != "bytes"}
        manifest["sections"].append(record)
        data += stored

    for section in sections:
        add(section)
    if secret:
        signature = ed25519.public_key(secret) + ed25519.sign(secret, signed_text(manifest))
        add({"name": "signature/1", "kind": "signature", "bytes": signature})
    version = (manifest["format"]["major"], manifest["format"]["minor"])
    return assemble(canonical.write(manifest).encode(), data, version)
