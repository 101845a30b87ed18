// The attribute of a launch: text form and verifier.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace kpkg::kgpu;

llvm::hash_code kpkg::kgpu::hash_value(const Launch &launch) {
  llvm::hash_code code(0);
#define KPKG_LAUNCH_COUNT(TYPE, MEMBER, SPELLING, DEFAULT, MEANING) code = llvm::hash_combine(code, launch.MEMBER);
#define KPKG_LAUNCH_FLAG(MEMBER, SPELLING, MEANING) code = llvm::hash_combine(code, launch.MEMBER);
#include "dialect/kgpu/ir/LaunchFields.def"
  return code;
}

/// Parses the value of the field `name`; none where there is no such field.
static std::optional<ParseResult> parseField(AsmParser &parser, StringRef name, Launch &launch) {
  auto count = [&](auto &member) -> ParseResult { return failure(parser.parseEqual() || parser.parseInteger(member)); };
#define KPKG_LAUNCH_COUNT(TYPE, MEMBER, SPELLING, DEFAULT, MEANING)                                                    \
  if (name == SPELLING)                                                                                                \
    return count(launch.MEMBER);
#define KPKG_LAUNCH_FLAG(MEMBER, SPELLING, MEANING)                                                                    \
  if (name == SPELLING) {                                                                                              \
    launch.MEMBER = true;                                                                                              \
    return success();                                                                                                  \
  }
#include "dialect/kgpu/ir/LaunchFields.def"
  return std::nullopt;
}

Attribute LaunchAttr::parse(AsmParser &parser, Type) {
  Launch launch;
  SmallVector<StringRef> seen;
  SMLoc start = parser.getCurrentLocation();
  auto parseOne = [&]() -> ParseResult {
    StringRef name;
    SMLoc location = parser.getCurrentLocation();
    if (parser.parseKeyword(&name))
      return failure();
    if (llvm::is_contained(seen, name))
      return parser.emitError(location) << "field '" << name << "' of a launch is given twice";
    seen.push_back(name);
    std::optional<ParseResult> parsed = parseField(parser, name, launch);
    return parsed ? *parsed : parser.emitError(location) << "a launch has no field '" << name << "'";
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseOne))
    return {};
  return getChecked([&] { return parser.emitError(start); }, parser.getContext(), launch);
}

void LaunchAttr::print(AsmPrinter &printer) const {
  const Launch &launch = getLaunch();
  printer << "<";
  llvm::ListSeparator separator;
#define KPKG_LAUNCH_COUNT(TYPE, MEMBER, SPELLING, DEFAULT, MEANING)                                                    \
  if (launch.MEMBER != DEFAULT)                                                                                        \
    printer << StringRef(separator) << SPELLING << " = " << launch.MEMBER;
#define KPKG_LAUNCH_FLAG(MEMBER, SPELLING, MEANING)                                                                    \
  if (launch.MEMBER)                                                                                                   \
    printer << StringRef(separator) << SPELLING;
#include "dialect/kgpu/ir/LaunchFields.def"
  printer << ">";
}

static LogicalResult verifyRoles(function_ref<InFlightDiagnostic()> emitError, const Launch &launch) {
  if (launch.consumers > 4 || launch.threads != (launch.computing() + 1) * kWarpgroupThreads)
    return emitError() << "a launch has " << launch.computing() << " warpgroups that compute and " << launch.threads
                       << " threads";
  // In layouts of tiles for the consumers, the producer warpgroup holds copies.
  if (launch.producers != 0 && (launch.producers > 1 || !llvm::isPowerOf2_32(launch.consumers)))
    return emitError() << "a launch has " << launch.producers << " producer warpgroups for " << launch.consumers
                       << " consumers";
  return success();
}

LogicalResult LaunchAttr::verify(function_ref<InFlightDiagnostic()> emitError, Launch launch) {
  if (launch.loadRegisters != 0 && (launch.consumers == 0 || launch.loadRegisters % 8 != 0 ||
                                    launch.loadRegisters < 24 || launch.loadRegisters > 240))
    return emitError() << "a launch has " << launch.loadRegisters
                       << " registers for a thread that copies, which takes multiples of 8 from 24 to 240 beside "
                          "consumers";
  if (launch.consumers != 0) {
    if (failed(verifyRoles(emitError, launch)))
      return failure();
  } else if (launch.threads > 1024) { // KgpuDialect verifies that layouts have a power of two
    return emitError() << "a launch has " << launch.threads << " threads, and a CTA at most 1024";
  }
  if (!llvm::isPowerOf2_32(launch.cluster) || launch.cluster > 16)
    return emitError() << "a launch has clusters of " << launch.cluster << " CTAs, which is no power of two up to 16";
  if (launch.shared < 0)
    return emitError() << "a launch has " << launch.shared << " bytes of shared memory";
  if (launch.blocks == 1)
    return success();
  if (launch.blocks == 0 || launch.threads % launch.blocks != 0 || !llvm::isPowerOf2_32(launch.blocks) ||
      launch.threadsOfBlock() > 32)
    return emitError() << "a launch packs " << launch.blocks << " blocks into " << launch.threads
                       << " threads; each must get a power of two of lanes of one warp";
  if (launch.cluster != 1)
    return emitError() << "a launch cannot both pack blocks and use clusters";
  return success();
}
