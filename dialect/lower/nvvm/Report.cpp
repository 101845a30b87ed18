// Emits asserts and prints, which write to a report block in memory (KpkgGpuReport of kernel_abi.h).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/DeviceOps.h"
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/LowerNvvm.h"
#include "dialect/tile/ir/CheckedPrint.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

using layout::Layout;

namespace {
/// Byte offsets in KpkgGpuReport.
enum : int64_t { failedOffset = 0, lostOffset = 4, usedOffset = 8, capacityOffset = 16, messagesOffset = 24 };

/// The maximum number of words of a message, as on CPUs.
constexpr int64_t mostWords = 64;

StringRef wordFormat(Type element) {
  if (element.isF64())
    return "{f64}";
  if (isa<FloatType>(element))
    return "{f32}";
  return element.isInteger(1) ? "{bool}" : "{i64}";
}

/// Returns how many words of each value a message shows.
SmallVector<int64_t> shownWords(tile::PrintOp op) {
  SmallVector<int64_t> shown;
  int64_t rest = mostWords;
  for (Value value : op.getValues()) {
    auto tile = dyn_cast<RankedTensorType>(value.getType());
    shown.push_back(std::min(tile ? tile.getNumElements() : 1, rest));
    rest -= shown.back();
  }
  return shown;
}

/// Returns whether a value of a checked print lies where its condition does, so that the thread with the condition
/// knows it. Scalars are everywhere.
bool isShown(tile::PrintOp op, Value value) {
  return !isa<RankedTensorType>(value.getType()) || kgpu::layoutOf(value) == kgpu::layoutOf(op.getValues().front());
}

std::string formatOfCheck(tile::PrintOp op) {
  std::string format;
  StringRef rest = tile::checkFormat(op);
  for (Value value : op.getValues().drop_front()) {
    auto [before, after] = rest.split("{}");
    rest = after;
    format += (before + (isShown(op, value) ? wordFormat(getElementTypeOrSelf(value.getType())) : "...")).str();
  }
  return format + rest.str();
}

std::string formatOf(tile::PrintOp op) {
  if (tile::checkOf(op))
    return formatOfCheck(op);
  std::string format;
  StringRef rest = op.getFormat();
  for (auto [value, shown] : llvm::zip(op.getValues(), shownWords(op))) {
    auto [before, after] = rest.split("{}");
    rest = after;
    format += before;
    StringRef word = wordFormat(getElementTypeOrSelf(value.getType()));
    auto tile = dyn_cast<RankedTensorType>(value.getType());
    if (!tile) {
      format += shown ? word : "...";
      continue;
    }
    format += "[";
    for (int64_t number = 0; number < shown; ++number)
      format += (number ? " " : "") + word.str();
    format += shown < tile.getNumElements() ? " ...]" : "]";
  }
  return format + rest.str();
}

Value addressAt(ImplicitLocOpBuilder &builder, Value report, int64_t offset) {
  return LLVM::GEPOp::create(builder, report.getType(), builder.getI8Type(), report,
                             ArrayRef<LLVM::GEPArg>{int32_t(offset)});
}

Value constant64(ImplicitLocOpBuilder &builder, int64_t value) {
  return arith::ConstantIntOp::create(builder, builder.getI64Type(), value);
}

/// Returns the address of word `index` (i64) of the messages.
Value messageWord(ImplicitLocOpBuilder &builder, Value report, Value index) {
  Value messages = addressAt(builder, report, messagesOffset);
  return LLVM::GEPOp::create(builder, report.getType(), builder.getI64Type(), messages, ValueRange{index});
}

/// Converts a value to the form that the host reads.
Value toWord(ImplicitLocOpBuilder &builder, Value value) {
  Type type = value.getType(), i64 = builder.getI64Type();
  if (type.isIndex())
    return arith::IndexCastOp::create(builder, i64, value);
  if (isa<FloatType>(type)) {
    if (type.getIntOrFloatBitWidth() < 32)
      value = arith::ExtFOp::create(builder, builder.getF32Type(), value);
    unsigned width = value.getType().getIntOrFloatBitWidth();
    value = arith::BitcastOp::create(builder, builder.getIntegerType(width), value);
    return width == 64 ? value : arith::ExtUIOp::create(builder, i64, value).getResult();
  }
  if (type.isInteger(1))
    return arith::ExtUIOp::create(builder, i64, value);
  return type == i64 ? value : arith::ExtSIOp::create(builder, i64, value).getResult();
}

/// Returns the message with which an op ends the launch, or null if it does not.
StringAttr failureOf(Operation *op) {
  if (auto check = dyn_cast<tile::AssertOp>(op))
    return check.getMessageAttr();
  auto print = dyn_cast<tile::PrintOp>(op);
  return print ? tile::checkOf(print) : StringAttr();
}

/// Returns the number of a failure in the order of reportTexts.
int32_t failureNumber(tile::KernelOp kernel, Operation *failing) {
  int32_t number = 0;
  kernel.walk([&](Operation *op) {
    if (op == failing)
      return WalkResult::interrupt();
    number += bool(failureOf(op));
    return WalkResult::advance();
  });
  return number;
}

Value both(ImplicitLocOpBuilder &builder, Value left, Value right) {
  if (!left || !right)
    return left ? left : right;
  return arith::AndIOp::create(builder, left, right);
}
/// Words of messages that a thread has reserved: the first one, and an i1 that tells whether they fit.
struct Reserved {
  Value start, fits;
};

Reserved reserveWords(ImplicitLocOpBuilder &builder, Value report, int64_t words) {
  Value size = constant64(builder, words);
  Value start = LLVM::AtomicRMWOp::create(builder, LLVM::AtomicBinOp::add, addressAt(builder, report, usedOffset), size,
                                          LLVM::AtomicOrdering::monotonic);
  Value end = arith::AddIOp::create(builder, start, size);
  Value capacity = LLVM::LoadOp::create(builder, builder.getI64Type(), addressAt(builder, report, capacityOffset));
  return {start, arith::CmpIOp::create(builder, arith::CmpIPredicate::ule, end, capacity)};
}

/// Adds the values of one element to a search for the first failing one.
void chooseFirst(ImplicitLocOpBuilder &builder, Value breaks, ArrayRef<Value> words, Value &failed,
                 SmallVectorImpl<Value> &chosen) {
  if (!failed) {
    failed = breaks;
    chosen.assign(words.begin(), words.end());
    return;
  }
  for (auto [word, before] : llvm::zip(words, chosen))
    before = arith::SelectOp::create(builder, failed, before, word);
  failed = arith::OrIOp::create(builder, failed, breaks);
}

/// Ends the launch where `failed` (i1) is true, with the failure of this number. The first such thread writes a message
/// of a header and words.
void recordFailure(ImplicitLocOpBuilder &builder, Value report, Value failed, int32_t number, int64_t header,
                   ArrayRef<Value> words) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(scf::IfOp::create(builder, failed, /*withElseRegion=*/false).thenBlock());
  Value none = LLVM::ConstantOp::create(builder, builder.getI32IntegerAttr(0));
  Value own = LLVM::ConstantOp::create(builder, builder.getI32IntegerAttr(number + 1));
  Value old = LLVM::AtomicCmpXchgOp::create(builder, addressAt(builder, report, failedOffset), none, own,
                                            LLVM::AtomicOrdering::monotonic, LLVM::AtomicOrdering::monotonic);
  Value isFirst = LLVM::ExtractValueOp::create(builder, old, ArrayRef<int64_t>{1});
  builder.setInsertionPointToStart(scf::IfOp::create(builder, isFirst, /*withElseRegion=*/false).thenBlock());
  Reserved place = reserveWords(builder, report, 1 + int64_t(words.size()));
  builder.setInsertionPointToStart(scf::IfOp::create(builder, place.fits, /*withElseRegion=*/false).thenBlock());
  LLVM::StoreOp::create(builder, constant64(builder, header), messageWord(builder, report, place.start));
  for (auto [index, word] : llvm::enumerate(words)) {
    Value at = arith::AddIOp::create(builder, place.start, constant64(builder, 1 + int64_t(index)));
    LLVM::StoreOp::create(builder, word, messageWord(builder, report, at));
  }
}
} // namespace

