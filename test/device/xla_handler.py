"""Calls kpkg's handlers of XLA's custom calls as XLA does, with a call frame made here: no JAX is needed.

    ./run.sh python3 test/device/xla_handler.py --package packages/softmax.kpkg --device cuda

It checks values, that the handler wrote into the given memory on the given stream, and the text of an error.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import ctypes as c
import math
import struct
from pathlib import Path

import kpkg
from kpkg import _native

_POINTER, _SIZE, _INT, _LONG = c.c_void_p, c.c_size_t, c.c_int, c.c_int64
_STRING, _SCALAR = 4, 3  # kinds of attributes
_PRED, _S64, _F32 = 1, 5, 11  # element types
_DEVICES = {"cpu": 1, "cuda": 2}


class Device(c.Structure):
    _fields_ = [("type", c.c_int32), ("index", c.c_int32)]


class Extension(c.Structure):
    _fields_ = [("size", _SIZE), ("type", _INT), ("next", _POINTER)]


class Version(c.Structure):
    _fields_ = [("size", _SIZE), ("extensions", _POINTER), ("major", _INT), ("minor", _INT)]


class ErrorArgs(c.Structure):
    _fields_ = [("size", _SIZE), ("extensions", _POINTER), ("message", c.c_char_p), ("code", _INT)]


class ContextArgs(c.Structure):
    """Arguments of both functions that fill one field: a stream, or the number of a device."""

    _fields_ = [("size", _SIZE), ("extensions", _POINTER), ("context", _POINTER), ("filled", _POINTER)]


_CREATE_ERROR = c.CFUNCTYPE(_POINTER, c.POINTER(ErrorArgs))
_FILL = c.CFUNCTYPE(_POINTER, c.POINTER(ContextArgs))


class Api(c.Structure):
    _fields_ = [("size", _SIZE), ("extensions", _POINTER), ("version", Version), ("internal", _POINTER),
                ("create_error", _CREATE_ERROR), ("before_stream", _POINTER * 3), ("get_stream", _FILL),
                ("before_ordinal", _POINTER * 12), ("get_ordinal", _FILL)]  # fmt: skip


class Buffer(c.Structure):
    _fields_ = [("size", _SIZE), ("extensions", _POINTER), ("dtype", _INT), ("data", _POINTER), ("rank", _LONG),
                ("dims", c.POINTER(_LONG))]  # fmt: skip


class Bytes(c.Structure):
    _fields_ = [("data", c.c_char_p), ("size", _SIZE)]


class Scalar(c.Structure):
    _fields_ = [("dtype", _INT), ("value", _POINTER)]


class Buffers(c.Structure):
    _fields_ = [("size", _SIZE), ("extensions", _POINTER), ("count", _LONG), ("types", _POINTER), ("all", _POINTER)]


class Attributes(c.Structure):
    _fields_ = [("size", _SIZE), ("extensions", _POINTER), ("count", _LONG), ("types", _POINTER), ("names", _POINTER),
                ("values", _POINTER)]  # fmt: skip


class Frame(c.Structure):
    _fields_ = [("size", _SIZE), ("extensions", _POINTER), ("api", c.POINTER(Api)), ("context", _POINTER),
                ("stage", _INT), ("arguments", Buffers), ("results", Buffers), ("attributes", Attributes)]  # fmt: skip


class Metadata(c.Structure):
    _fields_ = [("size", _SIZE), ("version", Version), ("traits", c.c_uint32)]


class MetadataExtension(c.Structure):
    _fields_ = [("base", Extension), ("metadata", c.POINTER(Metadata))]


def handler(device: str):
    """Returns the handler of a device as a function of a frame. It returns an error, or None."""
    address = c.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = _POINTER, [c.py_object, c.c_char_p]
    capsule = _native.xla_handlers()[{"cpu": "cpu", "cuda": "CUDA"}[device]]
    return c.CFUNCTYPE(_POINTER, c.POINTER(Frame))(address(capsule, b"xla._CUSTOM_CALL_TARGET"))


def stated_version(device: str) -> tuple[int, int]:
    """Returns the version of XLA's C ABI for which the handler says that it was made."""
    metadata = Metadata(size=c.sizeof(Metadata))
    question = MetadataExtension(Extension(c.sizeof(MetadataExtension), 1, None), c.pointer(metadata))
    frame = Frame(size=c.sizeof(Frame), extensions=c.cast(c.pointer(question), _POINTER))
    assert handler(device)(c.byref(frame)) is None
    return metadata.version.major, metadata.version.minor


