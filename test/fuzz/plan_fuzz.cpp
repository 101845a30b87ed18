// Fuzz target: loads plan bytecode and, if it is accepted, evaluates it on several calls.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/fuzz/MemoryBudget.h"
#include "test/runtime/plan/CheckResolution.h"
#include "test/runtime/plan/RandomProgram.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace kpkg::plan;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

static void require(bool holds, const std::string &what) {
  if (holds)
    return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  kpkg::fuzz::MemoryBudget budget((48 << 20) + 64 * size);
  Error error;
  auto program = Program::load({data, size}, error);
  if (!program) {
    require(error.kind == Error::Kind::Malformed && !error.message.empty(), "refused without a reason");
    return 0;
  }
  if (size % 8 == 0) { // slower than what calls do
    dumpText(program->decoded());
    dumpJson(program->decoded());
    auto again = Program::load(encode(program->decoded()), error);
    require(again.has_value(), "accepted once, refused when written again: " + error.message);
  }
  std::mt19937_64 random(size);
  for (int k = 0; k < 3; ++k) {
    RandomCall call = randomCall(*program, random);
    Resolution resolution;
    if (auto failure = evaluate(*program, call.arguments, resolution)) {
      require(failure->message.find("internal error") == std::string::npos, failure->message);
      continue;
    }
    std::string wrong = checkResolution(*program, call.arguments, resolution);
    require(wrong.empty(), wrong);
    describe(*program, resolution);
  }
  return 0;
}

/// Replaces the input by a random program in one of 32 mutations, because byte mutations rarely produce valid programs.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  if (size > 16 && seed % 32 != 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::mt19937_64 random(seed);
  std::vector<uint8_t> bytes = encode(randomProgram(random));
  if (bytes.size() > maxSize)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}