ReportTexts reportTexts(tile::KernelOp kernel) {
  ReportTexts texts;
  kernel.walk([&](Operation *op) {
    if (StringAttr message = failureOf(op))
      texts.asserts.push_back(message.str());
    if (auto print = dyn_cast<tile::PrintOp>(op))
      texts.prints.push_back(formatOf(print));
  });
  return texts;
}

/// Numbers asserts and prints in the order of reportTexts.
void Emitter::numberReports() {
  int32_t asserts = 0, prints = 0;
  kernel.walk([&](Operation *op) {
    if (isa<tile::AssertOp>(op))
      reportNumbers[op] = asserts;
    asserts += bool(failureOf(op));
    if (isa<tile::PrintOp>(op))
      reportNumbers[op] = prints++;
  });
}

/// Returns an i1: whether register `reg` holds an element of the tile and not padding. Null when it always does.
Value Emitter::isElement(const Layout &layout, ArrayRef<int64_t> shape, unsigned reg) {
  Value inside;
  for (auto [dim, extent] : llvm::enumerate(shape))
    if (layout.shape()[dim] > extent) {
      Value coordinate = place.coordinate(builder, layout, reg, dim);
      inside = both(builder, inside,
                    arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, coordinate, constantOf(builder, extent)));
    }
  return inside;
}

