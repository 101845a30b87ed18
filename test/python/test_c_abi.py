"""Tests the C ABI through Python's ctypes, without the Python package.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import ctypes as c
import math

import pytest
from conftest import BUILD

MAX_RANK = 16
TENSOR, FLOAT32, CPU = 2, 12, 1


class Device(c.Structure):
    _fields_ = [("type", c.c_int32), ("index", c.c_int32)]


class Tensor(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("rank", c.c_int32),
        ("dtype", c.c_int32),
        ("device", Device),
    ]


class As(c.Union):
    _fields_ = [
        ("tensor", c.POINTER(Tensor)),
        ("integer", c.c_int64),
        ("real", c.c_double),
        ("list", c.POINTER(c.c_int64)),
        ("string", c.c_char_p),
    ]


class Value(c.Structure):
    _fields_ = [("kind", c.c_int32), ("count", c.c_int32), ("value", As)]


class Number(c.Union):
    _fields_ = [("integer", c.c_int64), ("real", c.c_double)]


class Result(c.Structure):
    _fields_ = [
        ("kind", c.c_int32), ("source", c.c_int32), ("index", c.c_int32), ("dtype", c.c_int32), ("device", Device),
        ("rank", c.c_int32), ("whole", c.c_int32),
        ("offset", c.c_int64), ("data", c.c_void_p), ("shape", c.c_int64 * MAX_RANK), ("strides", c.c_int64 * MAX_RANK),
        ("number", Number),
    ]  # fmt: skip


class Call(c.Structure):
    pass


Fallback = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.POINTER(Call))
Call._fields_ = [
    ("struct_size", c.c_size_t), ("arguments", c.POINTER(Value)), ("argument_count", c.c_int32),
    ("result_capacity", c.c_int32), ("results", c.POINTER(Result)),
    ("stream", c.c_void_p), ("allocate", c.c_void_p), ("allocate_context", c.c_void_p),
    ("outputs", c.POINTER(c.POINTER(Tensor))), ("user", c.c_void_p),
]  # fmt: skip


class Error(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("status", c.c_int),
        ("message", c.c_char_p),
        ("op", c.c_char_p),
        ("instance", c.c_char_p),
        ("argument", c.c_char_p),
    ]


@pytest.fixture(scope="module")
def library():
    abi = c.CDLL(str(BUILD / "lib" / "libkpkg.so"))
    abi.kpkg_version.restype = c.c_char_p
    abi.kpkg_library_manifest.restype = c.c_char_p
    return abi


def last_error(abi):
    error = Error(struct_size=c.sizeof(Error))
    abi.kpkg_last_error(c.byref(error))
    return error


def rows(count, columns):
    memory = (c.c_float * (count * columns))(*(float(i % 7) for i in range(count * columns)))
    shape = (c.c_int64 * 2)(count, columns)
    return Tensor(c.cast(memory, c.c_void_p), shape, None, 2, FLOAT32, Device(CPU, 0)), memory, shape


@pytest.fixture
def opened(library, packages):
    handle, registry, op = c.c_void_p(), c.c_void_p(), c.c_void_p()
    assert library.kpkg_library_open(str(packages["softmax"]).encode(), None, c.byref(handle)) == 0
    assert library.kpkg_registry_create(c.byref(registry)) == 0
    assert library.kpkg_registry_add(registry, handle) == 0
    assert library.kpkg_registry_op(registry, b"softmax", c.byref(op)) == 0
    yield library, registry, op
    library.kpkg_registry_destroy(registry)
    library.kpkg_library_close(handle)


def call_with(tensor, output):
    values = (Value * 1)()
    values[0].kind, values[0].value.tensor = TENSOR, c.pointer(tensor)
    results, outputs = (Result * 1)(), (c.POINTER(Tensor) * 1)(c.pointer(output))
    return Call(c.sizeof(Call), values, 1, 1, results, None, None, None, outputs, None)


def test_call_into_memory(opened):
    abi, _, op = opened
    tensor, x, _ = rows(3, 5)
    output, y, _ = rows(3, 5)
    call = call_with(tensor, output)
    assert abi.kpkg_op_call(op, c.byref(call)) == 0, last_error(abi).message
    for row in range(3):
        exponentials = [math.exp(v) for v in x[5 * row : 5 * row + 5]]
        assert list(y[5 * row : 5 * row + 5]) == pytest.approx([e / sum(exponentials) for e in exponentials], rel=1e-6)
    assert call.results[0].source == 2 and list(call.results[0].shape[:2]) == [3, 5]


def test_errors(opened, library):
    abi, _, op = opened
    tensor, *_kept = rows(3, 5)
    output, *_kept_too = rows(5, 3)
    call = call_with(tensor, output)
    assert abi.kpkg_op_call(op, c.byref(call)) == 6
    assert (
        b"has shape [5, 3], the result has [3, 5]" in last_error(abi).message and last_error(abi).op == b"kpkg::softmax"
    )
    handle = c.c_void_p()
    assert library.kpkg_library_open(b"/nonexistent.kpkg", None, c.byref(handle)) == 2


def test_fallback_policy_and_restriction(opened):
    """Uses a fallback in Python; under strict the call fails."""
    abi, registry, op = opened
    tensor, *_kept = rows(2, 4)
    output, y, _ = rows(2, 4)
    ran = []

    @Fallback
    def fallback(context, which, call):
        ran.append(call.contents.argument_count)
        target = call.contents.outputs[0].contents
        c.memset(target.data, 0, 2 * 4 * 4)
        return 0

    assert abi.kpkg_registry_set_fallback(registry, b"kpkg::softmax", fallback, None, None) == 0
    assert abi.kpkg_registry_set_policy(registry, 3) == 0
    assert abi.kpkg_registry_restrict(registry, b"kpkg::softmax", b'{"target": "nowhere"}') == 0
    call = call_with(tensor, output)
    assert abi.kpkg_op_call(op, c.byref(call)) == 0 and ran == [4] and list(y) == [0.0] * 8
    assert abi.kpkg_registry_set_op_policy(registry, b"kpkg::softmax", 1) == 0
    assert abi.kpkg_op_call(op, c.byref(call)) == 7 and b"the policy is strict" in last_error(abi).message
    assert abi.kpkg_op_count_fallback(op, b"a reason") == 7
    assert abi.kpkg_registry_set_op_policy(registry, b"kpkg::softmax", 0) == 0
    assert abi.kpkg_op_count_fallback(op, b"a reason") == 0
    assert abi.kpkg_registry_restrict(registry, b"kpkg::softmax", None) == 0
    assert abi.kpkg_op_call(op, c.byref(call)) == 0 and ran == [4]
    assert (
        abi.kpkg_registry_restrict(registry, b"kpkg::softmax", b"[]") == 1 and b"JSON object" in last_error(abi).message
    )
