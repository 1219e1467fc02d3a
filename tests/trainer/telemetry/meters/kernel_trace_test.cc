// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/meters/kernel_trace.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/support/folders.h"

namespace trainer {
namespace {

using testing::StartsWith;

const std::string kFakeCupti = tests::BuildFolder() + "/tests/libfake_cupti.so";

// Calls of the fake, which KernelTrace has loaded.
template <typename... Arguments>
void Tell(const char* function, Arguments... arguments) {
  void* const library = ::dlopen(kFakeCupti.c_str(), RTLD_NOW | RTLD_NOLOAD);
  reinterpret_cast<void (*)(Arguments...)>(::dlsym(library, function))(arguments...);
  ::dlclose(library);
}

void RunKernel(const char* name, std::uint64_t begin, std::uint64_t length) {
  Tell("RunKernel", name, begin, length);
}

TEST(KernelTrace, HasEachKernelByItsBeginAndInNamesOfTheSource) {
  KernelTrace trace({"libno_such_cupti.so", kFakeCupti});
  ASSERT_EQ(trace.problem(), "");
  RunKernel("before the start", 0, 1);
  trace.Start();
  RunKernel("late", 500'000'000, 2'000'000);
  RunKernel("_ZN7trainer6UpdateEif", 250'000'000, 1'500);
  EXPECT_TRUE(trace.Take().empty()) << "CUPTI has not handed the buffer over";
  RunKernel("third", 750'000'000, 1);
  const std::vector<TracedKernel> kernels = trace.Take();
  ASSERT_EQ(kernels.size(), 3);
  EXPECT_EQ(kernels[0].name, "trainer::Update(int, float)");
  EXPECT_DOUBLE_EQ(kernels[0].begin, 0.25);
  EXPECT_DOUBLE_EQ(kernels[0].seconds, 1.5e-6);
  EXPECT_EQ(kernels[1].name, "late");
  EXPECT_EQ(kernels[2].name, "third");
  EXPECT_TRUE(trace.Take().empty());
}

TEST(KernelTrace, HasTheRestAtTheEndAndNothingAfterIt) {
  KernelTrace trace({kFakeCupti});
  trace.Start();
  RunKernel("last", 0, 1);
  Tell("LoseKernels", std::size_t{7});
  const std::vector<TracedKernel> kernels = trace.Stop();
  ASSERT_EQ(kernels.size(), 1);
  EXPECT_EQ(kernels[0].name, "last");
  EXPECT_EQ(trace.lost(), 7);
  RunKernel("after", 0, 1);
  EXPECT_TRUE(trace.Stop().empty());
}

TEST(KernelTrace, SaysWhyThereIsNone) {
  EXPECT_THAT(KernelTrace({"libno_such_cupti.so"}).problem(), StartsWith("CUPTI is not here: "));
  EXPECT_EQ(KernelTrace({"libm.so.6"}).problem(), "CUPTI has no cuptiActivityRegisterCallbacks");
  ::setenv("FAKE_CUPTI_REFUSES", "1", 1);
  EXPECT_EQ(KernelTrace({kFakeCupti}).problem(),
            "CUPTI refuses: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
  ::unsetenv("FAKE_CUPTI_REFUSES");
}

}  // namespace
}  // namespace trainer