LogicalResult Emitter::emitAssert(tile::AssertOp op) {
  Value condition = op.getCondition(), failed;
  Value yes = arith::ConstantIntOp::create(builder, builder.getI1Type(), 1);
  auto tile = dyn_cast<RankedTensorType>(condition.getType());
  for (auto [reg, holds] : llvm::enumerate(registersOf(condition))) {
    Value breaks = arith::XOrIOp::create(builder, holds, yes);
    if (tile)
      breaks = both(builder, breaks, isElement(kgpu::layoutOf(condition), tile.getShape(), reg));
    failed = failed ? arith::OrIOp::create(builder, failed, breaks).getResult() : breaks;
  }
  auto branch = scf::IfOp::create(builder, failed, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  // The first failure is kept; the kernel continues, as on CPUs.
  LLVM::AtomicCmpXchgOp::create(builder, addressAt(builder, report, failedOffset), constantOf(builder, 0),
                                constantOf(builder, reportNumbers.at(op) + 1), LLVM::AtomicOrdering::monotonic,
                                LLVM::AtomicOrdering::monotonic);
  return success();
}

LogicalResult Emitter::emitPrint(tile::PrintOp op) {
  if (tile::checkOf(op)) {
    Value condition = op.getValues().front(), failed;
    Value yes = arith::ConstantIntOp::create(builder, builder.getI1Type(), 1);
    auto tile = dyn_cast<RankedTensorType>(condition.getType());
    SmallVector<Value> words;
    for (auto [reg, holds] : llvm::enumerate(registersOf(condition))) {
      Value breaks = both(builder, arith::XOrIOp::create(builder, holds, yes), inGrid);
      if (tile)
        breaks = both(builder, breaks, isElement(kgpu::layoutOf(condition), tile.getShape(), reg));
      SmallVector<Value> here;
      for (Value value : op.getValues().drop_front())
        if (isShown(op, value))
          here.push_back(
              toWord(builder, isa<RankedTensorType>(value.getType()) ? registersOf(value)[reg] : scalar(value)));
      chooseFirst(builder, breaks, here, failed, words);
    }
    int64_t header = (int64_t(reportNumbers.at(op)) + 1) << 32 | int64_t(words.size());
    recordFailure(builder, report, failed, failureNumber(kernel, op), header, words);
    return success();
  }
  if (launch.cluster > 1 && !tile::isOfThreads(kernel))
    return op.emitOpError("is not possible in a kernel whose blocks are clusters");
  SmallVector<int64_t> shown = shownWords(op);
  int64_t count = 0;
  bool hasTile = false;
  for (auto [value, words] : llvm::zip(op.getValues(), shown)) {
    count += words;
    hasTile |= isa<RankedTensorType>(value.getType()) && words > 0;
  }
  // One thread reserves space, and shares its position with the others, because each thread writes its own elements.
  Value common = hasTile ? addressOfPrintPlace(builder) : Value();
  if (hasTile)
    ctaBarrier(builder);
  // At thread level each thread has values of its own.
  Value isFirst = tile::isOfThreads(kernel)
                      ? arith::ConstantIntOp::create(builder, builder.getI1Type(), 1).getResult()
                      : arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, place.thread(), constantOf(builder, 0))
                            .getResult();
  auto first = scf::IfOp::create(builder, isFirst, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(first.thenBlock());
    auto [start, fits] = reserveWords(builder, report, 1 + count);
    Value words = arith::AddIOp::create(builder, start, constant64(builder, 1));
    if (hasTile)
      LLVM::StoreOp::create(builder, arith::SelectOp::create(builder, fits, words, constant64(builder, -1)), common);
    auto room = scf::IfOp::create(builder, fits, /*withElseRegion=*/true);
    builder.setInsertionPointToStart(room.thenBlock());
    int64_t header = (int64_t(reportNumbers.at(op)) + 1) << 32 | count;
    LLVM::StoreOp::create(builder, constant64(builder, header), messageWord(builder, report, start));
    int64_t before = 0;
    for (auto [value, number] : llvm::zip(op.getValues(), shown)) {
      if (number && !isa<RankedTensorType>(value.getType()))
        LLVM::StoreOp::create(
            builder, toWord(builder, scalar(value)),
            messageWord(builder, report, arith::AddIOp::create(builder, words, constant64(builder, before))));
      before += number;
    }
    builder.setInsertionPointToStart(room.elseBlock());
    LLVM::AtomicRMWOp::create(builder, LLVM::AtomicBinOp::add, addressAt(builder, report, lostOffset),
                              constantOf(builder, 1), LLVM::AtomicOrdering::monotonic);
  }
  if (!hasTile)
    return success();
  ctaBarrier(builder);
  Value words = LLVM::LoadOp::create(builder, builder.getI64Type(), common);
  Value hasRoom = arith::CmpIOp::create(builder, arith::CmpIPredicate::sge, words, constant64(builder, 0));
  int64_t before = 0;
  for (auto [value, number] : llvm::zip(op.getValues(), shown)) {
    if (number && isa<RankedTensorType>(value.getType()))
      printElements(value, number, arith::AddIOp::create(builder, words, constant64(builder, before)), hasRoom);
    before += number;
  }
  return success();
}

