// Compares record layouts with CUPTI's own headers; built only if a toolkit provides them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/Cupti.h"

#include <cupti.h>
#include <gtest/gtest.h>

using namespace kpkg::cuda;

template <typename Theirs> static void expectSameKernel() {
  using Ours = cupti::KernelRecord;
  EXPECT_EQ(offsetof(Ours, kind), offsetof(Theirs, kind));
  EXPECT_EQ(offsetof(Ours, start), offsetof(Theirs, start));
  EXPECT_EQ(offsetof(Ours, end), offsetof(Theirs, end));
  EXPECT_EQ(offsetof(Ours, device), offsetof(Theirs, deviceId));
  EXPECT_EQ(offsetof(Ours, stream), offsetof(Theirs, streamId));
  EXPECT_EQ(offsetof(Ours, correlation), offsetof(Theirs, correlationId));
  EXPECT_LE(sizeof(Ours), sizeof(Theirs));
}

TEST(CuptiLayout, Kernels) {
  expectSameKernel<CUpti_ActivityKernel8>(); // CUDA 12.0
  expectSameKernel<CUpti_ActivityKernel9>();
#if CUPTI_API_VERSION >= 130000
  expectSameKernel<CUpti_ActivityKernel10>();
#endif
}

TEST(CuptiLayout, Identifiers) {
  using Ours = cupti::CorrelationRecord;
  using Theirs = CUpti_ActivityExternalCorrelation;
  EXPECT_EQ(sizeof(Ours), sizeof(Theirs));
  EXPECT_EQ(offsetof(Ours, identifierKind), offsetof(Theirs, externalKind));
  EXPECT_EQ(offsetof(Ours, identifier), offsetof(Theirs, externalId));
  EXPECT_EQ(offsetof(Ours, correlation), offsetof(Theirs, correlationId));
}

TEST(CuptiLayout, Numbers) {
  EXPECT_EQ(int(cupti::Driver), int(CUPTI_ACTIVITY_KIND_DRIVER));
  EXPECT_EQ(int(cupti::ConcurrentKernel), int(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  EXPECT_EQ(int(cupti::ExternalCorrelation), int(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION));
  EXPECT_EQ(cupti::ownIdentifiers, int(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2));
  EXPECT_EQ(cupti::otherSubscriber, int(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED));
  EXPECT_GE(uint32_t(CUPTI_API_VERSION), cupti::firstVersion);
  EXPECT_LT(uint32_t(CUPTI_API_VERSION), cupti::endVersion);
}
