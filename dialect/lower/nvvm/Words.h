// Packs elements into the 32-bit words of shuffles and vector accesses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Value.h"

namespace kpkg::lower::nvvm {
/// Returns the bytes of an element in a word or in shared memory: an i1 takes one, an index eight.
unsigned bytesOf(mlir::Type element);

/// Packs the elements' bits into i32 words, the first element lowest. Elements narrower than a word share it, and the
/// last word is filled with zeros. Elements of 8 bytes take two words each, the low half first.
llvm::SmallVector<mlir::Value> packWords(mlir::ImplicitLocOpBuilder &builder, mlir::ValueRange elements);

/// Inverse of packWords: returns `count` elements of type `element`.
llvm::SmallVector<mlir::Value> unpackWords(mlir::ImplicitLocOpBuilder &builder, mlir::ValueRange words,
                                           mlir::Type element, unsigned count);

/// Returns the bytes of a word of a vector in global memory. A word is as wide as an element, but at least 4 bytes for
/// several narrow elements that fill as many.
unsigned wordBytesOf(unsigned elementBytes, unsigned elements);
/// Packs the elements' bits into words of `wordBytes`, in the types of viewStore: 16 bits for a byte.
llvm::SmallVector<mlir::Value> packElements(mlir::ImplicitLocOpBuilder &builder, mlir::ValueRange elements,
                                            unsigned wordBytes);

/// Returns an element's bits as an integer of the same size.
mlir::Value bitsOfElement(mlir::ImplicitLocOpBuilder &builder, mlir::Value element);
/// Returns the element with these bits.
mlir::Value elementOfBits(mlir::ImplicitLocOpBuilder &builder, mlir::Value bits, mlir::Type element);
/// Packs two narrow floats into one word. LLVM merges them into one conversion when both come from f32.
mlir::Value pairOfNarrowFloats(mlir::ImplicitLocOpBuilder &builder, mlir::Value low, mlir::Value high);

} // namespace kpkg::lower::nvvm