class Memory:
    """Float32 numbers on a device, through libkpkg."""

    def __init__(self, device: str, numbers: list[float], stream: int | None) -> None:
        self._library = c.CDLL(str(next(Path(kpkg.__file__).parent.glob("libkpkg.so*"))))
        for name, types in {
            "kpkg_memory_allocate": [Device, _SIZE, _POINTER, _POINTER],
            "kpkg_memory_copy": [Device, _POINTER, Device, _POINTER, _SIZE, _POINTER],
        }.items():
            getattr(self._library, name).argtypes = types
        self._device, self._stream, self.count = Device(_DEVICES[device], 0), stream, len(numbers)
        self.address = _POINTER()
        self._check(self._library.kpkg_memory_allocate(self._device, 4 * self.count, stream, c.addressof(self.address)))
        self._copy(self._device, self.address, Device(1, 0), struct.pack(f"{self.count}f", *numbers))

    def numbers(self) -> list[float]:
        memory = c.create_string_buffer(4 * self.count)
        self._copy(Device(1, 0), c.addressof(memory), self._device, self.address)
        return list(struct.unpack(f"{self.count}f", memory.raw))

    def _copy(self, to_device, to, from_device, origin) -> None:
        library, size = self._library, 4 * self.count
        self._check(library.kpkg_memory_copy(to_device, to, from_device, origin, size, self._stream))

    def _check(self, status: int) -> None:
        assert status == 0, _native.last_error()[1]


class Caller:
    """Calls a handler as XLA does. `asked` lists what the handler asked XLA for."""

    def __init__(self, device: str, stream: int | None, api_size: int = c.sizeof(Api)) -> None:
        self.asked: list[str] = []
        self.error = ""
        self._handler = handler(device)

        def create_error(args):
            self.error = args.contents.message.decode()
            return 1

        def get_stream(args):
            self.asked.append("stream")
            args.contents.filled = stream

        def get_ordinal(args):
            self.asked.append("device")
            c.cast(c.addressof(args.contents) + ContextArgs.filled.offset, c.POINTER(c.c_int32))[0] = 0

        self._api = Api(size=api_size, create_error=_CREATE_ERROR(create_error), get_stream=_FILL(get_stream),
                        get_ordinal=_FILL(get_ordinal))  # fmt: skip

    def softmax(self, name: str, rows: int, columns: int, dim: int, x: Memory, y: Memory) -> str:
        """Calls softmax of [rows, columns] from `x` into `y`. Returns the error's text, or ""."""
        dims = (_LONG * 2)(rows, columns)
        argument, result = (Buffer(c.sizeof(Buffer), None, _F32, each.address, 2, dims) for each in (x, y))
        number = _LONG(dim)
        texts = {key: Bytes(value.encode(), len(value)) for key, value in
                 {"_form": "tvnv", "_op": name, "_results": "t"}.items()}  # fmt: skip
        flag = c.c_bool(False)
        scalars = {"batch_invariant": Scalar(_PRED, c.addressof(flag)), "dim": Scalar(_S64, c.addressof(number))}
        values = texts | scalars
        names = [Bytes(key.encode(), len(key)) for key in values]
        kinds = (_INT * 5)(_STRING, _STRING, _STRING, _SCALAR, _SCALAR)
        pointers = [(_POINTER * len(all))(*map(c.addressof, all))
                    for all in ([argument], [result], names, list(values.values()))]  # fmt: skip
        types = (_INT * 1)(1)
        at = c.addressof
        frame = Frame(
            size=c.sizeof(Frame), api=c.pointer(self._api), stage=3,
            arguments=Buffers(c.sizeof(Buffers), None, 1, at(types), at(pointers[0])),
            results=Buffers(c.sizeof(Buffers), None, 1, at(types), at(pointers[1])),
            attributes=Attributes(c.sizeof(Attributes), None, 5, at(kinds), at(pointers[2]), at(pointers[3])),
        )  # fmt: skip
        self.error = ""
        self._handler(c.byref(frame))
        return self.error


def check(package: str, device: str, stream: int | None = None) -> None:
    """Calls softmax of a package through the handler of a device. Raises AssertionError if anything is wrong."""
    op = kpkg.load(package)["kpkg::softmax"]
    _native.xla_name_op("check:softmax", op._native)
    assert stated_version(device) == (0, 1)
    numbers = [float(i % 7) for i in range(5 * 33)]
    x, y = Memory(device, numbers, stream), Memory(device, [-1.0] * len(numbers), stream)
    caller = Caller(device, stream)
    before = op.stats()
    assert caller.softmax("check:softmax", 5, 33, -1, x, y) == ""
    after = op.stats()
    assert after["copies"] == before["copies"] and after["fallbacks"] == before["fallbacks"]
    assert caller.asked == ([] if device == "cpu" else ["stream", "device"])
    results = y.numbers()
    for start in range(0, len(numbers), 33):
        powers = [math.exp(number) for number in numbers[start : start + 33]]
        for power, result in zip(powers, results[start : start + 33]):
            assert abs(result - power / sum(powers)) < 1e-6
    assert "dimension 7 is out of range" in caller.softmax("check:softmax", 5, 33, 7, x, y)
    assert "call kpkg.jax.load" in caller.softmax("check:absent", 5, 33, -1, x, y)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", required=True)
    parser.add_argument("--device", choices=_DEVICES, default="cuda")
    options = parser.parse_args()
    check(options.package, options.device)
    if options.device == "cuda":  # a stream of its own, as XLA uses
        stream = _POINTER()
        library = c.CDLL(str(next(Path(kpkg.__file__).parent.glob("libkpkg.so*"))))
        library.kpkg_stream_create.argtypes = [Device, _POINTER]
        assert library.kpkg_stream_create(Device(2, 0), c.addressof(stream)) == 0, _native.last_error()[1]
        check(options.package, options.device, stream.value)
    print(f"the handler works on {options.device}")
