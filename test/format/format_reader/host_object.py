"""Checks the ELF images of CPU kernels by the page's rules, and writes small ones for tests.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from format_reader.page import Refused

LOAD, DYNAMIC, INTERPRETER, THREAD_LOCAL, STACK, READ_ONLY = 1, 2, 3, 7, 0x6474E551, 0x6474E552
EXECUTE, WRITE = 1, 2
NEEDED, HASH, STRINGS, SYMBOLS, STRING_BYTES, SYMBOL_BYTES, GNU_HASH = 1, 4, 5, 6, 10, 11, 0x6FFFFEF5
RELOCATIONS = {17, 7, 23, 36, 22}
INITIALISERS = {12, 25, 32, 13, 26}
MOST_BYTES, MOST_SEGMENTS, MOST_NAME = 1 << 30, 64, 4096
PAGE = 4096


@dataclass
class Segment:
    kind: int
    flags: int
    offset: int
    address: int
    file_bytes: int
    bytes: int


def segments_of(image: bytes) -> list[Segment]:
    if len(image) < 64:
        raise Refused("it is too short for an ELF header")
    if image[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<I", image, 20)[0] != 1:
        raise Refused("it is not a 64-bit little-endian ELF file")
    if struct.unpack_from("<H", image, 16)[0] != 3:
        raise Refused("it is not a shared object")
    (start,), (size, count) = struct.unpack_from("<Q", image, 32), struct.unpack_from("<HH", image, 54)
    if size != 56 or not 1 <= count <= MOST_SEGMENTS or start + 56 * count > len(image):
        raise Refused("its program headers are out of bounds")
    found = []
    for k in range(count):
        kind, flags, offset, address, _, file_bytes, all_bytes, _ = struct.unpack_from(
            "<IIQQQQQQ", image, start + 56 * k
        )
        found.append(Segment(kind, flags, offset, address, file_bytes, all_bytes))
    return found


def mapped(image: bytes, segments: list[Segment]) -> bytearray:
    """Returns the memory of an image, if its segments may be mapped."""
    memory = bytearray()
    for one in segments:
        if one.kind == THREAD_LOCAL:
            raise Refused("it has thread-local data")
        if one.kind == INTERPRETER:
            raise Refused("it asks for an interpreter")
        if one.kind == STACK and one.flags & EXECUTE:
            raise Refused("it asks for an executable stack")
        if one.kind != LOAD:
            continue
        if one.file_bytes > one.bytes or one.offset + one.file_bytes > len(image):
            raise Refused("a segment is out of the file's bounds")
        if max(one.address, one.bytes) > MOST_BYTES:
            raise Refused(f"it is larger than the limit of {MOST_BYTES} bytes")
        if one.flags & WRITE and one.flags & EXECUTE:
            raise Refused("a segment is writable and executable")
        if one.bytes and one.address // PAGE * PAGE < len(memory):
            raise Refused("its segments overlap, share a page or are not in order")
        if one.bytes:
            memory.extend(bytes((one.address + one.bytes + PAGE - 1) // PAGE * PAGE - len(memory)))
            memory[one.address : one.address + one.file_bytes] = image[one.offset : one.offset + one.file_bytes]
    if not memory:
        raise Refused("it has nothing to load")
    return memory


def dynamic_of(memory: bytes, segments: list[Segment]) -> tuple[dict[int, int], bool]:
    """Returns the entries of the dynamic section, and whether it has relocations."""
    part = next((one for one in reversed(segments) if one.kind == DYNAMIC), None)
    if not part:
        raise Refused("it has no dynamic section")
    entries, relocated = dict[int, int](), False
    for at in range(part.address, min(part.address + part.bytes, len(memory) - 15), 16):
        tag, value = struct.unpack_from("<qQ", memory, at)
        if tag == 0:
            if not (STRINGS in entries and SYMBOLS in entries and (HASH in entries or GNU_HASH in entries)):
                raise Refused("it has no symbol table")
            return entries, relocated
        if tag == NEEDED:
            raise Refused("it needs another library")
        if tag in INITIALISERS:
            raise Refused("it has code that runs when it is loaded or unloaded")
        if tag == SYMBOL_BYTES and value != 24:
            raise Refused("its symbols have an odd size")
        relocated |= tag in RELOCATIONS
        entries[tag] = value
    raise Refused("its dynamic section does not end")


def symbol_count(memory: bytes, entries: dict[int, int]) -> int:
    """Returns the number of symbols. The GNU table has none: the last chain of the highest bucket ends with it."""
    if HASH in entries:
        return struct.unpack_from("<I", memory, entries[HASH] + 4)[0]
    at = entries[GNU_HASH]
    buckets, first, words, _ = struct.unpack_from("<IIII", memory, at)
    table = at + 16 + 8 * words
    last = max(struct.unpack_from(f"<{buckets}I", memory, table), default=0)
    if last < first:
        return first
    while not struct.unpack_from("<I", memory, table + 4 * buckets + 4 * (last - first))[0] & 1:
        last += 1
    return last + 1


def functions_of(image: bytes) -> list[str]:
    """Returns the names of the functions of an image, if a runtime may load it."""
    segments = segments_of(image)
    memory = mapped(image, segments)
    entries, relocated = dynamic_of(memory, segments)
    try:
        count = symbol_count(memory, entries)
        symbols = [struct.unpack_from("<IBBHQQ", memory, entries[SYMBOLS] + 24 * k) for k in range(1, count)]
    except struct.error:
        raise Refused("its symbol table is out of bounds") from None
    found, strings = [], bytes(memory[entries[STRINGS] :][: entries.get(STRING_BYTES, 0)])
    for name_at, info, _, section, value, _ in symbols:
        end = strings.find(b"\0", name_at)
        if end < 0:
            raise Refused("a symbol's name does not end")
        name = strings[name_at:end].decode(errors="replace")
        if end - name_at > MOST_NAME:
            raise Refused(f"a symbol's name is longer than {MOST_NAME} bytes")
        if section == 0:
            raise Refused(f"symbol '{name}' is undefined")
        if info & 15 in (6, 10):
            raise Refused(f"symbol '{name}' is thread-local or resolved at run time")
        if info & 15 == 2:
            code = [s for s in segments if s.kind == LOAD and s.flags & EXECUTE]
            if not any(s.address <= value < s.address + s.file_bytes for s in code):
                raise Refused(f"function '{name}' is not in executable memory")
            found.append(name)
    if relocated:
        raise Refused("it has dynamic relocations")
    for one in segments:
        if one.kind == LOAD and one.flags & WRITE and not is_read_only(one, segments):
            raise Refused("it has writable data")
    return found


def is_read_only(part: Segment, segments: list[Segment]) -> bool:
    """Returns whether a writable segment holds nothing but what the linker protects after relocation."""
    covers = [one for one in segments if one.kind in (READ_ONLY, DYNAMIC)]
    return any(one.address <= part.address and part.address + part.bytes <= one.address + one.bytes for one in covers)


@dataclass
class Image:
    """A small image with one function, and changes of it."""

    symbols: list[tuple[bytes, int, int]] = field(default_factory=lambda: [(b"entry", 2, 1)])  # name, type, section
    entries: list[tuple[int, int]] = field(default_factory=list)  # further ones of the dynamic section
    headers: list[tuple[int, int, int]] = field(default_factory=list)  # further segments: kind, flags, bytes
    code_flags: int = 5
    type: int = 3
    machine: int = 62

    def bytes(self) -> bytes:
        """Returns the ELF file: headers, one segment of tables, one of code."""
        names = b"\0" + b"".join(name + b"\0" for name, _, _ in self.symbols)
        symbols, at = bytes(24), 1
        for name, kind, section in self.symbols:
            symbols += struct.pack("<IBBHQQ", at, 0x10 | kind, 0, section, 0x20000 if section else 0, 1)
            at += len(name) + 1
        count = len(self.symbols) + 1
        table = struct.pack("<II", 1, count) + struct.pack(f"<{1 + count}I", *[0] * (1 + count))
        base = 0x1000
        entries = [(SYMBOLS, base), (HASH, base + len(symbols)), (STRINGS, base + len(symbols) + len(table))]
        entries += [(STRING_BYTES, len(names)), (SYMBOL_BYTES, 24), *self.entries, (0, 0)]
        dynamic = b"".join(struct.pack("<qQ", *entry) for entry in entries)
        lead = symbols + table + names
        lead += bytes(-len(lead) % 16)
        data = lead + dynamic
        own = [
            (LOAD, 4, base, base, len(data)),
            (LOAD, self.code_flags, base + len(data), 0x20000, 1),
            (DYNAMIC, 4, base + len(lead), base + len(lead), len(dynamic)),
            *((kind, flags, 0, 0x30000, size) for kind, flags, size in self.headers),
        ]
        head = b"\x7fELF\x02\x01\x01" + bytes(9)
        head += struct.pack("<HHIQQQIHHHHHH", self.type, self.machine, 1, 0, 64, 0, 0, 64, 56, len(own), 0, 0, 0)
        for kind, flags, offset, address, size in own:
            head += struct.pack("<IIQQQQQQ", kind, flags, offset, address, address, size, size, PAGE)
        return head.ljust(base, b"\0") + data + b"\xc3"
