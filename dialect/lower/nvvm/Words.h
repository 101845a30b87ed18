// Elements as 32-bit words: what shuffles and vector accesses carry.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Value.h"

namespace kpkg::lower::nvvm {
/// Bytes that an element takes in a word or in shared memory: i1 takes one, index eight.
unsigned bytesOf(mlir::Type element);

/// The elements' bits in i32 words, the first element lowest. Elements narrower than a word share it; the last word is
/// filled up with zeros. Elements of 8 bytes take two words each, the low half first.
llvm::SmallVector<mlir::Value> packWords(mlir::ImplicitLocOpBuilder &builder, mlir::ValueRange elements);

/// The opposite: `count` elements of type `element`.
llvm::SmallVector<mlir::Value> unpackWords(mlir::ImplicitLocOpBuilder &builder, mlir::ValueRange words,
                                           mlir::Type element, unsigned count);

/// Bytes of a word of a vector in global memory: as wide as its element, but for several narrow ones at least 4 bytes
/// where the vector has them.
unsigned wordBytesOf(unsigned elementBytes, unsigned elements);
/// The elements' bits in words of so many bytes, as globalStore takes them: of its size, but 16 bits for a byte.
llvm::SmallVector<mlir::Value> packElements(mlir::ImplicitLocOpBuilder &builder, mlir::ValueRange elements,
                                            unsigned wordBytes);

/// An element's bits as an integer of its bytes.
mlir::Value bitsOfElement(mlir::ImplicitLocOpBuilder &builder, mlir::Value element);
/// The element with these bits.
mlir::Value elementOfBits(mlir::ImplicitLocOpBuilder &builder, mlir::Value bits, mlir::Type element);
/// Two narrow floats as one word: LLVM makes one conversion of it when both come from f32.
mlir::Value pairOfNarrowFloats(mlir::ImplicitLocOpBuilder &builder, mlir::Value low, mlir::Value high);

} // namespace kpkg::lower::nvvm