/// Writes the first `shown` elements of a tile in row-major order. Each thread writes the elements that it holds.
void Emitter::printElements(Value value, int64_t shown, Value firstWord, Value hasRoom) {
  const Layout &layout = kgpu::layoutOf(value);
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  Value writes = both(builder, hasRoom, place.isFirstReplica(layout));
  for (auto [reg, element] : llvm::enumerate(registersOf(value))) {
    Value number = constantOf(builder, 0);
    int64_t least = 0, step = 1;
    for (unsigned dim = shape.size(); dim-- > 0; step *= shape[dim]) {
      Value distance =
          arith::MulIOp::create(builder, place.coordinate(builder, layout, reg, dim), constantOf(builder, step));
      number = arith::AddIOp::create(builder, number, distance);
      if (ThreadPlace::isSum(layout, dim))
        least += ThreadPlace::ofRegister(layout, reg, dim) * step;
    }
    if (least >= shown)
      continue; // In every thread.
    Value isShown = arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, number, constantOf(builder, shown));
    isShown = both(builder, both(builder, isShown, writes), isElement(layout, shape, reg));
    auto branch = scf::IfOp::create(builder, isShown, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    Value index =
        arith::AddIOp::create(builder, firstWord, arith::ExtUIOp::create(builder, builder.getI64Type(), number));
    LLVM::StoreOp::create(builder, toWord(builder, element), messageWord(builder, report, index));
  }
}

} // namespace kpkg::lower::nvvm
