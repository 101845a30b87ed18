// Tests calls whose code the driver refuses, with a stand-in for it: the next instance runs, and explain says why.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/runtime/device/cuda/CudaCall.h"

#include <cstring>
#include <gmock/gmock.h>

using namespace kpkg;
using kpkg::test::CudaCall;
using testing::AllOf;
using testing::HasSubstr;

namespace {

/// The sample op with machine code and PTX. The driver refuses the machine code.
class Refusal : public CudaCall {
protected:
  Refusal() {
    nlohmann::json ptx = manifest["instances"][manifest["instances"].size() - 2];
    ptx["section"] = test::samplePtx, ptx["target"] = "compute_80", ptx["symbol"] = "ptx_kernel";
    manifest["instances"].push_back(ptx);
    reload(manifest);
    refuse("code for a GPU");
    logged().clear();
    kpkg_set_log([](void *, kpkg_log_level, const char *message) { logged().push_back(message); }, nullptr);
  }
  ~Refusal() override { kpkg_set_log(nullptr, nullptr); }

  void refuse(const char *text) { std::strncpy(fake->refused, text, sizeof fake->refused - 1); }
  Result<std::vector<Tensor>> run(int32_t device = 0, int rows = 10) {
    return scale(onDevice(x, {rows, 64}, device), onDevice(y, {rows, 64}, device));
  }
  std::string explain() { return library->op("test::scale")->explain({onDevice(x, {10, 64})}).value(); }
  static std::vector<std::string> &logged() {
    static std::vector<std::string> messages;
    return messages;
  }
};

TEST_F(Refusal, TheNextInstanceRuns) {
  auto made = run();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_STREQ(fake->symbol, "ptx_kernel");
  int loads = fake->loads;
  ASSERT_TRUE(run(0, 11));
  EXPECT_EQ(fake->loads, loads) << "what is refused is not tried again";
  EXPECT_EQ(fake->depth, 0);
}

TEST_F(Refusal, IsLoggedOnceForASection) {
  ASSERT_TRUE(run());
  ASSERT_TRUE(run(0, 11));
  ASSERT_EQ(logged().size(), 1u);
  EXPECT_THAT(logged()[0], AllOf(HasSubstr("cuda:0 refuses section 'cubin/sm_90a'"), HasSubstr("vector sm_90a"),
                                 HasSubstr("CUDA_ERROR_NO_BINARY_FOR_GPU, no kernel image is available")));
  ASSERT_TRUE(run(1));
  ASSERT_EQ(logged().size(), 2u);
  EXPECT_THAT(logged()[1], HasSubstr("cuda:1 refuses"));
}

TEST_F(Refusal, ExplainSaysSoBeforeTheFirstCall) {
  EXPECT_THAT(explain(),
              AllOf(HasSubstr("runs kernels of"),
                    HasSubstr("vector sm_90a: is refused by the device: cuLibraryGetModule of 'cubin/sm_90a' of "
                              "'sample.kpkg' failed: CUDA_ERROR_NO_BINARY_FOR_GPU"),
                    HasSubstr("+ scale_rows[T=float32, COLS=1024] any compute_80: chosen")));
}

TEST_F(Refusal, OfAllInstancesIsAnErrorThatSaysWhy) {
  refuse("o"); // in all images
  auto made = run();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().status, KPKG_ERROR_NO_INSTANCE) << "so that a fallback can run";
  EXPECT_THAT(made.error().message, AllOf(HasSubstr("no instance of kernel scale_rows can run"),
                                          HasSubstr("is refused by the device: cuLibraryGetModule")));
}

TEST_F(Refusal, LeavesCallsToFallbacks) {
  refuse("o");
  Registry registry;
  registry.add(*library).value();
  static bool ran;
  ran = false;
  registry.setFallback("test::scale", [](const kpkg_op *, kpkg_call &) { return ran = true, KPKG_OK; }).value();
  EXPECT_TRUE(registry.op("test::scale")->callInto({stream}, {onDevice(x, {10, 64})}, {onDevice(y, {10, 64})}));
  EXPECT_TRUE(ran);
}

TEST_F(Refusal, DoesNotStopPrewarming) {
  ASSERT_TRUE(library->prewarm({KPKG_DEVICE_CUDA, 0}));
  int loads = fake->loads;
  fake->capturing = 1;
  ASSERT_TRUE(run());
  EXPECT_STREQ(fake->symbol, "ptx_kernel");
  EXPECT_EQ(fake->loads, loads);
}

TEST_F(Refusal, OfTheDeviceItselfEndsTheCall) {
  refuse("nothing");
  fake->failLoading = 2;
  auto made = run();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().status, KPKG_ERROR_DEVICE) << "memory may be there next time";
  EXPECT_THAT(made.error().message, HasSubstr("out of memory"));
  fake->failLoading = 0;
  ASSERT_TRUE(run());
  EXPECT_STREQ(fake->symbol, "vector_kernel");
}

} // namespace
