"""Computes polynomial coefficients: `python FitVectorMath.py > VectorMathCoefficients.h`."""

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Each polynomial is a weighted least-squares fit at Chebyshev nodes in 60-digit arithmetic (needs mpmath). Coefficients
# are rounded to the format one at a time, lowest power first. The remaining coefficients are then fitted again, so that
# rounding costs almost no accuracy.
import mpmath as mp

mp.mp.dps = 60  # enough for every coefficient; the bits of 2/pi need more


def to_format(value, bits):
    """Returns the nearest number with `bits` bits of significand."""
    if value == 0:
        return mp.mpf(0)
    mantissa, exponent = mp.frexp(value)
    return mp.ldexp(mp.nint(mp.ldexp(mantissa, bits)), exponent - bits)


def least_squares(f, weight, powers, low, high):
    """Fits c so that p(x) = sum(c[i] * x**powers[i]) approximates f.

    Minimises sum((weight * (f - p))**2) over Chebyshev nodes of [low, high]. The error is within about a factor of two
    of the minimax error, and no iteration is needed.
    """
    n = len(powers)
    nodes = 4 * n + 8
    points = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (i + mp.mpf(1) / 2) / nodes) for i in range(nodes)]
    rows = [[weight(x) * x**p for p in powers] for x in points]
    right = [weight(x) * f(x) for x in points]
    normal = mp.matrix(n, n)
    for i in range(n):
        for j in range(n):
            normal[i, j] = mp.fsum(row[i] * row[j] for row in rows)
    solution = mp.lu_solve(normal, mp.matrix([mp.fsum(row[i] * y for row, y in zip(rows, right)) for i in range(n)]))
    return [solution[i] for i in range(n)]


def fit(name, bits, f, weight, powers, low, high, comment):
    """Fits a polynomial and prints its coefficient array, lowest power first."""
    low, high = mp.mpf(low), mp.mpf(high)
    result, remaining, rest = [], list(powers), f
    while remaining:
        coefficients = least_squares(rest, weight, remaining, low, high)
        result.append(to_format(coefficients[0], bits))
        rest = (lambda g, c, p: lambda x: g(x) - c * x**p)(rest, result[-1], remaining.pop(0))
    error = max(abs(weight(x) * rest(x)) for x in (low + (high - low) * i / 997 for i in range(998)))
    print(f"/// {comment}; error 2^{float(mp.log(error, 2)):.1f}")
    print(f"inline constexpr double {name}[] = {{{', '.join(float(c).hex() for c in result)}}};")


def split(name, value, bits, parts, part_bits):
    numbers, rest = [], value
    for index in range(parts):
        numbers.append(to_format(rest, part_bits if index + 1 < parts else bits))
        rest -= numbers[-1]
    print(f"inline constexpr double {name}[] = {{{', '.join(float(n).hex() for n in numbers)}}};")


def log_tail(x):
    return (mp.log(1 + x) - x + x * x / 2) / x**3 if x != 0 else mp.mpf(1) / 3


def erfcx(t):
    return mp.exp(t * t) * mp.erfc(t)


def fit_float32_only():
    """Fits the functions that GPUs, or the complement of erf, have in f32 alone."""
    fit(
        "tanhSmallF32",
        24,
        lambda x: (mp.tanh(x) - x) / x**3,
        lambda x: x**3 / mp.tanh(x),
        [2 * i for i in range(6)],
        mp.mpf("1e-9"),
        mp.mpf("0.81"),
        "(tanh(x) - x) / x^3 on |x| <= 0.8, in x^2",
    )
    fit(
        "tanhNearF32",
        24,
        lambda x: (mp.tanh(x) - x) / x**3,
        lambda x: x**3 / mp.tanh(x),
        [2 * i for i in range(3)],
        mp.mpf("1e-9"),
        mp.mpf("0.31"),
        "(tanh(x) - x) / x^3 on |x| <= 0.3, in x^2",
    )
    fit(
        "erfNearF32",
        24,
        lambda x: mp.erf(x) / x - 1,
        lambda x: x / mp.erf(x),
        [2 * i for i in range(4)],
        mp.mpf("1e-9"),
        mp.mpf("0.3"),
        "erf(x) / x - 1 on |x| <= 0.3, in x^2",
    )
    fit(
        "erfcExponentF32",
        24,
        lambda t: mp.log(mp.erfc(t), 2) / t,
        lambda t: t * mp.erfc(t),
        range(7),
        mp.mpf("0.3"),
        mp.mpf("4.25"),
        "log2(erfc(t)) / t on 0.3 <= t <= 4.25, weighted by t erfc(t)",
    )
    fit(
        "erfcWholeF32",
        24,
        lambda t: mp.log(mp.erfc(t), 2) / t,
        lambda t: t * (mp.erfc(t) + mp.mpf("0.01")),
        range(10),
        mp.mpf("1e-9"),
        mp.mpf("4.25"),
        "log2(erfc(t)) / t on 0 <= t <= 4.25, weighted by t (erfc(t) + 0.01)",
    )


def fit_exponentials(label, bits, exp_n, exp2_n):
    half_ln2 = mp.log(2) / 2 * mp.mpf("1.0002")
    fit(
        f"exp{label}",
        bits,
        lambda r: (mp.exp(r) - 1 - r) / r**2 if abs(r) > 1e-12 else mp.mpf(1) / 2 + r / 6,
        lambda r: r * r / mp.exp(r),
        range(exp_n),
        -half_ln2 * mp.mpf("1.001"),
        half_ln2,
        "(exp(r) - 1 - r) / r^2 on |r| <= ln(2) / 2",
    )
    fit(
        f"exp2{label}",
        bits,
        lambda r: (mp.power(2, r) - 1) / r if abs(r) > 1e-25 else mp.log(2) + r * mp.log(2) ** 2 / 2,
        lambda r: r / mp.power(2, r),
        range(exp2_n),
        -0.5003,
        0.5001,
        "(2^r - 1) / r on |r| <= 1/2",
    )


