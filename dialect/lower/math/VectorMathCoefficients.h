// Polynomial coefficients of VectorMath, lowest power first; made by FitVectorMath.py, do not edit.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <cstdint>

namespace kpkg::lower::coefficients {

/// (tanh(x) - x) / x^3 on |x| <= 0.8, in x^2; error 2^-27.7
inline constexpr double tanhSmallF32[] = {-0x1.55553c0000000p-2, 0x1.110ae40000000p-3,  -0x1.b91b720000000p-5,
                                          0x1.5ca3e00000000p-6,  -0x1.e308da0000000p-8, 0x1.9954be0000000p-10};
/// (tanh(x) - x) / x^3 on |x| <= 0.3, in x^2; error 2^-25.9
inline constexpr double tanhNearF32[] = {-0x1.5554800000000p-2, 0x1.10a4f80000000p-3, -0x1.9aedaa0000000p-5};
/// erf(x) / x - 1 on |x| <= 0.3, in x^2; error 2^-28.5
inline constexpr double erfNearF32[] = {0x1.06eba80000000p-3, -0x1.8127140000000p-2, 0x1.cdfd5a0000000p-4,
                                        -0x1.a983880000000p-6};
/// log2(erfc(t)) / t on 0.3 <= t <= 4.25, weighted by t erfc(t); error 2^-24.3
inline constexpr double erfcExponentF32[] = {-0x1.a0c1640000000p+0, -0x1.d6085e0000000p-1, -0x1.32e12e0000000p-3,
                                             0x1.f736220000000p-6,  -0x1.a770e20000000p-9, -0x1.079fa40000000p-13,
                                             0x1.be3a180000000p-15};
/// log2(erfc(t)) / t on 0 <= t <= 4.25, weighted by t (erfc(t) + 0.01); error 2^-24.9
inline constexpr double erfcWholeF32[] = {-0x1.a0bea20000000p+0, -0x1.d63abe0000000p-1,  -0x1.3006040000000p-3,
                                          0x1.cbf7cc0000000p-6,  -0x1.7d12b00000000p-12, -0x1.02349a0000000p-9,
                                          0x1.8839100000000p-11, -0x1.315f820000000p-13, 0x1.01269e0000000p-16,
                                          -0x1.7191a20000000p-21};
/// (exp(r) - 1 - r) / r^2 on |r| <= ln(2) / 2; error 2^-28.0
inline constexpr double expF32[] = {0x1.fffff80000000p-2, 0x1.55548e0000000p-3, 0x1.555b9e0000000p-5,
                                    0x1.123bde0000000p-7, 0x1.6849420000000p-10};
/// (2^r - 1) / r on |r| <= 1/2; error 2^-28.0
inline constexpr double exp2F32[] = {0x1.62e4300000000p-1, 0x1.ebfbd80000000p-3,  0x1.c6af760000000p-5,
                                     0x1.3b30a80000000p-7, 0x1.5f0b900000000p-10, 0x1.3f99260000000p-13};
/// (sin(r) - r) / r^3 on |r| <= pi / 4, in r^2; error 2^-27.9
inline constexpr double sinF32[] = {-0x1.5555460000000p-3, 0x1.11077c0000000p-7, -0x1.9955be0000000p-13};
/// (cos(r) - 1 + r^2/2) / r^4 on |r| <= pi / 4, in r^2; error 2^-33.0
inline constexpr double cosF32[] = {0x1.55554a0000000p-5, -0x1.6c0c2c0000000p-10, 0x1.99e9ea0000000p-16};
/// erf(x) / x - 1 on |x| <= 1, in x^2; error 2^-29.4
inline constexpr double erfF32[] = {0x1.06eba80000000p-3,  -0x1.8127400000000p-2, 0x1.ce2d4e0000000p-4,
                                    -0x1.b7fe500000000p-6, 0x1.542b6a0000000p-8,  -0x1.a4f4240000000p-11,
                                    0x1.4bee6c0000000p-14};
/// exp(t^2) erfc(t) for 1 <= t <= 6, in u = (t - 2) / (t + 2); error 2^-33.5
inline constexpr double erfcxF32[] = {0x1.0586720000000p-2,   -0x1.b570300000000p-2, 0x1.eeea800000000p-3,
                                      -0x1.4384da0000000p-4,  0x1.e4b10c0000000p-9,  0x1.c609420000000p-8,
                                      -0x1.b37bd00000000p-11, -0x1.b888c00000000p-11};

/// (exp(r) - 1 - r) / r^2 on |r| <= ln(2) / 2; error 2^-57.6
inline constexpr double expF64[] = {
    0x1.000000000000cp-1,  0x1.5555555555514p-3,  0x1.555555554fe56p-5,  0x1.1111111121751p-7,  0x1.6c16c185efb75p-10,
    0x1.a01a014b3e018p-13, 0x1.a01995fe8e88cp-16, 0x1.71deddedb25edp-19, 0x1.28b0b8546da49p-22, 0x1.aded995275127p-26};
/// (2^r - 1) / r on |r| <= 1/2; error 2^-57.3
inline constexpr double exp2F64[] = {0x1.62e42fefa39efp-1,  0x1.ebfbdff82c5a5p-3,  0x1.c6b08d704a120p-5,
                                     0x1.3b2ab6fb9ffa3p-7,  0x1.5d87fe78a197ep-10, 0x1.4309130f1903ep-13,
                                     0x1.ffcbfc56707afp-17, 0x1.62bfc70ccc96fp-20, 0x1.b525460399525p-24,
                                     0x1.e61c353f4687dp-28, 0x1.e93c7dabb77acp-32};
/// (sin(r) - r) / r^3 on |r| <= pi / 4, in r^2; error 2^-57.8
inline constexpr double sinF64[] = {-0x1.555555555554ap-3, 0x1.111111110f9d9p-7,   -0x1.a01a019c35872p-13,
                                    0x1.71de35923cde9p-19, -0x1.ae5e785e851dap-26, 0x1.5d97af0e90ee9p-33};
/// (cos(r) - 1 + r^2/2) / r^4 on |r| <= pi / 4, in r^2; error 2^-63.9
inline constexpr double cosF64[] = {0x1.555555555554bp-5,   -0x1.6c16c16c15025p-10, 0x1.a01a019c91791p-16,
                                    -0x1.27e4f7f38539ep-22, 0x1.1ee9dd3813d22p-29,  -0x1.8fa742f62572cp-37};
/// erf(x) / x - 1 on |x| <= 1, in x^2; error 2^-56.3
inline constexpr double erfF64[] = {0x1.06eba8214db69p-3,   -0x1.812746b037a05p-2,  0x1.ce2f21a043dc5p-4,
                                    -0x1.b82ce312d5d52p-6,  0x1.565bcd19fff07p-8,   -0x1.c02db62882543p-11,
                                    0x1.f9a36ac01df65p-14,  -0x1.f4d8093e80244p-17, 0x1.ba3b2b14c9195p-20,
                                    -0x1.62d9a5a9d3072p-23, 0x1.162c9543158cbp-26,  -0x1.14d89c641f82bp-29,
                                    0x1.848828837c3c8p-32,  -0x1.808228f80f968p-35};
/// exp(t^2) erfc(t) for 1 <= t <= 6, in u = (t - 2) / (t + 2); error 2^-63.5
inline constexpr double erfcxF64[] = {0x1.058671b52c776p-2,   -0x1.b57034efd3f71p-2,  0x1.eeea7dc8a7858p-3,
                                      -0x1.437f0b68c19edp-4,  0x1.e94715982ab62p-9,   0x1.ca95ed5c47a4fp-8,
                                      -0x1.bc25a41220c3dp-11, -0x1.016b65c03ccf1p-10, 0x1.6d5a154406a35p-15,
                                      0x1.6db058c228510p-13,  0x1.cf6e5df4b56c9p-16,  -0x1.cfcda26c8d532p-16,
                                      -0x1.081db642fdf51p-16, -0x1.d13cc89c7e38cp-21, 0x1.2f9ecb740acd1p-16,
                                      0x1.3d96d0ff7938fp-15,  -0x1.4325ca621c3d4p-15, -0x1.92e83dd42bde6p-13,
                                      -0x1.e4eb8ab8979b3p-15, 0x1.5b0a8154a8fc0p-12,  0x1.2db2cba41c03fp-12};

/// (log(1 + f) - f + f^2/2) / f^3 for 1 + f in [sqrt(1/2), sqrt(2)]; error 2^-27.1
inline constexpr double logF32[] = {0x1.5555640000000p-2,  -0x1.00023c0000000p-2, 0x1.9998600000000p-3,
                                    -0x1.5467900000000p-3, 0x1.2364380000000p-3,  -0x1.0e68260000000p-3,
                                    0x1.025bea0000000p-3,  -0x1.2d36360000000p-4};
/// (log((1 + s) / (1 - s)) - 2 s) / s^3, in s^2; error 2^-61.7
inline constexpr double logF64[] = {0x1.55555555555cdp-1, 0x1.99999999708f9p-2, 0x1.2492494d5ca0cp-2,
                                    0x1.c71c49e189e9ep-3, 0x1.7467c1272dc95p-3, 0x1.397e00436a253p-3,
                                    0x1.30540751b267dp-3};
/// (log((1 + s) / (1 - s)) - 2 s - 2/3 s^3) / s^5, in s^2; error 2^-68.5
inline constexpr double logFifthF64[] = {0x1.9999999999c0dp-2, 0x1.2492492441ab9p-2, 0x1.c71c7248b5ca0p-3,
                                         0x1.745ce1794de8ep-3, 0x1.3b204e75c2c79p-3, 0x1.0f621debbdf0bp-3,
                                         0x1.0f4468b7b7fb9p-3};

inline constexpr double ln2F32[] = {0x1.62e4000000000p-1, 0x1.7f7d1c0000000p-20};
inline constexpr double ln2F64[] = {0x1.62e42fefa4000p-1, -0x1.8432a1b0e2634p-43};
inline constexpr double log2eF32[] = {0x1.7154760000000p+0, 0x1.4ae0c00000000p-26};
inline constexpr double log2eF64[] = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
inline constexpr double twoThirdsF64[] = {0x1.5555555555555p-1, 0x1.5555555555555p-55};
inline constexpr double halfPiF32[] = {0x1.921fb60000000p+0, -0x1.777a5c0000000p-25, -0x1.ee59da0000000p-50};
inline constexpr double halfPiF64[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};

/// 64 zeros, then the first 1280 bits of 2/pi after the point
inline constexpr uint64_t twoOverPiBits[] = {0x0,
                                             0xa2f9836e4e441529,
                                             0xfc2757d1f534ddc0,
                                             0xdb6295993c439041,
                                             0xfe5163abdebbc561,
                                             0xb7246e3a424dd2e0,
                                             0x6492eea09d1921c,
                                             0xfe1deb1cb129a73e,
                                             0xe88235f52ebb4484,
                                             0xe99c7026b45f7e41,
                                             0x3991d639835339f4,
                                             0x9c845f8bbdf9283b,
                                             0x1ff897ffde05980f,
                                             0xef2f118b5a0a6d1f,
                                             0x6d367ecf27cb09b7,
                                             0x4f463f669e5fea2d,
                                             0x7527bac7ebe5f17b,
                                             0x3d0739f78a5292ea,
                                             0x6bfb5fb11f8d5d08,
                                             0x56033046fc7b6bab,
                                             0xf0cfbc209af4361d};

} // namespace kpkg::lower::coefficients
