// Multiplies bf16 pairs with the tiles of AMX, which hold 16 rows of 64 bytes each.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Panels already have the layout of tiles. In a block of a row panel, a row's kUnroll pairs fill a row of a tile. In a
// column panel, a row of a tile holds one step's pair of each column.
//
// The code names tile registers itself, and every tile has the full size. LLVM would otherwise reload the configuration
// before each instruction when it compiles without optimisation.
#include "dialect/lower/cpu/DotCode.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace kpkg::lower::cpu {

namespace {

constexpr int64_t tileCount = 8;

/// Emits instructions for tile registers.
class Tiles {
public:
  explicit Tiles(DotCode &code) : code(code) {}

  void configure(Value memory) { call("llvm.x86.ldtilecfg", memory); }
  void release() { call("llvm.x86.tilerelease", {}); }
  void clear(int64_t tile) { call("llvm.x86.tilezero", number(tile)); }
  /// Loads 16 rows of 64 bytes, `stride` bytes apart.
  void load(int64_t tile, Value pointer, Value stride) {
    call("llvm.x86.tileloadd64", {number(tile), pointer, stride});
  }
  void store(int64_t tile, Value pointer, int64_t stride) {
    call("llvm.x86.tilestored64", {number(tile), pointer, bytes(stride)});
  }
  /// Adds the product of `rows` and `columns` to `sum`.
  void multiplyAdd(int64_t sum, int64_t rows, int64_t columns) {
    call("llvm.x86.tdpbf16ps", {number(sum), number(rows), number(columns)});
  }
  Value bytes(int64_t count) { return arith::ConstantOp::create(code.b, code.b.getI64IntegerAttr(count)); }

private:
  DotCode &code;

  Value number(int64_t tile) { return arith::ConstantOp::create(code.b, code.b.getI8IntegerAttr(int8_t(tile))); }
  void call(StringRef name, ValueRange arguments) {
    LLVM::CallIntrinsicOp::create(code.b, code.b.getStringAttr(name), arguments);
  }
};

/// Adds rows of `vectors` vectors in `edge`, whose rows are nr elements apart, to the accumulator at `corner`. Null
/// `masks` add whole vectors.
void addRows(DotCode &code, Value edge, Value rows, ArrayRef<Value> masks, int64_t vectors, Value corner,
             int64_t accStride) {
  const DotPlan &plan = code.plan;
  Type type = plan.shape.accType;
  VectorType vector = code.vectorOf(plan.lanes);
  code.forEach(code.index(0), rows, 1, [&](Value r) {
    Value sums = code.at(edge, type, code.mul(r, code.index(plan.nr)));
    Value line = code.at(corner, type, code.mul(r, code.index(accStride)));
    for (int64_t j = 0; j < vectors; ++j) {
      Value place = code.at(line, type, j * plan.lanes);
      Value sum = code.load(vector, code.at(sums, type, j * plan.lanes), plan.unit.vectorBytes);
      Value old =
          masks.empty() ? code.load(vector, place, code.accBytes()) : code.loadMasked(place, type, masks[j], Value());
      sum = arith::AddFOp::create(code.b, old, sum);
      if (masks.empty())
        code.store(sum, place, code.accBytes());
      else
        LLVM::MaskedStoreOp::create(code.b, sum, place, masks[j], unsigned(code.accBytes()));
    }
  });
}

} // namespace

void withTiles(DotCode &code, Value memory, llvm::function_ref<void()> body) {
  // The format of LDTILECFG: the palette, the bytes of each tile's rows from byte 16 on, and their number from byte 48.
  SmallVector<int8_t> settings(kTileConfigurationBytes, 0);
  settings[0] = 1;
  for (int64_t tile = 0; tile < tileCount; ++tile) {
    settings[16 + 2 * tile] = kTileRowBytes;
    settings[48 + tile] = kTileRows;
  }
  VectorType type = VectorType::get(kTileConfigurationBytes, code.b.getI8Type());
  code.store(arith::ConstantOp::create(code.b, DenseElementsAttr::get(type, ArrayRef<int8_t>(settings))), memory,
             kTileConfigurationBytes);
  Tiles tiles(code);
  tiles.configure(memory);
  body();
  tiles.release();
}

