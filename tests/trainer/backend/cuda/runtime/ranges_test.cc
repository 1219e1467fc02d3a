// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/runtime/ranges.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "tests/support/directories.h"
#include "tests/support/test.h"

namespace trainer {
namespace {

// NVTX looks for a profiler at the first call of a process.
TEST(ProfilerRanges, AreHeardByAProfilerThatNvtxLoads) {
  const std::string listener = tests::BuildDirectory() + "/tests/nvtx_listener.so";
  ::setenv("NVTX_INJECTION64_PATH", listener.c_str(), 1);
  BeginProfilerRange("outer");
  BeginProfilerRange("inner");
  EndProfilerRange();
  EndProfilerRange();
  void* const library = ::dlopen(listener.c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr) << "NVTX has not loaded " << listener;
  const auto received = reinterpret_cast<const char* (*)()>(::dlsym(library, "HeardRanges"));
  ASSERT_NE(received, nullptr);
  EXPECT_STREQ(received(), "outer\ninner\n.\n.\n");
  ::dlclose(library);
}

}  // namespace
}  // namespace trainer
