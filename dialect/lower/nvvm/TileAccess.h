// Computes the addresses and predicates of accesses to one tile in global memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/Words.h"
#include "dialect/tile/transforms/IndexFacts.h"

namespace kpkg::lower::nvvm {
using namespace mlir;
using layout::Layout;

constexpr int64_t kMostVectorBytes = 16;

/// The vectorisation of a tile in a view: the dimension of vectors, and their maximum length.
struct Vectors {
  unsigned dim = 0;
  unsigned elements = 1;
};

inline Vectors vectorsOf(tile::ViewType view, ValueRange offsets, const Layout &layout) {
  int64_t unit = view.getUnit();
  if (unit < 0)
    return {};
  tile::ViewFacts facts = view.getFacts();
  int64_t bytes = view.getElementBytes();
  int64_t longest =
      std::min({kMostVectorBytes / bytes, facts.align / bytes, facts.divisible, tile::divisorOf(offsets[unit])});
  if (longest < 1)
    return {};
  unsigned elements = layout.vectorLength(unit, longest);
  // Vectors of two bytes would save nothing.
  return {static_cast<unsigned>(unit), elements * bytes == 2 ? 1 : elements};
}

/// Computes the addresses and predicates of the accesses to one tile.
class Emitter::TileAccess {
public:
  TileAccess(Emitter &emitter, const View &view, ValueRange offsets, RankedTensorType type, const Layout &layout)
      : emitter(emitter), builder(emitter.builder), view(view), layout(layout), shape(type.getShape()),
        vectors(vectorsOf(view.type, offsets, layout)) {
    Value start;
    for (unsigned dim = 0; dim < layout.rank(); ++dim) {
      Value offset = emitter.scalar(offsets[dim]);
      bounds.push_back(boundsOf(dim, offset, offsets[dim]));
      strides.push_back(arith::IndexCastOp::create(builder, distanceType(), view.stride[dim]));
      Value first = arith::IndexCastOp::create(builder, distanceType(), offset);
      if (ThreadPlace::isSum(layout, dim))
        first = arith::AddIOp::create(builder, first, widened(emitter.place.coordinate(layout, dim)));
      Value distance = arith::MulIOp::create(builder, first, strides[dim]);
      start = start ? arith::AddIOp::create(builder, start, distance).getResult() : distance;
    }
    base =
        LLVM::GEPOp::create(builder, view.pointer.getType(), elementType(), view.pointer, ValueRange{asOffset(start)});
  }

  SmallVector<SmallVector<unsigned, 8>> groups() const { return layout.vectors(vectors.dim, vectors.elements); }

  /// Returns the address of the vector that begins with register `reg`.
  Value address(unsigned reg) {
    Value distance;
    int64_t fixed = 0;
    for (unsigned dim = 0; dim < layout.rank(); ++dim) {
      bool isSum = ThreadPlace::isSum(layout, dim);
      int64_t own = ThreadPlace::ofRegister(layout, reg, dim);
      if (isSum && own == 0)
        continue;
      if (isSum && static_cast<int64_t>(dim) == view.type.getUnit()) {
        fixed += own;
        continue;
      }
      Value coordinate = isSum ? arith::ConstantIntOp::create(builder, distanceType(), own).getResult()
                               : widened(emitter.place.coordinate(builder, layout, reg, dim));
      Value step = arith::MulIOp::create(builder, coordinate, strides[dim]);
      distance = distance ? arith::AddIOp::create(builder, distance, step).getResult() : step;
    }
    Value pointer = base;
    if (distance)
      pointer = LLVM::GEPOp::create(builder, pointer.getType(), elementType(), pointer, ValueRange{asOffset(distance)});
    if (fixed)
      pointer = LLVM::GEPOp::create(builder, pointer.getType(), elementType(), pointer,
                                    ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(fixed)});
    return pointer;
  }