def fit_sines(label, bits, sin_n, cos_n):
    quarter_pi = mp.pi / 4 * mp.mpf("1.0002")
    fit(
        f"sin{label}",
        bits,
        lambda r: (mp.sin(r) - r) / r**3,
        lambda r: r**3 / mp.sin(r),
        [2 * i for i in range(sin_n)],
        mp.mpf("1e-9"),
        quarter_pi,
        "(sin(r) - r) / r^3 on |r| <= pi / 4, in r^2",
    )
    fit(
        f"cos{label}",
        bits,
        lambda r: (mp.cos(r) - 1 + r * r / 2) / r**4,
        lambda r: r**4 / mp.cos(r),
        [2 * i for i in range(cos_n)],
        mp.mpf("1e-9"),
        quarter_pi,
        "(cos(r) - 1 + r^2/2) / r^4 on |r| <= pi / 4, in r^2",
    )


def fit_error_functions(label, bits, erf_n, erfc_n):
    fit(
        f"erf{label}",
        bits,
        lambda x: mp.erf(x) / x - 1,
        lambda x: x / mp.erf(x),
        [2 * i for i in range(erf_n)],
        mp.mpf("1e-9"),
        mp.mpf(1),
        "erf(x) / x - 1 on |x| <= 1, in x^2",
    )
    fit(
        f"erfcx{label}",
        bits,
        lambda u: erfcx((2 * u + 2) / (1 - u)),
        lambda u: mp.exp(-(((2 * u + 2) / (1 - u)) ** 2)) + mp.mpf(10) ** -9,
        range(erfc_n),
        -mp.mpf(1) / 3,
        mp.mpf(1) / 2,
        "exp(t^2) erfc(t) for 1 <= t <= 6, in u = (t - 2) / (t + 2)",
    )


def fit_logarithms():
    low, high = mp.sqrt(mp.mpf(1) / 2) - 1, mp.sqrt(mp.mpf(2)) - 1
    fit(
        "logF32",
        24,
        log_tail,
        lambda x: x**3 / mp.log(1 + x) if x != 0 else x * x,
        range(8),
        low,
        high,
        "(log(1 + f) - f + f^2/2) / f^3 for 1 + f in [sqrt(1/2), sqrt(2)]",
    )
    top = high / (2 + high)
    fit(
        "logF64",
        53,
        lambda s: (2 * mp.atanh(s) - 2 * s) / s**3,
        lambda s: s**3,
        [2 * i for i in range(7)],
        mp.mpf("1e-9"),
        top * mp.mpf("1.0001"),
        "(log((1 + s) / (1 - s)) - 2 s) / s^3, in s^2",
    )
    fit(
        "logFifthF64",
        53,
        lambda s: (2 * mp.atanh(s) - 2 * s - 2 * s**3 / 3) / s**5,
        lambda s: s**5,
        [2 * i for i in range(7)],
        mp.mpf("1e-6"),
        top * mp.mpf("1.0001"),
        "(log((1 + s) / (1 - s)) - 2 s - 2/3 s^3) / s^5, in s^2",
    )


def split_constants():
    """Prints numbers as sums of several parts, so that products with few bits are exact."""
    ln2, log2e = mp.log(2), 1 / mp.log(2)
    split("ln2F32", ln2, 24, 2, 15)
    split("ln2F64", ln2, 53, 2, 41)
    split("log2eF32", log2e, 24, 2, 24)
    split("log2eF64", log2e, 53, 2, 53)
    split("twoThirdsF64", mp.mpf(2) / 3, 53, 2, 53)
    split("halfPiF32", mp.pi / 2, 24, 3, 24)
    split("halfPiF64", mp.pi / 2, 53, 3, 53)


def print_two_over_pi():
    mp.mp.prec = 1400
    bits = int(mp.floor(2 / mp.pi * mp.mpf(2) ** (64 * 20)))
    words = [0] + [bits >> (64 * (19 - i)) & (2**64 - 1) for i in range(20)]
    print("\n/// 64 zeros, then the first 1280 bits of 2/pi after the point")
    print(f"inline constexpr uint64_t twoOverPiBits[] = {{{', '.join(hex(w) for w in words)}}};")


def main():
    print("// Polynomial coefficients of VectorMath, lowest power first; made by FitVectorMath.py, do not edit.")
    print("// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception")
    print("#pragma once\n#include <cstdint>\n")
    print("namespace kpkg::lower::coefficients {\n")
    fit_float32_only()
    for label, bits, exp_n, exp2_n, sin_n, cos_n, erf_n, erfc_n in (
        ("F32", 24, 5, 6, 3, 3, 7, 8),
        ("F64", 53, 10, 11, 6, 6, 14, 21),
    ):
        fit_exponentials(label, bits, exp_n, exp2_n)
        fit_sines(label, bits, sin_n, cos_n)
        fit_error_functions(label, bits, erf_n, erfc_n)
        print()
    fit_logarithms()
    print()
    split_constants()
    print_two_over_pi()
    print("\n} // namespace kpkg::lower::coefficients")


if __name__ == "__main__":
    main()