void multiplyTiles(DotCode &code, Value rowPanel, Value columnPanel, int64_t vectors, Value kSteps, Value acc,
                   int64_t accStride, Value row, Value column, Value edge) {
  const DotPlan &plan = code.plan;
  Type type = plan.shape.accType;
  Tiles tiles(code);
  int64_t rowTiles = plan.mr / kTileRows, firstRow = rowTiles * vectors, firstColumn = firstRow + rowTiles;
  for (int64_t tile = 0; tile < firstRow; ++tile)
    tiles.clear(tile);
  Value rowStride = tiles.bytes(kTileRowBytes), columnStride = tiles.bytes(plan.nr * code.accBytes());
  code.forEach(code.index(0), kSteps, plan.kUnroll, [&](Value k) {
    Value rows = code.at(rowPanel, type, code.mul(k, code.index(plan.mr)));
    Value columns = code.at(columnPanel, type, code.mul(k, code.index(plan.nr)));
    for (int64_t j = 0; j < vectors; ++j)
      tiles.load(firstColumn + j, code.at(columns, type, j * plan.lanes), columnStride);
    for (int64_t i = 0; i < rowTiles; ++i) {
      tiles.load(firstRow + i, code.at(rows, type, i * kTileRows * plan.kUnroll), rowStride);
      for (int64_t j = 0; j < vectors; ++j)
        tiles.multiplyAdd(i * vectors + j, firstRow + i, firstColumn + j);
    }
  });
  // The sum starts at zero and is added to the accumulator once at the end, as in multiplyPanels.
  for (int64_t i = 0; i < rowTiles; ++i)
    for (int64_t j = 0; j < vectors; ++j)
      tiles.store(i * vectors + j, code.at(edge, type, i * kTileRows * plan.nr + j * plan.lanes),
                  plan.nr * code.accBytes());
  Value corner = code.at(acc, type, code.add(code.mul(row, code.index(accStride)), column));
  int64_t width = vectors * plan.lanes;
  auto addWhole = [&] { addRows(code, edge, code.index(plan.mr), {}, vectors, corner, accStride); };
  if (plan.shape.m % plan.mr == 0 && plan.shape.n % plan.nr == 0)
    return addWhole();
  auto addPart = [&] {
    Value rows = code.min(code.index(plan.mr), code.sub(code.index(plan.shape.m), row));
    SmallVector<Value> masks;
    for (int64_t j = 0; j < vectors; ++j) {
      Value first = code.add(column, code.index(j * plan.lanes));
      masks.push_back(firstLanes(code, code.sub(code.index(plan.shape.n), first), plan.lanes));
    }
    addRows(code, edge, rows, masks, vectors, corner, accStride);
  };
  Value whole = code.both(code.atMost(code.add(row, code.index(plan.mr)), code.index(plan.shape.m)),
                          code.atMost(code.add(column, code.index(width)), code.index(plan.shape.n)));
  code.ifElse(whole, addWhole, addPart);
}

/// Packs steps [k, k + kSteps) of at most kTileRows rows of `a` into `panel`, one step of all rows after the other.
static void packRowsAcross(DotCode &code, const BoundedOperand &a, Value k, Value kSteps, Value panel) {
  const DotPlan &plan = code.plan;
  Type type = plan.shape.accType;
  Value lastRow = code.sub(a.end[0], code.index(1));
  int64_t block = kTileRows * plan.kUnroll;
  code.forEach(code.index(0), kSteps, plan.kUnroll, [&](Value step) {
    Value first = code.mul(code.add(k, step), code.index(plan.width()));
    SmallVector<Value> lines;
    for (int64_t r = 0; r < kTileRows; ++r) {
      // A row behind the last one is a copy of it. Its sums are never read.
      Value offset = code.add(code.mul(code.min(code.index(r), lastRow), a.stride[0]), first);
      lines.push_back(code.loadSteps(code.at(a.base, a.elementType, offset), a.elementType, plan.kUnroll));
    }
    lines = transpose(code, lines);
    Value target = code.at(panel, type, code.mul(code.quotient(step, plan.kUnroll), code.index(block)));
    for (int64_t i = 0; i < plan.kUnroll; ++i)
      code.store(lines[i], code.at(target, type, i * kTileRows), kTileRowBytes);
  });
}

void multiplyTilesAlong(DotCode &code, const BoundedOperand &a, const BoundedOperand &b, Value depth, Value acc,
                        int64_t accStride, Value scratch, Value edge) {
  const DotPlan &plan = code.plan;
  Type type = plan.shape.accType, wide = code.b.getI64Type();
  VectorType vector = code.vectorOf(plan.lanes);
  Tiles tiles(code);
  constexpr int64_t rows = kTilesAlong, columns = 2 * kTilesAlong;
  Value square = code.at(edge, type, plan.mr * plan.nr), rowStride = tiles.bytes(kTileRowBytes);
  Value bytes = arith::IndexCastOp::create(code.b, wide, code.mul(b.stride[1], code.index(2)));
  Value steps = code.quotient(depth, plan.width());
  code.forEach(code.index(0), steps, plan.kc, [&](Value k) {
    Value kSteps = code.min(code.index(plan.kc), code.sub(steps, k));
    packRowsAcross(code, a, k, kSteps, scratch);
    code.forEach(code.index(0), b.end[1], kTilesAlong * kTileRows, [&](Value column) {
      for (int64_t i = 0; i < kTilesAlong; ++i)
        tiles.clear(i);
      code.forEach(code.index(0), kSteps, plan.kUnroll, [&](Value step) {
        tiles.load(columns, code.at(scratch, type, code.mul(step, code.index(kTileRows))), rowStride);
        Value first = code.mul(code.add(k, step), code.index(plan.width()));
        for (int64_t i = 0; i < kTilesAlong; ++i) {
          Value line = code.mul(code.add(column, code.index(i * kTileRows)), b.stride[1]);
          tiles.load(rows + i, code.at(b.base, b.elementType, code.add(line, first)), bytes);
          tiles.multiplyAdd(i, rows + i, columns);
        }
      });
      // A tile of sums has a row for each column of the product.
      for (int64_t i = 0; i < kTilesAlong; ++i) {
        tiles.store(i, square, kTileRowBytes);
        SmallVector<Value> lines;
        for (int64_t j = 0; j < kTileRows; ++j)
          lines.push_back(code.load(vector, code.at(square, type, j * plan.lanes), kTileRowBytes));
        lines = transpose(code, lines);
        for (int64_t r = 0; r < kTileRows; ++r)
          code.store(lines[r], code.at(edge, type, r * plan.nr + i * plan.lanes), kTileRowBytes);
      }
      addRows(code, edge, a.end[0], {}, kTilesAlong, code.at(acc, type, column), accStride);
    });
  });
}

} // namespace kpkg::lower::cpu
