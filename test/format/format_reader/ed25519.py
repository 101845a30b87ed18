"""Makes and checks Ed25519 signatures by the formulas of RFC 8032, for tests: not in constant time.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import hashlib

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)

Point = tuple[int, int, int, int]


def add(a: Point, b: Point) -> Point:
    """Returns the sum of two points in extended coordinates."""
    low, high = (a[1] - a[0]) * (b[1] - b[0]), (a[1] + a[0]) * (b[1] + b[0])
    both, depths = 2 * a[3] * b[3] * D, 2 * a[2] * b[2]
    e, f, g, h = high - low, depths - both, depths + both, high + low
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(count: int, point: Point) -> Point:
    result: Point = (0, 1, 1, 0)
    while count:
        if count & 1:
            result = add(result, point)
        point = add(point, point)
        count >>= 1
    return result


def point_of(y: int, sign: int) -> Point | None:
    """Returns the point with this y whose x has this lowest bit."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if y >= P or (x * x - square) % P or (x == 0 and sign):
        return None
    x = x if x & 1 == sign else P - x
    return x, y, 1, x * y % P


def decoded(data: bytes) -> Point | None:
    value = int.from_bytes(data, "little")
    return point_of(value & (2**255 - 1), value >> 255)


def encoded(point: Point) -> bytes:
    inverse = pow(point[2], -1, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


BASE = point_of(4 * pow(5, -1, P) % P, 0)
assert BASE


def hashed(*parts: bytes) -> int:
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little")


def expanded(secret: bytes) -> tuple[int, bytes]:
    digest = hashlib.sha512(secret).digest()
    return int.from_bytes(digest[:32], "little") & (2**254 - 8) | 2**254, digest[32:]


def public_key(secret: bytes) -> bytes:
    """Returns the public key of a secret of 32 bytes."""
    return encoded(times(expanded(secret)[0], BASE))


def sign(secret: bytes, message: bytes) -> bytes:
    scalar, prefix = expanded(secret)
    key = public_key(secret)
    nonce = hashed(prefix, message) % ORDER
    first = encoded(times(nonce, BASE))
    return first + ((nonce + hashed(first, key, message) * scalar) % ORDER).to_bytes(32, "little")


def is_valid(key: bytes, message: bytes, signature: bytes) -> bool:
    """Returns whether a signature of 64 bytes is that of the message by the owner of the key."""
    owner, first, second = decoded(key), decoded(signature[:32]), int.from_bytes(signature[32:], "little")
    if not owner or not first or second >= ORDER:
        return False
    right = add(first, times(hashed(signature[:32], key, message) % ORDER, owner))
    return encoded(times(second, BASE)) == encoded(right)