  /// Returns whether that vector lies inside the view and the tile. By the view's facts, its first element decides for
  /// all.
  Value mask(unsigned reg) {
    Value all;
    auto require = [&](Value condition) {
      all = all ? arith::AndIOp::create(builder, all, condition).getResult() : condition;
    };
    for (unsigned dim = 0; dim < layout.rank(); ++dim) {
      const Bounds &bound = bounds[dim];
      Value coordinate = emitter.place.coordinate(layout, dim);
      int64_t own = ThreadPlace::ofRegister(layout, reg, dim);
      Value limit = bound.end;
      // Subtracting from the uniform limit leaves one comparison for each vector.
      if (ThreadPlace::isSum(layout, dim) && own != 0)
        limit = arith::SubIOp::create(builder, limit, constantOf(builder, own));
      else
        coordinate = emitter.place.coordinate(builder, layout, reg, dim);
      require(arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, coordinate, limit));
      if (bound.begin)
        require(arith::CmpIOp::create(builder, arith::CmpIPredicate::sge,
                                      emitter.place.coordinate(builder, layout, reg, dim), bound.begin));
    }
    if (view.valid)
      require(view.valid);
    if (emitter.inGrid)
      require(emitter.inGrid);
    return all;
  }

private:
  /// The i32 coordinates of the tile inside the view: begin <= coordinate < end. A null begin means 0 or less.
  struct Bounds {
    Value begin, end;
  };

  Bounds boundsOf(unsigned dim, Value offset, Value original) {
    Type i32 = builder.getI32Type();
    auto clamped = [&](Value wide, int64_t least, int64_t most) {
      wide = arith::MinSIOp::create(builder, wide, arith::ConstantIndexOp::create(builder, most));
      wide = arith::MaxSIOp::create(builder, wide, arith::ConstantIndexOp::create(builder, least));
      return arith::IndexCastOp::create(builder, i32, wide);
    };
    Bounds bounds;
    if (hasSmallOffsets() && matchPattern(original, m_Zero())) {
      Value extent = arith::IndexCastOp::create(builder, i32, view.shape[dim]);
      bounds.end = arith::MinSIOp::create(builder, extent, constantOf(builder, shape[dim]));
      return bounds;
    }
    Value rest = arith::SubIOp::create(builder, view.shape[dim], offset);
    // At most the tile's extent; coordinates beyond it are padding of the layout.
    bounds.end = clamped(rest, 0, shape[dim]);
    if (!tile::isNonNegative(original)) {
      Value before = arith::SubIOp::create(builder, arith::ConstantIndexOp::create(builder, 0), offset);
      bounds.begin = clamped(before, 0, shape[dim]);
    }
    return bounds;
  }

  /// Returns whether offsets inside the view fit 32 bits. Elements outside are not accessed.
  bool hasSmallOffsets() const { return view.type.getFacts().hasSmallOffsets(); }
  /// Returns the type in which offsets are computed, in elements.
  Type distanceType() { return builder.getIntegerType(hasSmallOffsets() ? 32 : 64); }
  Value widened(Value coordinate) {
    return hasSmallOffsets() ? coordinate
                             : arith::ExtUIOp::create(builder, builder.getI64Type(), coordinate).getResult();
  }
  /// GEPs take a distance of 64 bits.
  Value asOffset(Value distance) {
    return hasSmallOffsets() ? arith::ExtSIOp::create(builder, builder.getI64Type(), distance).getResult() : distance;
  }
  /// GEPs count in elements; an i1 takes a byte.
  Type elementType() { return builder.getIntegerType(8 * view.type.getElementBytes()); }

  Emitter &emitter;
  ImplicitLocOpBuilder &builder;
  const View &view;
  const Layout &layout;
  ArrayRef<int64_t> shape;
  Vectors vectors;
  SmallVector<Bounds> bounds;
  SmallVector<Value> strides; ///< Of distanceType().
  Value base;
};
} // namespace kpkg::lower::nvvm
